r"""Confidence interval of a cross-fitted AUC, valid for the mean of the fold models.

The AUC of out-of-fold scores differs in two ways from the AUC of independent rows
scored by the mean of the fold models:

1. Folds depend on each other, since each model is trained on rows that other models
   score. Let :math:`\rho` be the share of the within-class variance of scores that
   another sample of training rows would change. The variance of the AUC is then at most
   :math:`1 + \rho` times that of independent folds
   (:func:`aucmax.metrics.cv_auc_interval`).
2. The mean of the models is better than each model: averaging removes a share :math:`r`
   of the within-class variance of scores. If scores were normal, an AUC of
   :math:`\Phi(a)` would become :math:`\Phi(a / \sqrt{1 - r})`. The upper end of the
   interval is raised by that gain; the lower end is not changed.

Both shares are estimated from the differences between the fold models on the same rows,
as in the jackknife. No additional fit is needed.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.crossfit import FittedMember, Fold, score_with
from aucmax.core.rows import Float, Index
from aucmax.metrics.auc import AUCInterval, cv_auc_interval

_CAUTION = 2.0  # the estimated share tends to be low when the AUC is high by chance
_MAX_REMOVED = 0.9  # limit of the variance share that averaging may remove


def fold_model_scores(fitted: Sequence[FittedMember], count: int, X: Any) -> Float:
    """Return scores (members, ``count``, rows) by each member's first models."""
    return np.array(
        [[score_with(model, X) for model in member.models[:count]] for member in fitted]
    )


def training_variance_share(
    scores: Float, out_of_fold: Float, positive: NDArray[np.bool_]
) -> float:
    """Return the share of the variance of scores that is due to the training rows.

    ``scores`` (K, rows) are scores of the same rows by K fold models. By the jackknife,
    another sample of all training rows would change scores K - 1 times as much, in
    variance, as leaving out one fold does. The share refers to the within-class
    variance of the ``out_of_fold`` scores (n,). It can exceed 1, by chance or for
    randomised models.
    """
    means = out_of_fold[positive].mean(), out_of_fold[~positive].mean()
    within = float(np.mean((out_of_fold - np.where(positive, *means)) ** 2))
    between = float(scores.var(axis=0, ddof=1).mean()) * (len(scores) - 1)
    return between / within if within else 0.0


def crossfit_interval(
    positive: NDArray[np.bool_],
    out_of_fold: Float,
    fold: NDArray[Any],
    weight: Float | None,
    share: float,
    removed: float,
) -> AUCInterval:
    """Return the cross-fitted AUC with an interval for the mean of the models.

    ``share`` is :func:`training_variance_share`, ``removed`` the share of the
    within-class variance that averaging the models removes.
    """
    interval = cv_auc_interval(
        positive,
        out_of_fold,
        fold,
        dependence=min(1.0, _CAUTION * share),
        sample_weight=weight,
    )
    if not removed or not 0.5 < interval.value < 1.0:
        return interval
    normal, rest = NormalDist(), 1.0 - min(_MAX_REMOVED, removed)
    raised = normal.cdf(normal.inv_cdf(interval.value) / sqrt(rest))
    return interval._replace(high=min(1.0, interval.high + raised - interval.value))


def merge_duplicates(
    distinct: Index,
    positive: NDArray[np.bool_],
    fold: NDArray[Any],
    weight: Float | None,
) -> tuple[Index, Float]:
    """Return one row of each set of copies, and the total weight of each set.

    Copies have the same number in ``distinct``, label and fold, hence the same score.
    """
    key = np.column_stack([distinct, positive, fold])
    _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return first, np.bincount(which.ravel(), weight).astype(np.float64)


def folds_depend(folds: Sequence[Fold]) -> bool:
    """Return whether two models are each trained on rows that the other scores."""
    return any(
        np.isin(a.train, b.test).any() and np.isin(b.train, a.test).any()
        for i, a in enumerate(folds)
        for b in folds[:i]
        if len(a.test) and len(b.test)
    )
