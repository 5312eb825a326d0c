r"""Pairwise losses with a Gaussian kernel on all rows: kernel RankSVM.

.. math:: J(f) = E\,\ell(f(x^+) - f(x^-)) + \tfrac{l_2}{2} \|f\|^2,
          \qquad f = \sum_i \beta_i \kappa(x_i, \cdot)

With the kernel matrix :math:`K = L L^T`, the rows of L are features whose products are
K, and J is the objective of a linear model w = Lᵀβ on them. Truncated Newton
(:mod:`aucmax.linear.solvers.newton`) minimises it by products with L, each a pass over
n² numbers. The norm of w is that of f, so no preconditioner is needed.
"""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.base.interfaces import ScoreExpression, Units
from aucmax.base.penalty import kernel_ridge
from aucmax.base.ranker import GRADIENT, Ranker, generator
from aucmax.core.products import LocalMatrix
from aucmax.core.rows import Float
from aucmax.core.threads import one_blas_thread
from aucmax.kernel.maps import SCALING, ScaledRows, by_blocks, only
from aucmax.kernel.nystroem import kernel_of
from aucmax.linear.bam import LOSSES, cut_short, minimise
from aucmax.linear.solvers.newton import Coordinates, Objective
from aucmax.losses.pairwise import shares
from aucmax.storage.state import Spec

_MOST_BYTES = 4e9  # of the kernel matrix
_JITTER = 1e-10  # added to its diagonal, as rows may be equal


class KernelBAM(ScaledRows, Ranker):
    r"""Kernel ranker that minimises a pairwise loss over all pairs.

    Minimises

    .. math:: E\,\ell(f(x^+) - f(x^-)) + \tfrac{l_2}{2} \|f\|^2

    over the functions f in the space of the Gaussian kernel
    :math:`\kappa(x, y) = \exp(-\|x - y\|^2 / (2 \sigma^2))`. With the squared hinge,
    this is RankSVM with an RBF kernel. It takes O(n²) memory and O(n³) time, for at
    most 22 360 rows; a :class:`Chain` of :class:`KMeansNystroem` and :class:`BAM`
    approximates it in O(n).

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Penalty; "auto" is :math:`0.3\,(1/n_+ + 1/n_-) \min(1, 1000/n)`.
    loss : str, default="squared_hinge"
        Loss of a pair, as in :class:`BAM`.
    subsample : float, default=1.0
        Share of the rows to train on, drawn at random from each class.
    .. shared: kernel, newton
    random_state : int, RandomState instance or None, default=None
        Random seed of the subsample.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_rows,)
        Weights β of the training rows.
    landmarks_ : ndarray of shape (n_columns, n_rows)
        The scaled training rows, as columns.
    .. shared: intercept, scaling, classes, features
    n_iter_ : int
        Number of Newton steps.
    objective_ : float
        J at the solution.
    gradient_norm_ : float
        Norm of its gradient, relative to that at zero, as for ``tol``.

    See Also
    --------
    KernelAUCCV : Landmarks instead of all rows; all parameters by cross-validation.

    References
    ----------
    .. [1] T.-M. Kuo, C.-P. Lee, C.-J. Lin, "Large-scale Kernel RankSVM", SDM 2014.
    .. [2] O. Chapelle, S. S. Keerthi, "Efficient algorithms for ranking with SVMs",
       Information Retrieval 13, 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelBAM
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> round(KernelBAM().fit(X, y).score(X, y), 2)
    0.97
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Ranker._parameter_constraints,
        "loss": [StrOptions(set(LOSSES))],
        "subsample": [Interval(Real, 0, 1, closed="right")],
    }
    stored: ClassVar[dict[str, Spec]] = {
        "dual_coef_": Spec("n"),
        "landmarks_": Spec("kn"),
        "intercept_": Spec("1"),
        **SCALING,
        **dict.fromkeys(("objective_", "gradient_norm_"), Spec("")),
    }

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        loss: str = "squared_hinge",
        sigma: float | str = "auto",
        width: float = 1.0,
        subsample: float = 1.0,
        scale: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.loss = loss
        self.sigma = sigma
        self.width = width
        self.subsample = subsample
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._require_both(signed)
        chosen = self._drawn(signed)
        rows, signed = rows[chosen], signed[chosen]
        n = len(signed)
        if 8.0 * n * n > _MOST_BYTES:
            raise ValueError(
                f"The kernel matrix of {n} rows would take {8e-9 * n * n:.0f} GB. Use "
                "fewer rows by subsample=, or Chain(KMeansNystroem(), BAM())."
            )
        rows = self._fit_scaling(rows, np.abs(signed))
        Z = np.empty(rows.shape)
        by_blocks(rows, self.scaling.apply, lambda block: block, Z)
        self.landmarks_ = np.ascontiguousarray(Z.T)
        with one_blas_thread():
            K = kernel_of(self.landmarks_)(Z)
            K[np.diag_indices(n)] = 1.0 + _JITTER
            # K is symmetric; transposing it allows to work in place, with L in C order.
            L = cholesky(K.T, lower=False, overwrite_a=True, check_finite=False).T
            share, l2 = shares(signed), self._ridge(signed)
            loss, zero = LOSSES[self.loss], np.zeros(n)
            objective = Objective(LocalMatrix(L, n), share, loss, l2, zero)
            plain = Coordinates(np.full(n, 0.5), np.ones(n, dtype=np.bool_), 0.0)
            found = minimise(objective, plain, self.tol, self.max_iter)
            self.dual_coef_ = solve_triangular(
                L, found.w, lower=True, trans="T", check_finite=False
            )
        self.n_iter_, self.objective_ = found.n_iter, found.objective
        self.gradient_norm_ = found.gradient_norm
        self._warn_above(self.tol, cut_short(found, self.tol, self.max_iter), GRADIENT)
        means = np.maximum(share, 0.0), np.maximum(-share, 0.0)
        scores = found.iterate.scores
        self.intercept_ = np.array([-0.5 * sum(float(m @ scores) for m in means)])

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        out = np.empty(X.shape[0])
        kernel = kernel_of(self.landmarks_)
        X, score = only(X, self.columns_), lambda Z: kernel(Z) @ self.dual_coef_
        by_blocks(X, self.scaling.apply, score, out)
        return out + self.intercept_[0]

    def expression(self) -> ScoreExpression | None:
        """Return the score as one expression."""
        units = Units.gaussian(self.landmarks_, self.dual_coef_)
        none = np.zeros(len(self.columns_))
        return ScoreExpression(float(self.intercept_[0]), none, self.scaling, units)

    def _drawn(self, signed: Float) -> Any:
        """Return the rows to train on."""
        if self.subsample == 1.0:
            return slice(None)
        rng = generator(self.random_state)
        chosen = []
        for side in (signed > 0.0, signed < 0.0):
            members = np.flatnonzero(side)
            count = max(round(self.subsample * len(members)), 1)
            chosen.append(rng.choice(members, count, replace=False))
        return np.sort(np.concatenate(chosen))

    def _ridge(self, signed: Float) -> float:
        """Return the penalty; a weight of k counts as k rows."""
        if not isinstance(self.l2, str):
            return float(self.l2)
        pos, neg = signed[signed > 0.0].sum(), -signed[signed < 0.0].sum()
        return kernel_ridge(float(pos), float(neg))
