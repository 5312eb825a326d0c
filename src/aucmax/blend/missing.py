"""Median imputation of missing numbers, with an indicator feature per column."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.rows import Float
from aucmax.storage.storable import whole_numbers


class MedianImputer(NamedTuple):
    """Medians that replace NaN; both arrays are empty if nothing was missing."""

    median: Float  # (d,) or (0,)
    flagged: NDArray[np.int64]  # columns with an indicator feature

    @classmethod
    def fit(cls, X: Any) -> "MedianImputer":
        """Return the imputer of dense rows."""
        missing = np.isnan(X)
        flagged = np.flatnonzero(missing.any(axis=0))
        if not len(flagged):
            return cls(np.zeros(0), flagged)
        empty = missing.all(axis=0)
        median = np.zeros(X.shape[1])
        median[~empty] = np.nanmedian(X[:, ~empty], axis=0)
        return cls(median, flagged)

    @classmethod
    def restored(
        cls, arrays: dict[str, NDArray[Any]], n_features: int
    ) -> "MedianImputer":
        """Return the imputer of stored arrays; raise a ValueError if invalid."""
        median = arrays["median"]
        flagged = whole_numbers("columns", arrays["flagged"], 0, n_features - 1)
        if median.shape not in ((0,), (n_features,)) or flagged.ndim != 1:
            raise ValueError(
                f"'median' has shape {median.shape} and 'flagged' {flagged.shape}; "
                f"expected one median for each of {n_features} features."
            )
        if not np.isfinite(median).all() or (len(flagged) and not len(median)):
            raise ValueError("'median' is missing or not finite.")
        return cls(np.asarray(median, np.float64), flagged)

    def transform(self, X: Any) -> Any:
        """Replace NaN by the medians, and append the indicator features."""
        if not len(self.median):
            return X
        missing = np.isnan(X)
        filled = np.where(missing, self.median.astype(X.dtype), X)
        return np.hstack([filled, missing[:, self.flagged].astype(X.dtype)])
