r"""SOLAM: stochastic online AUC maximisation.

Ying, Wen and Lyu (NeurIPS 2016) turn the pairwise square loss into a saddle point over
single rows,

.. math:: \min_{\|w\| \le R,\, a,\, b}\ \max_\alpha\ E\, F(w, a, b, \alpha; x, y)
          + \tfrac{p (1 - p)\, l_2}{2} \|w\|^2 ,

and take one step a row, down in (w, a, b) and up in α. At the saddle, a and b are the
mean scores of the classes and α = b - a. With ``l2 > 0`` this is regSOLAM (Natole's
thesis, Algorithm 18).

Deviations from the papers:

* implicit steps, centred rows, scaled steps and effective rows, as in
  :mod:`aucmax.online.spam`; a, b and α, which are not weights of features, have steps
  of their own scale, √t̃ alone;
* the ball holds the weights at unit scale, Σ w_j²/D_j ≤ R² (or ``Σ |w_j|/√D_j`` ≤ R),
  which for standardised features is nearly ‖w‖ ≤ R. A radius in raw units could have no
  default and would not be a projection in the metric of the steps.
  ``precondition=False`` gives D = 1;
* iterates are averaged with weights t, where the papers have γ_t. Then a feature that
  was constant for half of a stream has lost a quarter of its weight, not 7/10;
* the thesis' Algorithm 10 prints the step in α as descent; it is ascent;
* the l1 ball may be exceeded by 1 % between projections, which cost O(d); the weights
  returned are inside;
* the penalty is applied by its proximal map. Its β is p(1 - p) l2, where the thesis, in
  equation 3.16, keeps λ though the loss in F has been multiplied by p(1 - p).
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.constraints import NON_NEGATIVE, POSITIVE
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows, entry, rowwise, stored
from aucmax.online import engine
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import Table, Visit
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.feature_table import (
    norms,
    rebase,
    soft_threshold,
    sum_of_iterates,
    unit_magnitudes,
    unit_weight,
)
from aucmax.online.engine.step_sizes import INVSQRT, PRINTED, ROOT, step_at


@inlined
def clip(value: float, bound: float) -> float:
    """Return the number nearest to ``value`` in [-bound, bound]."""
    return min(max(value, -bound), bound)


@kernel
def l1_threshold(magnitudes: Float, radius: float) -> float:
    """Return the soft threshold that brings Σ magnitudes down to ``radius``.

    Zero if it is not above. Michelot's algorithm: numbers below the threshold drop out
    and the threshold rises, until none drops out. A few rounds of O(d), and no sort to
    compile.
    """
    threshold = -np.inf
    kept = magnitudes.shape[0] + 1
    while True:
        total = 0.0
        above = 0
        for k in range(magnitudes.shape[0]):
            if magnitudes[k] > threshold:
                total += magnitudes[k]
                above += 1
        if above >= kept or above == 0:  # rounding must not add one again
            return max(threshold, 0.0)
        kept = above
        threshold = (total - radius) / above


@kernel
def project_weights(table: Table, radius: float) -> None:
    """Project the weights at unit scale on the l1 ball; O(d)."""
    soft_threshold(table, l1_threshold(unit_magnitudes(table), radius))


_SLACK = 1.01  # factor by which the weights may exceed the l1 ball
_SMALL = 0.1  # a factor of the weights below this is multiplied out

# Slots of State.z: steps; the variables a, b and α; the factor s of the weights,
# w = s W; their size Σ w²/D (l1 ball: Σ |w|/√D); the largest norm of a row; sum
# of the weights of the average.
T, A, B, ALPHA, SCALE, SIZE, KAPPA, SUM_WEIGHT = range(8)


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table
    z: Float  # (8,) slots above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    z = np.eye(8)[SCALE]  # the factor of the weights starts at one
    return State(engine.empty(n_features, precondition), z)


@rowwise
def sum_row(X: Rows, i: int, table: Table, how: Visit) -> float:
    """Return Σ |w|/√D over the features that a step along row ``i`` moves."""
    s = 0.0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        unit = unit_weight(table.feat, j)
        s += unit if (x != 0.0) & (table.ref[j] == 0.0) else 0.0
    for m in range(how.listed[0]):
        s += unit_weight(table.feat, how.listed[m + 1])
    return s


@inlined
def size_of(table: Table, scale: float, l1_ball: bool) -> float:
    """Return the size of the weights, exactly; O(d)."""
    squares, absolute = norms(table)
    return absolute if l1_ball else scale * scale * squares


@inlined
def ball_radius(table: Table, radius: float) -> float:
    """Return the radius; if it is zero, that of a ball that holds the minimum.

    J is one at zero, so the penalty at the minimum is at most one: at unit scale,
    ‖w‖² ≤ 2/μ, with the convexity μ of the penalty (l2, if D = 1).
    """
    mu = stats.convexity(table)
    return radius if radius > 0.0 or mu <= 0.0 else np.sqrt(2.0 / mu)


@inlined
def saddle_gradient(
    positive: bool, s: float, a: float, b: float, alpha: float, p: float
) -> tuple[float, float, float]:
    """Return twice the weight of a row of score s, and the gradients of F in s and α.

    That in α lacks its term -2p(1 - p)α, which does not depend on the row.
    """
    if positive:
        share = 2.0 * (1.0 - p)
        return share, share * (s - a - 1.0 - alpha), -share * s
    share = 2.0 * p
    return share, share * (s - b + 1.0 + alpha), share * s


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    eta0: float,
    printed: bool,
    implicit: bool,
    radius: float,
    l1_ball: bool,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    table, z = state
    t, a, b, alpha, scale, size = z[T], z[A], z[B], z[ALPHA], z[SCALE], z[SIZE]
    kappa, sum_weight = z[KAPPA], z[SUM_WEIGHT]
    schedule, slack = (PRINTED, 1.0) if printed else (INVSQRT, _SLACK)
    R = ball_radius(table, radius)
    for k in range(order.shape[0]):
        i = order[k]
        news = engine.learn(X, y, i, table, how)
        size += news.d_absolute if l1_ball else scale * scale * news.d_squares
        if not news.ready:
            if printed:  # no step, but zero enters the mean
                t += 1.0
                sum_weight += eta0 / np.sqrt(t) * stats.weight_of(y, i, table)
                kappa = max(kappa, np.sqrt(engine.look_row(X, i, table, how)[1]))
            continue
        if news.stale:
            shift = scale * engine.renew(table, how)  # by new reference points
            a, b, size = a + shift, b + shift, size_of(table, scale, l1_ball)
            R = ball_radius(table, radius)

        # Gradient of F at this row: the one of w is along x.
        p = stats.class_prior(table)
        t += 1.0
        weight = stats.weight_of(y, i, table)
        gamma = step_at(schedule, eta0, ROOT, table, t) * weight
        # Variables that are not weights have a pace of their own.
        pace = weight / np.sqrt(1.0 + 4.0 * p * (1.0 - p) * t)
        if printed:
            pace = gamma
            sum_weight += gamma  # the mean takes the weights before their step
            stats.add_to_average(table, gamma * scale)
        v, x_x, _, _ = engine.look_row(X, i, table, how)
        s = scale * v
        share, g, g_alpha = saddle_gradient(y[i] > 0.0, s, a, b, alpha, p)
        follow, forget = pace * share, pace * 2.0 * p * (1.0 - p)
        if implicit:
            c = -g * (gamma / (1.0 + gamma * share * x_x))
            follow /= 1.0 + follow
            alpha = (alpha + pace * g_alpha) / (1.0 + forget)
        else:
            c = -g * gamma
            alpha += pace * g_alpha - forget * alpha

        # Step down in (w, a, b).
        a += follow * (s - a) if y[i] > 0.0 else 0.0
        b += follow * (s - b) if y[i] < 0.0 else 0.0
        if printed and how.l2.plain > 0.0:  # the penalty is part of the gradient
            shrink = 1.0 - gamma * p * (1.0 - p) * how.l2.plain
            scale, s = scale * shrink, s * shrink
            size *= abs(shrink) if l1_ball else shrink * shrink
            if l1_ball or abs(scale) < _SMALL:
                rebase(table, scale)
                scale = 1.0
        if l1_ball:
            size -= sum_row(X, i, table, how)
            engine.move_row(X, i, table, how, c / scale)
            size += sum_row(X, i, table, how)
        else:
            engine.move_row(X, i, table, how, c / scale)
            size = max(size + c * (2.0 * s + c * x_x), 0.0)

        # Projections.
        if l1_ball and size > slack * R:
            project_weights(table, R)
            size = size_of(table, scale, l1_ball)
        elif not l1_ball and size > R * R:
            scale *= R / np.sqrt(size)
            size = R * R
            if abs(scale) < _SMALL:
                rebase(table, scale)
                scale = 1.0
        kappa = max(kappa, np.sqrt(max(x_x, 0.0)))
        a, b = clip(a, R * kappa), clip(b, R * kappa)
        alpha = clip(alpha, 2.0 * R * kappa)

        # The mean, and the proximal map of the penalty.
        if not printed:
            sum_weight += t * weight
            stats.add_to_average(table, t * weight * scale)
        if engine.falls_due(table, how, 0.0 if printed else p * (1.0 - p) * gamma):
            engine.settle(table, how)
            size = size_of(table, scale, l1_ball)
    z[T], z[A], z[B], z[ALPHA], z[SCALE], z[SIZE] = t, a, b, alpha, scale, size
    z[KAPPA], z[SUM_WEIGHT] = kappa, sum_weight


def weights(state: State, radius: float, l1_ball: bool) -> tuple[Float, float]:
    """Return the weighted mean of the iterates and the intercept."""
    table, z = state
    if z[SUM_WEIGHT] == 0.0 or not table.n.all():
        return np.zeros(len(table.ref)), 0.0
    w = sum_of_iterates(table) / z[SUM_WEIGHT]
    if l1_ball:
        mean = table._replace(feat=table.feat.copy())
        engine.weights(mean)[:] = w
        project_weights(mean, radius)
        w = engine.weights(mean)
    return w, engine.threshold(w, table)


class SOLAM(OnlineAUC):
    r"""Stochastic online AUC maximisation with the square loss.

    Solves, one row at a time, the saddle point form of

    .. math:: \min_{\|w\| \le R}\ E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    radius : float or None, default=10.0
        Radius R of the ball, for weights at unit scale. None is a ball that holds the
        minimum if ``l2`` is above zero and ``norm`` is "l2" (with
        ``precondition=False``, :math:`R = \sqrt{2/l_2}`); otherwise there is none.
    norm : {"l2", "l1"}, default="l2"
        Norm of the ball; "l1" is SOLAM-ℓ1. An average of iterates has hardly any exact
        zeros; for those, see the ``l1`` of :class:`SPAM`.
    l2 : float, default=0.0
        Ridge penalty; above zero this is regSOLAM. The papers' :math:`\beta` is
        :math:`p(1-p)\,l_2`.
    eta0 : float, default=0.5
        First step size, in units of one over the mean squared norm of a row.
    schedule : {"invsqrt", "printed"}, default="invsqrt"
        Steps fall with the square root of the number of effective rows; or as in the
        papers, :math:`\gamma_t = \zeta / \sqrt t` for all variables, with ``eta0`` for
        :math:`\zeta`, a plain number.
    step : {"implicit", "explicit"}, default="implicit"
        Take the residual of a row after or before its step. Explicit steps, those of
        the paper, diverge if ``eta0`` is too large, which raises an error; implicit
        steps can if it is far too large and there is no ball.
    .. shared: precondition, passes

    See Also
    --------
    SPAM : The same loss without the dual variables; usually closer after few passes.

    Notes
    -----
    A row costs O(nnz), or O(d) when the l1 ball is left; memory is ten numbers per
    feature. ``fit`` makes one more pass for exact class moments, ``partial_fit`` uses
    running ones. The duality gap falls like O(log t / √t) [1]_.

    As published: ``SOLAM(R, eta0=zeta, schedule="printed", step="explicit",
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
        **OnlineAUC._parameter_constraints,
        "radius": [POSITIVE, None],
        "norm": [StrOptions({"l2", "l1"})],
        "l2": [NON_NEGATIVE],
        "schedule": [StrOptions({"invsqrt", "printed"})],
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
        if float(self.l2) > 0.0 and self.norm == "l2":
            return 0.0  # see ball_radius
        return 1e150  # its square is finite

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: Visit
    ) -> None:
        printed, implicit = self.schedule == "printed", self.step == "implicit"
        ball = self._radius(), self.norm == "l1"
        update(X, y, order, state, how, float(self.eta0), printed, implicit, *ball)

    def _weights(self, state: State) -> tuple[Float, float]:
        return weights(state, self._radius(), self.norm == "l1")
