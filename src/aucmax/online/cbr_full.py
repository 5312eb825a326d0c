"""CBR with a full covariance, with few products with Σ per row.

A step costs O(d²), so the loss of a pair should be known without one. With E the
buffered rows and ω the weights, the state has the mean and the covariance K of (Eω, ω).
One product gives the covariances c of the score of the row x with all of these. Then
z = x - e_b has the variance x·Σx - 2c_b + K_bb: a pair without a loss costs O(1). A
step along z changes all means and c by multiples of w = c - K_b, and K by a multiple of
wwᵀ. A row that enters the buffer has its part of K already: c.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.base.class_moments import NEG, POS
from aucmax.core.jit import kernel
from aucmax.core.products import dot
from aucmax.core.rows import Float, Index, Rows, pack_row
from aucmax.online import confidence as scw
from aucmax.online import engine
from aucmax.online.engine import Table, Visit
from aucmax.online.engine import buffer as buffers
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.buffer import LENGTH, VALUES, WEIGHT
from aucmax.online.engine.feature_table import assign, mean_square
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
    S: Float  # Σ, see aucmax.online.confidence
    R: Float  # covariances of the scores Eω with each other and with ω, see there
    score: Float  # (2B,) Eμ
    z: Float  # (4,) slots above


def init(n_features: int, buffer_size: int, precondition: bool) -> State:
    """Return the state before the first row."""
    z = np.zeros(4)
    z[SEED:] = buffers.SEED
    table = engine.empty(n_features, precondition)
    held, slots = buffers.empty(buffer_size), 2 * buffer_size
    return State(
        table, *held, *scw.identity(n_features, slots, "CBR"), np.zeros(slots), z
    )


@kernel
def _rescale(
    state: State,
    unit: Float,
    shift: Float,
    at: Index,
    mean: Float,
    mu: Float,
    e: Float,
    c: Float,
) -> None:
    """Update weights, buffered scores and covariances for new scales; O(B d²)."""
    table, rows, slots, S, R, _, _ = state
    scale, d, begin = engine.scales(table), unit.shape[0], R.shape[1] - e.shape[0]
    for j in range(d):  # a weight, unit · μ, scales like unit²
        if unit[j] > 0.0:
            mu[j] *= np.sqrt(scale[j]) / unit[j]
        unit[j], shift[j] = np.sqrt(scale[j]), table.ref[j]
    for twice in range(2):  # first with the weights, then with one another
        for b in range(slots.shape[1]):
            if slots[WEIGHT, b] == 0.0:  # not filled yet
                continue
            length = int(slots[LENGTH, b])
            buffers.unpack(rows[VALUES, b], at[b], length, unit, shift, e[:d])
            scw.covary(S, R, e, c)
            mean[b] = dot(e, mean[begin:])
            if twice == 0:
                assign(R[b, begin:], c[begin:])
            else:
                assign(R[b, b:begin], c[b:begin])


rescaled = if_stream(
    lambda state, unit, shift, at, mean, mu, e, c, how: _rescale(
        state, unit, shift, at, mean, mu, e, c
    ),
    lambda state, unit, shift, at, mean, mu, e, c, how: None,
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
    table, rows, slots, S, R, score, z = state
    weights, scale = engine.weights(table), engine.scales(table)
    seen, seed = z[SEEN : SEEN + 2], z[SEED : SEED + 2]
    d, size, at = len(scale), slots.shape[1] // 2, buffers.features_of(rows, slots)
    x, features = np.empty(rows.shape[2]), np.empty(rows.shape[2], np.uint32)
    unit, shift, e = np.sqrt(scale), table.ref.copy(), np.zeros(scw.padded(d))
    width, begin = R.shape[1], R.shape[1] - scw.padded(d)
    mean, c = np.zeros(width), np.zeros(width)
    mu = mean[begin : begin + d]
    assign(mean[: 2 * size], score)
    assign(mu, weights)
    w = np.zeros(width)
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
                rescaled(state, unit, shift, at, mean, mu, e, c, how)

        # Means, covariances and variances of the pairs of the row.
        buffers.unpack(x, features, length, unit, shift, e[:d])
        scw.covary(S, R, e, c)
        s, e_e = dot(e, mean[begin:]), dot(e, c[begin:])
        first, end = other * size, other * size + buffers.filled(seen, other, size)

        # Steps along the pairs with a loss.
        C_t = C if printed else C / np.sqrt(2.0 * stats.mean_norm(table))
        C_t *= stats.weight_of(y, i, table)
        for b in range(first, end):
            margin = y_t * (s - mean[b])
            z_z = e_e - 2.0 * c[b] + R[b, b]
            if z_z <= scw.ROUNDING * (e_e + R[b, b]) or phi * np.sqrt(z_z) <= margin:
                continue
            C_b = C_t * slots[WEIGHT, b] * stats.weight_unit(table)
            alpha, root = scw.confident_step(margin, z_z, phi, C_b)
            step = y_t * part * alpha
            beta = alpha * phi / (root + z_z * alpha * phi)
            x_z = e_e - c[b]
            for a in range(b):
                w[a] = c[a] - R[a, b]
            for a in range(b, width):
                w[a] = c[a] - R[b, a]
            scw.add_multiple(step, w, mean)
            scw.add_multiple(-beta * x_z, w, c)
            scw.subtract_square(S, R, beta, w)
            s += step * x_z
            e_e -= beta * x_z * x_z

        slot = buffers.find_slot(seen, side, size, reservoir, seed)
        if slot >= 0:
            buffers.put(rows, slots, at, slot, x, features, length, abs(y[i]))
            for a in range(slot):
                R[a, slot] = c[a]
            assign(R[slot, slot:], c[slot:])
            R[slot, slot], mean[slot] = e_e, s
    assign(score, mean[: 2 * size])
    assign(weights, mu)


def weights(state: State) -> tuple[Float, float]:
    """Return the weights and the intercept."""
    w = engine.weights(state.table) * np.sqrt(engine.scales(state.table))
    if not state.table.n.all():
        return np.zeros_like(w), 0.0
    return w, engine.threshold(w, state.table)
