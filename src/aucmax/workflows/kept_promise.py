"""The goal of a model in training and on new data; whether its promise held."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.blended_model import BlendedModel
from aucmax.goals import AUC, parse
from aucmax.metrics._variance import Interval
from aucmax.thresholds import Threshold, verify


class GoalReport(NamedTuple):
    """A goal on out-of-fold scores or on new data."""

    goal: str
    value: Interval
    threshold: Threshold | None
    rate: Interval | None  # of the promise, on new data
    verdict: str  # of thresholds.verify; "" without a promise

    def to_json(self) -> dict[str, Any]:
        """Return the report for JSON."""
        found: dict[str, Any] = {"goal": self.goal, "value": list(self.value)}
        if self.threshold is not None:
            found |= {
                "threshold": self.threshold.value,
                "promise": str(self.threshold.promise),
                "confidence": self.threshold.confidence,
            }
        if self.rate is not None:
            found |= {"rate": list(self.rate), "verdict": self.verdict}
        return found


def training_goal(estimator: Any) -> GoalReport | None:
    """Return the goal on out-of-fold scores; None if the model has none but AUC."""
    if not isinstance(estimator, BlendedModel):
        return None
    goal = parse(estimator.goal)
    if isinstance(goal, AUC):
        return None
    return GoalReport(str(goal), estimator.goal_, estimator.threshold_, None, "")


def goal_report(
    estimator: Any,
    scores: NDArray[np.float64],
    positive: NDArray[np.bool_],
    level: float,
    weight: NDArray[np.float64] | None = None,
) -> GoalReport | None:
    """Return the goal on scored rows; None if the model has none but AUC."""
    trained = training_goal(estimator)
    if trained is None:
        return None
    value = parse(trained.goal).interval(positive, scores, level, weight)
    threshold = trained.threshold
    if threshold is None:
        return trained._replace(value=value)
    rate, verdict = verify(
        positive, scores, threshold, level=level, sample_weight=weight
    )
    return GoalReport(trained.goal, value, threshold, rate, verdict)
