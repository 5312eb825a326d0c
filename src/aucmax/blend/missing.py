"""Numbers that are missing: the median of their column, and a column that says so."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.rows import Float
from aucmax.core.validation import check_whole


class Fill(NamedTuple):
    """What to put in place of NaN; nothing if there was none."""

    median: Float  # (d,) or none
    flagged: NDArray[np.int64]  # columns that have another one beside them

    @classmethod
    def of(cls, X: Any) -> "Fill":
        """Return what dense rows are to be filled with."""
        missing = np.isnan(X)
        flagged = np.flatnonzero(missing.any(axis=0))
        if not len(flagged):
            return cls(np.zeros(0), flagged)
        every = missing.all(axis=0)
        median = np.zeros(X.shape[1])
        median[~every] = np.nanmedian(X[:, ~every], axis=0)
        return cls(median, flagged)

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]], n_features: int) -> "Fill":
        """Return what arrays out of a file say; raise an error if it makes no sense."""
        median = arrays["median"]
        flagged = check_whole("columns", arrays["flagged"], 0, n_features - 1)
        if median.shape not in ((0,), (n_features,)) or flagged.ndim != 1:
            raise ValueError("its medians are of other features.")
        if not np.isfinite(median).all() or (len(flagged) and not len(median)):
            raise ValueError("its medians are no numbers.")
        return cls(np.asarray(median, np.float64), flagged)

    def fill(self, X: Any) -> Any:
        """Return rows without NaN, and with columns that say where they were."""
        if not len(self.median):
            return X
        missing = np.isnan(X)
        filled = np.where(missing, self.median.astype(X.dtype), X)
        return np.hstack([filled, missing[:, self.flagged].astype(X.dtype)])
