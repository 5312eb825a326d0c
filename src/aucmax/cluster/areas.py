"""The AUC of many weights on the rows of folds that they have not seen.

Few scores are brought together and ranked, which is exact. Of many, each worker counts
how many rows of a class are in each of some thousand cells of the score. Then only
pairs within a cell, counted half, may be wrong: the error is at most half of their
share, which is known; and where classes are mixed evenly within a cell, next to none.
"""

from typing import Any, NamedTuple

import numpy as np

from aucmax.cluster.blocks import Block, Table
from aucmax.cluster.folds import fold_of
from aucmax.core.base import product
from aucmax.core.folds import area
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
    found: list[Any] = []
    for number, W in enumerate(judges.weights):
        here = np.flatnonzero(fold == number)
        X, signed = block.X[here], block.signed[here]
        if judges.exact:
            found.append(Pile(np.ascontiguousarray(product(X, W).T), signed))
            continue
        counts = np.zeros((W.shape[1], 2 * _CELLS))
        scale = _FINENESS / judges.unit[number]
        offset = 0.5 * _CELLS - judges.centre[number] * scale
        side = np.where(signed > 0.0, 0, _CELLS)
        size = max(_GROUP // W.shape[1], 1)
        for start in range(0, len(here), size):
            part = slice(start, start + size)
            at = product(X[part], W) * scale + offset
            cells = np.clip(at, 0, _CELLS - 1).astype(np.intp).T
            for k, cell in enumerate(cells):
                counts[k] += np.bincount(
                    cell + side[part], np.abs(signed[part]), 2 * _CELLS
                )
        found.append(counts)
    return found


def areas(
    table: Table, weights: list[Float], centre: list[Float], unit: list[Float]
) -> tuple[Float, float]:
    """Return the AUC of each column of weights and each fold, and a bound of errors."""
    n_scores = table.n_rows * weights[0].shape[1]
    judges = Judges(weights, centre, unit, n_scores <= _SCORES)
    found = table.total(_judge, judges)
    if judges.exact:
        columns = [
            [area(scores, pile.signed, table.weighted) for scores in pile.scores]
            for pile in found
        ]
        return np.array(columns).T, 0.0
    grids = [counts.reshape(-1, 2, _CELLS) for counts in found]
    both = [_from_counts(counts) for counts in grids]
    return (
        np.column_stack([middle for middle, _ in both]),
        max(float(off.max()) for _, off in both),
    )


def _from_counts(counts: Float) -> tuple[Float, Float]:
    """Return areas, pairs within a cell counted half, and by how much they may be off.

    Of counts of the positives and the negatives in each cell.
    """
    pos, neg = (counts[:, k] / counts[:, k].sum(axis=1)[:, None] for k in (0, 1))
    below = np.cumsum(neg, axis=1) - neg
    within = 0.5 * (pos * neg).sum(axis=1)
    return (pos * below).sum(axis=1) + within, within
