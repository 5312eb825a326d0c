"""AUC within groups of rows and across them, with a test of equality."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.core.validation import refuse_mask
from aucmax.metrics.delong import AUCInterval, auc_interval
from aucmax.metrics.influence import group_codes
from aucmax.metrics.inputs import as_scores, as_weights, positives
from aucmax.metrics.pair_counts import Scores, Weights
from aucmax.metrics.roc_steps import check_level


class GroupAUC(NamedTuple):
    """The AUC of one group; NaN if it has rows of one class only."""

    group: object
    rows: int
    positives: int
    auc: AUCInterval


class GroupAUCs(NamedTuple):
    """The AUC of each group, and a test that they are all equal."""

    groups: list[GroupAUC]  # the largest first
    statistic: float  # chi-squared with one degree of freedom less than groups
    pvalue: float  # NaN with fewer than two groups that have an AUC


class CrossAUC(NamedTuple):
    """AUC of the positives of one group against the negatives of another."""

    positives_of: object
    negatives_of: object
    auc: AUCInterval


_UNDEFINED = AUCInterval(np.nan, np.nan, np.nan, np.nan)


def auc_by_group(
    y: ArrayLike,
    score: ArrayLike,
    group: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> GroupAUCs:
    r"""Return the AUC within each group, and test whether all are equal.

    The statistic is :math:`\sum_g (A_g - \bar A)^2 / \sigma_g^2`, where :math:`\bar A`
    is the mean weighted by :math:`1 / \sigma_g^2`; it is chi-squared with one degree of
    freedom less than there are groups, if the groups have no row in common. Groups with
    one class, or in which the standard error is zero, are shown but not tested.

    Parameters
    ----------
    y, score : array-like of shape (n_rows,)
        Labels of two classes, and scores, as for :func:`auc`.
    group : array-like of shape (n_rows,)
        Group of each row, such as a region, a device or a month.
    level : float, default=0.95
        Confidence level.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights, as for :func:`auc_interval`.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    GroupAUCs
        Named tuple (groups, statistic, pvalue); each group has (group, rows, positives,
        auc).

    Notes
    -----
    The test of two equal groups rejected at the level of 5 % in 4 % to 6 % of simulated
    draws with 10 or 100 positives per group and an AUC of 0.7, or with 100 and an AUC
    of 0.95. With 10 and an AUC of 0.95 it rejected in 2 % or less, as perfectly ranked
    groups are not tested.

    Examples
    --------
    >>> from aucmax.metrics import auc_by_group
    >>> y, score = [0, 0, 1, 1, 0, 0, 1, 1], [1, 2, 2, 4, 1, 5, 4, 6]
    >>> found = auc_by_group(y, score, ["a"] * 4 + ["b"] * 4)
    >>> [(one.group, one.auc.value) for one in found.groups]
    [('a', 0.875), ('b', 0.75)]
    """
    check_level(level)
    positive, scores, weight, names, members = _grouped(
        y, score, group, sample_weight, pos_label
    )
    found = []
    for name, rows in zip(names, members, strict=True):
        area = _interval(rows, positive, scores, weight, level)
        n_positives = int(np.count_nonzero(positive[rows]))
        found.append(GroupAUC(name, rows.size, n_positives, area))
    found.sort(key=lambda one: -one.rows)
    return GroupAUCs(found, *_test_equal([one.auc for one in found]))


def _interval(
    rows: NDArray[np.intp],
    positive: NDArray[np.bool_],
    scores: Scores,
    weight: Weights | None,
    level: float,
) -> AUCInterval:
    """Return the AUC of some rows; NaN, without a warning, if it is undefined."""
    if weight is not None:
        rows = rows[weight[rows] > 0.0]
    labels = positive[rows]
    if labels.all() or not labels.any():
        return _UNDEFINED
    w = None if weight is None else weight[rows]
    return auc_interval(labels, scores[rows], level=level, sample_weight=w)


def _test_equal(areas: list[AUCInterval]) -> tuple[float, float]:
    """Test whether independent AUCs are equal."""
    known = [area for area in areas if area.se > 0.0]
    if len(known) < 2:
        return np.nan, np.nan
    from scipy.special import gammaincc  # slow import

    value = np.array([area.value for area in known])
    precision = 1.0 / np.array([area.se for area in known]) ** 2
    mean = float(precision @ value) / float(precision.sum())
    statistic = float(precision @ (value - mean) ** 2)
    return statistic, float(gammaincc(0.5 * (len(known) - 1), 0.5 * statistic))


def cross_auc(
    y: ArrayLike,
    score: ArrayLike,
    group: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> list[CrossAUC]:
    """Return the AUC of each group's positives against each group's negatives.

    A score can rank well within each of two groups and still put most of one group
    below the other. If the AUC of the positives of group a against the negatives of b
    is much lower than the reverse, a is at a disadvantage [1]_.

    Parameters
    ----------
    y, score, group, level, sample_weight, pos_label
        As for :func:`auc_by_group`.

    Returns
    -------
    list of CrossAUC
        Named tuples (positives_of, negatives_of, auc) for all ordered pairs of groups,
        those of a group with itself included, if there are such rows.

    References
    ----------
    .. [1] N. Kallus, A. Zhou: The fairness of risk scores beyond classification:
       bipartite ranking and the xAUC metric. NeurIPS 2019.

    Examples
    --------
    >>> from aucmax.metrics import cross_auc
    >>> y, score = [0, 0, 1, 1, 0, 0, 1, 1], [1, 2, 2, 4, 1, 5, 4, 6]
    >>> for one in cross_auc(y, score, ["a"] * 4 + ["b"] * 4):
    ...     print(one.positives_of, one.negatives_of, one.auc.value)
    a a 0.875
    a b 0.5
    b a 1.0
    b b 0.75
    """
    check_level(level)
    positive, scores, weight, names, members = _grouped(
        y, score, group, sample_weight, pos_label
    )
    found = []
    for name, rows in zip(names, members, strict=True):
        for other, others in zip(names, members, strict=True):
            both = np.concatenate([rows[positive[rows]], others[~positive[others]]])
            area = _interval(both, positive, scores, weight, level)
            if area is not _UNDEFINED:
                found.append(CrossAUC(name, other, area))
    return found


def _grouped(
    y: ArrayLike,
    score: ArrayLike,
    group: ArrayLike,
    sample_weight: ArrayLike | None,
    pos_label: object,
) -> tuple[
    NDArray[np.bool_],
    Scores,
    Weights | None,
    list[object],
    list[NDArray[np.intp]],
]:
    """Return validated rows, the groups, and the row numbers of each."""
    positive = positives(y, pos_label)
    scores = as_scores(score, positive.size)
    refuse_mask(group, "group")
    labels = np.asarray(group)
    if labels.shape != positive.shape:
        raise ValueError(
            f"group has shape {labels.shape}, but y has {positive.size} rows"
        )
    weight = None
    if sample_weight is not None:
        weight = as_weights(sample_weight, positive.size)
    names, codes = group_codes(labels, "group")
    # One stable sort instead of a search for each of many groups.
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=names.size))
    return positive, scores, weight, names.tolist(), np.split(order, ends[:-1])
