"""Identifiers of rows, such as the number of a policy, as features of trees.

Most say nothing, and cost accuracy in small tables. Some tell when a row was made, or
more than that, since files are put together from several sources. They are features if
boosted trees rank held-out rows better with them, by DeLong's test.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from aucmax.blend.boosting import Boosting
from aucmax.core.rows import Float
from aucmax.metrics import auc_test

_TREES = Boosting(learning_rate=0.1, most_rounds=200, patience=30)
_FOLDS, _FEWEST = 3, 50  # folds, and rows of the smaller class
_MOST_ROWS = 20_000
_LEVEL = 0.001  # of the test: strict, as a gain may be an artefact of the file


def identifiers_help(
    X: Any,
    levels: NDArray[np.int64],
    identifiers: NDArray[np.int64],
    positive: NDArray[np.bool_],
    seed: int,
) -> bool:
    """Return whether trees rank held-out rows better with these columns of ``X``."""
    if len(X) > _MOST_ROWS:
        chosen = np.random.RandomState(seed).choice(len(X), _MOST_ROWS, replace=False)
        X, positive = X[chosen], positive[chosen]
    if min(np.count_nonzero(positive), np.count_nonzero(~positive)) < _FEWEST:
        return False
    splitter = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    folds = list(splitter.split(X, positive))

    def held_out(columns: Any) -> Float:
        _, parts = _TREES.fit_folds(columns, levels, positive, None, folds, seed)
        scores = np.empty(len(positive))
        for (_, test), part in zip(folds, parts, strict=True):
            scores[test] = part
        return scores

    without = X.copy()
    without[:, identifiers] = 0.0
    found = auc_test(positive, held_out(X), held_out(without))
    return bool(found.difference > 0.0 and found.pvalue < _LEVEL)
