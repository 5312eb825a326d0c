"""Load all rows of a source into memory."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.io.background import prefetch
from aucmax.io.chunk import Source


def collect(
    source: Source, watch: Callable[[int, int], None] = lambda done, rows: None
) -> tuple[Any, NDArray[Any] | None, NDArray[Any] | None]:
    """Return X, the labels as in the data, and the weights of all chunks.

    ``watch`` is told the bytes and rows so far.

    Raises
    ------
    ValueError
        If a line is no row, or if there is no row at all.
    """
    chunks, rows = [], 0
    for chunk in prefetch(source.chunks()):
        if chunk.bad:
            more = len(chunk.bad) - 1
            others = f" (and {more:,} more nearby)" if more else ""
            raise ValueError(f"{chunk.bad[0]}{others}")
        if chunk.X.shape[0]:
            chunks.append(chunk)
        rows += chunk.X.shape[0]
        watch(chunk.done, rows)
    if not chunks:
        raise ValueError(f"No rows in {', '.join(source.files)}.")
    X = stack([chunk.X for chunk in chunks])
    y = join([chunk.y for chunk in chunks])
    return X, y, join([chunk.weight for chunk in chunks])


def stack(parts: Sequence[Any]) -> Any:
    """Stack the rows of all parts, padded to the widest."""
    if not sparse.issparse(parts[0]):
        return np.concatenate(parts)
    width = max(X.shape[1] for X in parts)
    return sparse.vstack([widened(X, width) for X in parts], format="csr")


def widened(X: Any, width: int) -> Any:
    """Return rows with more columns, sharing the same arrays."""
    if X.shape[1] == width or not sparse.issparse(X):
        return X
    wide = sparse.csr_array((X.data, X.indices, X.indptr), (X.shape[0], width))
    wide.has_canonical_format = X.has_canonical_format  # found out already
    return wide


def join(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Return labels or weights of all parts, if there are any."""
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if there else None
