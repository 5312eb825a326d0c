"""Average precision, the area under the precision-recall curve."""

import numpy as np
from numpy.typing import ArrayLike

from aucmax.metrics.influence import (
    Influence,
    effective_sizes,
    roc_rates,
    shares,
    variance,
)
from aucmax.metrics.inputs import Classes, classes, nan_if_one_class
from aucmax.metrics.intervals import Interval, from_variance
from aucmax.metrics.roc_steps import Steps, check_level, increments, steps


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
