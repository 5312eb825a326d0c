"""Data frames and lists of dictionaries as chunks of a stream."""

from typing import Any

import numpy as np

from aucmax.blend.table_input import needs_encoding


def is_records(X: Any) -> bool:
    """Return whether X is a list of dictionaries, one per row."""
    return isinstance(X, list) and bool(X) and isinstance(X[0], dict)


def is_table(X: Any) -> bool:
    """Return whether X must be encoded: categories, dates, missing values, records."""
    if is_records(X) or needs_encoding(X):
        return True
    frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    return frame and bool(np.isnan(np.asarray(X, np.float64)).any())


def fit_encoder(X: Any) -> Any:
    """Return an encoder of the columns and categories of a first chunk."""
    from aucmax.tables.encoder import TableEncoder
    from aucmax.tables.schema import Overrides

    return TableEncoder.fit(as_frame(X), Overrides(encode="onehot"))


def as_frame(X: Any, columns: list[str] | None = None) -> Any:
    """Return records as an Arrow table, and anything else unchanged.

    A key that a dictionary lacks is a missing value. ``columns`` are the known keys.
    """
    if not is_records(X):
        return X
    import pyarrow as pa

    from aucmax.tables.frames import list_to_arrow

    names = list(dict.fromkeys(key for row in X for key in row))
    if columns is not None:
        names = [*columns, *(name for name in names if name not in columns)]
    return pa.table(
        {str(name): list_to_arrow([row.get(name) for row in X]) for name in names}
    )
