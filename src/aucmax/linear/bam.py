r"""BAM: all pairs at once, by truncated Newton.

.. math:: J(w) = E\,\ell(w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2

with the mean over all pairs and a loss out of :mod:`aucmax.losses.pairwise`, where
neither value nor gradient nor Hessian products go over the pairs. With the squared
hinge this is linear RankSVM for two grades, solved as Chapelle and Keerthi do (PRSVM+).

Deviations from the papers: J is a mean over pairs, not a sum with C; the line search is
backtracking on the scores; conjugate gradients are preconditioned, by the class
covariances if there are not too many features and by their diagonal if there are.
"""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.base.class_moments import ClassMoments
from aucmax.base.penalty import default_ridge
from aucmax.base.ranker import GRADIENT, LinearRanker
from aucmax.core.rows import Float, Rows, n_rows, n_values
from aucmax.core.threads import one_blas_thread
from aucmax.linear.solvers.covariances import Moments, gather
from aucmax.linear.solvers.matrix_free import AllPairs
from aucmax.linear.solvers.newton import (
    Coordinates,
    FullCoordinates,
    Minimum,
    Objective,
    Place,
    Ridge,
    Solver,
    descend,
    together,
)
from aucmax.losses.balanced_logistic import BalancedLogistic
from aucmax.losses.pairwise import POINTS, Point, shares
from aucmax.storage.storable import Spec

# Second derivative for a pair that is not told apart; of the sigmoid, the largest. That
# of rows sees half of a pair's variance, and half of its weight.
CURVATURE = {
    "squared_hinge": 2.0,
    "logistic": 0.25,
    "sigmoid": 0.1,
    "exponential": 1.0,
    "balanced_logistic": 0.125,
}
LOSSES: dict[str, type[Point]] = {
    **{name: point for name, point in POINTS.items() if name in CURVATURE},
    "balanced_logistic": BalancedLogistic,
}

# Second moments of a row cost d² multiplications out of cache; they are worth it where
# that is no more than some dozens of rounds of conjugate gradients.
_WIDEST = 1024
_ROUNDS = 2000
_NEAR = 0.1  # how well to solve the logistic loss before the sigmoid


class Landscape:
    """What the solver knows of the features, for any loss, penalty and fold."""

    def __init__(
        self,
        X: Rows,
        varies: NDArray[np.bool_],
        weight: Float,
        mean: Float,
        variance: Float,
        often: Float,
    ) -> None:
        self.X, self.varies = X, varies
        self.weight = weight  # (2,) of each class
        self.mean, self.variance = mean, variance  # (2, d) of each class
        self.often = often  # (2, d) share of its rows in which a feature is not zero
        self.H: Float | None = None  # of the square loss, or …
        self.system: AllPairs | None = None  # … products with it

    def diagonal(self) -> Float:
        """Return that of H, of all features."""
        found = np.zeros(len(self.varies))
        if self.system is not None:
            found = self.system.diagonal
        elif self.H is not None:
            found[self.varies] = np.diag(self.H)
        return found

    def coordinates(self, l2: Ridge) -> Coordinates:
        """Return those in which the curvature at zero is about one."""
        if self.H is None:
            return Coordinates(self.diagonal(), self.varies, l2)
        return FullCoordinates(self.H, self.varies, l2)

    def objective(self, share: Float, loss: str) -> Objective:
        """Return J, but for the ridge, over the rows of non-zero ``share``."""
        return Objective(self.X, share, LOSSES[loss], 0.0, self.mean.mean(axis=0))


def solver(
    objective: Objective,
    at: Coordinates,
    tol: float,
    max_iter: int,
    start: Place | None = None,
) -> Solver[Minimum]:
    """Return the minimum of J, with a good start if it is not convex."""
    first = 0
    if objective.loss is POINTS["sigmoid"] and start is None:
        easy = objective.with_loss(POINTS["logistic"])
        near = yield from descend(easy, at, _NEAR, max_iter)
        first = near.n_iter
        start = yield from objective.place(near.w)
    best = yield from descend(objective, at, tol, max(max_iter - first, 1), start)
    return best._replace(n_iter=min(best.n_iter + first, max_iter))


def cut_short(found: Minimum, tol: float, max_iter: int) -> float:
    """Return the gradient at which steps ran out, or zero if they did not.

    Where some are left, and the gradient is above ``tol``, J cannot be seen to fall.
    """
    ended = found.n_iter >= max_iter and found.gradient_norm > tol
    return found.gradient_norm if ended else 0.0


def with_covariances(n: int, d: int, values: int) -> bool:
    """Return whether those of so many features are worth it."""
    return d <= _WIDEST and n * d**2 <= max(_ROUNDS * values, 64 * n * d)


def survey(ranker: LinearRanker, X: Any, rows: Rows, signed: Float) -> Landscape:
    """Return the class moments of the features, or raise an error if they are none."""
    n, d = n_rows(rows), ranker.n_features_in_
    if with_covariances(n, d, n_values(rows)):
        moments = gather(rows, signed, d)
        ranker._validate_sums(X, signed, moments.rows, moments.mean, moments.scatter)
        return by_moments(Landscape, rows, moments)
    tally = ranker._tally(X, rows, signed)
    return by_tally(Landscape, rows, tally, AllPairs(rows, signed, tally))


Land = TypeVar("Land", bound=Landscape)


def by_moments(kind: type[Land], rows: Any, moments: Moments) -> Land:
    """Return the landscape of features whose covariances are known."""
    H, _, varies = moments.quadratic()
    scatter = np.diagonal(moments.scatter, axis1=1, axis2=2)
    weight = moments.weight[:, np.newaxis]
    found = kind(
        rows,
        varies,
        moments.weight,
        moments.mean,
        scatter / weight,
        moments.nonzero / weight,
    )
    found.H = H
    return found


