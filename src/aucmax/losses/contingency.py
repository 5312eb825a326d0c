r"""Hinge of a loss of contingency tables: F1, precision at k, break-even point.

Joachims (2005) bounds a loss Δ of a whole labelling, with a true positives, b false
positives, c false negatives and d true negatives, from above by

.. math:: L(s) = \max_{y'} \Delta(y', y) + \tfrac{1}{2 n_+} \sum_i (y'_i - y_i)\, s_i

over all labellings y' (of k positives, for precision at k). For a given table, the best
y' makes the lowest c positives negative and the highest b negatives positive. So the
maximum is over tables (the thesis' Algorithm 14): O(n₊ n₋) for F1 and O(n) for given k,
after two sorts. The slopes are those of the best y'. L is at least zero.
"""

import numpy as np

from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Index
from aucmax.losses.pairwise import Point


class ContingencyHinge(Point):
    """The loss at given scores, from the best table; rows must have equal weights."""

    def __init__(self, score: Float, share: Float) -> None:
        pos, neg = np.flatnonzero(share > 0.0), np.flatnonzero(share < 0.0)
        pos, neg = pos[np.argsort(score[pos])], neg[np.argsort(-score[neg])]
        low = np.append(0.0, np.cumsum(score[pos])) / len(pos)  # of the lowest c
        high = np.append(0.0, np.cumsum(score[neg])) / len(pos)  # of the highest b
        self.value, b, c = self._best(high, low)
        self.slope = np.zeros(len(score))
        if self.value > 0.0:
            self.slope[pos[:c]] = -1.0 / len(pos)
            self.slope[neg[:b]] = 1.0 / len(pos)
        self.value = max(self.value, 0.0)

    def _best(self, high: Float, low: Float) -> tuple[float, int, int]:
        """Return the largest Δ + high[b] - low[c], and its b and c."""
        raise NotImplementedError


@kernel
def _best_of_f1(high: Float, low: Float, found: Float) -> None:
    """Write the largest 1 - F1 + high[b] - low[c], and its b and c."""
    best, at_b, at_c = -np.inf, 0, 0
    for c in range(low.shape[0]):
        true = 2.0 * (low.shape[0] - 1 - c)
        for b in range(high.shape[0]):
            value = 1.0 - true / max(true + b + c, 1.0) + high[b] - low[c]
            if value > best:
                best, at_b, at_c = value, b, c
    found[0], found[1], found[2] = best, at_b, at_c


class F1Hinge(ContingencyHinge):
    """Hinge of 1 - F1 over all tables."""

    def _best(self, high: Float, low: Float) -> tuple[float, int, int]:
        found = np.zeros(3)
        _best_of_f1(high, low, found)
        return float(found[0]), int(found[1]), int(found[2])


class PrecisionHinge(ContingencyHinge):
    """Hinge of 1 - precision over the tables with k positives."""

    def __init__(self, score: Float, share: Float, k: int | None = None) -> None:
        self.k = int(np.count_nonzero(share > 0.0)) if k is None else k
        super().__init__(score, share)

    def _best(self, high: Float, low: Float) -> tuple[float, int, int]:
        missed = len(low) - 1 - self.k  # positives beyond k, if above zero
        c: Index = np.arange(max(missed, 0), min(len(low), missed + len(high)))
        b = c - missed
        value = b / self.k + high[b] - low[c]
        at = int(np.argmax(value))
        return float(value[at]), int(b[at]), int(c[at])
