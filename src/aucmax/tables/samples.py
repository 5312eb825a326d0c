"""Samples of columns, from which their kinds are found."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

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
from aucmax.tables.column_kinds import Sample

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
