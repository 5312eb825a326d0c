"""Rows on the workers: partitions of Dask collections, blocks, and passes over them.

Labels are read before X. Then every block knows which label is positive and the number
of its first row among all rows, whatever the block itself contains. The
cross-validation fold of a row is a hash of its number, so it is the same for every
partitioning.

A pass runs a function on every block and collects or adds up the results. Sums are
added in a tree whose shape depends on the number of blocks alone, so results do not
depend on which worker did what, or did it again after another one was lost.
"""

import sys
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

import aucmax
from aucmax.base.ranker import distinct, two_classes
from aucmax.core.rows import Float, Rows, as_rows, n_values, row_bytes
from aucmax.core.threads import one_thread
from aucmax.core.validation import MATRIX, check_structure, check_values, row_weights


def fold_of(row_number: NDArray[np.int64], n_folds: int) -> NDArray[np.int64]:
    """Return the fold of each row, by splitmix64 (Steele, Lea and Flood, 2014)."""
    z = row_number.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z % np.uint64(n_folds)).astype(np.int64)


def current_client() -> Any:
    """Return the default Dask client, or None if Dask runs in this process."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None  # a client needs the import
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _version() -> str:
    return aucmax.__version__


def check_versions() -> None:
    """Raise an error if a worker has another version of aucmax, or none."""
    client = current_client()
    if client is None:
        return
    for worker, found in client.run(_version, on_error="return").items():
        # Dask raises a plain Exception if the function cannot be unpickled.
        if isinstance(found, Exception) and "No module named 'aucmax" in str(found):
            raise RuntimeError(
                f"Worker {worker} has no aucmax ({found}): pip install "
                f"'aucmax[cluster]=={aucmax.__version__}' there."
            )
        if isinstance(found, Exception):
            raise found
        if found != aucmax.__version__:
            raise RuntimeError(
                f"Worker {worker} has aucmax {found}, but this process has "
                f"{aucmax.__version__}: install the same version on both."
            )


_BRANCHES = 4  # terms that one task adds up
_KEPT_SHARE = 0.5  # share of the workers' memory up to which they keep the rows

# Called after each pass with the number of passes so far.
PassCallback = Callable[[int], None]


class Block(NamedTuple):
    """Validated rows of one partition, without those of zero weight."""

    X: Any  # dense or CSR
    signed: Float  # weights, signed by class
    start: int  # row number, among all rows, of the first row of the partition
    kept: NDArray[np.int64] | None  # indices of these rows in the partition; None: all

    @property
    def rows(self) -> Rows:
        """The rows in the layout of the kernels."""
        return as_rows(self.X)

    def row_numbers(self) -> NDArray[np.int64]:
        """Return the number of each row among all rows."""
        if self.kept is not None:
            return self.start + self.kept
        return np.arange(self.start, self.start + self.X.shape[0])

    def folds(self, n_folds: int) -> NDArray[np.int64]:
        """Return the cross-validation fold of each row."""
        return fold_of(self.row_numbers(), n_folds)


def checked_block(
    X: Any, signed: Float, start: int, names: Sequence[Any] | None = None
) -> Block:
    """Drop the rows of zero weight and check the values of the others."""
    check_values(X, names, signed != 0.0)
    if signed.all():
        return Block(X, signed, start, None)
    kept = np.flatnonzero(signed)
    return Block(X[kept], signed[kept], start, kept)


class DistributedRows:
    """All blocks, as delayed objects, and what the client knows about them."""

    def __init__(
        self,
        blocks: list[Delayed],
        classes: NDArray[Any],
        n_rows: int,
        weighted: bool,
        names: NDArray[Any] | None = None,
        watch: PassCallback | None = None,
    ) -> None:
        self.blocks, self.classes, self.n_rows = blocks, classes, n_rows
        self.weighted, self.names = weighted, names
        self._watch, self._passes = watch, count(1)
        self.n_features, values, size = self._sizes()
        self.n_values = int(values * n_rows)  # estimated from the first non-empty block
        self.bytes = size * n_rows

    def _sizes(self) -> tuple[int, float, float]:
        for block in self.blocks:
            (found,) = dask.compute(delayed(_sizes, pure=False)(block))
            if found[1] > 0.0 or block is self.blocks[-1]:
                return found
        raise ValueError("X is empty: there are no blocks.")

    def keep(self) -> None:
        """Keep the rows in the workers' memory if there is room."""
        memory = _worker_memory()
        if memory is None or self.bytes <= _KEPT_SHARE * memory:
            self.blocks = list(dask.persist(*self.blocks))

    def collect(self, job: Callable[..., Any], argument: Any = None) -> list[Any]:
        """Return ``job(block, argument)`` of each block; one pass."""
        return self._computed(self._tasks(job, self._sent_once(argument)))

    def total(self, job: Callable[..., Any], argument: Any = None) -> Any:
        """Return the sum over the blocks of ``job(block, argument)``; one pass."""
        tasks = self._tasks(job, self._sent_once(argument))
        return self._computed([sum_tree(tasks)])[0]

    def total_each(self, job: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """Return the same sum with one argument for each block; one pass."""
        return self._computed([sum_tree(self._tasks(job, arguments))])[0]

    def _sent_once(self, argument: Any) -> list[Delayed]:
        # One node of the graph, which workers pass on to each other.
        return [delayed(argument, traverse=False, pure=False)] * len(self.blocks)

    def _tasks(self, job: Callable[..., Any], arguments: Sequence[Any]) -> list[Any]:
        task = delayed(_in_one_thread, pure=False)
        return [
            task(job, block, argument)
            for block, argument in zip(self.blocks, arguments, strict=True)
        ]

    def _computed(self, tasks: list[Any]) -> list[Any]:
        found = list(dask.compute(*tasks))
        number = next(self._passes)
        if self._watch is not None:
            self._watch(number)
        return found


def sum_tree(parts: Sequence[Any]) -> Any:
    """Return the delayed sum of delayed parts, added up in a tree."""
    add = delayed(_sum, pure=False)
    while len(parts) > 1:
        starts = range(0, len(parts), _BRANCHES)
        parts = [add(list(parts[k : k + _BRANCHES])) for k in starts]
    return parts[0]


def _sum(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = _plus(total, part)
    return total


def _plus(a: Any, b: Any) -> Any:
    """Return a + b, for lists item by item."""
    if isinstance(a, list):
        return [_plus(x, y) for x, y in zip(a, b, strict=True)]
    return a + b


def _in_one_thread(job: Callable[..., Any], block: Any, argument: Any) -> Any:
    # A worker runs one task per thread already.
    with one_thread():
        return job(block, argument)


def _sizes(block: Block) -> tuple[int, float, float]:
    """Return the number of features, and the values and bytes per row."""
    rows = block.rows
    per_row = n_values(rows) / max(block.X.shape[0], 1)
    return block.X.shape[1], per_row, row_bytes(rows)


def _worker_memory() -> float | None:
    """Return the memory limit of all workers; None if Dask runs in this process."""
    client = current_client()
    if client is None:
        return None
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return float(sum(worker["memory_limit"] or np.inf for worker in workers))


def check_classes(rows: DistributedRows, counts: Sequence[Float]) -> None:
    """Raise an error if a class is empty in a fold.

    ``counts`` are the positive and negative rows of non-zero weight of each fold.
    """
    for number, both in enumerate(counts):
        for n, label in zip(both, rows.classes[::-1], strict=True):
            if n == 0.0:
                where = f" in fold {number} of {len(counts)}" if counts[1:] else ""
                few = " There are too few for cross-validation." if counts[1:] else ""
                raise ValueError(
                    f"No row of class {label}{where} has a weight above zero; both "
                    f"classes are needed.{few}"
                )


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
