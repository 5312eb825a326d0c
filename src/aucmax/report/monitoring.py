"""Change over time: AUC and stability of the scores by period."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics.auc import AUCInterval
from aucmax.metrics.calibration import stability_index
from aucmax.metrics.groups import auc_by_group
from aucmax.tables.periods import texts


class Period(NamedTuple):
    """One period of time."""

    name: str
    rows: int
    positives: int
    auc: AUCInterval  # NaN if there are not rows of both classes
    stability: float  # index of the scores against the first period


def by_period(
    positive: NDArray[np.bool_], score: Any, period: ArrayLike, level: float = 0.95
) -> list[Period]:
    """Compare periods of time; ``period`` has names of periods, which sort in order."""
    names = texts(period)
    found = auc_by_group(positive, score, names, level=level)
    ordered = sorted(found.groups, key=lambda one: str(one.group))
    first = score[names == ordered[0].group]
    return [
        Period(
            str(one.group),
            one.rows,
            one.positives,
            one.auc,
            stability_index(first, score[names == one.group]).value,
        )
        for one in ordered
    ]
