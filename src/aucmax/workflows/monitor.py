"""Change of evaluated rows over time, and against the training rows."""

from math import nan
from typing import Any

import numpy as np
from scipy.special import expit

from aucmax.report.monitoring import (
    ColumnShift,
    Monitoring,
    UnlabelledRows,
    monitor,
)
from aucmax.tables.periods import MISSING
from aucmax.workflows.evaluate import ScoredRows


def column_shifts(rows: ScoredRows) -> list[ColumnShift]:
    """Compare important columns with the training rows, also in the last period."""
    later = rows.unlabelled
    if later is None or not rows.histograms:
        return []
    bins = np.concatenate([rows.bins, later.bins])
    last = None
    if rows.time is not None and later.time is not None:
        names = np.concatenate([rows.time.text(), later.time.text()])
        dated = names[names != MISSING]
        last = names == max(dated) if dated.size else None
    return [
        ColumnShift(
            one.column,
            one.stability(bins[:, j]),
            nan if last is None else one.stability(bins[last, j]),
        )
        for j, one in enumerate(rows.histograms)
    ]


def unlabelled_rows(rows: ScoredRows, calibrated: bool) -> UnlabelledRows | None:
    """Return the rows without a label for a report; None if there are none."""
    later = rows.unlabelled
    if later is None or not later.scores.size:
        return None
    return UnlabelledRows(
        later.scores,
        expit(later.scores) if calibrated else None,
        None if later.time is None else later.time.text(),
    )


def monitored(rows: ScoredRows, calibrated: bool, level: float) -> Monitoring:
    """Return what a report says about time, columns and rows without a label."""
    return monitor(
        rows.positive,
        rows.scores,
        probability=expit(rows.scores) if calibrated else None,
        period=None if rows.time is None else rows.time.text(),
        unlabelled=unlabelled_rows(rows, calibrated),
        columns=column_shifts(rows),
        level=level,
    )


def to_json(found: Monitoring) -> dict[str, Any]:
    """Return the monitoring for JSON."""

    def limits(interval: Any) -> list[float] | None:
        known = interval is not None and np.isfinite(interval[0])
        return list(interval[:3]) if known else None

    return {
        "periods": [
            one._asdict() | {"auc": limits(one.auc), "expected": limits(one.expected)}
            for one in found.periods
        ],
        "columns": [
            one._asdict() | {"last": one.last if np.isfinite(one.last) else None}
            for one in found.columns
        ],
        "unlabelled": found.unlabelled,
        "expected_auc": limits(found.expected),
        "doubt": found.doubt,
        "advice": found.advice,
    }
