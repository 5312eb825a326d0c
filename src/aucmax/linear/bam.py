r"""BAM: batch AUC maximisation, a pairwise loss over all pairs by truncated Newton.

.. math:: J(w) = E\,\ell(w \cdot (x^+ - x^-))
          + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1

with the mean over all pairs and a loss of :mod:`aucmax.losses.pairwise`, whose value,
gradient and Hessian products do not enumerate the pairs. With the squared hinge this is
linear RankSVM for two grades, solved as by Chapelle and Keerthi (PRSVM+).

Deviations from the papers: J is a mean over pairs, not a sum with C; the line search is
backtracking on the scores; conjugate gradients are preconditioned by the class
covariances or, with many features, by their diagonal. The l1 penalty is not in the
papers.

**Balanced logistic loss** of single rows:

.. math:: L(s) = \min_b \sum_i c_i \log(1 + \exp(-y_i (s_i + b))),

with weights c that sum to one half in each class. As it includes the best intercept b,
it does not depend on a shift of all scores, as a pairwise loss. So the same solver
(:mod:`aucmax.linear.solvers.newton`) minimises it.

**Proximal Newton** for the l1 penalty: a round takes two steps. A proximal gradient
step, with the curvature of each feature, sets weights to zero or makes them leave it. A
truncated Newton step then moves the others with their signs fixed; a weight that would
change its sign becomes zero. Neither step raises J, and the first ensures convergence.
Once the zeros are found, the second converges as fast as without the l1 penalty.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import ClassMoments
from aucmax.base.penalty import ridge
from aucmax.base.ranker import GRADIENT, LinearRanker
from aucmax.core.products import LocalMatrix, Matrix
from aucmax.core.rows import Float, Rows, n_rows, n_values
from aucmax.core.threads import one_blas_thread
from aucmax.linear.solvers.covariances import Moments, gather
from aucmax.linear.solvers.matrix_free import AllPairs
from aucmax.linear.solvers.newton import (
    Coordinates,
    FullCoordinates,
    Iterate,
    Minimum,
    Objective,
    Ridge,
    descend,
    newton_step,
)
from aucmax.losses.pairwise import POINTS, Point, shares
from aucmax.storage.state import Spec

_INTERCEPT_ROUNDS = 100
_INTERCEPT_ROUNDING = 1e-15


class BalancedLogistic(Point):
    """The balanced logistic loss at given scores, and its derivatives."""

    def __init__(self, score: Float, share: Float) -> None:
        weight = 0.5 * np.abs(share)
        sign = np.sign(share)
        margin = sign * (score + _threshold(score, sign, weight))
        wrong = expit(-margin)
        self.value = float(np.sum(weight * np.logaddexp(0.0, -margin)))
        self.slope = -sign * weight * wrong
        self._curvature = weight * wrong * (1.0 - wrong)

    def product(self, v: Float) -> Float:
        """Return the Hessian times ``v``; the intercept follows the scores."""
        c = self._curvature
        total = float(np.sum(c))
        mean = float(np.sum(c * v)) / total if total > 0.0 else 0.0
        return c * (v - mean)

    def diagonal(self) -> Float:
        """Return the diagonal of the Hessian."""
        c = self._curvature
        return c - c * c / max(float(np.sum(c)), 1e-300)


def _threshold(score: Float, sign: Float, weight: Float) -> float:
    """Return the best b, by Newton's method with shrinking bounds."""
    low, high = -float(score.max()) - 1.0, -float(score.min()) + 1.0
    b = -float(np.sum(weight * score))
    for _ in range(_INTERCEPT_ROUNDS):
        wrong = expit(-sign * (score + b))
        slope = -float(np.sum(sign * weight * wrong))
        low, high = (b, high) if slope < 0.0 else (low, b)
        if abs(slope) <= _INTERCEPT_ROUNDING or high - low <= _INTERCEPT_ROUNDING * abs(
            b
        ):
            break
        curvature = float(np.sum(weight * wrong * (1.0 - wrong)))
        step = b - slope / curvature if curvature > 0.0 else low
        b = step if low < step < high else 0.5 * (low + high)
    return b


_ARMIJO = 1e-4  # required share of the decrease that the slope predicts
_HALVINGS = 40
_TRIALS = 8  # lengths of a Newton step; if all fail, only the first step counts
_ROUNDING = 1e-15  # relative rounding error of J
_FORCING = 0.1  # largest relative residual of the Newton equations


