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
* rows are centred and steps scaled feature by feature (:mod:`aucmax.online.engine`), so
  that raw features do as well as standardised ones;
* step sizes count effective rows (:mod:`aucmax.online.engine.step_sizes`);
* a, b are followed exactly by inner products, in O(nnz);
* the proximal map is applied to a stretch of steps at once, in O(1) a step; that of the
  l1 penalty is another algorithm's, :mod:`aucmax.online.spam_net`;
* a weighted average of the iterates is returned (the paper recommends one).

The Notes of the class have the settings that switch back.
"""

import sys
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Rows
from aucmax.online import engine, spam_net
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import (
    DUE,
    L2,
    PAST,
    P,
    Table,
    Visit,
    class_scores,
    falls_due,
    learn,
    look_row,
    mean_scores,
    move_row,
    penalise,
    renew,
    settle,
    soften,
    weight_of,
)
from aucmax.online.engine.step_sizes import SCHEDULES, step_at

# The numbers in State.z: steps, mean scores w·(m₊ - ref) and w·(m₋ - ref).
T, A, B = range(3)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    table: (
        Table  # weights, scales, class moments: see aucmax.online.engine.feature_table
    )
    z: Float  # (3,) numbers, see above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    return State(engine.empty(n_features, precondition), np.zeros(3))


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    eta0: float,
    schedule: int,
    implicit: bool,
    average: bool,
    l1: float,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    table, z = state
    t, a, b = z[T], z[A], z[B]
    for k in range(order.shape[0]):
        i = order[k]
        news = learn(X, y, i, table, how)
        if not news.ready:
            continue
        a, b = mean_scores(news, y[i], a, b)
        if news.stale:
            renew(table, how)
            a, b = class_scores(table)

        # The step, an implicit one dividing by 1 + pace ‖x‖²: the gradient is along x.
        # (Its size first: the processor divides while it reads the row.)
        t += 1.0
        eta = step_at(schedule, eta0, table, t) * weight_of(y, i, table)
        p = table.stats[P]
        s, x_x, x_pos, x_neg = look_row(X, i, table, how)
        if y[i] > 0.0:
            pace, goal = 2.0 * eta * (1.0 - p), b + 1.0
        else:
            pace, goal = 2.0 * eta * p, a - 1.0
        c = (goal - s) * (pace / (1.0 + pace * x_x) if implicit else pace)
        move_row(X, i, table, how, c)
        a += c * x_pos
        b += c * x_neg
        if average:
            table.stats[PAST] += t

        # The proximal map of the penalty.
        if falls_due(table, how, p * (1.0 - p) * eta):
            if l1 > 0.0:
                soften(table.feat, l1 * table.stats[DUE], table.stats[PAST])
            settle(table, how)
            a, b = class_scores(table)
    z[T], z[A], z[B] = t, a, b


def weights(state: State, l2: L2, l1: float) -> tuple[Float, float]:
    """Return the averaged weights and the intercept."""
    table = state.table
    if table.n.all() and table.stats[PAST] == 0.0:
        table = table._replace(feat=table.feat.copy(order="K"))
        penalise(table, l2, table.stats[DUE])
    return engine.averaged(table)


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
    A row costs O(nnz), memory is ten numbers a feature. ``fit`` reads the data once
    more, for exact class moments; ``partial_fit`` uses running ones. The expected error
    falls like O(log t / t) under Theorem 3 of the paper.

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

    def _visit(self, rows: Rows, state: Any, learn: bool) -> Visit:
        how = super()._visit(rows, state, learn)
        return how._replace(stretch=1.0) if self.schedule == "printed" else how

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Visit
    ) -> None:
        eta0, schedule = float(self.eta0), SCHEDULES[self.schedule]
        step, l1 = (eta0, schedule, self.step == "implicit"), float(self.l1)
        if self._algorithm is spam_net:
            spam_net.update(X, y, order, state, how, *step, l1)
        else:
            update(X, y, order, state, how, *step, bool(self.average), l1)

    def fade(self, share: float) -> None:
        """Let all rows so far count ``share`` of what they did."""
        engine.fade(self.state_.table, share)
        self.state_.z[T] *= share

    def _weights(self, state: Any) -> tuple[Float, float]:
        w, intercept = self._algorithm.weights(state, self._penalty(), float(self.l1))
        return w, intercept
