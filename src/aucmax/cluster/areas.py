"""The AUC of many weights on the rows of folds that they have not seen.

Few scores are brought together and ranked, which is exact. Of many, each worker counts
how many rows of a class are in each of some thousand cells of the score. Then only
pairs within a cell, counted half, may be wrong: the error is at most half of their
share, which is known; and where classes are mixed evenly within a cell, next to none.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.base.folds import area
from aucmax.base.ranker import product
from aucmax.cluster.blocks import Block, Table
from aucmax.cluster.folds import fold_of
from aucmax.core.jit import kernel
from aucmax.core.rows import Float

_SCORES = 1 << 25  # that are brought together: 256 MB
_CELLS, _FINENESS = 8192, 512.0  # in all, and in a standard deviation
_GROUP = 1 << 20  # scores at a time


class Judges(NamedTuple):
    """Weights for each fold, as columns, and where their scores are."""

    weights: list[Float]  # (d, k)
    centre: list[Float]  # (k,) of each fold
    unit: list[Float]  # (k,) standard deviations
    exact: bool
    whole: bool  # counts are whole numbers below 2³²


class Pile(NamedTuple):
    """Scores of rows, brought together."""

    scores: Float  # (k, n)
    signed: Float

    def __add__(self, other: Any) -> "Pile":
        return Pile(
            np.concatenate([self.scores, other.scores], axis=1),
            np.concatenate([self.signed, other.signed]),
        )


def _judge(block: Block, judges: Judges) -> list[Any]:
    fold = fold_of(block.places(), len(judges.weights))
    return [
        _judge_fold(block, np.flatnonzero(fold == number), number, judges)
        for number in range(len(judges.weights))
    ]


def _judge_fold(
    block: Block, here: NDArray[np.int64], number: int, judges: Judges
) -> Any:
    W, centre, unit = (some[number] for some in judges[:3])
    k = W.shape[1]
    size = max(_GROUP // k, 1)
    groups = [here[start : start + size] for start in range(0, len(here), size)]
    if judges.exact:
        found = [np.empty((k, 0)), *(_scores(block.X, some, W) for some in groups)]
        return Pile(np.concatenate(found, axis=1), block.signed[here])
    counts = np.zeros((k, 2, _CELLS), np.uint32 if judges.whole else np.float64)
    room = np.empty(min(size, len(here)) * (k + W.shape[0]))
    for some in groups:
        scores = _scores(block.X, some, W, room)
        _count(scores, block.signed[some], centre, _FINENESS / unit, counts)
    return counts


def counted(
    scores: Float, signed: Float, centre: Float, unit: Float, exact: bool
) -> Any:
    """Return scores (k, n), or how many rows of a class are in each cell of theirs."""
    if exact:
        return Pile(scores, signed)
    counts = np.zeros((len(scores), 2, _CELLS))
    _count(scores, signed, centre, _FINENESS / unit, counts)
    return counts


@kernel
def _count(
    scores: Float, signed: Float, centre: Float, scale: Float, counts: Any
) -> None:
    """Add rows to counts: integers, which take half the room, or sums of weights."""
    last = counts.shape[2] - 1
    for k in range(scores.shape[0]):
        for i in range(signed.shape[0]):
            at = (scores[k, i] - centre[k]) * scale[k] + 0.5 * (last + 1)
            cell = int(min(max(at, 0.0), float(last)))
            counts[k, 0 if signed[i] > 0.0 else 1, cell] += abs(signed[i])


def _scores(
    X: Any, some: NDArray[np.int64], W: Float, room: Float | None = None
) -> Float:
    """Return the scores of some rows for each column of W, a row each.

    ``room`` is where to put them, and a copy of the rows; see passes for why.
    """
    if not isinstance(X, np.ndarray) or X.dtype != np.float64:
        return np.ascontiguousarray(product(X[some], W).T)
    if room is None:
        return W.T @ X[some].T
    n, (d, k) = len(some), W.shape
    rows, scores = room[: n * d].reshape(n, d), room[n * d : n * (d + k)]
    np.take(X, some, axis=0, out=rows, mode="clip")  # the other modes make a copy
    return np.matmul(W.T, rows.T, out=scores.reshape(k, n))


def few(n_rows: int, count: int) -> bool:
    """Return whether so many scores can be brought together."""
    return n_rows * count <= _SCORES


def area_of(found: Any, weighted: bool) -> tuple[Float, float]:
    """Return the AUC of each of the scores, and a bound of errors."""
    if isinstance(found, Pile):
        each = [area(scores, found.signed, weighted) for scores in found.scores]
        return np.array(each), 0.0
    middle, off = _from_counts(found)
    return middle, float(off.max())


def areas(
    table: Table, weights: list[Float], centre: list[Float], unit: list[Float]
) -> tuple[Float, float]:
    """Return the AUC of each column of weights and each fold, and a bound of errors."""
    exact = few(table.n_rows, weights[0].shape[1])
    whole = not table.weighted and table.n_rows < 1 << 32
    judges = Judges(weights, centre, unit, exact, whole)
    found = table.total(_judge, judges)
    both = [area_of(some, table.weighted) for some in found]
    return np.column_stack([each for each, _ in both]), max(off for _, off in both)


def _from_counts(counts: Float) -> tuple[Float, Float]:
    """Return areas, pairs within a cell counted half, and by how much they may be off.

    Of counts of the positives and the negatives in each cell.
    """
    pos, neg = (counts[:, k] / counts[:, k].sum(axis=1)[:, None] for k in (0, 1))
    below = np.cumsum(neg, axis=1) - neg
    within = 0.5 * (pos * neg).sum(axis=1)
    return (pos * below).sum(axis=1) + within, within
