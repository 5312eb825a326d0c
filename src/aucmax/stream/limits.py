"""Limits for values far beyond all others of their feature.

One such value, a fill value of 1e36 say, would decide the scale and the mean of its
feature for the rest of the stream. A row is therefore learnt with each value limited to
a hundred times the largest that the feature had before. The limit follows: a feature
that becomes larger for good is limited in its first rows only.
"""

from typing import Any

import numpy as np
from scipy import sparse

from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Rows, as_rows, entry, n_rows, rowwise, stored

FACTOR = 100.0
FIRST_ROWS = 128.0  # without limits: they are yet to show what is usual


@rowwise
def _count_row(X: Rows, i: int, free: bool, most: Float) -> bool:
    """Raise the largest values to those of row ``i``; return whether one is too large.

    One that is too large is not counted.
    """
    beyond = 0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        size, known = abs(x), most[j]
        if size > known:
            if known > 0.0 and size > FACTOR * known and not free:
                beyond += 1
            else:
                most[j] = size
    return beyond > 0


@kernel
def _first_beyond(X: Rows, start: int, n: int, free: int, most: Float) -> int:
    """Return the first row from ``start`` that exceeds a limit, ``n`` if none does.

    Rows before ``free`` have no limits.
    """
    for i in range(start, n):
        if _count_row(X, i, i < free, most):
            return i
    return n


def limited(X: Any, most: Float, seen: float) -> Any:
    """Return rows within their limits, ``X`` itself if all are; update ``most``.

    ``seen`` is the number of rows before these, ``most`` the largest absolute value of
    each feature in them.
    """
    rows = as_rows(X)
    n, free = n_rows(rows), int(max(FIRST_ROWS - seen, 0.0))
    at, whole = _first_beyond(rows, 0, n, free, most), X
    while at < n:
        if X is whole:
            X = X.copy()
            if sparse.issparse(X):
                X.sum_duplicates()
        if sparse.issparse(X):
            part = slice(X.indptr[at], X.indptr[at + 1])
            values, bound = X.data[part], most[X.indices[part]]
        else:
            values, bound = X[at], most.copy()
        bound = np.where(bound > 0.0, FACTOR * bound, np.inf)
        values[:] = np.clip(values, -bound, bound)
        rows = as_rows(X)
        at = _first_beyond(rows, at, n, at + 1, most)
    return X
