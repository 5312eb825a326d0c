"""The rows from the top of the ranking down, counted: what every measure is made of.

Measures that are asked for together share the one sort behind it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aucmax.metrics.inputs import classes
from aucmax.metrics.ranking import Scores, Weights, ladder, staircase

# A difference of two sums, each rounded, over a third, and what it is compared with.
_ROUNDING = 1e-15


class Steps(NamedTuple):
    """For each distinct score, falling, the rows of either class from it up.

    Rows, or their weights. Tied rows are one step: no threshold can part them.
    """

    thresholds: Scores
    tp: Weights  # positives that score at least the threshold; the last is all of them
    fp: Weights  # negatives that do


def steps(
    y: ArrayLike,
    score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Steps:
    """Check the rows, sort each class and go down both together.

    Weights are added up from the top, so that small ones there are not lost in large
    ones below.
    """
    pos, neg, w_pos, w_neg = classes(y, score, sample_weight, pos_label)
    turned, tp, fp = staircase(ladder(-pos, w_pos), ladder(-neg, w_neg))
    return Steps(-turned, tp, fp)


def rounding(ranking: Steps) -> float:
    """Return by what share of all the weight a sum may be off; counts are exact.

    So weights of 0.1 are as good as none where a sum is compared with a number.
    """
    whole = all(np.array_equal(counts, np.rint(counts)) for counts in ranking[1:])
    return 0.0 if whole else _ROUNDING


def from_zero(counts: Weights) -> Weights:
    """Return the counts with those of no rows at all before them."""
    return np.append(0.0, counts)


def each(counts: Weights) -> Weights:
    """Return what each step adds."""
    return np.diff(counts, prepend=0.0)


def check_share(name: str, value: Any, low: str = "(", high: str = "]") -> float:
    """Return ``value`` if it is a share; brackets say whether 0 and 1 are allowed."""
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = np.nan
    above = share >= 0.0 if low == "[" else share > 0.0
    below = share <= 1.0 if high == "]" else share < 1.0
    if not (above and below):
        raise ValueError(f"{name} must lie in {low}0, 1{high}, not be {value!r}")
    return share


def check_level(level: float) -> None:
    """Raise an error if a confidence level is none."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, not be {level}")
