"""How good a model is on data with labels: everything from one sort of the scores.

Of the data, only the score of each row is kept, whether it is positive, and its weight
if there are weights. Lengths and counts of rows are sums of weights then.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.io.batch import Positive, read_labels, take
from aucmax.io.chunk import Source
from aucmax.io.fingerprint import HEAD, Origin
from aucmax.io.malformed_lines import BadLines
from aucmax.metrics.area import partial_area
from aucmax.metrics.delong import AUCInterval, auc_interval, interval
from aucmax.metrics.operating_point import OperatingPoint, point
from aucmax.metrics.roc_steps import Steps, steps
from aucmax.metrics.top import (
    PrecisionInterval,
    base_rate,
    effective_rows,
    mean_precision,
    precision_of_all_positives,
    top,
    wilson,
)
from aucmax.workflows.run import requested_task
from aucmax.workflows.score import Model, Scores, scored

LISTS: tuple[int | float, ...] = (100, 0.01, 0.1)  # lengths, if nobody names any
RATES = (0.01, 0.05, 0.1)  # false positive rates that people ask for


class Judged(NamedTuple):
    """The rows of some data, as far as they are needed."""

    scores: Scores
    positive: Positive
    group: NDArray[np.int32] | None  # the place of each row's group in ``groups``
    groups: list[str]
    weight: Scores | None  # of each row, if the data have weights
    learnt: list[str]  # files with rows that the model was trained on, as far as known


class Top(NamedTuple):
    """The head of the ranking."""

    k: int | float  # as asked for
    rows: float
    precision: PrecisionInterval
    lift: float
    recall: float


class Group(NamedTuple):
    """The rows that have one value in a column."""

    name: str
    rows: int
    positives: int
    auc: AUCInterval | None  # None if all are of one class


class Evaluation(NamedTuple):
    """What there is to say about a ranking."""

    rows: int
    positives: int
    weight: tuple[float, float] | None  # of all rows and of the positives
    level: float
    auc: AUCInterval
    max_fpr: float
    partial: float  # area up to max_fpr …
    standardised: float  # … on the scale of an AUC
    average_precision: float
    breakeven: float
    tops: list[Top]
    points: list[tuple[str, float, OperatingPoint]]  # what was wanted, and what is
    groups: list[Group]
    ranking: Steps  # for a picture …
    drawn: AUCInterval  # … which gives 95 % intervals

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold; what is not a number is null."""
        return {
            "rows": self.rows,
            "positives": self.positives,
            "weight": None
            if self.weight is None
            else {"rows": self.weight[0], "positives": self.weight[1]},
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
                {
                    "k": top.k,
                    "rows": top.rows,
                    "precision": _interval(top.precision),
                    "lift": top.lift,
                    "recall": top.recall,
                }
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
                    "auc": None if group.auc is None else _interval(group.auc),
                }
                for group in self.groups
            ],
        }


def collect(
    model: Model,
    source: Source,
    bad: BadLines,
    watch: Callable[[int, int], None],
    by: str | None = None,
    positive: str | None = None,
) -> Judged:
    """Score all rows that have a label; ``positive`` is as in ``Task.parse``."""
    task = model.task()
    if positive is not None or not task.settled:
        task = requested_task(positive, source)
    scores, sides, weights, codes = [], [], [], []
    place: dict[str, int] = {}
    heads: dict[str, Any] = {}
    for chunk, some in scored(model, source, watch):
        if some.size and chunk.file not in heads:
            heads[chunk.file] = chunk.X[:HEAD]
        if chunk.y is not None and not task.settled:
            task = task.settle(chunk.y)
        side, kept, lines = read_labels(chunk, task)
        bad.take(lines)
        scores.append(take(some, kept))
        weights.append(take(chunk.weight, kept))
        sides.append(side)
        if by is not None:
            values = take(chunk.extra[by], kept).tolist()
            codes.append(
                np.fromiter(
                    (place.setdefault(value, len(place)) for value in values),
                    np.int32,
                    len(values),
                )
            )
    if not any(part.size for part in scores):
        why = f"; {bad.remark()}" if bad.count else "."
        raise ValueError(f"There is no row in {', '.join(source.files)}{why}")
    return Judged(
        np.concatenate(scores),
        np.concatenate(sides),
        np.concatenate(codes) if by is not None else None,
        [str(value) for value in place],
        _joined(weights, source),
        Origin.told(model.recipe).among(heads),
    )


