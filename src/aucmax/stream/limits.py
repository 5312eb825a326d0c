"""Limits for extreme values of features.

One extreme value, such as a fill value of 1e36, would dominate the scale and the mean
of its feature for the rest of the stream. Each value is therefore clipped to 100 times
the largest absolute value that the feature had before. Clipped values raise the limit,
so a feature whose values become larger permanently is clipped in a few rows only.
"""

from typing import Any

import numpy as np
from scipy import sparse

from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Rows, as_rows, entry, n_rows, rowwise, stored

FACTOR = 100.0
FIRST_ROWS = 128.0  # rows at the start of the stream that are not limited


@rowwise
def _update_largest(X: Rows, i: int, free: bool, largest: Float) -> bool:
    """Update the largest values by row ``i``; return whether it exceeds a limit.

    Values beyond their limit are left out, unless the row is ``free`` of limits.
    """
    beyond = 0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        size, known = abs(x), largest[j]
        if size > known:
            if known > 0.0 and size > FACTOR * known and not free:
                beyond += 1
            else:
                largest[j] = size
    return beyond > 0


@kernel
def _first_beyond(X: Rows, start: int, n: int, free: int, largest: Float) -> int:
    """Return the first row from ``start`` that exceeds a limit, or ``n``.

    Rows before ``free`` have no limits.
    """
    for i in range(start, n):
        if _update_largest(X, i, i < free, largest):
            return i
    return n


def limit_values(X: Any, largest: Float, seen: float) -> Any:
    """Return rows with limited values, or ``X`` itself if no value exceeds its limit.

    ``seen`` is the number of earlier rows, and ``largest`` the largest absolute value
    of each feature in them; it is updated in place.
    """
    rows = as_rows(X)
    n, free = n_rows(rows), int(max(FIRST_ROWS - seen, 0.0))
    at, given = _first_beyond(rows, 0, n, free, largest), X
    while at < n:
        if X is given:
            X = X.copy()
            if sparse.issparse(X):
                X.sum_duplicates()
        if sparse.issparse(X):
            row = slice(X.indptr[at], X.indptr[at + 1])
            values, bound = X.data[row], largest[X.indices[row]]
        else:
            values, bound = X[at], largest.copy()
        bound = np.where(bound > 0.0, FACTOR * bound, np.inf)
        values[:] = np.clip(values, -bound, bound)
        rows = as_rows(X)
        at = _first_beyond(rows, at, n, at + 1, largest)
    return X
