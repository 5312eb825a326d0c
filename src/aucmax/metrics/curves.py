"""The ROC curve."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics.roc_steps import Steps, steps, with_zero


class ROCCurve(NamedTuple):
    """The points of a ROC curve, from (0, 0) to (1, 1)."""

    fpr: NDArray[np.float64]  # share of the negatives that score at least the threshold
    tpr: NDArray[np.float64]  # share of the positives that score at least the threshold
    thresholds: NDArray[np.float64]  # decreasing, from inf


def roc_curve(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    drop_intermediate: bool = True,
) -> ROCCurve:
    r"""Return the points of the ROC curve, one for each distinct score.

    A row is predicted positive if its score is at least the threshold t:

    .. math:: tpr(t) = P(s \ge t \mid +), \qquad fpr(t) = P(s \ge t \mid -).

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    sample_weight : array-like of shape (n_rows,), optional
        Row weights; rows of weight zero give no threshold.
    pos_label : label, optional
        Positive class; by default the larger label.
    drop_intermediate : bool, default=True
        Leave out points on a straight line between their neighbours with equal steps;
        the curve and its area stay the same.

    Returns
    -------
    ROCCurve
        Named tuple (fpr, tpr, thresholds) of arrays, with the values of scikit-learn's
        function of the same name.

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
    """Return :func:`roc_curve` of ranked rows."""
    thresholds, tp, fp = ranking
    if drop_intermediate and tp.size > 2:
        step_up, step_right = np.diff(tp), np.diff(fp)
        corner = np.ones(tp.size, dtype=np.bool_)
        corner[1:-1] = step_up[1:] != step_up[:-1]
        corner[1:-1] |= step_right[1:] != step_right[:-1]
        thresholds, tp, fp = thresholds[corner], tp[corner], fp[corner]
    return ROCCurve(
        fpr=with_zero(fp / fp[-1]),
        tpr=with_zero(tp / tp[-1]),
        thresholds=np.append(np.inf, thresholds.astype(np.float64)),
    )
