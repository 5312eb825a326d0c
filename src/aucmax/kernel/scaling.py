"""Features of raw rows in one unit, within the range that was seen."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.base.class_moments import POS, measure
from aucmax.core.rows import Float, as_rows
from aucmax.storage.storable import Spec

_CONSTANT = 1e-14  # a spread below this share of the mean is rounding
_GRAIN = 2.0**-24
_SPARSE = 0.1  # share of values that are not zero, below which features are words

# The arrays of a scaling, as attributes of a fitted map.
SCALING = {
    "columns_": Spec("k", is_index=True),
    **dict.fromkeys(("centre_", "unit_", "low_", "high_"), Spec("k")),
}


class Scaling(NamedTuple):
    """z = (x - centre) · unit, but not below ``low`` and not above ``high``.

    Of the features that vary, the ``columns``: of hashed ones most never occur.

    A kernel knows nothing of what is far from all landmarks. So what is beyond the rows
    that it was fitted to counts as their outermost: a wild value, or a feature that was
    tiny in the first rows of a stream and then wakes up, leaves the others their say.
    """

    columns: NDArray[np.int64]  # (k,)
    centre: Float  # (k,)
    unit: Float  # (k,)
    low: Float  # (k,)
    high: Float  # (k,)

    def apply(self, rows: Any) -> Float:
        """Return z of some rows that have the columns only, and may be sparse."""
        x = rows.toarray() if sparse.issparse(rows) else rows
        z: Float = np.clip((x - self.centre) * self.unit, self.low, self.high)
        return z

    def times(self, factor: float) -> "Scaling":
        """Return the scaling to another unit."""
        numbers = (self.unit * factor, self.low * factor, self.high * factor)
        return Scaling(self.columns, self.centre, *numbers)


def only(X: Any, columns: NDArray[np.int64]) -> Any:
    """Return some columns of X, which is X itself if these are all."""
    return X if len(columns) == X.shape[1] else X[:, columns]


def fitted(
    X: Any, scale: str, sigma: float | str, width: float, weight: Float | None = None
) -> tuple[Scaling, float]:
    """Return the scaling to features of a kernel of width one, and σ.

    Features are divided by their deviations, unless ``scale`` is "none" or they are
    words, which have one unit already and are rare on purpose; and then by σ, which is
    the ``width`` times ``sigma``, with "auto" for the root mean square distance of rows
    to their mean. A feature that is constant does not count.
    """
    n, d = X.shape
    tally = measure(as_rows(X), np.ones(n) if weight is None else weight, d)
    mean, variance = tally.mean[POS], tally.variance[POS]
    varies = variance > (_CONSTANT * np.abs(mean)) ** 2
    # Of hashed features, most never occur.
    words = varies.sum() > n and tally.nonzero_share[POS, varies].mean() < _SPARSE
    if scale == "none" or words:
        unit = varies.astype(np.float64)
    else:
        unit = np.divide(1.0, np.sqrt(variance), out=np.zeros(d), where=varies)
    spread = float(np.sqrt(np.sum(variance * unit * unit))) or 1.0
    found = width * (spread if isinstance(sigma, str) else float(sigma))
    columns = np.flatnonzero(varies)
    # Rounded, so that no last bit, of a mean that was summed up in another way, decides
    # which of two landmarks is nearer.
    unit = _rounded(unit[columns] / found)
    mean = np.rint(mean[columns] * unit / _GRAIN) * (_GRAIN / unit)
    low, high = ((edge - mean) * unit for edge in _range(only(X, columns)))
    return Scaling(columns, mean, unit, low, high), found


def _rounded(numbers: Float) -> Float:
    """Return numbers of 24 bits, as in float32."""
    mantissa, exponent = np.frexp(numbers)
    rounded: Float = np.ldexp(np.rint(mantissa / _GRAIN) * _GRAIN, exponent)
    return rounded


def _range(X: Any) -> tuple[Float, Float]:
    if not X.shape[1]:
        return np.zeros(0), np.zeros(0)
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return low.astype(np.float64), high.astype(np.float64)
