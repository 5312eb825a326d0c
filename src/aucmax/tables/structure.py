"""Columns that look like time or like groups of rows, for a note to the user."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.tables.periods import as_words, moments

_GROUP = re.compile(
    r"(^|[_ .-])(id|ids|nbr|no|num|number|code|key|customer|client|patient|user|member"
    r"|account|device|card|merchant|household|policy|tailnum|agent|location)$|[a-z]Id$",
    re.I,
)
_YEAR, _MONTH = (
    re.compile(rf"(^|[^a-z]){word}([^a-z]|$)", re.I) for word in ("year", "month")
)
_PART_OF_DATE = re.compile(r"(^|[^a-z])(year|month|week|day|hour)([^a-z]|$)", re.I)
_MOST_ROWS = 20_000  # that are looked at
_LEAST_SHARE = 0.001  # of distinct values among the rows
_MOST_SHARE = 0.8
_STRONG = 5.0  # standard deviations by which labels agree within groups


class Hint(NamedTuple):
    """A column that may call for other splits."""

    column: str
    kind: str  # "time", "part of time" or "group"
    reason: str

    def __str__(self) -> str:
        option = f"{self.kind}={self.column!r}"
        if self.kind == "part of time":
            return (
                f"Column {self.column!r} {self.reason}: if new rows come later than "
                "these, join both in one column of dates and use it as time."
            )
        if self.kind == "time":
            return (
                f"Column {self.column!r} {self.reason}: if new rows come later than "
                f"these, {option} tests on later rows."
            )
        return (
            f"Column {self.column!r} {self.reason}: if new rows are of other groups, "
            f"{option} keeps each group in one fold."
        )


def find_structure(
    columns: Mapping[str, NDArray[Any]], positive: NDArray[np.bool_]
) -> list[Hint]:
    """Return the columns that look like time or groups, from the first rows.

    Numbers may be given as text.
    """
    found = []
    labels = positive[:_MOST_ROWS].astype(float)
    months = [name for name in columns if _MONTH.search(name)]
    for name, values in columns.items():
        some = values[:_MOST_ROWS]
        if _is_nested(some):
            continue
        if moments(some) is not None:
            found.append(Hint(name, "time", "has dates"))
        elif months and _YEAR.search(name) and _are_years(some):
            reason = f"has years, and {months[0]!r} months"
            found.append(Hint(name, "part of time", reason))
        elif _increases(some):
            found.append(Hint(name, "time", "increases from row to row"))
        elif _PART_OF_DATE.search(name):
            continue
        elif _GROUP.search(name) and (reason := _agreement(some, labels)):
            found.append(Hint(name, "group", reason))
    return found


def _is_nested(values: NDArray[Any]) -> bool:
    """Return whether cells are lists, dictionaries or arrays; such columns are dropped.

    They have no text that NumPy can make.
    """
    if values.ndim > 1:
        return True
    kinds = (list, tuple, set, dict, np.ndarray)
    return values.dtype.kind == "O" and any(isinstance(one, kinds) for one in values)


def _are_years(values: NDArray[Any]) -> bool:
    try:
        years = np.unique(values.astype(float))
    except (TypeError, ValueError):
        return False
    whole = np.array_equal(years, np.round(years))
    return bool(whole and years.size > 1 and years[0] >= 1900 and years[-1] <= 2100)


def _increases(values: NDArray[Any]) -> bool:
    if values.dtype.kind not in "iufOU" or values.size < 100:
        return False
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        return False
    if not np.isfinite(numbers).all():
        return False
    steps = np.diff(numbers)
    return bool((steps >= 0.0).all() and np.unique(values).size > 0.5 * values.size)


def _agreement(values: NDArray[Any], labels: NDArray[Any]) -> str:
    """Return why the values look like groups, "" if they do not."""
    codes = as_words(values).codes
    rows = np.bincount(codes)
    share = rows.size / values.size
    if not _LEAST_SHARE < share < _MOST_SHARE or rows.size < 20:
        return ""
    rate = labels.mean()
    if not 0.0 < rate < 1.0:
        return ""
    between = np.bincount(codes, labels) - rows * rate
    # Chi-squared with about one degree of freedom for each group.
    statistic = float((between**2 / rows).sum()) / (rate * (1.0 - rate))
    if statistic < rows.size + _STRONG * np.sqrt(2.0 * rows.size):
        return ""
    return f"repeats ({rows.size:,} values) and rows of one value have similar labels"
