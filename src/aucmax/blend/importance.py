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
from aucmax.blend.crossfit import Fold
from aucmax.core.rows import Float, Index
from aucmax.metrics.comparison import auc_test

_MAX_ROWS = 500  # per fold
_BLOCK = 1 << 22  # values of shuffled rows that are scored at a time
_Z = NormalDist().inv_cdf(0.975)


class Importance(NamedTuple):
    """Permutation importance of a column."""

    column: str
    drop: float  # decrease of AUC when the column is shuffled
    low: float  # confidence interval (95 %)
    high: float


class HeldOutSample(NamedTuple):
    """Rows that the models of a fold were not trained on."""

    fold: int
    X: Any
    positive: NDArray[np.bool_]
    seed: int


def held_out_samples(
    folds: Sequence[Fold], X: Any, positive: NDArray[np.bool_], seed: int
) -> list[HeldOutSample]:
    """Return some test rows of each fold that has any."""
    samples = []
    for k, fold in enumerate(folds):
        test = fold.test
        if not len(test):
            continue
        if len(test) > _MAX_ROWS:
            signs = np.where(positive[test], 1.0, -1.0)
            test = test[drawn(signs, _MAX_ROWS, np.random.RandomState(seed + k))]
        samples.append(HeldOutSample(k, X[test], positive[test], seed + k))
    return samples


def importances(
    samples: Sequence[HeldOutSample],
    score: Callable[[Any, int], Float],
    columns: dict[str, Index],
) -> list[Importance]:
    """Return the permutation importance of each column.

    ``score`` returns the scores of rows by the models of a fold; ``columns`` maps the
    name of a column to its features.
    """
    drops, variances = np.zeros(len(columns)), np.zeros(len(columns))
    groups = list(columns.values())
    for fold, sample, labels, seed in samples:
        rng = np.random.RandomState(seed)
        stack = sparse.vstack if sparse.issparse(sample) else np.concatenate
        base = score(sample, fold)
        at_once = max(_BLOCK // max(sample.size, 1), 1)
        for start in range(0, len(groups), at_once):
            shuffled = [
                _shuffle(sample, features, rng)
                for features in groups[start : start + at_once]
            ]
            scores = score(stack(shuffled), fold).reshape(len(shuffled), len(labels))
            for j, changed in enumerate(scores, start):
                comparison = auc_test(labels, base, changed)
                drops[j] += comparison.difference
                variances[j] += comparison.se**2
    return [
        Importance(name, float(drop), float(drop - half), float(drop + half))
        for name, drop, half in zip(
            columns,
            drops / len(samples),
            _Z * np.sqrt(variances) / len(samples),
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
