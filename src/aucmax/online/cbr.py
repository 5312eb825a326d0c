r"""CBR: confidence-weighted bipartite ranking.

Khalid, Ray and Chitsaz (2016; Khalid's dissertation 2019, chapter 4) pair each row with
a buffer of the other class, as OAM does, and take the steps of soft confidence-weighted
learning (:mod:`aucmax.core.confidence`) along the differences z, positive minus
negative: weights are N(μ, Σ), and the loss of a pair is

.. math:: \max(0, \phi \sqrt{z^T \Sigma z} - \mu \cdot z), \quad \phi = \Phi^{-1}(\eta)

for η the confidence with which the pair is to be ranked rightly.

A step costs O(d²), so it is good to know without one whether a pair has a loss. With E
the buffered rows and ω the weights, what is kept is the mean and the covariance K of
(Eω, ω); for the row x there are the covariances c of its score with all of these, one
product. Then z = x - e_b has the variance x·Σx - 2c_b + K_bb, a step along it changes
all means by multiples of w = c - K_b, and K by a multiple of wwᵀ. So a pair without a
loss costs O(1). For the pairs with a loss, r of them, w has to be brought up to date by
the steps before: for the rows x may yet be paired with at once, for all else when the
pairs are done; then Σ_l β_l w_l w_lᵀ is subtracted from K, most of the work, which
:mod:`aucmax.core.tile` does at the speed of the processor. A row that enters the buffer
brings its part of K along: c.

Deviations from the dissertation:

* β is printed with one root over the whole sum; it is over u alone;
* rows are centred and scaled (:mod:`aucmax.core.engine`) before they are compared, so
  that Σ may start at the identity whatever the units; scales are taken anew when there
  are twice as many rows;
* C is relative to one over the root of the mean squared length of a pair: that is how
  α, which C bounds, changes with the units of z when Σ is the identity.

The Notes of the class have the settings that switch back. Chapter 5 prints
μ += (α/2) y Σz for the same problem, where chapter 4 has α: that is ``step=0.5``, and
its table agrees with it (``benchmarks/bench_khalid.py``). For ``covariance="diag"`` see
:mod:`aucmax.online.cbr_diag`.
"""

import sys
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core import buffer as buffers
from aucmax.core import engine
from aucmax.core.base import OnlineAUC
from aucmax.core.buffer import (
    LENGTH,
    VALUES,
    WEIGHT,
    check,
    features_of,
    filled,
    find_slot,
    put,
    unpack,
    widened,
)
from aucmax.core.confidence import (
    ROUNDING,
    add_rows,
    confident_step,
    covary,
    difference,
    dot,
    eliminate,
    follow,
    identity,
    subtract_squares,
)
from aucmax.core.engine import (
    NEG,
    NORM,
    POS,
    RENEW_AT,
    ROWS,
    TO_MEAN,
    TO_NEG,
    TO_POS,
    D,
    Table,
    Visit,
    W,
    assign,
    count,
    renew,
    second_moment,
    take,
    weight_of,
)
from aucmax.core.engine.lanes import aligned, padded
from aucmax.core.engine.tile import HALF, add_products
from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Index, Rows, pack_row
from aucmax.online import cbr_diag

_RENEW = 2.0  # scales are taken anew when there are so many times more rows …
_GROWN = 4.0  # … or when a feature's second moment is so many times as large

# The numbers in State.z: rows of either class that the buffer was offered; its random
# numbers.
SEEN, SEED = 0, 2


class State(NamedTuple):
    """The learner; its arrays change in place."""

    table: Table  # μ for unit-scale features, scales, class moments
    rows: Float  # (2, 2B, width) the buffered rows: see aucmax.core.buffer
    slots: Float  # (2, 2B) their lengths and weights
    S: Float  # Σ: see aucmax.core.confidence, and for
    R: Float  # the covariances of the scores Eω with one another and with ω
    score: Float  # (2B,) Eμ
    z: Float  # (4,) numbers, see above


