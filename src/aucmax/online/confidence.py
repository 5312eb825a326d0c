r"""Soft confidence-weighted steps (SCW-I), and the covariance that they keep.

Wang, Zhao and Hoi (ICML 2012): the weights are a normal distribution N(μ, Σ), and a
step along z, whose score should be positive, is the smallest change,

.. math:: \min_{\mu, \Sigma} KL(N(\mu, \Sigma) \,\|\, N(\mu_t, \Sigma_t))
          + C \max(0, \phi \sqrt{z^T \Sigma z} - \mu \cdot z) ,

that raises the probability of a positive score to Φ(φ), or as far as C allows. With
v = zᵀΣz and m = μ·z before the step, and ψ = 1 + φ²/2, ζ = 1 + φ²: setting the
derivatives to zero gives

* μ += α Σz, α the multiplier of the loss, between 0 and C;
* Σ⁻¹ += (αφ/√u) zzᵀ with u = zᵀΣz after the step; so by Sherman and Morrison
  Σ -= β Σz zᵀΣ, β = αφ/(√u + vαφ), and u + αφv√u = v, which is quadratic in √u;
* if α < C the loss is zero: φ√u = m + αv, which is quadratic in α.

Beside the weights ω, scores e·ω of some rows e are kept, which are jointly normal with
ω and change by the same steps. With E these rows, the state has the covariance of
(Eω, ω), and a step changes it along w = cov((Eω, ω), z·ω). It has two parts:

* Σ is a lower triangle, row after row, each padded to a multiple of eight, the end of a
  cache line. Entries beyond the diagonal are there by symmetry, up to rounding.
* ``R`` has a row for each row e: its covariances with the scores of the rows from e on
  (earlier entries have no meaning), padded to a multiple of eight, then with all
  weights. So the numbers of a step along a row are contiguous.
"""

import numpy as np

from aucmax.core.jit import inlined, vectorised
from aucmax.core.rows import Float
from aucmax.core.validation import check_width

# A variance below this fraction of the terms that it is a difference of is rounding.
ROUNDING = 1e-12
TILE = 4  # rows updated at a time


