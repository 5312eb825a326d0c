r"""Soft confidence-weighted steps (SCW-I), and the covariance that they keep.

Wang, Zhao and Hoi (ICML 2012): the weights are a normal distribution N(μ, Σ), and a
step along z, whose score ought to be positive, is the least change of it,

.. math:: \min_{\mu, \Sigma} KL(N(\mu, \Sigma) \,\|\, N(\mu_t, \Sigma_t))
          + C \max(0, \phi \sqrt{z^T \Sigma z} - \mu \cdot z) ,

that lifts the chance of a positive score to Φ(φ), or as far as C allows. With
v = zᵀΣz and m = μ·z before the step, and ψ = 1 + φ²/2, ζ = 1 + φ²: setting the
derivatives to zero gives

* μ += α Σz, α the multiplier of the loss, between 0 and C;
* Σ⁻¹ += (αφ/√u) zzᵀ with u = zᵀΣz after the step; so by Sherman and Morrison
  Σ -= β Σz zᵀΣ, β = αφ/(√u + vαφ), and u + αφv√u = v, which is quadratic in √u;
* if α < C the loss is zero: φ√u = m + αv, which is quadratic in α.

Beside the weights ω, rows e may be kept whose scores e·ω, jointly normal with them,
change by the same steps: with E these rows, K is the covariance of (Eω, ω), and a step
changes it along w = cov((Eω, ω), z·ω). K is a lower triangle, row after row, each as
long as the next multiple of eight, that is to the end of a cache line: SIMD is half as
fast across these. What is above the diagonal means nothing.
"""

import numpy as np

from aucmax.core.check import check_width
from aucmax.core.jit import inlined, vectorised
from aucmax.core.table import Float

# A variance below this share of the parts that it is the difference of is rounding.
ROUNDING = 1e-12


@inlined
def row_start(i: int) -> int:
    """Return where row i of a triangle begins."""
    return 8 * ((i >> 3) + 1) * (i - 4 * (i >> 3))


@inlined
def place(i: int, j: int) -> int:
    """Return where the covariance of i and j is."""
    return row_start(i) + j if i >= j else row_start(j) + i


