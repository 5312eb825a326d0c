"""Evaluation of a model on labelled data, from one sort of the scores.

Only the score, class and weight of each row are kept in memory. With weights, lengths
of lists and counts of rows are sums of weights.
"""

from collections.abc import Callable, Sequence
from math import isfinite, nan
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.blended_model import BlendedModel
from aucmax.blend.column_histograms import ColumnHistogram
from aucmax.io.batch import Batch, Positive, Source
from aucmax.io.collect import widened
from aucmax.io.fingerprint import HEAD, Origin
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
from aucmax.tables.periods import as_words, periods
from aucmax.workflows.run import requested_task
from aucmax.workflows.score import Model, scored
from aucmax.workflows.select_rows import Scores

LISTS: tuple[int | float, ...] = (100, 0.01, 0.1)  # default lengths of lists
_MOST_COLUMNS = 10  # that are compared with the training rows
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

    def beside(self) -> "_LabelReader":
        """Return a reader of other rows, with the same codes and periods."""
        other = _LabelReader()
        other._code_of = self._code_of
        return other


class Unlabelled(NamedTuple):
    """Rows without a label."""

    scores: Scores
    time: Labels | None
    bins: NDArray[np.uint8]  # as those of ScoredRows


class ScoredRows(NamedTuple):
    """Scores, labels and weights of the evaluated rows."""

    scores: Scores
    positive: Positive
    group: Labels | None
    time: Labels | None
    weight: Scores | None
    trained_on: list[str]  # files with rows of the training data, as far as known
    histograms: list[ColumnHistogram]  # of important columns; [] without monitoring
    bins: NDArray[np.uint8]  # (rows, histograms) bin of each row
    unlabelled: Unlabelled | None  # None without monitoring


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
    monitor: bool = False,
) -> ScoredRows:
    """Score all labelled rows, and read columns of groups and of time.

    ``positive`` is as for ``Task.parse``. With ``monitor``, rows without a label are
    scored too, if the source has them, and important columns are kept in bins.
    """
    task = model.task()
    if positive is not None or not task.settled:
        task = requested_task(positive, source)
    scores, sides, weights = [], [], []
    readers = {name: _LabelReader() for name in (by, time) if name is not None}
    waiting = readers[time].beside() if time is not None else None
    histograms: list[ColumnHistogram] = []
    if monitor and isinstance(model.estimator, BlendedModel):
        histograms = model.estimator.important_histograms(_MOST_COLUMNS)
    bins, later_bins, later = [], [], []
    heads: dict[str, Any] = {}
    for batch, batch_scores in scored(model, source, watch):
        places = _bins(model, histograms, batch)
        if (without := batch.without_label()).any():
            later.append(batch_scores[without])
            later_bins.append(places[without])
            if waiting is not None and time is not None:
                waiting.add(batch.extra[time][without])
            batch = _with_label(batch, ~without)
            batch_scores, places = batch_scores[~without], places[~without]
        if batch_scores.size and batch.file not in heads:
            heads[batch.file] = batch.rows[:HEAD]
        if batch.labels is not None and not task.settled:
            task = task.settle(batch.labels)
        labelled = batch.labelled(task)
        if monitor and labelled.weights is not None:
            raise ValueError(
                "--report does not support row weights: add --weight none."
            )
        bad.take(labelled.malformed)
        bad.unlabelled += labelled.unlabelled
        kept = np.isin(batch.line_numbers, labelled.line_numbers)
        scores.append(batch_scores[kept])
        bins.append(places[kept])
        weights.append(labelled.weights)
        sides.append(labelled.labels)
        for name, reader in readers.items():
            reader.add(labelled.extra[name])
    if not any(part.size for part in scores):
        bad.unlabelled += sum(part.size for part in later)
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
        Origin.from_recipe(model.recipe).among(heads),
        histograms,
        np.concatenate(bins),
        Unlabelled(
            np.concatenate([np.empty(0), *later]),
            None if waiting is None else waiting.labels(),
            np.concatenate([bins[0][:0], *later_bins]),
        )
        if monitor
        else None,
    )


def _bins(
    model: Model, histograms: Sequence[ColumnHistogram], batch: Batch
) -> NDArray[np.uint8]:
    """Return the bin of each row in each of the histograms."""
    found = np.empty((batch.rows.shape[0], len(histograms)), np.uint8)
    if histograms and len(found):
        columns = model.estimator.encoded_columns(widened(batch.rows, model.width))
        for j, one in enumerate(histograms):
            found[:, j] = one.bins(columns[:, one.feature])
    return found


def _with_label(batch: Batch, chosen: Positive) -> Batch:
    """Return the chosen rows with their text, for lines with malformed labels."""
    text = batch.text.filter(chosen) if batch.text is not None else None
    return batch.where(chosen)._replace(text=text)


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
