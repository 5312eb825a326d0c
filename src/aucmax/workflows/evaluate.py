"""Evaluation of a model on labelled data, from one sort of the scores.

Only the score, class and weight of each row are kept in memory. With weights, lengths
of lists and counts of rows are sums of weights.
"""

from collections.abc import Callable, Sequence
from math import isfinite, nan
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from aucmax.io.batch import Positive, Source
from aucmax.io.malformed_lines import BadLines
from aucmax.metrics._ranking import Steps, steps
from aucmax.metrics._variance import Interval, wilson
from aucmax.metrics.auc import AUCInterval, auc_interval, interval, partial_area
from aucmax.metrics.decisions import OperatingPoint, point
from aucmax.metrics.groups import auc_by_group
from aucmax.metrics.top import (
    base_rate,
    effective_rows,
    mean_precision,
    precision_of_all_positives,
    top,
)
from aucmax.tables.labels import Task
from aucmax.tables.periods import as_words, periods
from aucmax.workflows.score import Model, scored
from aucmax.workflows.select_rows import Scores

LISTS: tuple[int | float, ...] = (100, 0.01, 0.1)  # default lengths of lists
RATES = (0.01, 0.05, 0.1)  # false positive rates of the operating points


class Labels(NamedTuple):
    """A column of text: row i is ``names[codes[i]]``."""

    codes: NDArray[np.intp]
    names: list[str]

    def text(self) -> NDArray[Any]:
        """Return the text of each row."""
        return np.array(self.names, dtype=object)[self.codes]

    def with_periods(self) -> "Labels":
        """Return dates as periods of time, and other values as they are."""
        place, names = as_words(periods(np.array(self.names, dtype=object)))
        return Labels(place[self.codes], names)


class _LabelReader:
    """Collects a column of text."""

    def __init__(self) -> None:
        self._code_of: dict[str, int] = {}
        self._codes: list[NDArray[np.intp]] = []

    def add(self, values: NDArray[Any]) -> None:
        code_of = self._code_of
        found = [code_of.setdefault(v, len(code_of)) for v in values.tolist()]
        self._codes.append(np.array(found, np.intp))

    def labels(self) -> Labels:
        names = [str(value) for value in self._code_of]
        codes = np.concatenate([np.empty(0, np.intp), *self._codes])
        return Labels(codes, names).with_periods()


class ScoredRows(NamedTuple):
    """Scores, labels and weights of the evaluated rows."""

    scores: Scores
    positive: Positive
    group: Labels | None
    time: Labels | None
    weight: Scores | None


class Top(NamedTuple):
    """The top of the ranking."""

    k: int | float  # as requested
    rows: float
    precision: Interval
    lift: float
    recall: float


class Group(NamedTuple):
    """The rows with one value in a column."""

    name: str
    rows: int
    positives: int
    auc: AUCInterval | None  # None if there is only one class


class Evaluation(NamedTuple):
    """Measures of a ranking."""

    rows: int
    positives: int
    weight: tuple[float, float] | None  # of all rows and of the positives
    level: float
    auc: AUCInterval
    max_fpr: float
    partial: float  # area up to max_fpr
    standardised: float  # the same on the scale of an AUC
    average_precision: float
    breakeven: float
    tops: list[Top]
    points: list[tuple[str, float, OperatingPoint]]  # with what was requested
    groups: list[Group]
    equal_groups: float  # p-value of a test that all groups have the same AUC
    ranking: Steps  # for a plot
    auc_95: AUCInterval  # for a plot: always at the level 95 %

    def to_json(self) -> dict[str, Any]:
        """Return the measures for JSON; None for values that are not finite."""
        return {
            "rows": self.rows,
            "positives": self.positives,
            "weight": self.weight
            and dict(zip(("rows", "positives"), self.weight, strict=True)),
            "level": self.level,
            "auc": _interval(self.auc),
            "partial_auc": {
                "max_fpr": self.max_fpr,
                "value": self.partial,
                "standardised": self.standardised,
            },
            "average_precision": self.average_precision,
            "breakeven": self.breakeven,
            "at": [
                top._asdict() | {"precision": _interval(top.precision)}
                for top in self.tops
            ],
            "operating_points": [
                {"for": purpose, "wanted": wanted, **_finite(point._asdict())}
                for purpose, wanted, point in self.points
            ],
            "groups": [
                {
                    "group": group.name,
                    "rows": group.rows,
                    "positives": group.positives,
                    "auc": group.auc and _interval(group.auc),
                }
                for group in self.groups
            ],
            "groups_pvalue": self.equal_groups if isfinite(self.equal_groups) else None,
        }


