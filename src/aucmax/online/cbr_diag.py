r"""CBR-diag: confidence-weighted bipartite ranking with a diagonal covariance.

Khalid (dissertation 2019, section 4.4): as :mod:`aucmax.online.cbr`, with Σ = 1/G, G a
number a feature. With v = Σ z²/G, and α, √u as there, μ += α z/G and
G += (αφ/√u) z². (The derivative by a diagonal Σ gives this G exactly; α and √u are
those of the full problem, as in the dissertation: for a diagonal one there is no closed
form.)

The dissertation prints Σ z²/(G + C) for v and G += βz². Measured on german, svmguide3,
diabetes, spambase, a9a, vehicle and ijcnn1 (three splits each, up to 6000 rows, one and
five passes), test AUC is the same to 0.0001 for C up to 0.01, where both rank best, and
to 0.003, either way, at C = 1. So there is one form. A pair costs O(nnz of both).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core import buffer as buffers
from aucmax.core import table as tables
from aucmax.core.buffer import (
    LENGTH,
    VALUES,
    WEIGHT,
    erase,
    features_of,
    filled,
    find_slot,
    put,
    scatter,
)
from aucmax.core.confidence import confident_step
from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.rows import (
    Index,
    Rows,
    fetch_features_row,
    fetch_row,
    learn_row,
    listed,
    meet_row,
    pack_row,
)
from aucmax.core.table import (
    NO_PENALTY,
    SUM,
    D,
    Float,
    W,
    refresh,
)
from aucmax.core.tally import NEG, NORM, POS, RENEW, RENEW_AT, ROWS

# The numbers in State.z, after those of aucmax.core.tally: rows of either class that
# the buffer was offered; its random numbers.
SEEN, SEED = 6, 8


class State(NamedTuple):
    """The learner; its arrays change in place."""

    hot: Float  # (4, d) weights, scales, class sums: see aucmax.core.table
    cold: Float  # (4, d) nothing, frequencies, sums of squares
    ref: Float  # (d,) reference points
    G: Float  # (d,) one over the variances of the weights of unit-scale features
    rows: Float  # (2, 2B, width) the buffered rows: see aucmax.core.buffer
    slots: Float  # (2, 2B) their lengths and weights
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (10,) numbers, see above


def init(n_features: int, buffer_size: int, precondition: bool) -> State:
    """Return the state before the first row."""
    hot, cold, ref = tables.empty(n_features, precondition)
    z = np.zeros(10)
    z[SEED:] = buffers.SEED
    G = np.ones(n_features)
    return State(hot, cold, ref, G, *buffers.empty(buffer_size), np.zeros(2), z)


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    hot: Float,
    cold: Float,
    ref: Float,
    G: Float,
    rows: Float,
    slots: Float,
    n: Float,
    z: Float,
    ahead: int,
    learns: bool,
    C: float,
    phi: float,
    part: float,
    reservoir: bool,
    precondition: bool,
    printed: bool,
) -> None:
    """Run Algorithm 4 over the rows ``order`` of ``X``."""
    seen, seed = z[SEEN : SEEN + 2], z[SEED : SEED + 2]
    d, size = hot.shape[1], slots.shape[1] // 2
    at, centred = features_of(rows, slots), listed(X, ref)
    x, features = np.empty(rows.shape[2]), np.empty(rows.shape[2], np.uint32)
    e, pair, union = np.zeros(d), np.zeros(d), np.empty(d, np.uint32)
    last = order.shape[0] - 1
    for visit in range(order.shape[0]):
        fetch_row(X, order[min(visit + ahead, last)])
        fetch_features_row(X, order[min(visit + 1, last)], hot)
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
            learn_row(X, i, weight, side, hot, cold, ref, centred)
            if n[POS] > 0.0 and n[NEG] > 0.0:
                to_pos, to_neg = 1.0 / n[POS], 1.0 / n[NEG]
                if precondition:
                    meet_row(
                        X,
                        i,
                        hot,
                        cold,
                        ref,
                        None,
                        to_pos,
                        to_neg,
                        NO_PENALTY,
                        None,
                        0.0,
                    )
                if z[ROWS] >= z[RENEW_AT]:
                    z[1], z[2], z[3], z[4] = refresh(
                        hot, cold, ref, to_pos, to_neg, NO_PENALTY, precondition
                    )
                    z[RENEW_AT] = RENEW * z[ROWS]
                    centred = listed(X, ref)

        # Steps along the pairs of the row that have a loss.
        length = pack_row(X, i, x, features)
        pairs = filled(seen, other, size)
        if pairs > 0:
            share = z[ROWS] / (n[POS] + n[NEG])  # makes the mean weight one
            y_t = 1.0 if side == POS else -1.0
            C_t = (C if printed else C / np.sqrt(2.0 * z[NORM])) * weight * share
            scatter(x, features, length, e)
            for b in range(other * size, other * size + pairs):
                count = int(slots[LENGTH, b])
                full = length == d and count == d
                if full:
                    m, v = _look_full(x, rows[VALUES, b], hot, G, pair)
                    m *= y_t
                else:
                    some = differ(
                        x,
                        features,
                        length,
                        rows[VALUES, b],
                        at[b],
                        count,
                        e,
                        pair,
                        union,
                    )
                    m, v = look(pair, union, some, hot, G)
                    m *= y_t
                if not (v > 0.0 and phi * np.sqrt(v) > m):
                    continue
                alpha, root = confident_step(m, v, phi, C_t * slots[WEIGHT, b] * share)
                move, grow = y_t * part * alpha, alpha * phi / root
                if full:
                    _step_full(pair, hot, G, move, grow)
                else:
                    step(pair, union, some, hot, G, move, grow)
            erase(features, length, e)

        slot = find_slot(seen, side, size, reservoir, seed)
        if slot >= 0:
            put(rows, slots, at, slot, x, features, length, weight)


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
    some = length
    for k in range(count):
        j = of_b[k]
        if e[j] == 0.0:
            pair[j] = -x_b[k]
            union[some] = j
            some += 1
        else:
            pair[j] -= x_b[k]
    return some


@inlined
def look(
    pair: Float, union: Index, some: int, hot: Float, G: Float
) -> tuple[float, float]:
    """Return the mean and the variance of the score of a difference."""
    m = 0.0
    v = 0.0
    for k in range(some):
        j = union[k]
        m += hot[W, j] * pair[j]
        v += hot[D, j] * (pair[j] * pair[j]) / G[j]
    return m, v


@vectorised
def _look_full(
    x: Float, x_b: Float, hot: Float, G: Float, pair: Float
) -> tuple[float, float]:
    m = 0.0
    v = 0.0
    for j in range(pair.shape[0]):
        pair[j] = x[j] - x_b[j]
    for j in range(pair.shape[0]):  # apart: see CONTRIBUTING.md, traps
        m += hot[W, j] * pair[j]
        v += hot[D, j] * (pair[j] * pair[j]) / G[j]
    return m, v


@inlined
def step(
    pair: Float, union: Index, some: int, hot: Float, G: Float, c: float, gain: float
) -> None:
    """Add c z/G to the weights, and ``gain`` z² to G, for unit-scale features."""
    for k in range(some):
        j = union[k]
        change = hot[D, j] * pair[j]
        hot[W, j] += c * change / G[j]
        G[j] += gain * (change * pair[j])


@vectorised
def _step_full(pair: Float, hot: Float, G: Float, c: float, gain: float) -> None:
    for j in range(pair.shape[0]):
        change = hot[D, j] * pair[j]
        hot[W, j] += c * change / G[j]
        G[j] += gain * (change * pair[j])


def weights(state: State) -> tuple[Float, float]:
    """Return the weights and the intercept."""
    w = state.hot[W].copy()
    if not state.n.all():
        return np.zeros_like(w), 0.0
    return w, tables.threshold(w, state.hot[SUM:], state.n)
