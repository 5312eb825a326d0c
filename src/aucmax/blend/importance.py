"""What a column is worth: by how much AUC falls when its values are shuffled.

Rows are those that the models had not seen. A column of a table may be several features
(a value of a category each, or a flag): they are shuffled together.
"""

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.base.folds import drawn
from aucmax.core.rows import Float, Index
from aucmax.metrics.delong import auc_test

_ROWS = 500  # of a fold, at most
_VALUES = 1 << 22  # of shuffled rows at a time
_Z = NormalDist().inv_cdf(0.975)


class Importance(NamedTuple):
    """What a column is worth."""

    column: str
    drop: float  # of AUC, when it is shuffled
    low: float  # of a confidence interval (95 %)
    high: float


def importances(
    folds: Sequence[tuple[Callable[[Any], Float], Index]],
    X: Any,
    positive: NDArray[np.bool_],
    columns: dict[str, Index],
    rng: np.random.RandomState,
) -> list[Importance]:
    """Return what columns are worth.

    ``folds`` are scores, and rows that nobody saw who gives them; ``columns`` say which
    features belong together.
    """
    drops, variances = np.zeros(len(columns)), np.zeros(len(columns))
    groups = list(columns.values())
    for score, test in folds:
        signs = np.where(positive[test], 1.0, -1.0)
        rows = test if len(test) <= _ROWS else test[drawn(signs, _ROWS, rng)]
        some, labels = X[rows], positive[rows]
        base = score(some)
        at_once = max(_VALUES // max(some.size, 1), 1)
        for start in range(0, len(groups), at_once):
            shuffled = [
                _shuffled(some, features, rng)
                for features in groups[start : start + at_once]
            ]
            stack = sparse.vstack if sparse.issparse(some) else np.concatenate
            scores = score(stack(shuffled)).reshape(len(shuffled), len(rows))
            for j, other in enumerate(scores, start):
                test_of = auc_test(labels, base, other)
                drops[j] += test_of.difference
                variances[j] += test_of.se**2
    return [
        Importance(name, float(drop), float(drop - half), float(drop + half))
        for name, drop, half in zip(
            columns,
            drops / len(folds),
            _Z * np.sqrt(variances) / len(folds),
            strict=True,
        )
    ]


def _shuffled(X: Any, features: Index, rng: np.random.RandomState) -> Any:
    """Return rows that have the ``features`` of other rows."""
    order = rng.permutation(X.shape[0])
    if sparse.issparse(X):
        chosen = np.zeros(X.shape[1], X.dtype)
        chosen[features] = 1.0
        theirs = sparse.diags_array(chosen)
        return sparse.csr_array(X - X @ theirs + X[order] @ theirs)
    other = X.copy()
    other[:, features] = X[order][:, features]
    return other
