"""Random pair order: which positive and which negative row form the next pairs.

Each class is visited in random order and shuffled again when it is exhausted. Both rows
of a pair are uniform and independent, as in the papers, but no row is repeated before
all others of its class have been used.
"""

import numpy as np
from numpy.typing import NDArray

from aucmax.core.rows import Float

Index = NDArray[np.int64]

_SMALL = 4096  # rows drawn at a time at least; small classes are repeated


class RowOrder:
    """Rows of one class in random order, in proportion to their weights."""

    def __init__(self, rows: Index, weight: Float, rng: np.random.RandomState) -> None:
        self.rows, self.rng = rows, rng
        self._until = None if (weight == weight[0]).all() else np.cumsum(weight)
        self._next: Index = np.zeros(0, np.int64)

    def sample(self, size: int) -> Index:
        """Return ``size`` rows in proportion to their weights, sorted.

        Systematic sampling: a row with k / size of the weight occurs k times, rounded
        at random without bias.
        """
        if self._until is None and size == len(self.rows):
            return self.rows
        at = (np.arange(size) + self.rng.random_sample()) / size
        if self._until is None:
            place = (at * len(self.rows)).astype(np.int64)
        else:
            place = np.searchsorted(self._until, at * self._until[-1], side="right")
        return self.rows[np.minimum(place, len(self.rows) - 1)]

    def take(self, k: int) -> Index:
        """Return the next ``k`` rows."""
        parts, left = [self._next[:k]], k - len(self._next)
        self._next = self._next[k:]
        while left > 0:
            rows = self._shuffled()
            parts.append(rows[:left])
            self._next = rows[left:]
            left -= len(rows)
        return np.concatenate(parts)

    def _shuffled(self) -> Index:
        size = len(self.rows)
        times = max(_SMALL // size, 1)
        return np.concatenate(
            [self.rng.permutation(self.sample(size)) for _ in range(times)]
        )


def pair_order(y: Float, rng: np.random.RandomState) -> tuple[RowOrder, RowOrder]:
    """Return the orders of the positives and of the negatives of signed ``y``."""
    sides = (np.flatnonzero(y > 0.0), np.flatnonzero(y < 0.0))
    positives, negatives = (RowOrder(rows, np.abs(y[rows]), rng) for rows in sides)
    return positives, negatives
