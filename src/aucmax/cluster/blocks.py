"""Rows that are spread over a cluster: blocks, and passes over them.

A :class:`Table` knows where its blocks come from and what is common to them, and has
none of the data. A pass is a map over the blocks and a sum of what comes out of it, in
a tree whose shape follows from the number of blocks alone: so it does not matter which
worker does what, or does it again because another one was lost.

Labels are looked at before X is: then every block knows which of them is positive and
where its first row is among all rows, whatever it is that the block itself contains.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from aucmax.base.ranker import distinct, two_classes
from aucmax.cluster.versions import check_versions
from aucmax.core.rows import Float, n_values, row_bytes
from aucmax.core.rows import as_rows as as_core_rows
from aucmax.core.threads import one_thread
from aucmax.core.validation import MATRIX, check_structure, check_values, row_weights

_BRANCHES = 4  # of the tree: sums that one task adds up, and that wait for each other
_KEPT_SHARE = 0.5  # of the workers' memory that rows may take if they are kept there
_LABELS = 3  # distinct ones that a block tells of: three are too many

# What a pass says of itself: how many there have been.
Watch = Callable[[int], None]


class Block(NamedTuple):
    """Rows that one worker has, checked; those of weight zero are left out."""

    X: Any  # dense or CSR
    signed: Float  # weights, signed by class
    start: int  # the place of its first row among all rows
    kept: NDArray[np.int64] | None  # which rows of the block these are, if not all

    @property
    def rows(self) -> Any:
        """The rows as kernels take them."""
        return as_core_rows(self.X)

    def places(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """Return the place of each row, or some, among all rows."""
        if self.kept is not None:
            return self.start + self.kept[start:stop]
        stop = self.X.shape[0] if stop is None else stop
        return np.arange(self.start + start, self.start + stop)


class Table:
    """The rows of all blocks: what is known of them without having them."""

    def __init__(
        self,
        blocks: list[Delayed],
        classes: NDArray[Any],
        n_rows: int,
        weighted: bool,
        names: NDArray[Any] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.blocks, self.classes, self.n_rows = blocks, classes, n_rows
        self.weighted, self.names = weighted, names
        self.n_passes, self._watch = 0, watch
        self.counts = np.zeros(2)  # rows of each class that count, once that is known
        self.width, values, size = self._sizes()
        self.n_values = int(values * n_rows)  # about, as in the first block with rows
        self.bytes = size * n_rows

    def _sizes(self) -> tuple[int, float, float]:
        for block in self.blocks:
            (found,) = dask.compute(delayed(_sizes, pure=False)(block))
            if found[1] > 0.0 or block is self.blocks[-1]:
                return found
        raise ValueError("There are no blocks: X is empty.")

    def keep(self) -> None:
        """Have the workers keep the rows, if they have the room."""
        room = _memory()
        if room is None or self.bytes <= _KEPT_SHARE * room:
            self.blocks = list(dask.persist(*self.blocks))

    def total(self, job: Callable[..., Any], request: Any) -> Any:
        """Return the sum over the blocks of ``job(block, request)``; one pass."""
        # One node of the graph, that workers hand on to each other.
        asked = delayed(request, traverse=False, pure=False)
        task = delayed(_in_one_thread, pure=False)
        found = summed([task(job, block, asked) for block in self.blocks])
        self.n_passes += 1
        if self._watch is not None:
            self._watch(self.n_passes)
        return found


def summed(parts: Sequence[Delayed]) -> Any:
    """Return the sum of the parts, added up in a tree."""
    add = delayed(_sum, pure=False)
    while len(parts) > 1:
        starts = range(0, len(parts), _BRANCHES)
        parts = [add(list(parts[k : k + _BRANCHES])) for k in starts]
    # Grids can be some megabytes; they are meant to be sent along.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        return dask.compute(parts[0])[0]


def _sum(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = plus(total, part)
    return total


def plus(a: Any, b: Any) -> Any:
    """Return a + b, for lists item by item."""
    if isinstance(a, list):
        return [plus(mine, its) for mine, its in zip(a, b, strict=True)]
    return a + b


def _in_one_thread(job: Callable[..., Any], block: Any, request: Any) -> Any:
    # Workers have as many tasks at a time as they are to have threads.
    with one_thread():
        return job(block, request)


def _sizes(block: Block) -> tuple[int, float, float]:
    """Return the width, and the values and bytes of a row."""
    n = block.X.shape[0]
    rows = block.rows
    return block.X.shape[1], n_values(rows) / max(n, 1), row_bytes(rows)


def _memory() -> float | None:
    """Return that of the workers, if there are any but this process."""
    from aucmax.cluster.versions import client

    here = client()
    if here is None:
        return None
    workers = here.scheduler_info(n_workers=-1)["workers"].values()
    limits = [worker["memory_limit"] or np.inf for worker in workers]
    return float(sum(limits))


def spread_out(
    X: Any, y: Any, sample_weight: Any = None, watch: Watch | None = None
) -> Table:
    """Return the table of a user's collections.

    Dask arrays, data frames or lists of blocks, delayed or not; see
    :func:`aucmax.cluster.fit`.
    """
    check_versions()
    X_parts, lengths = parts_of(X, "X"), lengths_of(X)
    columns = [column(y, "y", X_parts, lengths)]
    if sample_weight is not None:
        columns.append(column(sample_weight, "sample_weight", X_parts, lengths))
    look = delayed(labels_of, pure=False)
    # A Dask collection knows its columns, of a list the first block has them.
    first = X_parts[0] if isinstance(X, list | tuple) else X
    shape = delayed(_shape_of, pure=False)(first if isinstance(first, Delayed) else 0)
    seen, shape = dask.compute(
        [look(part, k) for k, part in enumerate(columns[0])], shape
    )
    if not isinstance(first, Delayed):
        shape = _shape_of(first)
    counts = [n for n, _ in seen]
    if not sum(counts):
        raise ValueError("There is no row: all partitions are empty.")
    _check_label_types(seen)
    found = [labels for n, labels in seen if n]
    classes = two_classes(np.concatenate(found), None)
    starts = np.append(0, np.cumsum(counts))
    named = shape.columns and all(isinstance(name, str) for name in shape.columns)
    names = np.array(shape.columns, dtype=object) if named else None
    block = delayed(_block, pure=False)
    blocks = [
        block(X_parts[k], columns[0][k], weight, classes, k, int(starts[k]), shape)
        for k, weight in enumerate(columns[1] if columns[1:] else [None] * len(X_parts))
    ]
    weighted = sample_weight is not None
    return Table(blocks, classes, int(starts[-1]), weighted, names, watch)


def parts_of(data: Any, name: str) -> list[Any]:
    """Return the blocks of a collection."""
    if isinstance(data, list | tuple):
        if not data:
            raise ValueError(f"{name} is an empty list: there has to be a block.")
        return list(data)
    if not hasattr(data, "to_delayed"):
        raise TypeError(
            f"{name} is a {type(data).__name__}: it has to be a Dask array or data "
            "frame, or a list of (delayed) blocks. What fits in memory is for "
            "estimator.fit."
        )
    if getattr(data, "ndim", 1) == 2 and hasattr(data, "numblocks"):
        if data.numblocks[1] > 1:
            data = data.rechunk({1: -1})  # a block has whole rows
        return list(data.to_delayed().ravel())
    return list(np.ravel(np.asarray(data.to_delayed(), dtype=object)))


def lengths_of(X: Any) -> tuple[int, ...] | None:
    """Return how many rows each block has, if X knows."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return tuple(chunks[0])


