"""The ROC curve."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics.roc_steps import Steps, from_zero, steps


class ROCCurve(NamedTuple):
    """The points of a ROC curve, from (0, 0) to (1, 1)."""

    fpr: NDArray[np.float64]  # share of the negatives that score at least the threshold
    tpr: NDArray[np.float64]  # share of the positives that do
    thresholds: NDArray[np.float64]  # falling, from inf


def roc_curve(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    drop_intermediate: bool = True,
) -> ROCCurve:
    r"""Return the points of the ROC curve, one for each distinct score.

    A row is called positive when its score is at least the threshold t:

    .. math:: tpr(t) = P(s \ge t \mid +), \qquad fpr(t) = P(s \ge t \mid -).

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
    drop_intermediate : bool, default=True
        Leave out a point when the step to it equals the step from it: the curve drawn
        through the points, and its area, stay the same.

    Returns
    -------
    ROCCurve
        Named tuple (fpr, tpr, thresholds) of arrays; the values are those of
        scikit-learn's function of the same name.

    Notes
    -----
    Each class is sorted by value and the two are scanned once [1]_.

    References
    ----------
    .. [1] T. Fawcett: An introduction to ROC analysis. Pattern Recognition Letters 27
       (2006), algorithm 1.

    Examples
    --------
    >>> from aucmax.metrics import roc_curve
    >>> fpr, tpr, thresholds = roc_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> fpr.tolist(), tpr.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    >>> thresholds.tolist()
    [inf, 0.8, 0.4, 0.35, 0.1]
    """
    return roc_points(steps(y, score, sample_weight, pos_label), drop_intermediate)


def roc_points(ranking: Steps, drop_intermediate: bool = True) -> ROCCurve:
    """Return :func:`roc_curve` of rows that have been ranked."""
    thresholds, tp, fp = ranking
    if drop_intermediate and tp.size > 2:
        step_up, step_right = np.diff(tp), np.diff(fp)
        corner = np.ones(tp.size, dtype=np.bool_)
        corner[1:-1] = step_up[1:] != step_up[:-1]
        corner[1:-1] |= step_right[1:] != step_right[:-1]
        thresholds, tp, fp = thresholds[corner], tp[corner], fp[corner]
    return ROCCurve(
        fpr=from_zero(fp / fp[-1]),
        tpr=from_zero(tp / tp[-1]),
        thresholds=np.append(np.inf, thresholds.astype(np.float64)),
    )
