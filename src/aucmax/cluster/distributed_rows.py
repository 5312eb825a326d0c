"""Rows on the workers: blocks, and passes over them.

A pass runs a function on every block and collects or adds up the results. Sums are
added in a tree whose shape depends on the number of blocks alone, so results do not
depend on which worker did what, or did it again after another one was lost.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from aucmax.cluster.fold_hash import fold_of
from aucmax.cluster.versions import current_client
from aucmax.core.rows import Float, Rows, as_rows, n_values, row_bytes
from aucmax.core.threads import one_thread
from aucmax.core.validation import check_values

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
