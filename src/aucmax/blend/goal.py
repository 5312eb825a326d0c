"""The goal of a classifier on its out-of-fold scores, and its threshold."""

import numpy as np

from aucmax.core.rows import Float
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning
from aucmax.goals import AUC, Goal
from aucmax.metrics.delong import AUCInterval
from aucmax.metrics.intervals import Interval
from aucmax.thresholds import NotAchievableError, Threshold, choose


def reach(
    goal: Goal, scores: Float, signed: Float, auc: AUCInterval
) -> tuple[Interval, Threshold | None]:
    """Return the value of a goal, and the threshold that keeps its promise.

    The goal "auc" has the cross-fitted ``auc``. ``scores`` are NaN for rows in no test
    fold. There is no threshold if the goal promises nothing, or if the rows are too
    few; then there is a warning.
    """
    known = ~np.isnan(scores)
    positive = signed[known] > 0.0
    value = Interval(*auc[:3])
    if not isinstance(goal, AUC):
        value = goal.interval(positive, scores[known])
    promise = goal.promise(len(signed))
    if promise is None:
        return value, None
    try:
        return value, choose(positive, scores[known], promise)
    except NotAchievableError as error:
        message = f"{error} predict uses a probability of one half instead."
        warn_user(message, DataWarning)
        return value, None
