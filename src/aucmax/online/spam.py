r"""SPAM: stochastic proximal AUC maximisation.

Natole, Ying and Lyu (ICML 2018) minimise the pairwise square loss

.. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2
          + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1

with one row a step: given the mean scores a = w·m₊ and b = w·m₋ of the two classes, the
dual variable of the saddle form is known, α = b - a, and the gradient of the pairwise
loss at a row is 2(1-p)(w·x - b - 1) x if it is positive and 2p(w·x - a + 1) x if it is
negative. (The paper's (w·x - a) - (1 + α) is w·x - b - 1.) Then comes the proximal map
of the penalty.

Deviations from the paper, none of which moves the minimum:

* the *implicit* step: the residual is taken at the new w, which divides it by
  1 + 2η(1-p)‖x‖² (or 2ηp‖x‖²). It does not overshoot its row's goal, however long the
  row, so that steps that fall need not be tuned. But the goal, the mean score of the
  other class, moves along: large steps that do not fall can diverge, which is an error;
* rows are centred and steps scaled feature by feature (:mod:`aucmax.core.table`), so
  that raw features do as well as standardised ones;
* step sizes count effective rows (:mod:`aucmax.core.steps`);
* a, b are followed exactly by inner products, in O(nnz);
* the proximal map is applied to a stretch of steps at once, in O(1) a step; that of the
  l1 penalty is another algorithm's, :mod:`aucmax.online.spam_net`;
* dense rows are taken four at a time where moments are known, which changes nothing but
  the speed (:mod:`aucmax.core.groups`);
* a weighted average of the iterates is returned (the paper recommends one).

The Notes of the class have the settings that switch back.
"""

import sys
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core import table as tables
from aucmax.core.base import OnlineAUC
from aucmax.core.groups import (
    GROUP,
    PACE,
    PAST,
    PLANNED,
    SIGN,
    look_group,
    move_group,
    put_back,
    take_up,
    workplace,
)
from aucmax.core.jit import kernel
from aucmax.core.rows import (
    Rows,
    fetch_ahead,
    fetch_features_row,
    fetch_number,
    fetch_row,
    learn_row,
    listed,
    look_row,
    meet_row,
    move_row,
)
from aucmax.core.steps import PRINTED, SCHEDULES, rates, step_size
from aucmax.core.table import (
    L2,
    Float,
    class_scores,
    penalise,
    refresh,
    soften,
)
from aucmax.core.tally import NEG, POS, RENEW
from aucmax.online import spam_net

_STRETCH = 256  # steps at least, d at most, between two proximal maps


