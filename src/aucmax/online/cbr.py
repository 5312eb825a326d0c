r"""CBR: confidence-weighted bipartite ranking.

Khalid, Ray and Chitsaz (2016; Khalid's dissertation 2019, chapter 4) pair each row with
a buffer of the other class, as OAM does, and take the steps of soft confidence-weighted
learning along the differences z, positive minus negative: weights are N(μ, Σ), and the
loss of a pair is that of :class:`CBR`, with φ = Φ⁻¹(η) and η the confidence.

Deviations from the dissertation:

* β is printed with one root over the whole sum; it is over u alone;
* rows are centred and scaled (:mod:`aucmax.online.engine`) before they are compared, so
  that Σ starts at the identity whatever the units; scales are recomputed when the
  number of rows has doubled;
* C is relative to one over the root of the mean squared length of a pair: α, which C
  bounds, scales that way with the units of z when Σ is the identity;
* each pass of ``fit`` restarts the reservoir; otherwise it would hardly change, and all
  rows would be paired with the same few.

Chapter 5 prints μ += (α/2) y Σz for the same problem, where chapter 4 has α: that is
``step=0.5``, and its table agrees with it.

**Soft confidence-weighted steps** (SCW-I, Wang, Zhao and Hoi, ICML 2012): the weights
are a normal distribution N(μ, Σ), and a step along z, whose score should be positive,
is the smallest change,

.. math:: \min_{\mu, \Sigma} KL(N(\mu, \Sigma) \,\|\, N(\mu_t, \Sigma_t))
          + C \max(0, \phi \sqrt{z^T \Sigma z} - \mu \cdot z) ,

that raises the probability of a positive score to Φ(φ), or as far as C allows. With
v = zᵀΣz and m = μ·z before the step, and ψ = 1 + φ²/2, ζ = 1 + φ²: setting the
derivatives to zero gives

* μ += α Σz, α the multiplier of the loss, between 0 and C;
* Σ⁻¹ += (αφ/√u) zzᵀ with u = zᵀΣz after the step; so by Sherman and Morrison
  Σ -= β Σz zᵀΣ, β = αφ/(√u + vαφ), and u + αφv√u = v, which is quadratic in √u;
* if α < C the loss is zero: φ√u = m + αv, which is quadratic in α.

**CBR-diag** (dissertation, section 4.4) has a diagonal covariance Σ = 1/G, G a number
per feature. With v = Σ z²/G, and α, √u as there, μ += α z/G and G += (αφ/√u) z². (The
derivative by a diagonal Σ gives this G exactly; α and √u are those of the full problem,
as in the dissertation, since a diagonal one has no closed form.)

The dissertation prints Σ z²/(G + C) for v and G += βz². Measured on german, svmguide3,
diabetes, spambase, a9a, vehicle and ijcnn1 (three splits each, up to 6000 rows, one and
five passes), test AUC is the same to 0.0001 for C up to 0.01, where both rank best, and
to 0.003, either way, at C = 1. Hence only one form is implemented. A pair costs O(nnz)
of both rows.
"""

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.base.class_moments import NEG, POS
from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.products import dot
from aucmax.core.rows import ColumnIndex as Index
from aucmax.core.rows import Float, Rows, pack_row
from aucmax.core.validation import check_width
from aucmax.online import engine
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import Table, Visit
from aucmax.online.engine import buffer as buffers
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.buffer import LENGTH, VALUES, WEIGHT, check, restart, widened
from aucmax.online.engine.feature_table import mean_square
from aucmax.online.engine.row_visit import count, if_stream
from aucmax.online.opauc import add_outer, multiply


