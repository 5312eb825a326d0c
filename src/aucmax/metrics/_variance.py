r"""Variances and intervals that other measures are built from.

The area under the ROC curve of false positive rates up to a, with true positive rates
from b on, is a mean over the positives of :math:`V_i`, and over the negatives of
:math:`W_j`, up to constants. For the whole area these are DeLong's placements: the
share of negatives below a positive, and of positives above a negative. For a part they
are clipped at its borders, as moving a border has no other effect of first order.
Variances, also of clustered rows and of differences, follow from V and W alone.
"""

from math import exp, inf, log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.core.validation import refuse_mask
from aucmax.metrics._ranking import (
    Classes,
    Scores,
    Weights,
    merge_counts,
    score_counts,
    with_zero,
)

_PRIOR = 3.0  # rows that the prior variance counts as; see auc_interval


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    value: float
    low: float
    high: float


def normal_quantile(level: float) -> float:
    """Return the half width of a normal interval, in standard deviations."""
    return NormalDist().inv_cdf(0.5 * (1.0 + level))


def wilson(value: float, rows: float, level: float) -> Interval:
    """Return a proportion of ``rows`` trials with Wilson's interval."""
    more = normal_quantile(level) ** 2 / rows
    centre = (value + 0.5 * more) / (1.0 + more)
    half = sqrt(more * (value * (1.0 - value) + 0.25 * more)) / (1.0 + more)
    # Rounding could exceed the range.
    low, high = max(centre - half, 0.0), min(centre + half, 1.0)
    return Interval(value, min(low, value), max(high, value))


def clopper_pearson(share: float, rows: float, level: float) -> tuple[float, float]:
    """Return the exact interval of a proportion of ``rows`` trials, also fractional."""
    from scipy.special import betaincinv  # slow import, rarely needed

    tail = 0.5 * (1.0 - level)
    hits = share * rows
    low = betaincinv(hits, rows - hits + 1.0, tail) if share > 0.0 else 0.0
    high = betaincinv(hits + 1.0, rows - hits, 1.0 - tail) if share < 1.0 else 1.0
    return float(low), float(high)


def from_variance(
    value: float, variance: float, m: float, n: float, level: float
) -> Interval:
    """Return the interval of an area in [0, 1] of m positives and n negatives.

    The formula is derived in ``auc_interval``: Wilson's for a proportion of as many
    trials as the variance corresponds to, averaged with a prior. If the variance is not
    informative, it is Clopper and Pearson's for a proportion of min(m, n) trials.
    """
    k, spread = min(m, n), value * (1.0 - value)
    if k <= 1.0 or not (0.0 < variance < inf and spread > 0.0):
        return Interval(value, *clopper_pearson(value, k, level))
    known = 4.0 * spread * k
    prior = 0.5 * (1.0 / m + 1.0 / n)
    one_pair = (known * variance / spread + _PRIOR * prior) / (known + _PRIOR)
    return wilson(value, 1.0 / one_pair, level)


def logistic(x: float) -> float:
    """Return 1 / (1 + exp(-x)) without overflow."""
    return 1.0 / (1.0 + exp(-x)) if x >= 0.0 else exp(x) / (1.0 + exp(x))


def from_logit(value: float, se: float, level: float) -> Interval:
    """Return the normal interval on the logit scale, for 0 < value < 1."""
    centre = log(value / (1.0 - value))
    half = normal_quantile(level) * se / (value * (1.0 - value))
    return Interval(value, logistic(centre - half), logistic(centre + half))


_ROUNDING = 1e-26  # smaller variances are rounding errors


class Influence(NamedTuple):
    """Centred influence of the rows of both classes, times their share of the class."""

    pos: Weights  # share_i (V_i - mean)
    neg: Weights
    share_pos: Weights  # of sum one
    share_neg: Weights

    def minus(self, other: "Influence") -> "Influence":
        """Return the influence on a difference of two estimates of the same rows."""
        return self._replace(pos=self.pos - other.pos, neg=self.neg - other.neg)


def shares(weight: Weights | None, n: int) -> Weights:
    """Return the share of each row in its class."""
    return np.full(n, 1.0 / n) if weight is None else weight / weight.sum()


