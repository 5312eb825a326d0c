"""Cumulative counts of both classes along the ranking, which all measures use.

Measures that are computed together share its one sort.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aucmax.metrics.inputs import classes
from aucmax.metrics.pair_counts import Scores, Weights, merge_counts, score_counts

_ROUNDING = 1e-15  # relative rounding error of a rate, and of its bound


class Steps(NamedTuple):
    """Number, or weight, of the rows of each class at or above each distinct score.

    Tied rows are one step, as no threshold separates them.
    """

    thresholds: Scores  # decreasing
    tp: Weights  # positives that score at least the threshold; the last is their total
    fp: Weights  # negatives that score at least the threshold


def steps(
    y: ArrayLike,
    score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Steps:
    """Validate and rank the rows.

    Weights are added up from the highest score, so that small ones there are not lost
    in large ones below.
    """
    pos, neg, w_pos, w_neg = classes(y, score, sample_weight, pos_label)
    negated, tp, fp = merge_counts(score_counts(-pos, w_pos), score_counts(-neg, w_neg))
    return Steps(-negated, tp, fp)


def rounding(ranking: Steps) -> float:
    """Return the rounding error of a rate; zero if all counts are integers.

    Rates of weights such as 0.1 are compared up to this error.
    """
    whole = all(np.array_equal(counts, np.rint(counts)) for counts in ranking[1:])
    return 0.0 if whole else _ROUNDING


def with_zero(counts: Weights) -> Weights:
    """Return the counts with a leading zero."""
    return np.append(0.0, counts)


def increments(counts: Weights) -> Weights:
    """Return the increments of cumulative counts."""
    return np.diff(counts, prepend=0.0)


def check_share(name: str, value: Any, low: str = "(", high: str = "]") -> float:
    """Return a share as float; the brackets show whether 0 and 1 are allowed."""
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = np.nan
    above = share >= 0.0 if low == "[" else share > 0.0
    below = share <= 1.0 if high == "]" else share < 1.0
    if not (above and below):
        raise ValueError(f"{name}={value!r}: expected a number in {low}0, 1{high}.")
    return share


def check_level(level: float) -> None:
    """Raise an error if a confidence level is not between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level}: expected a number between 0 and 1.")
