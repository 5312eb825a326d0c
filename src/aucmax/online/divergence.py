"""How far apart scores are: what tells that a learner has diverged."""

import numpy as np

from aucmax.core.jit import kernel
from aucmax.core.rows import Float

# The losses aim at a margin of one. On the data sets of the tests and of the benchmarks
# scores deviate by less than ten, with raw features and steps that do not fall by 35.
WIDEST = 1e4


@kernel
def score_spread(w: Float, table: Float, squares: int, n: Float) -> float:
    """Return the deviation of w·x, as if features were uncorrelated; classes balanced.

    From the class sums of squares about the reference points, which begin at the row
    ``squares`` of ``table``. Weights in units of their features' deviations: the number
    has no unit. Infinite if it has left the range of float64.
    """
    to_pos, to_neg = 0.5 / n[0], 0.5 / n[1]
    total = 0.0
    for j in range(w.shape[0]):
        if w[j] != 0.0:
            second = table[squares, j] * to_pos + table[squares + 1, j] * to_neg
            unit = w[j] * np.sqrt(second)
            total += unit * unit
    return np.sqrt(total)
