"""Exact AUC of scores that are spread over a cluster, and its interval.

A ranking needs every score to meet the others. So workers exchange them, once: each
sorts its own and cuts them at splitters that part all scores into ranges of about equal
size; a range is brought together, and counts the pairs within it. Of pairs across two
ranges nothing but the numbers of rows is needed. Equal scores are kept once, with how
many rows of a class have them. Counts are integers, so the AUC is the exact fraction,
rounded once, as on one machine.
"""

from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from aucmax.cluster.blocks import column, flat, labels_of, lengths_of, parts_of, summed
from aucmax.cluster.ladder import Ladder
from aucmax.cluster.versions import check_versions
from aucmax.core.rows import Float
from aucmax.core.validation import check_weights
from aucmax.metrics.delong import AUCInterval, Method, around, check_method
from aucmax.metrics.inputs import as_scores
from aucmax.metrics.roc_steps import check_level

_ROUNDING = 1e-13  # as in metrics.delong: standard errors below are none
_SAMPLE = 64  # scores of a block that say where to cut
_SOME, _MANY = 1 << 20, 1 << 24  # rows of a range: when few or many are to be cut
_RANGES = 64

# Columns of a ladder: weight of each class, and sums for the jackknife.
_POS, _NEG, _G_POS, _G_NEG = range(4)


class Class(NamedTuple):
    """The rows of a class, or several."""

    rows: Float  # (2,) of non-zero weight, positives first
    weight: Float  # (2,)
    square: Float  # (2,) sum of squared weights

    def __add__(self, other: Any) -> "Class":
        return Class(*(a + b for a, b in zip(self, other, strict=True)))


class Column(NamedTuple):
    """Scores of a block, and weights signed by class."""

    score: Float
    signed: Float


class Ranking(NamedTuple):
    """The scores of all rows, in ranges that rise."""

    ranges: list[Any]  # of ladders
    total: Class
    weighted: bool


def decision_function(estimator: Any, X: Any) -> Any:
    """Return the scores of rows that are spread over a cluster, not yet worked out.

    Parameters
    ----------
    estimator : fitted estimator
        Any that has a ``decision_function``.
    X : dask array or data frame, or list of blocks
        The rows.

    Returns
    -------
    dask array or series, or list of delayed blocks
        The scores, as X is.
    """
    if isinstance(X, list | tuple):
        return [delayed(_scores, pure=False)(block, estimator) for block in X]
    if hasattr(X, "map_blocks"):
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        meta = np.empty(0)
        return X.map_blocks(_scores, estimator, drop_axis=1, dtype=float, meta=meta)
    return X.map_partitions(_score_frame, estimator, meta=("score", "f8"))


def _scores(X: Any, estimator: Any) -> Float:
    if X.shape[0] == 0:
        return np.empty(0)
    return np.asarray(estimator.decision_function(X))


def _score_frame(X: Any, estimator: Any) -> Any:
    return X.assign(score=_scores(X, estimator))["score"]


def auc(
    y: Any, score: Any, *, sample_weight: Any = None, pos_label: object = None
) -> float:
    """Return the exact area under the ROC curve, ties counted half.

    Parameters
    ----------
    y : dask array or series, or list of blocks
        The labels of two classes.
    score : as y
        The scores, as from :func:`decision_function`.
    sample_weight : as y, default=None
        Weights of the rows; a pair weighs the product.
    pos_label : label, default=None
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        As :func:`aucmax.metrics.auc` of all rows; with weights, up to rounding.
    """
    ranking = _ranked(y, score, sample_weight, pos_label)
    return _area(ranking)[0]


