r"""Score expressions: the score of a model as one expression, for export and reports.

.. math:: s(x) = b + w \cdot z + \sum_k a_k\, g(\theta_k \cdot z + \varphi_k)

A linear model has z = x and no sum. A kernel model uses some columns of x,
:math:`z = (x - \text{centre}) \cdot \text{unit}`, clipped to low and high. With g the
cosine, the sum has Fourier features; with :math:`g(t) = \exp(t - \tfrac12 \|z\|^2)` and
:math:`\varphi_k = -\tfrac12 \|\theta_k\|^2`, Gaussian kernels about the landmarks θ.
"""

from typing import Any, NamedTuple

import numpy as np

from aucmax.core.rows import Float

GAUSSIAN, COSINE = "gaussian", "cosine"


class Units(NamedTuple):
    """The sum over k: Fourier features or kernels."""

    kind: str
    directions: Float  # (d, m) θ
    phases: Float  # (m,) φ
    amplitudes: Float  # (m,) a

    @classmethod
    def gaussian(cls, landmarks: Float, amplitudes: Float) -> "Units":
        """Return Gaussian kernels at the landmarks, which are columns."""
        phases = -0.5 * np.einsum("ij,ij->j", landmarks, landmarks)
        return cls(GAUSSIAN, landmarks, phases, amplitudes)


class ScoreExpression(NamedTuple):
    """Intercept b, weights w; for a kernel model, also its scaling and its sum."""

    intercept: float
    weights: Float
    scaling: Any = None  # arrays: columns, centre, unit, low, high
    units: Units | None = None

    def indices(self) -> Any:
        """Return the feature of x that each weight belongs to."""
        every = np.arange(len(self.weights))
        return every if self.scaling is None else self.scaling.columns

    def slopes(self) -> tuple[Any, Float]:
        """Return features of x and the slope of the linear part along each."""
        if self.scaling is None:
            return self.indices(), self.weights
        return self.indices(), self.weights * self.scaling.unit