# The numbers in State.z, after those of aucmax.core.tally: steps, mean scores
# w·(m₊ - ref) and w·(m₋ - ref), Σ η since the last proximal map, steps since then, Σ γ
# (the weights of the average).
T, A, B, DUE, SINCE, SUM_GAMMA = range(6, 12)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    hot: Float  # (4, d) weights, scales, class sums: see aucmax.core.table
    cold: Float  # (4, d) the average's part, frequencies, sums of squares
    ref: Float  # (d,) reference points
    mark: Float  # (d,) the scales that the average was learnt with
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (12,) numbers, see above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    hot, cold, ref = tables.empty(n_features, precondition)
    return State(hot, cold, ref, np.zeros(n_features), np.zeros(2), np.zeros(12))


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    hot: Float,
    cold: Float,
    ref: Float,
    mark: Float,
    n: Float,
    z: Float,
    plan: Float,
    seen: Float,
    room: Float | None,
    single: bool | None,
    ahead: int,
    learn: bool | None,
    eta0: float,
    schedule: int,
    implicit: bool,
    average: bool,
    precondition: bool,
    l2: L2,
    l1: float,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``.

    With ``learn=None`` statistics are known, and what learns them is not compiled; with
    ``room`` for groups, rows are taken a few at a time, and otherwise single ones.
    """
    rows, norm, width, mildest, hardest, renew_at = z[0], z[1], z[2], z[3], z[4], z[5]
    t, a, b, due, since, sum_gamma = z[6], z[7], z[8], z[9], z[10], z[11]
    printed = schedule == PRINTED
    stretch = 1 if printed else max(_STRETCH, hot.shape[1])
    features = listed(X, ref)
    p, to_pos, to_neg, to_mean = rates(n, rows)
    size = 1 if room is None else GROUP
    planned = PLANNED if learn is None else 1
    last = order.shape[0] - 1
    stop = 0
    while stop <= last:
        start, stop = stop, stop + 1
        # Running class statistics, where the exact ones are not known.
        share = d_s = d_a = d_b = 0.0
        if learn is not None:
            fetch_features_row(X, order[min(stop, last)], hot)
            i = order[start]
            weight, side = abs(y[i]), POS if y[i] > 0.0 else NEG
            rows += 1.0
            n[side] += weight
            learn_row(X, i, weight, side, hot, cold, ref, features)
            share = weight / n[side]
            if n[POS] == 0.0 or n[NEG] == 0.0:
                continue
            p, to_pos, to_neg, to_mean = rates(n, rows)
            if precondition:
                d_s, d_a, d_b, _ = meet_row(
                    X,
                    i,
                    hot,
                    cold,
                    ref,
                    mark,
                    to_pos,
                    to_neg,
                    l2,
                    sum_gamma,
                    0.5 * share,
                )
            if rows >= renew_at:
                pq = p * (1.0 - p)
                penalise(hot, cold, l2, pq * due, sum_gamma)
                due = since = share = d_a = d_b = 0.0
                norm, width, mildest, hardest = refresh(
                    hot, cold, ref, to_pos, to_neg, l2, precondition
                )
                a, b = class_scores(hot, ref, to_pos, to_neg)
                features = listed(X, ref)
                renew_at = RENEW * rows

        # How far the next rows are to go, up to where the penalty falls due.
        pq = p * (1.0 - p)
        count = min(planned, last + 1 - start)
        enough = False
        stop = start
        while stop < start + count and not enough:
            e, i = stop - start, order[stop]
            if learn is None:
                fetch_number(y, order[min(stop + planned, last)])
            eta = step_size(
                schedule, eta0, norm, width, t + 1.0, 4.0 * pq, pq * mildest
            )
            eta *= abs(y[i]) * to_mean
            plan[PACE, e] = 2.0 * eta * (1.0 - p if y[i] > 0.0 else p)
            plan[SIGN, e] = 1.0 if y[i] > 0.0 else -1.0
            plan[PAST, e] = sum_gamma
            t += 1.0
            if average:
                sum_gamma += t
            due += eta
            since += 1.0
            enough = since >= stretch or pq * due * hardest > 0.5
            stop += 1
        for e in range(stop - start, stop - start + size - 1):
            plan[PACE, e] = 0.0  # beyond the last row of a group

        # Steps, implicit ones dividing by 1 + pace ‖x‖²: the gradient is along the row.
        for k in range(start, stop, size):
            e = k - start
            if room is not None:
                look_group(X, order, k, ahead, room, plan, e, seen)
                d_a, d_b = move_group(room, seen, plan, e, a, b, implicit)
                a += d_a
                b += d_b
            if single is not None:
                i = order[k]
                fetch_row(X, order[min(k + ahead, last)])
                if learn is None:  # otherwise it was asked for before it was counted
                    fetch_features_row(X, order[min(k + 1, last)], hot)
                s, x_x, x_pos, x_neg = look_row(
                    X, i, hot, ref, features, to_pos, to_neg
                )
                if learn is not None:
                    a += d_a + (share * (s - d_s - a) if y[i] > 0.0 else 0.0)
                    b += d_b + (share * (s - d_s - b) if y[i] < 0.0 else 0.0)
                goal = b + 1.0 if y[i] > 0.0 else a - 1.0
                pace = plan[PACE, e]
                c = (goal - s) * (pace / (1.0 + pace * x_x) if implicit else pace)
                move_row(X, i, hot, cold, ref, features, c, plan[PAST, e])
                a += c * x_pos
                b += c * x_neg

        # The proximal map of the penalty.
        if enough:
            if room is not None:
                put_back(room, hot, cold)
            if l1 > 0.0:
                soften(hot, cold, pq * l1 * due, sum_gamma)
            penalise(hot, cold, l2, pq * due, sum_gamma)
            if room is not None:
                take_up(room, hot, cold)
            a, b = class_scores(hot, ref, to_pos, to_neg)
            due = since = 0.0
    if room is not None:
        put_back(room, hot, cold)
    z[0], z[1], z[2], z[3], z[4], z[5] = rows, norm, width, mildest, hardest, renew_at
    z[6], z[7], z[8], z[9], z[10], z[11] = t, a, b, due, since, sum_gamma


def weights(state: State, l2: L2, l1: float) -> tuple[Float, float]:
    """Return the averaged weights and the intercept."""
    hot, cold, _, _, n, z = state
    if not n.all() or z[SUM_GAMMA] > 0.0:
        return tables.averaged(hot, cold, n, z[SUM_GAMMA])
    last, pq = hot.copy(order="K"), float(np.prod(n / n.sum()))
    penalise(last, cold.copy(), l2, pq * z[DUE], 0.0)
    return tables.averaged(last, cold, n, 0.0)


def run(
    model: "SPAM",
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    learn: bool,
    l2: L2,
) -> None:
    """Take the state past the rows ``order``, with the parameters of ``model``."""
    update(
        X,
        y,
        order,
        *state,
        *workplace(X, learn, state.hot, state.cold, state.ref, state.n),
        fetch_ahead(X),
        True if learn else None,
        float(model.eta0),
        SCHEDULES[model.schedule],
        model.step == "implicit",
        bool(model.average),
        bool(model.precondition),
        l2,
        float(model.l1),
    )


class SPAM(OnlineAUC):
    r"""Stochastic proximal AUC maximisation with the square loss.

    Minimises, one row at a time and without a step size to tune,

    .. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1 .

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given; the papers' :math:`\beta` is
        :math:`p(1-p)\,l_2`. With "auto" each feature has its own, which depends on no
        unit: 1e-3 times its mean square where it is not zero.
    l1 : float, default=0.0
        Lasso penalty; above zero this is SPAM-NET, and some weights are exactly zero.
        The papers' :math:`\beta_1` is :math:`p(1-p)\,l_1`.
    eta0 : float, default=0.5
        First step size, in units of one over the mean squared norm of a row.
    schedule : {"invsqrt", "inv", "constant", "printed"}, default="invsqrt"
        How the step size falls: with the square root of the number of rows; with the
        number of rows (Theorem 3 of the paper), the faster the larger ``l2`` is, and
        with ``l2=0`` like "constant"; not at all. "printed" is
        :math:`\eta_t = \eta / \sqrt t` with ``eta0`` for :math:`\eta`, a plain number,
        and the proximal map after each step, which costs O(d).
    average : bool, default=True
        Whether the weights are an average of the iterates, later ones weighing more
        (in proportion to t), or the last iterate. With ``l1`` they are the last.
    step : {"implicit", "explicit"}, default="implicit"
        Whether the residual of a row is taken after or before its own step. Explicit
        steps are those of the paper and diverge if ``eta0`` is too large; implicit ones
        may, if it is large and steps do not fall. That is an error.
    precondition : bool, default=True
        Whether features are centred and scaled inside, by class moments. The objective
        is the same without, the number of passes to its minimum is not.
    max_iter : int, default=5
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Whether each pass of ``fit`` visits the rows in a new random order.
    random_state : int, RandomState instance or None, default=None
        Seed of that order.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The weights.
    intercept_ : ndarray of shape (1,)
        Puts the score zero midway between the mean scores of the classes.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.
    n_iter_ : int
        Passes done.
    state_ : State
        The variables of the algorithm; ``partial_fit`` goes on from them.

    See Also
    --------
    SOLAM : The same loss as a saddle point, weights in a ball.
    SVRGAUC : The same objective in many passes, as exactly as asked for.

    Notes
    -----
    A row costs O(nnz), memory is ten numbers a feature, and ten more in a ``fit`` of
    dense rows. ``fit`` reads the data once more, for exact class moments;
    ``partial_fit`` uses running ones. The expected error falls like O(log t / t) under
    Theorem 3 of the paper.

    As printed: ``SPAM(l2, l1, eta0=eta, schedule="printed", step="explicit",
    precondition=False, average=False, max_iter=1, shuffle=False)`` and ``fit``, which
    knows p and the class means, with β = p(1 - p) l2 and β₁ = p(1 - p) l1.

    References
    ----------
    .. [1] M. Natole, Y. Ying, S. Lyu, "Stochastic Proximal Algorithms for AUC
       Maximization", ICML 2018, Algorithm 1.
    .. [2] P. Toulis, E. Airoldi, "Asymptotic and finite-sample properties of estimators
       based on stochastic gradients", Annals of Statistics 45(4), 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SPAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(SPAM(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "l1": [Interval(Real, 0, None, closed="left")],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions(set(SCHEDULES))],
        "average": ["boolean"],
        "step": [StrOptions({"implicit", "explicit"})],
        "precondition": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        l1: float = 0.0,
        *,
        eta0: float = 0.5,
        schedule: str = "invsqrt",
        average: bool = True,
        step: str = "implicit",
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.eta0 = eta0
        self.schedule = schedule
        self.average = average
        self.step = step
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    @property
    def _algorithm(self) -> Any:
        """The module of the algorithm: its functions have the same names."""
        follows = self.l1 > 0.0 and self.schedule != "printed"
        return spam_net if follows else sys.modules[__name__]

    def _start(self, n_features: int) -> Any:
        return self._algorithm.init(n_features, bool(self.precondition))

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, learn: bool
    ) -> None:
        self._algorithm.run(self, X, y, order, state, learn, self._penalty())

    def _weights(self, state: Any) -> tuple[Float, float]:
        w, intercept = self._algorithm.weights(state, self._penalty(), float(self.l1))
        return w, intercept
