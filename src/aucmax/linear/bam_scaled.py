"""Feature scales of the penalty of BAMCV; see :mod:`aucmax.linear.bam_cv`."""

import numpy as np

from aucmax.core.rows import Float
from aucmax.linear.bam import FeatureStatistics
from aucmax.linear.solvers.newton import Coordinates, Ridge

# The path ends at this ridge, for features of unit scale, or after so many decades if
# there are too many features for covariances.
_LEAST, _DECADES = 5e-7, 6.0
_SMALL = 0.25  # quantile of the variances that _LEAST is relative to


class ScaledStatistics(FeatureStatistics):
    """Feature statistics for the ridge (l2/2) Σ (scale w)²."""

    def __init__(self, stats: FeatureStatistics, scale: Float) -> None:
        super().__init__(stats.X, stats.varies, stats.moments, stats.H, stats.system)
        self.scale = np.where(self.varies, scale, 0.0)
        self.square = self.scale**2
        self._known: dict[float, Coordinates] = {}

    def coordinates(self, l2: Ridge) -> Coordinates:
        """Return coordinates in which the curvature at zero is about one."""
        key = float(np.max(l2, initial=0.0))  # ridges differ by a factor only
        if key not in self._known:
            self._known[key] = super().coordinates(l2)
        return self._known[key]

    def penalty_path(self, count: int) -> Float:
        """Return penalties from one that shrinks all weights to a negligible one."""
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


def standard_deviations(stats: FeatureStatistics) -> Float:
    """Return the standard deviations of the features, over rows of both classes."""
    weight, _, mean, variance, _ = stats.moments
    share = weight / weight.sum()
    gap = mean[0] - mean[1]
    # From the class variances: a mean of squares far from zero is rounding error.
    return np.sqrt(share @ variance + share.prod() * gap**2)


def is_better(aucs: Float, others: Float) -> bool:
    """Return whether the best mean AUC is higher by more than its standard error."""
    flat, other = (a.reshape(-1, a.shape[-1]) for a in (aucs, others))
    gain = flat[flat.mean(axis=1).argmax()] - other[other.mean(axis=1).argmax()]
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
    return bool(gain.mean() > error)
