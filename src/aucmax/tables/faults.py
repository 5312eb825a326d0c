"""Malformed cells of a record batch; only the first one of each row is reported."""

from collections import Counter
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.tables.cells import TYPED

_HEADER = (
    "the value is the name of the column: is the header there again? Leave out that "
    "line"
)
_LONGEST = 80  # characters of a cell that a message shows


class Fault(NamedTuple):
    """Problem of a row."""

    place: int  # position of the column in the batch
    column: str
    problem: str


class Faults:
    """The malformed rows of a record batch.

    Parameters
    ----------
    batch : RecordBatch
        The rows.
    lenient : bool, default=False
        Whether malformed cells count as missing; ``malformed`` counts them by column.
    """

    def __init__(self, batch: Any, lenient: bool = False) -> None:
        self._batch, self._lenient = batch, lenient
        self.malformed: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()  # values without a feature, by column
        self._place = {name: i for i, name in enumerate(batch.schema.names)}
        self.by_row: dict[int, Fault] = {}
        self.unlabelled = np.zeros(len(batch), bool)  # rows left out without a fault

    def add(self, rows: NDArray[np.bool_], column: str, problem: str) -> None:
        """Add a fault for each row; ``{value}`` in ``problem`` is the cell's text."""
        for row in np.flatnonzero(rows).tolist():
            text = problem
            if "{value}" in problem:
                value = self._cell(column, row)
                text = problem.replace("{value}", repr(value))
                if value == column:
                    text = _HEADER
            fault = Fault(self._place[column], column, text)
            self.by_row[row] = min(self.by_row.get(row, fault), fault)

    def add_malformed(self, rows: NDArray[np.bool_], column: str, kind: str) -> None:
        """Add cells that cannot be parsed as a number or date."""
        if not self._lenient:
            self.add(rows, column, _malformed(kind, column))
        elif rows.any():
            self.malformed[column] += int(rows.sum())

    def good(self) -> NDArray[np.bool_] | None:
        """Return which rows have a label and no fault; None if all do."""
        if not self.by_row and not self.unlabelled.any():
            return None
        good = ~self.unlabelled
        good[list(self.by_row)] = False
        return good

    def _cell(self, column: str, row: int) -> Any:
        value = self._batch.column(column)[row].as_py()
        if isinstance(value, bytes):
            value = value.decode("utf-8", "backslashreplace")
        return value.rstrip(TYPED)[:_LONGEST] if isinstance(value, str) else value


def _malformed(kind: str, name: str) -> str:
    return (
        f"cannot parse {{value}} as a {kind}, as the first rows were. In training, "
        f"categorical={quote(name)} makes categories, and na=WORD declares a "
        "missing-value marker"
    )