def init(n_features: int, buffer_size: int, precondition: bool) -> State:
    """Return the state before the first row."""
    z = np.zeros(4)
    z[SEED:] = buffers.SEED
    table = engine.empty(n_features, precondition)
    held, slots = buffers.empty(buffer_size), 2 * buffer_size
    return State(table, *held, *identity(n_features, slots, "CBR"), np.zeros(slots), z)


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
    table, rows, slots, S, R, score, z = state
    feat, stats = table.feat, table.stats
    seen, seed = z[SEEN : SEEN + 2], z[SEED : SEED + 2]
    d, size, at = feat.shape[1], slots.shape[1] // 2, features_of(rows, slots)
    x, features = np.empty(rows.shape[2]), np.empty(rows.shape[2], np.uint32)
    unit, shift, e = np.sqrt(feat[D]), table.ref.copy(), np.zeros(padded(d))
    width, begin = R.shape[1], R.shape[1] - padded(d)  # all scores; then the weights
    mean, c = np.zeros(width), np.zeros(width)
    mu = mean[begin : begin + d]
    assign(mean[: 2 * size], score)
    assign(mu, feat[W])
    m, k, v = np.empty(2 * size), np.empty(2 * size), np.empty(2 * size)
    slot_of, coefs = np.empty(size, np.int64), np.zeros((size, size + HALF))
    step, beta, drop = np.empty(size), np.empty(size), np.empty(size)
    w, room = aligned(size + HALF, width), aligned(size, width)
    flat = w.reshape(w.size)
    for visit in range(order.shape[0]):
        i = take(X, order, visit, table, how)
        side, other, y_t = (POS, NEG, 1.0) if y[i] > 0.0 else (NEG, POS, -1.0)
        length = pack_row(X, i, x, features)

        # Running class statistics, and all that is in their coordinates.
        if count(X, y, i, table, how):
            off = stats[ROWS] >= stats[RENEW_AT]
            for k_x in range(length if how.precondition else 0):
                j = features[k_x]
                second = second_moment(feat, j, stats[TO_POS], stats[TO_NEG])
                off |= second * feat[D, j] > _GROWN  # cannot wait
            if off:
                renew(table, how)
                stats[RENEW_AT] = _RENEW * stats[ROWS]
                rescaled(state, unit, shift, at, mean, mu, e, c)

        # What is to be known of the pairs of the row.
        unpack(x, features, length, unit, shift, e[:d])
        covary(S, R, e, c)
        s, e_e = dot(e, mean[begin:]), dot(e, c[begin:])
        first, end = other * size, other * size + filled(seen, other, size)
        near, far = first // 8 * 8, padded(end)  # these with whole cache lines
        for b in range(first, end):
            m[b], k[b], v[b] = mean[b], c[b], R[b, b]

        # Steps along those that have a loss.
        C_t = C if printed else C / np.sqrt(2.0 * stats[NORM])
        C_t *= weight_of(y, i, table)
        r = 0
        for b in range(first, end):
            margin = y_t * (s - m[b])
            z_z = e_e - 2.0 * k[b] + v[b]
            if z_z <= ROUNDING * (e_e + v[b]) or phi * np.sqrt(z_z) <= margin:
                continue
            C_b = C_t * slots[WEIGHT, b] * stats[TO_MEAN]
            alpha, root = confident_step(margin, z_z, phi, C_b)
            step[r] = y_t * part * alpha
            beta[r] = alpha * phi / (root + z_z * alpha * phi)
            x_z = e_e - k[b]
            drop[r] = -beta[r] * x_z
            slot_of[r] = b
            for h in range(r):
                coefs[h, r] = beta[h] * w[h, b] + drop[h]
            for a in range(near, b):
                w[r, a] = c[a] - R[a, b]
            difference(c, R[b], b, far, w[r])
            add_products(flat, r * width + near, 0, 1, coefs, r, w, r, near, far)
            rest = slice(b + 1, end)
            follow(w[r, rest], step[r], drop[r], beta[r], m[rest], k[rest], v[rest])
            s += step[r] * x_z
            e_e += drop[r] * x_z
            r += 1
        for h in range(r):
            b = slot_of[h]
            for a in range(near):
                w[h, a] = c[a] - R[a, b]
            difference(c, R[b], far, width, w[h])
        eliminate(coefs, w, r, 0, near)
        eliminate(coefs, w, r, far, width)
        add_rows(step, w, r, 0, width, mean)
        subtract_squares(S, R, beta, w, r, room)

        slot = find_slot(seen, side, size, reservoir, seed)
        if slot >= 0:
            put(rows, slots, at, slot, x, features, length, abs(y[i]))
            add_rows(drop, w, r, 0, width, c)
            for a in range(slot):
                R[a, slot] = c[a]
            assign(R[slot, slot:], c[slot:])
            R[slot, slot], mean[slot] = e_e, s
    assign(score, mean[: 2 * size])
    assign(feat[W], mu)


@kernel
def rescaled(
    state: State,
    unit: Float,
    shift: Float,
    at: Index,
    mean: Float,
    mu: Float,
    e: Float,
    c: Float,
) -> None:
    """Take weights, buffered scores and their covariances to new scales; O(B d²)."""
    table, rows, slots, S, R, _, _ = state
    feat, d, begin = table.feat, unit.shape[0], R.shape[1] - e.shape[0]
    for j in range(d):  # a weight, unit · μ, follows the scale, unit²
        if unit[j] > 0.0:
            mu[j] *= np.sqrt(feat[D, j]) / unit[j]
        unit[j], shift[j] = np.sqrt(feat[D, j]), table.ref[j]
    for twice in range(2):  # first with the weights, then with one another
        for b in range(slots.shape[1]):
            if slots[WEIGHT, b] == 0.0:  # not filled yet
                continue
            length = int(slots[LENGTH, b])
            unpack(rows[VALUES, b], at[b], length, unit, shift, e[:d])
            covary(S, R, e, c)
            mean[b] = dot(e, mean[begin:])
            if twice == 0:
                assign(R[b, begin:], c[begin:])
            else:
                assign(R[b, b:begin], c[b:begin])


