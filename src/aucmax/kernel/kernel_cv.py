r"""Kernel ranker with width, landmarks and penalty by cross-validation.

Features are those of landmarks (:mod:`aucmax.kernel.nystroem`) and the linear ones, if
there are at most 2000. Kernels are compared by the exact path of the pairwise square
loss: class moments of the mapped rows, minus those of a fold, give all penalties by one
eigendecomposition. The best point of the path is also the model.

A kernel overfits more easily than a linear model, and with few rows cross-validation is
too noisy to notice. So the linear model, :class:`BAMCV` on the same folds, is kept
unless a kernel is better by more than a standard error over the folds.
"""

from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from aucmax.base.constraints import COUNT
from aucmax.base.folds import Repeats, areas, dealt, drawn, folds, left_out
from aucmax.base.interfaces import ScoreExpression
from aucmax.base.ranker import Ranker, generator
from aucmax.core.rows import Float, Index, as_rows
from aucmax.core.threads import one_blas_thread
from aucmax.kernel.chain import restored_parts
from aucmax.kernel.maps import FeatureMap
from aucmax.kernel.nystroem import KMeansNystroem
from aucmax.linear.bam_cv import BAMCV
from aucmax.linear.least_squares import LeastSquaresAUC, path
from aucmax.linear.solvers.covariances import Moments, gather
from aucmax.storage.state import Spec, State

_L2S = 25  # number of penalties
_DECADES = 7.0  # range of the penalties
_CHOOSING = 20_000  # most rows that kernels are compared on
_FEW = 5000  # with fewer rows, folds are repeated …
_REPEATS = 3  # … this many times
_PART = 1 << 14  # rows mapped at a time
_ROWS_A_LANDMARK = 4
_WIDEST = 2000  # most linear features that are added to those of the kernel


class Evaluated(NamedTuple):
    """A kernel, its best penalty, and the AUC on each fold."""

    map: KMeansNystroem
    l2: float
    scores: Float


