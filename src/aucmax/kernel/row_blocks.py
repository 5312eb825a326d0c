"""Rows in blocks of one shape, on all cores.

BLAS rounds by the shapes of what it multiplies. With blocks of one shape, the last one
filled up with zeros, what becomes of a row depends on the row alone: not on those
around it, not on where a stream is cut, and not on the number of threads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.core.threads import in_threads

Array = NDArray[np.floating[Any]]
Job = Callable[[Array], Array]  # of a block

BLOCK = 64  # rows: enough for BLAS, and not much for who asks for one
_TASK = 32  # blocks that a thread takes at a time


def by_blocks(
    X: Any, scale: Callable[[Any], Array] | None, job: Job, out: Array
) -> None:
    """Set ``out`` to what ``job`` makes of the rows of X, scaled if there is a scale.

    It gets blocks of ``BLOCK`` rows in the float type of ``out``.
    """
    n = X.shape[0]

    def task(first: int) -> None:
        Z = np.empty((BLOCK, X.shape[1]), out.dtype)
        for start in range(first, min(first + _TASK * BLOCK, n), BLOCK):
            some = X[start : start + BLOCK]
            count = some.shape[0]
            Z[:count] = some if scale is None else scale(some)
            Z[count:] = 0.0
            out[start : start + count] = job(Z)[:count]

    for _ in in_threads(task, range(0, n, _TASK * BLOCK)):
        pass
