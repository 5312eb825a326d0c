r"""CBR-diag: confidence-weighted bipartite ranking with a diagonal covariance.

Khalid (dissertation 2019, section 4.4): as :mod:`aucmax.online.cbr`, with Σ = 1/G, G a
number per feature. With v = Σ z²/G, and α, √u as there, μ += α z/G and
G += (αφ/√u) z². (The derivative by a diagonal Σ gives this G exactly; α and √u are
those of the full problem, as in the dissertation, since a diagonal one has no closed
form.)

The dissertation prints Σ z²/(G + C) for v and G += βz². Measured on german, svmguide3,
diabetes, spambase, a9a, vehicle and ijcnn1 (three splits each, up to 6000 rows, one and
five passes), test AUC is the same to 0.0001 for C up to 0.01, where both rank best, and
to 0.003, either way, at C = 1. Hence only one form is implemented. A pair costs O(nnz)
of both rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.base.class_moments import NEG, POS
from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.rows import ColumnIndex as Index
from aucmax.core.rows import Float, Rows, pack_row
from aucmax.online import engine
from aucmax.online.confidence import confident_step
from aucmax.online.engine import Table, Visit
from aucmax.online.engine import buffer as buffers
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.buffer import LENGTH, VALUES, WEIGHT

# Slots of State.z: rows of each class offered to the buffer (2); its random generator
# (2).
SEEN, SEED = 0, 2


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table
    G: Float  # (d,) inverse variances of the weights at unit scale
    rows: Float  # (2, 2B, width) buffered rows, see aucmax.online.engine.buffer
    slots: Float  # (2, 2B) their lengths and weights
    z: Float  # (4,) slots above


def init(n_features: int, buffer_size: int, precondition: bool) -> State:
    """Return the state before the first row."""
    z = np.zeros(4)
    z[SEED:] = buffers.SEED
    table = engine.empty(n_features, precondition)
    return State(table, np.ones(n_features), *buffers.empty(buffer_size), z)


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


def weights(state: State) -> tuple[Float, float]:
    """Return the weights and the intercept."""
    w = engine.weights(state.table).copy()
    if not state.table.n.all():
        return np.zeros_like(w), 0.0
    return w, engine.threshold(w, state.table)
