r"""Nyström features of a Gaussian kernel, with k-means landmarks.

With landmarks :math:`u_1 \dots u_m` and their kernel matrix :math:`W = U \Lambda U^T`,

.. math:: \phi(x) = \Lambda^{-1/2} U^T (\kappa(x, u_1) \dots \kappa(x, u_m))^T

has :math:`\phi(u_i) \cdot \phi(u_j) = \kappa(u_i, u_j)`; elsewhere it is the kernel
projected on the span of the landmarks. Directions with tiny eigenvalues are left out.

A linear model of φ is a sum of m kernels, so its scores need no product with U.
"""

from copy import copy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.utils._param_validation import Interval
from threadpoolctl import threadpool_limits

from aucmax.base.constraints import COUNT
from aucmax.base.interfaces import Units
from aucmax.base.ranker import generator
from aucmax.core.rows import Float
from aucmax.core.threads import one_blas_thread
from aucmax.kernel.maps import Array, Job, KernelMap, by_blocks
from aucmax.storage.state import Spec

_SAMPLE = 20_000  # most rows for k-means …
_VALUES = 1 << 26  # … and most values, as it needs dense copies
_TO_START = 4  # rows per landmark for k-means++
_ROUNDS = 10  # of k-means: more of them do not change AUC


class KMeansNystroem(KernelMap):
    r"""Nyström features of a Gaussian kernel, with k-means landmarks.

    .. math:: \kappa(x, y) = \exp(-\|x - y\|^2 / (2 \sigma^2))

    Parameters
    ----------
    n_components : int or None, default=400
        Number of landmarks, or None for all distinct rows. It is also the number of
        features, unless landmarks are nearly equal.
    .. shared: kernel, linear
    tol : float, default=1e-7
        Eigenvalues of W below this share of the largest one are left out: in float32
        their features would be noise.
    random_state : int, RandomState instance or None, default=None
        Random seed of the sample and the start of k-means.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_columns, n_landmarks)
        The scaled landmarks, as columns.
    components_ : ndarray of shape (n_landmarks, n_kept)
        :math:`U \Lambda^{-1/2}`.
    .. shared: scaling, features

    See Also
    --------
    RandomFourier : Features of the same kernel that do not depend on the data.
    Chain : A map and a learner in one estimator.

    Notes
    -----
    k-means uses at most 20 000 random rows, and starts from k-means++ on four rows per
    landmark. With more than 3355 features it uses fewer rows, 2²⁶ values in all, but at
    least one row per landmark. The features of a row do not depend on the other rows
    that are transformed, to the last bit.

    References
    ----------
    .. [1] K. Zhang, J. T. Kwok, "Clustered Nyström Method for Large Scale Manifold
       Learning and Dimension Reduction", IEEE Transactions on Neural Networks 21, 2010.
    .. [2] M. Khalid, "Large-scale nonlinear AUC maximization", dissertation, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import KMeansNystroem
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> KMeansNystroem(50, random_state=0).fit_transform(X).shape
    (500, 50)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMap._parameter_constraints,
        "n_components": [COUNT, None],
        "tol": [Interval(Real, 0, 1, closed="left")],
    }
    stored: ClassVar[dict[str, Spec]] = {
        **KernelMap.stored,
        "landmarks_": Spec("km"),
        "components_": Spec("mr"),
    }

    def __init__(
        self,
        n_components: int | None = 400,
        *,
        sigma: float | str = "auto",
        width: float = 1.0,
        scale: str = "auto",
        linear: bool = False,
        tol: float = 1e-7,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.sigma = sigma
        self.width = width
        self.scale = scale
        self.linear = linear
        self.tol = tol
        self.random_state = random_state

    def _draw(self, X: Any) -> None:
        rng = generator(self.random_state)
        if self.n_components is not None:
            most = max(_VALUES // max(X.shape[1], 1), self.n_components)
            most = min(_SAMPLE, most)
            if X.shape[0] > most:
                X = X[np.sort(rng.choice(X.shape[0], most, replace=False))]
        Z = np.empty(X.shape)
        by_blocks(X, self.scaling.apply, lambda block: block, Z)
        self._take(_landmarks(Z, self.n_components, rng))

    def _take(self, landmarks: Float) -> None:
        """Set the landmarks, given as scaled rows, and compute their components."""
        # Always in C order: rounding in BLAS depends on the layout.
        self.landmarks_ = np.ascontiguousarray(landmarks.T)
        with one_blas_thread():
            W = kernel_of(self.landmarks_)(landmarks)
            values, vectors = eigh(W, overwrite_a=True, check_finite=False)
        kept = values > self.tol * values[-1]
        found = vectors[:, kept]
        # Eigenvectors have no unique sign: make the largest entry positive.
        largest = np.abs(found).argmax(axis=0)
        found *= np.sign(found[largest, np.arange(len(largest))])
        components = found / np.sqrt(values[kept])
        self.components_ = np.ascontiguousarray(components)

    def with_width(self, width: float) -> Self:
        """Return the map with the same landmarks and another kernel width.

        Parameters
        ----------
        width : float
            New value of the parameter ``width``.

        Returns
        -------
        KMeansNystroem
            A fitted map.
        """
        factor = self.width / width
        other = copy(self)
        other.width = width
        other.sigma_ = self.sigma_ / factor
        _, _, other.unit_, other.low_, other.high_ = self.scaling.times(factor)
        other._take(self.landmarks_.T * factor)
        return other

    def _width(self) -> int:
        return self.components_.shape[1]

    def _mapper(self, dtype: Any) -> Job:
        kernel = kernel_of(self.landmarks_, dtype)
        return lambda Z: kernel(Z) @ self.components_

    def _units(self, w: Float) -> Units:
        weights = self.components_ @ w
        return Units.gaussian(self.landmarks_, weights)

    def _scorer(self, w: Float) -> Job:
        kernel, weights = kernel_of(self.landmarks_), self.components_ @ w
        return lambda Z: kernel(Z) @ weights


def kernel_of(landmarks: Array, dtype: Any = np.float64) -> Job:
    """Return a function for the Gaussian kernel, σ = 1, with these landmarks.

    One product of matrices gives all exponents: (z, 1, -‖z‖²/2) times (u, -‖u‖²/2, 1)
    is -‖z-u‖²/2. ``dtype`` is that of the exponential function and the result.
    """
    squares = -0.5 * np.einsum("ij,ij->j", landmarks, landmarks)
    right = np.vstack([landmarks, squares, np.ones_like(squares)])

    def job(Z: Array) -> Array:
        left = np.empty((len(Z), Z.shape[1] + 2), Z.dtype)
        left[:, :-2] = Z
        left[:, -2] = 1.0
        left[:, -1] = -0.5 * np.einsum("ij,ij->i", Z, Z)
        K = (left @ right).astype(dtype, copy=False)
        return np.exp(K, out=K)

    return job


def _landmarks(Z: Float, count: int | None, rng: np.random.RandomState) -> Float:
    """Return the cluster centres of the rows, or all distinct rows if they are few."""
    distinct = np.unique(Z, axis=0)
    if count is None or len(distinct) <= count:
        return distinct
    with threadpool_limits(1):  # threads would change the order of sums
        sample = Z
        if len(Z) > _TO_START * count:
            sample = Z[rng.choice(len(Z), _TO_START * count, replace=False)]
        start, _ = kmeans_plusplus(sample, count, random_state=rng, n_local_trials=1)
        clusters = KMeans(count, init=start, n_init=1, max_iter=_ROUNDS)
        return np.unique(clusters.fit(Z).cluster_centers_, axis=0)