def weights(state: State) -> tuple[Float, float]:
    """Return the weights and the intercept."""
    feat = state.table.feat
    w = feat[W] * np.sqrt(feat[D])
    if not state.table.n.all():
        return np.zeros_like(w), 0.0
    return w, engine.threshold(w, state.table)


class CBR(OnlineAUC):
    r"""Confidence-weighted bipartite ranking with a buffer.

    The weights are a normal distribution N(μ, Σ). Each row is paired with a sample of
    the other class, and for each pair, z = x⁺ - x⁻, the distribution changes as little
    as lets the pair be ranked rightly with the ``confidence`` η that is asked for: the
    loss of a pair is

    .. math:: \max(0, \Phi^{-1}(\eta) \sqrt{z^T \Sigma z} - \mu \cdot z) .

    Parameters
    ----------
    C : float, default=0.001
        The longest step along a pair, in units of one over the root of the mean squared
        length of a pair.
    confidence : float, default=0.7
        Chance with which a pair is to be ranked rightly; above one half.
    step : float, default=1.0
        The part of a step that μ takes; Σ takes all of it. One is the least change that
        was meant; 0.5 is that of the dissertation's chapter 5, and often ranks better
        after a single pass, with a larger ``C``.
    covariance : {"full", "diag"}, default="full"
        Whether Σ is a matrix, for up to some thousand features, or a diagonal.
    buffer_size : int, default=50
        Rows of either class in the buffer.
    policy : {"fifo", "reservoir"}, default="fifo"
        Whether the buffer is the last rows, or a random sample of all so far: for
        streams whose order says something, such as one class first.
    schedule : {"constant", "printed"}, default="constant"
        Whether C has the units above, or is the number that it is in the dissertation.
    precondition : bool, default=True
        Whether features are centred and scaled inside, by class moments.
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
        The variables of the algorithm, the buffer among them; ``partial_fit`` goes on
        from them.

    See Also
    --------
    OAM : The same pairs, with the hinge loss and no covariance.
    OPAUC : The square loss, with the covariances of the classes.

    Notes
    -----
    With B the buffer size, a row costs O(d² + Bd), whether dense or sparse, a pair that
    is ranked with less confidence than asked for O((B + d)²) more, and other pairs
    O(1); memory is d²/2 + 2B (2B + d) numbers. With ``covariance="diag"`` a pair costs
    O(nnz) of its two rows and memory is ten numbers a feature, and the buffer.

    As printed: ``CBR(C, schedule="printed", precondition=False)`` and ``partial_fit``,
    with ``policy`` and ``covariance`` for the variants and ``step=0.5`` for chapter 5.

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
        "C": [Interval(Real, 0, None, closed="neither")],
        "confidence": [Interval(Real, 0.5, 1, closed="right")],
        "step": [Interval(Real, 0, 1, closed="right")],
        "covariance": [StrOptions({"full", "diag"})],
        "buffer_size": [Interval(Integral, 1, None, closed="left")],
        "policy": [StrOptions({"fifo", "reservoir"})],
        "schedule": [StrOptions({"constant", "printed"})],
        "precondition": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }
    l2 = 0.0  # there is no penalty: scales are those of the features alone
    # The loss knows no margin: without ``precondition`` scores have units of the data.
    _widest = np.inf

    def __init__(
        self,
        C: float = 0.001,
        *,
        confidence: float = 0.7,
        step: float = 1.0,
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

    @property
    def _algorithm(self) -> Any:
        """The module of the algorithm: its functions have the same names."""
        return cbr_diag if self.covariance == "diag" else sys.modules[__name__]

    def _start(self, n_features: int) -> Any:
        size, precondition = int(self.buffer_size), bool(self.precondition)
        return self._algorithm.init(n_features, size, precondition)

    def _with_room(self, state: Any, rows: Rows, signed: Float) -> Any:
        return widened(state, rows, signed)

    def _validate_state(self, state: Any) -> None:
        seen, seed = state.z[SEEN : SEEN + 2], state.z[SEED : SEED + 2]
        check(state, seen, seed, self.n_features_in_)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Visit
    ) -> None:
        # One is as sure as a float can tell.
        confidence = min(float(self.confidence), np.nextafter(1.0, 0.0))
        rule = float(self.C), float(ndtri(confidence)), float(self.step)
        reservoir, printed = self.policy == "reservoir", self.schedule == "printed"
        self._algorithm.update(X, y, order, state, how, *rule, reservoir, printed)

    def _weights(self, state: Any) -> tuple[Float, float]:
        coef, intercept = self._algorithm.weights(state)
        return coef, intercept
