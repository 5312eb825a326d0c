"""Learners of streams on a cluster: one a partition, then their mean.

Unlike all else on a cluster, that is not the model of one machine, where one learner
sees all rows one after the other: docs/scale.md has what it loses. A learner needs
rows of both classes and about a thousand before its weights are worth adding up,
so that partitions must be mixed and must not be small.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from aucmax.cluster.blocks import Block, Table
from aucmax.core.rows import Float
from aucmax.online.base import OnlineAUC

_FEW = 1000  # rows of a partition: with 300, 0.002 to 0.005 of AUC is lost


class Learnt(NamedTuple):
    """Weights and intercept of learners, added up."""

    sums: Float  # (d + 1,) times rows
    rows: float  # that were learnt
    learners: int

    def __add__(self, other: Any) -> "Learnt":
        return Learnt(*(a + b for a, b in zip(self, other, strict=True)))


def _learn(block: Block, model: OnlineAUC) -> Learnt:
    """Return what one pass over a block teaches: nothing, if it has one class."""
    n, d = block.X.shape
    if not (np.any(block.signed > 0.0) and np.any(block.signed < 0.0)):
        return Learnt(np.zeros(d + 1), 0.0, 0)
    one = clone(model).partial_fit(
        block.X,
        block.signed > 0.0,
        classes=[False, True],
        sample_weight=np.abs(block.signed),
    )
    return Learnt(n * np.append(one.coef_[0], one.intercept_), float(n), 1)


def fit_stream(model: OnlineAUC, table: Table) -> None:
    """Fit to all rows: one pass, by one learner a partition."""
    if hasattr(model, "state_"):
        del model.state_
    found: Learnt = table.total(_learn, model)
    if not found.learners:
        raise ValueError(
            "No partition has rows of both classes, so that nothing can be learnt "
            "within one: shuffle the rows, or use LeastSquaresAUC or BAM."
        )
    if found.learners > 1 and found.rows < _FEW * found.learners:
        raise ValueError(
            f"{found.learners} learners have seen {found.rows / found.learners:.0f} "
            f"rows each; below {_FEW}, their mean is worse than one learner. Take "
            "larger partitions, or LeastSquaresAUC or BAM."
        )
    mean = found.sums / found.rows
    model.coef_, model.intercept_ = mean[np.newaxis, :-1].copy(), mean[-1:].copy()
    model.n_iter_ = 1
