"""AUC of models for data with time and groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from aucmax.blend.crossfit import Fold, TrainingRows
from aucmax.blend.honest_splits import Design, few_blocks
from aucmax.core.rows import Float
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning
from aucmax.metrics.auc import AUCInterval, around, auc_interval
from aucmax.metrics.groups import BlockAUC, prediction_interval

_RECENT = 2  # test blocks in time whose mean AUC is the estimate


@dataclass(frozen=True)
class HonestEstimate:
    """Rows with a design, and the folds that respect it."""

    design: Design
    rows: TrainingRows
    folds: Sequence[Fold]

    @property
    def kind(self) -> str:
        """What the interval predicts; "" if one block does not tell about others."""
        several = sum(len(fold.test) > 0 for fold in self.folds) > 1
        return self.design.kind if several else ""

    def interval(self, scores: Float, found: AUCInterval) -> AUCInterval:
        """Return the AUC with an interval for later rows, or for other groups.

        With time, the estimate is the mean AUC of the last two test blocks. The
        interval is a prediction interval: it includes the variation between the blocks
        or folds of groups, see :mod:`aucmax.metrics.groups`. Without time and
        groups it is the cross-fitted AUC as it was ``found``.
        """
        if not self.design.kind:
            return found
        blocks = _blocks(self.rows, scores, self.folds)
        if self.design.time is not None:
            if few := few_blocks(self.design.time, len(blocks)):
                warn_user(few, DataWarning)
            if len(blocks) == 1:
                return self._last_block(scores)
            return prediction_interval(blocks, _RECENT)
        clustered = self._clustered(scores, found)
        if len(blocks) == 1:
            return clustered
        low, high = prediction_interval(blocks, len(blocks))[1:3]
        return clustered._replace(
            low=min(low, clustered.low), high=max(high, clustered.high)
        )

    def _last_block(self, scores: Float) -> AUCInterval:
        last = next(fold.test for fold in reversed(self.folds) if len(fold.test))
        signed, group = self.rows.signed[last], self.design.group
        return auc_interval(
            signed > 0.0,
            scores[last],
            groups=None if group is None else group[last],
            sample_weight=np.abs(signed) if self.rows.weighted else None,
        )

    def _clustered(self, scores: Float, found: AUCInterval) -> AUCInterval:
        """Return the interval as wide as rows within groups depend on each other."""
        known = ~np.isnan(scores)
        assert self.design.group is not None
        group = self.design.group[known]
        if np.unique(group).size < 2:
            return found
        labels, s = self.rows.signed[known] > 0.0, scores[known]
        w = np.abs(self.rows.signed[known]) if self.rows.weighted else None
        rows = auc_interval(labels, s, sample_weight=w).se
        clusters = auc_interval(labels, s, groups=group, sample_weight=w).se
        if not 0.0 < rows < clusters < inf:
            return found
        # Fewer independent rows: as many fewer as clusters enlarge the variance.
        times = (clusters / rows) ** 2
        m = float(np.count_nonzero(labels)) / times
        n = float(np.count_nonzero(~labels)) / times
        se = found.se * clusters / rows
        return around(found.value, se, max(m, 1.0), max(n, 1.0), 0.95)


def _blocks(rows: TrainingRows, scores: Float, folds: Sequence[Fold]) -> list[BlockAUC]:
    """Return the AUC of each fold with test rows."""
    found = []
    for fold in folds:
        if not len(fold.test):
            continue
        signed = rows.signed[fold.test]
        positive = signed > 0.0
        weight = np.abs(signed) if rows.weighted else None
        value, *_, se = auc_interval(positive, scores[fold.test], sample_weight=weight)
        fewest = min(np.count_nonzero(positive), np.count_nonzero(~positive))
        found.append(BlockAUC(value, se, float(fewest)))
    return found
