"""Distinct scores and what is there: what a ranking is, rows being elsewhere."""

from typing import Any, NamedTuple

import numpy as np

from aucmax.core.rows import Float


class Ladder(NamedTuple):
    """Distinct scores, rising, and sums over the rows that have them."""

    value: Float  # (k,)
    at: Float  # (k, c)

    def __add__(self, other: Any) -> "Ladder":
        return Ladder.joined([self, other])

    @classmethod
    def of(cls, value: Float, at: Float) -> "Ladder":
        """Return the ladder of scores in any order."""
        found, place = np.unique(value, return_inverse=True)
        sums = [np.bincount(place, column, len(found)) for column in at.T]
        return cls(found, np.column_stack(sums))

    @classmethod
    def joined(cls, parts: "list[Ladder]") -> "Ladder":
        """Return the ladder of all rows."""
        return cls.of(
            np.concatenate([part.value for part in parts]),
            np.concatenate([part.at for part in parts]),
        )
