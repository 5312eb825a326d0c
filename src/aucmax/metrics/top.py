"""How good the top of the ranking is: precision and lift.

A list of the k highest scores may cut through rows that are tied. Which of them come
first is then chance, and the measures are the mean over all orders of the tied rows.
"""

from math import sqrt
from operator import index
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics.ranking import Weights
from aucmax.metrics.roc_steps import Steps, check_level, each, rounding, steps


class LiftCurve(NamedTuple):
    """How much better than chance the top of the ranking is, at each distinct score."""

    share: NDArray[np.float64]  # of all rows, those that score at least the threshold
    gain: NDArray[np.float64]  # share of the positives that do
    lift: NDArray[np.float64]  # gain / share
    thresholds: NDArray[np.float64]  # falling


class PrecisionInterval(NamedTuple):
    """A precision and its confidence interval."""

    value: float
    low: float
    high: float


def average_precision(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the mean precision over the positives.

    .. math:: \sum_k (R_k - R_{k-1}) P_k

    with recall R and precision P at each distinct score, from the highest down: the
    area under the precision-recall curve as a staircase. Tied rows are all in or all
    out, as with a threshold. The values are those of scikit-learn's function of the
    same name.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes: numbers, booleans or strings.
    score : array-like of shape (n_rows,)
        Higher means more likely positive. Infinite scores are ranked, NaN is an error.
        float32 is ranked as it is, any other type as float64.
    sample_weight : array-like of shape (n_rows,), optional
        Weight k is the row k times over.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        Between 0 and 1; of a random ranking of many rows, the share of positives.

    Notes
    -----
    The linear interpolation that gives a ROC curve its area is too optimistic for
    precision [1]_, hence the staircase.

    References
    ----------
    .. [1] J. Davis, M. Goadrich: The relationship between precision-recall and ROC
       curves. ICML 2006.

    Examples
    --------
    >>> from aucmax.metrics import average_precision
    >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    return mean_precision(steps(y, score, sample_weight, pos_label))


def precision_at(
    y: ArrayLike,
    score: ArrayLike,
    k: int | float,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """Return the share of positives among the k rows with the highest scores.

    Rows tied at the border of the list count in expectation: each of them is as likely
    to be in it as any other.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes: numbers, booleans or strings.
    score : array-like of shape (n_rows,)
        Higher means more likely positive. Infinite scores are ranked, NaN is an error.
        float32 is ranked as it is, any other type as float64.
    k : int or float
        Length of the list: an integer is a number of rows, a float between 0 and 1 a
        share of all rows. If the share ends within a row, that row counts as the
        fraction that is in.
    sample_weight : array-like of shape (n_rows,), optional
        Weight k is the row k times over, so that the list has the weight ``k``.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from aucmax.metrics import precision_at
    >>> y, score = [0, 0, 0, 1, 1], [0.1, 0.4, 0.4, 0.4, 0.8]
    >>> precision_at(y, score, 1)
    1.0
    >>> round(precision_at(y, score, 2), 4)  # the second row is one of three
    0.6667
    >>> precision_at(y, score, 0.8)
    0.5
    """
    hits, rows = top(steps(y, score, sample_weight, pos_label), k)
    return hits / rows


def precision_interval(
    y: ArrayLike,
    score: ArrayLike,
    k: int | float,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> PrecisionInterval:
    r"""Return :func:`precision_at` with a confidence interval.

    Wilson's [1]_: the precisions p for which what was seen, P, is not too unlikely,

    .. math:: |P - p| \le z \sqrt{p (1 - p) / k}.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes: numbers, booleans or strings.
    score : array-like of shape (n_rows,)
        Higher means more likely positive. Infinite scores are ranked, NaN is an error.
        float32 is ranked as it is, any other type as float64.
    k : int or float
        Length of the list: an integer is a number of rows, a float between 0 and 1 a
        share of all rows.
    level : float, default=0.95
        How often the interval should cover the precision that such a list has on
        average.
    sample_weight : array-like of shape (n_rows,), optional
        The list has the weight ``k``, and in the formula k is its effective number of
        rows [2]_, :math:`(\sum w)^2 / \sum w^2` over the list: a row is one observation
        whatever its weight.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    PrecisionInterval
        Named tuple (value, low, high); 0 <= low <= value <= high <= 1.

    References
    ----------
    .. [1] E. B. Wilson: Probable inference, the law of succession, and statistical
       inference. Journal of the American Statistical Association 22 (1927).
    .. [2] L. Kish: Survey sampling. Wiley (1965).

    Examples
    --------
    >>> from aucmax.metrics import precision_interval
    >>> value, low, high = precision_interval([0, 0, 1, 1], [1, 3, 2, 4], 2)
    >>> print(f"{value:.2f} in [{low:.2f}, {high:.2f}]")
    0.50 in [0.09, 0.91]
    """
    check_level(level)
    ranking = steps(y, score, sample_weight, pos_label)
    hits, rows = top(ranking, k)
    count = rows
    if sample_weight is not None:
        weight = np.asarray(sample_weight)
        count = effective_rows(ranking, np.asarray(score), weight, rows)
    return wilson(hits / rows, count, level)


def lift_at(
    y: ArrayLike,
    score: ArrayLike,
    k: int | float,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return how many times more positives than by chance are in the top k.

    .. math:: \frac{P(+ \mid \text{among the } k \text{ highest})}{P(+)}

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes: numbers, booleans or strings.
    score : array-like of shape (n_rows,)
        Higher means more likely positive. Infinite scores are ranked, NaN is an error.
        float32 is ranked as it is, any other type as float64.
    k : int or float
        Length of the list: an integer is a number of rows, a float between 0 and 1 a
        share of all rows. Ties at its border are as in :func:`precision_at`.
    sample_weight : array-like of shape (n_rows,), optional
        Weight k is the row k times over, so that the list has the weight ``k``.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        1 is chance; the most that is possible is one over the share of positives, or
        one over the share of the list if that is larger.

    Examples
    --------
    >>> from aucmax.metrics import lift_at
    >>> lift_at([0, 0, 0, 1], [0.1, 0.4, 0.2, 0.3], 2)
    2.0
    """
    ranking = steps(y, score, sample_weight, pos_label)
    hits, rows = top(ranking, k)
    return hits / rows / base_rate(ranking)


def lift_curve(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> LiftCurve:
    r"""Return gain and lift at each distinct score.

    .. math:: gain(t) = P(s \ge t \mid +), \qquad lift(t) = gain(t) / P(s \ge t).

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes: numbers, booleans or strings.
    score : array-like of shape (n_rows,)
        Higher means more likely positive. Infinite scores are ranked, NaN is an error.
        float32 is ranked as it is, any other type as float64.
    sample_weight : array-like of shape (n_rows,), optional
        Shares are shares of the weight; rows of weight zero give no threshold.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    LiftCurve
        Named tuple (share, gain, lift, thresholds) of arrays; the first point is that
        of the highest score.

    Examples
    --------
    >>> from aucmax.metrics import lift_curve
    >>> curve = lift_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> curve.share.tolist(), curve.gain.tolist()
    ([0.25, 0.5, 0.75, 1.0], [0.5, 0.5, 1.0, 1.0])
    >>> curve.lift.round(2).tolist()
    [2.0, 1.0, 1.33, 1.0]
    """
    thresholds, tp, fp = steps(y, score, sample_weight, pos_label)
    share, gain = (tp + fp) / (tp[-1] + fp[-1]), tp / tp[-1]
    return LiftCurve(share, gain, gain / share, thresholds.astype(np.float64))


def breakeven(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """Return the precision where it equals recall: on as many rows as are positive.

    Precision is hits over the length of the list, recall hits over positives, so that
    they are equal on the list of as many rows as there are positives; ties at its
    border are as in :func:`precision_at`.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes: numbers, booleans or strings.
    score : array-like of shape (n_rows,)
        Higher means more likely positive. Infinite scores are ranked, NaN is an error.
        float32 is ranked as it is, any other type as float64.
    sample_weight : array-like of shape (n_rows,), optional
        Weight k is the row k times over.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        Between 0 and 1; also known as R-precision.

    References
    ----------
    .. [1] C. D. Manning, P. Raghavan, H. Schütze: Introduction to information
       retrieval. Cambridge University Press (2008), section 8.4.

    Examples
    --------
    >>> from aucmax.metrics import breakeven
    >>> breakeven([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.5
    """
    return precision_of_all_positives(steps(y, score, sample_weight, pos_label))


def mean_precision(ranking: Steps) -> float:
    """Return :func:`average_precision` of rows that have been ranked."""
    _, tp, fp = ranking
    return float(each(tp / tp[-1]) @ (tp / (tp + fp)))


def precision_of_all_positives(ranking: Steps) -> float:
    """Return :func:`breakeven` of rows that have been ranked."""
    positives = float(ranking.tp[-1])
    return _hits(ranking, positives) / positives


def base_rate(ranking: Steps) -> float:
    """Return the share of positives."""
    return float(ranking.tp[-1] / (ranking.tp[-1] + ranking.fp[-1]))


def top(ranking: Steps, k: Any) -> tuple[float, float]:
    """Return the expected positives in the list that ``k`` means, and its length."""
    n = float(ranking.tp[-1] + ranking.fp[-1])
    rows = _length(k, n, rounding(ranking))
    return min(_hits(ranking, rows), rows), rows  # rounding could carry it past


def effective_rows(
    ranking: Steps, score: NDArray[Any], weight: NDArray[Any], length: float
) -> float:
    """Return how many rows of equal weight the list of this ``length`` is worth."""
    kept = weight > 0
    largest = float(weight.max())  # so that no square is zero or infinite
    falling = -ranking.thresholds
    step = np.searchsorted(falling, -score[kept].astype(falling.dtype, copy=False))
    square = np.bincount(step, (weight[kept] / largest) ** 2, falling.size)
    whole = ranking.tp + ranking.fp
    return (length / largest) ** 2 / _within(whole, np.cumsum(square), length)


def wilson(value: float, rows: float, level: float) -> PrecisionInterval:
    """Return the share of so many ``rows`` with its interval."""
    z = NormalDist().inv_cdf(0.5 * (1.0 + level))
    more = z * z / rows
    centre = (value + 0.5 * more) / (1.0 + more)
    half = sqrt(more * (value * (1.0 - value) + 0.25 * more)) / (1.0 + more)
    # At 0 and 1 the interval ends there; rounding could carry it past.
    low, high = max(centre - half, 0.0), min(centre + half, 1.0)
    return PrecisionInterval(value, min(low, value), max(high, value))


def _length(k: Any, n: float, slack: float) -> float:
    if isinstance(k, float | np.floating):
        if not 0.0 < k < 1.0:
            raise ValueError(
                f"k={k} is neither a share of the rows, between 0 and 1, nor a number "
                "of rows, an integer"
            )
        return float(k) * n
    try:
        rows = 0 if isinstance(k, bool | np.bool_) else index(k)
    except TypeError:
        rows = 0
    if rows < 1:
        raise ValueError(
            f"k={k!r} must be a number of rows, from 1 up, or a share of them, between "
            "0 and 1"
        )
    if rows > n * (1.0 + slack):
        raise ValueError(f"k={rows}, but there are {n:.15g} rows only")
    return min(float(rows), n)


def _hits(ranking: Steps, rows: float) -> float:
    """Return the expected number of positives in a list of ``rows`` rows."""
    return _within(ranking.tp + ranking.fp, ranking.tp, rows)


def _within(length: Weights, counts: Weights, rows: float) -> float:
    """Return the count at a ``length`` that may lie within a step."""
    at = min(int(np.searchsorted(length, rows)), length.size - 1)
    count, before = (counts[at - 1], length[at - 1]) if at > 0 else (0.0, 0.0)
    inside = (rows - before) / (length[at] - before)
    return float(count + inside * (counts[at] - count))
