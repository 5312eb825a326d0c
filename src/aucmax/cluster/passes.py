"""What a worker does with its rows: scores of all, or Xᵀ u for u that follows of them.

The scores of a point are never kept: X w comes along with the other products of a pass
while the rows are in the processor's cache, which costs next to nothing. So there is no
state on the workers but X, and nothing to repair if one is lost.
"""

from collections.abc import Callable

import numpy as np

from aucmax.cluster.blocks import Block
from aucmax.core.products import times, transposed_times
from aucmax.core.rows import Float, cut_rows, row_bytes

_CACHED = 1 << 22  # bytes of X at a time

# From scores (k, n), signed weights and the number of the first row to u (m, n).
Slopes = Callable[[Float, Float, int], Float]


def backwards(block: Block, W: Float, slopes: Slopes) -> Float:
    """Return Xᵀ u, and the sum of u behind it, for each u that follows of X W."""
    rows, (n, d) = block.rows, block.X.shape
    size = max(int(max(_CACHED, 64 * d) / max(row_bytes(rows), 1.0)), 1)
    total: Float | None = None
    for start in range(0, max(n, 1), size):
        stop = min(start + size, n)
        part = cut_rows(rows, start, stop)
        u = slopes(times(part, W), block.signed[start:stop], start)
        found = np.empty((len(u), d + 1))
        found[:, :d] = transposed_times(part, u, d)
        found[:, d] = u.sum(axis=1)
        total = found if total is None else total + found
    assert total is not None
    return total
