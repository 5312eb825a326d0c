r"""The score of any model of this library as one formula, for other programs.

.. math:: s(x) = b + w \cdot x + \sum_k a_k\, g(\theta_k \cdot z + \varphi_k),
          \qquad z = (x - \text{centre}) \cdot \text{unit}

A linear model has no sum. With g the cosine these are Fourier features; with
:math:`g(t) = \exp(t - \tfrac12 \|z\|^2)` and :math:`\varphi_k = -\tfrac12
\|\theta_k\|^2` they are Gaussian kernels about the landmarks θ.
"""

from typing import NamedTuple

import numpy as np

from aucmax.core.rows import Float

GAUSSIAN, COSINE = "gaussian", "cosine"


class Units(NamedTuple):
    """The sum over k."""

    kind: str
    centre: Float  # (d,)
    unit: Float  # (d,)
    directions: Float  # (d, m) θ
    phases: Float  # (m,) φ
    amplitudes: Float  # (m,) a

    @classmethod
    def gaussian(
        cls, centre: Float, unit: Float, landmarks: Float, amplitudes: Float
    ) -> "Units":
        """Return kernels about landmarks, the columns."""
        phases = -0.5 * np.einsum("ij,ij->j", landmarks, landmarks)
        return cls(GAUSSIAN, centre, unit, landmarks, phases, amplitudes)


class Formula(NamedTuple):
    """A score: intercept b, weights w of the features as given, and perhaps a sum."""

    intercept: float
    weights: Float
    units: Units | None = None
