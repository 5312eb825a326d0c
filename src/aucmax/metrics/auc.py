"""The area under the ROC curve, whole or in part, and its confidence intervals.

Intervals are by DeLong's variance in O(n log n).
"""

from math import sqrt
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.core.validation import refuse_mask
from aucmax.metrics._ranking import (
    Classes,
    Scores,
    Steps,
    Weights,
    area,
    as_scores,
    as_weights,
    check_level,
    check_share,
    classes,
    increments,
    mid_ranks,
    nan_if_one_class,
    positives,
    score_counts,
    steps,
    with_zero,
)
from aucmax.metrics._variance import (
    Groups,
    Interval,
    effective_sizes,
    from_logit,
    from_variance,
    influence_on_area,
    jackknife_errors,
    normal_quantile,
    read_groups,
    variance,
)


@nan_if_one_class
def auc(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the AUC: the probability that a positive scores higher than a negative.

    .. math::

        A = \frac{1}{mn} \sum_{i \in +} \sum_{j \in -}
            \left( 1[s_i > s_j] + \tfrac12\, 1[s_i = s_j] \right)

    for m positives and n negatives: the area under the ROC curve, and the statistic of
    Mann and Whitney [1]_ divided by mn. Without weights the result is this fraction,
    rounded once.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes: numbers, booleans or strings.
    score : array-like of shape (n_rows,)
        Higher means more likely positive. Infinite scores are allowed, NaN is an error.
        float32 is ranked as such, any other type as float64.
    sample_weight : array-like of shape (n_rows,), optional
        Row weights; weight k counts as k copies of the row.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    float
        Between 0 and 1.

    Notes
    -----
    The smaller class is sorted, and each row of the larger one is found in it by binary
    search: O(n log m) time, O(m + n) memory.

    References
    ----------
    .. [1] H. B. Mann, D. R. Whitney: On a test of whether one of two random variables
       is stochastically larger than the other. Annals of Mathematical Statistics 18
       (1947).

    Examples
    --------
    >>> from aucmax.metrics import auc
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    return area(classes(y, score, sample_weight, pos_label))


@nan_if_one_class
def partial_auc(
    y: ArrayLike,
    score: ArrayLike,
    *,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    standardise: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the partial AUC: the area under a part of the ROC curve.

    .. math::

        A(a, b) = \int_0^a \max(tpr(u) - b, 0)\, du

    for ``max_fpr`` a and ``min_tpr`` b: the area under the curve within false positive
    rates up to a and true positive rates from b. With one of them it is the partial
    area of McClish [1]_ or Jiang [2]_, with both the two-way one [3]_, with neither the
    AUC. Between the points of :func:`roc_curve` the curve is a straight line, as for
    tied rows in random order.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    max_fpr : float, default=1.0
        Highest false positive rate, in (0, 1].
    min_tpr : float, default=0.0
        Lowest true positive rate, in [0, 1).
    standardise : bool, default=False
        Put the area on the scale of an AUC: 1 is perfect, 0.5 is chance,

        .. math:: \frac12 \left( 1 + \frac{A - A_0}{A_1 - A_0} \right), \quad
                  A_0 = \tfrac12 \max(a - b, 0)^2, \quad A_1 = a (1 - b),

        as McClish.
    sample_weight : array-like of shape (n_rows,), optional
        Row weights; weight k counts as k copies of the row.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    float
        Between 0 and a (1 - b), or at most 1 if standardised.

    References
    ----------
    .. [1] D. K. McClish: Analyzing a portion of the ROC curve. Medical Decision Making
       9 (1989).
    .. [2] Y. Jiang, C. E. Metz, R. M. Nishikawa: A receiver operating characteristic
       partial area index for highly sensitive diagnostic tests. Radiology 201 (1996).
    .. [3] H. Yang, K. Lu, X. Lyu, F. Hu: Two-way partial AUC and its properties.
       Statistical Methods in Medical Research 28 (2019).

    Examples
    --------
    >>> from aucmax.metrics import partial_auc
    >>> y, score = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    >>> partial_auc(y, score, max_fpr=0.5)
    0.25
    >>> partial_auc(y, score, max_fpr=0.75, min_tpr=0.5)
    0.125
    """
    check_share("max_fpr", max_fpr)
    check_share("min_tpr", min_tpr, "[", ")")
    ranking = steps(y, score, sample_weight, pos_label)
    return partial_area(ranking, float(max_fpr), float(min_tpr), standardise)


@nan_if_one_class
def partial_auc_interval(
    y: ArrayLike,
    score: ArrayLike,
    *,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    standardise: bool = False,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Interval:
    r"""Return :func:`partial_auc` with a confidence interval.

    The area is a mean over the positives of :math:`V_i` and over the negatives of
    :math:`W_j`: DeLong's placements, cut at the borders of the part. Their variances
    give that of the area, and the formula of :func:`auc_interval` the interval of the
    area's share of its largest possible value.

    Parameters
    ----------
    y, score, max_fpr, min_tpr, standardise
        As for :func:`partial_auc`.
    level : float, default=0.95
        Confidence level.
    groups : array-like of shape (n_rows,), optional
        Cluster of each row, as for :func:`auc_interval`.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights, as for :func:`auc_interval`.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    Interval
        Named tuple (value, low, high), on the scale of the value.

    Notes
    -----
    Intervals of 95 % covered the partial area up to a false positive rate of 0.1 in
    95 % to 96 % of simulated draws with 20 or 200 positives and ten times as many
    negatives; in 97 % and more with as many negatives as positives, of which a tenth
    decides.

    Do not rely on intervals with both ``max_fpr`` and ``min_tpr`` if the curve reaches
    the part only in a corner: the curve of few rows may miss it. For an AUC of 0.7,
    ``max_fpr=0.3`` and ``min_tpr=0.5`` coverage was 79 % to 81 % with 20 positives, and
    89 % to 91 % with 200; for an AUC of 0.95 it was 90 % to 98 %.

    Examples
    --------
    >>> from aucmax.metrics import partial_auc_interval
    >>> y = [0] * 20 + [1] * 20
    >>> score = list(range(20)) + list(range(10, 30))
    >>> value, low, high = partial_auc_interval(y, score, max_fpr=0.2)
    >>> print(f"{value:.3f} in [{low:.3f}, {high:.3f}]")
    0.120 in [0.063, 0.166]
    """
    check_level(level)
    check_share("max_fpr", max_fpr)
    check_share("min_tpr", min_tpr, "[", ")")
    value = partial_area(steps(y, score, sample_weight, pos_label), max_fpr, min_tpr)
    rows = classes(y, score, sample_weight, pos_label)
    clusters = None
    if groups is not None:
        clusters = read_groups(groups, positives(y, pos_label), sample_weight)
    largest = max_fpr * (1.0 - min_tpr)
    share = _interval_of_share(value / largest, rows, max_fpr, min_tpr, clusters, level)
    ends = [largest * end for end in (share.low, share.high)]
    if standardise:
        value, *ends = (_standardised(x, max_fpr, min_tpr) for x in (value, *ends))
    return Interval(value, *ends)


def _interval_of_share(
    share: float,
    rows: Classes,
    max_fpr: float,
    min_tpr: float,
    groups: Groups | None,
    level: float,
) -> Interval:
    found = influence_on_area(rows, max_fpr, min_tpr)
    of_share = variance(found, groups) / (max_fpr * (1.0 - min_tpr)) ** 2
    m, n = effective_sizes(found, groups)
    return from_variance(share, of_share, m, max_fpr * n, level)


def partial_area(
    ranking: Steps, max_fpr: float, min_tpr: float = 0.0, standardise: bool = False
) -> float:
    """Return :func:`partial_auc` of ranked rows."""
    fpr = with_zero(ranking.fp / ranking.fp[-1])
    tpr = with_zero(ranking.tp / ranking.tp[-1])
    # Both rates increase, so the part in the box is one interval.
    last = int(np.searchsorted(fpr, max_fpr, side="right"))
    if last < fpr.size:
        end = _between(fpr[last - 1 : last + 1], tpr[last - 1 : last + 1], max_fpr)
        fpr, tpr = np.append(fpr[:last], max_fpr), np.append(tpr[:last], end)
    first = int(np.searchsorted(tpr, min_tpr, side="left"))
    if first == tpr.size:
        return _standardised(0.0, max_fpr, min_tpr) if standardise else 0.0
    if first > 0:
        begin = _between(
            tpr[first - 1 : first + 1], fpr[first - 1 : first + 1], min_tpr
        )
        fpr, tpr = np.append(begin, fpr[first:]), np.append(min_tpr, tpr[first:])
    height = tpr - min_tpr
    found = 0.5 * float(np.diff(fpr) @ (height[1:] + height[:-1]))
    # Rounding could exceed the maximum.
    found = min(found, max_fpr * (1.0 - min_tpr))
    return _standardised(found, max_fpr, min_tpr) if standardise else found


def _between(x: Weights, y: Weights, at: float) -> float:
    """Return y at x = ``at`` on the line through two points."""
    return float(y[0] + (y[1] - y[0]) * ((at - x[0]) / (x[1] - x[0])))


def _standardised(area: float, max_fpr: float, min_tpr: float) -> float:
    chance = 0.5 * max(max_fpr - min_tpr, 0.0) ** 2
    return 0.5 * (1.0 + (area - chance) / (max_fpr * (1.0 - min_tpr) - chance))


Method = Literal["wilson", "logit", "wald"]


class AUCInterval(NamedTuple):
    """An AUC and its confidence interval."""

    value: float
    low: float
    high: float
    se: float  # standard error


@nan_if_one_class
def auc_interval(
    y: ArrayLike,
    score: ArrayLike,
    *,
    level: float = 0.95,
    method: Method = "wilson",
    groups: ArrayLike | None = None,
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
    groups : array-like of shape (n_rows,), optional
        Cluster of each row, such as the patient or the customer, if one has several
        rows: clusters are independent, rows within one are not [8]_.
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
    the effective numbers of rows :math:`1 / \sum_i h_i^2` [7]_, or of clusters.

    With ``groups`` the influences :math:`h_i (V_i - A)` and :math:`h_j (W_j - A)` are
    summed within clusters, to :math:`P_c` and :math:`N_c`, and for C clusters, of which
    :math:`C_+` have positives and :math:`C_-` negatives [8]_,

    .. math:: \sigma^2 = \frac{C_+}{C_+ - 1} \sum_c P_c^2
              + \frac{C_-}{C_- - 1} \sum_c N_c^2
              + \frac{2 C}{C - 1} \sum_c P_c N_c.

    Intervals of 95 % for clusters of 2 positives and 2 or 20 negatives with a common
    effect covered in 97 % to 99 % of simulated draws with 100 clusters, and in more
    than 99 % with 10: the prior in N does not know that effects common to both classes
    cancel.

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
    .. [8] N. A. Obuchowski: Nonparametric analysis of clustered ROC curve data.
       Biometrics 53 (1997).

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
    rows = classes(y, score, sample_weight, pos_label)
    if sample_weight is None and groups is None:
        return _from_counts(rows, level, method)
    clusters = None
    if groups is not None:
        clusters = read_groups(groups, positives(y, pos_label), sample_weight)
    return _from_influence(rows, clusters, level, method)


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
    y : array-like of shape (n_rows,)
        Labels of two classes, as for :func:`auc`.
    score : array-like of shape (n_rows,) or (n_repeats, n_rows)
        Scores by models that were not fitted to the row; a line for each repetition of
        the cross-validation.
    folds : array-like of the same shape
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

    Repetitions have the same rows, so they reduce the error of the folds' choice but
    not that of the rows: the influences of a row in all repetitions are averaged before
    they are squared.

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
    positive = positives(y, pos_label)
    refuse_mask(folds, "folds")
    scores, fold = np.atleast_2d(score), np.atleast_2d(folds)
    if fold.shape != scores.shape:
        raise ValueError(
            f"folds have shape {np.shape(folds)}, scores {np.shape(score)}."
        )
    weight = None
    if sample_weight is not None:
        weight = as_weights(sample_weight, positive.size)
    runs = [
        _one_run(positive, as_scores(s, len(positive)), f, weight)
        for s, f in zip(scores, fold, strict=True)
    ]
    value = float(np.mean([run.value for run in runs]))
    times = 1.0 + dependence
    if len(runs) == 1:
        se = sqrt(times) * runs[0].se
    else:  # the same rows again: their errors are averaged, not their variances
        se = sqrt(times) * float(np.linalg.norm(np.mean([r.errors for r in runs], 0)))
    m = int(np.count_nonzero(positive))
    n = positive.size - m
    return around(value, se, max(m / times, 1.0), max(n / times, 1.0), level)


class _Run(NamedTuple):
    value: float  # mean over the folds
    se: float  # of independent folds
    errors: Weights  # of each row; their squares add up to that of the standard error


def _one_run(
    positive: NDArray[np.bool_],
    scores: Scores,
    fold: NDArray[Any],
    weight: Weights | None,
) -> _Run:
    """Return the mean AUC over the folds of one cross-validation."""
    names = np.unique(fold)
    parts = []
    errors = np.zeros(positive.size)
    for one in names:
        here = fold == one
        if positive[here].all() or not positive[here].any():
            raise ValueError(f"Fold {one} has rows of one class only: no AUC.")
        w = None if weight is None else weight[here]
        parts.append(auc_interval(positive[here], scores[here], sample_weight=w))
        found = influence_on_area(classes(positive[here], scores[here], w))
        kept = here if weight is None else here & (weight > 0.0)
        pos, neg = jackknife_errors(found)
        if min(pos.size, neg.size) == 1:  # unknown: use the bound of the fold
            pos = np.full(pos.size, parts[-1].se / sqrt(pos.size))
            neg = np.zeros(neg.size)
        errors[kept & positive] = pos / len(names)
        errors[kept & ~positive] = neg / len(names)
    value = float(np.mean([part.value for part in parts]))
    se = sqrt(sum(part.se**2 for part in parts)) / len(parts)
    return _Run(value, se, errors)


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


def _from_counts(rows: Classes, level: float, method: Method) -> AUCInterval:
    """Return :func:`interval` without sorting the larger class.

    Its rows are counted by the number of rows of the other class below them, twice to
    be an integer: ties count half.
    """
    pos, neg = rows.pos, rows.neg
    fewer, more = (pos, neg) if pos.size <= neg.size else (neg, pos)
    m, n = fewer.size, more.size
    value, below = score_counts(fewer)
    twice = (2.0 * mid_ranks(value, below, more)).astype(np.intp)
    times = np.bincount(twice, minlength=2 * m + 1).astype(np.float64)
    # A row of the smaller class has the same number as those of the other tied with it.
    tied = (below[:-1] + below[1:]).astype(np.intp)
    beaten = (np.cumsum(times) - 0.5 * times)[tied]
    times_fewer = np.diff(below)
    wins = int(2.0 * float(times_fewer @ beaten))
    area = (wins if fewer is pos else 2 * m * n - wins) / (2 * m * n)
    if m > 1:
        levels = 0.5 * np.arange(2.0 * m + 1.0)
        se = sqrt(
            _variance(beaten, times_fewer) / n**2 / m
            + _variance(levels, times) / m**2 / n
        )
    else:
        se = sqrt(area * (1.0 - area))
    return around(area, se, float(pos.size), float(neg.size), level, method)


def _from_influence(
    rows: Classes, groups: Groups | None, level: float, method: Method
) -> AUCInterval:
    """Return the interval of weighted or clustered rows."""
    value = area(rows)
    found = influence_on_area(rows)
    se = sqrt(min(variance(found, groups), value * (1.0 - value)))
    m, n = effective_sizes(found, groups)
    return around(value, se, m, n, level, method)


def around(
    value: float, se: float, m: float, n: float, level: float, method: Method = "wilson"
) -> AUCInterval:
    """Return the interval of an AUC of ``m`` positives and ``n`` negatives."""
    informative = min(m, n) > 1 and se > 0.0 and 0.0 < value < 1.0
    if method == "wilson" or not informative:
        return AUCInterval(*from_variance(value, se**2, m, n, level), se)
    if method == "wald":
        half = normal_quantile(level) * se
        return AUCInterval(value, max(0.0, value - half), min(1.0, value + half), se)
    return AUCInterval(*from_logit(value, se, level), se)


def check_method(method: str) -> None:
    """Raise an error if a method of intervals does not exist."""
    if method not in get_args(Method):
        names = ", ".join(map(repr, get_args(Method)))
        raise ValueError(f"method={method!r}: expected one of {names}.")


def _variance(values: Weights, times: Weights) -> float:
    """Return the sample variance of counts ``values`` with frequencies ``times``."""
    n = float(times.sum())
    deviations = values - float(times @ values) / n
    return float(times @ deviations**2) / (n - 1.0)
