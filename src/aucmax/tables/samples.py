"""Samples of columns: what the first rows say of each."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aucmax.tables.cells import is_date, is_number, is_text, numbers, shown, words
from aucmax.tables.column_kinds import Sample

_DIGITS = re.compile(r"[+-]?\d+")


def samples_of(batch: Any, whole: bool, na: Sequence[str] = ()) -> list[Sample]:
    """Return a sample of each column of a record batch."""
    return [sample_of(column, whole, na) for column in batch.columns]


def sample_of(column: Any, whole: bool, na: Sequence[str] = ()) -> Sample:
    """Return what the first values of a column say of it."""
    rows, kind = len(column), column.type

    @cache
    def listed() -> tuple[list[str], NDArray[Any]]:
        if pa.types.is_nested(kind):  # it can only be dropped
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
    return Sample(rows, values, *counts, listed, whole, *types)
