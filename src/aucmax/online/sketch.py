r"""Sketches of the class covariances for OPAUCr, and their inner products.

:mod:`aucmax.online.opaucr` has the algebra. B = [Z₊ Σ₊ Z₋ Σ₋] is (d, m), a row for each
feature; M = BᵀDB; ``k`` has vectors of m numbers: q, with w = W + D B q; its part of
the average; f = Bᵀw; and [ρ₊ n₊ ρ₋ n₋], the sum of all e so far.
"""

import numpy as np

from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.rows import Float, Rows, entry, rowwise, stored
from aucmax.online.engine import Table, Visit, renew, scales, weights
from aucmax.online.engine.centred_rows import others, seen
from aucmax.online.engine.feature_table import (
    average_part,
    fitting_scale,
    is_off_scale,
    mean_square,
    ridge,
)
from aucmax.online.engine.random_numbers import MODULI, advance

# Slots of k.
Q, UQ, F, RHO = range(4)
# Relative error up to which a scale is kept: a change costs O(τ²).
_TOLERANCE = 0.2


@inlined
def draw(seed: Float, size: float, e: Float) -> None:
    """Fill all but the last place of ``e`` with N(0, size²/τ), by Box and Muller."""
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
    """Update M, f, ρ and u for B + x̃eᵀ, with e in the columns from ``own`` on."""
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
    """Write s_t, with which the gradient is residual x̃ - B s_t.

    Returns, in the metric of the steps, the squared norm of x - c, c the mean of the
    ``other`` class, and the trace of its Ŝ.
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
    """Step along the columns of B; the caller updates W."""
    for j in range(u.shape[0]):
        s = 0.0
        for a in range(u.shape[0]):
            s += M[j, a] * s_t[a]
        k[F, j] += eta * (s - residual * u[j])
        k[Q, j] += eta * s_t[j]
        k[UQ, j] += past * (eta * s_t[j])


@vectorised
def multiply_out(table: Table, B: Float, k: Float) -> None:
    """Add D B q to W, and its part of the average to u; O(dτ)."""
    w, u, scale = weights(table), average_part(table), scales(table)
    for j in range(B.shape[0]):
        q = past = 0.0
        for a in range(B.shape[1]):
            q += B[j, a] * k[Q, a]
            past += B[j, a] * k[UQ, a]
        w[j] += scale[j] * q
        u[j] += scale[j] * past
    k[Q] = 0.0
    k[UQ] = 0.0


@kernel
def whole(table: Table, B: Float, k: Float) -> None:
    """Call ``multiply_out`` from Python."""
    multiply_out(table, B, k)


@vectorised
def project(table: Table, B: Float, f: Float) -> None:
    """Write f = Bᵀw after ``multiply_out``; O(dτ)."""
    f[:] = 0.0
    for j in range(B.shape[0]):
        w = weights(table)[j]
        if w != 0.0:
            for a in range(B.shape[1]):
                f[a] += w * B[j, a]


@vectorised
def _resize(table: Table, how: Visit, B: Float, M: Float, k: Float, j: int) -> None:
    """Update the scale of feature ``j`` and rescale its weight."""
    if not is_off_scale(table, j, how.l2, _TOLERANCE):
        return
    w, u, scale = weights(table), average_part(table), scales(table)
    old = scale[j]
    new = fitting_scale(mean_square(table, j), ridge(table.feat, j, how.l2))
    q = p = 0.0
    for a in range(B.shape[1]):
        q += B[j, a] * k[Q, a]
        p += B[j, a] * k[UQ, a]
    growth = new / old - 1.0 if old > 0.0 else 0.0
    whole_w, past = w[j] + old * q, u[j] + old * p
    change = whole_w * growth
    scale[j] = new
    w[j] = whole_w + change - new * q
    u[j] = past + past * growth - new * p
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
    """Update the scales of the features that a step along row ``i`` moves."""
    for m in stored(X, i):
        j, x = entry(X, i, m)
        if x != 0.0 and table.ref[j] == 0.0:
            _resize(table, how, B, M, k, int(j))
    for m in range(how.listed[0]):
        _resize(table, how, B, M, k, int(how.listed[m + 1]))


@vectorised
def _add_multiple(c: float, row: Float, out: Float) -> None:
    """Add c times ``row`` to ``out``."""
    for a in range(out.shape[0]):
        out[a] += c * row[a]


@rowwise
def gather_row(X: Rows, i: int, table: Table, how: Visit, B: Float, u: Float) -> None:
    """Write BᵀD x̃ to ``u``."""
    u[:] = 0.0
    scale = scales(table)
    for k in stored(X, i):
        j, x, _ = seen(X, i, k, table.ref)
        _add_multiple(scale[j] * x, B[j], u)
    for k in others(X, how.listed):
        j = how.listed[k]
        _add_multiple(scale[j] * -table.ref[j], B[j], u)


@rowwise
def add_outer_row(
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

    A feature with a reference point but no scale has been constant: x̃ is rounding.
    """
    w, u, scale = weights(table), average_part(table), scales(table)
    ref, stop = table.ref, start + e.shape[0]
    for k in stored(X, i):
        j, x, _ = seen(X, i, k, ref)
        w[j] += c * (scale[j] * x)
        u[j] += past * (scale[j] * x)
        if scale[j] > 0.0 or ref[j] == 0.0:
            _add_multiple(x, e, B[j, start:stop])
    for k in others(X, how.listed):
        j = how.listed[k]
        x = -ref[j]
        w[j] += c * (scale[j] * x)
        u[j] += past * (scale[j] * x)
        if scale[j] > 0.0:
            _add_multiple(x, e, B[j, start:stop])


@kernel
def rescale(table: Table, how: Visit, B: Float, M: Float, rho: Float) -> None:
    """Recompute reference points and scales; O(dτ²)."""
    scale, ref, before = scales(table), table.ref, table.ref.copy()
    renew(table, how)
    M[:] = 0.0
    for j in range(B.shape[0]):
        shift = ref[j] - before[j]
        if shift != 0.0:
            _add_multiple(-shift, rho, B[j])
        if scale[j] == 0.0:  # constant so far: the rest is rounding
            B[j] = 0.0
            continue
        for a in range(B.shape[1]):
            c = scale[j] * B[j, a]
            if c != 0.0:
                _add_multiple(c, B[j], M[a])
