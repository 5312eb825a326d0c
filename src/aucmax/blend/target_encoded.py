"""Wrapper that gives an estimator the log-odds of categories beside the features."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, Interval

from aucmax.blend.layout import TableModel, TableRows, category_codes, category_sizes
from aucmax.blend.target_encoding import TargetEncoding, fit_with_pairs
from aucmax.core.rows import Float
from aucmax.storage.state import State, below, restore, whole_numbers


class TargetEncoded(TableModel):
    """Estimator fitted to features and to target-encoded categories and pairs of them.

    Parameters
    ----------
    estimator : estimator
        A ranker of aucmax.
    pairs : int, default=36
        Largest number of pairs of categories that are encoded.
    random_state : int, RandomState instance or None, default=None
        Random seed of the inner folds.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    encoding_ : TargetEncoding
        Log-odds of categories.
    levels_ : ndarray of shape (n_features_in_,)
        Codes of each column, 0 for numbers.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Number of columns.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods("fit")],
        "pairs": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    estimator_: Any
    encoding_: TargetEncoding
    levels_: NDArray[np.int64]

    def __init__(
        self, estimator: Any = None, *, pairs: int = 36, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.pairs = pairs
        self.random_state = random_state

    def fit_table(
        self, rows: TableRows, positive: NDArray[np.bool_], weight: Float | None
    ) -> Self:
        """Fit the estimator to some rows of a table that has categories."""
        assert rows.view is not None
        self.levels_ = rows.view.levels
        self.classes_ = np.array([False, True])
        self.n_features_in_ = len(self.levels_)
        terms = [[k] for k in range(len(category_sizes(self.levels_)))]
        self.encoding_, own = fit_with_pairs(
            category_codes(rows.columns, self.levels_),
            category_sizes(self.levels_),
            positive,
            np.ones(len(positive)) if weight is None else weight,
            terms,
            self.pairs,
            int(self.random_state or 0),
        )
        weights = {} if weight is None else {"sample_weight": weight}
        self.estimator_ = clone(self.estimator)
        self.estimator_.fit(_beside(rows.features, own), positive, **weights)
        return self

    def score_table(self, rows: TableRows) -> Float:
        """Return the scores of rows of a table."""
        coded = category_codes(rows.columns, self.levels_)
        own = self.encoding_.transform(coded, category_sizes(self.levels_))
        scores: Float = self.estimator_.score_rows(_beside(rows.features, own))
        return scores

    def state(self) -> State:
        """Return the state of the fitted estimator; see :mod:`aucmax.storage`."""
        state = super().state()
        own = {"levels": self.levels_, **self.encoding_.arrays()}
        state.arrays.update({f"own.{name}": array for name, array in own.items()})
        state.children["estimator"] = self.estimator_.state()
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        own, width = below("own", state.arrays), estimator.n_features_in_
        estimator.levels_ = whole_numbers("levels", own["levels"], 0, 1 << 31)
        if estimator.levels_.shape != (width,):
            raise ValueError(f"'levels' has not the shape ({width},).")
        sizes = category_sizes(estimator.levels_)
        estimator.encoding_ = TargetEncoding.restored(own, sizes)
        estimator.estimator_ = restore(state.children["estimator"])
        return estimator


def _beside(features: Any, encoded: Float) -> Any:
    if sparse.issparse(features):
        return sparse.csr_array(sparse.hstack([features, sparse.csr_array(encoded)]))
    return np.hstack([features, encoded.astype(features.dtype, copy=False)])