class L1Objective:
    """J, its value and its proximal gradient steps; ``unit`` scales the features."""

    def __init__(self, smooth: Objective, unit: Float, l1: float) -> None:
        self.smooth, self.unit, self.l1 = smooth, unit, l1
        self.curvature = 1.0  # largest one, in units of that of a feature

    def value(self, at: Iterate) -> float:
        """Return J."""
        return self._part(at) + self.l1 * float(np.abs(at.w).sum())

    def slope(self, at: Iterate) -> Float:
        """Return the gradient of the loss and the ridge."""
        return at.gradient + self.smooth.l2 * at.w

    def at(self, w: Float, scores: Float) -> Iterate:
        """Evaluate the loss and its gradient."""
        point = self.smooth.point(scores)
        return Iterate(w, scores, point, self.smooth.gradient(point.slope))

    def residual(self, at: Iterate) -> float:
        """Return the norm of a proximal gradient step, at unit scale."""
        return float(np.sqrt(self._squared(self._proximal(at, 1.0) - at.w)))

    def gradient_step(self, here: Iterate) -> Iterate:
        """Take a proximal gradient step that does not raise J."""
        self.curvature = max(0.5 * self.curvature, 0.25)
        slope, base = self.slope(here), self._part(here)
        for _ in range(_HALVINGS):
            w = self._proximal(here, self.curvature)
            there = self.at(w, self.smooth.X.times(w))
            move = w - here.w
            bound = np.sum(slope * move) + 0.5 * self.curvature * self._squared(move)
            if self._part(there) <= base + bound + _ROUNDING * abs(base):
                return there
            self.curvature *= 2.0
        return here

    def newton_step(self, here: Iterate, at: Coordinates, forcing: float) -> Iterate:
        """Take a Newton step on the weights that are not zero."""
        o, active = self.smooth, here.w != 0.0
        if not active.any():
            return here
        h = np.where(active, self.slope(here) + self.l1 * np.sign(here.w), 0.0)
        c = at.only(active)
        d, steps = newton_step(o, c, here.point, c.gradient(h), forcing)
        move, J, length = c.weights(d), self.value(here), 1.0
        for _ in range(_TRIALS):
            w = here.w + length * move
            flips = w * here.w < 0.0
            w[flips] = 0.0
            scores = o.X.times(w) if flips.any() else here.scores + length * steps
            there = self.at(w, scores)
            predicted = float(np.sum(h * (w - here.w)))
            if self.value(there) <= J + _ARMIJO * min(predicted, 0.0):
                return there
            length *= 0.5
        return here

    def _part(self, at: Iterate) -> float:
        """Return J without the l1 penalty."""
        return at.point.value + self.smooth.ridge(at.w)

    def _squared(self, move: Float) -> float:
        """Return the squared norm of a move, at unit scale."""
        unit = np.divide(move, self.unit, out=np.zeros_like(move), where=self.unit > 0)
        return float(np.sum(unit * unit))

    def _proximal(self, at: Iterate, curvature: float) -> Float:
        step = self.unit * self.unit / curvature
        ahead = at.w - step * self.slope(at)
        return np.sign(ahead) * np.maximum(np.abs(ahead) - step * self.l1, 0.0)


# Trial steps can overflow, and rows of zero weight can hold any value.
@np.errstate(over="ignore", invalid="ignore")
def descend_l1(
    objective: Objective,
    coordinates: Coordinates,
    l1: float,
    tol: float,
    max_iter: int,
    start: Iterate | None = None,
) -> Minimum:
    """Minimise J until a proximal gradient step is ``tol`` times that at zero."""
    J = L1Objective(objective, coordinates.unit, l1)
    here = objective.iterate(np.zeros_like(coordinates.unit))
    first = norm = J.residual(here)
    if start is not None and J.value(start) < J.value(here):
        here, norm = start, J.residual(start)
    history = [J.value(here)]
    n_iter = 0
    while norm > tol * first and n_iter < max_iter:
        n_iter += 1
        here = J.gradient_step(here)
        here = J.newton_step(here, coordinates, min(_FORCING, norm / first))
        norm = J.residual(here)
        history.append(J.value(here))
        if history[-1] >= history[-2]:  # the decrease of J is below its rounding error
            break
    relative = norm / first if first > 0.0 else 0.0
    return Minimum(here, history[-1], relative, max(n_iter, 1), history)


