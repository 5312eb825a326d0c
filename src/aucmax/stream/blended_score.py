"""Score of AUCStream: calibrated blend of linear and nonlinear members."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from aucmax.base.ranker import product
from aucmax.core.rows import Float
from aucmax.stream.members import MappedMember, Member
from aucmax.stream.serving import ServedScores


class BlendedScore(NamedTuple):
    """A linear score plus the scores of nonlinear members."""

    w: Float
    intercept: float
    mapped: list[tuple[Any, Float]]  # feature maps, and weights of their features

    @classmethod
    def of(
        cls, members: Sequence[Member], served: ServedScores, n_features: int
    ) -> Self:
        """Return the present score of the blend, as calibrated log-odds."""
        slope, intercept = served.calibration()
        w, mapped = np.zeros(n_features), []
        factors = slope * served.weights / served.scale
        for factor, member in zip(factors, members, strict=True):
            if factor == 0.0:
                continue
            weights, offset = member.weights()
            intercept += factor * offset
            if isinstance(member, MappedMember):
                mapped.append((member.learner.current()[0], factor * weights))
            else:
                w += factor * weights
        return cls(w, float(intercept), mapped)

    def score(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        scores = product(X, self.w) + self.intercept
        for feature_map, w in self.mapped:
            scores += feature_map.scores(X, w)
        return scores
