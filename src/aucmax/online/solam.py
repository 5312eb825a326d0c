r"""SOLAM: stochastic online AUC maximisation.

Ying, Wen and Lyu (NeurIPS 2016) turn the pairwise square loss into a saddle point over
single rows,

.. math:: \min_{\|w\| \le R,\, a,\, b}\ \max_\alpha\ E\, F(w, a, b, \alpha; x, y)
          + \tfrac{p (1 - p)\, l_2}{2} \|w\|^2 ,

and take one step a row, down in (w, a, b) and up in α. At the saddle a and b are the
mean scores of the classes and α = b - a. With ``l2 > 0`` this is regSOLAM (Natole's
thesis, Algorithm 18).

Deviations from the papers:

* implicit steps, centred rows, scaled steps and effective rows, as in
  :mod:`aucmax.online.spam`; a, b and α, which are numbers and not weights of features,
  get steps of their own scale, √t̃ alone;
* the ball holds the weights of unit-scale features, Σ w_j²/D_j ≤ R² (or
  Σ |w_j|/√D_j ≤ R), which for standardised features is nearly ‖w‖ ≤ R. A radius in raw
  units could have no default, and would not be a projection in the metric of the steps.
  ``precondition=False`` gives D = 1;
* the thesis' Algorithm 10 prints the step in α as descent; it is ascent;
* the l1 ball may be overstepped by 1 % between projections, which are O(d log d); the
  weights returned are inside;
* the penalty is applied by its proximal map. Its β is p(1 - p) l2, where the thesis, in
  equation 3.16, leaves it at λ though the loss in F has been multiplied by p(1 - p).

The Notes of the class have the settings that switch back.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core import table as tables
from aucmax.core.base import OnlineAUC
from aucmax.core.jit import kernel
from aucmax.core.project import clip, l1_threshold
from aucmax.core.rows import (
    Rows,
    fetch_ahead,
    fetch_features_row,
    fetch_row,
    learn_row,
    listed,
    look_row,
    meet_row,
    move_row,
    sum_row,
)
from aucmax.core.steps import PRINTED, SCHEDULES, rates, step_size
from aucmax.core.table import (
    L2,
    SUM,
    D,
    Float,
    W,
    class_scores,
    norms,
    penalise,
    rebase,
    refresh,
    soften,
    unit_magnitudes,
)
from aucmax.core.tally import NEG, POS, RENEW

_STRETCH = 256  # steps at least, d at most, between two proximal maps
_SLACK = 1.01  # how far out of the l1 ball the weights may be
_SMALL = 0.1  # a factor below this is multiplied out


# The numbers in State.z, after those of aucmax.core.tally: steps; the variables a, b
# and α; the factor s of the weights, w = s W; their size Σ w²/D (for the l1 ball
# Σ |w|/√D); the largest norm of a row; Σ γ since the last proximal map and steps since
# then; Σ γ and Σ γ s.
T, A, B, ALPHA, SCALE, SIZE, KAPPA, DUE, SINCE, SUM_GAMMA, SUM_SCALED = range(6, 17)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    hot: Float  # (4, d) weights, scales, class sums: see aucmax.core.table
    cold: Float  # (4, d) the average's part, frequencies, sums of squares
    ref: Float  # (d,) reference points
    mark: Float  # (d,) the scales that the average was learnt with
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (17,) numbers, see above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    hot, cold, ref = tables.empty(n_features, precondition)
    z = np.zeros(17)
    z[SCALE] = 1.0
    return State(hot, cold, ref, np.zeros(n_features), np.zeros(2), z)


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
    ahead: int,
    learn: bool | None,
    eta0: float,
    schedule: int,
    implicit: bool,
    precondition: bool,
    radius: float,
    l1_ball: bool,
    l2: L2,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``.

    With ``learn=None`` statistics are known, and what learns them is not compiled.
    """
    rows, norm, width, mildest, hardest, renew_at = z[0], z[1], z[2], z[3], z[4], z[5]
    t, a, b, alpha, scale, size, kappa = z[6], z[7], z[8], z[9], z[10], z[11], z[12]
    due, since, sum_gamma, sum_scaled = z[13], z[14], z[15], z[16]
    stretch = max(_STRETCH, hot.shape[1])
    printed = schedule == PRINTED
    slack = 1.0 if printed else _SLACK
    features = listed(X, ref)
    p, to_pos, to_neg, to_mean = rates(n, rows)
    last = order.shape[0] - 1
    for k in range(order.shape[0]):
        fetch_row(X, order[min(k + ahead, last)])
        fetch_features_row(X, order[min(k + 1, last)], hot)
        i = order[k]
        weight = abs(y[i])
        if weight == 0.0:
            continue
        side = POS if y[i] > 0.0 else NEG

        # Running class statistics, where the exact ones are not known.
        renew = False
        if learn is not None:
            rows += 1.0
            n[side] += weight
            learn_row(X, i, weight, side, hot, cold, ref, features)
            if n[POS] == 0.0 or n[NEG] == 0.0:
                if printed:  # nothing moves, but zeros enter the mean
                    t += 1.0
                    sum_gamma += eta0 / np.sqrt(t) * weight * rows / n[side]
                    x_x = look_row(X, i, hot, ref, features, 0.0, 0.0)[1]
                    kappa = max(kappa, np.sqrt(x_x))
                continue
            p, to_pos, to_neg, to_mean = rates(n, rows)
            if precondition:
                if l1_ball:
                    size -= sum_row(X, i, hot, ref, features)
                change = meet_row(
                    X,
                    i,
                    hot,
                    cold,
                    ref,
                    mark,
                    to_pos,
                    to_neg,
                    l2,
                    sum_scaled,
                    0.5 * weight / n[side],
                )[3]
                if l1_ball:
                    size += sum_row(X, i, hot, ref, features)
                else:
                    size = max(size + scale * scale * change, 0.0)
            renew = rows >= renew_at
        pq = p * (1.0 - p)

        # The proximal map of the penalty, and what drifts, exactly.
        if renew or since >= stretch or pq * due * hardest > 0.5:
            penalise(hot, cold, l2, pq * due, sum_scaled)
            due = since = 0.0
            if renew:
                before = class_scores(hot, ref, to_pos, to_neg)[0]
                norm, width, mildest, hardest = refresh(
                    hot, cold, ref, to_pos, to_neg, l2, precondition
                )
                shift = class_scores(hot, ref, to_pos, to_neg)[0] - before
                a += scale * shift  # scores are centred on other points now
                b += scale * shift
                features = listed(X, ref)
                renew_at = RENEW * rows
            squared, absolute = norms(hot)
            size = absolute if l1_ball else scale * scale * squared

        # Gradient of F at this row: the one of w is along x.
        v, x_x, _, _ = look_row(X, i, hot, ref, features, to_pos, to_neg)
        s = scale * v
        t += 1.0
        gamma = (
            step_size(schedule, eta0, norm, width, t, 4.0 * pq, 0.0) * weight * to_mean
        )
        # What is not a feature's weight has a pace of its own.
        pace = weight * to_mean / np.sqrt(1.0 + 4.0 * pq * t)
        if printed:
            pace = gamma
            sum_gamma += gamma  # the mean has the weights from before their step
            sum_scaled += gamma * scale
        if side == POS:
            share = 2.0 * (1.0 - p)
            g = share * (s - a - 1.0 - alpha)
            g_alpha = -share * s
        else:
            share = 2.0 * p
            g = share * (s - b + 1.0 + alpha)
            g_alpha = share * s
        follow, forget = pace * share, pace * 2.0 * pq
        if implicit:
            c = -g * (gamma / (1.0 + gamma * share * x_x))
            follow /= 1.0 + follow
            alpha = (alpha + pace * g_alpha) / (1.0 + forget)
        else:
            c = -g * gamma
            alpha += pace * g_alpha - forget * alpha

        # Step down in (w, a, b); up in alpha is done.
        if side == POS:
            a += follow * (s - a)
        else:
            b += follow * (s - b)
        if printed and l2.plain > 0.0:  # the penalty is a part of the gradient
            shrink = 1.0 - gamma * pq * l2.plain
            scale, s = scale * shrink, s * shrink
            size *= abs(shrink) if l1_ball else shrink * shrink
            if l1_ball or abs(scale) < _SMALL:
                rebase(hot, cold, scale, sum_scaled)
                scale, sum_scaled = 1.0, 0.0
        if l1_ball:
            size -= sum_row(X, i, hot, ref, features)
            move_row(X, i, hot, cold, ref, features, c / scale, sum_scaled)
            size += sum_row(X, i, hot, ref, features)
        else:
            move_row(X, i, hot, cold, ref, features, c / scale, sum_scaled)
            size = max(size + c * (2.0 * s + c * x_x), 0.0)

        # Back into the sets.
        if l1_ball and size > slack * radius:
            tau = l1_threshold(unit_magnitudes(hot), radius)
            soften(hot, cold, tau, sum_scaled)
            size = norms(hot)[1]
        elif not l1_ball and size > radius * radius:
            scale *= radius / np.sqrt(size)
            size = radius * radius
            if abs(scale) < _SMALL:
                rebase(hot, cold, scale, sum_scaled)
                scale, sum_scaled = 1.0, 0.0
        kappa = max(kappa, np.sqrt(max(x_x, 0.0)))
        a = clip(a, radius * kappa)
        b = clip(b, radius * kappa)
        alpha = clip(alpha, 2.0 * radius * kappa)

        if not printed:
            sum_gamma += gamma
            sum_scaled += gamma * scale
            due += gamma
        since += 1.0
    z[0], z[1], z[2], z[3], z[4], z[5] = rows, norm, width, mildest, hardest, renew_at
    z[6], z[7], z[8], z[9], z[10], z[11], z[12] = t, a, b, alpha, scale, size, kappa
    z[13], z[14], z[15], z[16] = due, since, sum_gamma, sum_scaled