class _Shape(NamedTuple):
    """The columns that all partitions must have."""

    width: int | None  # if it is known
    columns: list[Any] | None  # their names, if it is a data frame


def _shape_of(X: Any) -> _Shape:
    columns = getattr(X, "columns", None)
    if columns is not None:
        return _Shape(len(columns), list(columns))
    shape: Any = getattr(X, "shape", ())
    known = len(shape) == 2 and not np.isnan(shape[1])
    return _Shape(int(shape[1]) if known else None, None)


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


def column(
    values: Any, name: str, X_parts: list[Any], lengths: tuple[int, ...] | None
) -> list[Any]:
    """Return the blocks of labels or weights that go with those of X."""
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
            raise ValueError(f"{name} has {len(values)} rows, X has {sum(lengths)}.")
        return np.split(values, np.cumsum(lengths)[:-1])
    parts = parts_of(values, name)
    if len(parts) != len(X_parts):
        raise ValueError(
            f"{name} has {len(parts)} partitions, but X has {len(X_parts)}, and the "
            "sizes of chunks are not known, so that rows cannot be matched. Call "
            "compute_chunk_sizes() on the arrays, or partition both alike."
        )
    return parts


def labels_of(y: Any, number: int) -> tuple[int, NDArray[Any]]:
    """Return the number of rows and the distinct labels of a block."""
    labels = flat(y, "y", number)
    missing = labels != labels
    if labels.dtype == object:
        missing |= np.array([label is None for label in labels], dtype=np.bool_)
    if missing.any():
        raise ValueError(
            f"Partition {number}: the label is missing at its row "
            f"{int(np.argmax(missing))}; drop the rows that have none."
        )
    try:
        found = distinct(labels) if len(labels) else labels
        return len(labels), found[:_LABELS]
    except TypeError:
        raise ValueError(
            f"Partition {number}: labels cannot be compared with each other, such as "
            "numbers among strings."
        ) from None


