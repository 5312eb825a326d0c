"""Dimensionality reduction by feature selection, random projection or PCA.

Gao et al. use it to afford a full covariance of wide data: OPAUCf, OPAUCrp, OPAUCpca.
A linear ranker of such features is also linear in the original features.
"""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.utils._param_validation import StrOptions

from aucmax.base.interfaces import ScoreExpression
from aucmax.base.ranker import generator, product
from aucmax.core.rows import Float
from aucmax.core.threads import one_blas_thread
from aucmax.kernel.maps import Array, FeatureMap, by_blocks, only
from aucmax.storage.state import Spec


class Projection(FeatureMap):
    """Dimensionality reduction: random features, random projections or PCA.

    Parameters
    ----------
    n_components : int, default=1000
        Number of features to map to. If no more than that occur, they are kept.
    kind : {"select", "random", "pca"}, default="random"
        Features drawn at random; projections on Gaussian directions, of variance
        1/``n_components``; or principal components without centring.
    random_state : int, RandomState instance or None, default=None
        Random seed of the features, directions or the start of the SVD.

    Attributes
    ----------
    columns_ : ndarray of shape (n_columns,)
        Features used: those drawn, or all that are not always zero.
    directions_ : ndarray of shape (n_columns, n_components)
        Projection matrix; without columns if features are only selected.
    .. shared: features

    See Also
    --------
    Chain : A map and a learner in one estimator.

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
        **FeatureMap._parameter_constraints,
        "kind": [StrOptions({"select", "random", "pca"})],
    }
    stored: ClassVar[dict[str, Spec]] = {
        "columns_": Spec("k", is_index=True),
        "directions_": Spec("km"),
    }

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
        """Return the features of validated ``X``, as ``dtype``."""
        X = only(X, self.columns_)
        if not self.directions_.shape[1]:
            dense = X.toarray() if sparse.issparse(X) else X
            return dense.astype(dtype, copy=False)
        if sparse.issparse(X):
            return product(X, self.directions_).astype(dtype, copy=False)
        out = np.empty((X.shape[0], self.n_features_out), dtype)
        by_blocks(X, None, lambda Z: Z @ self.directions_, out)
        return out

    def scores(self, X: Any, w: Float) -> Float:
        """Return the products of the features of validated ``X`` and weights ``w``."""
        return product(X, self.expression(0.0, w).weights)

    def expression(self, intercept: float, w: Float) -> ScoreExpression:
        """Return the score by weights ``w`` of the features as an expression."""
        weights = np.zeros(self.n_features_in_)
        weights[self.columns_] = self.directions_ @ w if self.directions_.size else w
        return ScoreExpression(intercept, weights)

    @property
    def n_features_out(self) -> int:
        """Number of features after the map."""
        return self.directions_.shape[1] or len(self.columns_)

    def _fit(self, X: Any) -> None:
        rng = generator(self.random_state)
        used = np.asarray(abs(X).sum(axis=0)).ravel() > 0.0
        self.columns_ = np.flatnonzero(used)
        k = len(self.columns_)
        self.directions_ = np.zeros((k, 0))
        if k <= self.n_components:
            return
        size = self.n_components
        if self.kind == "select":
            self.columns_ = np.sort(rng.choice(self.columns_, size, replace=False))
            self.directions_ = np.zeros((size, 0))
        elif self.kind == "random":
            self.directions_ = rng.standard_normal((k, size)) / np.sqrt(size)
        else:
            seed = rng.randint(np.iinfo(np.int32).max)
            search = TruncatedSVD(min(size, X.shape[0]), random_state=seed)
            with one_blas_thread():
                found = search.fit(only(X, self.columns_)).components_
            self.directions_ = np.ascontiguousarray(found.T, np.float64)
