"""Data frames as input of AUCClassifier: detection, encoding, label task."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from scipy import sparse


def needs_encoding(X: Any) -> bool:
    """Return whether X is a table that must be encoded to become numeric rows."""
    if hasattr(X, "collect_schema") and not hasattr(X, "to_arrow"):
        raise TypeError("X is a polars LazyFrame: pass X.collect().")
    if hasattr(X, "column_names") or hasattr(X, "to_arrow"):  # Arrow, polars
        return True
    if sparse.issparse(X) or not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return False
    return any(getattr(kind, "kind", "O") not in "biuf" for kind in X.dtypes)


def encode_table(
    X: Any, kinds: dict[str, Sequence[str | int] | None]
) -> tuple[Any, Any, list[str] | None]:
    """Return the rows, the encoder, and the column that each feature was made from.

    ``kinds`` has the columns whose kind the user overrides, by kind. Input that needs
    no encoding is returned as it is, with None for the encoder and the columns.
    """
    overrides: dict[str, Any] = {
        kind: list(names) for kind, names in kinds.items() if names is not None
    }
    table = needs_encoding(X)
    if overrides and not (table or hasattr(X, "columns")):
        raise ValueError(
            f"{min(overrides)} names columns of a data frame, but X is "
            f"{type(X).__name__}. Convert it, for example by pandas.DataFrame(X)."
        )
    if not (table or overrides):
        return X, None, None
    from aucmax.tables.encoder import TableEncoder
    from aucmax.tables.schema import Overrides

    encoder = TableEncoder.fit(X, Overrides(**overrides))
    rows = encoder.transform(X, warn_unknown=False)
    return rows, encoder, encoder.column_of_feature


def label_task(classes: NDArray[Any]) -> dict[str, Any]:
    """Return which label is positive, in the form that model files store."""
    from aucmax.tables.labels import Task

    negative, positive = classes.tolist()
    boolean = isinstance(positive, bool)
    return (Task() if boolean else Task.of([positive], [negative])).to_json()
