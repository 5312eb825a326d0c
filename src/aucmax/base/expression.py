r"""The score of any model of this library as one formula, for other programs.

.. math:: s(x) = b + w \cdot z + \sum_k a_k\, g(\theta_k \cdot z + \varphi_k)

A linear model has z = x and no sum. With a map, of some columns of x,
:math:`z = (x - \text{centre}) \cdot \text{unit}`, cut off at low and high; with g the
cosine these are Fourier features; with :math:`g(t) = \exp(t - \tfrac12 \|z\|^2)` and
:math:`\varphi_k = -\tfrac12 \|\theta_k\|^2`, Gaussian kernels about the landmarks θ.
"""

from typing import Any, NamedTuple

import numpy as np

from aucmax.core.rows import Float

GAUSSIAN, COSINE = "gaussian", "cosine"


class Units(NamedTuple):
    """The sum over k."""

    kind: str
    directions: Float  # (d, m) θ
    phases: Float  # (m,) φ
    amplitudes: Float  # (m,) a

    @classmethod
    def gaussian(cls, landmarks: Float, amplitudes: Float) -> "Units":
        """Return kernels about landmarks, the columns."""
        phases = -0.5 * np.einsum("ij,ij->j", landmarks, landmarks)
        return cls(GAUSSIAN, landmarks, phases, amplitudes)


class ScoreExpression(NamedTuple):
    """A score: intercept b, weights w, and with a map its scaling and its sum."""

    intercept: float
    weights: Float
    scaling: Any = None  # arrays: columns, centre, unit, low, high
    units: Units | None = None

    def indices(self) -> Any:
        """Return which feature of x each weight is of."""
        every = np.arange(len(self.weights))
        return every if self.scaling is None else self.scaling.columns

    def slopes(self) -> tuple[Any, Float]:
        """Return features of x, and what the score gains by one more unit of each.

        What units add is left out: it is not the same everywhere.
        """
        if self.scaling is None:
            return self.indices(), self.weights
        return self.indices(), self.weights * self.scaling.unit