def flat(values: Any, name: str, number: int) -> NDArray[Any]:
    """Return a column of labels or numbers of a partition."""
    column = np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(
            f"Partition {number}: {name} has shape {column.shape}, but must be one "
            "number or label a row."
        )
    return column


def matrix(X: Any, number: int) -> Any:
    """Return the rows of a partition as a matrix, which may be empty."""
    check_structure(X)
    if sparse.issparse(X) or hasattr(X, "columns") or X.ndim == 2:
        return check_array(X, ensure_min_samples=0, **MATRIX)
    raise ValueError(f"Partition {number}: X has shape {X.shape}, but must be 2D.")


def _block(
    X: Any,
    y: Any,
    weight: Any,
    classes: NDArray[Any],
    number: int,
    start: int,
    shape: _Shape,
) -> Block:
    labels = flat(y, "y", number)
    try:
        X = matrix(_in_order(X, shape), number)
        if X.shape[0] != len(labels):
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(labels)}.")
        signed = np.where(labels == classes[1], 1.0, -1.0)
        if weight is not None:
            signed *= row_weights(flat(weight, "sample_weight", number), len(signed))
        return checked(X, signed, start, shape.columns)
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error


def _in_order(X: Any, shape: _Shape) -> Any:
    """Return a partition with its columns in the common order."""
    width, columns = shape
    found = getattr(X, "columns", None)
    if columns is None or found is None:
        if width is not None and X.ndim == 2 and X.shape[1] != width:
            raise ValueError(
                f"X has {X.shape[1]} columns, but {width} were expected: all "
                "partitions must have the same columns."
            )
        return X
    found = list(found)
    if found == columns:
        return X
    missing = [name for name in columns if name not in set(found)]
    extra = [name for name in found if name not in set(columns)]
    if missing or extra or len(found) != len(columns):
        told = [f"{missing} are missing"] * bool(missing)
        told += [f"{extra} are not expected"] * bool(extra)
        raise ValueError(
            f"columns {' and '.join(told) or f'{found} are given twice'}: all "
            f"partitions must have the columns {columns}."
        )
    return X[columns]


def checked(
    X: Any, signed: Float, start: int, names: Sequence[Any] | None = None
) -> Block:
    """Return a block, or raise an error if a row that counts cannot be learnt."""
    check_values(X, names, signed != 0.0)
    if signed.all():
        return Block(X, signed, start, None)
    kept = np.flatnonzero(signed)
    return Block(X[kept], signed[kept], start, kept)