@inlined
def confident_step(m: float, v: float, phi: float, C: float) -> tuple[float, float]:
    """Return α and √u of a step along z, of mean score ``m`` and variance ``v``.

    Of the two forms of a root of a quadratic, (-b + r)/a and c/(b + r), it uses the one
    that adds: the other cancels if the score is near its goal or the step long.
    """
    squared = phi * phi
    psi, zeta = 1.0 + 0.5 * squared, 1.0 + squared
    root = np.sqrt(0.25 * (m * squared) * (m * squared) + v * squared * zeta)
    if m > 0.0:
        goal = phi * np.sqrt(v)
        alpha = (goal - m) * (goal + m) / (v * (root + m * psi))
    else:
        alpha = (root - m * psi) / (v * zeta)
    alpha = min(C, max(0.0, alpha))
    shift = alpha * v * phi
    return alpha, 2.0 * v / (np.sqrt(shift * shift + 4.0 * v) + shift)


# Slots of State.z: rows of each class offered to the buffer (2); its random generator
# (2).
SEEN, SEED = 0, 2


class DiagState(NamedTuple):
    """State of the learner; updated in place."""

    table: Table
    G: Float  # (d,) inverse variances of the weights at unit scale
    rows: Float  # (2, 2B, width) buffered rows, see aucmax.online.engine.buffer
    slots: Float  # (2, 2B) their lengths and weights
    z: Float  # (4,) slots above


def init_diag(n_features: int, buffer_size: int, precondition: bool) -> DiagState:
    """Return the state before the first row."""
    z = np.zeros(4)
    z[SEED:] = buffers.SEED
    table = engine.empty(n_features, precondition)
    return DiagState(table, np.ones(n_features), *buffers.empty(buffer_size), z)


@kernel
def update_diag(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: DiagState,
    how: Visit,
    C: float,
    phi: float,
    part: float,
    reservoir: bool,
    printed: bool,
) -> None:
    """Run Algorithm 4 over the rows ``order`` of ``X``."""
    table, G, rows, slots, z = state
    w, scale = engine.weights(table), engine.scales(table)
    seen, seed = z[SEEN : SEEN + 2], z[SEED : SEED + 2]
    d, size, at = G.shape[0], slots.shape[1] // 2, buffers.features_of(rows, slots)
    x, features = np.empty(rows.shape[2]), np.empty(rows.shape[2], np.uint32)
    e, pair, union = np.zeros(d), np.zeros(d), np.empty(d, np.uint32)
    for k in range(order.shape[0]):
        i = order[k]
        news = engine.learn(X, y, i, table, how)
        if news.ready and news.stale:
            engine.renew(table, how)

        # Steps along the pairs of the row that have a loss.
        side, other, y_t = (POS, NEG, 1.0) if y[i] > 0.0 else (NEG, POS, -1.0)
        length = pack_row(X, i, x, features)
        pairs = buffers.filled(seen, other, size)
        if pairs > 0:
            C_t = C if printed else C / np.sqrt(2.0 * stats.mean_norm(table))
            C_t *= stats.weight_of(y, i, table)
            buffers.scatter(x, features, length, e)
            for b in range(other * size, other * size + pairs):
                x_b, of_b, count = rows[VALUES, b], at[b], int(slots[LENGTH, b])
                full, length_z = length == d and count == d, 0
                if full:
                    m, v = _look_full(x, x_b, w, scale, G, pair)
                else:
                    length_z = differ(
                        x, features, length, x_b, of_b, count, e, pair, union
                    )
                    m, v = look(pair, union, length_z, w, scale, G)
                m *= y_t
                if not (v > 0.0 and phi * np.sqrt(v) > m):
                    continue
                C_b = C_t * slots[WEIGHT, b] * stats.weight_unit(table)
                alpha, root = confident_step(m, v, phi, C_b)
                move, grow = y_t * part * alpha, alpha * phi / root
                if full:
                    _step_full(pair, w, scale, G, move, grow)
                else:
                    step(pair, union, length_z, w, scale, G, move, grow)
            buffers.erase(features, length, e)

        slot = buffers.find_slot(seen, side, size, reservoir, seed)
        if slot >= 0:
            buffers.put(rows, slots, at, slot, x, features, length, abs(y[i]))


