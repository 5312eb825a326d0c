"""Batches of rows, from readers to learners, and the interface of readers.

A reader is a :class:`Source`. It holds no position: ``batches(start)`` begins wherever
a batch has ended and cuts the rest of the data as before, so that a resumed run sees
the same batches as an uninterrupted one.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from aucmax.tables.labels import LabelError, Task

Positive = NDArray[np.bool_]


class Position(NamedTuple):
    """Position from which reading can resume."""

    file: int = 0  # index into ``Source.files``
    offset: int = 0  # bytes of the uncompressed text; rows in Parquet
    line: int = 0  # lines, for messages


START = Position()


class BadLine(NamedTuple):
    """A malformed line."""

    file: str
    line: int  # of the file, from 1
    column: str | None  # name of the column, or index of the feature
    problem: str  # which value, what is wrong with it, what to do
    text: bytes  # as in the file, without the end of the line
    row: Any = None  # of an Arrow file, as a record batch

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}"
        if self.column is not None:
            place += f", column {self.column}"
        return f"{place}: {self.problem}"


class Lines(NamedTuple):
    """Text of rows: row i is ``data[starts[i]:stops[i]]``, without its line end."""

    data: Any  # bytes, or an array of them
    starts: NDArray[Any]
    stops: NDArray[Any]

    def line(self, row: int) -> bytes:
        """Return the text of a row."""
        return bytes(self.data[self.starts[row] : self.stops[row]])

    def filter(self, chosen: Any) -> "Lines":
        """Return a subset of the rows."""
        return Lines(self.data, self.starts[chosen], self.stops[chosen])


class Batch(NamedTuple):
    """Consecutive rows of a file.

    ``rows`` of a table are an Arrow record batch until they are encoded. ``labels`` are
    as in the data (float64 or str objects) until :meth:`labelled` makes them boolean.
    """

    rows: Any  # features: CSR or dense, float32 or float64
    labels: Any  # None if they were not read
    weights: NDArray[Any] | None
    line_numbers: NDArray[Any]  # of each row in the file, from 1
    malformed: list[BadLine]  # lines among these rows
    end: Position  # where the next batch begins
    file: str
    done: int  # bytes of ``Source.size`` that have been read, for a progress bar
    text: Any  # rows as read, if asked for: Lines or a record batch
    extra: dict[str, Any]  # columns asked for by name, as str objects
    unlabelled: int = 0  # rows of a table without a label, which are left out

    def where(self, chosen: Positive) -> "Batch":
        """Return a subset of the rows, without their text."""
        return self._replace(
            rows=self.rows[chosen],
            labels=None if self.labels is None else self.labels[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            line_numbers=self.line_numbers[chosen],
            text=None,
            extra={name: values[chosen] for name, values in self.extra.items()},
        )

    def labelled(self, task: Task) -> "Batch":
        """Return the rows with labels True (positive) and False, without their text.

        Rows with unknown labels become malformed lines.
        """
        if self.labels is None:
            raise ValueError(
                f"{self.file} has no labels. The label column needs the name that it "
                "had in training."
            )
        try:
            return self._replace(labels=task.positives(self.labels), text=None)
        except LabelError:
            values, which = np.unique(self.labels, return_inverse=True)
            problems = [_label_problem(value, task) for value in values]
        known = np.array([problem is None for problem in problems])[which]
        malformed = list(self.malformed)
        for row in np.flatnonzero(~known).tolist():
            text = self.text.line(row) if isinstance(self.text, Lines) else b""
            line, problem = int(self.line_numbers[row]), str(problems[which[row]])
            malformed.append(BadLine(self.file, line, "label", problem, text))
        malformed.sort(key=lambda line: line.line)
        batch = self.where(known)
        return batch._replace(labels=task.positives(batch.labels), malformed=malformed)


def _label_problem(label: Any, task: Task) -> str | None:
    try:
        task.positives(np.array([label]))
    except LabelError as error:
        return error.problem
    return None


class Source(Protocol):
    """Data that can be read in batches, repeatedly unless it is a pipe."""

    files: list[str]  # "-" is standard input
    size: int | None  # bytes on disk, all files together; None if unknown
    task: Task | None  # which labels are positive, if the data say so

    @property
    def n_features(self) -> int | None:
        """Number of features; None: that of the widest row so far."""

    def batches(self, start: Position = START) -> Iterator[Batch]:
        """Read batches from ``start`` on."""

    def recipe(self) -> dict[str, Any]:
        """Return the reader options as JSON, enough to read other files."""

    def feature_names(self) -> list[str] | None:
        """Return the feature names, if there are any."""
