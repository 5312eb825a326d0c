"""Projections on balls and boxes."""

import numpy as np

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float
from aucmax.online.engine import Table
from aucmax.online.engine.feature_table import soft_threshold, unit_magnitudes


@inlined
def clip(value: float, bound: float) -> float:
    """Return the number nearest to ``value`` in [-bound, bound]."""
    return min(max(value, -bound), bound)


@kernel
def l1_threshold(magnitudes: Float, radius: float) -> float:
    """Return the soft threshold that brings Σ magnitudes down to ``radius``.

    Zero if it is not above. Michelot's algorithm: numbers below the threshold drop out
    and the threshold rises, until none drops out. A few rounds of O(d), and no sort to
    compile.
    """
    threshold = -np.inf
    kept = magnitudes.shape[0] + 1
    while True:
        total = 0.0
        above = 0
        for k in range(magnitudes.shape[0]):
            if magnitudes[k] > threshold:
                total += magnitudes[k]
                above += 1
        if above >= kept or above == 0:  # rounding must not add one again
            return max(threshold, 0.0)
        kept = above
        threshold = (total - radius) / above


@kernel
def project_weights(table: Table, radius: float) -> None:
    """Project the weights at unit scale on the l1 ball; O(d)."""
    soft_threshold(table, l1_threshold(unit_magnitudes(table), radius))
