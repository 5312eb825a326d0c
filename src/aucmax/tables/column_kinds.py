"""Inference of column kinds from samples of their rows.

A column of numbers with a few malformed cells stays numeric, and the first such cell is
a malformed line: it never becomes a category silently. Identifiers, constants and empty
columns are left out; this is reported, and naming the column includes it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aucmax.tables.cells import (
    is_date,
    is_number,
    is_text,
    numbers,
    shown,
    typed_numbers,
    words,
)
from aucmax.tables.number_formats import (
    DATES,
    NO,
    NUMBERS,
    YES,
    find_notation,
    is_plain,
    middle,
)

NUMBER, YES_NO, CATEGORY, TEXT, DATE = "number", "yes/no", "category", "text", "date"
IDENTIFIER, CONSTANT, EMPTY = "identifier", "constant", "empty"
LEFT_OUT = (IDENTIFIER, CONSTANT, EMPTY)
WANTED = "wanted"

MISSING_VALUE, OTHER = "(missing)", "(other)"  # values with a feature of their own

_MOST = 0.9  # share of the values that decides the kind of a column
_RECURS = 3  # a column of numbers is categorical if a word occurs so often …
_ODD = 0.01  # … or if this share of cells are words: codes such as V27 or 250.01
_MOSTLY = 0.99  # share of steps of one from row to row in a column of row numbers
_FEW_ROWS = 30  # with fewer rows, distinct values do not make an identifier
_SOME = 64  # values of a category with a feature each, at least …
_ROWS_A_VALUE, _MANY = 50, 2000  # … or one per so many rows, up to this number
_WORDS = 4.0  # mean number of words from which a column is text
_MOST_EXACT = 2.0**53  # larger whole numbers may be equal as floats
_LOOKED_AT = 2000  # distinct values from which a number format is found
_TAIL = 1 << 18  # most hashed features for the other values of a category
_ROW_NUMBER = re.compile(r"id|uuid|guid|index|key|row|no|unnamed:.*|", re.IGNORECASE)
_NAMED_ID = re.compile(
    r".*[_\s.-](id|uuid|guid|index|key|row|no)|.*[a-z](Id|ID)|.*(nr|num|number)(_.*)?",
    re.IGNORECASE,
)
_SEPARATED = ("comma", "thousands")  # number formats that some cells do not show
_INDEX = re.compile(r"__index_level_\d+__")  # the index of pandas in Parquet files


class Sample(NamedTuple):
    """The first rows of a column."""

    rows: int
    numbers: NDArray[np.float64] | None  # NaN where missing or not a number
    others: int  # values that are neither numbers nor missing
    missing: int
    listed: Callable[[], tuple[list[str], NDArray[Any]]]  # distinct values, counts
    whole: bool  # whether these are all rows
    is_date: bool = False  # by its type
    is_boolean: bool = False  # by its type
    declared: bool = False  # categorical by its type
    typed: frozenset[str] = frozenset()  # numbers by their type, in a column of several


@dataclass(frozen=True)
class Column:
    """A column and its use."""

    name: str
    role: str
    distinct: int
    missing: int  # of the first rows
    rows: int
    notation: str = ""  # of numbers and dates
    fill: float = 0.0  # for a missing number
    values: list[str] = field(default_factory=list)  # with a feature each
    tail: int = 0  # features of all other values
    words: int = 0  # distinct words of a text
    low: float = 0.0  # 1 % quantile of the numbers …
    high: float = 0.0  # … and 99 % quantile; both zero if unknown
    kept: bool = False  # whether categories are codes and missing values stay missing

    @property
    def became(self) -> str:
        """Features built from it, for a report."""
        if self.role in LEFT_OUT:
            return "left out"
        if self.kept and self.role in (CATEGORY, YES_NO):
            return "codes" if self.role == CATEGORY else "0 or 1"
        if self.role in (CATEGORY, YES_NO):
            tail = {0: "", 1: ", others pooled"}.get(self.tail, ", others hashed")
            some = (
                "1 feature" if len(self.values) == 1 else f"{len(self.values)} features"
            )
            return some + tail
        if self.role == TEXT:
            return "hashed words"
        if self.role == DATE:
            return "time, month, weekday, hour" if self.kept else "time, weekday, hour"
        written = {"": "", "comma": ", decimal commas"}
        written["percent comma"] = ", percent, decimal commas"
        shown = written.get(self.notation, f", {self.notation}")
        filled = f", {self.fill:.4g} if missing" if self.missing else ""
        filled = "" if self.kept else filled
        return f"1 feature{shown}{filled}"


class ColumnKind(NamedTuple):
    """Kind of a column, and the features made from it."""

    name: str
    kind: str
    features: str


_KINDS = {
    **{NUMBER: "numeric", YES_NO: "boolean", CATEGORY: "categorical", TEXT: "text"},
    **{DATE: "datetime", IDENTIFIER: "identifier", CONSTANT: "constant"},
}


def column_kinds(roles: Sequence[Mapping[str, Any]]) -> list[ColumnKind]:
    """Return the kinds of columns from ``Schema.roles``."""
    columns = [Column(**role) for role in roles]
    return [ColumnKind(c.name, _KINDS.get(c.role, c.role), c.became) for c in columns]


def find_role(
    name: str, sample: Sample, wanted: str | None = None, decimal: str | None = None
) -> Column:
    """Return the kind of a column; ``wanted`` is the kind set by the user.

    ``WANTED`` means any kind that is not left out. ``decimal`` is the decimal
    separator, if the user sets it.
    """
    column = _find(name, sample, decimal)
    if wanted is None or column.role == wanted:
        return column
    facts: dict[str, Any] = {
        key: getattr(column, key) for key in ("name", "distinct", "missing", "rows")
    }
    known = sample.rows - sample.missing
    if wanted == WANTED and column.role not in LEFT_OUT:
        return column
    if wanted == NUMBER or (wanted == WANTED and not sample.others):
        return _as_number(sample, facts)
    if wanted == DATE:
        if known and not sample.others and column.role != DATE:
            raise ValueError(
                f"column {name!r} has numbers, such as {sample.listed()[0][0]}, which "
                "cannot be dates: seconds, milliseconds and 20240101 look alike. Write "
                "dates as 2024-01-31, or leave the column numeric"
            )
        return Column(role=DATE, notation=column.notation or "ymd", **facts)
    if wanted == TEXT:
        return _text(sample.listed()[0], facts)
    return _category(sample, known, facts)


def _find(name: str, sample: Sample, decimal: str | None) -> Column:
    known = sample.rows - sample.missing
    facts: dict[str, Any] = {
        **{"name": name, "missing": sample.missing, "rows": sample.rows},
        "distinct": _distinct(sample),
    }
    enough = sample.rows >= _FEW_ROWS
    if _INDEX.fullmatch(name):
        return Column(role=IDENTIFIER, **facts)
    if known == 0 and enough:
        return Column(role=EMPTY, **facts)
    if sample.declared and known and not _constant(sample, facts):
        return _category(sample, known, facts)
    if sample.is_date:
        return replace(_as_number(sample, facts), role=DATE, notation="ymd")
    mostly = sample.others <= (1.0 - _MOST) * known
    if sample.is_boolean:  # text of the same data has true and false
        column = _number(name, sample, facts)
        return replace(column, notation="boolean") if column.role == NUMBER else column
    if sample.others == 0 and decimal != ",":
        return _number(name, sample, facts)
    values = [value.strip() for value in sample.listed()[0]]
    values = [value for value in values if value not in sample.typed]
    texts = values[:: max(len(values) // _LOOKED_AT, 1)]
    notation = find_notation(texts, decimal)
    if mostly and decimal is None:
        if not (enough and _has_codes(name, sample, known)):
            return _number(name, sample, facts)
        odd = [value for value in values if not is_plain(value)]
        if notation not in _SEPARATED or find_notation(odd) != notation:
            return _category(sample, known, facts)
    elif mostly and notation not in NUMBERS:
        return _number(name, sample, facts)
    if notation:
        role = DATE if notation in DATES else NUMBER
        fill = middle(notation, texts)
        return Column(role=role, notation=notation, fill=fill, **facts)
    return _words(name, sample, known, texts, facts)


def _has_codes(name: str, sample: Sample, known: int) -> bool:
    """Return whether the words in a column of numbers are codes, not malformed cells.

    Codes recur, or are more than a few. The name of the column, as in concatenated
    files, does not count.
    """
    values, counts = sample.listed()
    odd = [
        int(count)
        for value, count in zip(values, counts, strict=True)
        if not is_plain(value) and value != name
    ]
    return bool(odd) and (max(odd) >= _RECURS or sum(odd) > max(_ODD * known, _RECURS))


def _distinct(sample: Sample) -> int:
    if sample.others or sample.numbers is None:
        return len(sample.listed()[0])
    numbers = sample.numbers[~np.isnan(sample.numbers)]
    if numbers.size and np.abs(numbers).max() > _MOST_EXACT:
        return len(sample.listed()[0])
    return len(np.unique(numbers))


def _number(name: str, sample: Sample, facts: dict[str, Any]) -> Column:
    numbers = np.zeros(0) if sample.numbers is None else sample.numbers
    numbers = numbers[~np.isnan(numbers)]
    if _constant(sample, facts):
        return Column(role=CONSTANT, **facts)
    if _identify_rows(numbers, facts):
        # Rows of a sample are neighbours, except where a part of the data begins.
        counts_rows = np.mean(np.diff(numbers) == 1.0) > _MOSTLY
        named = _NAMED_ID.fullmatch(name) or _ROW_NUMBER.fullmatch(name)
        if named or counts_rows:
            return Column(role=IDENTIFIER, **facts)
    return _as_number(sample, facts)


def _as_number(sample: Sample, facts: dict[str, Any]) -> Column:
    numbers = np.zeros(0) if sample.numbers is None else sample.numbers
    numbers = numbers[np.isfinite(numbers)]
    middle, low, high = 0.0, 0.0, 0.0
    if len(numbers):
        middle, low, high = np.quantile(numbers, (0.5, 0.01, 0.99)).tolist()
    return Column(role=NUMBER, fill=middle, low=low, high=high, **facts)


def _constant(sample: Sample, facts: dict[str, Any]) -> bool:
    """Return whether all rows have the same value."""
    enough = sample.whole and sample.rows >= _FEW_ROWS
    return enough and facts["distinct"] == 1 and not sample.missing


def _identify_rows(numbers: NDArray[np.float64], facts: dict[str, Any]) -> bool:
    """Return whether numbers are whole, and different in every row."""
    rows: int = facts["rows"]
    if len(numbers) < max(rows, _FEW_ROWS) or np.any(numbers != np.floor(numbers)):
        return False
    return bool(facts["distinct"] == rows)


def _words(
    name: str, sample: Sample, known: int, texts: list[str], facts: dict[str, Any]
) -> Column:
    distinct = facts["distinct"]
    values, _ = sample.listed()
    spellings = {value.strip().lower() for value in values}
    if len(spellings & {*YES}) == 1 and spellings <= {*YES, *NO}:
        yes = next(iter(spellings & {*YES}))
        return Column(role=YES_NO, values=[yes], **facts)
    if _constant(sample, facts):
        return Column(role=CONSTANT, **facts)
    words = float(np.mean([len(value.split()) for value in texts]))
    if words >= _WORDS and distinct > 0.2 * known:
        return _text(values, facts)
    if known >= _FEW_ROWS and distinct > 0.95 * known:
        return Column(role=IDENTIFIER, **facts)
    return _category(sample, known, facts)


def _text(values: list[str], facts: dict[str, Any]) -> Column:
    words = {word for value in values for word in value.lower().split()}
    return Column(role=TEXT, words=len(words), **facts)


def _category(sample: Sample, known: int, facts: dict[str, Any]) -> Column:
    values, tail = own_columns(*sample.listed(), known)
    if sample.missing:
        values.append(MISSING_VALUE)
    return Column(role=CATEGORY, values=values, tail=tail, **facts)


def own_columns(
    values: list[str], counts: NDArray[Any], rows: int
) -> tuple[list[str], int]:
    """Return the values with a feature each, and how many features others share."""
    order = sorted(range(len(values)), key=lambda k: (-int(counts[k]), values[k]))
    often = [k for k in order if counts[k] > 1 or len(values) <= 10]
    limit = max(_SOME, min(rows // _ROWS_A_VALUE, _MANY))
    chosen = sorted(values[k] for k in often[:limit])
    rest = len(values) - len(chosen)
    if rest <= _SOME:
        return chosen, 1
    return chosen, min(1 << (8 * rest).bit_length(), _TAIL)


LOOKED_AT = 20_000  # rows from which the kinds of columns are found
PART = 1_000  # consecutive rows, when rows are sampled from all the data
_MOST_PARTS = 40
_MOST_LOOKED_AT = 4_000_000  # rows to sample from
_DIGITS = re.compile(r"[+-]?\d+")


def spread_rows(parts: Iterable[Any], schema: Any) -> tuple[Any, bool]:
    """Return rows sampled from all the data, and whether there are more.

    ``parts`` are batches of at most ``PART`` rows.
    """
    found: list[Any] = []
    kept = 1
    for count, batch in enumerate(parts):
        if count % kept == 0:
            found.append(batch)
            if len(found) > _MOST_PARTS:  # keep every other one from now on
                found, kept = found[::2], 2 * kept
        if count * PART > _MOST_LOOKED_AT:
            break
    return one_batch(pa.Table.from_batches(found, schema)), kept > 1


def one_batch(table: Any) -> Any:
    """Return a table as a single record batch."""
    columns = [
        column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def samples_of(batch: Any, whole: bool, na: Sequence[str] = ()) -> list[Sample]:
    """Return a sample of each column of a record batch."""
    return [sample_of(column, whole, na) for column in batch.columns]


def sample_of(column: Any, whole: bool, na: Sequence[str] = ()) -> Sample:
    """Return a sample of a column."""
    rows, kind = len(column), column.type

    @cache
    def listed() -> tuple[list[str], NDArray[Any]]:
        if pa.types.is_nested(kind):  # can only be dropped
            return [], np.zeros(0, np.int64)
        found = words(column, na)
        return [shown(value) for value in found.values], found.counts()

    if not (is_text(kind) or is_number(kind) or is_date(kind)):
        return Sample(rows, None, rows, column.null_count, listed, whole)
    values, missing, malformed = numbers(column, na)
    declared = pa.types.is_dictionary(kind)
    if is_text(kind) and not pa.types.is_binary(kind) and not malformed.any():
        # Whole numbers stored as strings are codes, if there is nothing else.
        clean = missing.sum() == column.null_count
        declared |= clean and all(map(_DIGITS.fullmatch, listed()[0]))
    types = is_date(kind), bool(pa.types.is_boolean(kind)), bool(declared)
    counts = int(malformed.sum()), int(missing.sum())
    typed: frozenset[str] = frozenset()
    if (marked := typed_numbers(column)).any():
        typed = frozenset(words(column.filter(pa.array(marked))).values)
    return Sample(rows, values, *counts, listed, whole, *types, typed)
