r"""A kernel ranker whose width, landmarks and penalty are chosen, or a linear one.

Features are those of landmarks (:mod:`aucmax.kernel.nystroem`) and, beside them and
up to 2000, the linear ones. The exact path of the pairwise square loss is the judge:
class moments of the mapped rows, those of a fold subtracted, give all penalties at the
price of one eigendecomposition; and its best point is the model, too.

A kernel has more to overfit than a linear model, and where rows are few a
cross-validation is too noisy to tell. So the linear model, :class:`BAMCV` on the same
folds, stays unless a kernel is better by more than a standard error over the folds.
"""

from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from aucmax.base.duplicate_rows import Repeats, dealt
from aucmax.base.expression import ScoreExpression
from aucmax.base.folds import areas, drawn, folds, left_out
from aucmax.base.ranker import Ranker, generator
from aucmax.core.rows import Float, Index
from aucmax.core.threads import one_blas_thread
from aucmax.kernel.chain import check_learner, check_map
from aucmax.kernel.feature_map import FeatureMap
from aucmax.kernel.nystroem import KMeansNystroem
from aucmax.linear.bam_cv import BAMCV
from aucmax.linear.least_squares import LeastSquaresAUC
from aucmax.linear.solvers.covariances import Moments, gather
from aucmax.linear.solvers.normal_equations import solve_path
from aucmax.storage.estimator import restore
from aucmax.storage.storable import Spec, State

_L2S = 25  # penalties
_DECADES = 7.0  # that they fall by
_CHOOSING = 20_000  # rows that kernels are judged by, at most
_FEW = 5000  # rows, below which folds are dealt more than once …
_REPEATS = 3  # … namely so often
_PART = 1 << 14  # rows whose features are there at a time
_ROWS_A_LANDMARK = 4
_WIDEST = 2000  # features that are put beside those of the kernel, at most


class Judged(NamedTuple):
    """A kernel, and how it fares for the best penalty."""

    map: KMeansNystroem
    l2: float
    scores: Float  # AUC on each fold


