"""Chunks of rows, and the position after them: the interface of readers.

A reader is a :class:`Source`. It holds no position: ``chunks(start)`` begins anywhere a
chunk has ended, and cuts the rest of the data as it did before, so that a run that was
interrupted sees the very chunks it would have seen.
"""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from aucmax.tables.labels import Task


class Position(NamedTuple):
    """Position from which reading can resume."""

    file: int = 0  # its place in ``Source.files``
    offset: int = 0  # bytes of its text, uncompressed, that are done; rows in Parquet
    line: int = 0  # lines of it that are done: for messages


START = Position()


class BadLine(NamedTuple):
    """A malformed line."""

    file: str
    line: int  # from 1, of the file
    column: str | None  # the name of the column or the index of the feature at fault
    problem: str  # which value, what is wrong with it, what to do
    text: bytes  # as it stands in the file, without the end of the line
    row: Any = None  # of Arrow, as a RecordBatch

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}"
        if self.column is not None:
            place += f", column {self.column}"
        return f"{place}: {self.problem}"


class Lines(NamedTuple):
    """The text of rows: row i is ``data[starts[i]:stops[i]]``, without its end."""

    data: bytes
    starts: NDArray[Any]
    stops: NDArray[Any]


class Chunk(NamedTuple):
    """Consecutive rows of the data."""

    X: Any  # CSR or dense, float32 or float64
    y: NDArray[Any] | None  # labels as they stand in the data: float64 or str objects
    weight: NDArray[Any] | None
    bad: list[BadLine]  # lines among these rows that are none
    raw: Any  # Lines, or a RecordBatch of Arrow; None unless asked for
    extra: dict[str, NDArray[Any]]  # columns asked for by name, as str objects
    after: Position  # where the next chunk begins
    done: int  # bytes of ``Source.size`` that have been read, for a progress bar
    file: str  # where the rows are from
    line: NDArray[Any]  # … and the line of each, from 1; in Parquet its number
    unlabelled: int = 0  # rows of a table without a label, which are left out


class Source(Protocol):
    """Data that can be read in chunks, repeatedly unless it is a pipe."""

    files: list[str]  # "-" is standard input
    size: int | None  # bytes on disk, all files together; None if nobody knows
    task: Task | None  # which labels are positive, if that is known of these data

    @property
    def n_features(self) -> int | None:
        """Number of columns of ``Chunk.X``; None: that of the widest row so far."""

    def chunks(self, start: Position = START) -> Iterator[Chunk]:
        """Read on from ``start``."""

    def recipe(self) -> dict[str, Any]:
        """Return the reader options as JSON, enough to read other files."""

    def words(self, features: Collection[int]) -> list[Any]:
        """Return the words behind hashed features, see :class:`~words.Word`."""

    def feature_names(self) -> list[str] | None:
        """Return the feature names, if there are any."""
