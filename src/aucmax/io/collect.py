"""Load all rows of a source into memory."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.io.background import prefetch
from aucmax.io.batch import Batch, Source

Rows = tuple[Any, Any, NDArray[Any] | None]


def collect(
    source: Source, watch: Callable[[int, int], None] = lambda done, rows: None
) -> Rows:
    """Return features, labels as in the data, and weights of all rows.

    ``watch`` is called with the numbers of bytes and rows so far.

    Raises
    ------
    ValueError
        If a line is malformed, or if there are no rows.
    """
    batches, n_rows = [], 0
    for batch in prefetch(source.batches()):
        if batch.malformed:
            more = len(batch.malformed) - 1
            others = f" (and {more:,} more nearby)" if more else ""
            raise ValueError(f"{batch.malformed[0]}{others}")
        if batch.rows.shape[0]:
            batches.append(batch)
        n_rows += batch.rows.shape[0]
        watch(batch.done, n_rows)
    if not batches:
        raise ValueError(f"No rows in {', '.join(source.files)}.")
    return concatenate(batches)


def concatenate(batches: Sequence[Batch]) -> Rows:
    """Return features, padded to the widest batch, labels and weights."""
    X = [batch.rows for batch in batches]
    if sparse.issparse(X[0]):
        width = max(rows.shape[1] for rows in X)
        stacked = sparse.vstack([widened(rows, width) for rows in X], format="csr")
    else:
        stacked = np.concatenate(X)
    labels = join([batch.labels for batch in batches])
    return stacked, labels, join([batch.weights for batch in batches])


def widened(X: Any, width: int) -> Any:
    """Return rows with more columns, sharing the same arrays."""
    if X.shape[1] == width or not sparse.issparse(X):
        return X
    wide = sparse.csr_array((X.data, X.indices, X.indptr), (X.shape[0], width))
    wide.has_canonical_format = X.has_canonical_format  # found out already
    return wide


def join(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Concatenate labels or weights; return None if there are none."""
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None
