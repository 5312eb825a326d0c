"""What all measures share: checked inputs, counts of pairs, counts along the ranking.

**Counts of pairs** in which the positive row ranks higher than the negative one: one
class is sorted, and each score of the other class is located in it by binary search. No
permutation is computed, so results keep the order of the rows, and memory stays at a
few copies of the scores. A search is faster than a merge of two sorted arrays, because
the larger class need not be sorted. Sixty-four searches advance together, level by
level: as they are independent, the processor overlaps their memory accesses and
mispredicts no branch, which makes a search about eight times as fast as one at a time.

**Validation** of labels, scores and weights takes a few passes over the arrays: no
sort, no ``np.unique``. Slow searches, for the details of a message, run only if there
is an error.

**Cumulative counts** of both classes along the ranking: measures that are computed
together share its one sort.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from math import floor, log10, nan
from typing import Any, NamedTuple, ParamSpec, TypeVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.core.jit import kernel
from aucmax.core.validation import check_weights, refuse_mask

# Scores keep their float type (float32 or float64), so that float32 is not copied.
Scores = NDArray[np.floating[Any]]
Weights = NDArray[np.float64]
Column = TypeVar("Column", Scores, Weights)

_TOGETHER = 64  # simultaneous searches: enough to hide the latency of a cache
_CHUNK = 1 << 14  # scores ranked per call if only a sum is needed


class ScoreCounts(NamedTuple):
    """Distinct scores of a class, and the weight of the class below each."""

    value: Scores  # (k,) ascending
    below: Weights  # (k + 1,) rows, or weight, below value[i]; the last is the total


def score_counts(scores: Scores, weight: Weights | None = None) -> ScoreCounts:
    """Sort the scores of one class and count the rows, or their weight, below each."""
    if weight is None:
        ordered = np.sort(scores)
    else:
        order = np.argsort(scores)
        ordered = scores[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    below = np.append(first, ordered.size)
    if weight is not None:
        below = _sums(weight[order])[below]
    return ScoreCounts(ordered[first], below.astype(np.float64))


@kernel
def _sums(weight: Weights) -> Weights:
    """Return the sums of the first 0, 1, 2, … weights, to about one rounding error.

    Compensated summation (Neumaier 1974): plain sums of many weights such as 0.1 are
    less accurate than a requested share of the rows.
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


def split(column: Column, positive: NDArray[np.bool_]) -> tuple[Column, Column]:
    """Return the values of the positives and of the negatives, in row order."""
    return column[positive], column[~positive]


