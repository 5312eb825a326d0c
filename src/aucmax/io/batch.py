"""Batches of rows for learners: features, classes, weights."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.io.chunk import BadLine, Chunk, Lines
from aucmax.io.collect import join, stack
from aucmax.tables.labels import LabelError, Task

Positive = NDArray[np.bool_]


class Batch(NamedTuple):
    """Rows for training or evaluation."""

    X: Any
    positive: Positive
    weight: NDArray[Any] | None

    def where(self, chosen: Positive) -> "Batch":
        """Return a subset of the rows."""
        X, positive = self.X[chosen], self.positive[chosen]
        return Batch(X, positive, take(self.weight, chosen))

    @classmethod
    def of(cls, parts: Sequence["Batch"]) -> "Batch":
        """Return the rows of all parts."""
        return cls(
            stack([part.X for part in parts]),
            np.concatenate([part.positive for part in parts]),
            join([part.weight for part in parts]),
        )


class Labels(NamedTuple):
    """Classes of the rows of a chunk."""

    positive: Positive  # of the rows that are kept
    kept: Positive | None  # those whose labels mean something; None if all do
    bad: list[BadLine]  # the lines of the others, among those that are no rows


def take(values: Any, kept: Positive | None) -> Any:
    """Return the values of the rows that are kept, if there are values."""
    return values if values is None or kept is None else values[kept]


def labelled(chunk: Chunk, task: Task) -> tuple[Batch, list[BadLine]]:
    """Return the labelled rows, and the malformed lines."""
    positive, kept, bad = read_labels(chunk, task)
    return Batch(take(chunk.X, kept), positive, take(chunk.weight, kept)), bad


def read_labels(chunk: Chunk, task: Task) -> Labels:
    """Classify rows as positive, negative or neither."""
    if chunk.y is None:
        raise ValueError(
            f"{chunk.file} has no labels. The label column needs the name that it "
            "had in training."
        )
    try:
        return Labels(task.positives(chunk.y), None, chunk.bad)
    except LabelError:
        values, which = np.unique(chunk.y, return_inverse=True)
        problems = [_problem(value, task) for value in values]
    kept = np.array([problem is None for problem in problems])[which]
    bad = list(chunk.bad)
    for row in np.flatnonzero(~kept):
        problem = str(problems[which[row]])
        text = _text(chunk.raw, int(row))
        bad.append(BadLine(chunk.file, int(chunk.line[row]), "label", problem, text))
    bad.sort(key=lambda line: line.line)
    return Labels(task.positives(chunk.y[kept]), kept, bad)


def _problem(label: Any, task: Task) -> str | None:
    try:
        task.positives(np.array([label]))
    except LabelError as error:
        return error.problem
    return None


def _text(raw: Any, row: int) -> bytes:
    if not isinstance(raw, Lines):
        return b""
    return bytes(raw.data[raw.starts[row] : raw.stops[row]])
