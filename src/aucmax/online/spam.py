r"""SPAM: stochastic proximal AUC maximisation.

Natole, Ying and Lyu (ICML 2018) minimise the pairwise square loss, J of :class:`SPAM`,
with one row a step. Given the mean scores a = w·m₊ and b = w·m₋ of the two classes, the
dual variable of the saddle form is α = b - a, and the gradient of the pairwise loss at
a row is 2(1-p)(w·x - b - 1) x for a positive and 2p(w·x - a + 1) x for a negative. (The
paper's (w·x - a) - (1 + α) is w·x - b - 1.) The proximal map of the penalty follows.

Deviations from the paper, none of which moves the minimum:

* the *implicit* step takes the residual at the new w, which divides it by
  1 + 2η(1-p)‖x‖² (or 2ηp‖x‖²). It does not overshoot the goal of its row, so steps that
  fall need no tuning. The goal, the mean score of the other class, moves as well: large
  constant steps can diverge, which raises an error;
* rows are centred and steps scaled feature by feature (:mod:`aucmax.online.engine`), so
  raw features do as well as standardised ones;
* step sizes count effective rows (:mod:`aucmax.online.engine.step_sizes`);
* a and b are updated exactly by inner products, in O(nnz);
* the proximal map is applied to many steps at once, in O(1) a step; for the l1 penalty
  see below;
* a weighted average of the iterates is returned (the paper recommends one).

**SPAM-NET**, with an l1 penalty, treats the penalty differently. The paper
soft-thresholds the weights at every step, but steps are mostly noise, so hardly any
weight stays zero. Here weights follow the regularised leader (McMahan 2011). With g the
negative sum of all gradients so far and Λ that of the penalty's shares,

.. math:: w_j = \frac{\operatorname{sign}(g_j)\, \max(|g_j| - \Lambda l_1, 0)}
                     {1 / (\eta D_j) + \Lambda \lambda_j} .

Without penalties these are the weights of SPAM: when η falls, g is adjusted to keep w.
With them, noise in g grows like √t and the threshold like t, so that weights become
exactly zero; the last iterate is returned, without an average. A weight follows from g
when a row needs it, so the penalty is exact at O(nnz) a row. The mean scores a and b
depend on all weights: they are recomputed once as many values have been visited as
there are features.

Features of weight zero do not move the score, so they count neither in the norm and the
number of features that step sizes are relative to, nor in the implicit step. With 3,000
features of which the minimum has ten, steps are 300 times as long.
"""

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows
from aucmax.online import engine
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import L2, Table, Visit
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.centred_rows import centred_row
from aucmax.online.engine.feature_table import class_means, mean_square, penalise, ridge
from aucmax.online.engine.statistics import (
    class_prior,
    effective_width,
    mean_norm,
    weight_of,
)
from aucmax.online.engine.step_sizes import SCHEDULES, step_at

_STRETCH = 16.0  # steps at least between two updates of all weights

# Slots of z: steps; mean scores w·(m₊ - ref) and w·(m₋ - ref); of NetState also η; Λ;
# steps and values since all weights were updated.
T, A, B, ETA, PAID, SINCE, TOUCHED = range(7)


class NetState(NamedTuple):
    """State of the learner; updated in place."""

    table: Table
    g: Float  # (d,) negative sum of the gradients
    z: Float  # (7,) slots above


def init_net(n_features: int, precondition: bool) -> NetState:
    """Return the state before the first row."""
    table = engine.empty(n_features, precondition)
    return NetState(table, np.zeros(n_features), np.zeros(7))


@inlined
def leader(
    table: Table, g: Float, j: int, l2: L2, l1: float, eta: float, paid: float
) -> float:
    """Return w_j."""
    step = eta * engine.scales(table)[j]
    excess = max(abs(g[j]) - paid * l1, 0.0)
    slope = ridge(table.feat, j, l2)
    return np.copysign(excess, g[j]) * (step / (1.0 + step * paid * slope))


