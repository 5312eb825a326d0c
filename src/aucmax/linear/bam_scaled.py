"""BAM with a ridge on the weights of features of unit scale, whatever that is.

See :mod:`aucmax.linear.bam_cv`.
"""

from typing import Any

import numpy as np

from aucmax.core.rows import Float
from aucmax.linear.bam import Landscape
from aucmax.linear.solvers.newton import Coordinates, Objective, Ridge

# The path ends at this ridge, for features of unit scale, or after so many decades if
# there are too many features for covariances.
_LEAST, _DECADES = 5e-7, 6.0
_SMALL = 0.25  # of raw features: relative to the variance of a small one


class Scaled(Landscape):
    """The same with the ridge (l2/2) Σ (scale w)²."""

    def __init__(self, land: Landscape, scale: Float) -> None:
        super().__init__(
            land.X, land.varies, land.weight, land.mean, land.variance, land.often
        )
        self.H, self.system, self.land = land.H, land.system, land
        self.scale = np.where(self.varies, scale, 0.0)
        self.square = self.scale**2
        self._known: dict[float, Coordinates] = {}

    def objective(self, share: Any, loss: str) -> Objective:
        """Return J, but for the ridge."""
        return self.land.objective(share, loss)

    def coordinates(self, l2: Ridge) -> Coordinates:
        """Return those in which the curvature at zero is about one."""
        key = float(np.max(l2, initial=0.0))  # they differ by a factor only
        if key not in self._known:
            self._known[key] = super().coordinates(l2)
        return self._known[key]

    def spread(self, count: int) -> Float:
        """Return penalties from one that leaves next to nothing to next to none."""
        unit = 1.0 / np.where(self.varies, self.scale, np.inf)
        if self.H is None:
            high = 2.0 * (self.system.largest(unit) if self.system else 1.0)
            return np.geomspace(high, high * 10**-_DECADES, count)
        if not len(self.H):
            return np.geomspace(1.0, _LEAST, count)
        unit = unit[self.varies]
        H = self.H * unit * unit[:, np.newaxis]
        least = _LEAST * float(np.quantile(np.diag(H), _SMALL))
        return np.geomspace(2.0 * float(np.linalg.eigvalsh(H)[-1]), least, count)


def deviation(land: Landscape) -> Float:
    """Return the standard deviations of the features, over rows of both classes."""
    share = land.weight / land.weight.sum()
    gap = land.mean[0] - land.mean[1]
    # Variances of classes are of centred values where there are covariances, and far
    # from zero the mean of squares is rounding.
    return np.sqrt(share @ land.variance + share.prod() * gap**2)


def better(areas: Float, others: Float) -> bool:
    """Return whether the best mean is higher, by more than its standard error."""
    flat, other = (a.reshape(-1, a.shape[-1]) for a in (areas, others))
    gain = flat[flat.mean(axis=1).argmax()] - other[other.mean(axis=1).argmax()]
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
    return bool(gain.mean() > error)
