"""What the maps have in common: an interface, scales, blocks, features kept beside."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from aucmax.base.docstrings import complete_docstring
from aucmax.base.expression import ScoreExpression, Units
from aucmax.core.rows import Float
from aucmax.core.threads import one_blas_thread
from aucmax.core.validation import (
    MATRIX,
    check_structure,
    check_values,
)
from aucmax.kernel.row_blocks import Array, Job, by_blocks
from aucmax.kernel.scaling import SCALING, Scaling, fitted, only
from aucmax.storage.estimator import StoredEstimator
from aucmax.storage.storable import Spec


class FeatureMap(StoredEstimator, TransformerMixin, BaseEstimator):
    """Base of the maps.

    A subclass fits itself in ``_fit`` and gives ``features`` and ``n_features_out``;
    and ``scores`` if there is a shorter way to products of features and weights.
    """

    # Whether features have one unit, and a size of about one: then none is to be scaled
    # up, and float32 has room and digits enough for them.
    one_unit: ClassVar[bool]

    columns_: NDArray[np.int64]  # the features that count
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
            The rows.
        y : None
            Ignored: maps do not look at labels.

        Returns
        -------
        self
            The fitted map.
        """
        check_structure(X)
        rows = validate_data(self, X, **MATRIX)
        check_values(rows, getattr(self, "feature_names_in_", None))
        self._fit(rows)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the features of the rows of ``X``, in its float type.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Their features; those of a row do not depend on the others.
        """
        check_is_fitted(self)
        check_structure(X)
        rows = validate_data(self, X, reset=False, **MATRIX)
        check_values(rows, getattr(self, "feature_names_in_", None))
        return self.features(rows, rows.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return a name for each feature: that of the map, with a number.

        Parameters
        ----------
        input_features : array-like of str, default=None
            The names of the features of X, for those that are kept beside.

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self)
        given = getattr(self, "feature_names_in_", input_features)
        if given is None:
            given = [f"x{j}" for j in range(self.n_features_in_)]
        beside = getattr(self, "linear", False)
        kept = self.columns_.tolist() if beside else []
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
        """The number of features that rows are mapped to."""
        raise NotImplementedError

    def expression(self, intercept: float, w: Float) -> ScoreExpression:
        """Return the score of weights ``w`` of the features, as a formula."""
        raise NotImplementedError

    def resize(self, n_features: int) -> None:
        """Take rows with more features, which do not matter, or fewer."""
        self.n_features_in_ = n_features

    def _fit(self, X: Any) -> None:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class KernelMap(FeatureMap):
    """Base of the maps of a Gaussian kernel: features of scaled rows, block by block.

    A subclass draws what it needs in ``_draw`` and
    gives ``_width`` and ``_mapper``, and may have a ``_scorer`` of its own.
    """

    one_unit: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "scale": [StrOptions({"auto", "none"})],
        "linear": ["boolean"],
        "random_state": ["random_state"],
    }
    stored: ClassVar[dict[str, Spec]] = {**SCALING, "sigma_": Spec("")}

    sigma: float | str
    width: float
    scale: str
    linear: bool
    centre_: Float
    unit_: Float
    low_: Float
    high_: Float
    sigma_: float

    @property
    def scaling(self) -> Scaling:
        """How rows are scaled."""
        return Scaling(self.columns_, self.centre_, self.unit_, self.low_, self.high_)

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
        """The number of features that rows are mapped to."""
        return self._width() + (len(self.columns_) if self.linear else 0)

    def expression(self, intercept: float, w: Float) -> ScoreExpression:
        """Return the score of weights ``w`` of the features, as a formula."""
        at = len(self.columns_) if self.linear else 0
        linear = w[:at] if at else np.zeros(len(self.columns_))
        return ScoreExpression(intercept, linear, self.scaling, self._units(w[at:]))

    def _units(self, w: Float) -> Units:
        """Return the kernel's part of a formula."""
        raise NotImplementedError

    def _fit(self, X: Any) -> None:
        found, self.sigma_ = fitted(X, self.scale, self.sigma, self.width)
        self.columns_, self.centre_, self.unit_, self.low_, self.high_ = found
        self._draw(only(X, self.columns_))

    def _draw(self, X: Any) -> None:
        """Fit what scaling leaves to be fitted, to the columns that count."""
        raise NotImplementedError

    def _width(self) -> int:
        raise NotImplementedError

    def _mapper(self, dtype: Any) -> Job:
        """Return what gives the features of a block of scaled rows."""
        raise NotImplementedError

    def _scorer(self, w: Float) -> Job:
        """Return what gives the products of a block's features and weights."""
        features = self._mapper(w.dtype)
        return lambda Z: features(Z) @ w