def weights(state: State, radius: float, l1_ball: bool) -> tuple[Float, float]:
    """Return the γ-weighted mean of the iterates and the intercept."""
    hot = state.hot
    sum_gamma, sum_scaled = state.z[SUM_GAMMA], state.z[SUM_SCALED]
    if sum_gamma == 0.0 or not state.n.all():
        return np.zeros(hot.shape[1]), 0.0
    w = (sum_scaled * hot[W] - state.cold[tables.U]) / sum_gamma
    if l1_ball:
        mean = np.array([w, hot[D]])  # a table's W and D, to be projected
        tau = l1_threshold(unit_magnitudes(mean), radius)
        soften(mean, np.zeros((1, w.size)), tau, 0.0)
        w = mean[W]
    return w, tables.threshold(w, hot[SUM:], state.n)


class SOLAM(OnlineAUC):
    r"""Stochastic online AUC maximisation with the square loss.

    Solves, one row at a time, the saddle point form of

    .. math:: \min_{\|w\| \le R}\ E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    radius : float or None, default=10.0
        Radius R of the ball, for weights of unit-scale features: 1 is the weight of a
        feature one standard deviation of which is one unit of score. None stands for
        the smallest ball that surely holds the minimum if ``l2`` is above zero, and for
        no ball otherwise.
    norm : {"l2", "l1"}, default="l2"
        Norm of the ball; "l1" is SOLAM-ℓ1. An average of iterates has hardly any exact
        zeros; for those, see the ``l1`` of :class:`SPAM`.
    l2 : float, default=0.0
        Ridge penalty; above zero this is regSOLAM. The papers' :math:`\beta` is
        :math:`p(1-p)\,l_2`.
    eta0 : float, default=0.5
        First step size, in units of one over the mean squared norm of a row.
    schedule : {"invsqrt", "printed"}, default="invsqrt"
        How steps fall: with the square root of the number of effective rows; or as in
        the papers, :math:`\gamma_t = \zeta / \sqrt t` for all variables, with ``eta0``
        for :math:`\zeta`, a plain number.
    step : {"implicit", "explicit"}, default="implicit"
        Whether the residual of a row is taken after or before its own step. Explicit
        steps are those of the paper and diverge if ``eta0`` is too large; implicit ones
        may, if it is far too large and there is no ball. That is an error.
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
    SPAM : The same loss without the dual variables; usually closer after few passes.

    Notes
    -----
    A row costs O(nnz), or O(d log d) when the l1 ball is left; memory is eight numbers
    a feature. ``fit`` reads the data once more, for exact class moments, and
    ``partial_fit`` uses running ones. The duality gap falls like O(log t / √t) [1]_.

    As printed: ``SOLAM(R, eta0=zeta, schedule="printed", step="explicit",
    precondition=False)`` and ``partial_fit``, with ``norm`` for SOLAM-ℓ1, and with
    ``radius=None, l2=l2`` for regSOLAM. The bound κ on the norms of rows is that of the
    rows so far.

    References
    ----------
    .. [1] Y. Ying, L. Wen, S. Lyu, "Stochastic Online AUC Maximization", NeurIPS 2016,
       Algorithm 1.
    .. [2] M. Natole, "Stochastic optimization for AUC maximization", PhD thesis,
       University at Albany, 2020, Algorithm 18 (regSOLAM).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SOLAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(SOLAM(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "norm": [StrOptions({"l2", "l1"})],
        "l2": [Interval(Real, 0, None, closed="left")],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"invsqrt", "printed"})],
        "step": [StrOptions({"implicit", "explicit"})],
        "precondition": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        radius: float | None = 10.0,
        *,
        norm: str = "l2",
        l2: float = 0.0,
        eta0: float = 0.5,
        schedule: str = "invsqrt",
        step: str = "implicit",
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.norm = norm
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.step = step
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _start(self, n_features: int) -> State:
        return init(n_features, bool(self.precondition))

    def _radius(self) -> float:
        if self.radius is not None:
            return float(self.radius)
        l2 = float(self.l2)
        if l2 > 0.0 and self.norm == "l2" and not self.precondition:
            return float(np.sqrt(2.0 / l2))  # J(0) = 1 bounds the penalty at w*
        return 1e150  # its square is finite

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, learn: bool
    ) -> None:
        update(
            X,
            y,
            order,
            *state,
            fetch_ahead(X),
            True if learn else None,
            float(self.eta0),
            SCHEDULES[self.schedule],
            self.step == "implicit",
            bool(self.precondition),
            self._radius(),
            self.norm == "l1",
            self._penalty(),
        )

    def _weights(self, state: State) -> tuple[Float, float]:
        return weights(state, self._radius(), self.norm == "l1")
