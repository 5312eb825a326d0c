"""Checks of numbers that come from users, shared by estimators and measures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def check_weights(weight: NDArray[Any]) -> None:
    """Raise an error that names the first weight that cannot be one."""
    bad = ~((weight >= 0.0) & (weight < np.inf))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight is {weight[row]} at row {row}: "
            "weights must be finite and not negative"
        )


def check_finite(X: Any, names: NDArray[Any] | None = None) -> None:
    """Raise an error that names the first NaN or infinity in ``X``, if there is one."""
    values = X.data if sparse.issparse(X) else X
    if np.isfinite(values.sum(dtype=np.float64)):
        return
    bad = ~np.isfinite(values)
    count = int(np.count_nonzero(bad))
    if count == 0:  # it was the sum that overflowed
        return
    at = int(np.argmax(bad))
    value = values.ravel()[at]
    if sparse.issparse(X):
        row = int(np.searchsorted(X.indptr, at, side="right")) - 1
        column = int(X.indices[at])
    else:
        row, column = divmod(at, X.shape[1])
    kind = "NaN" if np.isnan(value) else "infinity"
    name = "" if names is None else f" ({names[column]!r})"
    more = f", and {count - 1} more" if count > 1 else ""
    raise ValueError(
        f"Input X contains {kind} at row {row}, column {column}{name}{more}; "
        "impute or drop what is not finite"
    )
