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
from aucmax.core.products import dot
from aucmax.core.rows import Float
from aucmax.core.validation import check_width

# A variance below this fraction of the terms that it is a difference of is rounding.
ROUNDING = 1e-12


@inlined
def padded(length: int) -> int:
    """Round up to a multiple of eight, a whole cache line."""
    return -(-length // 8) * 8


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
    return S, np.zeros((-(-slots // 4) * 4, padded(slots) + len(i)))


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
    begin = R.shape[1] - e.shape[0]
    for b in range(R.shape[0]):
        out[b] = dot(R[b, begin:], e)
    of_weights = out[begin:]
    for j in range(e.shape[0]):
        at, length = row_start(j), 8 * ((j >> 3) + 1)
        row = S[at : at + length]
        of_weights[j] = dot(row, e)
        if e[j] != 0.0:
            add_multiple(e[j], row[: length - 8], of_weights)


@vectorised
def add_multiple(c: float, v: Float, out: Float) -> None:
    """Add c v to the first numbers of ``out``."""
    for j in range(v.shape[0]):
        out[j] += c * v[j]


@inlined
def subtract_square(S: Float, R: Float, beta: float, w: Float) -> None:
    """Subtract β wwᵀ from the covariance."""
    width, slots = R.shape[1], R.shape[0]
    for b in range(slots):
        line = b // 8 * 8
        add_multiple(-beta * w[b], w[line:], R[b, line:])
    of_weights = w[padded(slots) :]
    for j in range(width - padded(slots)):
        at, length = row_start(j), 8 * ((j >> 3) + 1)
        add_multiple(-beta * of_weights[j], of_weights[:length], S[at : at + length])
