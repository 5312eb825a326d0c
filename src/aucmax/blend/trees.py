"""Randomised trees: grown by scikit-learn, stored as plain arrays."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval

from aucmax.base.ranker import Ranker, generator
from aucmax.blend.forest import Forest
from aucmax.core.rows import Float
from aucmax.storage.state import Spec, State, below

_MIN_ROWS_FOR_THREADS = 10_000
_MAX_LEAVES = 5000  # per randomised tree, to keep model files small
_MAX_OFFSET = 1e3  # in ranges of the column; columns further from zero are centred
_MIN_RANGE = 1e-30  # columns with a range below it, or above its inverse, are scaled
NEAR = 1e-3  # probabilities of trees are clipped to [NEAR, 1 - NEAR]


class RandomizedTrees(Ranker):
    """Extremely randomised trees; scores are log-odds of the mean probability.

    Parameters
    ----------
    n_trees : int, default=60
        Number of trees.
    min_leaf : int, default=2
        Minimum number of rows per leaf. It is raised for large data, so that a tree has
        about 5000 leaves at most.
    random_state : int, RandomState instance or None, default=None
        Random seed of features and thresholds.

    Attributes
    ----------
    forest_ : Forest
        The trees; the value of a leaf is its share of positives.
    offset_ : float
        Always zero.
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

    forest_: Forest
    offset_: float
    stored: ClassVar[dict[str, Spec]] = {"offset_": Spec("")}

    def __init__(
        self, n_trees: int = 60, *, min_leaf: int = 2, random_state: Any = None
    ) -> None:
        self.n_trees = n_trees
        self.min_leaf = min_leaf
        self.random_state = random_state

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._require_both(signed)
        weight = None
        if sample_weight is not None:
            # The minimum weight of a leaf is absolute, so the mean weight is set to 1;
            # float32 hides the rounding error of a common factor of all weights.
            weight = np.abs(signed / np.mean(np.abs(signed))).astype(np.float32)
        seed = generator(self.random_state).randint(np.iinfo(np.int32).max)
        dense = rows.toarray() if sparse.issparse(rows) else rows
        self._grow(dense, signed > 0.0, weight, seed)

    def _grow(self, X: Any, y: Any, weight: Any, seed: int) -> None:
        from sklearn.ensemble import ExtraTreesClassifier

        centre, scale = _float32_scaling(X)
        model = ExtraTreesClassifier(
            self.n_trees,
            min_samples_leaf=max(self.min_leaf, len(X) // _MAX_LEAVES),
            random_state=seed,
            n_jobs=-1 if len(X) > _MIN_ROWS_FOR_THREADS else None,
        ).fit((X - centre) / scale, y, weight)
        self.forest_ = Forest.of_ensemble(model, centre, scale)
        self.offset_ = 0.0

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        p = self.forest_.scores(X) / len(self.forest_.roots)
        return clipped_log_odds(p) + self.offset_

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


def clipped_log_odds(p: Any) -> Float:
    """Return log-odds of probabilities, clipped away from zero and one."""
    p = np.clip(np.asarray(p, np.float64), NEAR, 1.0 - NEAR)
    return np.asarray(np.log(p / (1.0 - p)))


def _float32_scaling(X: Any) -> tuple[Float, Float]:
    """Return centre and scale of each column, so that float32 can represent it.

    Trees are grown from float32, in which timestamps, for instance, are all equal. Most
    columns have centre 0 and scale 1.
    """
    low, high = (bound(axis=0).astype(np.float64) for bound in (X.min, X.max))
    width = high - low
    far = np.maximum(np.abs(low), np.abs(high)) > _MAX_OFFSET * width
    extreme = (width > 1.0 / _MIN_RANGE) | ((width < _MIN_RANGE) & (width > 0.0))
    return np.where(far, low, 0.0), np.where(extreme, width, 1.0)