def by_tally(
    kind: type[Land], rows: Any, tally: ClassMoments, system: AllPairs
) -> Land:
    """Return the landscape of features that are too many for covariances."""
    weight, _, mean, variance, often = tally
    found = kind(rows, system.varies, weight, mean, variance, often)
    found.system = system
    return found


class BAM(LinearRanker):
    r"""The linear ranker of a pairwise loss, over all pairs at once.

    Minimises

    .. math:: E\,\ell(w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2

    over all pairs of a positive and a negative row, by truncated Newton: with the
    squared hinge this is linear RankSVM for two grades (PRSVM+). No step size, nothing
    random, and a pass over the data costs O(n log n) beside a product with X.

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given. With "auto" each feature has
        its own, which depends on no unit and falls with the rows: see Notes. To have it
        chosen, see :class:`BAMCV`.
    loss : str, default="squared_hinge"
        The loss of a pair with margin m: "squared_hinge", max(0, 1 - m)²; "logistic",
        log(1 + exp(-m)); "sigmoid", 1 / (1 + exp(m)), which is nearest to 1 - AUC and
        not convex; or "exponential", exp(-m). "balanced_logistic" is no loss of pairs,
        but that of logistic regression with ``class_weight="balanced"``, whose
        threshold is not penalised.
    tol : float, default=1e-3
        Norm of the gradient to stop at, relative to that at zero.
    max_iter : int, default=100
        Newton steps, at most; a ``ConvergenceWarning`` says if ``tol`` was not reached.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The weights.
    intercept_ : ndarray of shape (1,)
        Puts the score zero midway between the mean scores of the classes.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.
    n_iter_ : int
        Newton steps done.
    objective_ : float
        J at the weights.
    gradient_norm_ : float
        Norm of its gradient there, relative to that at zero, as for ``tol``.

    See Also
    --------
    BAMCV : The same with ``l2`` and loss chosen by cross-validation.
    LeastSquaresAUC : The pairwise square loss, in closed form.

    Notes
    -----
    The solver works on features of unit scale (up to 1024 features: uncorrelated, too),
    so that raw features do no harm; a feature that is constant has weight zero. With
    the logistic and the sigmoid loss, sums over pairs are right to 1e-10. Every step
    lowers J.

    With ``l2="auto"`` the penalty is :math:`\tfrac{1}{2} \sum_j \lambda_j w_j^2`,
    :math:`\lambda_j = \tfrac{1}{2} \ell'' E[z_j^2 \mid z_j \ne 0] (1/n_+ + 1/n_-)
    (1 + d^2/4n)`, z the difference of a pair, d how many of its features are not zero
    on the mean, and :math:`\ell''` 2, 1/4, 1/10, 1 and 1/8 for the losses above. With
    weights, n is their sum. Texts and the like, with more features than
    rows and less than a tenth of the values not zero, have one for all:
    :math:`\tfrac{1}{20} \ell'' E\|z\|^2 (1/n_+ + 1/n_-)`.

    References
    ----------
    .. [1] O. Chapelle, S. S. Keerthi, "Efficient algorithms for ranking with SVMs",
       Information Retrieval 13, 2010.
    .. [2] A. Airola, T. Pahikkala, T. Salakoski, "Training linear ranking SVMs in
       linearithmic time using red-black trees", Pattern Recognition Letters 32, 2011.
    .. [3] S. C. Eisenstat, H. F. Walker, "Choosing the forcing terms in an inexact
       Newton method", SIAM Journal on Scientific Computing 17, 1996.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import BAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(BAM().fit(X, y).score(X, y), 2)
    0.93
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "loss": [StrOptions(set(LOSSES))],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    stored: ClassVar[dict[str, Spec]] = {
        "objective_": Spec(""),
        "gradient_norm_": Spec(""),
    }

    n_iter_: int
    objective_: float
    gradient_norm_: float

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        loss: str = "squared_hinge",
        tol: float = 1e-3,
        max_iter: int = 100,
    ) -> None:
        self.l2 = l2
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to ``X`` and binary ``y``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; float32 and CSR are used as they are.
        y : array-like of shape (n_samples,)
            Two classes; the larger label, ``classes_[1]``, is to come out on top.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a pair weighs the product, and weight k is the row k
            times over.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, rows, signed = self._check(X, y, sample_weight, reset=True)
        land = survey(self, X, rows, signed)
        objective = land.objective(shares(signed), self.loss)
        return self._minimise(
            land,
            objective,
            lambda solvers: together(rows, self.n_features_in_, solvers),
        )

    def _minimise(
        self,
        land: Landscape,
        objective: Objective,
        run: Callable[[list[Solver[Minimum]]], list[Minimum]],
    ) -> Self:
        """Find the minimum; ``run`` gives solvers the products that they ask for."""
        with one_blas_thread():
            l2: Ridge = (
                default_ridge(
                    land.weight, land.often, land.diagonal(), CURVATURE[self.loss]
                )
                if isinstance(self.l2, str)
                else float(self.l2)
            )
            at = land.coordinates(l2)
            one = solver(objective.with_ridge(l2), at, self.tol, self.max_iter)
            (found,) = run([one])
        self.n_iter_, self.objective_ = found.n_iter, found.objective
        self.gradient_norm_ = found.gradient_norm
        self._warn_above(self.tol, cut_short(found, self.tol, self.max_iter), GRADIENT)
        self.coef_ = found.w[np.newaxis]
        self.intercept_ = np.array([-0.5 * float((land.mean @ found.w).sum())])
        return self
