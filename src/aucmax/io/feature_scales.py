"""Standard deviations of features, to compare weights of different units."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Float = NDArray[np.float64]

_VALUES = 1 << 22  # most values that are used


class Spreads(NamedTuple):
    """Standard deviations of the features that vary."""

    features: Sequence[int] = ()  # rising
    deviations: Sequence[float] = ()

    @classmethod
    def of(cls, X: Any) -> "Spreads":
        """Compute them from the first rows."""
        stored = X.nnz if sparse.issparse(X) else X.size
        rows = -(-X.shape[0] * _VALUES // max(stored, _VALUES))
        found = _deviations(X[:rows])
        features = np.flatnonzero((found > 0.0) & np.isfinite(found))
        # For display: six digits are enough.
        return cls(features.tolist(), [float(f"{s:.6g}") for s in found[features]])

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any] | None) -> "Spreads":
        """Return the standard deviations in a recipe; old recipes have none."""
        return cls(**((recipe or {}).get("spreads") or {}))

    def among(self, features: Any) -> Float:
        """Return those of the given features, zero if unknown."""
        wanted = np.asarray(features, np.int64)
        if not self.features:
            return np.zeros(len(wanted))
        known = np.array(self.features)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, np.array(self.deviations)[place], 0.0)

    def largest(self, features: Any, weights: Float, count: int) -> "Spreads":
        """Return those of the most influential features."""
        influence = np.abs(weights) * self.among(features)
        nonzero = np.flatnonzero(influence)
        order = np.argsort(-influence[nonzero], kind="stable")[:count]
        kept = np.sort(np.asarray(features)[nonzero[order]])
        return Spreads(kept.tolist(), self.among(kept).tolist())


def _deviations(X: Any) -> Float:
    if not sparse.issparse(X):
        return np.asarray(X.std(axis=0, dtype=np.float64))
    n, d = X.shape
    values = X.data.astype(np.float64)
    mean = np.bincount(X.indices, values, d) / n
    square = np.bincount(X.indices, values * values, d) / n
    return np.sqrt(np.maximum(square - mean * mean, 0.0))
