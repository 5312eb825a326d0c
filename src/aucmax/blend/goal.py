"""The goal of a classifier on its out-of-fold scores, and its threshold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.core.rows import Float
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning
from aucmax.goals import AUC, Goal
from aucmax.metrics._variance import Interval
from aucmax.metrics.auc import AUCInterval
from aucmax.thresholds import NotAchievableError, Threshold, choose


def reach(
    goal: Goal,
    scores: Float,
    positive: NDArray[np.bool_],
    auc: AUCInterval,
    weight: Float | None,
    groups: NDArray[Any] | None,
) -> tuple[Interval, Threshold | None]:
    """Return the value of a goal, and the threshold that keeps its promise.

    The goal "auc" has the cross-fitted ``auc``. ``scores`` are NaN for rows in no test
    fold. ``groups`` are those of the design, or the numbers of distinct rows. There is
    no threshold if the goal promises nothing, or if the rows are too few; then there is
    a warning.
    """
    known = ~np.isnan(scores)
    sample: Any = {
        "sample_weight": None if weight is None else weight[known],
        "groups": None if groups is None else groups[known],
    }
    value = Interval(*auc[:3])
    if not isinstance(goal, AUC):
        value = goal.interval(positive[known], scores[known], **sample)
    promise = goal.promise(len(scores))
    if promise is None:
        return value, None
    try:
        return value, choose(positive[known], scores[known], promise, **sample)
    except NotAchievableError as error:
        message = f"{error} predict uses a probability of one half instead."
        warn_user(message, DataWarning)
        return value, None
