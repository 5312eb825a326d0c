r"""The exact minimum of the pairwise square loss.

.. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2
          + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1

With class means m₊ and m₋, Δ = m₊ - m₋ and class covariances S₊ and S₋, the mean over
all pairs is 1 - 2 Δ·w + w·(S₊ + S₋ + ΔΔᵀ) w. So the class moments suffice. They add up
over any partition of the rows (:mod:`aucmax.linear.solvers.covariances`), and a linear
system of d equations remains. The papers call this LS-SVM.

Where forming the d × d covariances would dominate the cost, the system is solved by
conjugate gradients instead, whose products with S₊ and S₋ are two products with X.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from aucmax.base.class_moments import ClassMoments
from aucmax.base.constraints import POSITIVE
from aucmax.base.interfaces import PartialFit
from aucmax.base.penalty import CURVATURE, ridge, ridge_of_square_loss
from aucmax.base.ranker import LinearRanker
from aucmax.core.products import LocalMatrix
from aucmax.core.rows import n_values
from aucmax.core.threads import one_blas_thread
from aucmax.linear.solvers.covariances import Moments, gather
from aucmax.linear.solvers.matrix_free import AllPairs
from aucmax.linear.solvers.normal_equations import STILL_CHANGES, Solution, solve_any

# Covariances cost d²/2 multiplications a row, in cache; a hundred rounds of conjugate
# gradients cost two hundred per stored value, from memory.
_WIDEST = 4096
_ROUNDS = 12_000


class LeastSquaresAUC(PartialFit, LinearRanker):
    r"""Linear ranker of the pairwise square loss, in closed form.

    Solves

    .. math:: \min_w\ E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1

    over all pairs of a positive and a negative row, from the class moments of the
    features: one pass over the data, no step size, and the same result for any order
    and any partition of the rows.

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty on the weights of the features as given. "auto" gives each feature
        its own, as in :class:`BAM`, for the square loss. :class:`LeastSquaresAUCCV`
        chooses it by cross-validation.
    l1 : float, default=0.0
        Lasso penalty; above zero, some weights are exactly zero.
    solver : {"auto", "moments", "cg"}, default="auto"
        "moments" computes the class covariances and solves the normal equations, in
        O(n d² + d³). "cg" solves them by conjugate gradients without forming them, in
        O(nnz) per round; it supports neither ``l1`` nor ``partial_fit``. "auto" takes
        "cg" for ``fit`` with more than 4096 features, or if X is so sparse that it is
        faster.
    tol : float or None, default=None
        Relative residual at which conjugate gradients stop; use 1e-10 for the exact
        minimum. None is an eighth of the sampling error of :math:`m_+ - m_-`, the
        right-hand side of the equations. A more accurate solution is no better, and
        with more features than rows it overfits.
    max_iter : int, default=10000
        Maximum number of rounds of conjugate gradients, or of coordinate descent for
        ``l1``; a ``ConvergenceWarning`` is issued if they are too few.

    Attributes
    ----------
    .. shared: weights, intercept, classes, features
    n_iter_ : int
        Number of rounds of the solver; 1 for the direct one.
    state_ : Moments
        Class moments of all rows seen, which ``partial_fit`` continues from; absent
        after "cg".

    See Also
    --------
    LeastSquaresAUCCV : Chooses ``l2`` by cross-validation, at little extra cost.
    SPAM : The same objective in O(d) memory, row by row.

    Notes
    -----
    Moments are kept about the class means, and systems are solved for features of unit
    scale, so features need no scaling. If the minimum is not unique, as with copies of
    a feature and no penalty, a tiny ridge selects one. ``partial_fit`` merges moments:
    after any stream the result is that of ``fit``, up to rounding.

    References
    ----------
    .. [1] W. Gao, R. Jin, S. Zhu, Z.-H. Zhou, "One-Pass AUC Optimization", ICML 2013
       (there LS-SVM, the batch method with the pairwise square loss).
    .. [2] T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise
       algorithm for computing sample variances", Stanford University, 1979.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import LeastSquaresAUC
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(LeastSquaresAUC().fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearRanker._parameter_constraints,
        "solver": [StrOptions({"auto", "moments", "cg"})],
        "tol": [POSITIVE, None],
    }

    state_: Moments
    n_iter_: int

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        l1: float = 0.0,
        solver: str = "auto",
        tol: float | None = None,
        max_iter: int = 10_000,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, rows, signed = self._check(X, y, sample_weight, reset=True)
        if self.resumable:
            del self.state_
        d = self.n_features_in_
        if implicitly(n_values(rows), len(signed), d, self.solver, self.l1):
            known = self._class_moments(X, rows, signed)
            system = AllPairs(LocalMatrix(rows, d), signed, known)
            return self._solve_implicitly(system, known)
        moments = gather(rows, signed, d)
        self._validate_sums(X, signed, moments.rows, moments.mean, moments.scatter)
        self._solve(moments)

    def _solve_implicitly(self, system: AllPairs, moments: ClassMoments) -> None:
        l2 = ridge_of_square_loss(self.l2, moments)
        found = system.solve(l2, self.tol, self.max_iter)
        self._warn_above(found.tol, found.left, "the relative residual")
        self.n_iter_ = found.n_iter
        self._set_linear(found.w, system.mean)

    partial_fit = available_if(lambda self: self.solver != "cg")(PartialFit.partial_fit)

    def _learn_rows(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        if "coef_" in vars(self) and not self.resumable:
            raise ValueError(
                "There are no moments to continue from: fit used conjugate gradients. "
                'Use solver="moments", or partial_fit from the start.'
            )
        rows, signed = self._stream(X, y, classes, sample_weight)
        moments = gather(rows, signed, self.n_features_in_)
        if self.resumable:
            moments = self.state_ + moments
        if not moments.finite:
            raise ValueError("Sums over X exceed the range of float64; rescale it.")
        self._solve(moments)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_moments(self, moments: Moments, classes: ArrayLike = (0, 1)) -> Self:
        """Fit to class moments that were computed elsewhere; see :class:`Moments`.

        Parameters
        ----------
        moments : Moments
            Moments of all training rows, of both classes.
        classes : array-like of shape (2,), default=(0, 1)
            Negative and positive label.

        Returns
        -------
        self
            The fitted estimator.
        """
        labels = np.asarray(classes)
        if labels.shape != (2,) or labels[0] == labels[1]:
            raise ValueError(f"classes={classes!r}: expected two different labels.")
        if not moments.rows.all():
            positive, negative = moments.rows.tolist()
            raise ValueError(
                f"The moments are of {positive:.0f} positive and {negative:.0f} "
                "negative rows, but both classes are needed: add moments of other rows."
            )
        if not moments.finite:
            raise ValueError("The moments are not finite: sums exceed float64.")
        self.classes_ = labels
        self.n_features_in_ = moments.mean.shape[1]
        self._solve(moments)
        return self

    def _start(self, n_features: int) -> Moments:
        return Moments.empty(n_features)

    def _solve(self, moments: Moments) -> None:
        found = Solution(np.zeros(self.n_features_in_))
        if moments.rows.all():
            H, delta, varies = moments.quadratic()
            known = moments.class_moments()
            known = known._replace(nonzero_share=known.nonzero_share[:, varies])
            l2 = ridge(self.l2, known, np.diag(H), CURVATURE)
            with one_blas_thread():
                found = solve_any(H, delta, varies, l2, float(self.l1), self.max_iter)
        self._warn_above(found.tol, found.left, STILL_CHANGES, "Raise max_iter.")
        self.state_, self.n_iter_ = moments, found.n_iter
        self._set_linear(found.w, moments.mean)


def implicitly(values: int, n: int, d: int, solver: str, l1: float) -> bool:
    """Return whether to use conjugate gradients, from the number of stored values."""
    if solver == "cg" and l1 > 0.0:
        raise ValueError('solver="cg" does not support l1; use "moments", or SPAM.')
    if solver != "auto" or l1 > 0.0:
        return solver == "cg"
    return d > _WIDEST or _ROUNDS * values < n * d**2
