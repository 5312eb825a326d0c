"""Trees as members of a blend: scikit-learn grows them, plain arrays remain."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from threadpoolctl import threadpool_limits

from aucmax.base.ranker import Ranker, generator
from aucmax.blend.forest import Forest
from aucmax.core.rows import Float
from aucmax.storage.estimator import below
from aucmax.storage.storable import Spec, State

_WORTH_THREADS = 10_000  # rows
_MOST_LEAVES = 5000  # of a tree: files are to be small
_FAR = 1e3  # times its spread: a column is centred
_TINY = 1e-30  # a spread that float32 is too short for
NEAR = 1e-3  # of zero and one: so sure are no trees


class _Trees(Ranker):
    """Base of both: a forest, and what is to be done with the sum of its values."""

    forest_: Forest
    offset_: float
    stored: ClassVar[dict[str, Spec]] = {"offset_": Spec("")}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to ``X`` and binary ``y``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Two classes; the larger label, ``classes_[1]``, is to come out on top.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A row of weight zero is not there at all.

        Returns
        -------
        self
            The fitted estimator.
        """
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._require_both(signed)
        weight = None
        if sample_weight is not None:
            # Trees have limits to the weight of a leaf. In float32, so that a factor
            # of all weights leaves no trace.
            weight = np.abs(signed / np.mean(np.abs(signed))).astype(np.float32)
        seed = generator(self.random_state).randint(np.iinfo(np.int32).max)
        dense = rows.toarray() if sparse.issparse(rows) else rows
        self._grow(dense, signed > 0.0, weight, seed)
        return self

    def _grow(self, X: Any, y: Any, weight: Any, seed: int) -> None:
        raise NotImplementedError

    def state(self) -> State:
        """Return the state of the fitted estimator; see :mod:`aucmax.storage`."""
        state = super().state()
        own = {f"own.{name}": array for name, array in self.forest_.arrays().items()}
        state.arrays.update(own)
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        own = below("own", state.arrays)
        estimator.forest_ = Forest.restored(own, estimator.n_features_in_)
        return estimator


class BoostedTrees(_Trees):
    """Gradient boosting of the cross-entropy; scores are log-odds.

    Parameters
    ----------
    n_trees : int, default=200
        Rounds of boosting.
    learning_rate : float, default=0.05
        What a tree counts.
    max_leaves : int, default=31
        Leaves of a tree.
    min_leaf : int, default=20
        Rows of a leaf, at least.
    max_features : float, default=1.0
        Share of the features that each split is chosen from.
    random_state : int, RandomState instance or None, default=None
        Draws these, and rows to find quantiles of features by, if they are many.

    Attributes
    ----------
    forest_ : Forest
        The trees.
    offset_ : float
        Log-odds before the first tree.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_leaves": [Interval(Integral, 2, None, closed="left")],
        "min_leaf": [Interval(Integral, 1, None, closed="left")],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_trees: int = 200,
        *,
        learning_rate: float = 0.05,
        max_leaves: int = 31,
        min_leaf: int = 20,
        max_features: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.min_leaf = min_leaf
        self.max_features = max_features
        self.random_state = random_state

    def _grow(self, X: Any, y: Any, weight: Any, seed: int) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.n_trees,
            max_leaf_nodes=self.max_leaves,
            min_samples_leaf=self.min_leaf,
            max_features=self.max_features,
            early_stopping=False,
            random_state=seed,
        )
        # Threads wait for each other at every node: on a busy machine, for seconds.
        few = len(X) < _WORTH_THREADS
        with threadpool_limits(1 if few else None, user_api="openmp"):
            model.fit(X, y, weight)
        self.forest_ = Forest.of_boosting(model)
        self.offset_ = float(model._baseline_prediction.item())

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        return self.forest_.scores(X) + self.offset_


class RandomizedTrees(_Trees):
    """Extremely randomised trees; scores are log-odds of their mean probability.

    Parameters
    ----------
    n_trees : int, default=60
        How many.
    min_leaf : int, default=2
        Rows of a leaf, at least; more if a tree would have more than 5000 leaves.
    random_state : int, RandomState instance or None, default=None
        Draws features and thresholds.

    Attributes
    ----------
    forest_ : Forest
        The trees; a value is a share of positives.
    offset_ : float
        Zero.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "min_leaf": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self, n_trees: int = 60, *, min_leaf: int = 2, random_state: Any = None
    ) -> None:
        self.n_trees = n_trees
        self.min_leaf = min_leaf
        self.random_state = random_state

    def _grow(self, X: Any, y: Any, weight: Any, seed: int) -> None:
        from sklearn.ensemble import ExtraTreesClassifier

        centre, unit = _within_float32(X)
        model = ExtraTreesClassifier(
            self.n_trees,
            min_samples_leaf=max(self.min_leaf, len(X) // _MOST_LEAVES),
            random_state=seed,
            n_jobs=-1 if len(X) > _WORTH_THREADS else None,
        ).fit((X - centre) / unit, y, weight)
        self.forest_ = Forest.of_ensemble(model, centre, unit)
        self.offset_ = 0.0

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        p = self.forest_.scores(X) / len(self.forest_.roots)
        return log_odds_of(p) + self.offset_


def log_odds_of(p: Any) -> Float:
    """Return log-odds of shares that trees give: none is as sure as zero or one."""
    p = np.clip(np.asarray(p, np.float64), NEAR, 1.0 - NEAR)
    return np.asarray(np.log(p / (1.0 - p)))


def _within_float32(X: Any) -> tuple[Float, Float]:
    """Return what to subtract from columns and divide them by; mostly nothing.

    Trees are grown from float32, to which timestamps are all the same.
    """
    low, high = (side(axis=0).astype(np.float64) for side in (X.min, X.max))
    spread = high - low
    far = np.maximum(np.abs(low), np.abs(high)) > _FAR * spread
    odd = (spread > 1.0 / _TINY) | ((spread < _TINY) & (spread > 0.0))
    return np.where(far, low, 0.0), np.where(odd, spread, 1.0)
