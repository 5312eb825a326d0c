"""Periods of time: days, weeks, months, quarters or years of dates."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.tables.cells import Words
from aucmax.tables.number_formats import DATES, find_notation, read

_MOST = 36  # periods
_UNITS = ("D", "W", "M", "Q", "Y")  # the finest with at most so many periods is taken
MISSING = "no date"


def as_words(values: NDArray[Any]) -> Words:
    """Return a column as codes of its texts, which are sorted.

    An array of fixed-width text would take the length of the longest cell in each row.
    """
    if values.dtype.kind not in "OT":
        distinct, codes = np.unique(values.astype(str), return_inverse=True)
        return Words(codes, distinct.tolist())
    place: dict[str, int] = {}
    found = [place.setdefault(str(value), len(place)) for value in values.tolist()]
    order = sorted(place)
    rank = np.empty(len(order), np.int64)
    rank[[place[word] for word in order]] = np.arange(len(order))
    return Words(rank[np.array(found, np.intp)], order)


def texts(values: ArrayLike | None) -> NDArray[Any]:
    """Return values as an array of str objects."""
    column = as_words(np.asarray(values))
    return np.array(column.values, dtype=object)[column.codes]


def periods(time: ArrayLike) -> NDArray[Any]:
    """Return the name of the period of each row; names sort in the order of time.

    Dates may be of NumPy, pandas or Python, or text. Other values, such as years or
    names of periods, are returned as text.
    """
    values = np.asarray(time)
    if values.ndim != 1:
        raise ValueError(
            f"time has shape {values.shape}, but must have one date per row"
        )
    dates = moments(values)
    if dates is None:
        return texts(values)
    missing = np.isnat(dates)
    if missing.all():
        return np.full(values.size, MISSING, dtype=object)
    for unit in _UNITS:
        names = _names(dates, unit)
        if np.unique(names[~missing]).size <= _MOST:
            break
    return np.where(missing, MISSING, names).astype(object)


def moments(values: NDArray[Any]) -> NDArray[np.datetime64] | None:
    """Return dates, or None if the values are not dates."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    if values.dtype.kind not in "OUT":
        return None
    codes, distinct = as_words(values)
    words = [word.strip() for word in distinct]
    known = [word for word in words if word not in ("", "NaT", "None", "nan", "<NA>")]
    notation = find_notation(known)
    if notation not in DATES:
        return None
    seconds, _ = read(notation, Words(codes, words))
    found = np.full(values.size, np.datetime64("NaT", "s"))
    dated = np.isfinite(seconds)
    found[dated] = np.floor(seconds[dated]).astype("int64").astype("datetime64[s]")
    return found


def _names(dates: NDArray[np.datetime64], unit: str) -> NDArray[np.str_]:
    if unit == "Q":
        months = dates.astype("datetime64[M]").astype("int64")
        years = (1970 + months // 12).astype(str)
        quarters = (1 + months % 12 // 3).astype(str)
        return np.char.add(np.char.add(years, "-Q"), quarters)
    if unit == "W":  # named by their Monday; 1970-01-01 was a Thursday
        days = dates.astype("datetime64[D]").astype("int64")
        mondays = (days + 3) // 7 * 7 - 3
        return mondays.astype("datetime64[D]").astype(str)
    return dates.astype(f"datetime64[{unit}]").astype(str)
