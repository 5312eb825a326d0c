"""What a worker does with its rows: scores of all, and Xᵀ u for u that follows of them.

Rows are gone over in pieces that stay in the processor's cache, so that X comes out of
memory once for scores and for Xᵀ u. What is worked out for the rows of a piece is
written over that of the piece before. For Dask's workers give memory back as soon as it
is free (``MALLOC_TRIM_THRESHOLD_``): arrays as long as a block would be new pages each
time, and cost more than what they are for.

The scores of a point are not kept, but worked out with the other products of a pass,
which costs next to nothing. So there is no state on the workers but X, and nothing to
repair if one is lost.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from aucmax.cluster.blocks import Block
from aucmax.core.jit import kernel
from aucmax.core.rows import (
    Float,
    cut_rows,
    raw_add_row,
    raw_dot_row,
    row_bytes,
)

_CACHED = 1 << 21  # bytes of X at a time

# Takes scores (k, n), an array to fill with u (m, n), and where the rows begin and end.
See = Callable[[Float, Float, int, int], None]


@kernel
def _dot(X: Any, W: Float, out: Float) -> None:
    for k in range(W.shape[0]):
        w, to = W[k], out[k]
        for i in range(out.shape[1]):
            to[i] = raw_dot_row(X, i, w)


@kernel
def _add(X: Any, U: Float, out: Float) -> None:
    for k in range(U.shape[0]):
        u, to = U[k], out[k]
        for i in range(U.shape[1]):
            if u[i] != 0.0:
                raw_add_row(X, i, u[i], to)


def over(block: Block, W: Float, m: int, see: See) -> Float:
    """Have ``see`` look at X w; return Xᵀ u and the sum of u, for m of its u."""
    rows, (n, d) = block.rows, block.X.shape
    least = 64 * d if m else 0  # sums of d numbers should not be made too often
    size = max(int(max(_CACHED, least) / max(row_bytes(rows), 1.0)), 1)
    size = min(size, max(n, 1))
    k = len(W)
    scores, u = np.empty(k * size), np.empty(m * size)
    some, total = np.empty((m, d)), np.zeros((m, d + 1))
    for start in range(0, n, size):
        stop = min(start + size, n)
        here = stop - start
        part = cut_rows(rows, start, stop)
        S, U = scores[: k * here].reshape(k, here), u[: m * here].reshape(m, here)
        _dot(part, W, S)
        see(S, U, start, stop)
        if m:
            some[:] = 0.0
            _add(part, U, some)
            total[:, :d] += some
            total[:, d] += U.sum(axis=1)
    return total
