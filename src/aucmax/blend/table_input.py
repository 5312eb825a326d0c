"""Data frames as input of AUCClassifier: detection, encoding, label task."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import compute_sample_weight

from aucmax.core.validation import refuse_mask

_FIRST = 20_000  # rows that are searched for time and groups
_MOST_COLUMNS = 500


def needs_encoding(X: Any) -> bool:
    """Return whether X is a table that must be encoded to become numeric rows."""
    if hasattr(X, "collect_schema") and not hasattr(X, "to_arrow"):
        raise TypeError("X is a polars LazyFrame: pass X.collect().")
    if hasattr(X, "column_names") or hasattr(X, "to_arrow"):  # Arrow, polars
        return True
    if sparse.issparse(X) or not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return False
    return any(getattr(kind, "kind", "O") not in "biuf" for kind in X.dtypes)


def first_columns(X: Any) -> dict[str, NDArray[Any]]:
    """Return the first rows of each column of a data frame."""
    some = X.slice(0, _FIRST) if hasattr(X, "slice") else X.iloc[:_FIRST]
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    return {str(name): table_column(some, name) for name in names[:_MOST_COLUMNS]}


def table_column(X: Any, name: str | int) -> Any:
    """Return a column of a data frame, by its name or number."""
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        raise ValueError(
            f"{name!r} names a column of a data frame, but X is {type(X).__name__}."
        )
    name = column_name(X, name)
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    if name not in names:
        shown = ", ".join(map(repr, names[:8]))
        raise ValueError(f"X has no column {name!r}; it has {shown} …")
    if hasattr(X, "column_names"):
        return np.array(X.column(name).to_pylist(), dtype=object)
    if hasattr(X, "to_arrow"):  # polars would return fixed-width text
        return X[name].to_numpy()
    return np.asarray(X[name])


def column_name(X: Any, name: str | int) -> Any:
    """Return the name of a column of a data frame, given by its name or number."""
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    if isinstance(name, str) or name in names or not 0 <= name < len(names):
        return name
    return names[name]


def encode_table(
    X: Any, kinds: dict[str, Sequence[str | int] | None]
) -> tuple[Any, Any]:
    """Return the rows, and the encoder; None if the input needs no encoding.

    ``kinds`` has the columns whose kind the user overrides, by kind.
    """
    overrides: dict[str, Any] = {
        kind: _by_name(X, names) for kind, names in kinds.items() if names is not None
    }
    table = needs_encoding(X)
    if overrides and not (table or hasattr(X, "columns")):
        raise ValueError(
            f"{min(overrides)} names columns of a data frame, but X is "
            f"{type(X).__name__}. Convert it, for example by pandas.DataFrame(X)."
        )
    if not (table or overrides):
        return X, None
    from aucmax.tables.encoder import TableEncoder
    from aucmax.tables.schema import Overrides

    coded = Overrides(encode="codes", missing="keep", **overrides)
    encoder = TableEncoder.fit(X, coded)
    return encoder.transform(X, warn_unknown=False), encoder


def _by_name(X: Any, names: Sequence[str | int]) -> list[str | int]:
    """Return columns; a number is a position, unless a column has it as its name."""
    known = list(X.columns) if hasattr(X, "iloc") else []
    return [str(name) if name in known else name for name in names]


def class_weighted(class_weight: Any, y: Any, sample_weight: Any) -> NDArray[Any]:
    """Return row weights times class weights; rows of weight zero do not count."""
    if sample_weight is None:
        return np.asarray(compute_sample_weight(class_weight, y))
    refuse_mask(sample_weight, "sample_weight")
    weight = np.asarray(sample_weight, np.float64)
    counted = np.flatnonzero(weight) if class_weight == "balanced" else None
    found = compute_sample_weight(class_weight, y, indices=counted)
    return weight * np.asarray(found)


def label_task(classes: NDArray[Any]) -> dict[str, Any]:
    """Return which label is positive, in the form that model files store."""
    from aucmax.tables.labels import Task

    negative, positive = classes.tolist()
    boolean = isinstance(positive, bool)
    return (Task() if boolean else Task.of([positive], [negative])).to_json()
