"""Products with the covariances of features that are too many to have a matrix."""

from typing import Any, NamedTuple

import numpy as np

from aucmax.base.class_moments import NEG, POS, measure, merged
from aucmax.base.class_moments import ClassMoments as Tally
from aucmax.cluster.blocks import Block, Table
from aucmax.cluster.passes import over
from aucmax.core.rows import Float
from aucmax.linear.solvers.matrix_free import AllPairs


class Tallied(NamedTuple):
    """A tally that adds up."""

    tally: Tally

    def __add__(self, other: Any) -> "Tallied":
        return Tallied(merged(self.tally, other.tally))


def _measured(block: Block, _: None) -> Tallied:
    with np.errstate(all="ignore"):  # a class may have no rows here
        return Tallied(measure(block.rows, block.signed, block.X.shape[1]))


class Along(NamedTuple):
    """A direction, and the mean score of each class in it."""

    v: Float
    middle: Float  # (2,)
    weight: Float  # (2,) of each class


def _times(block: Block, along: Along) -> Float:
    """Return the covariances of the classes, times v."""

    def off(scores: Float, u: Float, start: int, stop: int) -> None:
        signed = block.signed[start:stop]
        side = np.where(signed > 0.0, POS, NEG)
        share = np.abs(signed) / along.weight[side]
        u[0] = share * (scores[0] - along.middle[side])

    return over(block, along.v[np.newaxis], 1, off)[0, :-1]


class Spread(AllPairs):
    """The system of all pairs, with X on the workers."""

    def __init__(self, table: Table, tally: Tally) -> None:
        super().__init__(None, np.zeros(0), tally)  # type: ignore[arg-type]
        self.table, self.weight = table, tally.weight

    def times(self, v: Float) -> Float:
        """Return H v: one pass, as mean scores are the scores of means."""
        v = np.where(self.varies, v, 0.0)
        middle = self.mean @ v
        Hv: Float = self.table.total(_times, Along(v, middle, self.weight))
        Hv = Hv + (middle[POS] - middle[NEG]) * self.delta
        return np.where(self.varies, Hv, 0.0)


def system(table: Table) -> tuple[Spread, Tally]:
    """Return the equations, and the tally of all rows; one pass."""
    tally = table.total(_measured, None).tally
    table.counts = tally.rows
    for rows, label in zip(tally.rows, table.classes[::-1], strict=True):
        if rows == 0.0:
            raise ValueError(
                f"No row of class {label} has a weight above zero; both classes are "
                "needed."
            )
    if not all(np.isfinite(some).all() for some in (tally.mean, tally.variance)):
        raise ValueError("Sums over X exceed the range of float64; rescale it.")
    return Spread(table, tally), tally
