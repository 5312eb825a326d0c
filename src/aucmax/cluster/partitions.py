"""Read the partitions of Dask collections, and make validated blocks of them.

Labels are read before X. Then every block knows which label is positive and the number
of its first row among all rows, whatever the block itself contains.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from aucmax.base.ranker import distinct, two_classes
from aucmax.cluster.distributed_rows import (
    Block,
    DistributedRows,
    PassCallback,
    checked_block,
)
from aucmax.cluster.versions import check_versions
from aucmax.core.validation import MATRIX, check_structure, row_weights

_LABELS = 3  # distinct labels that a partition reports: a third one is an error


class _Columns(NamedTuple):
    """The columns that all partitions must have."""

    number: int | None  # None if it is unknown
    names: list[Any] | None  # for data frames


def distributed_rows(
    X: Any, y: Any, sample_weight: Any = None, watch: PassCallback | None = None
) -> DistributedRows:
    """Make blocks of the arguments of :func:`aucmax.cluster.fit`."""
    check_versions()
    X_parts, lengths = partitions_of(X, "X"), lengths_of(X)
    y_parts = matching_partitions(y, "y", X_parts, lengths)
    weights: list[Any] = [None] * len(X_parts)
    if sample_weight is not None:
        weights = matching_partitions(sample_weight, "sample_weight", X_parts, lengths)
    # A Dask collection knows its columns; a list has those of its first partition.
    first = X_parts[0] if isinstance(X, list | tuple) else X
    inspect = delayed(_columns_of, pure=False)
    columns = inspect(first) if isinstance(first, Delayed) else _columns_of(first)
    look = delayed(partition_labels, pure=False)
    seen, columns = dask.compute(
        [look(part, k) for k, part in enumerate(y_parts)], columns
    )
    counts = [n for n, _ in seen]
    if not sum(counts):
        raise ValueError("X has no rows: all partitions are empty.")
    _check_label_types(seen)
    classes = two_classes(np.concatenate([labels for n, labels in seen if n]), None)
    starts = np.append(0, np.cumsum(counts))
    named = columns.names and all(isinstance(name, str) for name in columns.names)
    names = np.array(columns.names, dtype=object) if named else None
    make = delayed(_block, pure=False)
    blocks = [
        make(X_parts[k], y_parts[k], weights[k], classes, k, int(starts[k]), columns)
        for k in range(len(X_parts))
    ]
    weighted = sample_weight is not None
    return DistributedRows(blocks, classes, int(starts[-1]), weighted, names, watch)


def partitions_of(data: Any, name: str) -> list[Any]:
    """Return the partitions of a collection, delayed or not."""
    if isinstance(data, list | tuple):
        if not data:
            raise ValueError(f"{name} is an empty list: it needs at least one block.")
        return list(data)
    if not hasattr(data, "to_delayed"):
        raise TypeError(
            f"{name} is a {type(data).__name__}: it must be a Dask array or data "
            "frame, or a list of (delayed) blocks. For data in memory use "
            "estimator.fit."
        )
    if getattr(data, "ndim", 1) == 2 and hasattr(data, "numblocks"):
        if data.numblocks[1] > 1:
            data = data.rechunk({1: -1})  # a block has whole rows
        return list(data.to_delayed().ravel())
    # Dask's full optimisation would join small partitions of y, but not those of X.
    data = data.simplify() if hasattr(data, "simplify") else data
    parts = data.to_delayed(optimize_graph=False)
    return list(np.ravel(np.asarray(parts, dtype=object)))


def lengths_of(X: Any) -> tuple[int, ...] | None:
    """Return the number of rows of each partition, or None if X does not know them."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return tuple(chunks[0])


def matching_partitions(
    values: Any, name: str, X_parts: list[Any], lengths: tuple[int, ...] | None
) -> list[Any]:
    """Return the partitions of labels or weights, cut as those of X."""
    if lengths is not None and hasattr(values, "chunks"):
        known = values.chunks[0]
        if not np.isnan(known).any():
            if sum(known) != sum(lengths):
                raise ValueError(
                    f"{name} has {sum(known)} rows, but X has {sum(lengths)}."
                )
            values = values.rechunk((lengths, *values.chunks[1:]))
    elif isinstance(values, np.ndarray) and lengths is not None:
        if len(values) != sum(lengths):
            raise ValueError(
                f"{name} has {len(values)} rows, but X has {sum(lengths)}."
            )
        return np.split(values, np.cumsum(lengths)[:-1])
    parts = partitions_of(values, name)
    if len(parts) != len(X_parts):
        raise ValueError(
            f"{name} has {len(parts)} partitions, but X has {len(X_parts)}, and the "
            "chunk sizes are unknown, so rows cannot be matched. Call "
            "compute_chunk_sizes() on the arrays, or partition both alike."
        )
    return parts


