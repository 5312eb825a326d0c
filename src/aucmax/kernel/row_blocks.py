"""Maps of rows in blocks of one shape, on all cores.

Rounding in BLAS depends on the shapes of the matrices and, in float32, on the place of
a row in its block. With blocks of float64 and of one shape, the last one padded with
zeros, the result for a row depends on that row alone: not on other rows, the chunks of
a stream, or the number of threads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.core.threads import in_threads

Array = NDArray[np.floating[Any]]
Job = Callable[[Array], Array]  # from a block to its results

BLOCK = 96  # rows: a multiple of the 12, 16 and 24 that BLAS takes at a time
_TASK = 32  # blocks per task of a thread


def by_blocks(
    X: Any, scale: Callable[[Any], Array] | None, job: Job, out: Array
) -> None:
    """Set ``out`` to ``job`` of the rows of X, scaled, in blocks of ``BLOCK`` rows.

    ``job`` gets float64. What it multiplies by a matrix has to be float64; functions of
    single numbers may be computed in float32.
    """
    n = X.shape[0]

    def task(first: int) -> None:
        Z = np.empty((BLOCK, X.shape[1]))
        for start in range(first, min(first + _TASK * BLOCK, n), BLOCK):
            rows = X[start : start + BLOCK]
            count = rows.shape[0]
            Z[:count] = rows if scale is None else scale(rows)
            Z[count:] = 0.0
            out[start : start + count] = job(Z)[:count]

    for _ in in_threads(task, range(0, n, _TASK * BLOCK)):
        pass
