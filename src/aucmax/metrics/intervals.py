"""Confidence intervals of proportions, which other intervals are built from."""

from math import exp, inf, log, sqrt
from statistics import NormalDist
from typing import NamedTuple

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
