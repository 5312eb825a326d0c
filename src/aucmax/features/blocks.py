"""Rows in blocks of one shape, on all cores.

BLAS rounds by the shapes of what it multiplies. With blocks of one shape, the last one
filled up with zeros, what becomes of a row depends on the row alone: not on those
around it, not on where a stream is cut, and not on the number of threads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.moments import in_threads
from aucmax.core.rows import Float

Array = NDArray[np.floating[Any]]
Job = Callable[[Array], Array]  # of a block

BLOCK = 64  # rows: enough for BLAS, and not much for who asks for one
_TASK = 32  # blocks that a thread takes at a time


def by_blocks(X: Any, centre: Float, unit: Float, job: Job, out: Array) -> None:
    """Set ``out`` to what ``job`` makes of the rows of ``(X - centre) * unit``.

    It gets blocks of ``BLOCK`` rows in the float type of ``out``.
    """
    n = X.shape[0]

    def task(first: int) -> None:
        Z = np.empty((BLOCK, X.shape[1]), out.dtype)
        for start in range(first, min(first + _TASK * BLOCK, n), BLOCK):
            rows = X[start : start + BLOCK]
            some = rows.toarray() if sparse.issparse(rows) else rows
            Z[: len(some)] = (some - centre) * unit
            Z[len(some) :] = 0.0
            out[start : start + len(some)] = job(Z)[: len(some)]

    for _ in in_threads(task, range(0, n, _TASK * BLOCK)):
        pass
