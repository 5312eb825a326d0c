"""Fewer features by a linear map: some of them, random mixtures, or the principal ones.

So Gao et al. make a full covariance of wide data affordable: OPAUCf, OPAUCrp, OPAUCpca.
A linear ranker of such features is one of the features themselves.
"""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core.base import generator, product
from aucmax.core.check import check_whole
from aucmax.core.formula import Formula
from aucmax.core.moments import one_blas_thread
from aucmax.core.rows import Float
from aucmax.features.base import FeatureMap
from aucmax.features.blocks import Array, by_blocks


class Projection(FeatureMap):
    """Fewer features: some of them, random mixtures, or principal components.

    Parameters
    ----------
    n_components : int, default=1000
        Number of features to map to; all of them, as they are, if there are no more.
    kind : {"select", "random", "pca"}, default="random"
        Some features drawn at random; products with Gaussian directions, of variance
        one over ``n_components``; or principal components, about zero.
    random_state : int, RandomState instance or None, default=None
        Draws features or directions, or where the search for components starts.

    Attributes
    ----------
    selected_ : ndarray of shape (n_kept,)
        Which features are kept: those drawn, or all.
    directions_ : ndarray of shape (n_features, n_components)
        What rows are multiplied with; none if features are only selected.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.

    See Also
    --------
    Chain : A map and a learner in one.

    References
    ----------
    .. [1] W. Gao, R. Jin, S. Zhu, Z.-H. Zhou, "One-Pass AUC Optimization", ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import Projection
    >>> X = np.random.default_rng(0).standard_normal((50, 30))
    >>> Projection(5, kind="pca", random_state=0).fit_transform(X).shape
    (50, 5)
    """

    one_unit: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "kind": [StrOptions({"select", "random", "pca"})],
        "random_state": ["random_state"],
    }
    _by_feature: ClassVar[tuple[str, ...]] = ("directions_",)
    _results: ClassVar[tuple[str, ...]] = ("selected_", "directions_")

    selected_: Float
    directions_: Float

    def __init__(
        self,
        n_components: int = 1000,
        *,
        kind: str = "random",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kind = kind
        self.random_state = random_state

    def features(self, X: Any, dtype: Any) -> Array:
        """Return the features of validated ``X``, in a float type."""
        if not self.directions_.shape[1]:
            some = X[:, self.selected_.astype(np.int64)]
            dense = some.toarray() if sparse.issparse(some) else some
            return dense.astype(dtype, copy=False)
        if sparse.issparse(X):
            return product(X, self.directions_).astype(dtype, copy=False)
        out = np.empty((X.shape[0], self.n_features_out), dtype)
        directions = self.directions_.astype(dtype, copy=False)
        by_blocks(X, None, lambda Z: Z @ directions, out)
        return out

    def scores(self, X: Any, w: Float) -> Float:
        """Return the products of the features of validated ``X`` and weights ``w``."""
        return product(X, self.formula(0.0, w).weights)

    def formula(self, intercept: float, w: Float) -> Formula:
        """Return the score of weights ``w`` of the features, as a formula."""
        if self.directions_.shape[1]:
            return Formula(intercept, self.directions_ @ w)
        weights = np.zeros(self.n_features_in_)
        weights[self.selected_.astype(np.int64)] = w
        return Formula(intercept, weights)

    @property
    def n_features_out(self) -> int:
        """The number of features that rows are mapped to."""
        return self.directions_.shape[1] or len(self.selected_)

    def _fit(self, X: Any) -> None:
        rng = generator(self.random_state)
        n, d = X.shape
        k = min(self.n_components, d)
        self.selected_ = np.arange(d, dtype=np.float64)
        self.directions_ = np.zeros((d, 0))
        if k == d:
            return
        if self.kind == "select":
            self.selected_ = np.sort(rng.choice(d, k, replace=False)) * 1.0
        elif self.kind == "random":
            self.directions_ = rng.standard_normal((d, k)) / np.sqrt(k)
        else:
            seed = rng.randint(np.iinfo(np.int32).max)
            with one_blas_thread():
                found = TruncatedSVD(min(k, n), random_state=seed).fit(X)
            self.directions_ = np.ascontiguousarray(found.components_.T, np.float64)

    def _validate_results(self) -> None:
        super()._validate_results()
        check_whole("selected features", self.selected_, 0, self.n_features_in_ - 1)
