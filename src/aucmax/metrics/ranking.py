"""Counting, over all pairs of a positive and a negative, who ranks higher.

One class is sorted by value, once; every score of the other class then finds its place
in it by binary search. No permutation is computed, so results keep the order of the
rows, and memory stays at a few copies of the scores.

Why a search and not a merge of two sorted arrays: the larger class, the expensive one,
need not be sorted at all. Sixty-four searches advance together, level by level; they do
not depend on each other, so that the processor overlaps their memory accesses and never
guesses a branch, which makes a search some eight times faster than one at a time.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import kernel

# Scores keep their own float type (float32 or float64), so that float32 is not copied.
Scores = NDArray[np.floating[Any]]
Weights = NDArray[np.float64]
Column = TypeVar("Column", Scores, Weights)

_TOGETHER = 64  # searches in flight at once: enough to hide the latency of a cache
_CHUNK = 1 << 14  # scores ranked per call where only a sum is wanted


class Ladder(NamedTuple):
    """The distinct scores of a class, and how much of the class lies below each."""

    value: Scores  # (k,) ascending
    below: Weights  # (k + 1,) rows, or weight, below value[i]; the last is the total


def ladder(scores: Scores, weight: Weights | None = None) -> Ladder:
    """Sort the scores of one class; ``weight`` counts a row more or less than once."""
    if weight is None:
        ordered = np.sort(scores)
    else:
        order = np.argsort(scores)
        ordered = scores[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    below = np.append(first, ordered.size)
    if weight is not None:
        below = _sums(weight[order])[below]
    return Ladder(ordered[first], below.astype(np.float64))


@kernel
def _sums(weight: Weights) -> Weights:
    """Return the sum of the first 0, 1, 2, … weights, right to a rounding or so.

    What each sum is short of is added up as well (Neumaier 1974): of many weights such
    as 0.1 plain sums are off by more than a share of the rows is asked for.
    """
    out = np.zeros(weight.size + 1)
    total = short = 0.0
    for k in range(weight.size):
        more = weight[k]
        new = total + more
        short += (total - new) + more if total >= more else (more - new) + total
        total = new
        out[k + 1] = total + short
    return out


@kernel
def split(column: Column, positive: NDArray[np.bool_]) -> tuple[Column, Column]:
    """Return the values of the positives and of the negatives, in row order."""
    n_positive = 0
    for k in range(positive.size):
        n_positive += positive[k]
    n_negative = column.size - n_positive
    # Each value is written to both, and only the right one moves on: no branch to
    # guess. The last write may go one past the end, hence one place more.
    pos = np.empty(n_positive + 1, column.dtype)
    neg = np.empty(n_negative + 1, column.dtype)
    i = np.uint64(0)
    j = np.uint64(0)
    for k in range(column.size):
        pos[i] = column[k]
        neg[j] = column[k]
        i += np.uint64(positive[k])
        j += np.uint64(not positive[k])
    return pos[:n_positive], neg[:n_negative]


@kernel
def mid_ranks(value: Scores, below: Weights, scores: Scores) -> Weights:
    """Return, for each score, the weight below it plus half the weight equal to it.

    ``value`` and ``below`` are a :class:`Ladder`; ``scores`` need not be sorted.
    """
    ranks = np.empty(scores.size)
    places = np.empty(_TOGETHER, np.uint64)
    zero, one = np.uint64(0), np.uint64(1)
    for start in range(0, scores.size, _TOGETHER):
        here = scores[start : start + _TOGETHER]
        place = places[: here.size]
        place[:] = zero
        # The last value that is not above the score, if there is one, is among the
        # `length` values from `place` on. The length is the same for all searches.
        length = np.uint64(value.size)
        while length > one:
            half = length >> one
            for k in range(here.size):
                place[k] += half if value[place[k] + half] <= here[k] else zero
            length -= half
        for k in range(here.size):
            at = value[place[k]]
            low, high = below[place[k]], below[place[k] + one]
            strictly = high if at < here[k] else low
            weakly = high if at <= here[k] else low
            ranks[start + k] = 0.5 * (strictly + weakly)
    return ranks


@kernel
def staircase(pos: Ladder, neg: Ladder) -> tuple[Scores, Weights, Weights]:
    """Return each distinct value, rising, with the weight of each class up to it.

    One scan up two ladders: (value, positives at or below it, negatives ...).
    """
    m, n = pos.value.size, neg.value.size
    value = np.empty(m + n, pos.value.dtype)
    n_pos = np.empty(m + n)
    n_neg = np.empty(m + n)
    i = j = k = 0
    while i < m or j < n:
        if j == n or (i < m and pos.value[i] <= neg.value[j]):
            value[k] = pos.value[i]
        else:
            value[k] = neg.value[j]
        i += i < m and pos.value[i] == value[k]
        j += j < n and neg.value[j] == value[k]
        n_pos[k] = pos.below[i]
        n_neg[k] = neg.below[j]
        k += 1
    return value[:k], n_pos[:k], n_neg[:k]


def win_fraction(pos: Scores, neg: Scores) -> float:
    """Return the share of pairs whose positive ranks higher, ties counted half.

    The count of half pairs is an integer of any size, so the result is the exact
    fraction, rounded once.
    """
    fewer, more = (pos, neg) if pos.size <= neg.size else (neg, pos)
    steps = ladder(fewer)
    twice = sum(
        int(2.0 * mid_ranks(steps.value, steps.below, more[k : k + _CHUNK]).sum())
        for k in range(0, more.size, _CHUNK)
    )
    pairs = pos.size * neg.size
    if more is neg:  # what was counted is how often the negative ranks higher
        twice = 2 * pairs - twice
    return twice / (2 * pairs)


def weighted_win_fraction(
    pos: Scores, neg: Scores, w_pos: Weights, w_neg: Weights
) -> float:
    """Return :func:`win_fraction` with the pair (i, j) counted w_pos[i] w_neg[j]."""
    steps = ladder(pos, w_pos)
    # Shares of each class, not products of weights, which could overflow.
    share_below = mid_ranks(steps.value, steps.below, neg) / steps.below[-1]
    # Two sums in the same order: a ranking that is all wrong has exactly nothing left.
    weight = w_neg / w_neg.max()
    lost = float(weight @ share_below) / float(weight @ np.ones_like(share_below))
    return min(1.0, max(0.0, 1.0 - lost))  # rounding could carry it past the ends


def wins(pos: Scores, neg: Scores) -> tuple[Weights, Weights]:
    """Return how many negatives each positive beats, and positives beat each negative.

    Ties count half. Divided by the number of the other class these are the placements,
    the structural components of DeLong's variance; as counts they are exact.
    """
    among_neg, among_pos = ladder(neg), ladder(pos)
    beaten = mid_ranks(among_neg.value, among_neg.below, pos)
    beats = mid_ranks(among_pos.value, among_pos.below, neg)
    return beaten, pos.size - beats