@inlined
def differ(
    x: Float,
    features: Index,
    length: int,
    x_b: Float,
    of_b: Index,
    count: int,
    e: Float,
    pair: Float,
    union: Index,
) -> int:
    """Write x - x_b to ``pair``, its features to ``union``; return their number."""
    for k in range(length):
        pair[features[k]] = x[k]
        union[k] = features[k]
    size = length
    for k in range(count):
        j = of_b[k]
        if e[j] == 0.0:
            pair[j] = -x_b[k]
            union[size] = j
            size += 1
        else:
            pair[j] -= x_b[k]
    return size


@inlined
def look(
    pair: Float, union: Index, size: int, w: Float, scale: Float, G: Float
) -> tuple[float, float]:
    """Return the mean and the variance of the score of a pair."""
    m = 0.0
    v = 0.0
    for k in range(size):
        j = union[k]
        m += w[j] * pair[j]
        v += scale[j] * (pair[j] * pair[j]) / G[j]
    return m, v


@vectorised
def _look_full(
    x: Float, x_b: Float, w: Float, scale: Float, G: Float, pair: Float
) -> tuple[float, float]:
    """Do the same as ``differ`` and ``look`` for rows without zeros."""
    m = 0.0
    v = 0.0
    for j in range(pair.shape[0]):
        pair[j] = x[j] - x_b[j]
    for j in range(pair.shape[0]):  # a separate loop: see CONTRIBUTING, traps
        m += w[j] * pair[j]
        v += scale[j] * (pair[j] * pair[j]) / G[j]
    return m, v


@inlined
def step(
    pair: Float,
    union: Index,
    size: int,
    w: Float,
    scale: Float,
    G: Float,
    c: float,
    gain: float,
) -> None:
    """Add c z/G to the weights and ``gain`` z² to G, at unit scale."""
    for k in range(size):
        j = union[k]
        change = scale[j] * pair[j]
        w[j] += c * change / G[j]
        G[j] += gain * (change * pair[j])


@vectorised
def _step_full(
    pair: Float, w: Float, scale: Float, G: Float, c: float, gain: float
) -> None:
    """Do the same as ``step`` for rows without zeros."""
    for j in range(pair.shape[0]):
        change = scale[j] * pair[j]
        w[j] += c * change / G[j]
        G[j] += gain * (change * pair[j])


def diag_weights(state: DiagState) -> tuple[Float, float]:
    """Return the weights and the intercept."""
    w = engine.weights(state.table).copy()
    if not state.table.n.all():
        return np.zeros_like(w), 0.0
    return w, engine.threshold(w, state.table)


_RENEW = 2.0  # scales are recomputed when the number of rows has grown by this factor
_GROWN = 4.0  # or a feature's second moment by this factor


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table  # its weights are μ at unit scale
    rows: Float  # (2, 2B, width) buffered rows, see aucmax.online.engine.buffer
    slots: Float  # (2, 2B) their lengths and weights
    S: Float  # (d(d + 1)/2,) Σ
    z: Float  # (4,) slots above


