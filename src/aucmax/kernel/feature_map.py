"""Base classes of the feature maps: interface, scaling, blocks of rows."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils.validation import check_is_fitted, validate_data

from aucmax.base.constraints import SHARED
from aucmax.base.docstrings import complete_docstring
from aucmax.base.interfaces import ScoreExpression, Units
from aucmax.core.rows import Float
from aucmax.core.threads import one_blas_thread
from aucmax.core.validation import MATRIX, check_structure, check_values
from aucmax.kernel.row_blocks import Array, Job, by_blocks
from aucmax.kernel.scaling import SCALING, ScaledRows, only
from aucmax.storage.state import Spec, StoredEstimator


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
