"""CBR with a full covariance Σ, a triangle as in :mod:`aucmax.online.covariance`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.base.class_moments import NEG, POS
from aucmax.core.jit import kernel
from aucmax.core.products import dot
from aucmax.core.rows import Float, Rows, pack_row
from aucmax.core.validation import check_width
from aucmax.online import engine
from aucmax.online.confidence import confident_step
from aucmax.online.covariance import add_outer, multiply
from aucmax.online.engine import Table, Visit
from aucmax.online.engine import buffer as buffers
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.buffer import LENGTH, VALUES, WEIGHT
from aucmax.online.engine.feature_table import mean_square
from aucmax.online.engine.row_visit import count, if_stream

_RENEW = 2.0  # scales are recomputed when the number of rows has grown by this factor
_GROWN = 4.0  # or a feature's second moment by this factor

# Slots of State.z: rows of each class offered to the buffer (2); its random generator
# (2).
SEEN, SEED = 0, 2


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
