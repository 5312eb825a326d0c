"""Permutation importance: the decrease of AUC when a column's values are shuffled.

It is measured on held-out rows. A column of a table can have several features (one for
each category, or an indicator of missing values); they are shuffled together.
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

_MAX_ROWS = 500  # per fold
_BLOCK = 1 << 22  # values of shuffled rows that are scored at a time
_Z = NormalDist().inv_cdf(0.975)


class Importance(NamedTuple):
    """Permutation importance of a column."""

    column: str
    drop: float  # decrease of AUC when the column is shuffled
    low: float  # confidence interval (95 %)
    high: float


def importances(
    folds: Sequence[tuple[Callable[[Any], Float], Index]],
    X: Any,
    positive: NDArray[np.bool_],
    columns: dict[str, Index],
    rng: np.random.RandomState,
) -> list[Importance]:
    """Return the permutation importance of each column.

    ``folds`` are pairs of a scoring function and its held-out rows; ``columns`` maps
    the name of a column to its features.
    """
    drops, variances = np.zeros(len(columns)), np.zeros(len(columns))
    groups = list(columns.values())
    for score, test in folds:
        signs = np.where(positive[test], 1.0, -1.0)
        rows = test if len(test) <= _MAX_ROWS else test[drawn(signs, _MAX_ROWS, rng)]
        sample, labels = X[rows], positive[rows]
        stack = sparse.vstack if sparse.issparse(sample) else np.concatenate
        base = score(sample)
        at_once = max(_BLOCK // max(sample.size, 1), 1)
        for start in range(0, len(groups), at_once):
            shuffled = [
                _shuffle(sample, features, rng)
                for features in groups[start : start + at_once]
            ]
            scores = score(stack(shuffled)).reshape(len(shuffled), len(rows))
            for j, changed in enumerate(scores, start):
                comparison = auc_test(labels, base, changed)
                drops[j] += comparison.difference
                variances[j] += comparison.se**2
    return [
        Importance(name, float(drop), float(drop - half), float(drop + half))
        for name, drop, half in zip(
            columns,
            drops / len(folds),
            _Z * np.sqrt(variances) / len(folds),
            strict=True,
        )
    ]


def features_by_name(names: Sequence[str]) -> dict[str, Index]:
    """Return the features of each column; ``names`` has the column of each feature."""
    found: dict[str, list[int]] = {}
    for feature, name in enumerate(names):
        found.setdefault(name, []).append(feature)
    return {name: np.array(features) for name, features in found.items()}


def _shuffle(X: Any, features: Index, rng: np.random.RandomState) -> Any:
    """Return a copy of the rows with the values of ``features`` permuted."""
    order = rng.permutation(X.shape[0])
    if sparse.issparse(X):
        chosen = np.zeros(X.shape[1], X.dtype)
        chosen[features] = 1.0
        mask = sparse.diags_array(chosen)
        return sparse.csr_array(X - X @ mask + X[order] @ mask)
    shuffled = X.copy()
    shuffled[:, features] = X[order][:, features]
    return shuffled