# Second derivative at a margin of zero; for the sigmoid, the largest one; for the
# smoothed hinge, the mean of both sides; for Huber's loss, above zero. The loss of
# single rows sees half of a pair's variance, and half of its weight.
CURVATURE = {
    "squared_hinge": 2.0,
    "logistic": 0.25,
    "sigmoid": 0.1,
    "exponential": 1.0,
    "smoothed_hinge": 0.5,
    "huber": 1.0,
    "balanced_logistic": 0.125,
}
LOSSES: dict[str, type[Point]] = {
    **{name: point for name, point in POINTS.items() if name in CURVATURE},
    "balanced_logistic": BalancedLogistic,
}

# Covariances cost d² multiplications a row, in cache. They are worth it if that is no
# more than a few dozen rounds of conjugate gradients.
_WIDEST = 1024
_ROUNDS = 2000
_START_TOL = 0.1  # tolerance of the logistic loss, which the sigmoid starts from


class FeatureStatistics:
    """Statistics of the features that the solver uses, for any loss, penalty and fold.

    The Hessian H of the pairwise square loss is known as a matrix or, with many
    features, by its products (``system``).
    """

    def __init__(
        self,
        X: Matrix,
        varies: NDArray[np.bool_],
        moments: ClassMoments,
        H: Float | None = None,
        system: AllPairs | None = None,
    ) -> None:
        self.X, self.varies, self.moments = X, varies, moments
        self.H, self.system = H, system

    def diagonal(self) -> Float:
        """Return the diagonal of H, zero for constant features."""
        if self.system is not None:
            return self.system.diagonal
        diagonal = np.zeros(len(self.varies))
        if self.H is not None:
            diagonal[self.varies] = np.diag(self.H)
        return diagonal

    def coordinates(self, l2: Ridge) -> Coordinates:
        """Return coordinates in which the curvature at zero is about one."""
        if self.H is None:
            return Coordinates(self.diagonal(), self.varies, l2)
        return FullCoordinates(self.H, self.varies, l2)

    def objective(self, share: Float, loss: str) -> Objective:
        """Return J without the ridge, over the rows of nonzero ``share``."""
        centre = self.moments.mean.mean(axis=0)
        return Objective(self.X, share, LOSSES[loss], 0.0, centre)


def minimise(
    objective: Objective,
    at: Coordinates,
    tol: float,
    max_iter: int,
    start: Iterate | None = None,
    l1: float = 0.0,
) -> Minimum:
    """Minimise J; for the sigmoid, start from the minimum of the logistic loss."""

    def run(J: Objective, tol: float, most: int, start: Iterate | None) -> Minimum:
        if l1 > 0.0:
            return descend_l1(J, at, l1, tol, most, start)
        return descend(J, at, tol, most, start)

    first = 0
    if objective.loss is POINTS["sigmoid"] and start is None:
        easy = objective.with_loss(POINTS["logistic"])
        near = run(easy, _START_TOL, max_iter, None)
        first = near.n_iter
        start = objective.iterate(near.w)
    best = run(objective, tol, max(max_iter - first, 1), start)
    return best._replace(n_iter=min(best.n_iter + first, max_iter))


def cut_short(found: Minimum, tol: float, max_iter: int) -> float:
    """Return the gradient norm if ``max_iter`` ended the search early, else zero."""
    ended = found.n_iter >= max_iter and found.gradient_norm > tol
    return found.gradient_norm if ended else 0.0


def with_covariances(n: int, d: int, values: int) -> bool:
    """Return whether covariances of ``d`` features are worth their cost."""
    return d <= _WIDEST and n * d**2 <= max(_ROUNDS * values, 64 * n * d)


def feature_statistics(
    ranker: LinearRanker, X: Any, rows: Rows, signed: Float
) -> FeatureStatistics:
    """Return the feature statistics, or raise an error if sums overflow."""
    n, d = n_rows(rows), ranker.n_features_in_
    matrix = LocalMatrix(rows, d)
    if with_covariances(n, d, n_values(rows)):
        moments = gather(rows, signed, d)
        ranker._validate_sums(X, signed, moments.rows, moments.mean, moments.scatter)
        return from_covariances(matrix, moments)
    known = ranker._class_moments(X, rows, signed)
    return from_class_moments(known, AllPairs(matrix, signed, known))


def from_covariances(X: Matrix, moments: Moments) -> FeatureStatistics:
    """Return the statistics of features whose covariances are known."""
    H, _, varies = moments.quadratic()
    return FeatureStatistics(X, varies, moments.class_moments(), H=H)


