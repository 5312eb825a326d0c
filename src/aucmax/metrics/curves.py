"""The ROC curve: points, intervals of rates and thresholds, bands, hull, cost."""

from math import inf, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics._ranking import (
    Classes,
    Steps,
    Weights,
    check_level,
    check_share,
    classes,
    nan_if_one_class,
    positives,
    steps,
    with_zero,
)
from aucmax.metrics._variance import (
    Groups,
    Interval,
    effective_number,
    effective_trials,
    read_groups,
    roc_rates,
    shares,
)


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


Kind = Literal["pointwise", "simultaneous"]

_WINDOW = 9.0  # standard deviations of a count that are not negligible
_PARTS = 256  # of a mixture


class ROCBand(NamedTuple):
    """A ROC curve on a grid of false positive rates, with a confidence band."""

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@nan_if_one_class
def tpr_at(
    y: ArrayLike,
    score: ArrayLike,
    fpr: float,
    *,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Interval:
    r"""Return the true positive rate at a false positive rate, with an interval.

    This is the sensitivity at the specificity 1 - ``fpr``, or the recall at a false
    positive rate. The threshold is unknown and estimated from the same rows, and the
    interval includes its uncertainty.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    fpr : float
        False positive rate, between 0 and 1.
    level : float, default=0.95
        Confidence level.
    groups : array-like of shape (n_rows,), optional
        Cluster of each row, as for :func:`auc_interval`. Each class then counts by
        its effective number of rows for the rate at the threshold.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights, as for :func:`auc_interval`.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    Interval
        Named tuple (value, low, high). The value is on the ROC curve with straight
        lines between its points.

    Notes
    -----
    The number of negatives above the true threshold is binomial with n and ``fpr``,
    whatever the distribution of the scores. So the threshold is between negatives i and
    i + 1 with a known probability :math:`P_i`, and then about half of the positives
    between the two are above it, :math:`h_i` of m in all. The interval is between
    quantiles of

    .. math:: \sum_i P_i \, \mathrm{Beta}(h_i + \tfrac12,\; m - h_i + \tfrac12),

    a mixture of the intervals of Jeffreys for a proportion [1]_. There are no random
    draws. In simulations of 95 % intervals with 20 or 200 positives, as many or ten
    times as many negatives, AUCs of 0.7 and 0.95 and rates from 0.05 to 0.5, coverage
    was 95 % to 99 %, above 97 % with 20 negatives or a high rate, where few rows
    decide. Intervals from the bootstrap's variance [2]_ fell to 75 %, where fewer than
    two rows are expected beyond the threshold. ``benchmarks/intervals.py statistics``
    prints the table.

    References
    ----------
    .. [1] L. D. Brown, T. T. Cai, A. DasGupta: Interval estimation for a binomial
       proportion. Statistical Science 16 (2001).
    .. [2] X. H. Zhou, G. Qin: Improved confidence intervals for the sensitivity at a
       fixed level of specificity of a continuous-scale diagnostic test. Statistics in
       Medicine 24 (2005).

    Examples
    --------
    >>> from aucmax.metrics import tpr_at
    >>> y = [0] * 20 + [1] * 20
    >>> score = list(range(20)) + list(range(10, 30))
    >>> value, low, high = tpr_at(y, score, 0.1)
    >>> print(f"{value:.2f} in [{low:.2f}, {high:.2f}]")
    0.60 in [0.19, 0.83]
    """
    check_level(level)
    check_share("fpr", fpr, "[")
    rows = classes(y, score, sample_weight, pos_label)
    sizes = None
    if groups is not None:
        clusters = read_groups(groups, positives(y, pos_label), sample_weight)
        sizes = _cluster_sizes(rows, clusters, fpr)
    return _rates(rows, np.array([float(fpr)]), level, sizes)[0]


@nan_if_one_class
def fpr_at(
    y: ArrayLike,
    score: ArrayLike,
    tpr: float,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Interval:
    """Return the false positive rate at a true positive rate, with an interval.

    One minus the specificity at a sensitivity: the price of a required recall.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    tpr : float
        True positive rate, between 0 and 1.
    level, sample_weight, pos_label
        As for :func:`tpr_at`, whose method is used with the classes exchanged.

    Returns
    -------
    Interval
        Named tuple (value, low, high).

    Examples
    --------
    >>> from aucmax.metrics import fpr_at
    >>> y = [0] * 20 + [1] * 20
    >>> score = list(range(20)) + list(range(10, 30))
    >>> value, low, high = fpr_at(y, score, 0.9)
    >>> print(f"{value:.2f} in [{low:.2f}, {high:.2f}]")
    0.40 in [0.17, 0.81]
    """
    check_level(level)
    check_share("tpr", tpr, "[")
    pos, neg, w_pos, w_neg = classes(y, score, sample_weight, pos_label)
    exchanged = Classes(-neg, -pos, w_neg, w_pos)
    found = _rates(exchanged, np.array([1.0 - float(tpr)]), level)[0]
    return Interval(1.0 - found.value, 1.0 - found.high, 1.0 - found.low)


@nan_if_one_class
def threshold_interval(
    y: ArrayLike,
    score: ArrayLike,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    level: float = 0.95,
    pos_label: object = None,
) -> Interval:
    """Return the threshold with a given rate in the population, with an interval.

    The threshold is a quantile of the scores of one class. Its interval is between two
    order statistics, whose ranks come from the binomial distribution: it holds for any
    continuous scores and any number of rows.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    fpr, tpr : float, optional
        False, or true, positive rate of the threshold, between 0 and 1; give one.
    level : float, default=0.95
        Confidence level. The coverage is at least this, and more for few rows.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    Interval
        Named tuple (value, low, high). The value has the median rank of the binomial
        distribution. An end is infinite if the rows are too few to bound it.

    See Also
    --------
    operating_point : the threshold that is best on these rows.

    Examples
    --------
    >>> from aucmax.metrics import threshold_interval
    >>> y = [0] * 200 + [1] * 20
    >>> score = list(range(200)) + list(range(190, 210))
    >>> threshold_interval(y, score, fpr=0.1)
    Interval(value=180.0, low=170.0, high=188.0)
    """
    check_level(level)
    if (fpr is None) == (tpr is None):
        raise ValueError("give one of fpr and tpr")
    name, rate = ("fpr", fpr) if tpr is None else ("tpr", tpr)
    share = check_share(name, rate, "(", ")")
    rows = classes(y, score, None, pos_label)
    falling = -np.sort(-(rows.neg if tpr is None else rows.pos).astype(np.float64))
    from scipy.stats import binom  # slow import

    n, tail = falling.size, 0.5 * (1.0 - level)
    # Rows at or above the true threshold are binomial.
    fewest, at, most = (int(binom.ppf(q, n, share)) for q in (tail, 0.5, 1.0 - tail))
    high = float(falling[fewest - 1]) if fewest >= 1 else np.inf
    low = float(falling[most]) if most < n else -np.inf
    return Interval(float(falling[max(at - 1, 0)]), low, high)


def roc_band(
    y: ArrayLike,
    score: ArrayLike,
    *,
    kind: Kind = "pointwise",
    fpr: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> ROCBand:
    r"""Return the ROC curve with a confidence band.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    kind : {"pointwise", "simultaneous"}, default="pointwise"
        "pointwise": at each false positive rate the interval of :func:`tpr_at`; the
        band covers each point of the true curve with the given confidence.
        "simultaneous": covers the whole curve, with the fixed width of Kolmogorov and
        Smirnov for both classes [1]_; wider, conservative, and valid for any number of
        rows.
    fpr : array-like, optional
        False positive rates of the grid, increasing; by default 101 from 0 to 1.
    level : float, default=0.95
        Confidence level.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights, for the pointwise band only.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    ROCBand
        Named tuple (fpr, tpr, low, high) of arrays.

    Notes
    -----
    Simultaneous bands of 95 % covered the whole curve in more than 99 % of simulated
    draws with 20 and 200 positives. They allow for the largest deviations of both
    classes at the same threshold, which is rare; no other band is valid for few rows
    whatever the distribution of the scores.

    References
    ----------
    .. [1] G. Campbell: Advances in statistical methodology for the evaluation of
       diagnostic and laboratory tests. Statistics in Medicine 13 (1994).

    Examples
    --------
    >>> from aucmax.metrics import roc_band
    >>> y = [0] * 20 + [1] * 20
    >>> score = list(range(20)) + list(range(10, 30))
    >>> band = roc_band(y, score, fpr=[0.1, 0.3])
    >>> band.low.round(2).tolist(), band.high.round(2).tolist()
    ([0.19, 0.51], [0.83, 0.99])
    """
    check_level(level)
    grid = np.linspace(0.0, 1.0, 101) if fpr is None else np.asarray(fpr, np.float64)
    if grid.ndim != 1 or not ((grid >= 0.0) & (grid <= 1.0)).all():
        raise ValueError("fpr must be a list of rates between 0 and 1")
    if kind not in ("pointwise", "simultaneous"):
        raise ValueError(f"kind={kind!r}: expected 'pointwise' or 'simultaneous'.")
    rows = classes(y, score, sample_weight, pos_label)
    if kind == "pointwise":
        found = np.array(_rates(rows, grid, level)).T
        return ROCBand(grid, found[0], found[1], found[2])
    if sample_weight is not None:
        raise ValueError("a simultaneous band has no weights; leave them out")
    from scipy.stats import kstwo  # slow import

    # Both distribution functions within their bands, each with the root of the level.
    m, n = rows.pos.size, rows.neg.size
    up, right = (float(kstwo.ppf(sqrt(level), size)) for size in (m, n))
    _, curve_tpr, curve_fpr = roc_rates(rows)
    at = np.interp(grid, curve_fpr, curve_tpr)
    # Steps, not lines: the band is valid for the empirical distribution functions.
    low = _left_limit(curve_fpr, curve_tpr, grid - right) - up
    high = _right_limit(curve_fpr, curve_tpr, grid + right) + up
    return ROCBand(grid, at, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))


def _left_limit(x: Weights, y: Weights, at: Weights) -> Weights:
    """Return the lowest height of a step curve at or left of each place."""
    place = np.searchsorted(x, at - 1e-12, side="left") - 1
    return np.where(place >= 0, y[np.maximum(place, 0)], 0.0)


def _right_limit(x: Weights, y: Weights, at: Weights) -> Weights:
    """Return the height that a step curve reaches at or right of each place."""
    place = np.searchsorted(x, at + 1e-12, side="left")
    return np.where(place < x.size, y[np.minimum(place, x.size - 1)], 1.0)


def _cluster_sizes(rows: Classes, groups: Groups, fpr: float) -> tuple[float, float]:
    """Return the effective numbers of both classes for the rates at a threshold."""
    pos, neg, w_pos, w_neg = rows
    order = np.argsort(-neg, kind="stable")
    reached = np.cumsum(shares(w_neg, neg.size)[order])
    edge = neg[order[min(int(np.searchsorted(reached, fpr)), neg.size - 1)]]
    return (
        effective_trials(pos >= edge, w_pos, groups.pos),
        effective_trials(neg >= edge, w_neg, groups.neg),
    )


def _rates(
    rows: Classes,
    grid: Weights,
    level: float,
    sizes: tuple[float, float] | None = None,
) -> list[Interval]:
    """Return the intervals of :func:`tpr_at` at several false positive rates.

    ``sizes`` are the effective numbers of positives and negatives.
    """
    _, tpr, fpr = roc_rates(rows)
    m, n = sizes or (
        effective_number(rows.w_pos, rows.pos.size),
        effective_number(rows.w_neg, rows.neg.size),
    )
    # Between distinct negatives: the number of negatives above, and the rate of
    # positives, of those in between half. Ties count half, too.
    moves = np.diff(fpr) > 0.0
    above = with_zero(n * fpr[1:][moves])
    height = np.concatenate([[0.0], 0.5 * (tpr[:-1] + tpr[1:])[moves], [1.0]])
    height = 0.5 * (height[:-1] + height[1:])
    return [
        Interval(1.0, 1.0, 1.0)
        if at >= 1.0
        else _mixture(float(np.interp(at, fpr, tpr)), above, height, at, m, n, level)
        for at in grid
    ]


def _mixture(
    value: float,
    above: Weights,
    height: Weights,
    fpr: float,
    m: float,
    n: float,
    level: float,
) -> Interval:
    """Return the quantiles of the mixture in the notes of :func:`tpr_at`."""
    from scipy.optimize import brentq  # slow imports
    from scipy.special import betainc

    width = _WINDOW * sqrt(n * fpr * (1.0 - fpr)) + 2.0
    first = max(int(np.searchsorted(above, n * fpr - width)) - 1, 0)
    last = int(np.searchsorted(above, n * fpr + width)) + 1
    counts, heights = above[first:last], height[first:last]
    # Probability that at least so many negatives are above the true threshold.
    reached = np.ones_like(counts)
    some = counts > 0.0
    reached[some] = betainc(counts[some], n - counts[some] + 1.0, fpr)
    chance = reached - np.append(reached[1:], 0.0)
    if chance.size > _PARTS:  # merge neighbours
        starts = np.linspace(0, chance.size, _PARTS, endpoint=False).astype(np.intp)
        mass = np.add.reduceat(chance, starts)
        mean = np.add.reduceat(chance * heights, starts)
        kept = mass > 0.0
        chance, heights = mass[kept], mean[kept] / mass[kept]
    hits = m * heights

    def below(x: float, tail: float) -> float:
        return float(chance @ betainc(hits + 0.5, m - hits + 0.5, x)) - tail

    tail = 0.5 * (1.0 - level)
    low, high = (brentq(below, 0.0, 1.0, args=(q,)) for q in (tail, 1.0 - tail))
    return Interval(value, min(low, value), max(high, value))


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