def auc_interval(
    y: Any,
    score: Any,
    *,
    level: float = 0.95,
    method: Method = "wilson",
    sample_weight: Any = None,
    pos_label: object = None,
) -> AUCInterval:
    """Return the AUC with a confidence interval.

    Parameters
    ----------
    y, score, sample_weight, pos_label
        As for :func:`auc`.
    level : float, default=0.95
        How often the interval should cover the true AUC.
    method : {"wilson", "logit", "wald"}, default="wilson"
        As for :func:`aucmax.metrics.auc_interval`.

    Returns
    -------
    AUCInterval
        As :func:`aucmax.metrics.auc_interval` of all rows, up to rounding.
    """
    check_level(level)
    check_method(method)
    ranking = _ranked(y, score, sample_weight, pos_label)
    value, below = _area(ranking)
    total = ranking.total
    look = delayed(_deviations, pure=False)
    off = summed(
        [
            look(part, before, total, value, ranking.weighted)
            for part, before in zip(ranking.ranges, below, strict=True)
        ]
    )
    m, n = total.rows
    if ranking.weighted:
        # A row that is all of its class: nothing is known of any other.
        alone = (total.square >= total.weight**2).any()
        variance = np.inf if alone else off[0] * (m - 1) / m + off[1] * (n - 1) / n
        se = sqrt(min(variance, value * (1.0 - value)))
        se = 0.0 if se < _ROUNDING else se
        m, n = np.maximum(1.0, total.weight**2 / total.square)
        return around(value, se, float(m), float(n), level, method)
    se = sqrt(value * (1.0 - value))
    if min(m, n) > 1:
        se = sqrt(off[0] / (m - 1) / n**2 / m + off[1] / (n - 1) / m**2 / n)
    return around(value, se, float(m), float(n), level, method)


def _ranked(y: Any, score: Any, weight: Any, pos_label: object) -> Ranking:
    """Bring equal scores and their neighbours together."""
    check_versions()
    scores, lengths = parts_of(score, "score"), lengths_of(score)
    labels = column(y, "y", scores, lengths)
    weights: list[Any] = [None] * len(scores)
    if weight is not None:
        weights = column(weight, "sample_weight", scores, lengths)
    look = delayed(labels_of, pure=False)
    seen = dask.compute([look(part, k) for k, part in enumerate(labels)])[0]
    both = _both([found for n, found in seen if n], pos_label)
    make = delayed(_columns, pure=False)
    columns = dask.persist(
        *[make(labels[k], scores[k], weights[k], both, k) for k in range(len(scores))]
    )
    total = summed([delayed(_count, pure=False)(some) for some in columns])
    if not total.weight.all():
        raise ValueError("AUC needs rows of some weight in both classes.")
    cuts = _cuts(columns, float(total.rows.sum()))
    n_ranges = len(cuts) + 1
    part = delayed(_parted, pure=False, nout=n_ranges)
    pieces = [part(some, total, cuts) for some in columns]
    join = delayed(Ladder.joined, pure=False)
    ranges = [join([some[k] for some in pieces]) for k in range(n_ranges)]
    return Ranking(list(dask.persist(*ranges)), total, weight is not None)


def _both(found: list[Any], pos_label: object) -> NDArray[Any]:
    """Return the negative and the positive label."""
    distinct = np.unique(np.concatenate(found)) if found else np.empty(0)
    if len(distinct) != 2:
        raise ValueError(
            f"y has the labels {distinct.tolist()}, but AUC needs two classes."
        )
    if pos_label is None:
        return distinct
    if pos_label not in distinct.tolist():
        raise ValueError(f"pos_label={pos_label!r} does not occur in y.")
    return distinct if distinct[1] == pos_label else distinct[::-1]


def _columns(y: Any, score: Any, weight: Any, both: Any, number: int) -> Column:
    labels = flat(y, "y", number)
    try:
        scores = as_scores(flat(score, "score", number), len(labels))
        signed = np.where(labels == both[1], 1.0, -1.0)
        if weight is not None:
            weights = np.asarray(flat(weight, "sample_weight", number), np.float64)
            check_weights(weights)
            signed *= weights
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error
    here = signed != 0.0
    return Column(scores[here].astype(np.float64), signed[here])


