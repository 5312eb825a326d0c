"""Score of AUCStream: calibrated blend of linear members and trees."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from aucmax.base.ranker import product
from aucmax.core.rows import Float
from aucmax.stream.members import MappedMember, Member
from aucmax.stream.serving import ServedScores
from aucmax.stream.tree_columns import TreeScore


class BlendedScore(NamedTuple):
    """A linear score plus the scores of nonlinear members.

    ``mapped`` is empty except in models of version 0.1.0.
    """

    w: Float
    intercept: float
    mapped: list[tuple[Any, Float]]  # feature maps, and weights of their features
    trees: TreeScore | None = None
    tree_weight: float = 0.0

    @classmethod
    def of(
        cls,
        members: Sequence[Member],
        served: ServedScores,
        n_features: int,
        trees: TreeScore | None,
    ) -> Self:
        """Return the present score of the blend, as calibrated log-odds.

        If there are more scores than members, the last one is that of the trees.
        """
        slope, intercept = served.calibration()
        w, mapped = np.zeros(n_features), []
        factors = slope * served.weights / served.scale
        for factor, member in zip(factors[: len(members)], members, strict=True):
            if factor == 0.0:
                continue
            weights, offset = member.weights()
            intercept += factor * offset
            if isinstance(member, MappedMember):
                mapped.append((member.learner.current()[0], factor * weights))
            else:
                w += factor * weights
        share = float(factors[-1]) if len(factors) > len(members) else 0.0
        if trees is None or share == 0.0:
            return cls(w, float(intercept), mapped)
        return cls(w, float(intercept), mapped, trees, share)

    @property
    def linear(self) -> bool:
        """Whether only linear members have a weight."""
        return not self.mapped and self.trees is None

    def score(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        scores = product(X, self.w) + self.intercept
        for feature_map, w in self.mapped:
            scores += feature_map.scores(X, w)
        if self.trees is not None:
            scores += self.tree_weight * self.trees.scores(X)
        return scores