@inlined
def aligned(rows: int, length: int) -> Float:
    """Return an array of zeros whose rows begin and end with cache lines."""
    length = (length + 7) // 8 * 8
    flat = np.zeros(rows * length + 7)
    skip = -(flat.ctypes.data // 8) % 8
    return flat[skip : skip + rows * length].reshape(rows, length)


def identity(n_features: int, slots: int, name: str) -> Float:
    """Return the joint covariance of no rows, in ``slots``, and unit weights."""
    check_width(
        n_features,
        0.5,
        f"{name} keeps a symmetric d x d matrix",
        "With covariance='diag' it keeps the diagonal.",
    )
    i = np.arange(-(-(slots + n_features) // 8) * 8)  # features to come are in the rest
    ends = np.cumsum(8 * (i // 8 + 1))
    K = np.zeros(ends[-1])
    K[(ends - 8 * (i // 8 + 1) + i)[slots:]] = 1.0
    return K


@inlined
def confident_step(m: float, v: float, phi: float, C: float) -> tuple[float, float]:
    """Return α and √u of a step along z, of mean score ``m`` and variance ``v``."""
    squared = phi * phi
    psi, zeta = 1.0 + 0.5 * squared, 1.0 + squared
    root = np.sqrt(0.25 * (m * squared) * (m * squared) + v * squared * zeta)
    alpha = min(C, max(0.0, (root - m * psi) / (v * zeta)))
    shift = alpha * v * phi
    return alpha, 0.5 * (np.sqrt(shift * shift + 4.0 * v) - shift)


@vectorised
def dot(a: Float, b: Float) -> float:
    """Return a·b."""
    s = 0.0
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


@vectorised
def covary(K: Float, e: Float, out: Float) -> None:
    """Write the covariances of the score of the row ``e`` with all that K has."""
    slots = out.shape[0] - e.shape[0]
    for i in range(slots):
        out[i] = 0.0
    for j in range(e.shape[0]):
        at = row_start(slots + j)
        row, of_weights = K[at : at + slots + j], K[at + slots : at + slots + j]
        s = 0.0
        for k in range(j):
            s += of_weights[k] * e[k]
        if e[j] != 0.0:  # few of them, if rows are sparse
            for i in range(slots + j):
                out[i] += row[i] * e[j]
        out[slots + j] = s + K[at + slots + j] * e[j]


# Below, terms are added four at a time: what they are added to is then read and written
# once for four of them. Where there are two rows to add to, they are read once for two.


@vectorised
def add_rows(c: Float, V: Float, r: int, start: int, stop: int, out: Float) -> None:
    """Add Σ c_l v_l over the first ``r`` rows of V, between ``start`` and ``stop``."""
    o = out[start:stop]
    for h in range(0, r, 4):
        h1, h2, h3 = min(h + 1, r - 1), min(h + 2, r - 1), min(h + 3, r - 1)
        v, v1 = V[h, start:stop], V[h1, start:stop]
        v2, v3 = V[h2, start:stop], V[h3, start:stop]
        c0, c1 = c[h], c[h1] if h + 1 < r else 0.0
        c2, c3 = c[h2] if h + 2 < r else 0.0, c[h3] if h + 3 < r else 0.0
        for j in range(o.shape[0]):
            o[j] += c0 * v[j] + c1 * v1[j] + c2 * v2[j] + c3 * v3[j]


@vectorised
def follow(
    w: Float, step: float, drop: float, beta: float, m: Float, k: Float, v: Float
) -> None:
    """Bring means, covariances with a row and variances past a step along ``w``."""
    for a in range(w.shape[0]):
        m[a] += step * w[a]
        k[a] += drop * w[a]
        v[a] -= beta * (w[a] * w[a])


@vectorised
def _add_four(
    p: Float,
    q: Float,
    v: Float,
    v1: Float,
    v2: Float,
    v3: Float,
    c: tuple[float, float, float, float],
    d: tuple[float, float, float, float],
) -> None:
    for k in range(p.shape[0]):
        p[k] += c[0] * v[k] + c[1] * v1[k] + c[2] * v2[k] + c[3] * v3[k]
        q[k] += d[0] * v[k] + d[1] * v1[k] + d[2] * v2[k] + d[3] * v3[k]


@inlined
def eliminate(coefs: Float, V: Float, r: int, start: int) -> None:
    """Add Σ c_hl v_l over l < h to v_h, for the first ``r`` rows, from ``start`` on."""
    stop = V.shape[1]
    for h in range(0, r - 1, 2):
        c, d, p, q = coefs[h], coefs[h + 1], V[h, start:], V[h + 1, start:]
        fours = h >> 2 << 2
        for g in range(0, fours, 4):
            v, v1 = V[g, start:], V[g + 1, start:]
            v2, v3 = V[g + 2, start:], V[g + 3, start:]
            four = (c[g], c[g + 1], c[g + 2], c[g + 3])
            _add_four(p, q, v, v1, v2, v3, four, (d[g], d[g + 1], d[g + 2], d[g + 3]))
        add_rows(c[fours:], V[fours:], h - fours, start, stop, V[h])
        add_rows(d[fours:], V[fours:], h + 1 - fours, start, stop, V[h + 1])
    if r % 2 == 1:
        add_rows(coefs[r - 1], V, r - 1, start, stop, V[r - 1])


@inlined
def subtract_squares(K: Float, beta: Float, V: Float, r: int) -> None:
    """Subtract Σ β_l v_l v_lᵀ over the first ``r`` rows of V from K."""
    fours = (r + 1) // 4 * 4
    for h in range(0, fours, 4):
        last = beta[h + 3] if h + 3 < r else 0.0
        _subtract_four(K, beta, V, h, min(h + 3, r - 1), last)
    if fours < r:
        _subtract_two(K, beta, V, fours, r - 1, beta[r - 1] if fours < r - 1 else 0.0)


@inlined
def _subtract_four(K: Float, beta: Float, V: Float, h: int, h3: int, b3: float) -> None:
    v, v1, v2, v3 = V[h], V[h + 1], V[h + 2], V[h3]
    b0, b1, b2 = beta[h], beta[h + 1], beta[h + 2]
    at = 0
    for j in range(0, V.shape[1], 2):
        i, length = j + 1, 8 * ((j >> 3) + 1)
        row, below = K[at : at + length], K[at + length : at + 2 * length]
        at += 2 * length
        c = (-b0 * v[j], -b1 * v1[j], -b2 * v2[j], -b3 * v3[j])
        d = (-b0 * v[i], -b1 * v1[i], -b2 * v2[i], -b3 * v3[i])
        _add_four(row, below, v, v1, v2, v3, c, d)


@vectorised
def _subtract_two(K: Float, beta: Float, V: Float, h: int, h1: int, b1: float) -> None:
    v, v1, b0 = V[h], V[h1], beta[h]
    at = 0
    for j in range(0, V.shape[1], 2):
        length = 8 * ((j >> 3) + 1)
        row, below = K[at : at + length], K[at + length : at + 2 * length]
        at += 2 * length
        c0, c1, d0, d1 = b0 * v[j], b1 * v1[j], b0 * v[j + 1], b1 * v1[j + 1]
        for k in range(length):
            row[k] -= c0 * v[k] + c1 * v1[k]
            below[k] -= d0 * v[k] + d1 * v1[k]
