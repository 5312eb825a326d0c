r"""What OPAUCr keeps of the class covariances: sketches, and their inner products.

See :mod:`aucmax.online.opaucr` for the algebra. B = [Z₊ Σ₊ Z₋ Σ₋] is (d, m), a row for
each feature; M = BᵀDB; ``k`` holds vectors of m numbers: q, with w = W + D B q; the
average's part of it; f = Bᵀw; and [ρ₊ n₊ ρ₋ n₋], the sum of all e so far.
"""

import numpy as np

from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.rows import Float, Rows, entry, rowwise, stored
from aucmax.online import engine
from aucmax.online.engine import (
    TO_NEG,
    TO_POS,
    D,
    Table,
    U,
    Visit,
    W,
    fitting_scale,
    off_scale,
    ridge,
    second_moment,
)
from aucmax.online.engine.random_numbers import MODULI, advance

# The slots of k.
Q, UQ, F, RHO = range(4)
# A scale is left as it is while it is right to this accuracy: a change costs O(τ²).
_TOLERANCE = 0.2


@inlined
def draw(seed: Float, size: float, e: Float) -> None:
    """Fill ``e``, but for its last place, with normal numbers of variance size²/τ.

    Box-Muller on the two generators that :mod:`aucmax.online.engine.random_numbers`
    combines.
    """
    one, two = np.int64(seed[0]), np.int64(seed[1])
    rank = e.shape[0] - 1
    size /= np.sqrt(rank)
    radius = 0.0
    angle = 0.0
    for j in range(rank):
        if j % 2 == 0:
            one, two = advance(one, two)
            radius = size * np.sqrt(-2.0 * np.log(one / np.float64(MODULI[0])))
            angle = 2.0 * np.pi * (two / np.float64(MODULI[1]))
            e[j] = radius * np.cos(angle)
        else:
            e[j] = radius * np.sin(angle)
    seed[0], seed[1] = np.float64(one), np.float64(two)


@vectorised
def grow(
    M: Float, k: Float, u: Float, x_x: float, e: Float, own: int, s: float
) -> None:
    """Take M, f, ρ and u from B to B + x̃eᵀ, e in the columns from ``own`` on."""
    half = e.shape[0]
    for a in range(half):
        for b in range(u.shape[0]):
            M[own + a, b] += e[a] * u[b]
    for b in range(u.shape[0]):
        for a in range(half):
            M[b, own + a] += u[b] * e[a]
    for a in range(half):
        for b in range(half):
            M[own + a, own + b] += x_x * (e[a] * e[b])
        u[own + a] += x_x * e[a]
        k[F, own + a] += s * e[a]
        k[RHO, own + a] += e[a]


@vectorised
def direction(
    M: Float,
    k: Float,
    u: Float,
    x_x: float,
    residual: float,
    other: int,
    to_mean: float,
    s_t: Float,
) -> tuple[float, float]:
    """Write what the gradient, residual x̃ - B s_t, is in terms of the columns of B.

    Returns the squared norm of x - c, c the mean of the ``other`` class, and the trace
    of its Ŝ, in the metric of the steps.
    """
    half = s_t.shape[0] // 2
    mean = other + half - 1  # column
    c_w = k[F, mean] * to_mean
    c_c = M[mean, mean] * to_mean * to_mean
    s_t[:] = 0.0
    rho_v = 0.0
    trace = 0.0
    for j in range(other, mean):
        rho = k[RHO, j]
        v = k[F, j] - rho * c_w
        rho_v += rho * v
        s_t[j] = -v * to_mean
        trace += M[j, j] - 2.0 * rho * (M[j, mean] * to_mean) + rho * rho * c_c
    s_t[mean] = to_mean * (residual + rho_v * to_mean)
    return x_x - 2.0 * u[mean] * to_mean + c_c, trace * to_mean


@vectorised
def step(
    M: Float, k: Float, u: Float, residual: float, s_t: Float, eta: float, past: float
) -> None:
    """Step along the columns of B; W is the caller's."""
    for j in range(u.shape[0]):
        s = 0.0
        for a in range(u.shape[0]):
            s += M[j, a] * s_t[a]
        k[F, j] += eta * (s - residual * u[j])
        k[Q, j] += eta * s_t[j]
        k[UQ, j] += past * (eta * s_t[j])


@vectorised
def multiply_out(feat: Float, B: Float, k: Float) -> None:
    """Take D B q into W, and the average's part likewise; O(dτ)."""
    for j in range(B.shape[0]):
        w = 0.0
        u = 0.0
        for a in range(B.shape[1]):
            w += B[j, a] * k[Q, a]
            u += B[j, a] * k[UQ, a]
        feat[W, j] += feat[D, j] * w
        feat[U, j] += feat[D, j] * u
    k[Q] = 0.0
    k[UQ] = 0.0