def _count(column: Column) -> Class:
    sides = column.signed > 0.0, column.signed < 0.0
    weights = [np.abs(column.signed[side]) for side in sides]
    return Class(
        np.array([float(len(some)) for some in weights]),
        np.array([some.sum() for some in weights]),
        np.array([some @ some for some in weights]),
    )


def _cuts(columns: Any, n: float) -> Float:
    """Return the splitters between the ranges."""
    n_ranges = int(max(min(np.ceil(n / _SOME), _RANGES), np.ceil(n / _MANY), 1))
    if n_ranges == 1:
        return np.empty(0)
    sampled = dask.compute([delayed(_sampled, pure=False)(c) for c in columns])[0]
    scores = np.concatenate([some for some, _ in sampled])
    weight = np.concatenate([np.full(len(s), k / max(len(s), 1)) for s, k in sampled])
    order = np.argsort(scores)
    mass = np.cumsum(weight[order])
    at = np.searchsorted(mass, mass[-1] * np.arange(1, n_ranges) / n_ranges)
    return np.unique(scores[order][np.minimum(at, len(scores) - 1)])


def _sampled(column: Column) -> tuple[Float, int]:
    n = len(column.score)
    some = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp))
    return np.sort(column.score)[some], n


def _parted(column: Column, total: Class, cuts: Float) -> list[Ladder]:
    """Return the ladder of a block, cut into ranges."""
    weight, positive = np.abs(column.signed), column.signed > 0.0
    share = weight / np.where(positive, *total.weight)
    # Of a row that is all of its class, see auc_interval.
    change = (share / np.where(share < 1.0, 1.0 - share, 1.0)) ** 2
    at = np.zeros((len(weight), 4))
    at[positive, _POS], at[~positive, _NEG] = weight[positive], weight[~positive]
    at[positive, _G_POS] = change[positive]
    at[~positive, _G_NEG] = change[~positive]
    whole = Ladder.of(column.score, at)
    ends = [0, *np.searchsorted(whole.value, cuts), len(whole.value)]
    return [Ladder(whole.value[a:b], whole.at[a:b]) for a, b in pairwise(ends)]


class Within(NamedTuple):
    """What a range says: the weight of its classes, and pairs in order within it."""

    pos: float
    neg: float
    twice: float | int  # ties counted once


def _within(part: Ladder, weighted: bool) -> Within:
    pos, neg = part.at[:, _POS], part.at[:, _NEG]
    if not weighted:
        pos, neg = pos.astype(np.int64), neg.astype(np.int64)
    twice = (pos * (2 * (np.cumsum(neg) - neg) + neg)).sum()
    return Within(pos.sum().item(), neg.sum().item(), twice.item())


def _area(ranking: Ranking) -> tuple[float, list[tuple[float, float]]]:
    """Return the AUC, and the weight of each class below each range."""
    look = delayed(_within, pure=False)
    found = dask.compute([look(part, ranking.weighted) for part in ranking.ranges])[0]
    pos = neg = twice = 0  # integers of any size, unless there are weights
    below: list[tuple[float, float]] = []
    for some in found:
        below.append((pos, neg))
        twice += some.twice + 2 * some.pos * neg
        pos, neg = pos + some.pos, neg + some.neg
    return min(1.0, max(0.0, twice / (2 * pos * neg))), below


def _deviations(
    part: Ladder,
    below: tuple[float, float],
    total: Class,
    value: float,
    weighted: bool,
) -> Float:
    """Return the sums of squares that the variance of the AUC is made of."""
    pos, neg = part.at[:, _POS], part.at[:, _NEG]
    m, n = total.weight
    beaten = below[1] + np.cumsum(neg) - 0.5 * neg
    beats = m - (below[0] + np.cumsum(pos) - 0.5 * pos)
    if weighted:
        squares = part.at[:, _G_POS], part.at[:, _G_NEG]
        off = (beaten / n - value) ** 2, (beats / m - value) ** 2
    else:
        squares = pos, neg
        off = (beaten - value * n) ** 2, (beats - value * m) ** 2
    return np.array([some @ o for some, o in zip(squares, off, strict=True)])
