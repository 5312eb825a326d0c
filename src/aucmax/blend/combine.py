"""Combine cross-fitted members: weights, calibration, AUC and leaderboard."""

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from aucmax.base.folds import Repeats, drawn
from aucmax.blend.blending import blend_weights
from aucmax.blend.crossfit import FittedMember, Fold, TrainingRows, fold_of_rows
from aucmax.blend.uncertainty import (
    crossfit_interval,
    fold_model_scores,
    folds_depend,
    merge_duplicates,
    training_variance_share,
)
from aucmax.core.rows import Float, Index
from aucmax.metrics.auc import AUCInterval
from aucmax.metrics.calibration import log_odds

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
