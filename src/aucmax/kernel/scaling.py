"""Scaling of features for a kernel, clipped to the range of the training rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.base.class_moments import POS, measure
from aucmax.core.rows import Float, as_rows
from aucmax.storage.state import Spec

_CONSTANT = 1e-14  # a standard deviation below this share of the mean is rounding error
_GRAIN = 2.0**-24
_SPARSE = 0.1  # share of nonzero values below which data count as text

# The attributes of an estimator with a scaling.
SCALING = {
    "columns_": Spec("k", is_index=True),
    **dict.fromkeys(("centre_", "unit_", "low_", "high_"), Spec("k")),
    "sigma_": Spec(""),
}


class Scaling(NamedTuple):
    """z = (x - centre) · unit, clipped to [low, high], for the features ``columns``.

    Constant features are left out, such as hashed ones that never occur. A kernel
    cannot extrapolate far from its landmarks. Clipping to the range of the training
    rows keeps outliers, and features that change later in a stream, from dominating.
    """

    columns: NDArray[np.int64]  # (k,)
    centre: Float  # (k,)
    unit: Float  # (k,)
    low: Float  # (k,)
    high: Float  # (k,)

    def apply(self, rows: Any) -> Float:
        """Return z of rows, dense or sparse, that are restricted to the columns."""
        x = rows.toarray() if sparse.issparse(rows) else rows
        z: Float = np.clip((x - self.centre) * self.unit, self.low, self.high)
        return z

    def times(self, factor: float) -> "Scaling":
        """Return the scaling with units multiplied by ``factor``."""
        numbers = (self.unit * factor, self.low * factor, self.high * factor)
        return Scaling(self.columns, self.centre, *numbers)


class ScaledRows:
    """Mixin of estimators with a Gaussian kernel of scaled rows."""

    sigma: float | str
    width: float
    scale: str
    columns_: NDArray[np.int64]
    centre_: Float
    unit_: Float
    low_: Float
    high_: Float
    sigma_: float

    @property
    def scaling(self) -> Scaling:
        """How rows are scaled."""
        return Scaling(self.columns_, self.centre_, self.unit_, self.low_, self.high_)

    def _fit_scaling(self, X: Any, weight: Float | None = None) -> Any:
        """Fit the scaling; return the columns that vary."""
        found, self.sigma_ = fitted(X, self.scale, self.sigma, self.width, weight)
        self.columns_, self.centre_, self.unit_, self.low_, self.high_ = found
        return only(X, self.columns_)


def only(X: Any, columns: NDArray[np.int64]) -> Any:
    """Return columns of X, or X itself if these are all."""
    return X if len(columns) == X.shape[1] else X[:, columns]


def fitted(
    X: Any, scale: str, sigma: float | str, width: float, weight: Float | None = None
) -> tuple[Scaling, float]:
    """Return the scaling for a kernel of width one, and σ; parameters as documented."""
    n, d = X.shape
    moments = measure(as_rows(X), np.ones(n) if weight is None else weight, d)
    mean, variance = moments.mean[POS], moments.variance[POS]
    varies = variance > (_CONSTANT * np.abs(mean)) ** 2
    text = varies.sum() > n and moments.nonzero_share[POS, varies].mean() < _SPARSE
    if scale == "none" or text:
        unit = varies.astype(np.float64)
    else:
        unit = np.divide(1.0, np.sqrt(variance), out=np.zeros(d), where=varies)
    distance = float(np.sqrt(np.sum(variance * unit * unit))) or 1.0
    found = width * (distance if isinstance(sigma, str) else float(sigma))
    columns = np.flatnonzero(varies)
    # Rounded, so that rounding errors of the mean do not decide which of two landmarks
    # is nearer.
    unit = _rounded(unit[columns] / found)
    mean = np.rint(mean[columns] * unit / _GRAIN) * (_GRAIN / unit)
    low, high = ((edge - mean) * unit for edge in _range(only(X, columns)))
    return Scaling(columns, mean, unit, low, high), found


def _rounded(numbers: Float) -> Float:
    """Return numbers rounded to 24 bits, as in float32."""
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
