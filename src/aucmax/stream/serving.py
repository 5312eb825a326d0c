"""Score of AUCStream: scale, calibration and progressive AUC of what it serves.

Rows are scored before they are learnt. These scores give each member's score scale, the
calibration of the blend by Platt's method, and a histogram from which the progressive
AUC is computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucmax.base.ranker import product
from aucmax.core.rows import Float
from aucmax.metrics.calibration import log_odds
from aucmax.stream.blocks import class_weights
from aucmax.stream.members import Member
from aucmax.stream.trees import TreeScore

_RECENT_ROWS = 1024  # rows of each class whose scores are kept for calibration
_MIN_SCORED = 10  # recent rows of each class that a late member must have scored
_RENEWAL = 0.5  # weight of the last block in the scale of a member's scores
_MIN_CLASS_WEIGHT = 1e-30  # of a class that has had no rows for many half-lives
_TAIL = 0.05  # fraction of the scores winsorised at either end to estimate the scale
_MAX_DEVIATION = 10.0  # in scales from the median; scores are clipped to it
_ROUNDING = 1e-10  # deviation of the scores of equal rows, relative to their size
_BINS = 4096
_MAX_ASINH = 10.0  # asinh of the largest log-odds with a bin of its own


@dataclass
class ServedScores:
    """Summary of the scores of ``K`` members, each computed before the row was learnt.

    A model file stores the arrays by the names that :meth:`arrays` gives.
    """

    recent: list[Float]  # (K, n) last scores of positives and negatives, in scales
    scale: Float  # (K,) scale of each member's scores
    weights: Float  # (K,) weights of the members in the blend
    class_weight: Float  # (3,) weight of the classes, recent rows count more; rows
    histogram: Float  # (2, bins) weight of the classes by calibrated score
    _calibration: tuple[float, float] | None = field(default=None, repr=False)

    @classmethod
    def start(cls, count: int, late: bool = False) -> Self:
        """Return the summary before the first block, with equal weights.

        With ``late``, there is one more member, whose weight is zero at first.
        """
        weights = np.append(np.full(count, 1.0 / count), [0.0] * late)
        count = len(weights)
        return cls(
            [np.zeros((count, 0)), np.zeros((count, 0))],
            np.ones(count),
            weights,
            np.zeros(3),
            np.zeros((2, _BINS)),
        )

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the summary of stored arrays; raise a ValueError if invalid."""
        served = cls(
            recent=[arrays["pos"], arrays["neg"]],
            scale=arrays["unit"],
            weights=arrays["mix"],
            class_weight=arrays["mass"],
            histogram=arrays["served"],
        )
        if not (served.scale > 0.0).all() or (served.weights < 0.0).any():
            raise ValueError("score scales are not positive, or weights are negative.")
        if (served.class_weight < 0.0).any() or (served.histogram < 0.0).any():
            raise ValueError("class weights are negative.")
        return served

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a model file stores."""
        return {
            **dict(zip(("pos", "neg"), self.recent, strict=True)),
            "unit": self.scale,
            "mix": self.weights,
            "mass": self.class_weight,
            "served": self.histogram,
        }

    def add_block(self, scores: Float, signed: Float) -> None:
        """Add the scores (K, m) of a block."""
        self._add_to_histogram(scores, signed)
        sides = signed > 0.0, signed < 0.0
        self._update_scale(scores, sides)
        scaled = scores / self.scale[:, np.newaxis]
        self.recent = [
            np.hstack([kept, scaled[:, side]])[:, -_RECENT_ROWS:]
            for kept, side in zip(self.recent, sides, strict=True)
        ]
        self._calibration = None

    def blended(self, scores: Float) -> Float:
        """Return the blend of the members' scores (K, m), before calibration."""
        return np.asarray((self.weights / self.scale) @ scores)

    def _add_to_histogram(self, scores: Float, signed: Float) -> None:
        slope, offset = self.calibration()
        place = _bin(slope * self.blended(scores) + offset)
        sides = signed > 0.0, signed < 0.0
        for counts, side in zip(self.histogram, sides, strict=True):
            counts += np.bincount(place[side], np.abs(signed[side]), _BINS)

    def _update_scale(self, scores: Float, sides: tuple[Any, Any]) -> None:
        """Update the scale of each member's scores.

        It is the winsorised standard deviation in the larger class and changes slowly.
        A single row, or a block with many positives, must not change it much, and
        neither must equal rows, as of a sensor that is stuck.
        """
        larger = scores[:, sides[int(self.class_weight[0] < self.class_weight[1])]]
        if not larger.shape[1]:
            return
        low, high = np.quantile(larger, (_TAIL, 1.0 - _TAIL), axis=1)
        deviation = np.clip(larger.T, low, high).std(axis=0)
        known = np.hstack(self.recent).any(axis=1)  # members that have scored rows
        differ = deviation > _ROUNDING * np.abs(larger).max(axis=1)
        ratio = np.where(differ, deviation, self.scale) / self.scale
        self.scale = self.scale * np.where(known, ratio**_RENEWAL, ratio)

    def add_classes(self, signed: Float, rows: float) -> None:
        """Add the class weights of a block that ends at row ``rows`` of the stream."""
        self.class_weight += *(rows * class_weights(signed)), len(signed)

    def fade(self, share: float) -> None:
        """Multiply the class weights so far by ``share``, unless they would vanish."""
        faded = share * self.class_weight
        self.class_weight[faded > _MIN_CLASS_WEIGHT] *= share

    def set_weights(self, weights: Float) -> None:
        """Set the weights of the members in the blend."""
        self.weights, self._calibration = weights, None

    def set_share_of_last(self, weights: Float, share: float) -> None:
        """Set the weights of all members but the last, and the share of the last one.

        The last member may begin to score later than the others. It gets a share when
        there are enough recent rows of both classes that it has scored; those from
        before are not used for calibration.
        """
        scored = [scores[:, scores[-1] != 0.0] for scores in self.recent]
        if share > 0.0 and self.weights[-1] == 0.0:
            if min(scores.shape[1] for scores in scored) < _MIN_SCORED:
                share = 0.0
            else:
                self.recent = scored
        self.set_weights(np.append((1.0 - share) * weights, share))

    def calibration(self) -> tuple[float, float]:
        """Return slope and offset of the log-odds of the blended, scaled score.

        They are fitted to the recent scores, blended by the present weights. Extreme
        scores are clipped.
        """
        if self._calibration is not None:
            return self._calibration
        # The bits of a product depend on the memory layout, which a file does not keep.
        pos, neg = (self.weights @ np.ascontiguousarray(side) for side in self.recent)
        both = bool(pos.size and neg.size)
        if both:
            larger = pos if self.class_weight[0] > self.class_weight[1] else neg
            bounds = np.median(larger) + np.array([-_MAX_DEVIATION, _MAX_DEVIATION])
            pos, neg = pos.clip(*bounds), neg.clip(*bounds)
        *weights, rows = self.class_weight
        line = log_odds(pos, neg, rows * np.array(weights) / (sum(weights) or 1.0))
        if both:
            self._calibration = line
        return line

    def progressive_auc(self) -> tuple[float, float]:
        """Return the weight of correctly ordered pairs and of all pairs of rows.

        Scores in the same bin count half, as ties do.
        """
        pos, neg = self.histogram
        below = np.cumsum(neg) - 0.5 * neg
        return float(pos @ below), float(pos.sum() * neg.sum())


def _bin(score: Float) -> NDArray[np.intp]:
    """Return the bins of log-odds: 0.005 wide near zero, 0.5 % wide for large ones."""
    place = (np.arcsinh(score) / _MAX_ASINH + 1.0) * (0.5 * _BINS)
    return np.clip(place, 0, _BINS - 1).astype(np.intp)


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