def column_values(values: Any, name: str, number: int) -> NDArray[Any]:
    """Return a column of a partition as a one-dimensional array."""
    column = np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(
            f"Partition {number}: {name} has shape {column.shape}, but must have one "
            "value per row."
        )
    return column


def partition_labels(y: Any, number: int) -> tuple[int, NDArray[Any]]:
    """Return the number of rows and the distinct labels of a partition."""
    labels = column_values(y, "y", number)
    missing = labels != labels
    if labels.dtype == object:
        missing |= np.array([label is None for label in labels], dtype=np.bool_)
    if missing.any():
        raise ValueError(
            f"Partition {number}: the label is missing at row "
            f"{int(np.argmax(missing))} of the partition; drop rows without a label."
        )
    try:
        found = distinct(labels) if len(labels) else labels
        return len(labels), found[:_LABELS]
    except TypeError:
        raise ValueError(
            f"Partition {number}: labels cannot be compared with each other, for "
            "example numbers and strings; make all of them strings or numbers."
        ) from None


def _check_label_types(seen: Sequence[tuple[int, NDArray[Any]]]) -> None:
    """Raise an error if labels are numbers in one partition and strings in another."""
    first: tuple[int, Any] | None = None
    for number, (n, labels) in enumerate(seen):
        if not n:
            continue
        first = first or (number, labels[0])
        if isinstance(labels[0], str) != isinstance(first[1], str):
            raise ValueError(
                f"Partition {number} has labels such as {labels.tolist()[0]!r}, but "
                f"partition {first[0]} such as {np.array(first[1]).item()!r}: make all "
                "of them strings or all of them numbers."
            )


def _columns_of(X: Any) -> _Columns:
    names = getattr(X, "columns", None)
    if names is not None:
        return _Columns(len(names), list(names))
    shape: Any = getattr(X, "shape", ())
    known = len(shape) == 2 and not np.isnan(shape[1])
    return _Columns(int(shape[1]) if known else None, None)


def _block(
    X: Any,
    y: Any,
    weight: Any,
    classes: NDArray[Any],
    number: int,
    start: int,
    columns: _Columns,
) -> Block:
    labels = column_values(y, "y", number)
    try:
        X = _matrix(_in_order(X, columns))
        if X.shape[0] != len(labels):
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(labels)}.")
        signed = np.where(labels == classes[1], 1.0, -1.0)
        if weight is not None:
            values = column_values(weight, "sample_weight", number)
            signed *= row_weights(values, len(signed))
        return checked_block(X, signed, start, columns.names)
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error


def _matrix(X: Any) -> Any:
    """Return the rows of a partition, possibly none, as a matrix."""
    check_structure(X)
    if sparse.issparse(X) or hasattr(X, "columns") or X.ndim == 2:
        return check_array(X, ensure_min_samples=0, **MATRIX)
    raise ValueError(f"X has shape {X.shape}, but must be two-dimensional.")


def _in_order(X: Any, columns: _Columns) -> Any:
    """Return a partition with its columns in the common order."""
    found = getattr(X, "columns", None)
    if columns.names is None or found is None:
        if columns.number is not None and X.ndim == 2 and X.shape[1] != columns.number:
            raise ValueError(
                f"X has {X.shape[1]} columns, but {columns.number} were expected: all "
                "partitions must have the same columns."
            )
        return X
    found, expected = list(found), columns.names
    if found == expected:
        return X
    missing = [name for name in expected if name not in set(found)]
    extra = [name for name in found if name not in set(expected)]
    if missing or extra or len(found) != len(expected):
        wrong = [f"{missing} are missing"] * bool(missing)
        wrong += [f"{extra} are not expected"] * bool(extra)
        raise ValueError(
            f"columns {' and '.join(wrong) or f'{found} have duplicates'}: all "
            f"partitions must have the columns {expected}."
        )
    return X[expected]
