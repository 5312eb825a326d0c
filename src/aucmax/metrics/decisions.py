"""Choice of a decision threshold, and what it brings: counts, net benefit, F-scores."""

from math import inf, isfinite, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics._ranking import (
    Steps,
    Weights,
    check_level,
    check_share,
    nan_if_one_class,
    rounding,
    steps,
    with_zero,
)
from aucmax.metrics._variance import Interval, effective_number, normal_quantile, wilson
from aucmax.metrics.calibration import check_probabilities


class OperatingPoint(NamedTuple):
    """Error rates if rows that score at least the threshold are predicted positive."""

    threshold: float
    tpr: float  # share of the positives that are predicted positive: recall
    fpr: float  # share of the negatives that are predicted positive
    precision: float  # share of positives among the predicted; NaN if there are none
    rows: float  # number, or weight, of rows predicted positive


def operating_point(
    y: ArrayLike,
    score: ArrayLike,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    precision: float | None = None,
    cost_ratio: float | None = None,
    rows: float | None = None,
    threshold: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> OperatingPoint:
    r"""Return the best threshold for a criterion, and its error rates.

    Give exactly one criterion. Only attainable thresholds are considered: nothing is
    interpolated, and tied rows stay together. Of equally good thresholds the highest is
    taken, which predicts the fewest rows positive.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    fpr : float, optional
        Maximise the true positive rate at a false positive rate of at most this.
    tpr : float, optional
        Minimise the false positive rate at a true positive rate of at least this.
    precision : float, optional
        Maximise the true positive rate at a precision of at least this.
    cost_ratio : float, optional
        Minimise the cost, if a false positive costs ``cost_ratio`` times as much as a
        false negative:

        .. math:: \min_t \; r \, FP(t) + FN(t).
    rows : float, optional
        Predict at most this many rows positive: a number of rows, or their weight.
    threshold : float, optional
        Use this threshold, compared as NumPy does: a Python number is rounded to
        float32 if the scores are float32.
    sample_weight : array-like of shape (n_rows,), optional
        Row weights; weight k counts as k copies of the row. Rates are compared up to
        rounding: three of ten rows of weight 0.1 meet a rate of 0.3.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    OperatingPoint
        Named tuple (threshold, tpr, fpr, precision, rows). Predicting ``score >=
        threshold`` on the same rows gives exactly these numbers. If it is best to
        predict no row positive, the threshold is infinite (NaN if a score is infinite),
        and precision is NaN.

    References
    ----------
    .. [1] F. Provost, T. Fawcett: Robust classification for imprecise environments.
       Machine Learning 42 (2001).

    Examples
    --------
    >>> from aucmax.metrics import operating_point
    >>> y, score = [0, 0, 0, 1, 1], [0.1, 0.2, 0.4, 0.3, 0.8]
    >>> operating_point(y, score, fpr=0.1)
    OperatingPoint(threshold=0.8, tpr=0.5, fpr=0.0, precision=1.0, rows=1.0)
    >>> operating_point(y, score, tpr=0.9).threshold
    0.3
    """
    given = {
        "fpr": fpr,
        "tpr": tpr,
        "precision": precision,
        "cost_ratio": cost_ratio,
        "rows": rows,
        "threshold": threshold,
    }
    purposes = [(name, value) for name, value in given.items() if value is not None]
    if len(purposes) != 1:
        names = ", ".join(name for name, _ in purposes) or "none of them"
        raise ValueError(
            "give one of fpr, tpr, precision, cost_ratio, rows and threshold, not "
            + names
        )
    purpose, wanted = purposes[0]
    _check(purpose, wanted)
    ranking = steps(y, score, sample_weight, pos_label)
    return point(ranking, purpose, wanted)


def point(ranking: Steps, purpose: str, wanted: float) -> OperatingPoint:
    """Return :func:`operating_point` of ranked rows."""
    tp, fp = with_zero(ranking.tp), with_zero(ranking.fp)  # position 0: no row positive
    slack = rounding(ranking)
    if purpose == "fpr":
        most = wanted + slack
        at = _first(tp, int(np.searchsorted(fp / fp[-1], most, side="right")) - 1)
    elif purpose == "tpr":
        at = int(np.searchsorted(tp / tp[-1], wanted - slack, side="left"))
    elif purpose == "precision":
        at = _precise(tp, fp, wanted, slack)
    elif purpose == "rows":
        most = wanted * (1.0 + slack)
        at = int(np.searchsorted(tp + fp, most, side="right")) - 1
    elif purpose == "cost_ratio":
        cost = wanted * fp - tp
        least = cost.min() + 2.0 * slack * (wanted * fp[-1] + tp[-1])
        at = int(np.argmax(cost <= least))
    else:
        with np.errstate(over="ignore"):  # in float32
            at = int(np.count_nonzero(ranking.thresholds >= wanted))
    if purpose == "threshold":
        value = float(wanted)
    elif at > 0:
        value = float(ranking.thresholds[at - 1])
    else:
        value = inf if ranking.thresholds[0] < inf else nan
    rows = float(tp[at] + fp[at])
    return OperatingPoint(
        threshold=value,
        tpr=float(tp[at] / tp[-1]),
        fpr=float(fp[at] / fp[-1]),
        precision=float(tp[at] / rows) if rows > 0.0 else nan,
        rows=rows,
    )


def _first(counts: Weights, at: int) -> int:
    """Return the first position with the count of position ``at``."""
    return int(np.searchsorted(counts, counts[at], side="left"))


def _precise(tp: Weights, fp: Weights, wanted: float, slack: float) -> int:
    called = tp[1:] + fp[1:]
    reached = tp[1:] / called
    fit = np.flatnonzero(reached >= wanted - slack * (called[-1] / called))
    if fit.size == 0:
        raise ValueError(
            f"no threshold has a precision of {wanted:g}; the highest is "
            f"{reached.max():.4g}"
        )
    # Adding negatives alone lowers precision: of thresholds with equal recall the first
    # is the most precise, and meets the criterion if any does.
    return _first(tp, int(fit[-1]) + 1)


def _check(purpose: str, wanted: float) -> None:
    if purpose in ("fpr", "tpr", "precision"):
        low = "(" if purpose == "precision" else "["
        check_share(purpose, wanted, low)
    elif purpose == "cost_ratio":
        if not (isfinite(wanted) and wanted > 0.0):
            raise ValueError(f"cost_ratio must be finite and above 0, not be {wanted}")
    elif purpose == "rows":
        if not wanted >= 0.0:
            raise ValueError(f"rows={wanted}: expected a number of rows, 0 or more.")
    elif wanted != wanted:
        raise ValueError("threshold is NaN")


class Confusion(NamedTuple):
    """Counts and rates if rows that score at least the threshold are positive."""

    threshold: float
    tp: float
    fp: float
    fn: float
    tn: float
    recall: Interval  # share of the positives that are found: sensitivity
    fpr: Interval  # share of the negatives that are called positive
    precision: Interval  # share of positives among the called; NaN if there are none
    npv: Interval  # share of negatives among the others
    accuracy: Interval
    rows_per_hit: float  # called rows for each true positive; also "needed to evaluate"


class BestThreshold(NamedTuple):
    """The highest value of a measure, and its threshold."""

    value: float
    threshold: float


class DecisionCurve(NamedTuple):
    """Net benefit by threshold probability."""

    threshold: NDArray[np.float64]
    net_benefit: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    treat_all: NDArray[np.float64]  # net benefit of calling every row positive


def confusion_at(
    y: ArrayLike,
    score: ArrayLike,
    threshold: float,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Confusion:
    """Return the confusion matrix at a threshold, and its rates with intervals.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    threshold : float
        Rows that score at least this are called positive.
    level : float, default=0.95
        Confidence level of Wilson's intervals.
    sample_weight : array-like of shape (n_rows,), optional
        Frequency weights: weight k counts as k rows, also for the intervals.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    Confusion
        Named tuple (threshold, tp, fp, fn, tn, recall, fpr, precision, npv, accuracy,
        rows_per_hit).

    Examples
    --------
    >>> from aucmax.metrics import confusion_at
    >>> found = confusion_at([0, 0, 0, 1, 1], [0.1, 0.2, 0.4, 0.3, 0.8], 0.3)
    >>> found.tp, found.fp, found.fn, found.tn
    (2.0, 1.0, 0.0, 2.0)
    >>> found.rows_per_hit
    1.5
    """
    check_level(level)
    if threshold != threshold:
        raise ValueError("threshold is NaN")
    ranking = steps(y, score, sample_weight, pos_label)
    with np.errstate(over="ignore"):  # in float32
        at = int(np.count_nonzero(ranking.thresholds >= threshold))
    return confusion(ranking, at, level, float(threshold))


def confusion(
    ranking: Steps, at: int, level: float = 0.95, threshold: float | None = None
) -> Confusion:
    """Return :func:`confusion_at` of ranked rows, for the first ``at`` steps."""
    P, N = float(ranking.tp[-1]), float(ranking.fp[-1])
    tp, fp = (float(c[at - 1]) if at else 0.0 for c in (ranking.tp, ranking.fp))
    if threshold is None:
        threshold = float(ranking.thresholds[at - 1]) if at else inf

    def rate(hits: float, rows: float) -> Interval:
        if rows <= 0.0:
            return Interval(nan, nan, nan)
        return wilson(hits / rows, rows, level)

    fn, tn = P - tp, N - fp
    return Confusion(
        threshold=threshold,
        tp=tp,
        fp=fp,
        fn=fn,
        tn=tn,
        recall=rate(tp, P),
        fpr=rate(fp, N),
        precision=rate(tp, tp + fp),
        npv=rate(tn, fn + tn),
        accuracy=rate(tp + tn, P + N),
        rows_per_hit=(tp + fp) / tp if tp > 0.0 else nan,
    )


@nan_if_one_class
def f_score(
    y: ArrayLike,
    score: ArrayLike,
    threshold: float,
    *,
    beta: float = 1.0,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the F-score at a threshold.

    .. math:: F_\beta = \frac{(1 + \beta^2)\, TP}{(1 + \beta^2)\, TP + \beta^2 FN + FP}

    Parameters
    ----------
    y, score, threshold, sample_weight, pos_label
        As for :func:`confusion_at`.
    beta : float, default=1.0
        Recall counts ``beta`` times as much as precision.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from aucmax.metrics import f_score
    >>> f_score([0, 0, 0, 1, 1], [0.1, 0.2, 0.4, 0.3, 0.8], 0.3)
    0.8
    """
    found = confusion_at(
        y, score, threshold, sample_weight=sample_weight, pos_label=pos_label
    )
    return _f(found.tp, found.fp, found.tp + found.fn, _check_beta(beta))


@nan_if_one_class
def best_f_score(
    y: ArrayLike,
    score: ArrayLike,
    *,
    beta: float = 1.0,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> BestThreshold:
    """Return the highest F-score over all thresholds, and its threshold.

    Parameters
    ----------
    y, score, beta, sample_weight, pos_label
        As for :func:`f_score`.

    Returns
    -------
    BestThreshold
        Named tuple (value, threshold). The value is optimistic, as the threshold is
        chosen on the same rows.

    Examples
    --------
    >>> from aucmax.metrics import best_f_score
    >>> best_f_score([0, 0, 0, 1, 1], [0.1, 0.2, 0.4, 0.3, 0.8])
    BestThreshold(value=0.8, threshold=0.3)
    """
    ranking = steps(y, score, sample_weight, pos_label)
    b = _check_beta(beta)
    P = float(ranking.tp[-1])
    values = (1.0 + b) * ranking.tp / (ranking.tp + ranking.fp + b * P)
    at = int(np.argmax(values))
    return BestThreshold(float(values[at]), float(ranking.thresholds[at]))


def _f(tp: float, fp: float, positives: float, square: float) -> float:
    return (1.0 + square) * tp / (tp + fp + square * positives)


def _check_beta(beta: float) -> float:
    if not 0.0 < beta < inf:
        raise ValueError(f"beta={beta}: expected a number above 0.")
    return beta * beta


@nan_if_one_class
def best_accuracy(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> BestThreshold:
    """Return the highest accuracy over all thresholds, and its threshold.

    The accuracy at the optimal point of the ROC curve (OPTROC): for the classes of the
    data, and equal costs of both errors.

    Parameters
    ----------
    y, score, sample_weight, pos_label
        As for :func:`auc`.

    Returns
    -------
    BestThreshold
        Named tuple (value, threshold); the threshold is infinite if it is best to call
        no row positive.

    Examples
    --------
    >>> from aucmax.metrics import best_accuracy
    >>> best_accuracy([0, 0, 0, 1, 1], [0.1, 0.2, 0.4, 0.3, 0.8])
    BestThreshold(value=0.8, threshold=0.8)
    """
    ranking = steps(y, score, sample_weight, pos_label)
    N = float(ranking.fp[-1])
    right = np.append(N, ranking.tp + (N - ranking.fp))
    at = int(np.argmax(right))
    value = float(right[at] / (ranking.tp[-1] + N))
    return BestThreshold(value, float(ranking.thresholds[at - 1]) if at else inf)


@nan_if_one_class
def lift_area(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the area under the cumulative gains chart.

    The chart shows the share of the positives found against the share of rows called
    positive. With the share :math:`\pi` of positives its area is :math:`\pi/2 + (1 -
    \pi) A` for the AUC A. Times the number of positives it is the area under a lift
    chart that counts them.

    Parameters
    ----------
    y, score, sample_weight, pos_label
        As for :func:`auc`.

    Returns
    -------
    float
        Between 0 and 1; a random ranking has 0.5.

    Examples
    --------
    >>> from aucmax.metrics import lift_area
    >>> lift_area([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.625
    """
    _, tp, fp = steps(y, score, sample_weight, pos_label)
    share, gain = with_zero((tp + fp) / (tp[-1] + fp[-1])), with_zero(tp / tp[-1])
    return 0.5 * float(np.diff(share) @ (gain[1:] + gain[:-1]))


@nan_if_one_class
def ks_statistic(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> BestThreshold:
    """Return the Kolmogorov-Smirnov statistic: the largest TPR - FPR.

    Also known as Youden's index at its best threshold.

    Parameters
    ----------
    y, score, sample_weight, pos_label
        As for :func:`auc`.

    Returns
    -------
    BestThreshold
        Named tuple (value, threshold).

    Examples
    --------
    >>> from aucmax.metrics import ks_statistic
    >>> ks_statistic([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    BestThreshold(value=0.5, threshold=0.8)
    """
    thresholds, tp, fp = steps(y, score, sample_weight, pos_label)
    gap = tp / tp[-1] - fp / fp[-1]
    at = int(np.argmax(gap))
    return BestThreshold(max(float(gap[at]), 0.0), float(thresholds[at]))


def net_benefit(
    y: ArrayLike,
    probability: ArrayLike,
    *,
    thresholds: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> DecisionCurve:
    r"""Return the decision curve: the net benefit by threshold probability.

    At the threshold t, a false positive costs :math:`t / (1 - t)` of what a true
    positive brings [1]_:

    .. math:: NB(t) = \frac{TP}{n} - \frac{FP}{n} \frac{t}{1 - t}.

    A model is useful where its net benefit is above those of calling all rows positive
    (``treat_all``) and none (zero).

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes, as for :func:`auc`.
    probability : array-like of shape (n_rows,)
        Calibrated probabilities of the positive class.
    thresholds : array-like, optional
        Threshold probabilities between 0 and 1; by default 0.01, 0.02, …, 0.99.
    level : float, default=0.95
        Confidence level.
    sample_weight : array-like of shape (n_rows,), optional
        Row weights; for the intervals the rows have their effective number.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    DecisionCurve
        Named tuple (threshold, net_benefit, low, high, treat_all) of arrays. The
        interval is normal, with the variance of a mean over the rows; the share of
        positives is estimated from the same rows and included. It has no width where no
        row is called positive.

    References
    ----------
    .. [1] A. J. Vickers, E. B. Elkin: Decision curve analysis: a novel method for
       evaluating prediction models. Medical Decision Making 26 (2006).

    Examples
    --------
    >>> from aucmax.metrics import net_benefit
    >>> y, p = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.6, 0.6, 0.9, 0.9]
    >>> curve = net_benefit(y, p, thresholds=[0.15, 0.5])
    >>> curve.net_benefit.round(3).tolist(), curve.treat_all.round(3).tolist()
    ([0.456, 0.25], [0.412, 0.0])
    """
    check_level(level)
    grid = np.arange(1, 100) / 100 if thresholds is None else np.asarray(thresholds)
    grid = grid.astype(np.float64)
    if grid.ndim != 1 or not ((grid > 0.0) & (grid < 1.0)).all():
        raise ValueError("thresholds must be a list of numbers between 0 and 1")
    ranking = steps(y, check_probabilities(probability), sample_weight, pos_label)
    n = float(ranking.tp[-1] + ranking.fp[-1])
    at = np.searchsorted(-ranking.thresholds, -grid, side="right")
    tp, fp = (with_zero(counts)[at] / n for counts in (ranking.tp, ranking.fp))
    price = grid / (1.0 - grid)
    value = tp - price * fp
    effective = n
    if sample_weight is not None:
        weight = np.asarray(sample_weight, np.float64)
        effective = effective_number(weight, weight.size)
    error = np.sqrt((tp + price**2 * fp - value**2) / effective)
    half = normal_quantile(level) * error
    rate = float(ranking.tp[-1]) / n
    treat_all = rate - price * (1.0 - rate)
    return DecisionCurve(grid, value, value - half, value + half, treat_all)
