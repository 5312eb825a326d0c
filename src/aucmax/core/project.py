"""Projections on balls and boxes."""

import numpy as np

from aucmax.core.jit import inlined, kernel
from aucmax.core.table import Float


@inlined
def clip(value: float, bound: float) -> float:
    """Return the number nearest to ``value`` in [-bound, bound]."""
    return min(max(value, -bound), bound)


@kernel
def l1_threshold(magnitudes: Float, radius: float) -> float:
    """Return the soft threshold that brings Σ magnitudes down to ``radius``.

    Zero if it is not above. O(d log d); Duchi et al., "Efficient projections onto the
    l1-ball", ICML 2008.
    """
    descending = np.sort(magnitudes)[::-1]
    total = 0.0
    threshold = 0.0
    for k in range(descending.shape[0]):
        total += descending[k]
        candidate = (total - radius) / (k + 1.0)
        if candidate >= descending[k]:
            break
        threshold = candidate
    return max(threshold, 0.0)
