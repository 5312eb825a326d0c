"""Confidence intervals and tests of AUCs, by DeLong's variance in O(n log n)."""

from math import copysign, erfc, exp, expm1, inf, log, sqrt
from statistics import NormalDist
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics.inputs import Classes, as_scores, classes, positives
from aucmax.metrics.pair_counts import (
    Scores,
    Weights,
    mid_ranks,
    score_counts,
    split,
    weighted_win_fraction,
    wins,
)
from aucmax.metrics.roc_steps import Steps, check_level, increments, steps
from aucmax.metrics.top import wilson

Method = Literal["wilson", "logit", "wald"]

_ROUNDING = 1e-13  # smaller standard errors are rounding errors
_PRIOR = 3.0  # rows that the prior variance counts as; see auc_interval


class AUCInterval(NamedTuple):
    """An AUC and its confidence interval."""

    value: float
    low: float
    high: float
    se: float  # standard error


class AUCTest(NamedTuple):
    """The difference of two AUCs, its confidence interval, and a test of zero."""

    difference: float  # AUC of the first scores minus AUC of the second
    low: float
    high: float
    se: float  # standard error of the difference
    statistic: float  # standard normal when there is no difference
    pvalue: float  # two-sided


def auc_interval(
    y: ArrayLike,
    score: ArrayLike,
    *,
    level: float = 0.95,
    method: Method = "wilson",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> AUCInterval:
    r"""Return the AUC with a confidence interval.

    With the placements :math:`V_i` of the m positives (the share of negatives below
    each, ties half) and :math:`W_j` of the n negatives (the share of positives above),
    the variance of the AUC A is [1]_

    .. math:: \sigma^2 = \frac{S_V^2}{m} + \frac{S_W^2}{n},

    where S² are sample variances. A is then as accurate as a proportion of
    :math:`N = A (1 - A) / \sigma^2` independent trials. With few positives
    :math:`\sigma^2` is itself uncertain, and too small when A is too high, so 1/N is
    averaged with a prior. The interval is Wilson's [2]_ for a proportion of N trials:
    all :math:`\theta` with

    .. math:: (A - \theta)^2 \le z^2 \, \frac{\theta (1 - \theta)}{N},
              \qquad
              \frac1N = \frac{1}{w + 3} \left( w \frac{\sigma^2}{A (1 - A)}
              + 3 \, \frac{1/m + 1/n}{2} \right),
              \qquad w = 4 A (1 - A) \min(m, n).

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    level : float, default=0.95
        Confidence level: the coverage of the true AUC.
    method : {"wilson", "logit", "wald"}, default="wilson"
        "wilson" is the interval above. "logit" and "wald" use DeLong's variance alone,
        :math:`\mathrm{logit}\, A \pm z \sigma / (A (1 - A))` and
        :math:`A \pm z \sigma` cut to [0, 1], as other packages. For large classes all
        three agree.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights. A pair has the product of its two weights, but a row is one
        observation whatever its weight, as in a sample with unequal probabilities. The
        interval does not change if the weights of a class are multiplied by a number.
        For frequency weights (k equal rows as one of weight k) it is too wide.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    AUCInterval
        Named tuple (value, low, high, se); 0 <= low <= value <= high <= 1.

    Notes
    -----
    Placements are computed by sorting, in O((m + n) log(m + n)) [3]_.

    The prior in N is half of the largest possible variance, A(1 - A)/min(m, n) for m
    much smaller than n [4]_; exponential scores have it as A approaches 1 [5]_. It
    weighs as much as 3 positives at A = 0.5, and as 38 at A = 0.98, where few rows
    determine A. It was chosen by simulation, see ``benchmarks/intervals.py``.

    Limits: with 10, 20 and 50 positives, 10 to 100 times as many negatives and AUCs of
    0.5 to 0.98, intervals of 95 % covered the AUC in 93 % to 100 % of 2,000 draws of
    normal scores (positives with half, the same, or twice the standard deviation) and
    of exponential scores; "logit" in 64 % to 96 %. The price is width: for an AUC of
    0.95 or more, and where positives vary less than negatives, coverage is 98 % and
    more, as few rows do not show whether some positives are far below the others. With
    3 positives coverage was at least 89 %.

    The variance is not informative if A is 0 or 1 or all scores are equal (it is zero),
    or if a class has a single row (it is undefined). All methods then treat A as a
    proportion of k = min(m, n) independent pairs and give the interval of Clopper and
    Pearson. This is conservative: the variance of A is at most A(1 - A)/k [4]_, and a
    perfect ranking has probability at most :math:`A^k`, as k pairs without a common row
    must all be in order. So A = 1 gives :math:`[(\alpha/2)^{1/k}, 1]`, never an
    interval of zero width. The standard error is then still DeLong's, or the root of
    that bound if a class has a single row.

    With weights the variance is the jackknife's [6]_. With the share :math:`h_i` of row
    i in its class, and weighted placements, leaving the row out changes A by
    :math:`h_i (V_i - A) / (1 - h_i)`, and

    .. math:: \sigma^2 = \frac{m - 1}{m} \sum_{i \in +}
              \left( \frac{h_i (V_i - A)}{1 - h_i} \right)^2
              + \frac{n - 1}{n} \sum_{j \in -}
              \left( \frac{h_j (W_j - A)}{1 - h_j} \right)^2,

    at most A(1 - A). It equals DeLong's if all weights are equal, and makes no
    assumption on how weights and scores are related. In N and in k, m and n are then
    the effective numbers of rows :math:`1 / \sum_i h_i^2` [7]_.

    References
    ----------
    .. [1] E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson: Comparing the areas under
       two or more correlated receiver operating characteristic curves: a nonparametric
       approach. Biometrics 44 (1988).
    .. [2] E. B. Wilson: Probable inference, the law of succession, and statistical
       inference. Journal of the American Statistical Association 22 (1927).
    .. [3] X. Sun, W. Xu: Fast implementation of DeLong's algorithm for comparing the
       areas under correlated receiver operating characteristic curves. IEEE Signal
       Processing Letters 21 (2014).
    .. [4] D. van Dantzig: On the consistency and the power of Wilcoxon's two sample
       test. Indagationes Mathematicae 13 (1951).
    .. [5] J. A. Hanley, B. J. McNeil: The meaning and use of the area under a receiver
       operating characteristic (ROC) curve. Radiology 143 (1982).
    .. [6] J. N. Arvesen: Jackknifing U-statistics. Annals of Mathematical Statistics 40
       (1969).
    .. [7] L. Kish: Survey sampling. Wiley (1965).

    Examples
    --------
    >>> from aucmax.metrics import auc_interval
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> value, low, high, se = auc_interval(y, [1, 2, 4, 6, 3, 5, 7, 8])
    >>> print(f"{value:.4f} in [{low:.4f}, {high:.4f}]")
    0.8125 in [0.3671, 0.9700]
    """
    check_level(level)
    check_method(method)
    if sample_weight is None:
        return interval(steps(y, score, pos_label=pos_label), level, method)
    return _weighted(classes(y, score, sample_weight, pos_label), level, method)


def cv_auc_interval(
    y: ArrayLike,
    score: ArrayLike,
    folds: ArrayLike,
    *,
    level: float = 0.95,
    dependence: float = 0.0,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> AUCInterval:
    r"""Return a cross-validated AUC with a confidence interval.

    The rows of each fold are scored by a model fitted to the other folds. The AUC is
    the mean :math:`\frac1K \sum_k A_k` over the folds, as scores of different models
    are not comparable. Its variance is

    .. math:: \sigma^2 = \frac{1 + \rho}{K^2} \sum_k \sigma_k^2

    with DeLong's variance of each fold and the ``dependence`` :math:`\rho`. For
    :math:`\rho = 0` it is that of the influence curve [1]_, up to the degrees of
    freedom.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores by models that were not fitted to the row.
    folds : array-like of shape (n_rows,)
        Fold of each row; each fold has rows of both classes.
    level : float, default=0.95
        Confidence level.
    dependence : float, default=0.0
        Dependence of the folds, from 0 to 1; see Notes. 1 is conservative.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights, as for :func:`auc_interval`.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    AUCInterval
        Named tuple (value, low, high, se), for the AUC on new rows of models fitted to
        such folds.

    Notes
    -----
    Folds are not independent: the rows of fold i are training rows of the model of fold
    j, and vice versa. So the randomness of the training rows enters the mean twice. For
    a model of pure noise the variance is twice that of independent folds, and intervals
    of 95 % with ``dependence=0`` cover 84 %. In general the factor is at most
    :math:`1 + \rho`, where :math:`\rho` is the share of the variance of scores within a
    class that is due to the draw of the training rows. It is small if rows are many
    relative to the model's complexity. ``AUCClassifier`` estimates it.

    References
    ----------
    .. [1] E. LeDell, M. Petersen, M. van der Laan, "Computationally efficient
       confidence intervals for cross-validated area under the ROC curve estimates",
       Electronic Journal of Statistics 9, 2015.

    Examples
    --------
    >>> from aucmax.metrics import cv_auc_interval
    >>> y, score = [0, 0, 1, 1, 0, 0, 1, 1], [1, 2, 2, 4, 1, 5, 4, 6]
    >>> value, low, high, se = cv_auc_interval(y, score, [0, 0, 0, 0, 1, 1, 1, 1])
    >>> value
    0.8125
    """
    check_level(level)
    if not 0.0 <= dependence <= 1.0:
        raise ValueError(f"dependence={dependence}: expected a number from 0 to 1.")
    positive = positives(np.asarray(y), pos_label)
    scores = as_scores(score, len(positive))
    fold = np.asarray(folds)
    if fold.shape != scores.shape:
        raise ValueError(f"folds have shape {fold.shape}, scores {scores.shape}.")
    weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
    parts, m, n = [], 0, 0
    for one in np.unique(fold):
        here = fold == one
        n_pos = int(np.count_nonzero(positive[here]))
        if n_pos in (0, np.count_nonzero(here)):
            raise ValueError(f"Fold {one} has rows of one class only: no AUC.")
        w = None if weight is None else weight[here]
        parts.append(auc_interval(positive[here], scores[here], sample_weight=w))
        m, n = m + n_pos, n + int(np.count_nonzero(here)) - n_pos
    value = float(np.mean([part.value for part in parts]))
    times = 1.0 + dependence
    se = sqrt(times * sum(part.se**2 for part in parts)) / len(parts)
    return around(value, se, max(m / times, 1.0), max(n / times, 1.0), level)


def interval(ranking: Steps, level: float, method: Method = "wilson") -> AUCInterval:
    """Return :func:`auc_interval` of ranked rows without weights."""
    _, tp, fp = ranking
    m, n = tp[-1], fp[-1]
    pos, neg = increments(tp), increments(fp)
    # Tied rows have the same placement, so one number per step is enough.
    beaten, beats = n - fp + 0.5 * neg, tp - 0.5 * pos
    value = int(2.0 * float(pos @ beaten)) / (2 * int(m) * int(n))
    if min(m, n) > 1:
        se = sqrt(_variance(beaten, pos) / n**2 / m + _variance(beats, neg) / m**2 / n)
    else:
        se = sqrt(value * (1.0 - value))
    return around(value, se, float(m), float(n), level, method)


def _weighted(rows: Classes, level: float, method: Method) -> AUCInterval:
    """Return the interval of a weighted AUC, by the jackknife."""
    pos, neg, w_pos, w_neg = rows
    assert w_pos is not None
    assert w_neg is not None
    h_pos, h_neg = w_pos / w_pos.sum(), w_neg / w_neg.sum()
    value = weighted_win_fraction(pos, neg, w_pos, w_neg)
    beaten = mid_ranks(*score_counts(neg, h_neg), pos)
    beats = 1.0 - mid_ranks(*score_counts(pos, h_pos), neg)
    variance = _jackknife(beaten - value, h_pos) + _jackknife(beats - value, h_neg)
    se = sqrt(min(variance, value * (1.0 - value)))
    if se < _ROUNDING:  # all placements are equal
        se = 0.0
    m, n = (max(1.0, 1.0 / float(shares @ shares)) for shares in (h_pos, h_neg))
    return around(value, se, m, n, level, method)


def _jackknife(deviation: Weights, share: Weights) -> float:
    """Return the variance of a weighted mean, for weights of sum one."""
    rest = 1.0 - share
    if not rest.all():
        return inf  # one row has all the weight
    changes = share * deviation / rest
    return float(changes @ changes) * (share.size - 1) / share.size


def around(
    value: float, se: float, m: float, n: float, level: float, method: Method = "wilson"
) -> AUCInterval:
    """Return the interval of an AUC of ``m`` positives and ``n`` negatives."""
    k = min(m, n)
    if k == 1 or se == 0.0 or value in (0.0, 1.0):
        return AUCInterval(value, *_clopper_pearson(value, k, level), se)
    z, variance = _normal_quantile(level), value * (1.0 - value)
    if method == "wilson":
        known = 4.0 * variance * k
        prior = 0.5 * (1.0 / m + 1.0 / n)
        one_pair = (known * se**2 / variance + _PRIOR * prior) / (known + _PRIOR)
        _, low, high = wilson(value, 1.0 / one_pair, level)
        return AUCInterval(value, low, high, se)
    if method == "wald":
        low, high = max(0.0, value - z * se), min(1.0, value + z * se)
        return AUCInterval(value, low, high, se)
    centre, half = log(value / (1.0 - value)), z * se / variance
    return AUCInterval(value, _expit(centre - half), _expit(centre + half), se)


def check_method(method: str) -> None:
    """Raise an error if a method of intervals does not exist."""
    if method not in get_args(Method):
        names = ", ".join(map(repr, get_args(Method)))
        raise ValueError(f"method={method!r}: expected one of {names}.")


def auc_test(
    y: ArrayLike,
    score_a: ArrayLike,
    score_b: ArrayLike,
    *,
    level: float = 0.95,
    pos_label: object = None,
) -> AUCTest:
    r"""Test whether two scores of the same rows have the same AUC.

    With :math:`D_i` the difference of the two placements of positive i and
    :math:`E_j` that of negative j (see :func:`auc_interval`),

    .. math:: z = \frac{A_a - A_b}{\sigma}, \qquad
              \sigma^2 = \frac{S_D^2}{m} + \frac{S_E^2}{n}.

    As the rows are the same, their common variation cancels: the test detects
    differences that two separate intervals would not show.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes, as for :func:`auc`.
    score_a, score_b : array-like of shape (n_rows,)
        The scores to compare, as for :func:`auc`.
    level : float, default=0.95
        Confidence level.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    AUCTest
        Named tuple (difference, low, high, se, statistic, pvalue); the interval lies
        in [-1, 1].

    Notes
    -----
    The variance is not informative if it is zero, as for equal rankings or a perfect
    one against a constant, or if a class has a single row. The rows are then treated as
    k = min(m, n) independent pairs that all show the same difference d in [-1, 1]. If
    this has probability q, it is seen k times with probability :math:`q^k`, and the
    mean difference is at worst :math:`q d \pm (1 - q)`. With :math:`q^k = \alpha/2`
    these are the ends of the interval; :math:`p = 2 (1 + |d|)^{-k}`, at most 1, is the
    level at which it reaches 0, and the statistic is the normal quantile of p. Equal
    rankings give d = 0 and p = 1. The standard error is then still DeLong's, or its
    upper bound :math:`\sqrt{1 - d^2}` if a class has a single row.

    References
    ----------
    .. [1] E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson: Comparing the areas under
       two or more correlated receiver operating characteristic curves: a nonparametric
       approach. Biometrics 44 (1988).
    .. [2] X. Sun, W. Xu: Fast implementation of DeLong's algorithm for comparing the
       areas under correlated receiver operating characteristic curves. IEEE Signal
       Processing Letters 21 (2014).

    Examples
    --------
    >>> from aucmax.metrics import auc_test
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> test = auc_test(y, [1, 2, 4, 6, 3, 5, 7, 8], [1, 3, 6, 7, 4, 2, 8, 5])
    >>> print(f"{test.difference:.4f}, p = {test.pvalue:.3f}")
    0.2500, p = 0.157
    """
    check_level(level)
    positive = positives(y, pos_label)
    beaten_a, beats_a = _wins(positive, as_scores(score_a, positive.size, "score_a"))
    beaten_b, beats_b = _wins(positive, as_scores(score_b, positive.size, "score_b"))
    beaten, beats = beaten_a - beaten_b, beats_a - beats_b
    k = min(beaten.size, beats.size)
    d = _mean_win(beaten, beats.size)
    se = _standard_error(beaten, beats) if k > 1 else sqrt(1.0 - d * d)
    if k == 1 or se == 0.0:
        return _test_constant(d, se, k, level)
    half = _normal_quantile(level) * se
    z = d / se
    low, high = max(-1.0, d - half), min(1.0, d + half)
    return AUCTest(d, low, high, se, z, erfc(abs(z) / sqrt(2.0)))


def _wins(positive: NDArray[np.bool_], score: Scores) -> tuple[Weights, Weights]:
    return wins(*split(score, positive))


def _mean_win(beaten: Weights, n: int) -> float:
    """Return sum(beaten) / mn, rounded once: the sum of half integers is exact."""
    return int(2.0 * beaten.sum()) / (2 * beaten.size * n)


def _standard_error(beaten: Weights, beats: Weights) -> float:
    """Return DeLong's standard error from wins as counts.

    Counts have an exact mean if they are all equal, unlike shares: then the variance is
    exactly zero.
    """
    m, n = beaten.size, beats.size
    variance_pos = float(np.var(beaten, ddof=1)) / n**2
    variance_neg = float(np.var(beats, ddof=1)) / m**2
    return sqrt(variance_pos / m + variance_neg / n)


def _variance(values: Weights, times: Weights) -> float:
    """Return the sample variance of counts ``values`` with frequencies ``times``."""
    n = float(times.sum())
    deviations = values - float(times @ values) / n
    return float(times @ deviations**2) / (n - 1.0)


def _clopper_pearson(share: float, k: float, level: float) -> tuple[float, float]:
    """Return the exact interval of a proportion of ``k`` trials, also fractional."""
    from scipy.special import betaincinv  # slow import, rarely needed

    tail = 0.5 * (1.0 - level)
    hits = share * k
    low = betaincinv(hits, k - hits + 1.0, tail) if share > 0.0 else 0.0
    high = betaincinv(hits + 1.0, k - hits, 1.0 - tail) if share < 1.0 else 1.0
    return float(low), float(high)


def _test_constant(d: float, se: float, k: int, level: float) -> AUCTest:
    """Return the conservative test for ``k`` pairs that all differ by ``d``."""
    from scipy.special import ndtri  # slow import, rarely needed

    log_q = log(0.5 * (1.0 - level)) / k
    q, rest = exp(log_q), -expm1(log_q)
    pvalue = min(1.0, 2.0 * (1.0 + abs(d)) ** -k)
    statistic = copysign(float(ndtri(0.5 * pvalue)), d)
    return AUCTest(d, q * d - rest, q * d + rest, se, statistic, pvalue)


def _normal_quantile(level: float) -> float:
    return NormalDist().inv_cdf(0.5 * (1.0 + level))


def _expit(x: float) -> float:
    return 1.0 / (1.0 + exp(-x)) if x >= 0.0 else exp(x) / (1.0 + exp(x))
