"""Choice of a decision threshold."""

from math import inf, isfinite, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aucmax.metrics.pair_counts import Weights
from aucmax.metrics.roc_steps import Steps, check_share, rounding, steps, with_zero


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
