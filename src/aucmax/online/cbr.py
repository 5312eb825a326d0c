r"""CBR: confidence-weighted bipartite ranking.

Khalid, Ray and Chitsaz (2016; Khalid's dissertation 2019, chapter 4) pair each row with
a buffer of the other class, as OAM does, and take the steps of soft confidence-weighted
learning (:mod:`aucmax.core.confidence`) along the differences z, positive minus
negative: weights are N(μ, Σ), and the loss of a pair is

.. math:: \max(0, \phi \sqrt{z^T \Sigma z} - \mu \cdot z), \quad \phi = \Phi^{-1}(\eta)

for η the confidence with which the pair is to be ranked rightly.

A step costs O(d²), so it is good to know without one whether a pair has a loss. With E
the buffered rows, H = EΣ, Q = EΣEᵀ and the scores Eμ are kept, and for the row x there
is g = Σx, one product. Then z = x - e_b has the variance x·g - 2 h_b·x + Q_bb, a step
along it is along u = g - h_b, and it changes all that is known of the other pairs by
multiples of t = Eu = Hx - Q_b. So a pair without a loss costs O(1). What the pairs with
a loss, r of them, do to Σ, H and Q is subtracted in the end: Σ_l β_l u_l u_lᵀ and so
on; until then u and t are brought up to date by the steps before. A row that enters
the buffer brings its parts of H and Q along: they are g and Hx.

Deviations from the dissertation:

* β is printed with one root over the whole sum; it is over u alone;
* rows are centred and scaled (:mod:`aucmax.core.table`) before they are compared, so
  that Σ may start at the identity whatever the units; scales are taken anew when there
  are twice as many rows;
* C is relative to one over the root of the mean squared length of a pair: that is how
  α, which C bounds, changes with the units of z when Σ is the identity.

``precondition=False`` switches back. For ``covariance="diag"`` see
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
from aucmax.core import table as tables
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
    add_scaled,
    confident_step,
    dot,
    identity,
    products,
    subtract_outers,
    subtract_squares,
)
from aucmax.core.covariance import multiply
from aucmax.core.jit import kernel
from aucmax.core.rows import Rows, fetch_ahead, fetch_row, pack_row, tally_row
from aucmax.core.table import REF, SQ, SUM, D, Float, W, refresh
from aucmax.core.tally import NEG, NORM, POS, RENEW_AT, ROWS
from aucmax.online import cbr_diag

_RENEW = 2.0  # scales are taken anew when there are so many times more rows

# The numbers in State.z, after those of aucmax.core.tally: rows of either class that
# the buffer was offered; its random numbers.
SEEN, SEED = 6, 8


class State(NamedTuple):
    """The learner; its arrays change in place."""

    hot: Float  # (4, d) μ for unit-scale features, scales, class sums
    cold: Float  # (4, d) nothing, reference points, sums of squares
    rows: Float  # (2, 2B, width) the buffered rows: see aucmax.core.buffer
    slots: Float  # (2, 2B) their lengths and weights
    S: Float  # (d(d + 1)/2,) the lower triangle of Σ, row after row
    H: Float  # (2B, d) EΣ
    Q: Float  # (2B, 2B) EΣEᵀ
    score: Float  # (2B,) Eμ
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (10,) numbers, see above


def init(n_features: int, buffer_size: int, precondition: bool) -> State:
    """Return the state before the first row."""
    S = identity(n_features, "CBR")
    hot, cold = tables.empty(n_features, precondition)
    slots = 2 * buffer_size
    z = np.zeros(10)
    z[SEED:] = buffers.SEED
    return State(
        hot,
        cold,
        *buffers.empty(buffer_size),
        S,
        np.zeros((slots, n_features)),
        np.zeros((slots, slots)),
        np.zeros(slots),
        np.zeros(2),
        z,
    )


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    hot: Float,
    cold: Float,
    rows: Float,
    slots: Float,
    S: Float,
    H: Float,
    Q: Float,
    score: Float,
    n: Float,
    z: Float,
    ahead: int,
    learns: bool,
    C: float,
    phi: float,
    reservoir: bool,
    precondition: bool,
) -> None:
    """Run Algorithm 4 over the rows ``order`` of ``X``."""
    seen, seed = z[SEEN : SEEN + 2], z[SEED : SEED + 2]
    d, size = hot.shape[1], slots.shape[1] // 2
    at = features_of(rows, slots)
    x, features = np.empty(rows.shape[2]), np.empty(rows.shape[2], np.uint32)
    unit, ref, mu = np.sqrt(hot[D]), cold[REF].copy(), hot[W].copy()
    e, g = np.empty(d), np.empty(d)
    k, v = np.empty(2 * size), np.empty(2 * size)
    beta, t_e, T, V = (
        np.empty(size),
        np.empty(size),
        np.empty((size, 2 * size)),
        np.empty((size, d)),
    )
    last = order.shape[0] - 1
    for visit in range(order.shape[0]):
        fetch_row(X, order[min(visit + ahead, last)], hot)
        i = order[visit]
        weight = abs(y[i])
        if weight == 0.0:
            continue
        side = POS if y[i] > 0.0 else NEG
        other = NEG if side == POS else POS

        # Running class statistics, where the exact ones are not known.
        if learns:
            z[ROWS] += 1.0
            n[side] += weight
            tally_row(X, i, weight, hot, SUM + side, cold, SQ + side)
            if n[POS] > 0.0 and n[NEG] > 0.0 and z[ROWS] >= z[RENEW_AT]:
                z[1], z[2], z[3], z[4] = refresh(
                    hot, cold, 1.0 / n[POS], 1.0 / n[NEG], 0.0, precondition
                )
                z[RENEW_AT] = _RENEW * z[ROWS]
                if precondition:
                    for j in range(d):  # a weight, unit · μ, follows the scale, unit²
                        if unit[j] > 0.0:
                            mu[j] *= np.sqrt(hot[D, j]) / unit[j]
                        unit[j], ref[j] = np.sqrt(hot[D, j]), cold[REF, j]
                    for twice in range(2):
                        for b in range(2 * size):
                            count = int(slots[LENGTH, b])
                            unpack(rows[VALUES, b], at[b], count, unit, ref, e)
                            if slots[WEIGHT, b] == 0.0:  # not filled yet
                                continue
                            if twice == 0:
                                multiply(S, e, H[b])
                            else:
                                score[b] = dot(e, mu)
                                products(H, e, k)
                                Q[:, b] = k

        # What is to be known of the pairs of the row.
        length = pack_row(X, i, x, features)
        unpack(x, features, length, unit, ref, e)
        multiply(S, e, g)
        products(H, e, k)
        s, e_e = dot(e, mu), dot(e, g)

        # Steps along those that have a loss.
        share = z[ROWS] / (n[POS] + n[NEG])  # makes the mean weight one
        y_t = 1.0 if side == POS else -1.0
        C_t = C / np.sqrt(2.0 * z[NORM]) * weight * share
        first, pairs = other * size, filled(seen, other, size)
        for b in range(first, first + pairs):
            v[b] = Q[b, b]
        r = 0
        for b in range(first, first + pairs):
            m = y_t * (s - score[b])
            z_z = e_e - 2.0 * k[b] + v[b]
            if z_z <= ROUNDING * (e_e + v[b]) or phi * np.sqrt(z_z) <= m:
                continue
            C_b = C_t * slots[WEIGHT, b] * share
            alpha, root = confident_step(m, z_z, phi, C_b)
            t, u = T[r], V[r]
            for a in range(2 * size):
                t[a] = k[a] - Q[b, a]
            for j in range(d):
                u[j] = g[j] - H[b, j]
            for h in range(r):
                add_scaled(beta[h] * T[h, b], T[h], t)
                add_scaled(beta[h] * (T[h, b] - t_e[h]), V[h], u)
            beta[r] = alpha * phi / (root + z_z * alpha * phi)
            t_e[r] = e_e - k[b]
            add_scaled(y_t * alpha, u, mu)
            add_scaled(y_t * alpha, t, score)
            add_scaled(-beta[r] * t_e[r], t, k)
            s += y_t * alpha * t_e[r]
            e_e -= beta[r] * t_e[r] * t_e[r]
            for a in range(b + 1, first + pairs):
                v[a] -= beta[r] * t[a] * t[a]
            r += 1
        subtract_squares(S, beta, V, r)
        subtract_outers(H, T, beta, V, r)
        subtract_outers(Q, T, beta, T, r)

        slot = find_slot(seen, side, size, reservoir, seed)
        if slot >= 0:
            put(rows, slots, at, slot, x, features, length, weight)
            for h in range(r):
                add_scaled(-beta[h] * t_e[h], V[h], g)
            H[slot] = g
            Q[slot] = k
            Q[:, slot] = k
            Q[slot, slot], score[slot] = e_e, s
    hot[W] = mu


def weights(state: State) -> tuple[Float, float]:
    """Return the weights and the intercept."""
    w = state.hot[W] * np.sqrt(state.hot[D])
    if not state.n.all():
        return np.zeros_like(w), 0.0
    return w, tables.threshold(w, state.hot[SUM:], state.n)


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
    covariance : {"full", "diag"}, default="full"
        Whether Σ is a matrix, for up to some thousand features, or a diagonal.
    buffer_size : int, default=50
        Rows of either class in the buffer.
    policy : {"fifo", "reservoir"}, default="fifo"
        Whether the buffer is the last rows, or a random sample of all so far: for
        streams whose order says something, such as one class first.
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
    is ranked with less confidence than asked for O(d² + Bd + B²) more, and other pairs
    O(1); memory is d²/2 + 2Bd numbers. With ``covariance="diag"`` a pair costs O(nnz)
    of its two rows and memory is nine numbers a feature, and the buffer.

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
        "covariance": [StrOptions({"full", "diag"})],
        "buffer_size": [Interval(Integral, 1, None, closed="left")],
        "policy": [StrOptions({"fifo", "reservoir"})],
        "precondition": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }
    l2 = 0.0  # there is no penalty: scales are those of the features alone

    def __init__(
        self,
        C: float = 0.001,
        *,
        confidence: float = 0.7,
        covariance: str = "full",
        buffer_size: int = 50,
        policy: str = "fifo",
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.confidence = confidence
        self.covariance = covariance
        self.buffer_size = buffer_size
        self.policy = policy
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

    def _admit(self, state: Any) -> None:
        check(state, state.z[SEEN : SEEN + 2], self.n_features_in_)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, learn: bool
    ) -> None:
        # One is as sure as a float can tell.
        confidence = min(float(self.confidence), np.nextafter(1.0, 0.0))
        self._algorithm.update(
            X,
            y,
            order,
            *state,
            fetch_ahead(X),
            bool(learn),
            float(self.C),
            float(ndtri(confidence)),
            self.policy == "reservoir",
            bool(self.precondition),
        )

    def _weights(self, state: Any) -> tuple[Float, float]:
        coef, intercept = self._algorithm.weights(state)
        return coef, intercept
