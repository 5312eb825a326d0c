r"""SVM-perf: the pairwise hinge loss over all pairs, by cutting planes.

.. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2

with the mean over all pairs. A plane that touches the mean hinge from below takes one
sort of the scores and a sweep (:mod:`aucmax.losses.pairwise`): it is Joachims' most
violated constraint. The minimum of the planes so far plus the ridge is a small dual
problem (:mod:`aucmax.linear.solvers.cutting_planes`) and a lower bound on J. The next
plane is cut near that minimum, until the best J is within ``tol`` of the bound.

Deviations from the papers: J is a mean over pairs, not a sum with C. The next plane is
cut not at the minimum of the model, which is far away at first, but a step from the
best w towards it, after a line search between the two (OCAS of Franc and Sonnenburg),
so that the best J never rises. The line search tries few points: pairs have n² kinks,
and a point costs one sort of the scores. Planes that stay inactive are dropped.

The same solver minimises the hinges of F1, precision at k and the break-even point
(:mod:`aucmax.losses.contingency`). They are divided by the number of positives, so that
margins are about one, where Joachims sums over rows. F1 depends on the threshold: its
intercept is one more weight, with hardly a penalty.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from aucmax.base.constraints import COUNT
from aucmax.base.penalty import ridge
from aucmax.base.ranker import LinearRanker
from aucmax.core.products import LocalMatrix, Matrix
from aucmax.core.rows import Float
from aucmax.core.threads import one_blas_thread
from aucmax.linear.solvers.cutting_planes import Planes
from aucmax.linear.solvers.matrix_free import AllPairs
from aucmax.linear.solvers.newton import Objective
from aucmax.losses.contingency import F1Hinge, PrecisionHinge
from aucmax.losses.pairwise import Hinge, Point, shares
from aucmax.storage.state import Spec

_LEAST = 1e-10  # smallest penalty for features of unit scale: a minimum must exist
_LIGHT = 0.01  # penalty of the intercept, relative to the least one of a feature
_CURVATURE = 0.5  # of the mean over pairs, about; the hinge itself has none
_TRIALS = 8  # points of a line search
_FLAT = 0.05  # slope at which it ends, relative to that at its start
_CUT_AT = 0.1  # where to cut, on the way from the best w to the model's minimum
_ROUNDING = 1e-15  # rounding error of J


class Found(NamedTuple):
    """Result of the solver."""

    w: Float
    objective: float
    gap: float  # relative
    n_iter: int
    history: list[float]  # J at the best w
    bounds: list[float]  # lower bounds on J


class Iterate:
    """Weights with their scores, J and its slopes by the scores."""

    def __init__(self, objective: Objective, w: Float, scores: Float) -> None:
        self.w, self.scores = w, scores
        self.loss = objective.loss(scores, objective.share)
        self.J = self.loss.value + objective.ridge(w)


def minimise(objective: Objective, unit: Float, tol: float, max_iter: int) -> Found:
    """Minimise the loss plus ½ Σ l2 w²; ``unit`` is 1/√l2 or zero."""
    o, d = objective, len(unit)

    def between(a: Iterate, b: Iterate, part: float) -> Iterate:
        w = a.w + part * (b.w - a.w)
        scores = a.scores + part * (b.scores - a.scores)
        return Iterate(o, w, scores)

    def search(a: Iterate, b: Iterate) -> Iterate:
        """Return the lowest iterate between a and b, by secants and bisection."""
        dw, ds = b.w - a.w, b.scores - a.scores

        def slope(at: Iterate) -> float:
            return float(np.sum(at.loss.slope * ds) + np.sum(o.l2 * at.w * dw))

        low, high = 0.0, 1.0
        at_low = first = slope(a)
        at_high = slope(b)
        best = b if b.J <= a.J else a
        if first >= 0.0 or at_high <= 0.0:  # J is convex: it only rises, or only falls
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
    best = cut = Iterate(o, np.zeros(d), np.zeros(len(o.share)))
    history, bounds = [best.J], [0.0]
    for _ in range(max_iter):
        loss = cut.loss
        planes.add(
            o.gradient(loss.slope), loss.value - float(np.sum(loss.slope * cut.scores))
        )
        w, bound = planes.solve()
        if not np.isfinite(bound):
            break
        scores = o.X.times(w) - float(np.sum(o.ref * w))
        least = Iterate(o, w, o.select(scores))
        best = search(best, least)
        history.append(best.J)
        bounds.append(max(bound, bounds[-1]))
        gap = best.J - bounds[-1]
        if gap <= max(tol * min(best.J, 1.0 - bounds[-1]), _ROUNDING):
            break
        cut = between(best, least, _CUT_AT)
    relative = (history[-1] - bounds[-1]) / max(
        min(history[-1], 1.0 - bounds[-1]), _ROUNDING
    )
    rounds = max(len(history) - 1, 1)
    return Found(best.w, best.J, max(relative, 0.0), rounds, history, bounds)


class _WithIntercept(NamedTuple):
    """A matrix with a last column of ones."""

    X: Matrix

    def times(self, v: Float) -> Float:
        """Return X v."""
        return self.X.times(v[:-1]) + v[-1]

    def transposed_times(self, u: Float) -> Float:
        """Return Xᵀ u."""
        return np.append(self.X.transposed_times(u), u.sum())


class SVMPerf(LinearRanker):
    r"""Linear ranker of the pairwise hinge loss, by cutting planes (SVM-perf).

    Minimises

    .. math:: E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2

    over all pairs of a positive and a negative row: SVM-perf with the ROC area as its
    loss, also called SVM-OR. There is no step size and no randomness. A round costs two
    products with X and a few sorts of the scores, and bounds the gap to the minimum.

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty on the weights of the features as given. "auto" gives each feature
        its own, which does not depend on units and decreases with the number of rows:
        see Notes.
    loss : {"auc", "f1", "prbep", "precision_at_k"}, default="auc"
        Measure whose hinge is minimised: the ROC area, as above; F1 at score zero; the
        precision-recall break-even point; or the precision among the ``k`` rows of the
        highest scores. The last three need rows of equal weights.
    k : int or None, default=None
        Number of rows for "precision_at_k"; None is the number of positives, which is
        "prbep".
    tol : float, default=1e-3
        Gap between J and its lower bound to stop at, relative to the smaller of J and
        1 - J (J is 1 at zero).
    max_iter : int, default=1000
        Maximum number of rounds; a ``ConvergenceWarning`` is issued if ``tol`` is not
        reached.

    Attributes
    ----------
    .. shared: weights, intercept, classes, features
    n_iter_ : int
        Number of rounds.
    objective_ : float
        J at the weights.
    gap_ : float
        Bound on the distance of J from its minimum, as for ``tol``.

    See Also
    --------
    BAM : The squared hinge and other smooth losses over all pairs.
    PSAM : The same loss by random pairs, one per step.

    Notes
    -----
    Active planes are kept, at most as many as there are features, and others for 50
    rounds. A constant feature has weight zero. The penalty of ``l2="auto"`` is that of
    :class:`BAM` with :math:`\ell'' = 1/2`: the hinge has no curvature, its mean has.
    The penalty is at least 1e-10 for features of unit scale, as planes alone have no
    minimum. A plane of F1 costs O(n₊ n₋), of the other measures O(n log n). Their
    hinges are loose where classes overlap much: the minimum can then be at zero.

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
        **LinearRanker._parameter_constraints,
        "loss": [StrOptions({"auc", "f1", "prbep", "precision_at_k"})],
        "k": [COUNT, None],
    }
    stored: ClassVar[dict[str, Spec]] = {"objective_": Spec(""), "gap_": Spec("")}

    n_iter_: int
    objective_: float
    gap_: float

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        loss: str = "auc",
        k: int | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
    ) -> None:
        self.l2 = l2
        self.loss = loss
        self.k = k
        self.tol = tol
        self.max_iter = max_iter

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, rows, signed = self._check(X, y, sample_weight, reset=True)
        moments = self._class_moments(X, rows, signed)
        matrix: Matrix = LocalMatrix(rows, self.n_features_in_)
        pairs = AllPairs(matrix, signed, moments)
        share, loss = shares(signed), self._point(signed)
        # Rows of weight zero may hold any values.
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            l2 = ridge(self.l2, moments, pairs.diagonal, _CURVATURE)
            l2 = np.maximum(l2, _LEAST * pairs.diagonal)
            unit = 1.0 / np.sqrt(np.where(pairs.varies, l2, np.inf))
            ref = pairs.mean.mean(axis=0)
            if self.loss == "f1":
                light = _LIGHT / np.max(unit**2 * pairs.diagonal, initial=_LEAST)
                l2, unit = (
                    np.append(l2 + 0.0 * ref, light),
                    np.append(unit, light**-0.5),
                )
                matrix, ref = _WithIntercept(matrix), np.append(ref, 0.0)
            objective = Objective(matrix, share, loss, l2, ref)
            found = minimise(objective, unit, float(self.tol), self.max_iter)
        self.n_iter_, self.objective_ = found.n_iter, found.objective
        self.gap_ = found.gap
        if found.n_iter >= self.max_iter:
            self._warn_above(float(self.tol), found.gap, "the relative gap")
        self._set_linear(found.w[: self.n_features_in_], pairs.mean)
        if self.loss == "f1":
            self.intercept_ += found.w[-1]

    def _point(self, signed: Float) -> Callable[[Float, Float], Point]:
        """Return the loss at scores; raise an error if it does not fit the data."""
        if self.loss == "auc":
            return Hinge
        weight, n = np.abs(signed[signed != 0.0]), np.count_nonzero(signed)
        if np.ptp(weight) > 0.0:
            raise ValueError(
                f"SVMPerf(loss={self.loss!r}) needs rows of equal weights, not from "
                f"{weight.min():g} to {weight.max():g}. Repeat rows, or use loss='auc'."
            )
        if self.loss == "f1":
            return F1Hinge
        k = None if self.loss == "prbep" else self.k
        if k is not None and k > n:
            raise ValueError(f"k={k} exceeds the number of rows, {n}.")
        return partial(PrecisionHinge, k=k)
