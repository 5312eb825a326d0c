"""Conversion of data frames to Arrow, and checks of column types."""

from datetime import datetime
from numbers import Integral, Number
from shlex import quote
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from aucmax.tables.cells import TYPED, is_date, is_number, is_text
from aucmax.tables.schema import Schema

# Errors of Arrow for a column of several types, or of numbers above 64 bits.
_MIXED = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError)


def to_arrow(frame: Any) -> Any:
    """Return a data frame as an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "to_arrow"):  # polars
        return frame.to_arrow()
    names = [str(name) for name in frame.columns]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two columns are called {min(twice)!r}: rename one")
    return pa.table(
        {name: _array(name, frame.iloc[:, place]) for place, name in enumerate(names)}
    )


def _array(name: str, series: Any) -> Any:
    """Return a pandas column."""
    if series.dtype == object:
        return list_to_arrow(series.tolist())
    try:
        column = pa.array(series, from_pandas=True)
    except pa.ArrowNotImplementedError:
        raise ValueError(
            f"column {name!r} has the type {series.dtype}, which cannot be encoded: "
            "remove the column, or convert it"
        ) from None
    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
        if not (is_number(kind) or is_text(kind) or is_date(kind)):  # intervals
            words = pa.array(map(str, series.cat.categories), pa.string())
            return pa.DictionaryArray.from_arrays(column.indices, words)
    return column


def list_to_arrow(values: list[Any]) -> Any:
    """Return a list as an Arrow column.

    Values of several kinds become the texts that they have in a column of their own
    kind: a value means the same whatever is beside it. Booleans among numbers are 0
    and 1.
    """
    types = {*map(type, values)}
    if types - {str, NoneType}:
        values = [plain_value(value) for value in values]
        kinds = {_kind(value) for value in values if value is not None}
        if not kinds and float in types:  # NaN only
            return pa.nulls(len(values), pa.float64())
        if kinds == {bool, Number}:
            values = [int(v) if isinstance(v, bool) else v for v in values]
        elif len(kinds) > 1:
            return _texts(values)
    try:
        return pa.array(values)
    except _MIXED:
        return _texts(values)


def plain_value(value: Any) -> Any:
    """Return a value without types of NumPy, None if it is missing."""
    try:
        if value is None or value != value:
            return None
    except TypeError:  # pandas.NA
        return None
    except ValueError:  # an array
        return value
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    return bool(value) if isinstance(value, np.bool_) else value


def _kind(value: Any) -> object:
    """Return what values share that Arrow takes as one type, in any order."""
    if isinstance(value, datetime):
        return datetime, value.tzinfo is None
    if isinstance(value, Number) and not isinstance(value, bool):
        return Number
    return next((kind for kind in (str, bytes) if isinstance(value, kind)), type(value))


def _texts(values: list[Any]) -> Any:
    places: dict[type, list[int]] = {}
    for place, value in enumerate(values):
        if value is not None:
            places.setdefault(type(value), []).append(place)
    texts: list[str | None] = [None] * len(values)
    for kind, some in places.items():
        alike = [values[place] for place in some]
        try:
            found = pa.array(alike).cast(pa.string()).to_pylist()
        except (*_MIXED, pa.ArrowNotImplementedError):
            found = list(map(str, alike))
        if issubclass(kind, Number) and not issubclass(kind, Integral):
            found = [text + TYPED for text in found]
        for place, text in zip(some, found, strict=True):
            texts[place] = text
    return pa.array(texts, pa.string())


def check_type(file: str, name: str, kind: Any) -> None:
    """Raise an error if a column of this type cannot be encoded."""
    if not (is_number(kind) or is_text(kind) or is_date(kind)):
        remedy = f"drop={quote(name)}"
        if not is_nested(kind):
            remedy += f", or categorical={quote(name)} if it has few values"
        raise ValueError(
            f"{file}: column {name!r} has the type {kind}, which is neither a number "
            f"nor a category: {remedy}"
        )


def is_nested(kind: Any) -> bool:
    """Return whether values are lists or the like, which have no text."""
    return bool(pa.types.is_nested(getattr(kind, "storage_type", kind)))


def check_numbers(file: str, arrow: Any, schema: Schema) -> None:
    """Raise an error if a numeric column of the model is not numeric here."""
    numeric = [*schema.numbers, *filter(None, [schema.weight])]
    numeric += [schema.label] if schema.label and schema.label_is_number else []
    for name in numeric:
        if name not in arrow.names:
            continue
        kind = arrow.field(name).type
        if not (is_number(kind) or is_text(kind)):
            raise ValueError(
                f"{file}: column {name!r} must have numbers, as in the data that the "
                f"model was trained on, but its type is {kind}"
            )
