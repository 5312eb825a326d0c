"""AUC of many weight vectors on held-out folds, in one pass over the rows.

Up to 2²⁵ scores are gathered on the client and ranked, which is exact. Of more, each
worker makes histograms of the scores of either class. Then only pairs within a bin,
counted half, can be wrong: the error is at most half of their share, which is known.
"""

from typing import Any, NamedTuple

import numpy as np

from aucmax.base.folds import area
from aucmax.base.ranker import product
from aucmax.cluster.distributed_rows import Block, DistributedRows
from aucmax.core.jit import kernel
from aucmax.core.rows import Float

_GATHERED = 1 << 25  # scores on the client, at most: 256 MB
_BINS, _BINS_PER_SCALE = 8192, 512.0  # in all, and per standard deviation
# Scores that a worker computes at a time: 64 kB. Dask's workers return larger arrays to
# the system at once, and new pages would take as long as the work.
_GROUP = 1 << 13


class _Request(NamedTuple):
    weights: list[Float]  # (d, k) of each fold
    centre: list[Float]  # (k,) mean score
    scale: list[Float]  # (k,) standard deviation of the scores
    exact: bool
    whole: bool  # counts are integers below 2³²


class _Gathered(NamedTuple):
    """Scores of held-out rows, and their weights signed by class."""

    scores: Float  # (k, n)
    signed: Float

    def __add__(self, other: Any) -> "_Gathered":
        return _Gathered(
            np.concatenate([self.scores, other.scores], axis=1),
            np.concatenate([self.signed, other.signed]),
        )


def _block_scores(block: Block, request: _Request) -> list[Any]:
    """Return, for each fold, the scores of its rows or their histograms."""
    fold = block.folds(len(request.weights))
    found: list[Any] = []
    for number, W in enumerate(request.weights):
        k = W.shape[1]
        here = np.flatnonzero(fold == number)
        if request.exact:
            found.append(_Gathered(_scores(block.X[here], W), block.signed[here]))
            continue
        counts = np.zeros((k, 2, _BINS), np.uint32 if request.whole else np.float64)
        per_scale = _BINS_PER_SCALE / request.scale[number]
        size = max(_GROUP // k, 64)
        for start in range(0, len(here), size):
            group = here[start : start + size]
            scores = _scores(block.X[group], W)
            signed = block.signed[group]
            _count(scores, signed, request.centre[number], per_scale, counts)
        found.append(counts)
    return found


def _scores(X: Any, W: Float) -> Float:
    """Return the scores of the rows for each column of W, a row each."""
    if isinstance(X, np.ndarray) and X.dtype == np.float64:
        return W.T @ X.T
    return np.ascontiguousarray(product(X, W).T)


@kernel
def _count(
    scores: Float, signed: Float, centre: Float, per_scale: Float, counts: Any
) -> None:
    """Add rows to the histograms: counts, or sums of weights."""
    last = counts.shape[2] - 1
    for k in range(scores.shape[0]):
        for i in range(signed.shape[0]):
            at = (scores[k, i] - centre[k]) * per_scale[k] + 0.5 * (last + 1)
            bin_ = int(min(max(at, 0.0), float(last)))
            counts[k, 0 if signed[i] > 0.0 else 1, bin_] += abs(signed[i])


def fold_aucs(
    rows: DistributedRows, weights: list[Float], centre: list[Float], scale: list[Float]
) -> tuple[Float, float]:
    """Return the AUC of each column of weights on each fold, and an error bound.

    ``centre`` and ``scale`` are the approximate mean and standard deviation of the
    scores of each column.
    """
    exact = rows.n_rows * weights[0].shape[1] <= _GATHERED
    whole = not rows.weighted and rows.n_rows < 1 << 32
    found = rows.total(_block_scores, _Request(weights, centre, scale, exact, whole))
    if exact:
        values = [
            [area(score, fold.signed, rows.weighted) for score in fold.scores]
            for fold in found
        ]
        return np.array(values).T, 0.0
    each, errors = zip(*map(_auc_of_histograms, found), strict=True)
    return np.column_stack(each), float(np.max(errors))


def _auc_of_histograms(counts: Float) -> tuple[Float, Float]:
    """Return AUCs with pairs within a bin counted half, and their error bounds."""
    pos, neg = (counts[:, k] / counts[:, k].sum(axis=1)[:, None] for k in (0, 1))
    below = np.cumsum(neg, axis=1) - neg
    within = 0.5 * (pos * neg).sum(axis=1)
    return (pos * below).sum(axis=1) + within, within
