"""Convex hull of the ROC curve, and the expected cost that follows from it."""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics.pair_counts import Weights
from aucmax.metrics.roc_steps import check_share, steps, with_zero


class CostCurve(NamedTuple):
    """Lowest expected cost by operating condition."""

    condition: NDArray[np.float64]  # weight of false negatives: 0 to 1
    cost: NDArray[np.float64]  # 0 to 1; min(condition, 1 - condition) is trivial
    threshold: NDArray[np.float64]


class ROCHull(NamedTuple):
    """The convex hull of a ROC curve."""

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    area: float


def cost_curve(
    y: ArrayLike,
    score: ArrayLike,
    *,
    conditions: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> CostCurve:
    r"""Return the lowest expected cost for each operating condition.

    With the weight :math:`c = \pi c_{FN} / (\pi c_{FN} + (1 - \pi) c_{FP})` of false
    negatives, which combines the share of positives and the costs of both errors, the
    normalised cost of a threshold is :math:`c\, FNR + (1 - c)\, FPR` [1]_.

    Parameters
    ----------
    y, score, sample_weight, pos_label
        As for :func:`auc`.
    conditions : array-like, optional
        Weights c from 0 to 1; by default 0, 0.01, …, 1.

    Returns
    -------
    CostCurve
        Named tuple (condition, cost, threshold) of arrays.

    References
    ----------
    .. [1] C. Drummond, R. C. Holte: Cost curves: an improved method for visualizing
       classifier performance. Machine Learning 65 (2006).

    Examples
    --------
    >>> from aucmax.metrics import cost_curve
    >>> cost_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], conditions=[0.2, 0.5]).cost
    array([0.1 , 0.25])
    """
    grid = np.linspace(0.0, 1.0, 101) if conditions is None else conditions
    c = np.atleast_1d(np.asarray(grid, np.float64))
    for one in c.tolist():
        check_share("conditions", one, "[")
    hull = roc_hull(y, score, sample_weight=sample_weight, pos_label=pos_label)
    cost = np.outer(c, 1.0 - hull.tpr) + np.outer(1.0 - c, hull.fpr)
    best = np.argmin(cost, axis=1)
    return CostCurve(c, cost[np.arange(c.size), best], hull.thresholds[best])


def roc_hull(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> ROCHull:
    """Return the convex hull of the ROC curve.

    Only its thresholds are best for some costs and some share of positives [1]_.

    Parameters
    ----------
    y, score, sample_weight, pos_label
        As for :func:`auc`.

    Returns
    -------
    ROCHull
        Named tuple (fpr, tpr, thresholds, area), from (0, 0) to (1, 1).

    References
    ----------
    .. [1] F. Provost, T. Fawcett: Robust classification for imprecise environments.
       Machine Learning 42 (2001).

    Examples
    --------
    >>> from aucmax.metrics import roc_hull
    >>> hull = roc_hull([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> hull.fpr.tolist(), hull.tpr.tolist(), hull.area
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0], 0.875)
    """
    ranking = steps(y, score, sample_weight, pos_label)
    fpr = with_zero(ranking.fp / ranking.fp[-1])
    tpr = with_zero(ranking.tp / ranking.tp[-1])
    kept = _hull(fpr, tpr)
    thresholds = np.append(inf, ranking.thresholds.astype(np.float64))[kept]
    x, h = fpr[kept], tpr[kept]
    area = 0.5 * float(np.diff(x) @ (h[1:] + h[:-1]))
    return ROCHull(x, h, thresholds, area)


def _hull(x: Weights, y: Weights) -> NDArray[np.intp]:
    """Return the points of the upper hull, found in one scan."""
    # Increasing shares increase the slope: the pooled slopes of an antitonic fit.
    from scipy.optimize import isotonic_regression  # slow import

    # Along the diagonal widths are zero only where weights are lost in rounding.
    place = np.flatnonzero(np.append(True, np.diff(x + y) > 0.0))
    turned, along = (y - x + 1.0)[place] / 2.0, (x + y)[place] / 2.0
    width = np.diff(along)
    slope = np.diff(turned) / width
    fitted = isotonic_regression(slope, weights=width, increasing=False).x
    corner = np.flatnonzero(np.abs(np.diff(fitted)) > 1e-12) + 1
    return np.append(place[np.append(0, corner)], x.size - 1)