def collect(
    model: Model,
    source: Source,
    bad: BadLines,
    watch: Callable[[int, int], None],
    by: str | None = None,
    time: str | None = None,
    positive: str | None = None,
) -> ScoredRows:
    """Score all labelled rows, and read columns of groups and of time.

    ``positive`` is as for ``Task.parse``.
    """
    task = model.task()
    if positive is not None or not task.settled:
        task = Task.parse(positive)
    scores, sides, weights = [], [], []
    readers = {name: _LabelReader() for name in (by, time) if name is not None}
    for batch, batch_scores in scored(model, source, watch):
        if batch.labels is not None and not task.settled:
            task = task.settle(batch.labels)
        labelled = batch.labelled(task)
        bad.take(labelled.malformed)
        bad.unlabelled += labelled.unlabelled
        kept = np.isin(batch.line_numbers, labelled.line_numbers)
        scores.append(batch_scores[kept])
        weights.append(labelled.weights)
        sides.append(labelled.labels)
        for name, reader in readers.items():
            reader.add(labelled.extra[name])
    if not any(part.size for part in scores):
        remark = bad.remark()
        reason = f"; {remark}" if remark else "."
        raise ValueError(f"There is no row in {', '.join(source.files)}{reason}")
    columns = {name: reader.labels() for name, reader in readers.items()}
    return ScoredRows(
        np.concatenate(scores),
        np.concatenate(sides),
        columns[by] if by is not None else None,
        columns[time] if time is not None else None,
        _joined(weights, source),
    )


def _joined(weights: Sequence[Scores | None], source: Source) -> Scores | None:
    found = [part for part in weights if part is not None]
    if found and len(found) < len(weights):
        raise ValueError(
            f"Only some of {', '.join(source.files)} have weights: evaluate the files "
            "one by one, or without weights (--weight none)."
        )
    return np.concatenate(found) if found else None


def evaluate(
    rows: ScoredRows,
    *,
    at: Sequence[int | float] | None = None,
    max_fpr: float = 0.1,
    level: float = 0.95,
) -> Evaluation:
    """Compute all measures; ``at`` are lengths of lists, see ``precision_at``."""
    scores, positive, weight = rows.scores, rows.positive, rows.weight
    n, positives = positive.size, int(np.count_nonzero(positive))
    if positives in (0, n):
        name = "positive" if positives else "negative"
        raise ValueError(
            f"All {n:,} rows are {name}: the evaluation needs rows of both classes."
        )
    ranking = steps(positive, scores, weight)
    total, mass = float(ranking.tp[-1] + ranking.fp[-1]), float(ranking.tp[-1])
    if at is None:
        at = [k for k in LISTS if (k <= total if isinstance(k, int) else k * n >= 1)]
    if weight is not None and max(at, default=0) > total:
        raise ValueError(
            f"--at {max(at)}: with weights, K is a sum of weights, and the weights of "
            f"all rows sum to {total:,.6g}."
        )
    points = [("fpr", rate, point(ranking, "fpr", rate)) for rate in RATES]
    # predict() calls rows with a score above zero positive, not those at zero.
    above = point(ranking, "threshold", float(np.nextafter(0.0, 1.0)))
    points.append(("threshold", 0.0, above._replace(threshold=0.0)))

    def area(level: float) -> AUCInterval:
        if weight is None:  # reuse the sort, which takes longest
            return interval(ranking, level)
        return auc_interval(positive, scores, level=level, sample_weight=weight)

    groups, equal = _groups(rows, level)
    return Evaluation(
        rows=n,
        positives=positives,
        weight=None if weight is None else (total, mass),
        level=level,
        auc=area(level),
        max_fpr=max_fpr,
        partial=partial_area(ranking, max_fpr),
        standardised=partial_area(ranking, max_fpr, standardise=True),
        average_precision=mean_precision(ranking),
        breakeven=precision_of_all_positives(ranking),
        tops=[_top(ranking, rows, k, level) for k in at],
        points=points,
        groups=groups,
        equal_groups=equal,
        ranking=ranking,
        auc_95=area(0.95),
    )


def _top(ranking: Steps, rows: ScoredRows, k: int | float, level: float) -> Top:
    hits, length = top(ranking, k)
    count = length
    if rows.weight is not None:
        count = effective_rows(ranking, rows.scores, rows.weight, length)
    precision = wilson(hits / length, count, level)
    lift = precision.value / base_rate(ranking)
    return Top(k, length, precision, lift, hits / float(ranking.tp[-1]))


def _groups(rows: ScoredRows, level: float) -> tuple[list[Group], float]:
    """Return the groups, the largest first, and the p-value of equal AUCs."""
    if rows.group is None:
        return [], nan
    codes, names = rows.group
    found = auc_by_group(
        rows.positive, rows.scores, codes, level=level, sample_weight=rows.weight
    )
    groups = [
        Group(
            names[int(cast("int", one.group))],
            one.rows,
            one.positives,
            one.auc if isfinite(one.auc.value) else None,
        )
        for one in found.groups
    ]
    return sorted(groups, key=lambda group: (-group.rows, group.name)), found.pvalue


def _interval(found: AUCInterval | Interval) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value if isfinite(value) else None for key, value in values.items()}
