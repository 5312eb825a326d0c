r"""SVM-perf: the pairwise hinge loss over all pairs, by cutting planes.

.. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2

with the mean over all pairs. A plane that touches the mean hinge from below takes one
sort of the scores and a sweep (:mod:`aucmax.losses.pairwise`): it is Joachims' most
violated constraint. The minimum of the planes so far plus the ridge is a small dual
problem and a lower bound on J. The next plane is cut near that minimum, until the best
J is within ``tol`` of the bound.

Deviations from the papers: J is a mean over pairs, not a sum with C. The next plane is
cut not at the minimum of the model, which is far away at first, but a step from the
best w towards it, after a line search between the two (OCAS of Franc and Sonnenburg),
so that the best J never rises. The line search tries few points: pairs have n² kinks,
and a point costs one sort of the scores. Planes that stay inactive are dropped.

The same solver minimises the hinges of F1, precision at k and the break-even point.
They are divided by the number of positives, so that margins are about one, where
Joachims sums over rows. F1 depends on the threshold: its intercept is one more weight,
with hardly a penalty.

**Hinges of contingency tables.** Joachims (2005) bounds a loss Δ of a whole labelling,
with a true positives, b false positives, c false negatives and d true negatives, from
above by

.. math:: L(s) = \max_{y'} \Delta(y', y) + \tfrac{1}{2 n_+} \sum_i (y'_i - y_i)\, s_i

over all labellings y' (of k positives, for precision at k). For a given table, the best
y' makes the lowest c positives negative and the highest b negatives positive. So the
maximum is over tables (the thesis' Algorithm 14): O(n₊ n₋) for F1 and O(n) for given k,
after two sorts. The slopes are those of the best y'. L is at least zero.

**Cutting planes**: a piecewise linear lower bound plus a ridge,

.. math:: \max_k (a_k \cdot w + b_k) + \tfrac{1}{2} \sum_j \lambda_j w_j^2

has its minimum at :math:`w_j = -\sum_k \alpha_k a_{kj} / \lambda_j`, where α maximises

.. math:: D(\alpha) = b \cdot \alpha
          - \tfrac{1}{2} \sum_j \tfrac{1}{\lambda_j} (\sum_k \alpha_k a_{kj})^2

over α ≥ 0 with sum one; D of any such α is a lower bound on the function plus the
ridge. The maximum is found by an active-set method: exact on the active planes, adding
or removing one at a time, from the α before.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from aucmax.base.constraints import COUNT
from aucmax.base.penalty import ridge
from aucmax.base.ranker import LinearRanker
from aucmax.core.jit import kernel
from aucmax.core.products import LocalMatrix, Matrix
from aucmax.core.rows import Float, Index
from aucmax.core.threads import one_blas_thread
from aucmax.linear.solvers.matrix_free import AllPairs
from aucmax.linear.solvers.newton import Objective
from aucmax.losses.pairwise import Hinge, Point, shares
from aucmax.storage.state import Spec


class ContingencyHinge(Point):
    """The loss at given scores, from the best table; rows must have equal weights."""

    def __init__(self, score: Float, share: Float) -> None:
        pos, neg = np.flatnonzero(share > 0.0), np.flatnonzero(share < 0.0)
        pos, neg = pos[np.argsort(score[pos])], neg[np.argsort(-score[neg])]
        low = np.append(0.0, np.cumsum(score[pos])) / len(pos)  # of the lowest c
        high = np.append(0.0, np.cumsum(score[neg])) / len(pos)  # of the highest b
        self.value, b, c = self._best(high, low)
        self.slope = np.zeros(len(score))
        if self.value > 0.0:
            self.slope[pos[:c]] = -1.0 / len(pos)
            self.slope[neg[:b]] = 1.0 / len(pos)
        self.value = max(self.value, 0.0)

    def _best(self, high: Float, low: Float) -> tuple[float, int, int]:
        """Return the largest Δ + high[b] - low[c], and its b and c."""
        raise NotImplementedError


@kernel
def _best_of_f1(high: Float, low: Float, found: Float) -> None:
    """Write the largest 1 - F1 + high[b] - low[c], and its b and c."""
    best, at_b, at_c = -np.inf, 0, 0
    for c in range(low.shape[0]):
        true = 2.0 * (low.shape[0] - 1 - c)
        for b in range(high.shape[0]):
            value = 1.0 - true / max(true + b + c, 1.0) + high[b] - low[c]
            if value > best:
                best, at_b, at_c = value, b, c
    found[0], found[1], found[2] = best, at_b, at_c


class F1Hinge(ContingencyHinge):
    """Hinge of 1 - F1 over all tables."""

    def _best(self, high: Float, low: Float) -> tuple[float, int, int]:
        found = np.zeros(3)
        _best_of_f1(high, low, found)
        return float(found[0]), int(found[1]), int(found[2])


class PrecisionHinge(ContingencyHinge):
    """Hinge of 1 - precision over the tables with k positives."""

    def __init__(self, score: Float, share: Float, k: int | None = None) -> None:
        self.k = int(np.count_nonzero(share > 0.0)) if k is None else k
        super().__init__(score, share)

    def _best(self, high: Float, low: Float) -> tuple[float, int, int]:
        missed = len(low) - 1 - self.k  # positives beyond k, if above zero
        c: Index = np.arange(max(missed, 0), min(len(low), missed + len(high)))
        b = c - missed
        value = b / self.k + high[b] - low[c]
        at = int(np.argmax(value))
        return float(value[at]), int(b[at]), int(c[at])


_IDLE = 50  # rounds with α = 0 after which a plane is dropped
_JITTER = 1e-14  # regularises planes that are equal up to rounding
_STILL = 1e-13  # smallest gain of a new plane, relative to D and its terms


class Planes:
    """Planes below a convex function; ``unit`` is 1/√λ, zero for weights held at zero.

    The first plane is zero: the function is not negative.
    """

    def __init__(self, unit: Float) -> None:
        self.unit = unit
        self.A = np.zeros((16, len(unit)))  # in units of w √λ; grows by doubling
        self.b = np.zeros(1)
        self.G = np.zeros((1, 1))  # Gram matrix
        self.alpha = np.ones(1)
        self.idle = np.zeros(1, dtype=np.int64)

    def add(self, a: Float, b: float) -> None:
        """Add the plane a·w + b."""
        k = len(self.b)
        if k == len(self.A):
            self.A = np.concatenate([self.A, np.zeros_like(self.A)])
        self.A[k] = self.unit * a
        row = self.A[: k + 1] @ self.A[k]
        self.G = np.pad(self.G, (0, 1))
        self.G[k] = self.G[:, k] = row
        self.b = np.append(self.b, b)
        self.alpha = np.append(self.alpha, 0.0)
        self.idle = np.append(self.idle, 0)

    def solve(self) -> tuple[Float, float]:
        """Return w and D, and drop planes that have been inactive for long."""
        self.alpha = maximise(self.G, self.b, self.alpha)
        v = self.alpha @ self.A[: len(self.b)]
        bound = float(self.b @ self.alpha) - 0.5 * float(np.sum(v * v))
        self.idle = np.where(self.alpha > 0.0, 0, self.idle + 1)
        keep = self.idle <= _IDLE
        keep[0] = True
        if not keep.all():  # α is as good without them: the bound does not fall
            count = int(keep.sum())
            self.A[:count] = self.A[: len(keep)][keep]
            self.G = self.G[np.ix_(keep, keep)]
            self.b, self.alpha = self.b[keep], self.alpha[keep]
            self.idle = self.idle[keep]
        return -self.unit * v, bound


def maximise(G: Float, b: Float, alpha: Float) -> Float:
    """Maximise b·α - ½ α·G α over α ≥ 0 with sum one, starting from ``alpha``."""
    active = [int(k) for k in np.flatnonzero(alpha)]
    alpha = alpha.copy()
    noise = _STILL * float(np.abs(b).max() + np.abs(G).max() ** 0.5)
    for _ in range(10 * len(b) + 100):
        _maximise_active(G, b, alpha, active)
        gain = b - G @ alpha
        here = float(alpha @ gain)
        best = int(np.argmax(gain))
        if not gain[best] > here + noise or best in active:
            break
        active.append(best)
    return alpha


def _maximise_active(G: Float, b: Float, alpha: Float, active: list[int]) -> None:
    """Set α to the maximum on the ``active`` planes, and remove planes with α ≤ 0."""
    while True:
        goal = _stationary(G[np.ix_(active, active)], b[active])
        now = alpha[active]
        if (goal > 0.0).all():
            alpha[active] = goal / goal.sum()
            return
        # Move until the first α is zero, and remove its plane.
        leaves = np.flatnonzero(goal <= 0.0)
        share = now[leaves] / np.maximum(now[leaves] - goal[leaves], 1e-300)
        first = int(leaves[np.argmin(share)])
        now = np.maximum(now + float(share.min()) * (goal - now), 0.0)
        now[first] = 0.0
        alpha[active] = now / now.sum()
        del active[first]


def _stationary(G: Float, b: Float) -> Float:
    """Maximise b·α - ½ α·G α over α of any sign with sum one."""
    k = len(b)
    if k == 1:
        return np.ones(1)
    size = max(float(np.trace(G)) / k, _JITTER * float(np.abs(b).max()), 1e-300)
    system = np.empty((k + 1, k + 1))
    system[:k, :k] = G / size
    system[range(k), range(k)] += _JITTER
    system[k, :k] = system[:k, k] = 1.0
    system[k, k] = 0.0
    return np.linalg.solve(system, np.append(b / size, 1.0))[:k]


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
