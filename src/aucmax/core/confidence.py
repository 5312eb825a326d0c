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
"""

import numpy as np

from aucmax.core.check import check_width
from aucmax.core.jit import inlined, vectorised
from aucmax.core.table import Float

# A variance below this share of the parts that it is the difference of is rounding.
ROUNDING = 1e-12


def identity(n_features: int, name: str) -> Float:
    """Return the lower triangle of the identity matrix, row after row."""
    check_width(
        n_features,
        0.5,
        f"{name} keeps a symmetric d x d matrix",
        "With covariance='diag' it keeps the diagonal.",
    )
    S = np.zeros(n_features * (n_features + 1) // 2)
    S[np.cumsum(np.arange(1, n_features + 1)) - 1] = 1.0
    return S


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
def products(E: Float, g: Float, out: Float) -> None:
    """Write the product of each row of E with g."""
    for a in range(E.shape[0]):
        s = 0.0
        for j in range(g.shape[0]):
            s += E[a, j] * g[j]
        out[a] = s


@vectorised
def add_scaled(c: float, u: Float, out: Float) -> None:
    """Add c u to ``out``."""
    for j in range(u.shape[0]):
        out[j] += c * u[j]


# Rank-one terms are subtracted four at a time: a matrix is then read and written once
# for four of them.


@vectorised
def subtract_outers(M: Float, T: Float, beta: Float, V: Float, r: int) -> None:
    """Subtract Σ β_l t_l v_lᵀ from M, over the first ``r`` rows of T and V."""
    for h in range(0, r, 4):
        h1, h2, h3 = min(h + 1, r - 1), min(h + 2, r - 1), min(h + 3, r - 1)
        v, v1, v2, v3 = V[h], V[h1], V[h2], V[h3]
        b1 = beta[h1] if h + 1 < r else 0.0
        b2 = beta[h2] if h + 2 < r else 0.0
        b3 = beta[h3] if h + 3 < r else 0.0
        for a in range(M.shape[0]):
            c, c1, c2, c3 = (
                beta[h] * T[h, a],
                b1 * T[h1, a],
                b2 * T[h2, a],
                b3 * T[h3, a],
            )
            if c != 0.0 or c1 != 0.0 or c2 != 0.0 or c3 != 0.0:
                row = M[a]
                for j in range(v.shape[0]):
                    row[j] -= c * v[j] + c1 * v1[j] + c2 * v2[j] + c3 * v3[j]


@vectorised
def subtract_squares(S: Float, beta: Float, V: Float, r: int) -> None:
    """Subtract Σ β_l v_l v_lᵀ from a triangle, row after row."""
    for h in range(0, r, 4):
        h1, h2, h3 = min(h + 1, r - 1), min(h + 2, r - 1), min(h + 3, r - 1)
        v, v1, v2, v3 = V[h], V[h1], V[h2], V[h3]
        b1 = beta[h1] if h + 1 < r else 0.0
        b2 = beta[h2] if h + 2 < r else 0.0
        b3 = beta[h3] if h + 3 < r else 0.0
        at = np.uint64(0)
        for j in range(v.shape[0]):
            c, c1, c2, c3 = beta[h] * v[j], b1 * v1[j], b2 * v2[j], b3 * v3[j]
            for k in range(np.uint64(j + 1)):
                S[at + np.uint64(k)] -= c * v[k] + c1 * v1[k] + c2 * v2[k] + c3 * v3[k]
            at += np.uint64(j + 1)
