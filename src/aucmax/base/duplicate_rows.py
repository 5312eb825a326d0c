"""Duplicate rows: detection, and folds that keep them together.

A copy of a test row among the training rows favours models that memorise rows, so
copies belong in one fold. But equal rows need not be copies. Where columns have few
values, equal rows are separate observations, and ordinary folds are right. The labels
distinguish the two: copies share a label, separate observations need not.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from aucmax.core.row_hashes import row_hashes
from aucmax.core.rows import Index

# Labels of copies differ less often than this, relative to chance.
_MOST_DIFFERENT = 0.1


class Repeats(NamedTuple):
    """Groups of equal rows."""

    of: Index  # (n,) group of each row, numbered by first occurrence
    repeated: int  # rows that equal an earlier one
    copies: bool  # whether equal rows look like copies, not separate observations

    @classmethod
    def among(cls, X: Any, positive: NDArray[np.bool_]) -> "Repeats":
        """Find equal rows, dense or CSR."""
        _, first, of = np.unique(row_hashes(X), return_index=True, return_inverse=True)
        number = np.empty(len(first), np.int64)
        number[np.argsort(first)] = np.arange(len(first))
        of, repeated = number[of], len(positive) - len(first)
        copies = repeated > 0 and _label_difference(of, positive) < _MOST_DIFFERENT
        return cls(of, repeated, copies)


def _label_difference(of: Index, positive: NDArray[np.bool_]) -> float:
    """Return how often labels of equal rows differ, relative to chance."""
    sizes, n_pos = np.bincount(of), np.bincount(of, positive)
    several = sizes > 1
    sizes, n_pos = sizes[several], n_pos[several]
    # The share of equal rows that have the other label; mean over rows.
    differ = float(np.sum(2.0 * n_pos * (sizes - n_pos) / (sizes - 1))) / sizes.sum()
    rate = n_pos.sum() / sizes.sum()
    by_chance = 2.0 * rate * (1.0 - rate)
    return differ / by_chance if by_chance else 0.0


def dealt(
    count: int,
    positive: NDArray[np.bool_],
    of: Index,
    seed: int | None = None,
    times: int = 1,
) -> list[tuple[Index, Index]] | None:
    """Return (train, test) of at most ``count`` folds that keep equal rows together.

    Folds are drawn from the distinct rows, shuffled if there is a seed, and repeated
    ``times`` times. None if a class has a single distinct row.
    """
    label = np.bincount(of, positive) > 0.0
    count = min(count, int(label.sum()), int((~label).sum()))
    if count < 2:
        return None
    splitter = StratifiedKFold(count, shuffle=seed is not None, random_state=seed)
    if times > 1:
        splitter = RepeatedStratifiedKFold(
            n_splits=count, n_repeats=times, random_state=seed
        )
    folds = []
    for _, test in splitter.split(np.zeros(len(label)), label):
        in_test = np.isin(np.arange(len(label)), test)[of]
        folds.append((np.flatnonzero(~in_test), np.flatnonzero(in_test)))
    return folds
