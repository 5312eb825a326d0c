"""AUC of models for data with time and groups, beside that of random folds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from aucmax.blend.boosting import Boosting
from aucmax.blend.crossfit import (
    FittedMember,
    Fold,
    Member,
    TrainingRows,
    crossfit,
    fold_of_rows,
    split_rows,
)
from aucmax.blend.honest_splits import Design, SplitComparison
from aucmax.core.rows import Float
from aucmax.metrics.area import auc
from aucmax.metrics.delong import AUCInterval, around, auc_interval

_FOLDS = 5  # of the random split


@dataclass(frozen=True)
class HonestEstimate:
    """Rows with a design, and the folds that respect it."""

    design: Design
    rows: TrainingRows
    folds: Sequence[Fold]

    @property
    def _last(self) -> Any:
        """Rows of the last test block."""
        return next(fold.test for fold in reversed(self.folds) if len(fold.test))

    def interval(self, scores: Float, found: AUCInterval) -> AUCInterval:
        """Return the AUC of the last block in time, or with clustered rows.

        Without time and groups it is the cross-fitted AUC as it was found.
        """
        time, group = self.design
        positive = self.rows.signed > 0.0
        weight = np.abs(self.rows.signed) if self.rows.weighted else None
        if time is not None:
            last = self._last
            return auc_interval(
                positive[last],
                scores[last],
                groups=None if group is None else group[last],
                sample_weight=None if weight is None else weight[last],
            )
        known = ~np.isnan(scores)
        if group is None or np.unique(group[known]).size < 2:
            return found
        labels, s = positive[known], scores[known]
        w = None if weight is None else weight[known]
        rows = auc_interval(labels, s, sample_weight=w).se
        clusters = auc_interval(labels, s, groups=group[known], sample_weight=w).se
        if not 0.0 < rows < clusters < inf:
            return found
        # Fewer independent rows: as many fewer as clusters enlarge the variance.
        times = (clusters / rows) ** 2
        m = float(np.count_nonzero(labels)) / times
        n = float(np.count_nonzero(~labels)) / times
        se = found.se * clusters / rows
        return around(found.value, se, max(m, 1.0), max(n, 1.0), 0.95)

    def compare(
        self,
        members: Sequence[Member],
        fitted: Sequence[FittedMember],
        seed: int,
        n_jobs: int,
    ) -> SplitComparison | None:
        """Return the AUC of one boosted model by random folds and by these.

        None for plain tables, and for members without boosted trees.
        """
        trees = [member for member in members if isinstance(member.estimator, Boosting)]
        if self.design.plain or not trees:
            return None
        random = split_rows(_FOLDS, self.rows.signed, None, seed)
        (other,) = crossfit(trees[:1], self.rows, [random], seed, n_jobs=n_jobs)
        mine = next(one for one in fitted if one.name == other.name)
        positive = self.rows.signed > 0.0
        n = positive.size
        if self.design.time is None:
            honest = _mean_area(positive, mine.scores, fold_of_rows(self.folds, n))
        else:
            honest = auc(positive[self._last], mine.scores[self._last])
        by_chance = _mean_area(positive, other.scores, fold_of_rows(random, n))
        return SplitComparison(other.name, by_chance, honest)


def _mean_area(positive: Any, scores: Float, fold: Any) -> float:
    """Return the mean AUC over the folds."""
    tested = np.unique(fold[fold >= 0])
    return float(np.mean([auc(positive[fold == k], scores[fold == k]) for k in tested]))