@kernel
def mid_ranks(value: Scores, below: Weights, scores: Scores) -> Weights:
    """Return, for each score, the weight below it plus half the weight equal to it."""
    ranks = np.empty(scores.size)
    places = np.empty(_TOGETHER, np.uint64)
    zero, one = np.uint64(0), np.uint64(1)
    for start in range(0, scores.size, _TOGETHER):
        here = scores[start : start + _TOGETHER]
        place = places[: here.size]
        place[:] = zero
        # The last value not above the score, if there is one, is among the `length`
        # values from `place` on. The length is the same for all searches.
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
def merge_counts(pos: ScoreCounts, neg: ScoreCounts) -> tuple[Scores, Weights, Weights]:
    """Merge two classes: distinct values, increasing, and the weights up to each."""
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

    The count of half pairs is an exact integer, so the result is rounded only once.
    """
    fewer, more = (pos, neg) if pos.size <= neg.size else (neg, pos)
    steps = score_counts(fewer)
    twice = sum(
        int(2.0 * mid_ranks(steps.value, steps.below, more[k : k + _CHUNK]).sum())
        for k in range(0, more.size, _CHUNK)
    )
    pairs = pos.size * neg.size
    if more is neg:  # the count is of pairs whose negative ranks higher
        twice = 2 * pairs - twice
    return twice / (2 * pairs)


def weighted_win_fraction(
    pos: Scores, neg: Scores, w_pos: Weights, w_neg: Weights
) -> float:
    """Return :func:`win_fraction` with weight w_pos[i] w_neg[j] of the pair (i, j)."""
    steps = score_counts(pos, w_pos)
    # Shares of each class: products of weights could overflow.
    share_below = mid_ranks(steps.value, steps.below, neg) / steps.below[-1]
    # Two sums in the same order: a completely wrong ranking gives exactly zero.
    weight = w_neg / w_neg.max()
    lost = float(weight @ share_below) / float(weight @ np.ones_like(share_below))
    return min(1.0, max(0.0, 1.0 - lost))  # rounding could exceed the range


def wins(pos: Scores, neg: Scores) -> tuple[Weights, Weights]:
    """Return the negatives below each positive, and the positives above each negative.

    Ties count half. Divided by the size of the other class these are the placements,
    the structural components of DeLong's variance; as counts they are exact.
    """
    among_neg, among_pos = score_counts(neg), score_counts(pos)
    beaten = mid_ranks(among_neg.value, among_neg.below, pos)
    beats = mid_ranks(among_pos.value, among_pos.below, neg)
    return beaten, pos.size - beats


_NO_NUMBERS = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


class OneClassError(ValueError):
    """The rows, or those with a weight, are of one class."""


Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")


def nan_if_one_class(
    measure: Callable[Parameters, Result],
) -> Callable[Parameters, Result]:
    """Make a measure return NaN, with a warning, if there is one class only.

    The measure returns a float or a named tuple of floats.
    """

    @wraps(measure)
    def defined(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return measure(*args, **kwargs)
        except OneClassError as error:
            from sklearn.exceptions import UndefinedMetricWarning  # slow import

            message = f"{measure.__name__} is NaN: {error}"
            warnings.warn(message, UndefinedMetricWarning, stacklevel=2)
            kind = get_type_hints(measure)["return"]
            if kind is float:
                return nan  # type: ignore[return-value]
            return kind(*[nan] * len(kind._fields))

    return defined


class Classes(NamedTuple):
    """Scores of each class in row order, and their weights if there are any."""

    pos: Scores
    neg: Scores
    w_pos: Weights | None
    w_neg: Weights | None


def classes(
    y: ArrayLike,
    score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Classes:
    """Validate the rows and split them by class, without rows of weight zero."""
    positive = positives(y, pos_label)
    scores = as_scores(score, positive.size)
    if sample_weight is None:
        return Classes(*split(scores, positive), None, None)
    weight = as_weights(sample_weight, positive.size)
    _check_both_weigh(weight, positive)
    if not weight.all():
        kept = weight > 0.0
        scores, positive, weight = scores[kept], positive[kept], weight[kept]
    return Classes(*split(scores, positive), *split(weight, positive))


def area(rows: Classes) -> float:
    """Return the area under the ROC curve, ties counted half."""
    pos, neg, w_pos, w_neg = rows
    if w_pos is None or w_neg is None:
        return win_fraction(pos, neg)
    return weighted_win_fraction(pos, neg, w_pos, w_neg)


def positives(y: ArrayLike, pos_label: object = None) -> NDArray[np.bool_]:
    """Return the mask of positive rows: the larger of two labels, or ``pos_label``."""
    refuse_mask(y, "y")
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(
            f"y has shape {labels.shape}, but must have one label per row; "
            "pass np.ravel(y) if it is a single column"
        )
    if labels.size == 0:
        raise ValueError("y is empty: AUC needs rows of both classes")
    try:
        return _is_positive(labels, pos_label)
    except TypeError:
        raise ValueError(
            "y holds labels that cannot be compared with each other, such as missing "
            "values or numbers among strings; drop those rows or map them to 0 and 1"
        ) from None


def _is_positive(labels: NDArray[Any], pos_label: object) -> NDArray[np.bool_]:
    one = labels[0]
    is_one = _equal(labels, one)
    if is_one.all():
        raise OneClassError(
            f"y holds one class only: all {labels.size} rows are {_show(one)}; "
            "AUC needs rows of both classes"
        )
    other = labels[np.argmin(is_one)]
    is_other = _equal(labels, other)
    if np.count_nonzero(is_one) + np.count_nonzero(is_other) < labels.size:
        raise ValueError(_odd_label(labels, is_one | is_other))
    wanted = max(one, other) if pos_label is None else pos_label
    if wanted == one:
        return is_one
    if wanted == other:
        return is_other
    raise ValueError(
        f"pos_label={_show(wanted)} does not occur in y, "
        f"whose classes are {_show(one)} and {_show(other)}"
    )


def as_scores(score: ArrayLike, n_rows: int, name: str = "score") -> Scores:
    """Return validated scores, as float32 or float64."""
    scores = _one_column(score, n_rows, name)
    if np.isnan(scores).any():
        row = int(np.argmax(np.isnan(scores)))
        raise ValueError(
            f"{name} is NaN at row {row}, which cannot be ranked; "
            "drop such rows, or give them the lowest score, -inf"
        )
    return scores


def as_weights(sample_weight: ArrayLike, n_rows: int) -> Weights:
    """Return validated row weights."""
    weight = _one_column(sample_weight, n_rows, "sample_weight")
    check_weights(weight)
    return weight.astype(np.float64, copy=False)


def _check_both_weigh(weight: Weights, positive: NDArray[np.bool_]) -> None:
    for one_class, which in ((positive, "positive"), (~positive, "negative")):
        if not weight[one_class].any():
            raise OneClassError(
                f"sample_weight is zero at all {np.count_nonzero(one_class)} {which} "
                "rows: AUC needs some weight in both classes"
            )


def _one_column(values: ArrayLike, n_rows: int, name: str) -> Scores:
    refuse_mask(values, name)
    column = np.asarray(values)
    if column.ndim != 1:
        single = column.size == n_rows
        raise ValueError(
            f"{name} has shape {column.shape}, but must have one number per row; pass "
            + (f"np.ravel({name})" if single else f"one column, as in {name}[:, 1]")
        )
    if column.size != n_rows:
        raise ValueError(f"{name} has {column.size} rows, but y has {n_rows}")
    if column.dtype.kind not in "biuf":
        column = _real_numbers(column, name)
    single = column.dtype in (np.float16, np.float32)
    # Contiguous and writeable: Numba would compile for other arrays once more.
    return np.require(column, np.float32 if single else np.float64, ["C", "A", "W"])


def _real_numbers(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Convert Python objects to numbers, or raise an error."""
    numbers = np.empty(column.size)
    for row, value in enumerate(column):
        try:
            if isinstance(value, _NO_NUMBERS):
                raise TypeError
            numbers[row] = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} is {_show(value)} at row {row}: it must be a real number"
            ) from None
    return numbers