@kernel
def update_net(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: NetState,
    how: Visit,
    eta0: float,
    schedule: int,
    power: float,
    implicit: bool,
    l1: float,
    average: bool,  # not used: SPAM-NET returns the last iterate
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    table, g, z = state
    w, scale, l2 = engine.weights(table), engine.scales(table), how.l2
    t, a, b, eta, paid = z[T], z[A], z[B], z[ETA], z[PAID]
    since, touched = z[SINCE], z[TOUCHED]
    x, at = np.empty(g.shape[0]), np.empty(g.shape[0], np.uint32)
    for i in order:
        news = engine.learn(X, y, i, table, how)
        if not news.ready:
            continue
        a, b = engine.mean_scores(news, y[i], a, b)
        if news.stale:
            engine.renew(table, how)
        p = class_prior(table)

        # A new η, and an update of all weights.
        if t == 0.0 or news.stale or (since >= _STRETCH and touched >= g.shape[0]):
            active = 0.0
            for j in range(g.shape[0]):
                if scale[j] > 0.0:
                    w[j] = leader(table, g, j, l2, l1, eta, paid)
                    active += scale[j] * mean_square(table, j) if w[j] != 0.0 else 0.0
            share = max(active / mean_norm(table), 1.0 / effective_width(table))
            share = min(share, 1.0) if t > 0.0 else 1.0
            next_eta = step_at(schedule, eta0, power, table, t + 1.0, share)
            change = 1.0 / next_eta - 1.0 / eta if t > 0.0 else 0.0
            for j in range(g.shape[0]):
                if scale[j] > 0.0:
                    g[j] += change * (w[j] / scale[j])
            a, b = engine.class_scores(table)
            eta, since, touched = next_eta, 0.0, 0.0

        # Current weights of the row's features; its score and the squared length that
        # the step can change it by.
        s = x_x = 0.0
        length = centred_row(X, i, table.ref, how.listed, x, at)
        for k in range(length):
            j = at[k]
            new = leader(table, g, j, l2, l1, eta, paid)
            m_pos, m_neg = class_means(table, j)
            a += (new - w[j]) * m_pos
            b += (new - w[j]) * m_neg
            w[j] = new
            s += new * x[k]
            x_x += (scale[j] * x[k]) * x[k] if new != 0.0 else 0.0

        # The step, along the row.
        weight = weight_of(y, i, table)
        if y[i] > 0.0:
            pace, goal = 2.0 * eta * weight * (1.0 - p), b + 1.0
        else:
            pace, goal = 2.0 * eta * weight * p, a - 1.0
        c = (goal - s) * (pace / (1.0 + pace * x_x) if implicit else pace)
        t += 1.0
        paid += p * (1.0 - p) * weight
        for k in range(length):
            j = at[k]
            g[j] += c / eta * x[k]
            new = leader(table, g, j, l2, l1, eta, paid)
            m_pos, m_neg = class_means(table, j)
            a += (new - w[j]) * m_pos
            b += (new - w[j]) * m_neg
            w[j] = new
        since += 1.0
        touched += length
    z[T], z[A], z[B], z[ETA], z[PAID] = t, a, b, eta, paid
    z[SINCE], z[TOUCHED] = since, touched


@kernel
def _all_weights(table: Table, g: Float, z: Float, l2: L2, l1: float) -> Float:
    """Return all weights; O(d)."""
    w = np.zeros(g.shape[0])
    for j in range(g.shape[0]):
        w[j] = leader(table, g, j, l2, l1, z[ETA], z[PAID])
    return w


def net_weights(state: NetState, l2: L2, l1: float) -> tuple[Float, float]:
    """Return the current weights and the intercept."""
    table, g, z = state
    if z[T] == 0.0:
        return np.zeros(len(g)), 0.0
    w = _all_weights(table, g, z, l2, l1)
    return w, engine.threshold(w, table)


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table
    z: Float  # (3,) slots above


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
    power: float,
    implicit: bool,
    l1: float,
    average: bool,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    table, z = state
    t, a, b = z[T], z[A], z[B]
    for k in range(order.shape[0]):
        i = order[k]
        news = engine.learn(X, y, i, table, how)
        if not news.ready:
            continue
        a, b = engine.mean_scores(news, y[i], a, b)
        if news.stale:
            engine.renew(table, how)
            a, b = engine.class_scores(table)

        # The step, along x; an implicit one divides by 1 + pace ‖x‖². (Its size comes
        # first: the processor divides while it reads the row.)
        t += 1.0
        eta = step_at(schedule, eta0, power, table, t) * stats.weight_of(y, i, table)
        p = stats.class_prior(table)
        s, x_x, x_pos, x_neg = engine.look_row(X, i, table, how)
        if y[i] > 0.0:
            pace, goal = 2.0 * eta * (1.0 - p), b + 1.0
        else:
            pace, goal = 2.0 * eta * p, a - 1.0
        c = (goal - s) * (pace / (1.0 + pace * x_x) if implicit else pace)
        engine.move_row(X, i, table, how, c)
        a += c * x_pos
        b += c * x_neg
        if average:
            stats.add_to_average(table, t)

        # The proximal map of the penalty.
        if engine.falls_due(table, how, p * (1.0 - p) * eta):
            engine.settle(table, how, l1)
            a, b = engine.class_scores(table)
    z[T], z[A], z[B] = t, a, b


def weights(state: State, l2: L2, l1: float) -> tuple[Float, float]:
    """Return the averaged weights and the intercept."""
    table = state.table
    if table.n.all() and stats.average_weight(table) == 0.0:
        table = table._replace(feat=table.feat.copy(order="K"))
        penalise(table, l2, stats.penalty_due(table))
    return engine.averaged(table)


class SPAM(OnlineAUC):
    r"""Stochastic proximal AUC maximisation with the square loss.

    Minimises, one row at a time and without a step size to tune,

    .. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1 .

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty; the papers' :math:`\beta` is :math:`p(1-p)\,l_2`. "auto" sets it
        for each feature to 1e-3 times its mean square where it is not zero, which does
        not depend on units.
    l1 : float, default=0.0
        Lasso penalty; above zero this is SPAM-NET, with weights that are exactly zero.
        The papers' :math:`\beta_1` is :math:`p(1-p)\,l_1`.
    eta0 : float, default=0.5
        First step size, in units of one over the mean squared norm of a row.
    schedule : {"invsqrt", "inv", "constant", "printed"}, default="invsqrt"
        How the step size falls: with the square root of the number of rows; with the
        number of rows (Theorem 3 of the paper), faster for larger ``l2``; not at all.
        "printed" is :math:`\eta_t = \eta / t^\theta` with ``eta0`` for :math:`\eta`, a
        plain number, and a proximal map of O(d) after each step.
    power_t : float, default=0.5
        Exponent :math:`\theta` in (0, 1] of the step sizes (Theorem 2 of the paper),
        for the schedules "invsqrt" and "printed".
    average : bool, default=True
        Return an average of the iterates, weighted by t, or the last iterate. With
        ``l1`` it is always the last.
    step : {"implicit", "explicit"}, default="implicit"
        Take the residual of a row after or before its step. Explicit steps, those of
        the paper, diverge if ``eta0`` is too large, which raises an error; implicit
        steps can if they are large and constant.
    .. shared: precondition, passes

    See Also
    --------
    SOLAM : The same loss as a saddle point, weights in a ball.
    SVRGAUC : The same objective in many passes, to a given tolerance.

    Notes
    -----
    A row costs O(nnz); memory is ten numbers per feature. ``fit`` makes one more pass
    for exact class moments, ``partial_fit`` uses running ones. The expected error falls
    like O(log t / t) under Theorem 3 of the paper.

    With ``l1`` and more features than rows, five passes may not be enough: of 3,000
    features and 1,000 rows, J is 1.03 times its minimum for ``l1=0.1``, but 1.5 times
    for ``l1=0.01``. Raise ``max_iter``, or use :class:`SVRGAUC` or :class:`BAM`.

    As published: ``SPAM(l2, l1, eta0=eta, schedule="printed", step="explicit",
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
        **OnlineAUC._parameter_constraints,
        "schedule": [StrOptions(set(SCHEDULES))],
        "power_t": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        l1: float = 0.0,
        *,
        eta0: float = 0.5,
        schedule: str = "invsqrt",
        power_t: float = 0.5,
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
        self.power_t = power_t
        self.average = average
        self.step = step
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _is_net(self) -> bool:
        return self.l1 > 0.0 and self.schedule != "printed"

    def _start(self, n_features: int) -> Any:
        start = init_net if self._is_net() else init
        return start(n_features, bool(self.precondition))

    def _visit(self, rows: Rows, state: Any, learn: bool) -> Visit:
        how = super()._visit(rows, state, learn)
        return how._replace(stretch=1.0) if self.schedule == "printed" else how

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Visit
    ) -> None:
        steps = float(self.eta0), SCHEDULES[self.schedule], float(self.power_t)
        rule = *steps, self.step == "implicit", float(self.l1)
        run = update_net if self._is_net() else update
        run(X, y, order, state, how, *rule, bool(self.average))

    def fade(self, share: float) -> None:
        """Multiply the weight of all past rows by ``share``."""
        engine.fade(self.state_.table, share)
        self.state_.z[T] *= share

    def _weights(self, state: Any) -> tuple[Float, float]:
        found = net_weights if self._is_net() else weights
        return found(state, self._penalty(), float(self.l1))
