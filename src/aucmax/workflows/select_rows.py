"""Selection of the rows with the highest scores."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.io.batch import Batch, Lines

Scores = NDArray[np.float64]
_SPARE = 4  # times K rows are held before the lowest are dropped


def chosen_rows(batch: Batch, places: NDArray[np.intp]) -> Batch:
    """Return rows of a batch in this order, with their text and no malformed lines.

    The text is copied, so that the rest of the batch can be freed.
    """
    text = batch.text
    if isinstance(text, Lines):
        # Two more bytes show how lines end.
        text = text.filter(places)
        ends = zip(text.starts.tolist(), text.stops.tolist(), strict=True)
        pieces = [bytes(text.data[start : stop + 2]) for start, stop in ends]
        text = _joined(pieces, text.stops - text.starts)
    elif text is not None:
        text = text.take(places)
    return batch._replace(
        rows=batch.rows[places],
        labels=None,
        weights=None,
        line_numbers=batch.line_numbers[places],
        malformed=[],
        text=text,
        extra={name: values[places] for name, values in batch.extra.items()},
    )


def _joined(pieces: Sequence[bytes], lengths: NDArray[Any]) -> Lines:
    starts = np.cumsum([0, *map(len, pieces)])[:-1].astype(np.intp)
    return Lines(b"".join(pieces), starts, starts + lengths)


class TopRows:
    """Holds the rows with the highest scores."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._batches: list[Batch] = []
        self._scores: list[Scores] = []

    def add(self, batch: Batch, scores: Scores) -> None:
        """Add rows, and drop those that cannot be among the highest."""
        if not scores.size:
            return
        places = self._highest(scores)
        self._batches.append(chosen_rows(batch, places))
        self._scores.append(scores[places])
        held = sum(part.size for part in self._scores)
        if len(self._batches) > 1 and held > _SPARE * self._count:
            self._merge()

    def rows(self) -> tuple[Batch, Scores] | None:
        """Return the rows, the highest first; None if there are none."""
        if not self._batches:
            return None
        self._merge()
        return self._batches[0], self._scores[0]

    def _highest(self, scores: Scores) -> NDArray[np.intp]:
        """Return the places of the highest rows; of equal scores the first ones."""
        return np.argsort(-scores, kind="stable")[: self._count]

    def _merge(self) -> None:
        """Keep the highest of all rows."""
        batch, scores = _stacked(self._batches), np.concatenate(self._scores)
        places = self._highest(scores)
        self._batches, self._scores = [chosen_rows(batch, places)], [scores[places]]


def _stacked(batches: Sequence[Batch]) -> Batch:
    """Return all rows as one batch."""
    first = batches[0]
    parts = [batch.rows for batch in batches]
    stack: Callable[[Any], Any] = partial(sparse.vstack, format="csr")
    if not sparse.issparse(parts[0]):
        stack = np.vstack
    text: Any
    if isinstance(first.text, Lines):
        pieces = [
            batch.text.data[start:stop]
            for batch in batches
            for start, stop in zip(
                batch.text.starts.tolist(),
                [*batch.text.starts.tolist()[1:], len(batch.text.data)],
                strict=True,
            )
        ]
        lengths = np.concatenate([b.text.stops - b.text.starts for b in batches])
        text = _joined(pieces, lengths)
    else:
        import pyarrow as pa

        table = pa.Table.from_batches([batch.text for batch in batches])
        text = table.combine_chunks().to_batches()[0]
    return first._replace(
        rows=stack(parts),
        line_numbers=np.concatenate([batch.line_numbers for batch in batches]),
        text=text,
        extra={
            name: np.concatenate([batch.extra[name] for batch in batches])
            for name in first.extra
        },
    )