@kernel
def whole(feat: Float, B: Float, k: Float) -> None:
    """Do the same, called from outside a kernel."""
    multiply_out(feat, B, k)


@vectorised
def project(feat: Float, B: Float, f: Float) -> None:
    """Write Bᵀw of a w that is multiplied out; O(dτ)."""
    f[:] = 0.0
    for j in range(B.shape[0]):
        w = feat[W, j]
        if w != 0.0:
            for a in range(B.shape[1]):
                f[a] += w * B[j, a]


@vectorised
def _resize(table: Table, how: Visit, B: Float, M: Float, k: Float, j: int) -> None:
    """Take the scale of feature ``j`` from the class moments; its weight follows."""
    feat, to_pos, to_neg = table.feat, table.stats[TO_POS], table.stats[TO_NEG]
    if not off_scale(feat, j, to_pos, to_neg, how.l2, _TOLERANCE):
        return
    old = feat[D, j]
    second = second_moment(feat, j, to_pos, to_neg)
    new = fitting_scale(second, ridge(feat, j, how.l2))
    q = 0.0
    u = 0.0
    for a in range(B.shape[1]):
        q += B[j, a] * k[Q, a]
        u += B[j, a] * k[UQ, a]
    growth = new / old - 1.0 if old > 0.0 else 0.0
    w = feat[W, j] + old * q
    past = feat[U, j] + old * u
    change = w * growth
    feat[D, j] = new
    feat[W, j] = w + change - new * q
    feat[U, j] = past + past * growth - new * u
    for a in range(B.shape[1]):
        c = (new - old) * B[j, a]
        k[F, a] += change * B[j, a]
        if c != 0.0:
            for b in range(B.shape[1]):
                M[a, b] += c * B[j, b]


@rowwise
def resize_row(
    X: Rows, i: int, table: Table, how: Visit, B: Float, M: Float, k: Float
) -> None:
    """Rescale the features that a step along row ``i`` moves."""
    for m in stored(X, i):
        j, x = entry(X, i, m)
        if x != 0.0 and table.ref[j] == 0.0:
            _resize(table, how, B, M, k, int(j))
    for m in range(how.listed[0]):
        _resize(table, how, B, M, k, int(how.listed[m + 1]))


@vectorised
def _add_multiple(c: float, row: Float, out: Float) -> None:
    for a in range(out.shape[0]):
        out[a] += c * row[a]


@rowwise
def gather_row(X: Rows, i: int, table: Table, how: Visit, B: Float, u: Float) -> None:
    """Write BᵀD x̃ to ``u``."""
    u[:] = 0.0
    for k in stored(X, i):
        j, x, _ = engine.seen(X, i, k, table.ref)
        _add_multiple(table.feat[D, j] * x, B[j], u)
    for k in engine.others(X, how.listed):
        j = how.listed[k]
        _add_multiple(table.feat[D, j] * -table.ref[j], B[j], u)


@rowwise
def spread_row(
    X: Rows,
    i: int,
    table: Table,
    how: Visit,
    B: Float,
    e: Float,
    start: int,
    c: float,
    past: float,
) -> None:
    """Add x̃eᵀ to the columns of B from ``start``, c D x̃ to w, ``past`` D x̃ to u.

    A feature with a reference point and no scale has been constant: its x̃ is rounding.
    """
    feat, ref, stop = table.feat, table.ref, start + e.shape[0]
    for k in stored(X, i):
        j, x, _ = engine.seen(X, i, k, ref)
        feat[W, j] += c * (feat[D, j] * x)
        feat[U, j] += past * (feat[D, j] * x)
        if feat[D, j] > 0.0 or ref[j] == 0.0:
            _add_multiple(x, e, B[j, start:stop])
    for k in engine.others(X, how.listed):
        j = how.listed[k]
        x = -ref[j]
        feat[W, j] += c * (feat[D, j] * x)
        feat[U, j] += past * (feat[D, j] * x)
        if feat[D, j] > 0.0:
            _add_multiple(x, e, B[j, start:stop])


@kernel
def rescale(table: Table, how: Visit, B: Float, M: Float, rho: Float) -> None:
    """Take reference points and scales from the class moments; O(dτ²)."""
    feat, ref, before = table.feat, table.ref, table.ref.copy()
    engine.renew(table, how)
    M[:] = 0.0
    for j in range(B.shape[0]):
        shift = ref[j] - before[j]
        if shift != 0.0:
            _add_multiple(-shift, rho, B[j])
        if feat[D, j] == 0.0:  # it has been constant: what is left is rounding
            B[j] = 0.0
            continue
        for a in range(B.shape[1]):
            c = feat[D, j] * B[j, a]
            if c != 0.0:
                _add_multiple(c, B[j], M[a])
