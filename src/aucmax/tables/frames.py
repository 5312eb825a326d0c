"""Conversion of data frames to Arrow, and checks of column types."""

from typing import Any

import pyarrow as pa

from aucmax.tables.cells import is_date, is_number, is_text
from aucmax.tables.options import option
from aucmax.tables.schema import Schema


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
        {name: _array(frame.iloc[:, place]) for place, name in enumerate(names)}
    )


def _array(series: Any) -> Any:
    """Return a pandas column; values of several types are converted to text."""
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        missing = series.isna()
        texts = [
            None if none else str(value)
            for value, none in zip(series, missing, strict=True)
        ]
        return pa.array(texts, pa.string())


def check_type(file: str, name: str, kind: Any) -> None:
    """Raise an error if a column of this type cannot be encoded."""
    if not (is_number(kind) or is_text(kind) or is_date(kind)):
        raise ValueError(
            f"{file}: column {name!r} has the type {kind}, which is neither a number "
            f"nor a category: {option('drop', name)}, or "
            f"{option('categorical', name)} if it has few values"
        )


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
