"""The goal of a model on new data, and whether its promise held."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.blended_model import BlendedModel
from aucmax.goals import AUC, parse
from aucmax.metrics.intervals import Interval
from aucmax.thresholds import Threshold, verify


class GoalReport(NamedTuple):
    """A goal on new data."""

    goal: str
    value: Interval
    threshold: Threshold | None
    rate: Interval | None  # of the promise, on these data
    verdict: str  # of thresholds.verify; "" without a promise

    def to_json(self) -> dict[str, Any]:
        """Return the report for JSON."""
        found: dict[str, Any] = {"goal": self.goal, "value": list(self.value)}
        if self.threshold is not None and self.rate is not None:
            found |= {
                "threshold": self.threshold.value,
                "promise": str(self.threshold.promise),
                "confidence": self.threshold.confidence,
                "rate": list(self.rate),
                "verdict": self.verdict,
            }
        return found


def goal_report(
    estimator: Any,
    scores: NDArray[np.float64],
    positive: NDArray[np.bool_],
    level: float,
) -> GoalReport | None:
    """Return the goal on scored rows; None if the model has none but AUC."""
    if not isinstance(estimator, BlendedModel):
        return None
    goal = parse(estimator.goal)
    if isinstance(goal, AUC):
        return None
    value, threshold = goal.interval(positive, scores, level), estimator.threshold_
    if threshold is None:
        return GoalReport(str(goal), value, None, None, "")
    rate, verdict = verify(positive, scores, threshold, level=level)
    return GoalReport(str(goal), value, threshold, rate, verdict)
