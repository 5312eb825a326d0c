r"""The exact minimum of the pairwise square loss.

.. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2
          + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1

With class means m₊ and m₋, Δ = m₊ - m₋ and class covariances S₊ and S₋, the mean over
all pairs is 1 - 2 Δ·w + w·(S₊ + S₋ + ΔΔᵀ) w. So the class moments suffice. They add up
over any partition of the rows (:mod:`aucmax.linear.solvers.covariances`), and a linear
system of d equations remains. The papers call this LS-SVM.

Where forming the d × d covariances would dominate the cost, the system is solved by
conjugate gradients instead, whose products with S₊ and S₋ are two products with X.

**Cross-validation of the ridge penalty.** With :math:`H = V \Lambda V^T`, the minimum
for a penalty is

.. math:: w = V (\Lambda + \tfrac{l_2}{2} I)^{-1} V^T \Delta,

so one eigendecomposition serves all penalties. The moments outside a fold are those of
all rows minus those of the fold, so K folds need no second pass; and the scores of a
fold for all penalties are one product of matrices.

With too many features for covariances, Lanczos' method replaces the eigendecomposition:
a penalty does not change the Krylov space.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from aucmax.base.class_moments import ClassMoments, measure
from aucmax.base.constraints import POSITIVE
from aucmax.base.folds import areas, folds, part, path_table, penalties
from aucmax.base.interfaces import PartialFit
from aucmax.base.penalty import CURVATURE, ridge, ridge_of_square_loss, squared_sizes
from aucmax.base.ranker import LinearRanker
from aucmax.core.products import LocalMatrix
from aucmax.core.rows import Float, Index, Rows, n_values
from aucmax.core.threads import in_threads, one_blas_thread
from aucmax.linear.solvers.covariances import Moments, gather
from aucmax.linear.solvers.matrix_free import AllPairs
from aucmax.linear.solvers.normal_equations import (
    STILL_CHANGES,
    Solution,
    solve,
    solve_any,
    solve_krylov_path,
    solve_path,
)
from aucmax.storage.state import Spec

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


# Without moments: accuracy and number of Lanczos steps, and the range of the penalties.
_TOL, _STEPS, _DECADES = 1e-4, 150, 5.0
_REMEDY = 'Leave out the smallest of l2s, or use solver="moments".'


def penalty_path(H: Float, count: int) -> Float:
    """Return penalties from one that shrinks all weights to a negligible one."""
    variances = np.diag(H)
    if not len(variances):
        return np.ones(count)
    high = 2.0 * float(np.linalg.eigvalsh(H)[-1])
    low = max(2e-6 * float(variances.min()), 1e-300)
    return np.geomspace(high, low, count)


def path(moments: Moments, l2s: Float, scale: Float) -> Float:
    """Return the minimum for each penalty, as columns."""
    H, delta, varies = moments.quadratic()
    unit = scale[varies]
    W = np.zeros((len(varies), len(l2s)))
    solutions = solve_path(H / np.outer(unit, unit), delta / unit, l2s)
    W[varies] = solutions / unit[:, np.newaxis]
    return W


class LeastSquaresAUCCV(LinearRanker):
    r""":class:`LeastSquaresAUC` with the penalty chosen by cross-validation.

    Minimises, for every :math:`l_2` of a path,

    .. math:: E\,(1 - w \cdot (x^+ - x^-))^2 + \tfrac{l_2}{2} \|w\|^2

    on the training rows of each fold, and chooses the :math:`l_2` with the highest mean
    AUC on the held-out rows. That costs one pass over the data and one
    eigendecomposition per fold, for any number of penalties.

    Parameters
    ----------
    l2s : int or array-like of shape (n_l2s,), default=50
        The penalties on the weights of the features as given; or their number, on a
        geometric path from one that shrinks all weights to a negligible one. The path
        penalises the weights times ``scale_``, so that units do not matter.
    .. shared: cv
    solver : {"auto", "moments", "cg"}, default="auto"
        As in :class:`LeastSquaresAUC`; here "cg" is Lanczos' method.

    Attributes
    ----------
    .. shared: weights, intercept, classes, features, path
    n_iter_ : int
        Always 1.
    scale_ : ndarray of shape (n_features,)
        Root mean square of the nonzero differences of pairs (the same for all features
        of text, see :class:`BAM`); ones if penalties were given.
    scores_ : ndarray of shape (n_l2s, n_folds)
        AUC on the held-out rows of each fold.

    See Also
    --------
    LeastSquaresAUC : One penalty, and streams.

    References
    ----------
    .. [1] W. Gao, R. Jin, S. Zhu, Z.-H. Zhou, "One-Pass AUC Optimization", ICML 2013
       (there LS-SVM, the batch method with the pairwise square loss).
    .. [2] G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, 2013,
       chapters 8 and 10.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import LeastSquaresAUCCV
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> model = LeastSquaresAUCCV().fit(X, y)
    >>> print(f"AUC {model.path_['auc'].max():.2f} with l2 {model.l2_:.2g}")
    AUC 0.91 with l2 0.53
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearRanker._parameter_constraints,
        "solver": [StrOptions({"auto", "moments", "cg"})],
    }
    stored: ClassVar[dict[str, Spec]] = dict.fromkeys(
        ("l2_", "l2s_", "scale_", "scores_", "coef_path_"), Spec(finite=False)
    )

    n_iter_: int
    l2_: float
    l2s_: Float
    scale_: Float
    scores_: Float
    coef_path_: Float

    def __init__(
        self, l2s: int | ArrayLike = 50, *, cv: Any = 5, solver: str = "auto"
    ) -> None:
        self.l2s = l2s
        self.cv = cv
        self.solver = solver

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, rows, signed = self._check(X, y, sample_weight, reset=True)
        weighted = sample_weight is not None
        d = self.n_features_in_
        if implicitly(n_values(rows), len(signed), d, self.solver, 0.0):
            return self._fit_without_moments(X, rows, signed, weighted)
        whole = gather(rows, signed, d)
        self._validate_sums(X, signed, whole.rows, whole.mean, whole.scatter)
        parts = folds(self.cv, X, signed, "LeastSquaresAUC")

        def outside(fold: tuple[Index, Index]) -> Moments:
            train, test = fold
            rest = whole.rows.sum() - np.count_nonzero(signed[test])
            if np.count_nonzero(signed[train]) == rest:  # all that is not in the fold
                return whole - gather(rows, signed, d, test)
            return gather(rows, signed, d, train)

        def score(l2s: Float, scale: Float) -> Float:
            def one(job: tuple[Moments, Index]) -> Float:
                W = path(job[0], l2s, scale)
                return areas(*part(X, signed, job[1]), W, weighted)

            jobs = ((outside(fold), fold[1]) for fold in parts)
            return np.column_stack(list(in_threads(one, jobs)))

        self._choose(whole, score)

    def _choose(self, whole: Moments, score: Callable[[Float, Float], Float]) -> None:
        """Choose the penalty; ``score(l2s, scale)`` is the AUC per penalty and fold."""
        d = self.n_features_in_
        H, delta, varies = whole.quadratic()
        diagonal = np.ones(d)
        diagonal[varies] = np.diag(H)
        scale = self._scale(whole.class_moments(), diagonal)
        unit = scale[varies]
        H, delta = H / np.outer(unit, unit), delta / unit
        with one_blas_thread():
            l2s = penalties(self.l2s, lambda count: penalty_path(H, count))
        scores = score(l2s, scale)
        with one_blas_thread():
            best = int(np.argmax(scores.mean(axis=1)))
            w = np.zeros(d)
            w[varies] = solve(H, delta, float(l2s[best])) / unit
            W = path(whole, l2s, scale)
        self._finish(l2s, scale, scores, W, w, whole.mean)

    def _scale(self, moments: ClassMoments, diagonal: Float) -> Float:
        """Return the feature scales of the penalty."""
        if not isinstance(self.l2s, Integral):
            return np.ones(len(diagonal))
        size = np.sqrt(squared_sizes(moments, diagonal))
        return np.where(size > 0.0, size, 1.0)

    def _fit_without_moments(
        self, X: Any, rows: Rows, signed: Float, weighted: bool
    ) -> None:
        whole = self._class_moments(X, rows, signed)
        matrix = LocalMatrix(rows, self.n_features_in_)
        system = AllPairs(matrix, signed, whole)
        scale = self._scale(whole, system.diagonal)
        with one_blas_thread():
            high = 2.0 * system.largest(1.0 / scale)
            l2s = penalties(
                self.l2s, lambda count: np.geomspace(high, high * 10**-_DECADES, count)
            )
            scores, paths = [], []
            for train, test in folds(self.cv, X, signed, "LeastSquaresAUC"):
                here = np.zeros_like(signed)
                here[train] = signed[train]
                moments = measure(rows, here, self.n_features_in_)
                paths.append(_krylov_path(AllPairs(matrix, here, moments), l2s, scale))
                scores.append(areas(*part(X, signed, test), paths[-1].w, weighted))
            table = np.column_stack(scores)
            paths.append(_krylov_path(system, l2s, scale))
        left = max(found.left for found in paths)
        self._warn_above(_TOL, left, "the relative residual", _REMEDY)
        W = paths[-1].w
        w = W[:, int(np.argmax(table.mean(axis=1)))].copy()
        self._finish(l2s, scale, table, W, w, system.mean)

    @property
    def path_(self) -> dict[str, Float]:
        """Columns "l2", "auc" (mean over folds), "error" (standard error) and "norm".

        The norm is the Euclidean one, of the weights times ``scale_``.
        """
        return path_table(self.l2s_, self.scores_, self.coef_path_ * self.scale_)

    def _finish(
        self, l2s: Float, scale: Float, scores: Float, W: Float, w: Float, mean: Float
    ) -> None:
        self.l2s_, self.scale_, self.scores_ = l2s, scale, scores
        self.l2_ = float(l2s[int(np.argmax(scores.mean(axis=1)))])
        self.coef_path_ = W.T.copy()
        self.n_iter_ = 1
        self._set_linear(w, mean)


def _krylov_path(system: AllPairs, l2s: Float, scale: Float) -> Solution:
    # Normalised, so that squares do not overflow.
    top = max(float((system.diagonal / scale**2).max()), 1e-300)
    found = solve_krylov_path(
        lambda v: system.times(v / scale) / scale / top,
        system.delta / scale / top,
        l2s / top,
        _TOL,
        _STEPS,
    )
    return found._replace(w=found.w / scale[:, np.newaxis])
