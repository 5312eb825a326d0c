"""Base classes of the feature maps: interface, scaling, blocks of rows.

Features are scaled for a kernel, and clipped to the range of the training rows.

Rows are mapped in blocks of one shape, on all cores. Rounding in BLAS depends on the
shapes of the matrices and, in float32, on the place of a row in its block. With blocks
of float64 and of one shape, the last one padded with zeros, the result for a row
depends on that row alone: not on other rows, the chunks of a stream, or the number of
threads.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils.validation import check_is_fitted, validate_data

from aucmax.base.class_moments import POS, measure
from aucmax.base.constraints import SHARED
from aucmax.base.docstrings import complete_docstring
from aucmax.base.interfaces import ScoreExpression, Units
from aucmax.core.rows import Float, as_rows
from aucmax.core.threads import in_threads, one_blas_thread
from aucmax.core.validation import MATRIX, check_structure, check_values
from aucmax.storage.state import Spec, StoredEstimator

Array = NDArray[np.floating[Any]]
Job = Callable[[Array], Array]  # from a block to its results

BLOCK = 96  # rows: a multiple of the 12, 16 and 24 that BLAS takes at a time
_TASK = 32  # blocks per task of a thread


def by_blocks(
    X: Any, scale: Callable[[Any], Array] | None, job: Job, out: Array
) -> None:
    """Set ``out`` to ``job`` of the rows of X, scaled, in blocks of ``BLOCK`` rows.

    ``job`` gets float64. What it multiplies by a matrix has to be float64; functions of
    single numbers may be computed in float32.
    """
    n = X.shape[0]

    def task(first: int) -> None:
        Z = np.empty((BLOCK, X.shape[1]))
        for start in range(first, min(first + _TASK * BLOCK, n), BLOCK):
            rows = X[start : start + BLOCK]
            count = rows.shape[0]
            Z[:count] = rows if scale is None else scale(rows)
            Z[count:] = 0.0
            out[start : start + count] = job(Z)[:count]

    for _ in in_threads(task, range(0, n, _TASK * BLOCK)):
        pass


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


class FeatureMap(StoredEstimator, TransformerMixin, BaseEstimator):
    """Base class of the maps.

    A subclass defines ``_fit``, ``features`` and ``n_features_out``, and ``scores`` if
    there is a faster way than the product of features and weights.
    """

    # Whether all features have one unit and a size of about one: then a learner needs
    # no scales, and float32 is accurate enough.
    one_unit: ClassVar[bool]

    _parameter_constraints: ClassVar[dict[str, Any]] = SHARED
    columns_: NDArray[np.int64]  # the features that are used
    n_features_in_: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_docstring(cls, "")

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the map to ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted map.
        """
        self._fit(self._validated(X, reset=True))
        return self

    def _validated(self, X: Any, reset: bool) -> Any:
        check_structure(X)
        rows = validate_data(self, X, reset=reset, **MATRIX)
        check_values(rows, getattr(self, "feature_names_in_", None))
        return rows

    def transform(self, X: ArrayLike) -> Array:
        """Return the features of the rows of ``X``, in its float type.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to transform.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            The features; those of a row do not depend on the other rows.
        """
        check_is_fitted(self)
        rows = self._validated(X, reset=False)
        return self.features(rows, rows.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features: the name of the map and a number.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features of X, for linear features.

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self)
        given = getattr(self, "feature_names_in_", input_features)
        if given is None:
            given = [f"x{j}" for j in range(self.n_features_in_)]
        kept = self.columns_.tolist() if getattr(self, "linear", False) else []
        own = range(self.n_features_out - len(kept))
        names = [f"{type(self).__name__.lower()}{k}" for k in own]
        return np.array([*(given[j] for j in kept), *names], dtype=object)

    def features(self, X: Any, dtype: Any) -> Array:
        """Return the features of validated ``X``, in a float type."""
        raise NotImplementedError

    def scores(self, X: Any, w: Float) -> Float:
        """Return the products of the features of validated ``X`` and weights ``w``."""
        return self.features(X, w.dtype) @ w

    @property
    def n_features_out(self) -> int:
        """Number of features after the map."""
        raise NotImplementedError

    def expression(self, intercept: float, w: Float) -> ScoreExpression:
        """Return the score by weights ``w`` of the features as an expression."""
        raise NotImplementedError

    def resize(self, n_features: int) -> None:
        """Change the number of features of X; new ones are ignored."""
        self.n_features_in_ = n_features

    def _fit(self, X: Any) -> None:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class KernelMap(ScaledRows, FeatureMap):
    """Base class of the maps of a Gaussian kernel, on blocks of scaled rows.

    A subclass defines ``_draw``, ``_width``, ``_mapper`` and ``_units``, and may define
    a faster ``_scorer``.
    """

    one_unit: ClassVar[bool] = True
    stored: ClassVar[dict[str, Spec]] = SCALING

    linear: bool

    def features(self, X: Any, dtype: Any) -> Array:
        """Return the features of validated ``X``, in a float type."""
        out = np.empty((X.shape[0], self.n_features_out), dtype)
        job = self._mapper(out.dtype)

        def both(Z: Array) -> Array:
            return np.hstack([Z, job(Z)])

        X = only(X, self.columns_)
        by_blocks(X, self.scaling.apply, both if self.linear else job, out)
        return out

    def scores(self, X: Any, w: Float) -> Float:
        """Return the products of the features of validated ``X`` and weights ``w``."""
        out = np.empty(X.shape[0])
        at = len(self.columns_) if self.linear else 0
        with one_blas_thread():
            score = self._scorer(w[at:])

        def job(Z: Array) -> Array:
            return score(Z) + Z @ w[:at] if at else score(Z)

        by_blocks(only(X, self.columns_), self.scaling.apply, job, out)
        return out

    @property
    def n_features_out(self) -> int:
        """Number of features after the map."""
        return self._width() + (len(self.columns_) if self.linear else 0)

    def expression(self, intercept: float, w: Float) -> ScoreExpression:
        """Return the score by weights ``w`` of the features as an expression."""
        at = len(self.columns_) if self.linear else 0
        linear = w[:at] if at else np.zeros(len(self.columns_))
        return ScoreExpression(intercept, linear, self.scaling, self._units(w[at:]))

    def _units(self, w: Float) -> Units:
        """Return the kernel's part of a score expression."""
        raise NotImplementedError

    def _fit(self, X: Any) -> None:
        self._draw(self._fit_scaling(X))

    def _draw(self, X: Any) -> None:
        """Fit the parameters of the map to the columns that vary."""
        raise NotImplementedError

    def _width(self) -> int:
        """Return the number of kernel features."""
        raise NotImplementedError

    def _mapper(self, dtype: Any) -> Job:
        """Return a function that maps a block of scaled rows to features."""
        raise NotImplementedError

    def _scorer(self, w: Float) -> Job:
        """Return a function that maps a block of scaled rows to scores."""
        features = self._mapper(w.dtype)
        return lambda Z: features(Z) @ w
