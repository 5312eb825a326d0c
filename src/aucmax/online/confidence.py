r"""Soft confidence-weighted steps (SCW-I).

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
"""

import numpy as np

from aucmax.core.jit import inlined


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
