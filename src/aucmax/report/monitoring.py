"""Change over time: AUC and stability by period, shifted columns, rows without labels.

All measures come from :mod:`aucmax.metrics`; this module only collects them.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics._variance import Interval
from aucmax.metrics.auc import AUCInterval
from aucmax.metrics.calibration import expected_auc, stability_index
from aucmax.metrics.comparison import auc_test_unpaired
from aucmax.metrics.groups import auc_by_group
from aucmax.tables.periods import MISSING, texts

_FEW_PERIODS = 3  # too few for advice
_DROP, _SHIFT = 0.01, 0.25  # of AUC and of the stability index, for training again
_NO_AUC = AUCInterval(np.nan, np.nan, np.nan, np.nan)


class Period(NamedTuple):
    """One period of time."""

    name: str
    rows: int  # with a label
    positives: int
    auc: AUCInterval  # NaN if there are not rows of both classes
    stability: float  # index of the scores against the first period
    unlabelled: int  # further rows
    expected: Interval | None  # AUC of these, by their probabilities


class ColumnShift(NamedTuple):
    """An important column of the new rows, compared with the training rows."""

    column: str
    stability: float  # index of all rows
    last: float  # and of the last period; NaN without periods


class UnlabelledRows(NamedTuple):
    """Rows whose labels are not known yet."""

    scores: ArrayLike
    probability: ArrayLike | None = None  # None if scores are not calibrated
    time: ArrayLike | None = None  # dates or periods, as those of the other rows


class Monitoring(NamedTuple):
    """How the rows and the ranking have changed."""

    periods: list[Period]
    columns: list[ColumnShift]
    unlabelled: int
    expected: Interval | None  # AUC of the rows without labels
    doubt: str  # why the expected AUC may be wrong, "" if there is no reason
    advice: str  # whether to train again, and why; "" without periods


def monitor(
    positive: NDArray[np.bool_],
    score: Any,
    *,
    probability: Any = None,
    period: ArrayLike | None = None,
    unlabelled: UnlabelledRows | None = None,
    columns: Sequence[ColumnShift] = (),
    level: float = 0.95,
) -> Monitoring:
    """Compare periods of time, and rows without labels with those that have them.

    ``period`` and the time of ``unlabelled`` are names of periods, which sort in order.
    """
    later = UnlabelledRows(np.empty(0)) if unlabelled is None else unlabelled
    scores = np.asarray(later.scores, np.float64)
    reference = None if probability is None else (positive, probability)
    if reference is None:
        later = later._replace(probability=None)
    expected, doubt = _expected(later.probability, reference, level)
    periods, advice = [], ""
    if period is not None:
        names = texts(period)
        periods = _periods(positive, score, names, level)
        if scores.size and later.time is not None:
            first = score[names == periods[0].name]
            periods = _with_unlabelled(periods, later, first, level)
        advice = _advice(positive, score, names, columns)
    return Monitoring(periods, list(columns), scores.size, expected, doubt, advice)


def _expected(probability: Any, reference: Any, level: float) -> tuple[Any, str]:
    """Return the expected AUC, and why it may be wrong."""
    if probability is None or not len(probability):
        return None, ""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = expected_auc(probability, reference=reference, level=level)
    known = found if np.isfinite(found.value) else None
    return known, "; ".join(str(one.message) for one in told)


def _periods(
    positive: NDArray[np.bool_], score: Any, period: NDArray[Any], level: float
) -> list[Period]:
    found = auc_by_group(positive, score, period, level=level)
    ordered = sorted(found.groups, key=lambda one: str(one.group))
    reference = score[period == ordered[0].group]
    return [
        Period(
            str(one.group),
            one.rows,
            one.positives,
            one.auc,
            stability_index(reference, score[period == one.group]).value,
            0,
            None,
        )
        for one in ordered
    ]


def _with_unlabelled(
    periods: Sequence[Period],
    later: UnlabelledRows,
    first: Any,
    level: float,
) -> list[Period]:
    """Return the periods with the rows without labels, and those that have no others.

    A period without labelled rows has the stability of the scores of the others.
    """
    names, scores = texts(later.time), np.asarray(later.scores)
    known = {one.name: one for one in periods}
    for name in np.unique(names):
        here = names == name
        p = None if later.probability is None else np.asarray(later.probability)[here]
        one = known.get(str(name))
        if one is None:
            shift = stability_index(first, scores[here]).value
            one = Period(str(name), 0, 0, _NO_AUC, shift, 0, None)
        expected, _ = _expected(p, None, level)  # all rows tell of the doubt
        rows = int(np.count_nonzero(here))
        known[str(name)] = one._replace(unlabelled=rows, expected=expected)
    return [known[name] for name in sorted(known)]


def _advice(
    positive: NDArray[np.bool_],
    score: Any,
    period: NDArray[Any],
    columns: Sequence[ColumnShift],
) -> str:
    """Return whether to train again, from the first and the last third of the time."""
    names = np.unique(period[period != MISSING])
    if names.size < _FEW_PERIODS:
        return ""
    third = names.size // 3
    early = np.isin(period, names[:third])
    late = np.isin(period, names[-third:])
    shift = stability_index(score[early], score[late]).value
    for rows in (early, late):
        if positive[rows].all() or not positive[rows].any():
            return ""
    test = auc_test_unpaired(positive[late], score[late], positive[early], score[early])
    value = f"AUC {test.difference:+.3f} (p = {test.pvalue:.2g})"
    found = (
        f"From the first to the last third of the periods: {value}, PSI {shift:.2f}."
    )
    moved = [f"{one.column} ({one.last:.2f})" for one in columns if one.last > _SHIFT]
    if moved:
        found += (
            f" Shifted since training, by PSI in the last period: {', '.join(moved)}."
        )
    if test.difference < -_DROP and test.pvalue < 0.05:
        return f"Training again is advised: the AUC falls. {found}"
    if shift > _SHIFT:
        return f"Training again is advised: the scores have shifted. {found}"
    return f"Training again is not needed yet. {found}"