class KernelAUCCV(Ranker):
    r"""Gaussian kernel on landmarks, chosen by cross-validation; or a linear ranker.

    Minimises the pairwise square loss of linear features and those of
    :class:`KMeansNystroem`, with an l2 penalty. Kernel width, number of landmarks and
    penalty have the highest mean AUC in cross-validation. If this AUC does not exceed
    that of a linear :class:`BAMCV` by more than a standard error over the folds, the
    linear ranker is used.

    Parameters
    ----------
    n_components : int or list of int, default=400
        Numbers of landmarks to choose from; at most a quarter of the rows.
    widths : list of float, default=(0.25, 0.5, 1.0, 2.0)
        Kernel widths to choose from, relative to the root mean square distance of the
        scaled rows to their mean.
    cv : int, cross-validation generator or iterable, default=5
        Number of stratified folds (at most the rows of the smaller class), repeated
        three times with fewer than 5000 rows; or anything that scikit-learn accepts as
        ``cv``.
    fallback : bool, default=True
        Whether to use the linear ranker if no kernel is clearly better. If False, folds
        are not repeated, and no linear ranker is fitted.
    random_state : int, RandomState instance or None, default=None
        Random seed of landmarks and of repeated folds.

    Attributes
    ----------
    map_ : KMeansNystroem or None
        The chosen map; None for the linear ranker.
    learner_ : LeastSquaresAUC or BAMCV
        The ranker of the map's features, or the linear one.
    kernel_scores_ : ndarray of shape (n_folds,)
        AUC of the best kernel on each fold.
    linear_scores_ : ndarray of shape (n_folds,)
        AUC of the linear ranker on each fold; empty without ``fallback``.
    .. shared: classes, features

    See Also
    --------
    Chain : A map and a learner of your choice.
    BAMCV : The linear ranker.

    Notes
    -----
    With more than 20 000 rows, a random sample of that size chooses the parameters. The
    model is fitted to the moments of all rows, computed block by block.

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
        **Ranker._parameter_constraints,
        "n_components": [COUNT, "array-like"],
        "widths": ["array-like"],
        "fallback": ["boolean"],
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

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._require_both(signed)
        rng = generator(self.random_state)
        weighted = sample_weight is not None
        sample, signs = rows, signed
        if len(signed) > _CHOOSING:
            chosen = drawn(signed, _CHOOSING, rng)
            sample, signs = rows[chosen], signed[chosen]
        parts = self._folds(sample, signs, rng)
        with one_blas_thread():
            best = self._best_kernel(sample, signs, parts, weighted, rng)
        self.kernel_scores_, self.linear_scores_ = best.scores, np.zeros(0)
        better = True
        if self.fallback:
            weight = np.abs(signs) if weighted else None
            linear = BAMCV(cv=parts).fit(sample, signs > 0.0, weight)
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
            del self.learner_.state_  # d² numbers that are no longer needed
        else:
            self.map_ = None
            self.learner_ = linear.set_params(cv=len(parts))  # does not keep the folds
            if sample is not rows:
                weight = np.abs(signed) if weighted else None
                self.learner_ = BAMCV().fit(rows, signed > 0.0, weight)

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
        """Number of rounds of the learner's solver."""
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
    ) -> Evaluated:
        """Return the kernel with the highest mean AUC."""
        most = max(len(signed) // _ROWS_A_LANDMARK, 1)
        sizes = {min(int(size), most) for size in np.ravel(self.n_components)}
        seed = rng.randint(np.iinfo(np.int32).max)
        found = []
        for size in sorted(sizes):
            linear = X.shape[1] <= _WIDEST
            first = KMeansNystroem(size, linear=linear, random_state=seed).fit(X)
            for width in np.ravel(self.widths).tolist():
                mapper = first.with_width(width)
                found.append(evaluate(mapper, X, signed, parts, weighted))
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
        parts = restored_parts(state, estimator.n_features_in_)
        estimator.map_, estimator.learner_ = parts
        return estimator


def evaluate(
    mapper: KMeansNystroem,
    X: Any,
    signed: Float,
    parts: list[tuple[Index, Index]],
    weighted: bool,
) -> Evaluated:
    """Return the AUC of a kernel on each fold, for its best penalty."""
    F = mapper.features(X, np.float32)
    rows, d = as_rows(F), F.shape[1]
    total = gather(rows, signed, d)
    H, _, _ = total.quadratic()
    high = 2.0 * float(np.linalg.eigvalsh(H)[-1]) if len(H) else 1.0
    l2s = np.geomspace(high, 10.0**-_DECADES * high, _L2S)
    scores = []
    for _, test in parts:
        test = left_out(signed, test)
        W = path(total - gather(rows, signed, d, order=test), l2s, np.ones(d))
        scores.append(areas(F[test], signed[test], W, weighted))
    table = np.column_stack(scores)
    best = int(np.argmax(table.mean(axis=1)))
    return Evaluated(mapper, float(l2s[best]), table[best])


def moments_of(mapper: FeatureMap, X: Any, signed: Float) -> Moments:
    """Return the class moments of the features of all rows, block by block."""
    total: Moments | None = None
    for start in range(0, len(signed), _PART):
        block = slice(start, start + _PART)
        F = mapper.features(X[block], np.float32)
        part = gather(as_rows(F), signed[block], F.shape[1])
        total = part if total is None else total + part
    assert total is not None
    return total


def _clearly_above(kernel: Float, linear: Float, test_share: float) -> bool:
    """Return whether a kernel is better by more than a standard error.

    Folds are not independent, as their training rows overlap: Nadeau and Bengio's
    variance adds ``test_share``, the ratio of held-out to training rows.
    """
    gain = kernel - linear
    deviation = gain.std(ddof=1) if len(gain) > 1 else 0.0
    return bool(gain.mean() > deviation * np.sqrt(1.0 / len(gain) + test_share))