def init(n_features: int, buffer_size: int, precondition: bool) -> State:
    """Return the state before the first row."""
    check_width(
        n_features,
        0.5,
        "CBR keeps a symmetric d x d matrix",
        "With covariance='diag' it keeps the diagonal.",
    )
    z = np.zeros(4)
    z[SEED:] = buffers.SEED
    S = np.zeros(n_features * (n_features + 1) // 2)
    S[np.cumsum(np.arange(1, n_features + 1)) - 1] = 1.0
    table = engine.empty(n_features, precondition)
    return State(table, *buffers.empty(buffer_size), S, z)


@kernel
def _rescale(table: Table, unit: Float) -> None:
    """Update the weights for new scales."""
    weights, scale = engine.weights(table), engine.scales(table)
    for j in range(unit.shape[0]):  # a weight, unit · μ, scales like unit²
        if unit[j] > 0.0:
            weights[j] *= np.sqrt(scale[j]) / unit[j]
        unit[j] = np.sqrt(scale[j])


rescaled = if_stream(
    lambda table, unit, how: _rescale(table, unit), lambda table, unit, how: None
)


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    C: float,
    phi: float,
    part: float,
    reservoir: bool,
    printed: bool,
) -> None:
    """Run Algorithm 4 over the rows ``order`` of ``X``."""
    table, rows, slots, S, z = state
    mu, scale = engine.weights(table), engine.scales(table)
    seen, seed = z[SEEN : SEEN + 2], z[SEED : SEED + 2]
    d, size, at = len(scale), slots.shape[1] // 2, buffers.features_of(rows, slots)
    x, features = np.empty(rows.shape[2]), np.empty(rows.shape[2], np.uint32)
    unit, e, pair, u = np.sqrt(scale), np.zeros(d), np.zeros(d), np.zeros(d)
    for visit in range(order.shape[0]):
        i = order[visit]
        side, other, y_t = (POS, NEG, 1.0) if y[i] > 0.0 else (NEG, POS, -1.0)
        length = pack_row(X, i, x, features)

        # Running class statistics, and all that depends on scales.
        if count(X, y, i, table, how):
            off = stats.is_stale(table)
            for k_x in range(length if how.precondition else 0):
                j = features[k_x]
                off |= mean_square(table, j) * scale[j] > _GROWN
            if off:
                engine.renew(table, how)
                stats.renew_after(table, _RENEW)
                rescaled(table, unit, how)

        # Steps along the pairs of the row that have a loss.
        C_t = C if printed else C / np.sqrt(2.0 * stats.mean_norm(table))
        C_t *= stats.weight_of(y, i, table)
        buffers.scatter(x, features, length, e)
        first = other * size
        for b in range(first, first + buffers.filled(seen, other, size)):
            count_b = int(slots[LENGTH, b])
            buffers.unpack(rows[VALUES, b], at[b], count_b, unit, e, pair)  # -z, or z
            multiply(S, pair, u)
            m, v = -y_t * dot(mu, pair), dot(pair, u)
            if not (v > 0.0 and phi * np.sqrt(v) > m):
                continue
            C_b = C_t * slots[WEIGHT, b] * stats.weight_unit(table)
            alpha, root = confident_step(m, v, phi, C_b)
            move = -y_t * part * alpha
            for j in range(d):
                mu[j] += move * u[j]
            add_outer(S, -alpha * phi / (root + v * alpha * phi), u)
        buffers.erase(features, length, e)

        slot = buffers.find_slot(seen, side, size, reservoir, seed)
        if slot >= 0:
            buffers.put(rows, slots, at, slot, x, features, length, abs(y[i]))


def weights(state: State) -> tuple[Float, float]:
    """Return the weights and the intercept."""
    w = engine.weights(state.table) * np.sqrt(engine.scales(state.table))
    if not state.table.n.all():
        return np.zeros_like(w), 0.0
    return w, engine.threshold(w, state.table)


_SEEN, _SEED = slice(SEEN, SEED), slice(SEED, 4)