@inlined
def padded(length: int) -> int:
    """Round up to a multiple of eight, a whole cache line."""
    return -(-length // 8) * 8


@inlined
def add_products(
    K: Float,
    at: int,
    length: int,
    rows: int,
    c: Float,
    first: int,
    V: Float,
    r: int,
    start: int,
    stop: int,
) -> None:
    """Add Σ c_l v_lᵀ over the first ``r`` rows of ``c`` and V to ``rows`` rows of K.

    These start at ``at``, ``length`` apart. They take the columns of ``c`` from
    ``first`` on and the columns of V from ``start`` to ``stop``.
    """
    for q in range(rows):
        here = at + q * length
        add_rows(c[:, first + q], V, r, start, stop, K[here : here + stop - start])


@inlined
def row_start(i: int) -> int:
    """Return the start of row i of a triangle."""
    return 8 * ((i >> 3) + 1) * (i - 4 * (i >> 3))


def identity(n_features: int, slots: int, name: str) -> tuple[Float, Float]:
    """Return Σ = I, and R without rows."""
    check_width(
        n_features,
        0.5,
        f"{name} keeps a symmetric d x d matrix",
        "With covariance='diag' it keeps the diagonal.",
    )
    i = np.arange(padded(n_features))  # padded for features to come
    ends = np.cumsum(8 * (i // 8 + 1))
    S = np.zeros(ends[-1])
    S[ends - 8 * (i // 8 + 1) + i] = 1.0
    return S, np.zeros((-(-slots // TILE) * TILE, -(-slots // 8) * 8 + len(i)))


@inlined
def confident_step(m: float, v: float, phi: float, C: float) -> tuple[float, float]:
    """Return α and √u of a step along z, of mean score ``m`` and variance ``v``.

    Of the two forms of a root of a quadratic, (-b + r)/a and c/(b + r), it uses the one
    that adds: the other cancels if the score is near its goal or the step long.
    """
    squared = phi * phi
    psi, zeta = 1.0 + 0.5 * squared, 1.0 + squared
    root = np.sqrt(0.25 * (m * squared) * (m * squared) + v * squared * zeta)
    if m > 0.0:
        goal = phi * np.sqrt(v)
        alpha = (goal - m) * (goal + m) / (v * (root + m * psi))
    else:
        alpha = (root - m * psi) / (v * zeta)
    alpha = min(C, max(0.0, alpha))
    shift = alpha * v * phi
    return alpha, 2.0 * v / (np.sqrt(shift * shift + 4.0 * v) + shift)


@inlined
def covary(S: Float, R: Float, e: Float, out: Float) -> None:
    """Write the covariances of the score of row ``e`` with all scores and weights.

    ``out`` has the layout of a row of R, and ``e`` is padded to a cache line.
    """
    flat, width = R.reshape(R.size), R.shape[1]
    begin = width - e.shape[0]
    for b in range(0, R.shape[0], 4):
        _multiply_four(flat, b * width + begin, width, e, out[b:])
    of_weights = out[begin:]
    for j in range(0, e.shape[0], 4):
        at, length = row_start(j), 8 * ((j >> 3) + 1)
        _multiply_four(S, at, length, e[:length], of_weights[j:])
        x = (e[j], e[j + 1], e[j + 2], e[j + 3])
        if x != (0.0, 0.0, 0.0, 0.0):  # the usual case in sparse rows
            _add_four(S, at, length, x, of_weights[: length - 8])


@vectorised
def _multiply_four(K: Float, at: int, length: int, e: Float, out: Float) -> None:
    """Write the products of ``e`` and four rows of K, ``length`` apart."""
    d = e.shape[0]
    a, b = K[at : at + d], K[at + length : at + length + d]
    at += 2 * length
    p, q = K[at : at + d], K[at + length : at + length + d]
    s = s1 = s2 = s3 = 0.0
    for k in range(d):
        s += a[k] * e[k]
        s1 += b[k] * e[k]
        s2 += p[k] * e[k]
        s3 += q[k] * e[k]
    out[0], out[1], out[2], out[3] = s, s1, s2, s3


@vectorised
def _add_four(
    K: Float,
    at: int,
    length: int,
    x: tuple[float, float, float, float],
    out: Float,
) -> None:
    """Add ``x`` times four rows of K, ``length`` apart."""
    d = out.shape[0]
    a, b = K[at : at + d], K[at + length : at + length + d]
    at += 2 * length
    p, q = K[at : at + d], K[at + length : at + length + d]
    for k in range(d):
        out[k] += x[0] * a[k] + x[1] * b[k] + x[2] * p[k] + x[3] * q[k]


@vectorised
def add_rows(c: Float, V: Float, r: int, start: int, stop: int, out: Float) -> None:
    """Add Σ c_l v_l over the first ``r`` rows of V, from ``start`` to ``stop``.

    Four at a time, so that ``out`` is read and written once for four rows.
    """
    for h in range(0, r, 4):
        h1, h2, h3 = min(h + 1, r - 1), min(h + 2, r - 1), min(h + 3, r - 1)
        v, v1 = V[h, start:stop], V[h1, start:stop]
        v2, v3 = V[h2, start:stop], V[h3, start:stop]
        c0, c1 = c[h], c[h1] if h + 1 < r else 0.0
        c2, c3 = c[h2] if h + 2 < r else 0.0, c[h3] if h + 3 < r else 0.0
        for j in range(out.shape[0]):
            out[j] += c0 * v[j] + c1 * v1[j] + c2 * v2[j] + c3 * v3[j]


@vectorised
def difference(a: Float, b: Float, start: int, stop: int, out: Float) -> None:
    """Write a - b from ``start`` to ``stop``."""
    x, y, o = a[start:stop], b[start:stop], out[start:stop]
    for j in range(o.shape[0]):
        o[j] = x[j] - y[j]


@vectorised
def follow(
    w: Float, step: float, drop: float, beta: float, m: Float, k: Float, v: Float
) -> None:
    """Update means, covariances with a row and variances for a step along ``w``."""
    for a in range(w.shape[0]):
        m[a] += step * w[a]
        k[a] += drop * w[a]
        v[a] -= beta * (w[a] * w[a])


@inlined
def workplace(size: int, width: int) -> tuple[Float, Float, Float]:
    """Return workspaces for ``size`` steps: their w, the same again, coefficients."""
    coefs = np.zeros((size, size + TILE))
    width = padded(width)
    return np.zeros((size + TILE, width)), np.zeros((size, width)), coefs


@inlined
def catch_up(coefs: Float, V: Float, r: int, start: int, stop: int) -> None:
    """Add Σ c_lr v_l over l < r to v_r, in whole cache lines."""
    flat, width = V.reshape(V.size), V.shape[1]
    add_products(flat, r * width + start, 0, 1, coefs, r, V, r, start, stop)


@inlined
def eliminate(coefs: Float, V: Float, r: int, start: int, stop: int) -> None:
    """Add Σ c_lh v_l over l < h to v_h for the first ``r`` rows, in whole cache lines.

    Up to TILE rows after them may change.
    """
    flat, width = V.reshape(V.size), V.shape[1]
    for h in range(0, r, TILE):
        at = h * width + start
        add_products(flat, at, width, TILE, coefs, h, V, h, start, stop)
        for q in range(1, min(TILE, r - h)):
            at += width
            add_products(flat, at, 0, 1, coefs[h:], h + q, V[h:], q, start, stop)


@inlined
def subtract_squares(
    S: Float, R: Float, beta: Float, V: Float, r: int, U: Float
) -> None:
    """Subtract Σ β_l v_l v_lᵀ over the first ``r`` rows of V; U is a workspace."""
    for h in range(r):
        _scale(-beta[h], V[h], U[h])
    flat, width, slots = R.reshape(R.size), R.shape[1], R.shape[0]
    for b in range(0, slots, TILE):
        line = b // 8 * 8
        add_products(flat, b * width + line, width, TILE, U, b, V, r, line, width)
    begin = padded(slots)
    for j in range(0, width - begin, TILE):
        at, length, to = row_start(j), 8 * ((j >> 3) + 1), begin + j
        add_products(S, at, length, TILE, U, to, V, r, begin, begin + length)


@vectorised
def _scale(c: float, v: Float, out: Float) -> None:
    """Write c v."""
    for j in range(v.shape[0]):
        out[j] = c * v[j]
