"""Estimator on some features of wide sparse rows, in model files of version 0.1.0."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils._param_validation import HasMethods, Interval

from aucmax.base.ranker import Ranker
from aucmax.core.rows import Float
from aucmax.storage.state import Spec, State, restore

_BLOCK = 1 << 22  # values that are dense at a time


class Frequent(Ranker):
    """Estimator fitted to the features that are non-zero in the most rows.

    Parameters
    ----------
    estimator : estimator
        A ranker of aucmax, fitted to dense rows.
    n_features : int, default=300
        Largest number of features that are used.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    chosen_ : ndarray
        Indices of the features that are used, in increasing order.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods("fit")],
        "n_features": [Interval(Integral, 1, None, closed="left")],
    }
    stored: ClassVar[dict[str, Spec]] = {"chosen_": Spec("k", is_index=True)}

    estimator_: Any
    chosen_: NDArray[Any]

    def __init__(self, estimator: Any = None, n_features: int = 300) -> None:
        self.estimator = estimator
        self.n_features = n_features

    def _dense(self, X: Any) -> Float:
        return sparse.csr_array(X)[:, self.chosen_.astype(np.int64)].toarray()

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        size = max(_BLOCK // len(self.chosen_), 1)
        blocks = [self._dense(X[i : i + size]) for i in range(0, X.shape[0], size)]
        scores = [self.estimator_.score_rows(block) for block in blocks]
        return np.concatenate([np.zeros(0), *scores])

    def state(self) -> State:
        """Return the state of the fitted estimator; see :mod:`aucmax.storage`."""
        state = super().state()
        state.children["estimator"] = self.estimator_.state()
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        estimator.estimator_ = restore(state.children["estimator"])
        if estimator.estimator_.n_features_in_ != len(estimator.chosen_):
            raise ValueError(
                f"the wrapped estimator has {estimator.estimator_.n_features_in_} "
                f"features, expected {len(estimator.chosen_)}."
            )
        return estimator