class CBR(OnlineAUC):
    r"""Confidence-weighted bipartite ranking with a buffer.

    The weights are a normal distribution N(μ, Σ). Each row is paired with a sample of
    the other class. For each pair, z = x⁺ - x⁻, the distribution changes as little as
    possible to rank the pair correctly with ``confidence`` η; the loss of a pair is

    .. math:: \max(0, \Phi^{-1}(\eta) \sqrt{z^T \Sigma z} - \mu \cdot z) .

    Parameters
    ----------
    C : float, default=0.01
        Longest step along a pair, in units of one over the root of the mean squared
        length of a pair.
    confidence : float, default=0.7
        Probability with which a pair is to be ranked correctly; above one half.
    step : float, default=0.5
        Fraction of a step that μ takes; Σ takes the whole step. 1 is the smallest
        change, as in chapter 4 of the dissertation; 0.5, as in its chapter 5, often
        ranks better, with a larger ``C``.
    covariance : {"full", "diag"}, default="full"
        Whether Σ is a matrix, for up to some thousand features, or a diagonal.
    buffer_size : int, default=50
        Buffered rows of each class.
    policy : {"fifo", "reservoir"}, default="fifo"
        Buffer the last rows, or a random sample of all so far (in ``fit``, of the pass
        so far): for streams whose order matters, such as one class first.
    schedule : {"constant", "printed"}, default="constant"
        "printed" takes C as a plain number, as in the dissertation.
    precondition : bool, default=True
        Centre and scale features internally. Switch it off for text with more features
        than rows, where rare features are scaled up too far.
    .. shared: passes

    See Also
    --------
    OAM : The same pairs, with the hinge loss and no covariance.
    OPAUC : The square loss, with the covariances of the classes.

    Notes
    -----
    A pair costs O(d²), whether dense or sparse, and memory is d²/2 numbers and the
    buffer. With ``covariance="diag"`` a pair costs O(nnz) of its two rows, and memory
    is eleven numbers per feature and the buffer.

    As published: ``CBR(C, step=1, schedule="printed", precondition=False)`` and
    ``partial_fit``, with ``policy`` and ``covariance`` for the variants and
    ``step=0.5`` for chapter 5.

    References
    ----------
    .. [1] M. Khalid, I. Ray, H. Chitsaz, "Confidence-Weighted Bipartite Ranking", ADMA
       2016.
    .. [2] J. Wang, P. Zhao, S. Hoi, "Exact Soft Confidence-Weighted Learning", ICML
       2012.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import CBR
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(CBR(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineAUC._parameter_constraints,
        "confidence": [Interval(Real, 0.5, 1, closed="right")],
        "step": [Interval(Real, 0, 1, closed="right")],
        "covariance": [StrOptions({"full", "diag"})],
        "schedule": [StrOptions({"constant", "printed"})],
    }
    # The loss has no margin: without ``precondition`` scores have units of the data.
    _widest = np.inf

    def __init__(
        self,
        C: float = 0.01,
        *,
        confidence: float = 0.7,
        step: float = 0.5,
        covariance: str = "full",
        buffer_size: int = 50,
        policy: str = "fifo",
        schedule: str = "constant",
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.confidence = confidence
        self.step = step
        self.covariance = covariance
        self.buffer_size = buffer_size
        self.policy = policy
        self.schedule = schedule
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _start(self, n_features: int) -> Any:
        size, precondition = int(self.buffer_size), bool(self.precondition)
        start = init_diag if self.covariance == "diag" else init
        return start(n_features, size, precondition)

    def _with_room(self, state: Any, rows: Rows, signed: Float) -> Any:
        return widened(state, rows, signed)

    def _validate_state(self, state: Any) -> None:
        check(state, state.z[_SEEN], state.z[_SEED], self.n_features_in_)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Visit
    ) -> None:
        # Confidence 1 is the largest float below.
        confidence = min(float(self.confidence), np.nextafter(1.0, 0.0))
        rule = float(self.C), float(ndtri(confidence)), float(self.step)
        reservoir, printed = self.policy == "reservoir", self.schedule == "printed"
        run = update_diag if self.covariance == "diag" else update
        run(X, y, order, state, how, *rule, reservoir, printed)

    def _again(self, rows: Rows, signed: Float, state: Any) -> None:
        if self.policy == "reservoir":
            restart(state.z[_SEEN], self.buffer_size)

    def _weights(self, state: Any) -> tuple[Float, float]:
        return diag_weights(state) if self.covariance == "diag" else weights(state)
