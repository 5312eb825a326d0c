"""Measures of the top of the ranking: precision, lift and average precision.

The list of the k highest scores may cut through tied rows. The measures are then the
mean over all orders of the tied rows. Average precision is the area under the
precision-recall curve.
"""

from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics._ranking import (
    Classes,
    Steps,
    Weights,
    as_scores,
    check_level,
    classes,
    increments,
    nan_if_one_class,
    positives,
    rounding,
    steps,
)
from aucmax.metrics._variance import (
    Influence,
    Interval,
    effective_sizes,
    effective_trials,
    from_variance,
    roc_rates,
    row_groups,
    shares,
    variance,
    wilson,
)


class LiftCurve(NamedTuple):
    """Gain and lift of the top of the ranking, at each distinct score."""

    share: NDArray[np.float64]  # share of all rows that score at least the threshold
    gain: NDArray[np.float64]  # share of the positives that do
    lift: NDArray[np.float64]  # gain / share
    thresholds: NDArray[np.float64]  # decreasing


PrecisionInterval = Interval  # its name in version 0.1


@nan_if_one_class
def precision_at(
    y: ArrayLike,
    score: ArrayLike,
    k: int | float,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """Return the share of positives among the k rows with the highest scores.

    Rows tied at the end of the list count in expectation: each of them is equally
    likely to be included.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    k : int or float
        Length of the list: an integer is a number of rows, a float between 0 and 1 a
        share of all rows. If the share ends within a row, that row counts by its
        included fraction.
    sample_weight : array-like of shape (n_rows,), optional
        Row weights; an integer ``k`` is then the total weight of the list.
    pos_label : label, optional
        Positive class; by default the larger label.

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


@nan_if_one_class
def precision_interval(
    y: ArrayLike,
    score: ArrayLike,
    k: int | float,
    *,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Interval:
    r"""Return :func:`precision_at` with a confidence interval.

    The interval is Wilson's [1]_, all p that are consistent with the observed P:

    .. math:: |P - p| \le z \sqrt{p (1 - p) / k}.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    k : int or float
        Length of the list: an integer is a number of rows, a float between 0 and 1 a
        share of all rows.
    level : float, default=0.95
        Confidence level.
    groups : array-like of shape (n_rows,), optional
        Cluster of each row, as for :func:`auc_interval`: in the formula k is the
        effective number of rows of the list.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights. The list has the weight ``k``; in the formula k is its
        effective number of rows [2]_, :math:`(\sum w)^2 / \sum w^2` over the list, as a
        row is one observation whatever its weight.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    Interval
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
    if groups is not None:
        share = _clustered(y, score, groups, sample_weight, pos_label, ranking, rows)
        count = min(count, share * rows)
    return wilson(hits / rows, count, level)


def _clustered(
    y: ArrayLike,
    score: ArrayLike,
    groups: ArrayLike,
    sample_weight: ArrayLike | None,
    pos_label: object,
    ranking: Steps,
    rows: float,
) -> float:
    """Return the effective number of rows of the list, as a share of its length."""
    positive, weight, kept = positives(y, pos_label), None, None
    if sample_weight is not None:
        kept = np.asarray(sample_weight) > 0.0
        weight = np.asarray(sample_weight, np.float64)[kept]
    codes = row_groups(groups, positive.size, kept)
    called = ranking.tp + ranking.fp
    step = min(int(np.searchsorted(called, rows)), called.size - 1)
    listed = as_scores(score, positive.size) >= ranking.thresholds[step]
    if kept is not None:
        positive, listed = positive[kept], listed[kept]
    weight = None if weight is None else weight[listed]
    trials = effective_trials(positive[listed], weight, codes[listed])
    return trials / float(called[step])


@nan_if_one_class
def lift_at(
    y: ArrayLike,
    score: ArrayLike,
    k: int | float,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the lift of the top k: their share of positives relative to chance.

    .. math:: \frac{P(+ \mid \text{among the } k \text{ highest})}{P(+)}

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    k : int or float
        Length of the list: an integer is a number of rows, a float between 0 and 1 a
        share of all rows. Ties at its end are treated as in :func:`precision_at`.
    sample_weight : array-like of shape (n_rows,), optional
        Row weights; an integer ``k`` is then the total weight of the list.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    float
        1 is chance; the maximum is one over the share of positives, or one over the
        share of the list if that share is larger.

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
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    sample_weight : array-like of shape (n_rows,), optional
        Row weights; rows of weight zero give no threshold.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    LiftCurve
        Named tuple (share, gain, lift, thresholds) of arrays, from the highest score.

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


@nan_if_one_class
def breakeven(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """Return the precision/recall break-even point, also known as R-precision.

    Precision and recall are equal on the list with as many rows as there are positives;
    ties at its end are treated as in :func:`precision_at`.

    Parameters
    ----------
    y, score, sample_weight, pos_label
        As for :func:`auc`.

    Returns
    -------
    float
        Between 0 and 1.

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


def precision_of_all_positives(ranking: Steps) -> float:
    """Return :func:`breakeven` of ranked rows."""
    positives = float(ranking.tp[-1])
    return _hits(ranking, positives) / positives


def base_rate(ranking: Steps) -> float:
    """Return the share of positives."""
    return float(ranking.tp[-1] / (ranking.tp[-1] + ranking.fp[-1]))


def top(ranking: Steps, k: Any) -> tuple[float, float]:
    """Return the expected number of positives in the top ``k``, and its length."""
    n = float(ranking.tp[-1] + ranking.fp[-1])
    rows = _length(k, n, rounding(ranking))
    return min(_hits(ranking, rows), rows), rows  # rounding could exceed it


def effective_rows(
    ranking: Steps, score: NDArray[Any], weight: NDArray[Any], length: float
) -> float:
    """Return the effective number of rows of the list of this ``length``."""
    kept = weight > 0
    largest = float(weight.max())  # so that squares neither underflow nor overflow
    falling = -ranking.thresholds
    step = np.searchsorted(falling, -score[kept].astype(falling.dtype, copy=False))
    square = np.bincount(step, (weight[kept] / largest) ** 2, falling.size)
    whole = ranking.tp + ranking.fp
    return (length / largest) ** 2 / _within(whole, np.cumsum(square), length)


def _length(k: Any, n: float, slack: float) -> float:
    if isinstance(k, float | np.floating):
        if not 0.0 < k < 1.0:
            raise ValueError(
                f"k={k}: expected a number of rows, an integer, or a share of them, "
                "between 0 and 1"
            )
        return float(k) * n
    try:
        rows = 0 if isinstance(k, bool | np.bool_) else index(k)
    except TypeError:
        rows = 0
    if rows < 1:
        raise ValueError(
            f"k={k!r}: expected a number of rows, at least 1, or a share of them, "
            "between 0 and 1"
        )
    if rows > n * (1.0 + slack):
        raise ValueError(f"k={rows}, but there are only {n:.15g} rows")
    return min(float(rows), n)


def _hits(ranking: Steps, rows: float) -> float:
    """Return the expected number of positives in a list of ``rows`` rows."""
    return _within(ranking.tp + ranking.fp, ranking.tp, rows)


def _within(length: Weights, counts: Weights, rows: float) -> float:
    """Return the count at a ``length`` that may lie within a step, interpolated."""
    at = min(int(np.searchsorted(length, rows)), length.size - 1)
    count, before = (counts[at - 1], length[at - 1]) if at > 0 else (0.0, 0.0)
    inside = (rows - before) / (length[at] - before)
    return float(count + inside * (counts[at] - count))


@nan_if_one_class
def average_precision(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the average precision: the area under the precision-recall curve.

    .. math:: \sum_k (R_k - R_{k-1}) P_k

    with recall R and precision P at each distinct score, from the highest down, and the
    curve as a step function. Tied rows are included together, as by a threshold. The
    values are those of scikit-learn's function of the same name.

    Parameters
    ----------
    y, score, sample_weight, pos_label
        As for :func:`auc`.

    Returns
    -------
    float
        Between 0 and 1; for a random ranking about the share of positives.

    Notes
    -----
    Linear interpolation, as of a ROC curve, is too optimistic for precision [1]_, hence
    the step function.

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


def mean_precision(ranking: Steps) -> float:
    """Return :func:`average_precision` of ranked rows."""
    _, tp, fp = ranking
    return float(increments(tp / tp[-1]) @ (tp / (tp + fp)))


@nan_if_one_class
def average_precision_interval(
    y: ArrayLike,
    score: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Interval:
    r"""Return :func:`average_precision` with a confidence interval.

    The variance follows from the influence of each row on the precision at all lower
    scores, by the delta method; the formula of :func:`auc_interval` gives the interval,
    with as many negatives as positives, as the positives decide.

    Parameters
    ----------
    y, score, pos_label
        As for :func:`auc`.
    level : float, default=0.95
        Confidence level.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights, as for :func:`auc_interval`.

    Returns
    -------
    Interval
        Named tuple (value, low, high). The share of positives is taken as fixed: in
        another population the average precision is another.

    Notes
    -----
    Intervals of 95 % covered the average precision in 94 % to 97.5 % of simulated draws
    with 20 or 200 positives, as many or ten times as many negatives, and AUCs of 0.7
    and 0.95.

    Examples
    --------
    >>> from aucmax.metrics import average_precision_interval
    >>> y = [0] * 20 + [1] * 20
    >>> score = list(range(20)) + list(range(10, 30))
    >>> value, low, high = average_precision_interval(y, score)
    >>> print(f"{value:.2f} in [{low:.2f}, {high:.2f}]")
    0.88 in [0.73, 0.95]
    """
    check_level(level)
    value = mean_precision(steps(y, score, sample_weight, pos_label))
    rows = classes(y, score, sample_weight, pos_label)
    found = _influence(rows)
    m, n = effective_sizes(found)
    return from_variance(value, variance(found), m, m if n > 1.0 else n, level)


def _influence(rows: Classes) -> Influence:
    """Return the influence of each row on the average precision."""
    pos, neg = rows.pos, rows.neg
    share_pos, share_neg = shares(rows.w_pos, pos.size), shares(rows.w_neg, neg.size)
    m, n = (
        float(side.size) if weight is None else float(weight.sum())
        for side, weight in ((pos, rows.w_pos), (neg, rows.w_neg))
    )
    rate = m / (m + n)
    value, tpr, fpr = roc_rates(rows)
    tpr, fpr = tpr[1:], fpr[1:]
    called = rate * tpr + (1.0 - rate) * fpr
    precision = rate * tpr / called
    slope = increments(tpr) * rate * (1.0 - rate) / called**2
    # A row changes the precision at its own score and at all lower ones.
    of_pos = precision + _from_here(slope * fpr)
    of_neg = -_from_here(slope * tpr)
    V, W = of_pos[np.searchsorted(value, -pos)], of_neg[np.searchsorted(value, -neg)]
    V, W = V - share_pos @ V, W - share_neg @ W
    return Influence(share_pos * V, share_neg * W, share_pos, share_neg)


def _from_here(values: np.ndarray) -> np.ndarray:
    """Return the sums of each value and all later ones."""
    return np.cumsum(values[::-1])[::-1]