def from_class_moments(moments: ClassMoments, system: AllPairs) -> FeatureStatistics:
    """Return the statistics of features that are too many for covariances."""
    return FeatureStatistics(system.X, system.varies, moments, system=system)


class BAM(LinearRanker):
    r"""Linear ranker that minimises a pairwise loss over all pairs.

    Minimises

    .. math:: E\,\ell(w \cdot (x^+ - x^-))
              + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1

    over all pairs of a positive and a negative row, by truncated Newton. With the
    squared hinge this is linear RankSVM for two grades (PRSVM+). There is no step size
    and no randomness. A pass costs a product with X and O(n log n).

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty on the weights of the features as given. "auto" gives each feature
        its own, which does not depend on units and decreases with the number of rows:
        see Notes. :class:`BAMCV` chooses it by cross-validation.
    l1 : float, default=0.0
        Lasso penalty on the weights of the features as given; above zero, some weights
        are exactly zero. With ``l2`` an elastic net.
    loss : str, default="squared_hinge"
        Loss of a pair with margin m: "squared_hinge", max(0, 1 - m)²; "logistic",
        log(1 + exp(-m)); "sigmoid", 1 / (1 + exp(m)), the nearest to 1 - AUC, not
        convex; "exponential", exp(-m); "smoothed_hinge", ½ - m below 0 and
        ½ max(0, 1 - m)² above; or "huber", Huber's loss of 1 - m: ½ (1 - m)² up to a
        distance of 1, linear beyond. "balanced_logistic" is not pairwise: it is
        logistic regression with ``class_weight="balanced"`` and an unpenalised
        intercept.
    .. shared: newton

    Attributes
    ----------
    .. shared: weights, intercept, classes, features
    n_iter_ : int
        Number of Newton steps.
    objective_ : float
        J at the weights.
    gradient_norm_ : float
        Norm of its gradient, relative to that at zero, as for ``tol``. With ``l1``, a
        proximal gradient step replaces the gradient.

    See Also
    --------
    BAMCV : Chooses ``l2`` and the loss by cross-validation.
    LeastSquaresAUC : The pairwise square loss, in closed form.

    Notes
    -----
    The solver works on features of unit scale (up to 1024 features: uncorrelated, too),
    so features need no scaling. A constant feature has weight zero. Sums over pairs are
    accurate to 1e-10 for the logistic and the sigmoid loss. Every step lowers J.

    With ``l2="auto"`` the penalty is :math:`\tfrac{1}{2} \sum_j \lambda_j w_j^2`,
    :math:`\lambda_j = \tfrac{1}{2} \ell'' E[z_j^2 \mid z_j \ne 0] (1/n_+ + 1/n_-)
    (1 + d^2/4n)`, with the difference z of a pair, the mean number d of its nonzero
    features, and :math:`\ell''` 2, 1/4, 1/10, 1, 1/2, 1 and 1/8 for the losses above.
    With weights, n is their sum. In text (more features than rows, less than a tenth of
    the values nonzero) all features share
    :math:`\lambda = \tfrac{1}{20} \ell'' E\|z\|^2 (1/n_+ + 1/n_-)`.

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
        **LinearRanker._parameter_constraints,
        "loss": [StrOptions(set(LOSSES))],
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
        l1: float = 0.0,
        loss: str = "squared_hinge",
        tol: float = 1e-3,
        max_iter: int = 100,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, rows, signed = self._check(X, y, sample_weight, reset=True)
        stats = feature_statistics(self, X, rows, signed)
        self._minimise(stats, shares(signed))

    def _minimise(self, stats: FeatureStatistics, share: Float) -> None:
        """Minimise J over the rows of nonzero ``share``."""
        with one_blas_thread():
            curvature = CURVATURE[self.loss]
            l2 = ridge(self.l2, stats.moments, stats.diagonal(), curvature)
            at = stats.coordinates(l2)
            objective = stats.objective(share, self.loss).with_ridge(l2)
            l1 = float(self.l1)
            found = minimise(objective, at, self.tol, self.max_iter, l1=l1)
        self.n_iter_, self.objective_ = found.n_iter, found.objective
        self.gradient_norm_ = found.gradient_norm
        self._warn_above(self.tol, cut_short(found, self.tol, self.max_iter), GRADIENT)
        self._set_linear(found.w, stats.moments.mean)
