"""Data frames and lists of dictionaries as chunks of a stream."""

from dataclasses import replace
from typing import Any

import numpy as np

from aucmax.blend.table_input import needs_encoding
from aucmax.stream.tree_member import MAX_FEATURES


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
    """Return an encoder of the columns and categories of a first chunk.

    If there are too many categories for trees, rare ones have no feature.
    """
    from aucmax.tables.encoder import TableEncoder
    from aucmax.tables.schema import Overrides

    frame = as_frame(X)
    encoder = TableEncoder.fit(frame, Overrides(encode="onehot"))
    excess = encoder.n_features - MAX_FEATURES
    if excess > 0 and not encoder.schema.texts:
        values = _frequent(encoder, frame, excess)
        encoder = TableEncoder(replace(encoder.schema, values=values))
    return encoder


def _frequent(encoder: Any, frame: Any, excess: int) -> list[list[str]]:
    """Return the categories without the rarest ones, of which there are ``excess``."""
    values = encoder.schema.values
    total = sum(map(len, values))
    rows = encoder.transform(frame, warn_unknown=False)
    # The features of the categories are the last ones.
    counts = np.asarray((rows != 0).sum(axis=0)).ravel()[-total:]
    kept = np.ones(total, bool)
    kept[np.argsort(counts, kind="stable")[:excess]] = False
    ends = np.cumsum([0, *map(len, values)])
    return [
        [value for value, keep in zip(column, kept[start:], strict=False) if keep]
        for column, start in zip(values, ends, strict=False)
    ]


def as_frame(X: Any, columns: list[str] | None = None) -> Any:
    """Return records as an Arrow table, and anything else unchanged.

    A key that a dictionary lacks is a missing value. ``columns`` are the known keys.
    """
    if not is_records(X):
        return X
    import pyarrow as pa

    names = list(dict.fromkeys(key for row in X for key in row))
    if columns is not None:
        names = [*columns, *(name for name in names if name not in columns)]
    return pa.table({str(name): [row.get(name) for row in X] for name in names})
