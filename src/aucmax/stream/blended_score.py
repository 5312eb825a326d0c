"""Score of AUCStream: calibrated blend of linear members and trees."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from aucmax.base.ranker import product
from aucmax.core.rows import Float
from aucmax.stream.members import Member
from aucmax.stream.tree_columns import TreeScore


class Blend(NamedTuple):
    """All of a blend that changes between blocks only; replaced, never changed.

    Other threads score by it while the members learn.
    """

    line: tuple[float, float]  # slope and intercept of the calibration
    factors: Float  # weight over scale of each score; the last may be that of trees
    members: Sequence[Member]
    starts: list[tuple[Float, float]]  # weights at the start of the block
    n_features: int
    trees: TreeScore | None


class BlendedScore(NamedTuple):
    """A linear score plus the score of trees."""

    w: Float
    intercept: float
    trees: TreeScore | None = None
    tree_weight: float = 0.0

    @classmethod
    def of(cls, blend: Blend, present: bool) -> Self:
        """Return the score of the blend, as calibrated log-odds.

        It is that of the present weights, or of those at the start of the block.
        """
        intercept, members, trees = blend.line[1], blend.members, blend.trees
        w, factors = np.zeros(blend.n_features), blend.factors
        for k, (factor, member) in enumerate(zip(factors, members, strict=False)):
            if factor == 0.0:
                continue
            weights, offset = member.present_weights() if present else blend.starts[k]
            intercept += factor * offset
            w += factor * weights
        share = float(factors[-1]) if len(factors) > len(members) else 0.0
        if trees is None or share == 0.0:
            return cls(w, float(intercept))
        return cls(w, float(intercept), trees, share)

    @property
    def linear(self) -> bool:
        """Whether only linear members have a weight."""
        return self.trees is None

    def score(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        scores = product(X, self.w) + self.intercept
        if self.trees is not None:
            scores += self.tree_weight * self.trees.scores(X)
        return scores
