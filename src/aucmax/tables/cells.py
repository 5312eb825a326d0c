"""Arrow columns to NumPy: numbers, words, seconds.

Columns of all formats are Arrow arrays. Text is bytes or strings, without surrounding
blanks; missing-value markers are missing values.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aucmax.tables.missing_values import MISSING, are_absent

Float = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Seconds since 1970 of the years 1 to 9999; some databases store infinity.
FIRST_SECOND, END_SECOND = -62_135_596_800.0, 253_402_300_800.0

_BLANKS = " \t\r"
# Ends the text of a number in a column of several types: 2.125 is then never 2,125.
TYPED = "\t"
_NUMBER = re.compile(r"[-+]?((\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|inf(inity)?)", re.I)


class Numbers(NamedTuple):
    """A column as numbers: NaN where a value is missing or not a number."""

    values: Float
    missing: Flags
    malformed: Flags  # text that is not a number


class Words(NamedTuple):
    """A column as words: value i is ``values[codes[i]]``; code -1 is missing."""

    codes: Ints
    values: list[str]  # distinct; bytes that are not UTF-8 are surrogate escapes

    def take(self, rows: Any) -> "Words":
        """Return a subset of the rows."""
        return Words(self.codes[rows], self.values)

    def objects(self) -> NDArray[Any]:
        """Return an array of strings, "" where a value is missing."""
        return np.array([*map(shown, self.values), ""], dtype=object)[self.codes]

    def counts(self) -> Ints:
        """Return how often each value occurs."""
        present = self.codes[self.codes >= 0]
        return np.bincount(present, minlength=len(self.values))


def shown(value: str) -> str:
    """Return a word for display: bytes that are not UTF-8 are escaped."""
    if value.isascii():
        return value
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def value_type(kind: Any) -> Any:
    """Return the type of the values of a dictionary column, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: Any) -> bool:
    """Return whether a column has strings or bytes."""
    types, kind = pa.types, value_type(kind)
    strings = (types.is_string, types.is_large_string, types.is_string_view)
    known = (*strings, types.is_binary, types.is_large_binary)
    return any(is_one(kind) for is_one in known)


def is_date(kind: Any) -> bool:
    """Return whether a column has dates or timestamps."""
    kind = value_type(kind)
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def is_number(kind: Any) -> bool:
    """Return whether a column has numbers, booleans or only nulls."""
    types, kind = pa.types, value_type(kind)
    known = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(is_one(kind) for is_one in (*known, types.is_null))


def numbers(column: Any, na: Sequence[str] = ()) -> Numbers:
    """Return a column as numbers; ``na`` are more missing-value markers."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    malformed = np.zeros(len(column), bool)
    if is_text(column.type):
        values, malformed = _written_numbers(column, na)
    elif is_date(column.type):
        values = seconds(column)
    elif pa.types.is_null(column.type):
        values = np.full(len(column), np.nan)
    else:
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        elif pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        values = _floats(column)
    if na:
        values = np.where(are_absent(na, values), np.nan, values)
    return Numbers(values, np.isnan(values) & ~malformed, malformed)


def _floats(column: Any) -> Float:
    """Return integers or floats as float64, rounded, NaN for null."""
    if not column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    values[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
    return values


def _written_numbers(column: Any, na: Sequence[str]) -> tuple[Float, Flags]:
    """Parse numbers; return them and which values are malformed."""
    try:
        text = pc.utf8_trim(column.cast(pa.string()), characters=_BLANKS)
        markers = pa.array([*MISSING, *na], pa.string())
        text = pc.if_else(pc.is_in(text, value_set=markers), None, text)
        return _floats(pc.cast(text, pa.float64())), np.zeros(len(column), bool)
    except pa.ArrowInvalid:  # a value is not a number, or not UTF-8
        found = words(column, na)
    values = np.array([*map(_number, found.values), np.nan])[found.codes]
    return values, np.isnan(values) & (found.codes >= 0)


def _number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else np.nan


def words(
    column: Any, na: Sequence[str] = (), markers: Sequence[str] = MISSING
) -> Words:
    """Return a column as words; ``markers`` and ``na`` are missing values."""
    if not pa.types.is_dictionary(column.type):
        if not is_text(column.type):
            column = column.cast(pa.string())
        elif pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        column = column.dictionary_encode()
    indices = column.indices.cast(pa.int64())
    codes = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False)
    listed = column.dictionary
    if not is_text(listed.type):
        listed = listed.cast(pa.string())
    missing = {*markers, *na}
    place: dict[str, int] = {}
    renumbered = []
    for value in listed.to_pylist():
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        value = "" if value is None else value.strip(_BLANKS)
        gone = value in missing
        renumbered.append(-1 if gone else place.setdefault(value, len(place)))
    return Words(np.array([*renumbered, -1], np.int64)[codes], list(place))


def typed_numbers(column: Any) -> Flags:
    """Return which texts were numbers by their type; see ``TYPED``."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return np.zeros(len(column), bool)
    found = pc.fill_null(pc.ends_with(column, TYPED), False)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def seconds(column: Any) -> Float:
    """Return dates and timestamps as seconds since 1970 in UTC, NaN for missing."""
    kind = column.type
    if pa.types.is_date32(kind):
        return _floats(column.cast(pa.int32())) * 86_400.0
    unit = "ms" if pa.types.is_date64(kind) else kind.unit
    whole = column.cast(pa.int64())
    if unit == "ns":  # a float64 would lose the last digits
        micro = pc.fill_null(whole, 0).to_numpy(zero_copy_only=False) // 1000
        return np.where(np.isnan(_floats(whole)), np.nan, micro / 1e6)
    return _floats(whole) / {"s": 1.0, "ms": 1e3, "us": 1e6}[unit]
