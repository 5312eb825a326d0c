"""CBR with a full covariance: as few products with Σ as a row's pairs allow.

A step costs O(d²), so it is good to know without one whether a pair has a loss. With E
the buffered rows and ω the weights, what is kept is the mean and the covariance K of
(Eω, ω); for the row x there are the covariances c of its score with all of these, one
product. Then z = x - e_b has the variance x·Σx - 2c_b + K_bb, a step along it changes
all means by multiples of w = c - K_b, and K by a multiple of wwᵀ. So a pair without a
loss costs O(1). For the pairs with a loss, r of them, w has to be brought up to date by
the steps before: for the rows x may yet be paired with at once, for all else when the
pairs are done; then Σ_l β_l w_l w_lᵀ is subtracted from K, most of the work. A row that
enters the buffer brings its part of K along: c.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import kernel
from aucmax.core.products import dot
from aucmax.core.rows import ColumnIndex as Index
from aucmax.core.rows import Float, Rows, pack_row
from aucmax.online import engine
from aucmax.online.confidence import (
    ROUNDING,
    add_rows,
    catch_up,
    confident_step,
    covary,
    difference,
    eliminate,
    follow,
    identity,
    padded,
    subtract_squares,
    workplace,
)
from aucmax.online.engine import (
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
    weight_of,
)
from aucmax.online.engine import buffer as buffers
from aucmax.online.engine.buffer import (
    LENGTH,
    VALUES,
    WEIGHT,
    features_of,
    filled,
    find_slot,
    put,
    unpack,
)

_RENEW = 2.0  # scales are taken anew when there are so many times more rows …
_GROWN = 4.0  # … or when a feature's second moment is so many times as large

# The numbers in State.z: rows of either class that the buffer was offered; its random
# numbers.
SEEN, SEED = 0, 2


class State(NamedTuple):
    """The learner; its arrays change in place."""

    table: Table  # μ for unit-scale features, scales, class moments
    rows: Float  # (2, 2B, width) the buffered rows: see aucmax.online.engine.buffer
    slots: Float  # (2, 2B) their lengths and weights
    S: Float  # Σ: see aucmax.online.confidence, and for
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


rescaled = engine.if_stream(
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
    step, beta, drop = np.empty(size), np.empty(size), np.empty(size)
    slot_of, (w, room, coefs) = np.empty(size, np.int64), workplace(size, width)
    for visit in range(order.shape[0]):
        i = order[visit]
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
                rescaled(state, unit, shift, at, mean, mu, e, c, how)

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
            catch_up(coefs, w, r, near, far)
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


def weights(state: State) -> tuple[Float, float]:
    """Return the weights and the intercept."""
    feat = state.table.feat
    w = feat[W] * np.sqrt(feat[D])
    if not state.table.n.all():
        return np.zeros_like(w), 0.0
    return w, engine.threshold(w, state.table)
