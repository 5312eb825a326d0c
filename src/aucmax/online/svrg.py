r"""SVRG-AUC: proximal stochastic gradients with reduced variance.

Natole (thesis, Algorithm 17) minimises the pairwise square loss, J of :class:`SVRGAUC`,
by the steps of SPAM (:mod:`aucmax.online.spam`) without their noise. At a snapshot w̃
the full gradient μ of the loss is computed; then each step goes along
G(w; x) - G(w̃; x) + μ, whose noise vanishes as w and w̃ approach the minimum. With rows
drawn from balanced classes, G is 4 (w·x - b - 1) x for a positive and
4 (w·x - a + 1) x for a negative row, with the mean scores a = w·m₊ and b = w·m₋. Hence,
with v = w - w̃ and m' the mean of the *other* class,

.. math:: G(w; x) - G(\tilde w; x) = 4\, (v \cdot (x - m'))\, x .

Deviations from the thesis, none of which moves the minimum:

* rows are centred and steps scaled feature by feature (:mod:`aucmax.online.engine`);
* classes are balanced, and within them a row is drawn with a probability proportional
  to its weight times the mean of its squared norm and that of all rows. Its step is
  divided by the excess probability. So one heavy row does not dictate a small step for
  all (Xiao and Zhang 2014); and since at unit scale a rare feature makes a row heavy,
  no feature waits long for its turn;
* a step changes only the features of its row, by μ_j and the penalty over the
  probability P_j that a drawn row has feature j. That is right on average, keeps the
  rate (Leblond, Pedregosa and Lacoste-Julien 2017) and costs O(nnz) instead of O(d);
* if l1 = 0, the next snapshot is the minimum of J over the span of the last iterate and
  the last moves of the snapshot. J is quadratic and its gradients at these points are
  known, so this costs no pass. It does to a chain of epochs what conjugate gradients do
  to gradient steps, and J cannot rise;
* an epoch after which J is higher (with a larger ``eta0`` than the default) is undone,
  and steps are halved.

**Snapshots**, which SPDAM shares. A snapshot is one array: the weights w, the gradient
of the loss there, and the centred scores of the rows. All three are affine in w, so an
affine combination of snapshots is a snapshot, at no cost. The loss is quadratic: its
minimum over the span of some snapshots follows from their gradients.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import ClassMoments
from aucmax.base.constraints import COUNT
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import (
    Float,
    Rows,
    as_table,
    entry,
    mark_row,
    rowwise,
    stored,
    zeros_for,
)
from aucmax.online import engine
from aucmax.online.base import BatchAUC
from aucmax.online.engine import Known, Table, class_scores, look_row, scales, weights
from aucmax.online.engine.centred_rows import add_row, others, score_row, seen
from aucmax.online.engine.feature_table import class_means
from aucmax.online.engine.known_moments import fit_table_to_ridge
from aucmax.online.engine.statistics import mean_norm

MOVES = 2  # previous moves that a snapshot is combined with


def empty_table(X: Rows, n_features: int) -> Table:
    """Return an empty table in the layout of X."""
    table = engine.empty(n_features, precondition=True)
    return table._replace(feat=as_table(table.feat, X))


def prepare_table(
    X: Rows,
    y: Float,
    table: Table,
    moments: ClassMoments,
    l2: Float,
    precondition: bool,
) -> tuple[Float, Known]:
    """Fit the table; return the half shares of the rows and how to visit them."""
    fit_table_to_ridge(table, moments, l2, precondition)
    return half_shares(y, moments.weight), engine.visit(X, table, False, True)


def descend(
    X: Rows,
    share: Float,
    table: Table,
    how: Known,
    penalty: tuple[Float, float],
    max_iter: int,
    tol: float,
    run: Callable[[Float, int, int], int],
    plain: bool = False,
) -> tuple[Float, int, float]:
    """Alternate rounds of steps and full gradients until the gradient is small.

    ``run(snapshot, halvings, passes_left)`` takes the steps of a round from a snapshot
    and returns its number of passes. A round after which J is higher is undone and
    steps are halved. Without an l1 penalty, the next snapshot is the minimum over the
    span of the last moves. ``plain`` omits both, as the pseudo-code does. Returns the
    weights, the number of passes, and the residual relative to that at zero.
    """
    l2, l1 = penalty
    d = len(table.ref)
    zero = point = take(X, share, table, how)
    scale = residual(zero, scales(table), l2, l1)
    if scale == 0.0:  # zero is the minimum
        return zero[:d].copy(), 1, 0.0
    passes, halvings, left, moves = 0, 0, 1.0, list[Float]()
    while passes < max_iter and left > tol:
        passes += run(point, halvings, max_iter - passes)
        if passes == max_iter:
            return weights(table).copy(), passes, left
        end = take(X, share, table, how)
        passes += 1
        if not plain and not rise(point, end, d, l2, l1) <= 0.0:
            halvings += 1
            continue
        if not plain and l1 == 0.0:
            end = lowest(end, [end - point, *moves], d, l2)
        moves = [end - point, *moves][:MOVES]
        point = end
        left = residual(point, scales(table), l2, l1) / scale
    return point[:d].copy(), passes, left


def half_shares(y: Float, n: Float) -> Float:
    """Return row weights, signed by class, that sum to ½ in each class."""
    return 0.5 * (y / np.where(y > 0.0, n[0], n[1]))


@kernel
def measure(
    X: Rows, share: Float, table: Table, how: Known, a: float, b: float, found: Float
) -> None:
    """Write the mean gradient of the loss, then the scores of all rows."""
    ref, listed = table.ref, how.listed
    d = ref.shape[0]
    mu, score = found[:d].reshape((1, d)), found[d:]
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            score[i] = score_row(X, i, table, how)
            if share[i] > 0.0:
                g = 4.0 * (score[i] - b - 1.0)
            else:
                g = 4.0 * (score[i] - a + 1.0)
            add_row(X, i, abs(share[i]) * g, mu, 0, ref, listed)


def take(X: Rows, share: Float, table: Table, how: Known) -> Float:
    """Return the snapshot at the weights of the table; a pass over the data."""
    d = len(table.ref)
    point = np.zeros(2 * d + len(share))
    point[:d] = weights(table)
    measure(X, share, table, how, *class_scores(table), point[d:])
    return point


def rise(start: Float, end: Float, d: int, l2: Float, l1: float) -> float:
    """Return J(end) - J(start), by the mean of the slopes at both ends."""
    u, v = start[:d], end[:d]
    with np.errstate(over="ignore", invalid="ignore"):  # after divergence
        slope = 0.5 * (start[d : 2 * d] + end[d : 2 * d] + l2 * (u + v))
        return _dot(v - u, slope) + l1 * float(np.sum(np.abs(v) - np.abs(u)))


def lowest(end: Float, moves: list[Float], d: int, l2: Float) -> Float:
    """Return the snapshot of smallest J in ``end`` plus the span of ``moves``."""
    w = [move[:d] for move in moves]
    gradients = [move[d : 2 * d] + l2 * move[:d] for move in moves]
    H = np.array([[_dot(u, g) for g in gradients] for u in w])
    slopes = np.array([_dot(u, end[d : 2 * d] + l2 * end[:d]) for u in w])
    unit = np.sqrt(np.maximum(np.diag(H), 0.0))
    scale = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0.0)
    # Nearly parallel moves count as one.
    inverse = np.linalg.pinv(H * np.outer(scale, scale), rcond=1e-10)
    for length, move in zip(-scale * (inverse @ (scale * slopes)), moves, strict=True):
        end = end + length * move
    return end


def residual(point: Float, scale: Float, l2: Float, l1: float) -> float:
    """Return the norm of a proximal step along every feature, at unit scale."""
    d = len(scale)
    w, step = point[:d], 0.25 * scale  # one over the curvature along a feature
    ahead = w - step * (point[d : 2 * d] + l2 * w)
    move = w - np.sign(ahead) * np.maximum(np.abs(ahead) - l1 * step, 0.0)
    unit = np.divide(move, np.sqrt(step), out=np.zeros(d), where=step > 0.0)
    return float(np.sqrt(_dot(unit, unit)))


def _dot(u: Float, v: Float) -> float:
    """Return u·v, the same bits for any number of threads."""
    return float(np.sum(u * v))


# Slots of pull, what each step on a feature adds: the mean gradient over P, and 1/P.
MU, RARITY = range(2)


@inlined
def prox(
    table: Table, pull: Float, j: int, g: float, eta: float, l2: Float, l1: float
) -> float:
    """Return the change of weight ``j`` in a proximal step down the gradient ``g``."""
    step, old = eta * scales(table)[j], weights(table)[j]
    w = old - step * (g + pull[MU, j])
    share = step * pull[RARITY, j]
    w -= min(max(w, -l1 * share), l1 * share)
    return w / (1.0 + l2[j] * share) - old


@rowwise
def prox_row(
    X: Rows,
    i: int,
    table: Table,
    how: Known,
    pull: Float,
    c: float,
    eta: float,
    l2: Float,
    l1: float,
) -> tuple[float, float]:
    """Take a proximal step on the features of row ``i``; return the changes of a and b.

    Down the gradient c x̃ + pull[MU], in the metric of D, then the proximal map of
    pull[RARITY] times the penalty ½ Σ l2_j w_j² + l1 ‖w‖₁. Features with a reference
    point are part of every row.
    """
    w, scale, ref = weights(table), scales(table), table.ref
    a = b = 0.0
    for k in stored(X, i):
        j, value = entry(X, i, k)
        _, x, r = seen(X, i, k, ref)
        along = -eta * scale[j] * (c * x)
        change = prox(table, pull, j, c * x, eta, l2, l1)
        change = change if r == ref[j] else along  # the rest follows below
        change = change if (value != 0.0) | (r != 0.0) else 0.0
        m_pos, m_neg = class_means(table, j)
        w[j] += change
        a += change * m_pos
        b += change * m_neg
    for m in others(X, how.listed):
        j = how.listed[m]
        change = prox(table, pull, j, -c * ref[j], eta, l2, l1)
        m_pos, m_neg = class_means(table, j)
        w[j] += change
        a += change * m_pos
        b += change * m_neg
    return a, b


def draw(chance: Float, m: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Return m rows by systematic sampling, in random order.

    Each row is drawn as often as expected, up to rounding. Shuffling separates the
    draws of a heavy row: steps at equal rows in a row would make one too long a step.
    """
    present = np.flatnonzero(chance)  # rows of weight zero are ignored
    n = len(present)
    upto = np.cumsum(chance[present])
    points = (np.arange(m) + rng.uniform(size=m)) * (upto[-1] / m)
    drawn: NDArray[np.int64] = present[np.minimum(np.searchsorted(upto, points), n - 1)]
    rng.shuffle(drawn)
    return drawn