def _joined(weights: Sequence[Scores | None], source: Source) -> Scores | None:
    found = [part for part in weights if part is not None]
    if found and len(found) < len(weights):
        raise ValueError(
            f"Some of {', '.join(source.files)} have weights, some have none: judge "
            "them one by one, or without weights: --weight none."
        )
    return np.concatenate(found) if found else None


def evaluate(
    judged: Judged,
    *,
    at: Sequence[int | float] | None = None,
    max_fpr: float = 0.1,
    level: float = 0.95,
) -> Evaluation:
    """Measure a ranking; ``at`` are lengths of lists, see ``metrics.precision_at``."""
    scores, positive, weight = judged.scores, judged.positive, judged.weight
    n, positives = positive.size, int(np.count_nonzero(positive))
    if positives in (0, n):
        which = "positive" if positives else "negative"
        raise ValueError(
            f"All {n:,} rows are {which}: a ranking is judged by rows of both classes."
        )
    ranking = steps(positive, scores, weight)
    total, heavy = float(ranking.tp[-1] + ranking.fp[-1]), float(ranking.tp[-1])
    if at is None:
        at = [k for k in LISTS if (k <= total if isinstance(k, int) else k * n >= 1)]
    if weight is not None and max(at, default=0) > total:
        raise ValueError(
            f"--at {max(at)}: with weights, a list is as long as it weighs; all rows "
            f"together weigh {total:,.6g}."
        )
    points = [("fpr", rate, point(ranking, "fpr", rate)) for rate in RATES]
    # A model calls rows positive whose score is above zero: zero itself is not.
    above = point(ranking, "threshold", float(np.nextafter(0.0, 1.0)))
    points.append(("threshold", 0.0, above._replace(threshold=0.0)))

    def area(level: float) -> AUCInterval:
        if weight is None:  # the ranking says it all, and sorting takes longest
            return interval(ranking, level)
        return auc_interval(positive, scores, level=level, sample_weight=weight)

    return Evaluation(
        rows=n,
        positives=positives,
        weight=None if weight is None else (total, heavy),
        level=level,
        auc=area(level),
        max_fpr=max_fpr,
        partial=partial_area(ranking, max_fpr),
        standardised=partial_area(ranking, max_fpr, standardise=True),
        average_precision=mean_precision(ranking),
        breakeven=precision_of_all_positives(ranking),
        tops=[_top(ranking, judged, k, level) for k in at],
        points=points,
        groups=_groups(judged, level),
        ranking=ranking,
        drawn=area(0.95),
    )


def _top(ranking: Steps, judged: Judged, k: int | float, level: float) -> Top:
    hits, rows = top(ranking, k)
    count = rows
    if judged.weight is not None:
        count = effective_rows(ranking, judged.scores, judged.weight, rows)
    precision = wilson(hits / rows, count, level)
    lift = precision.value / base_rate(ranking)
    return Top(k, rows, precision, lift, hits / float(ranking.tp[-1]))


def _groups(judged: Judged, level: float) -> list[Group]:
    """Return the groups, the largest first."""
    if judged.group is None:
        return []
    # One stable sort instead of a search for each group: there may be many.
    order = np.argsort(judged.group, kind="stable")
    ends = np.cumsum(np.bincount(judged.group, minlength=len(judged.groups)))
    found = []
    for name, rows in zip(judged.groups, np.split(order, ends[:-1]), strict=True):
        positive, scores = judged.positive[rows], judged.scores[rows]
        positives = int(np.count_nonzero(positive))
        weight = None if judged.weight is None else judged.weight[rows]
        counts = positive if weight is None else positive[weight > 0.0]
        area = None
        if counts.any() and not counts.all():
            area = auc_interval(positive, scores, level=level, sample_weight=weight)
        found.append(Group(name, rows.size, positives, area))
    return sorted(found, key=lambda group: (-group.rows, group.name))


def _interval(found: AUCInterval | PrecisionInterval) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value if isfinite(value) else None for key, value in values.items()}