def influence_on_area(
    rows: Classes, max_fpr: float = 1.0, min_tpr: float = 0.0
) -> Influence:
    """Return the influence of the rows on their (partial) area."""
    pos, neg = rows.pos, rows.neg
    share_pos, share_neg = shares(rows.w_pos, pos.size), shares(rows.w_neg, neg.size)
    value, tpr, fpr = roc_rates(rows)
    end = float(np.interp(max_fpr, fpr, tpr))
    start = float(np.interp(min_tpr, tpr, fpr))
    V = _area_below(fpr[:-1], fpr[1:], max_fpr) - _area_below(fpr[:-1], fpr[1:], start)
    W = _mean_clipped(tpr[:-1], tpr[1:], min_tpr, max(end, min_tpr))
    if start >= max_fpr:  # the curve does not reach the part
        V, W = np.zeros_like(V), np.zeros_like(W)
    V, W = V[np.searchsorted(value, -pos)], W[np.searchsorted(value, -neg)]
    V, W = V - share_pos @ V, W - share_neg @ W
    return Influence(share_pos * V, share_neg * W, share_pos, share_neg)


def roc_rates(rows: Classes) -> tuple[Scores, Weights, Weights]:
    """Return the negated distinct scores, increasing, and both rates from (0, 0)."""
    value, tp, fp = merge_counts(
        score_counts(-rows.pos, rows.w_pos), score_counts(-rows.neg, rows.w_neg)
    )
    return value, with_zero(tp / tp[-1]), with_zero(fp / fp[-1])


def _area_below(low: Weights, high: Weights, at: float) -> Weights:
    """Return the area, up to a false positive rate, below the rise of one positive.

    The positive is tied with negatives between the rates ``low`` and ``high``.
    """
    inside = np.clip(at - low, 0.0, None)
    width = high - low
    ramp = np.minimum(inside, width)
    rise = np.divide(ramp**2, 2.0 * width, out=np.zeros_like(width), where=width > 0.0)
    return np.clip(at - high, 0.0, None) + rise


def _mean_clipped(low: Weights, high: Weights, least: float, most: float) -> Weights:
    """Return the mean of a rate clipped to a range, over a rise from low to high."""
    width = high - low
    below, above = np.clip(low, least, most), np.clip(high, least, most)

    def integral(t: Weights, clipped: Weights) -> Weights:
        # of clip(t): a line, a parabola, a line
        return clipped * t - 0.5 * clipped**2

    rise = integral(high, above) - integral(low, below)
    return np.divide(rise, width, out=below, where=width > 0.0)


def variance(found: Influence, groups: "Groups | None" = None) -> float:
    """Return the variance of an estimate; infinite if a class has a single row.

    It is the jackknife's for independent rows, or Obuchowski's (1997) for independent
    clusters of rows.
    """
    if groups is None:
        pos, neg = jackknife_errors(found)
        return rounded(float(pos @ pos) + float(neg @ neg))
    of_pos = np.bincount(groups.pos, found.pos, groups.n)
    of_neg = np.bincount(groups.neg, found.neg, groups.n)
    n_pos, n_neg = np.unique(groups.pos).size, np.unique(groups.neg).size
    if min(n_pos, n_neg) == 1:
        return inf
    return rounded(
        n_pos / (n_pos - 1.0) * float(of_pos @ of_pos)
        + n_neg / (n_neg - 1.0) * float(of_neg @ of_neg)
        + 2.0 * groups.n / (groups.n - 1.0) * float(of_pos @ of_neg)
    )


def rounded(variance: float) -> float:
    """Return zero instead of a rounding error, which may be negative."""
    return variance if variance > _ROUNDING else 0.0


def jackknife_errors(found: Influence) -> tuple[Weights, Weights]:
    """Return the error due to each row, whose squares add up to the variance.

    It is the change of the estimate without the row, times sqrt((n - 1) / n) for n rows
    of the class; infinite for a row that has all the weight of its class.
    """
    return (
        _class_errors(found.pos, found.share_pos),
        _class_errors(found.neg, found.share_neg),
    )


def _class_errors(influence: Weights, share: Weights) -> Weights:
    rest = 1.0 - share
    scale = sqrt((share.size - 1) / share.size)
    everything = np.full_like(rest, inf)
    return np.divide(scale * influence, rest, out=everything, where=rest > 0.0)


