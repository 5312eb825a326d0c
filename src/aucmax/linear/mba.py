r"""MBA: mini-batch AUC optimisation.

Gultekin, Saha, Ratnaparkhi and Paisley (2018) draw T batches of B pairs of a positive
and a negative row at random, z = x⁺ - x⁻, and minimise

.. math:: \tfrac{1}{BT} \sum (1 - w \cdot z)^2
          + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1,

which needs only the means of z and zzᵀ over the drawn pairs. There is no step size, and
the cost does not depend on the number of rows. The paper's objective is half of this
one, so its λ₁ and λ₂ are l1/2 and l2/2.

Deviation from the paper: with more than 1024 features, the same minimum is found by
conjugate gradients (:mod:`aucmax.linear.solvers.matrix_free`).
"""

from typing import Any, ClassVar

import numpy as np

from aucmax.base.class_moments import ClassMoments
from aucmax.base.constraints import COUNT
from aucmax.base.penalty import ridge_of_square_loss
from aucmax.base.ranker import LinearRanker, generator
from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Index, Rows, copy_row, raw_add_row
from aucmax.core.threads import in_threads, one_blas_thread
from aucmax.linear.solvers.covariances import check_features
from aucmax.linear.solvers.matrix_free import SampledPairs
from aucmax.linear.solvers.normal_equations import STILL_CHANGES, Solution, solve_any

_WIDEST = 1024  # features of the direct solution: about a second by default
_MAX_ITER = 10_000
_BLOCK_VALUES = 1 << 18


@kernel
def _differences(X: Any, pos: Index, neg: Index, zero: Float, block: Float) -> None:
    for k in range(pos.shape[0]):
        copy_row(X, pos[k], 1.0, zero, block[k])
        raw_add_row(X, neg[k], -1.0, block[k])


def draw(
    signed: Float, batch_size: int, n_batches: int, rng: np.random.RandomState
) -> tuple[Index, Index]:
    """Draw the rows of all pairs, in proportion to their weights."""
    sides = []
    for side in (signed > 0.0, signed < 0.0):
        rows = np.flatnonzero(side)
        until = np.cumsum(np.abs(signed[rows]))
        at = rng.random_sample((n_batches, batch_size)).ravel() * until[-1]
        found = np.searchsorted(until, at, side="right")
        sides.append(rows[np.minimum(found, len(rows) - 1)])
    return sides[0], sides[1]


def statistics(X: Rows, pos: Index, neg: Index, d: int) -> tuple[Float, Float]:
    """Return the mean of zzᵀ and of z over the pairs."""
    check_features(d, "Second moments")
    size = max(_BLOCK_VALUES // d, 256)
    zero = np.zeros(d)

    def part(start: int) -> tuple[Float, Float]:
        at = slice(start, start + size)
        block = np.empty((len(pos[at]), d))
        _differences(X, pos[at], neg[at], zero, block)
        return block.T @ block, block.sum(axis=0)

    H, delta = np.zeros((d, d)), np.zeros(d)
    for part_H, part_delta in in_threads(part, range(0, len(pos), size)):
        H += part_H
        delta += part_delta
    return H / len(pos), delta / len(pos)


class MBA(LinearRanker):
    r"""Mini-batch AUC optimisation: the pairwise square loss on a sample of pairs.

    Solves

    .. math:: \min_w\ \hat E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1

    with the mean over ``n_batches`` times ``batch_size`` pairs, drawn at random with
    replacement.

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty on the weights of the features as given; the paper's
        :math:`\lambda_2` is half of it. "auto" gives each feature its own, as in
        :class:`BAM`, for the square loss.
    l1 : float, default=0.0
        Lasso penalty; above zero, some weights are exactly zero. The paper's
        :math:`\lambda_1` is half of it.
    batch_size : int, default=1000
        Number of pairs per batch.
    n_batches : int, default=100
        Number of batches.
    random_state : int, RandomState instance or None, default=None
        Random seed.

    Attributes
    ----------
    .. shared: weights, intercept, classes, features
    n_iter_ : int
        Number of rounds of the solver; 1 for the direct one.

    See Also
    --------
    LeastSquaresAUC : The minimum over all pairs, in one pass over the data.

    Notes
    -----
    A pair costs O(d²), the solution O(d³); with more than 1024 features, conjugate
    gradients cost O(nnz) per round. The rows are read once more for validation and for
    the intercept. A row is drawn with a probability proportional to its weight.

    As published: ``MBA(l2=2 * lambda2, l1=2 * lambda1, batch_size=B, n_batches=T)``.

    References
    ----------
    .. [1] S. Gultekin, A. Saha, A. Ratnaparkhi, J. Paisley, "MBA: Mini-Batch AUC
       Optimization", IEEE Transactions on Neural Networks and Learning Systems, 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import MBA
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(MBA(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearRanker._parameter_constraints,
        "batch_size": [COUNT],
        "n_batches": [COUNT],
    }

    n_iter_: int

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        l1: float = 0.0,
        batch_size: int = 1000,
        n_batches: int = 100,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.batch_size = batch_size
        self.n_batches = n_batches
        self.random_state = random_state

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows, signed, moments = self._rows_and_moments(X, y, sample_weight)
        rng = generator(self.random_state)
        pos, neg = draw(signed, self.batch_size, self.n_batches, rng)
        with one_blas_thread():
            found = self._solve(rows, pos, neg, moments)
        what = STILL_CHANGES if self.l1 > 0.0 else "the relative residual"
        self._warn_above(found.tol, found.left, what, "Raise l2.")
        self.n_iter_ = found.n_iter
        self._set_linear(found.w, moments.mean)

    def _solve(
        self, X: Rows, pos: Index, neg: Index, moments: ClassMoments
    ) -> Solution:
        l2, l1 = ridge_of_square_loss(self.l2, moments), float(self.l1)
        d = self.n_features_in_
        if d > _WIDEST and l1 == 0.0:
            return SampledPairs(X, pos, neg, moments).solve(l2, None, _MAX_ITER)
        H, delta = statistics(X, pos, neg, d)
        varies = np.diag(H) > 1e-300
        H = H[np.ix_(varies, varies)]
        return solve_any(H, delta[varies], varies, l2[varies], l1, _MAX_ITER)
