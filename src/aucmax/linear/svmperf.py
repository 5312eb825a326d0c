r"""SVM-perf: the pairwise hinge loss over all pairs, by cutting planes.

.. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2

with the mean over all pairs. A plane that touches the mean hinge from below comes of
one sort of the scores and a sweep (:mod:`aucmax.losses.pairwise`): it is Joachims' most
violated constraint. The least of the planes so far plus the ridge is a small dual
problem (:mod:`aucmax.linear.solvers.cutting_planes`) and a lower bound on J; the next
plane is cut near there, until the best J found is as low as the bound, up to ``tol``.

Deviations from the papers: J is a mean over pairs, not a sum with C. The next plane is
cut not where the model is least, which is far off at first, but a step from the best w
towards it, after a line search between the two (Franc and Sonnenburg's OCAS): so J at
the best w never rises. The search looks at few points: pairs have n² kinks, and to sort
the scores is all that a point costs. Planes idle for long are dropped.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.base.penalty import default_ridge
from aucmax.base.ranker import LinearRanker
from aucmax.core.products import times
from aucmax.core.rows import Float
from aucmax.core.threads import one_blas_thread
from aucmax.linear.solvers.cutting_planes import Planes
from aucmax.linear.solvers.matrix_free import AllPairs
from aucmax.linear.solvers.newton import Objective, Ridge, together
from aucmax.losses.pairwise import Hinge, shares
from aucmax.storage.storable import Spec

_LEAST = 1e-10  # penalty on the weight of a feature of unit scale: as good as none
_CURVATURE = 0.5  # as if: the hinge has none, the mean over pairs has about that
_TRIALS = 8  # points of a line search
_FLAT = 0.05  # slope to end it at, relative to that at its start
_TOWARDS = 0.1  # the least of the planes: where to cut, from the best w
_ROUNDING = 1e-15  # of J: a gap that cannot be seen


class Found(NamedTuple):
    """What the solver has found."""

    w: Float
    objective: float
    gap: float  # relative
    n_iter: int
    history: list[float]  # of J at the best w
    bounds: list[float]  # on J, from below


class Place:
    """Weights, their scores, J there and its slopes by the scores."""

    def __init__(self, objective: Objective, w: Float, scores: Float) -> None:
        self.w, self.scores = w, scores
        self.loss = Hinge(scores, objective.share)
        self.J = self.loss.value + objective.ridge(w)


def minimise(objective: Objective, unit: Float, tol: float, max_iter: int) -> Found:
    """Return the minimum of the mean hinge plus ½ Σ l2 w², up to ``tol``.

    ``unit`` is 1/√l2, or zero for weights that stay zero.
    """
    o, d = objective, len(unit)

    def between(a: Place, b: Place, part: float) -> Place:
        w = a.w + part * (b.w - a.w)
        scores = a.scores + part * (b.scores - a.scores)
        return Place(o, w, scores)

    def search(a: Place, b: Place) -> Place:
        """Return the lowest place found on the way from a to b: secants and halves."""
        dw, ds = b.w - a.w, b.scores - a.scores

        def slope(at: Place) -> float:
            return float(np.sum(at.loss.slope * ds) + np.sum(o.l2 * at.w * dw))

        low, high = 0.0, 1.0
        at_low = first = slope(a)
        at_high = slope(b)
        best = b if b.J <= a.J else a
        if first >= 0.0 or at_high <= 0.0:  # convex: it only rises, or only falls
            return best
        for k in range(_TRIALS):
            part = 0.5 * (low + high)
            if k % 3 < 2:
                part = low + (high - low) * at_low / (at_low - at_high)
            here = between(a, b, part)
            best = here if here.J <= best.J else best
            now = slope(here)
            if now < 0.0:
                low, at_low = part, now
            else:
                high, at_high = part, now
            if abs(now) <= -_FLAT * first:
                break
        return best

    planes = Planes(unit)
    best = cut = Place(o, np.zeros(d), np.zeros(len(o.share)))
    history, bounds = [best.J], [0.0]
    for _ in range(max_iter):
        loss = cut.loss
        planes.add(
            together(o.X, d, [o.back(loss.slope)])[0],
            loss.value - float(np.sum(loss.slope * cut.scores)),
        )
        w, bound = planes.solve()
        if not np.isfinite(bound):
            break
        scores = times(o.X, w) - float(np.sum(o.ref * w))
        scores = scores if o.all else scores[o.present]
        least = Place(o, w, scores)
        best = search(best, least)
        history.append(best.J)
        bounds.append(max(bound, bounds[-1]))
        gap = best.J - bounds[-1]
        if gap <= max(tol * min(best.J, 1.0 - bounds[-1]), _ROUNDING):
            break
        cut = between(best, least, _TOWARDS)
    relative = (history[-1] - bounds[-1]) / max(
        min(history[-1], 1.0 - bounds[-1]), _ROUNDING
    )
    rounds = max(len(history) - 1, 1)
    return Found(best.w, best.J, max(relative, 0.0), rounds, history, bounds)


class SVMPerf(LinearRanker):
    r"""The linear ranker of the pairwise hinge loss, by cutting planes.

    Minimises

    .. math:: E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2

    over all pairs of a positive and a negative row: SVM-perf with the ROC area as its
    loss, or SVM-OR. No step size, nothing random; a round costs two products with X and
    some sorts of the scores, and the gap to the minimum is known.

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given. With "auto" each feature has
        its own, which depends on no unit and falls with the rows: see Notes.
    tol : float, default=1e-3
        Gap between J and a lower bound on it to stop at, relative to J or to 1 - J,
        whichever is less: J is one at zero.
    max_iter : int, default=1000
        Rounds, at most; a ``ConvergenceWarning`` says if ``tol`` was not reached.

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
        Rounds done.
    objective_ : float
        J at the weights.
    gap_ : float
        By how much J may be above its minimum, as for ``tol``.

    See Also
    --------
    BAM : The squared hinge and other smooth losses, over all pairs too.
    PSAM : The same loss by random pairs, one a step.

    Notes
    -----
    The planes that touch are kept, as many as there are features at most, and others
    for some rounds. A feature that is constant has weight zero. The penalty of
    ``l2="auto"`` is that of :class:`BAM`, with 1/2 for :math:`\ell''`: the hinge has no
    curvature, its mean has some. One of less than 1e-10, weights in units of features
    of unit scale, is taken to be that: planes alone have no minimum.

    References
    ----------
    .. [1] T. Joachims, "A support vector method for multivariate performance measures",
       ICML 2005.
    .. [2] T. Joachims, "Training linear SVMs in linear time", KDD 2006.
    .. [3] V. Franc, S. Sonnenburg, "Optimized cutting plane algorithm for large-scale
       risk minimization", JMLR 10, 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SVMPerf
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> model = SVMPerf().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.93
    >>> model.gap_ <= 1e-3
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    stored: ClassVar[dict[str, Spec]] = {"objective_": Spec(""), "gap_": Spec("")}

    n_iter_: int
    objective_: float
    gap_: float

    def __init__(
        self, l2: float | str = "auto", *, tol: float = 1e-3, max_iter: int = 1000
    ) -> None:
        self.l2 = l2
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
        tally = self._tally(X, rows, signed)
        pairs = AllPairs(rows, signed, tally)
        share = shares(signed)
        # Rows that are not there may hold anything.
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            l2: Ridge = (
                default_ridge(
                    tally.weight, tally.nonzero_share, pairs.diagonal, _CURVATURE
                )
                if isinstance(self.l2, str)
                else float(self.l2)
            )
            ridge = np.maximum(l2, _LEAST * pairs.diagonal)
            unit = 1.0 / np.sqrt(np.where(pairs.varies, ridge, np.inf))
            objective = Objective(rows, share, Hinge, ridge, pairs.mean.mean(axis=0))
            found = minimise(objective, unit, float(self.tol), self.max_iter)
        self.n_iter_, self.objective_ = found.n_iter, found.objective
        self.gap_ = found.gap
        if found.n_iter >= self.max_iter:
            self._warn_above(float(self.tol), found.gap, "the relative gap")
        self.coef_ = found.w[np.newaxis]
        self.intercept_ = np.array([-0.5 * float((pairs.mean @ found.w).sum())])
        return self
