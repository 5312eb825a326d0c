"""Selection of scored rows: those above a threshold, or the highest of each group."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.io.batch import Batch, Lines

Scores = NDArray[np.float64]
_SPARE = 4  # times K rows are held before the lowest are dropped


class Selection(NamedTuple):
    """Which rows are written."""

    threshold: float | None = None
    top: int | None = None
    per: str | None = None  # column: the highest rows for each of its values

    @property
    def all_rows(self) -> bool:
        """Return whether nothing is left out."""
        return self.threshold is None and self.top is None


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
    """Holds the K rows with the highest scores, of all rows or of each group."""

    def __init__(self, selection: Selection) -> None:
        assert selection.top is not None
        self._top, self._per = selection.top, selection.per
        self._batches: list[Batch] = []
        self._scores: list[Scores] = []
        self._groups: dict[str, int] = {}  # number of each, in order of appearance

    def add(self, batch: Batch, scores: Scores) -> None:
        """Add rows, and drop those that cannot be among the highest."""
        if not scores.size:
            return
        places = self._highest(self._codes(batch), scores)
        self._batches.append(chosen_rows(batch, places))
        self._scores.append(scores[places])
        held = sum(part.size for part in self._scores)
        groups = max(len(self._groups), 1)
        if len(self._batches) > 1 and held > _SPARE * self._top * groups:
            self._merge()

    def rows(self) -> tuple[Batch, Scores] | None:
        """Return the rows, the highest first; None if there are none."""
        if not self._batches:
            return None
        self._merge()
        return self._batches[0], self._scores[0]

    def _codes(self, batch: Batch) -> NDArray[np.intp]:
        if self._per is None:
            return np.zeros(batch.rows.shape[0], np.intp)
        groups, values = self._groups, batch.extra[self._per].tolist()
        return np.array([groups.setdefault(v, len(groups)) for v in values], np.intp)

    def _highest(self, codes: NDArray[np.intp], scores: Scores) -> NDArray[np.intp]:
        """Return the places of the highest rows, by group and falling score.

        Of equal scores the first row comes first.
        """
        order = np.lexsort((-scores, codes))
        ordered = codes[order]
        first = np.searchsorted(ordered, ordered)
        return order[np.arange(order.size) - first < self._top]

    def _merge(self) -> None:
        batch, scores = _stacked(self._batches), np.concatenate(self._scores)
        places = self._highest(self._codes(batch), scores)
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