class KernelAUCCV(Ranker):
    r"""A Gaussian kernel on landmarks, all of it chosen; or a linear ranker.

    Minimises the pairwise square loss of linear features and those of
    :class:`KMeansNystroem`, with an l2 penalty. Width of the kernel, number of
    landmarks and penalty are those of the highest mean AUC in cross-validation. If that
    is not above the AUC of a linear :class:`BAMCV` by more than a standard error over
    the folds, the linear ranker is taken.

    Parameters
    ----------
    n_components : int or list of int, default=400
        Numbers of landmarks to choose from; no more than a quarter of the rows.
    widths : list of float, default=(0.25, 0.5, 1.0, 2.0)
        Widths of the kernel to choose from, in units of the root mean square distance
        of the scaled rows to their mean.
    cv : int, cross-validation generator or iterable, default=5
        Number of folds (stratified; no more than the smaller class has rows), dealt
        three times if there are less than 5000 rows; or whatever else scikit-learn
        takes for ``cv``.
    fallback : bool, default=True
        Whether the linear ranker is taken where no kernel is clearly better. Without,
        folds are dealt once, and a linear ranker is not fitted.
    random_state : int, RandomState instance or None, default=None
        Draws landmarks, and the folds if they are dealt more than once.

    Attributes
    ----------
    map_ : KMeansNystroem or None
        The map that was chosen; None if the linear ranker was.
    learner_ : LeastSquaresAUC or BAMCV
        The ranker of its features, or the linear one.
    kernel_scores_ : ndarray of shape (n_folds,)
        AUC of the best kernel on each fold.
    linear_scores_ : ndarray of shape (n_folds,)
        AUC of the linear ranker on each fold; none without ``fallback``.
    classes_ : ndarray of shape (2,)
        Negative and positive label.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features_in_,)
        Number of features, and their names if X was a data frame.

    See Also
    --------
    Chain : A map and a learner of your choice.
    BAMCV : The linear ranker.

    Notes
    -----
    With more than 20 000 rows, so many of them, drawn at random, choose; all of them
    give the moments that the model is solved from, block by block.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCCV
    >>> X, y = make_moons(1000, noise=0.3, random_state=0)
    >>> model = KernelAUCCV(random_state=0).fit(X, y)
    >>> print(f"{model.kernel_scores_.mean():.2f}, {model.linear_scores_.mean():.2f}")
    0.97, 0.93
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "widths": ["array-like"],
        "cv": ["cv_object"],
        "fallback": ["boolean"],
        "random_state": ["random_state"],
    }
    stored: ClassVar[dict[str, Spec]] = {
        "kernel_scores_": Spec(finite=False),
        "linear_scores_": Spec(finite=False),
    }

    map_: KMeansNystroem | None
    learner_: Any
    kernel_scores_: Float
    linear_scores_: Float

    def __init__(
        self,
        n_components: Any = 400,
        *,
        widths: Any = (0.25, 0.5, 1.0, 2.0),
        cv: Any = 5,
        fallback: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.widths = widths
        self.cv = cv
        self.fallback = fallback
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the ranker.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels of two classes; the larger one is positive.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the AUC of a fold. A row of weight
            zero is not there at all.

        Returns
        -------
        self
            The fitted estimator.
        """
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._require_both(signed)
        rng = generator(self.random_state)
        weighted = sample_weight is not None
        some, signs = rows, signed
        if len(signed) > _CHOOSING:
            chosen = drawn(signed, _CHOOSING, rng)
            some, signs = rows[chosen], signed[chosen]
        parts = self._folds(some, signs, rng)
        with one_blas_thread():
            best = self._best_kernel(some, signs, parts, weighted, rng)
        self.kernel_scores_, self.linear_scores_ = best.scores, np.zeros(0)
        better = True
        if self.fallback:
            weight = np.abs(signs) if weighted else None
            linear = BAMCV(cv=parts).fit(some, signs > 0.0, weight)
            at = int(np.argmax(linear.scores_.mean(axis=1)))
            self.linear_scores_ = linear.scores_[at]
            shares = [len(test) / len(train) for train, test in parts]
            better = _clearly_above(
                best.scores, self.linear_scores_, float(np.mean(shares))
            )
        if better:
            moments = moments_of(best.map, rows, signed)
            self.map_ = best.map
            self.learner_ = LeastSquaresAUC(best.l2).fit_moments(
                moments, classes=[False, True]
            )
            del self.learner_.state_  # d² numbers that nobody needs any more
        else:
            self.map_ = None
            self.learner_ = linear.set_params(cv=len(parts))  # folds are not to be kept
            if some is not rows:
                weight = np.abs(signed) if weighted else None
                self.learner_ = BAMCV().fit(rows, signed > 0.0, weight)
        return self

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        if self.map_ is None:
            return np.asarray(self.learner_.score_rows(X))
        scores = self.map_.scores(X, self.learner_.coef_[0])
        return scores + self.learner_.intercept_[0]

    def expression(self) -> ScoreExpression | None:
        """Return the score as one expression."""
        if self.map_ is None:
            return self.learner_.expression()
        coef, intercept = self.learner_.coef_[0], float(self.learner_.intercept_[0])
        return self.map_.expression(intercept, coef)

    @property
    def n_iter_(self) -> int:
        """Rounds of the solver, as the learner counts."""
        return int(self.learner_.n_iter_)

    def _folds(
        self, X: Any, signed: Float, rng: np.random.RandomState
    ) -> list[tuple[Index, Index]]:
        found = folds(self.cv, X, signed, "KernelBAM")
        if isinstance(self.cv, Integral) and len(signed) < _FEW and self.fallback:
            seed, positive = rng.randint(np.iinfo(np.int32).max), signed > 0.0
            equal = Repeats.among(X, positive)
            of = equal.of if equal.copies else np.arange(len(signed))
            found = dealt(len(found), positive, of, seed, _REPEATS) or found
        return found

    def _best_kernel(
        self,
        X: Any,
        signed: Float,
        parts: list[tuple[Index, Index]],
        weighted: bool,
        rng: np.random.RandomState,
    ) -> Judged:
        """Return the kernel of the highest mean AUC."""
        most = max(len(signed) // _ROWS_A_LANDMARK, 1)
        sizes = {min(int(size), most) for size in np.ravel(self.n_components)}
        seed = rng.randint(np.iinfo(np.int32).max)
        found = []
        for size in sorted(sizes):
            beside = X.shape[1] <= _WIDEST
            first = KMeansNystroem(size, linear=beside, random_state=seed).fit(X)
            for width in np.ravel(self.widths).tolist():
                mapper = first.with_width(width)
                found.append(judge(mapper, X, signed, parts, weighted))
        return max(found, key=lambda one: float(one.scores.mean()))

    def state(self) -> State:
        """Return the state of the fitted estimator; see :mod:`aucmax.storage`."""
        state = super().state()
        parts = {"map": self.map_, "learner": self.learner_}
        for name, part in parts.items():
            if part is not None:
                state.children[name] = part.state()
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        parts = {name: restore(child) for name, child in state.children.items()}
        estimator.map_, estimator.learner_ = parts.get("map"), parts["learner"]
        width = estimator.n_features_in_
        if estimator.map_ is not None:
            check_map(estimator.map_, width)
            width = estimator.map_.n_features_out
        check_learner(estimator.learner_, width)
        return estimator


def judge(
    mapper: KMeansNystroem,
    X: Any,
    signed: Float,
    parts: list[tuple[Index, Index]],
    weighted: bool,
) -> Judged:
    """Return how a kernel fares for the penalty that is best for it."""
    F = mapper.features(X, np.float32)
    d = F.shape[1]
    total = gather(F, signed, d)
    H, _, _ = total.quadratic()
    high = 2.0 * float(np.linalg.eigvalsh(H)[-1]) if len(H) else 1.0
    l2s = np.geomspace(high, 10.0**-_DECADES * high, _L2S)
    scores = []
    for _, test in parts:
        test = left_out(signed, test)
        W = _path(total - gather(F, signed, d, order=test), l2s)
        scores.append(areas(F[test], signed[test], W, weighted))
    table = np.column_stack(scores)
    best = int(np.argmax(table.mean(axis=1)))
    return Judged(mapper, float(l2s[best]), table[best])


def moments_of(mapper: FeatureMap, X: Any, signed: Float) -> Moments:
    """Return the class moments of the features of all rows, block by block."""
    total: Moments | None = None
    for start in range(0, len(signed), _PART):
        some = slice(start, start + _PART)
        F = mapper.features(X[some], np.float32)
        part = gather(F, signed[some], F.shape[1])
        total = part if total is None else total + part
    assert total is not None
    return total


def _path(moments: Moments, l2s: Float) -> Float:
    """Return the minimum for each penalty, as columns."""
    H, delta, varies = moments.quadratic()
    W = np.zeros((len(varies), len(l2s)))
    W[varies] = solve_path(H, delta, l2s)
    return W


def _clearly_above(kernel: Float, linear: Float, test_share: float) -> bool:
    """Return whether a kernel is worth it, by more than a standard error.

    Folds are not independent: their training rows overlap. Nadeau and Bengio's variance
    takes ``test_share``, the rows left out over those trained on, for the covariance.
    """
    ahead = kernel - linear
    spread = ahead.std(ddof=1) if len(ahead) > 1 else 0.0
    return bool(ahead.mean() > spread * np.sqrt(1.0 / len(ahead) + test_share))