def as_numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return real numbers, NaN among them, of any shape."""
    refuse_mask(values, name)
    given = np.asarray(values)
    if given.dtype.kind in "OUScMm":
        for row, value in enumerate(given.ravel()):
            if isinstance(value, _NO_NUMBERS):
                row //= given[:1].size
                raise ValueError(
                    f"{name} is {_show(value)} at row {row}: it must be a real number"
                )
    return np.asarray(values, np.float64)


def _equal(labels: NDArray[Any], label: object) -> NDArray[np.bool_]:
    return np.asarray(labels == label, dtype=np.bool_)


def _odd_label(labels: NDArray[Any], known: NDArray[np.bool_]) -> str:
    """Return the message for the first label that is neither of the known two."""
    row = int(np.argmin(known))
    odd = labels[row]
    if odd != odd:
        return f"y is {_show(odd)} at row {row}: drop the rows that have no label"
    both = [_show(label) for label in np.unique(labels[known])]
    return (
        f"y holds more than two classes: {' and '.join(both)}, but at row {row} "
        f"{_show(odd)}; compare one class with the rest, as in y == {_show(odd)}"
    )


def _show(label: object) -> str:
    """Return the label as typed in Python: 1 rather than np.int64(1)."""
    return repr(label.item() if isinstance(label, np.generic) else label)


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


_FEWEST, _MOST = 2, 6


def decimals(low: float, high: float) -> int:
    """Return the number of decimals (2 to 6) that shows two digits of the error.

    The standard error is taken as a quarter of the interval, as for 95 %.
    """
    error = (high - low) / 4.0
    if not error > 0.0:
        return _MOST
    return min(max(1 - floor(log10(error)), _FEWEST), _MOST)


def with_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Format a value and its interval with that number of decimals."""
    places = decimals(low, high)
    return f"{value:.{places}f}", f"{low:.{places}f}", f"{high:.{places}f}"


def exact(number: float) -> str:
    """Return a number as short text that is read back as the same number."""
    if not isinstance(number, float):
        return str(number)
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))
