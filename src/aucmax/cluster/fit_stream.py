"""SPAM, OAM and PSAM on a cluster: one learner per partition, then their mean.

This is not the model of a single machine, where one learner sees all rows in sequence:
docs/scale.md has the loss of AUC. A learner needs rows of both classes, about a
thousand or more, so partitions must be mixed and not small.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from aucmax.cluster.distributed_rows import Block, DistributedRows
from aucmax.core.rows import Float
from aucmax.online.base import OnlineAUC

_FEWEST = 1000  # rows per partition: with 300, the mean loses 0.002 to 0.005 of AUC


class _WeightSum(NamedTuple):
    """Weights and intercepts of learners, added up."""

    sums: Float  # (d + 1,) times rows
    rows: float
    learners: int

    def __add__(self, other: Any) -> "_WeightSum":
        return _WeightSum(*(a + b for a, b in zip(self, other, strict=True)))


def _learn(block: Block, model: OnlineAUC) -> _WeightSum:
    """Learn from one pass over a block; a block of one class counts as no rows."""
    n, d = block.X.shape
    if not (np.any(block.signed > 0.0) and np.any(block.signed < 0.0)):
        return _WeightSum(np.zeros(d + 1), 0.0, 0)
    learner = clone(model).partial_fit(
        block.X,
        block.signed > 0.0,
        classes=[False, True],
        sample_weight=np.abs(block.signed),
    )
    weights = np.append(learner.coef_[0], learner.intercept_)
    return _WeightSum(n * weights, float(n), 1)


def fit_stream(model: OnlineAUC, rows: DistributedRows) -> None:
    """Fit one learner per partition, and average them; one pass."""
    model.__dict__.pop("state_", None)  # of an earlier fit
    found: _WeightSum = rows.total(_learn, model)
    if not found.learners:
        raise ValueError(
            "No partition has rows of both classes, so no learner can be trained. "
            "Shuffle the rows, or use LeastSquaresAUC or BAM."
        )
    if found.learners > 1 and found.rows < _FEWEST * found.learners:
        raise ValueError(
            f"{found.learners} learners have {found.rows / found.learners:.0f} rows "
            f"each; below {_FEWEST}, their mean is worse than one learner. Use larger "
            "partitions, or LeastSquaresAUC or BAM."
        )
    mean = found.sums / found.rows
    model.coef_, model.intercept_ = mean[np.newaxis, :-1].copy(), mean[-1:].copy()
    model.n_iter_ = 1