def draw_evenly(chance: Float, m: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Return m rows, drawn with replacement."""
    present = np.flatnonzero(chance)
    return present[rng.randint(len(present), size=m)]


# Slots of pull before P is known: the sums that make it up.
EVEN, HEAVY = range(2)

# A reference point so small that it does not change a row, for prox_row.
_NO_REF = 1e-300

# Slots of State.z: mean scores w·(m₊ - ref) and w·(m₋ - ref), now and at the snapshot.
A, B, A_SNAP, B_SNAP = range(4)


class State(NamedTuple):
    """State of the solver; updated in place."""

    table: Table
    pull: Float  # (2, d) slots MU, RARITY
    score: Float  # (rows,) centred scores of the snapshot
    step: Float  # (rows,) 4 over the excess probability of a row
    z: Float  # (4,) slots above


def init(X: Rows, n_samples: int, n_features: int) -> State:
    """Return the state before the moments are known; zero is the first snapshot."""
    table = empty_table(X, n_features)
    rows = np.zeros(n_samples), np.zeros(n_samples)
    return State(table, zeros_for(X, 2, n_features), *rows, np.zeros(4))


@kernel
def weigh(
    X: Rows, share: Float, table: Table, how: Known, pull: Float, size: Float
) -> None:
    """Write the squared norms of the rows; count how often features occur."""
    for i in range(share.shape[0]):
        weight = abs(share[i])
        if weight > 0.0:
            size[i] = look_row(X, i, table, how)[1]
            mark_row(X, i, weight, pull, EVEN)
            mark_row(X, i, weight * size[i], pull, HEAVY)


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Known,
    eta: float,
    l2: Float,
    l1: float,
) -> None:
    """Take the inner steps of Algorithm 17 at the rows ``order`` of ``X``."""
    table, pull, score, step, z = state
    a, b = z[A], z[B]
    for k in range(order.shape[0]):
        i = order[k]
        # G(w; x) - G(w̃; x) = c x.
        c = score_row(X, i, table, how) - score[i]
        c -= b - z[B_SNAP] if y[i] > 0.0 else a - z[A_SNAP]
        c *= step[i]
        d_a, d_b = prox_row(X, i, table, how, pull, c, eta, l2, l1)
        a += d_a
        b += d_b
    z[A], z[B] = a, b


def prepare(X: Rows, share: Float, state: State) -> tuple[Float, float]:
    """Return the probability of every row, and the largest curvature of a step."""
    table, size = state.table, np.zeros(len(share))
    weigh(X, share, table, engine.visit(X, table, False, True), state.pull, size)
    weight, mean = np.abs(share), mean_norm(table)
    np.maximum(size, 0.0, out=size)  # rounding error
    excess = 0.5 + 0.5 * size / mean
    state.step[:] = 4.0 / excess
    present = 0.5 * state.pull[EVEN] + 0.5 * state.pull[HEAVY] / mean
    present[table.ref != 0.0] = 1.0
    state.pull[RARITY] = np.divide(
        1.0, present, out=np.zeros_like(present), where=present > 0.0
    )
    return weight * excess, float(np.max(state.step * size))


def prepare_printed(share: Float, state: State) -> tuple[Float, float]:
    """Return the same for steps as printed, p(1 - p) times those of J, raw features."""
    table = state.table
    scales(table)[:], table.ref[:] = 1.0, _NO_REF
    state.pull[RARITY] = 1.0
    n = float(np.count_nonzero(share))
    state.step[:] = 4.0 * n * np.abs(share)
    curvature = float(table.n.sum() ** 2 / table.n.prod())
    return (share != 0.0).astype(np.float64), curvature


def start_at(point: Float, state: State) -> None:
    """Make ``point`` the snapshot and start from its weights."""
    d = len(state.table.ref)
    weights(state.table)[:] = point[:d]
    state.pull[MU] = point[d : 2 * d] * state.pull[RARITY]
    state.score[:] = point[2 * d :]
    a, b = class_scores(state.table)
    state.z[A : B_SNAP + 1] = a, b, a, b


class SVRGAUC(BatchAUC):
    r"""Stochastic variance-reduced AUC maximisation with the square loss.

    Minimises, by cheap steps at random rows whose noise vanishes, without a step size
    to tune and as exactly as asked for,

    .. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1 .

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty; the papers' :math:`\beta` is :math:`p(1-p)\,l_2`. "auto" sets it
        for each feature, independent of units and falling with the number of rows, as
        in :class:`BAM` but for the square loss.
    l1 : float, default=0.0
        Lasso penalty. The papers' :math:`\beta_1` is :math:`p(1-p)\,l_1`.
    eta0 : float, default=0.3
        Step size, in units of one over the largest curvature of a row.
    schedule : {"constant", "printed"}, default="constant"
        "printed" takes the steps of the thesis: rows drawn evenly, ``eta0`` a plain
        number, each epoch from the end of the last one.
    update_frequency : int or None, default=None
        Number m of steps between two full gradients (an epoch); None is the number of
        rows.
    max_iter : int, default=100
        Maximum number of passes over the data; an epoch takes two, one of steps and
        one for the full gradient (with ``update_frequency``, m/n and one, rounded up).
        A ``ConvergenceWarning`` is raised if ``tol`` is not reached. ``tol=0`` makes
        all passes.
    tol : float or None, default=None
        Stop when the gradient, at unit scale, is at most this times that at zero. None
        is 1e-4, or an eighth of the sampling error of that at zero if there are more
        features than rows, where the minimum fits the noise. (With ``l1``, the step of
        proximal gradient descent replaces the gradient.)
    random_state : int, RandomState instance or None, default=None
        Random seed of the order of the rows.

    See Also
    --------
    SPAM : The same steps without variance reduction; learns from streams.

    Notes
    -----
    A row costs O(nnz), twice an epoch; memory is some two dozen numbers per feature and
    ten per row. ``fit`` makes three more passes, for class moments, the gradient at
    zero and the norms of rows. The error falls by a constant factor per epoch.

    As published: ``SVRGAUC(l2, l1=l1, eta0=eta, schedule="printed",
    update_frequency=m, tol=0)``. These steps cost O(d).

    References
    ----------
    .. [1] M. Natole, "Stochastic optimization for AUC maximization", PhD thesis,
       University at Albany, 2020, Algorithm 17.
    .. [2] L. Xiao, T. Zhang, "A proximal stochastic gradient method with progressive
       variance reduction", SIAM Journal on Optimization 24(4), 2014.
    .. [3] R. Leblond, F. Pedregosa, S. Lacoste-Julien, "ASAGA: Asynchronous parallel
       SAGA", AISTATS 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SVRGAUC
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(SVRGAUC(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BatchAUC._parameter_constraints,
        "schedule": [StrOptions({"constant", "printed"})],
        "update_frequency": [COUNT, None],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        l1: float = 0.0,
        eta0: float = 0.3,
        schedule: str = "constant",
        update_frequency: int | None = None,
        max_iter: int = 100,
        tol: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.eta0 = eta0
        self.schedule = schedule
        self.update_frequency = update_frequency
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _solve(
        self,
        X: Rows,
        y: Float,
        moments: ClassMoments,
        tol: float,
        rng: np.random.RandomState,
    ) -> tuple[Float, int, float]:
        state = init(X, len(y), self.n_features_in_)
        printed = self.schedule == "printed"
        l2, l1, table = self._ridge(moments), float(self.l1), state.table
        share, _ = prepare_table(X, y, table, moments, l2, not printed)
        chance, curvature = (
            prepare_printed(share, state) if printed else prepare(X, share, state)
        )
        if curvature == 0.0:  # all rows are equal: zero is the minimum
            return np.zeros(self.n_features_in_), 1, 0.0
        how = engine.visit(X, table, False, True)
        eta, n = float(self.eta0) / curvature, int(np.count_nonzero(share))

        def run(point: Float, halvings: int, left: int) -> int:
            start_at(point, state)
            m = min(self.update_frequency or n, left * n)
            order = (draw_evenly if printed else draw)(chance, m, rng)
            update(X, y, order, state, how, eta * 0.5**halvings, l2, l1)
            if printed and not np.isfinite(weights(table)).all():
                raise ValueError(
                    f"SVRGAUC has diverged: the printed steps of eta0={self.eta0:g} "
                    "are too long. Use a smaller eta0."
                )
            return -(-m // n)

        return descend(
            X, share, table, how, (l2, l1), self.max_iter, tol, run, plain=printed
        )