class Groups(NamedTuple):
    """The cluster of each row, as numbers from 0 to n - 1."""

    pos: NDArray[np.intp]
    neg: NDArray[np.intp]
    n: int


def read_groups(
    groups: ArrayLike, positive: NDArray[np.bool_], weight: Any = None
) -> Groups:
    """Validate the clusters and split them by class, without rows of weight zero."""
    kept = None if weight is None else np.asarray(weight) > 0.0
    codes = row_groups(groups, positive.size, kept)
    if kept is not None:
        positive = positive[kept]
    return Groups(codes[positive], codes[~positive], int(codes.max()) + 1)


def row_groups(
    groups: ArrayLike, n_rows: int, kept: NDArray[np.bool_] | None = None
) -> NDArray[np.intp]:
    """Return the number of the cluster of each row; there are at least two."""
    refuse_mask(groups, "groups")
    labels = np.asarray(groups)
    if labels.shape != (n_rows,):
        raise ValueError(f"groups has shape {labels.shape}, but y has {n_rows} rows")
    names, codes = group_codes(labels if kept is None else labels[kept], "groups")
    missing = labels != labels
    if kept is not None:
        missing &= kept
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"groups is {labels[row]} at row {row}; expected the group of each row, as "
            "rows of unknown groups would be one group. Leave these rows out, or give "
            "each a group of its own."
        )
    if names.size < 2:
        raise ValueError(
            f"groups holds one group only, {names.tolist()[0]!r}: the variance between "
            "groups is unknown; leave groups out if the rows are independent"
        )
    return codes


def group_codes(
    labels: NDArray[Any], name: str
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct groups, sorted, and the number of each row's group."""
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ValueError(
            f"{name} holds values that cannot be sorted, such as missing values among "
            "strings; give the missing ones a name"
        ) from None
    return names, codes


def effective_number(weight: Weights | None, n: int) -> float:
    """Return the effective number of ``n`` rows with weights (Kish 1965)."""
    if weight is None:
        return float(n)
    share = weight / weight.sum()
    return max(1.0, 1.0 / float(share @ share))


def effective_sizes(
    found: Influence, groups: Groups | None = None
) -> tuple[float, float]:
    """Return the effective numbers of positives and negatives.

    Clusters count by their weight, as if the rows of each were one.
    """
    pos, neg = found.share_pos, found.share_neg
    if groups is not None:
        pos = np.bincount(groups.pos, pos, groups.n).astype(np.float64)
        neg = np.bincount(groups.neg, neg, groups.n).astype(np.float64)
    return effective_number(pos, pos.size), effective_number(neg, neg.size)


def effective_trials(
    hit: NDArray[np.bool_],
    weight: Weights | None,
    group: NDArray[np.intp] | None,
    caution: float = 0.0,
) -> float:
    r"""Return the effective number of rows for the share of hits.

    As many independent rows give the share with the same variance. For a share of
    weight p and errors :math:`e_i = w_i (x_i - p)` it is :math:`\sum_i w_i / r` with

    .. math:: r = \frac{\sum_g (\sum_{i \in g} e_i)^2}{\sum_i w_i (x_i - p)^2},

    the variance of a share over clusters (rows without ``group``) in units of that of
    independent rows of weight 1. With few hits r is uncertain: with ``caution`` c, what
    the largest cluster adds to r counts once more, and c standard errors are added. r
    is at least the mean weight of a row and at most the weight of the heaviest cluster,
    which is that of clusters of equal rows.
    """
    w = np.ones(hit.size) if weight is None else weight
    own = np.arange(hit.size) if group is None else group
    total = float(w.sum())
    error = hit - float(w @ hit) / total
    of_group = np.bincount(own, w)
    squares = np.bincount(own, w * error) ** 2
    rows = np.bincount(own, w * error**2)
    least, most = float(w @ w) / total, float(of_group.max())
    spread = float(rows.sum())
    if not spread > 0.0:
        return total / most
    r = float(squares.sum()) / spread
    if caution > 0.0:
        r += max(float((squares - least * rows).max()), 0.0) / spread
    rest = squares - r * rows
    r += caution * sqrt(float(rest @ rest)) / spread
    return total / min(max(r, least), most)
