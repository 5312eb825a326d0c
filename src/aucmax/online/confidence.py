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
change by the same steps: with E these rows, what is kept is the covariance of (Eω, ω),
and a step changes it along w = cov((Eω, ω), z·ω). It is in two parts:

* Σ is a lower triangle, row after row, each as long as the next multiple of eight, that
  is to the end of a cache line. Beyond the diagonal is what is there by symmetry, but
  for rounding.
* ``R`` has a row for each row e: its covariances with the scores of the rows from it
  on, what is before means nothing, and from the next multiple of eight on with all the
  weights. So what a step along a row needs stands side by side.
"""

import numpy as np

from aucmax.core.jit import inlined, vectorised
from aucmax.core.rows import Float
from aucmax.core.validation import check_width

# A variance below this share of the parts that it is the difference of is rounding.
ROUNDING = 1e-12
TILE = 4  # rows that products are added to at a time


@inlined
def padded(length: int) -> int:
    """Return the next multiple of eight: numbers of whole cache lines."""
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
    """Add Σ c_l v_lᵀ over the first ``r`` rows of ``c`` and V to some rows in K.

    The first of them begins at ``at``, the next ``length`` later. Of ``c`` as many
    columns count, from ``first`` on, and of V those from ``start`` to ``stop``.
    """
    for q in range(rows):
        here = at + q * length
        add_rows(c[:, first + q], V, r, start, stop, K[here : here + stop - start])


@inlined
def row_start(i: int) -> int:
    """Return where row i of a triangle begins."""
    return 8 * ((i >> 3) + 1) * (i - 4 * (i >> 3))


def identity(n_features: int, slots: int, name: str) -> tuple[Float, Float]:
    """Return Σ of unit weights, and R of no rows, in ``slots``."""
    check_width(
        n_features,
        0.5,
        f"{name} keeps a symmetric d x d matrix",
        "With covariance='diag' it keeps the diagonal.",
    )
    i = np.arange(padded(n_features))  # features to come are in the rest
    ends = np.cumsum(8 * (i // 8 + 1))
    S = np.zeros(ends[-1])
    S[ends - 8 * (i // 8 + 1) + i] = 1.0
    return S, np.zeros((-(-slots // TILE) * TILE, -(-slots // 8) * 8 + len(i)))


@inlined
def confident_step(m: float, v: float, phi: float, C: float) -> tuple[float, float]:
    """Return α and √u of a step along z, of mean score ``m`` and variance ``v``.

    Of the two forms of a root of a quadratic, (-b + r)/a and c/(b + r), each is the one
    that adds: the other would be a small difference of large numbers where the score is
    near its goal, or the step long.
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
    """Write the covariances of the score of the row ``e`` with all scores and weights.

    The weights begin where they do in R, and ``e`` ends with a whole cache line.
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
        if x != (0.0, 0.0, 0.0, 0.0):  # mostly they are, if rows are sparse
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

    Four at a time: ``out`` is then read and written once for four.
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
    """Write a - b, between ``start`` and ``stop``."""
    x, y, o = a[start:stop], b[start:stop], out[start:stop]
    for j in range(o.shape[0]):
        o[j] = x[j] - y[j]


@vectorised
def follow(
    w: Float, step: float, drop: float, beta: float, m: Float, k: Float, v: Float
) -> None:
    """Bring means, covariances with a row and variances past a step along ``w``."""
    for a in range(w.shape[0]):
        m[a] += step * w[a]
        k[a] += drop * w[a]
        v[a] -= beta * (w[a] * w[a])


@inlined
def workplace(size: int, width: int) -> tuple[Float, Float, Float]:
    """Return room for ``size`` steps: their w, as much again, and what they share."""
    coefs = np.zeros((size, size + TILE))
    width = padded(width)
    return np.zeros((size + TILE, width)), np.zeros((size, width)), coefs


@inlined
def catch_up(coefs: Float, V: Float, r: int, start: int, stop: int) -> None:
    """Add Σ c_lr v_l over l < r to v_r, from ``start`` to ``stop``, whole lines."""
    flat, width = V.reshape(V.size), V.shape[1]
    add_products(flat, r * width + start, 0, 1, coefs, r, V, r, start, stop)


@inlined
def eliminate(coefs: Float, V: Float, r: int, start: int, stop: int) -> None:
    """Add Σ c_lh v_l over l < h to v_h, for the first ``r`` rows.

    From ``start`` to ``stop``, whole cache lines. Up to TILE rows after may change.
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
    """Subtract Σ β_l v_l v_lᵀ over the first ``r`` rows of V; U is room for as many."""
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
    for j in range(v.shape[0]):
        out[j] = c * v[j]
