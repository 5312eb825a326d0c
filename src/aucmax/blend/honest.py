"""Data with time or groups: splits that do not flatter, and the AUC by them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.crossfit import Fold, TrainingRows
from aucmax.core.rows import Float, Index
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning, refuse_mask
from aucmax.metrics.auc import AUCInterval, around, auc_interval
from aucmax.metrics.groups import BlockAUC, prediction_interval
from aucmax.tables.frames import plain_value
from aucmax.tables.periods import as_words, moments

_DAY = 86_400.0  # seconds
_CUTS = (0.5, 0.6, 0.7, 0.8, 0.9)  # shares of the rows before each test block
_TRAINED = 3  # rows of each class before a test block
_TESTED = (5, 1)  # and in it; fewer if the rows are too few for any block
_ENOUGH = 3  # test blocks; fewer give a wide interval


class Design(NamedTuple):
    """Time and group of each row, if they are known."""

    time: Float | None  # seconds, or numbers; NaN if missing
    group: NDArray[Any] | None

    @property
    def kind(self) -> str:
        """What an estimate is for: later rows, other groups, or neither."""
        if self.time is not None:
            return "time"
        return "" if self.group is None else "group"

    def chosen(self, rows: Index | NDArray[np.bool_]) -> "Design":
        """Return some of the rows."""
        return Design(
            None if self.time is None else self.time[rows],
            None if self.group is None else self.group[rows],
        )


def group_of_rows(values: Any) -> NDArray[Any] | None:
    """Return the group of each row in a form that can be sorted, None for none.

    Missing values are a group.
    """
    if values is None:
        return None
    refuse_mask(values, "groups")
    groups = np.asarray(values)
    if groups.ndim != 1:
        return groups
    if groups.dtype == object:
        missing = [plain_value(value) is None for value in groups.tolist()]
        return np.where(missing, -1, as_words(groups).codes)
    return np.unique(groups, return_inverse=True)[1]


def time_of_rows(values: Any, name: str) -> Float:
    """Return a column of dates or numbers as floats that increase with time."""
    column = np.asarray(values)
    dates = moments(column)
    if dates is not None:
        seconds = dates.astype("datetime64[s]").astype(np.float64)
        seconds[np.isnat(dates)] = np.nan
        return seconds
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"time={name!r}: the values of this column are neither dates nor numbers, "
            f"such as {column[0]!r}."
        ) from None


def time_splits(
    design: Design, gap: float, dates: bool, positive: NDArray[np.bool_]
) -> list[tuple[Index, Index]]:
    """Return forward splits: up to five test blocks, each after its training rows.

    They are tenths of the rows of the later half. A block ends at a moment, not within
    one, and is joined with the one before it if it has too few rows of a class; the
    first one is then not tested. Training rows are older than the block by more than
    ``gap``, in days for dates. Rows without a time are training rows. With groups,
    training rows of a group in the test block are left out.
    """
    time, group = design
    assert time is not None
    known = time[~np.isnan(time)]
    distinct = np.unique(known)
    if distinct.size < 3:
        raise ValueError(
            f"time has {distinct.size} distinct values: at least 3 are needed to train "
            "on earlier and test on later rows."
        )
    starts = _starts(known)
    wait = gap * (_DAY if dates else 1.0)

    def fewest(rows: NDArray[np.bool_]) -> int:
        return int(min(np.sum(positive[rows]), np.sum(~positive[rows])))

    for least in _TESTED:
        splits, end = [], np.inf
        for start in reversed(starts):
            test = (time >= start) & (time < end)
            train = np.isnan(time) | (time < start - wait)
            if group is not None:
                train &= ~np.isin(group, group[test])
            if fewest(train) >= _TRAINED and fewest(test) >= least:
                splits.append((np.flatnonzero(train), np.flatnonzero(test)))
                end = start
        if splits:
            return splits[::-1]
    raise ValueError(
        "time: there is no moment in the later half of the rows with both classes "
        f"after it and {_TRAINED} rows of each class before it"
        + (f", more than {gap:g} earlier. Reduce gap, or leave" if gap else ". Leave")
        + " out time."
    )


def few_blocks(time: Float, count: int) -> str:
    """Return why ``count`` test blocks are few, and what to do; "" if they suffice."""
    if count >= _ENOUGH:
        return ""
    known = time[~np.isnan(time)]
    reason = (
        "another one would have too few rows of a class, or too few before it. Use "
        "more rows"
    )
    if len(_starts(known)) < _ENOUGH:
        distinct = np.unique(known).size
        reason = f"the column has {distinct} distinct values. Use a finer time column"
    if count > 1:
        return f"time: only {count} test blocks: {reason} for a narrower interval."
    return (
        f"time: only 1 test block: {reason} to learn how AUC varies in time. The "
        "interval of auc_ is a confidence interval for that block."
    )


def _starts(known: Float) -> list[float]:
    """Return the times at which test blocks may start; fewer if times are equal."""
    starts = [float(np.quantile(known, share, method="higher")) for share in _CUTS]
    second = float(np.unique(known)[1])  # older rows are needed for training
    return sorted({max(start, second) for start in starts})


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
