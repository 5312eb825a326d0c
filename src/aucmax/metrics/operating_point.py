"""Where to put the threshold."""

from math import inf, isfinite, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aucmax.metrics.ranking import Weights
from aucmax.metrics.roc_steps import Steps, check_share, from_zero, rounding, steps


class OperatingPoint(NamedTuple):
    """What comes of calling rows positive that score at least the threshold."""

    threshold: float
    tpr: float  # share of the positives that are called so: recall
    fpr: float  # share of the negatives that are
    precision: float  # share of positives among what is; NaN if nothing is
    rows: float  # number of rows, or their weight, that are


def operating_point(
    y: ArrayLike,
    score: ArrayLike,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    precision: float | None = None,
    cost_ratio: float | None = None,
    threshold: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> OperatingPoint:
    r"""Return the best threshold for a purpose, and what it does.

    Give one of the purposes. Only what a threshold can do is considered, so nothing is
    interpolated and tied rows stay together. Among thresholds that serve equally well,
    the highest is taken, which calls the fewest rows positive.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes: numbers, booleans or strings.
    score : array-like of shape (n_rows,)
        Higher means more likely positive. Infinite scores are ranked, NaN is an error.
        float32 is ranked as it is, any other type as float64.
    fpr : float, optional
        Find the most positives with a false positive rate of at most this.
    tpr : float, optional
        Accept the fewest negatives with a true positive rate of at least this.
    precision : float, optional
        Find the most positives with a precision of at least this.
    cost_ratio : float, optional
        Pay the least, if a false positive costs ``cost_ratio`` times as much as a
        positive that is missed:

        .. math:: \min_t \; r \, FP(t) + FN(t).
    threshold : float, optional
        Call rows positive that score at least this, compared as NumPy does: a plain
        number is rounded to float32 if the scores are.
    sample_weight : array-like of shape (n_rows,), optional
        Weight k is the row k times over. Sums of weights meet a rate that they miss by
        rounding: three of ten rows of weight 0.1 are 0.3 of them.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    OperatingPoint
        Named tuple (threshold, tpr, fpr, precision, rows). Calling ``score >=
        threshold`` positive on the same rows gives just these numbers. If it is best to
        call nothing positive, the threshold is infinite (NaN if a score is), and
        precision is NaN.

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
        "threshold": threshold,
    }
    purposes = [(name, value) for name, value in given.items() if value is not None]
    if len(purposes) != 1:
        names = ", ".join(name for name, _ in purposes) or "none of them"
        raise ValueError(
            "give one of fpr, tpr, precision, cost_ratio and threshold, not " + names
        )
    purpose, wanted = purposes[0]
    _check(purpose, wanted)
    ranking = steps(y, score, sample_weight, pos_label)
    return point(ranking, purpose, wanted)


def point(ranking: Steps, purpose: str, wanted: float) -> OperatingPoint:
    """Return :func:`operating_point` of rows that have been ranked."""
    tp, fp = from_zero(ranking.tp), from_zero(ranking.fp)  # place 0: nothing is called
    slack = rounding(ranking)
    if purpose == "fpr":
        most = wanted + slack
        at = _first(tp, int(np.searchsorted(fp / fp[-1], most, side="right")) - 1)
    elif purpose == "tpr":
        at = int(np.searchsorted(tp / tp[-1], wanted - slack, side="left"))
    elif purpose == "precision":
        at = _precise(tp, fp, wanted, slack)
    elif purpose == "cost_ratio":
        cost = wanted * fp - tp
        least = cost.min() + 2.0 * slack * (wanted * fp[-1] + tp[-1])
        at = int(np.argmax(cost <= least))
    else:
        with np.errstate(over="ignore"):  # of float32
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
    """Return the first place that has what place ``at`` has."""
    return int(np.searchsorted(counts, counts[at], side="left"))


def _precise(tp: Weights, fp: Weights, wanted: float, slack: float) -> int:
    called = tp[1:] + fp[1:]
    reached = tp[1:] / called
    fit = np.flatnonzero(reached >= wanted - slack * (called[-1] / called))
    if fit.size == 0:
        raise ValueError(
            f"no threshold has a precision of {wanted:g}: the highest is "
            f"{reached.max():.4g}"
        )
    # Precision falls wherever negatives alone are added: of a run of equal recall,
    # the first is the most precise, and it fits if any does.
    return _first(tp, int(fit[-1]) + 1)


def _check(purpose: str, wanted: float) -> None:
    if purpose in ("fpr", "tpr", "precision"):
        low = "(" if purpose == "precision" else "["
        check_share(purpose, wanted, low)
    elif purpose == "cost_ratio":
        if not (isfinite(wanted) and wanted > 0.0):
            raise ValueError(f"cost_ratio must be finite and above 0, not be {wanted}")
    elif wanted != wanted:
        raise ValueError("threshold is NaN")
