r"""Combine cross-fitted members: weights, calibration, AUC and leaderboard.

Weights of the members of a blend: logistic regression on out-of-fold scores.

With the standardised scores :math:`z_i` of the members, the weights minimise

.. math:: \sum_i c_i \log(1 + e^{-y_i (w \cdot z_i + b)}) + \lambda \|w\|^2,
   \quad w \ge 0 ,

and are divided by their sum. The bound keeps members from getting negative weights. The
penalty keeps weights of similar members alike. It also shrinks the size of all weights,
more so in a fold, which has fewer rows. With a sum of one, scores have the same scale
in the folds and in the blend that is served, so that calibration and threshold, which
are found on out-of-fold scores, fit the scores that are served.

Confidence interval of a cross-fitted AUC, valid for the mean of the fold models.

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

from collections.abc import Callable, Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

from aucmax.base.folds import Repeats, drawn
from aucmax.blend.crossfit import (
    FittedMember,
    Fold,
    TrainingRows,
    fold_of_rows,
    score_with,
)
from aucmax.core.rows import Float, Index
from aucmax.metrics.auc import AUCInterval, cv_auc_interval
from aucmax.metrics.calibration import log_odds

_RIDGE = 5.0  # λ; chosen on tables of 150 to 2,400 rows, and hardly matters for more
_MIN_WEIGHT = 0.01  # of the total: lighter members are not worth the time to score


def blend_weights(Z: Float, signed: Float) -> Float:
    """Return the weight of each member, with a sum of one.

    ``Z`` has one column of scores per member.
    """
    count = Z.shape[1]
    sign, weight = np.sign(signed), np.abs(signed)
    weight = weight / weight.mean()
    class_ratio = weight[sign > 0.0].sum() / weight[sign < 0.0].sum()

    def loss(parameters: Float) -> tuple[float, Float]:
        w = parameters[:count]
        margin = sign * (Z @ w + parameters[count])
        slope = -weight * sign * expit(-margin)
        value = weight @ np.logaddexp(0.0, -margin) + _RIDGE * (w @ w)
        return float(value), np.append(Z.T @ slope + 2.0 * _RIDGE * w, slope.sum())

    start = np.append(np.full(count, 1.0 / count), np.log(class_ratio))
    bounds = [(0.0, None)] * count + [(None, None)]
    result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    w = np.asarray(result.x[:count])
    if not w.any():
        return start[:count]  # equal weights
    w[w < _MIN_WEIGHT * w.sum()] = 0.0
    return w / w.sum()


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


_INNER_FOLDS = 2  # of the test rows, if there is only one split
_MOST_REMOVED = 0.5  # of the variance of scores, in the calibration
_COMPARED_ROWS = 500  # rows on which the fold models are compared


class BlendLeaderboardEntry(NamedTuple):
    """A line of ``AUCClassifier.leaderboard_``."""

    member: str
    auc: float  # on held-out rows
    low: float  # confidence interval (95 %)
    high: float
    weight: float  # share of the blend
    seconds: float  # training time of all models
    rows: int  # largest number of rows a model was trained on


class Combination(NamedTuple):
    """How the members are combined, and the results on held-out rows."""

    auc: AUCInterval
    leaderboard: list[BlendLeaderboardEntry]  # highest AUC first
    members: list[FittedMember]  # those with a positive weight
    blend: Float  # (3, members) mean and scale of the scores, and weights
    calibration: Float  # (2,) slope and offset: log-odds of the blended score
    scores: Float  # out-of-fold log-odds of each row; NaN if it was in no test fold


def combine(
    fitted: list[FittedMember],
    rows: TrainingRows,
    folds: list[Fold],
    equal: Repeats,
    seed: int,
) -> Combination:
    """Estimate weights and calibration from out-of-fold scores, and the AUC."""
    fold = fold_of_rows(folds, len(rows.signed))
    scored = fold >= 0
    signed, fold = rows.signed[scored], fold[scored]
    S = np.column_stack([member.scores[scored] for member in fitted])
    mean, scale = S.mean(axis=0), S.std(axis=0)
    scale[scale == 0.0] = 1.0
    Z = (S - mean) / scale
    w = blend_weights(Z, signed)
    blended = _out_of_fold_blend(Z, signed, fold)
    shares = _shares_function(fitted, rows, folds, seed)
    interval = _interval_function(rows, folds, equal)
    entries = [
        BlendLeaderboardEntry(
            member.name,
            *interval(S[:, j], *shares(S[:, j], np.arange(len(fitted)) == j))[:3],
            weight=float(w[j]),
            seconds=member.seconds,
            rows=member.rows,
        )
        for j, member in enumerate(fitted)
    ]
    share, removed = shares(blended, w / scale)
    calibration = _calibrate(blended, signed, removed)
    scores = np.full(len(rows.signed), np.nan)
    scores[scored] = calibration[0] * blended + calibration[1]
    return Combination(
        interval(blended, share, removed),
        sorted(entries, key=lambda entry: -entry.auc),
        [member for j, member in enumerate(fitted) if w[j]],
        np.array([mean, scale, w])[:, w > 0.0],
        calibration,
        scores,
    )


def _calibrate(blended: Float, signed: Float, removed: float) -> Float:
    """Return slope and offset of Platt's calibration of the scores that are served.

    These are means of the fold models, so their variance within a class is smaller than
    that of the out-of-fold scores, by the share that averaging has ``removed``.
    """
    positive, rest = signed > 0.0, sqrt(1.0 - min(removed, _MOST_REMOVED))
    class_weight = np.array([signed[positive].sum(), -signed[~positive].sum()])
    class_weight *= len(signed) / class_weight.sum()
    pos, neg = (
        side.mean() + rest * (side - side.mean())
        for side in (blended[positive], blended[~positive])
    )
    return np.array(log_odds(pos, neg, class_weight))


def _out_of_fold_blend(Z: Float, signed: Float, fold: Index) -> Float:
    """Return the blended score of each row, with weights fitted to other folds."""
    if (fold == fold[0]).all():  # a single split
        fold = fold.copy()
        inner = StratifiedKFold(_INNER_FOLDS).split(Z, signed > 0.0)
        for k, (_, test) in enumerate(inner):
            fold[test] = k
    blended = np.empty(len(signed))
    for k in np.unique(fold):
        test = fold == k
        blended[test] = Z[test] @ blend_weights(Z[~test], signed[~test])
    return blended


def _interval_function(
    rows: TrainingRows, folds: list[Fold], equal: Repeats
) -> Callable[[Float, float, float], AUCInterval]:
    """Return the function (scores, variance shares) -> interval of the AUC."""
    fold = fold_of_rows(folds, len(rows.signed))
    scored = fold >= 0
    positive, fold, weight = rows.signed[scored] > 0.0, fold[scored], None
    if rows.weighted:
        weight = np.abs(rows.signed[scored])
    once = np.arange(len(positive))
    if equal.copies:
        once, weight = merge_duplicates(equal.of[scored], positive, fold, weight)

    def interval(out_of_fold: Float, share: float, removed: float) -> AUCInterval:
        return crossfit_interval(
            positive[once], out_of_fold[once], fold[once], weight, share, removed
        )

    return interval


def _shares_function(
    fitted: list[FittedMember], rows: TrainingRows, folds: list[Fold], seed: int
) -> Callable[[Float, NDArray[Any]], tuple[float, float]]:
    """Return the function (out-of-fold scores, member weights) -> variance shares.

    The shares of the within-class variance of scores are those that another sample of
    training rows would change, and that the mean of the fold models removes.
    """
    if not folds[0].keep_model:  # the models of the splits have been discarded
        dependence = float(folds_depend(folds))
        return lambda *_: (dependence, 0.0)
    positive = rows.signed[fold_of_rows(folds, len(rows.signed)) >= 0] > 0.0
    compared = np.arange(len(rows.signed))
    if len(compared) > _COMPARED_ROWS:
        compared = drawn(rows.signed, _COMPARED_ROWS, np.random.RandomState(seed))
    scores = fold_model_scores(fitted, len(folds), rows.X.take(compared))
    n_models = min(len(member.models) for member in fitted)

    def shares(out_of_fold: Float, w: NDArray[Any]) -> tuple[float, float]:
        blended = np.tensordot(w, scores, 1)
        share = training_variance_share(blended, out_of_fold, positive)
        return share, share / n_models

    return shares
