"""The numbers of a report: measures of scored rows, in aggregated form.

All measures come from :mod:`aucmax.metrics`; this module only collects them.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from aucmax.goals import AUC, Goal, NetBenefit
from aucmax.metrics._ranking import Steps, as_scores, check_level, positives, steps
from aucmax.metrics._variance import Interval
from aucmax.metrics.auc import AUCInterval, interval, partial_auc_interval
from aucmax.metrics.calibration import (
    CalibrationCurve,
    brier_score,
    calibration_curve,
    calibration_error,
    calibration_line,
    stability_index,
)
from aucmax.metrics.comparison import AUCTest, auc_test
from aucmax.metrics.curves import ROCBand, roc_band, tpr_at
from aucmax.metrics.decisions import (
    Confusion,
    DecisionCurve,
    best_accuracy,
    best_f_score,
    confusion,
    ks_statistic,
    net_benefit,
    point,
)
from aucmax.metrics.groups import GroupAUCs, auc_by_group
from aucmax.metrics.top import average_precision_interval, precision_interval, top
from aucmax.tables.periods import texts
from aucmax.thresholds import Threshold, Verdict, verify


class Period(NamedTuple):
    """One period of time."""

    name: str
    rows: int
    positives: int
    auc: AUCInterval  # NaN if there are not rows of both classes
    stability: float  # index of the scores against the first period


def by_period(
    positive: NDArray[np.bool_], score: Any, period: ArrayLike, level: float = 0.95
) -> list[Period]:
    """Compare periods of time; ``period`` has names of periods, which sort in order."""
    names = texts(period)
    found = auc_by_group(positive, score, names, level=level)
    ordered = sorted(found.groups, key=lambda one: str(one.group))
    first = score[names == ordered[0].group]
    return [
        Period(
            str(one.group),
            one.rows,
            one.positives,
            one.auc,
            stability_index(first, score[names == one.group]).value,
        )
        for one in ordered
    ]


_ALERTS, _RATES = 160, 120  # positions of the slider by rows and by rates
_CURVE = 300  # points of a drawn curve
_BINS = 40  # of the distributions of scores
_FEW_ALERTS = 100  # rows of a named threshold
ESTIMATED = "interval for a threshold that is estimated"
RATES = (0.01, 0.05, 0.1)  # false positive rates with a recall


class Measure(NamedTuple):
    """One line of the table of measures."""

    name: str
    value: float
    low: float  # NaN without an interval
    high: float
    remark: str = ""


class ModelSummary(NamedTuple):
    """One model's scores."""

    name: str
    auc: AUCInterval
    goal: Interval | None  # value of a goal that is not the AUC
    fpr: NDArray[np.float64]  # points of the curves
    tpr: NDArray[np.float64]
    precision: NDArray[np.float64]
    share: NDArray[np.float64]
    against_first: AUCTest | None


class Summary(NamedTuple):
    """All that a report shows."""

    rows: int
    positives: int
    level: float
    models: list[ModelSummary]  # the first is the one that is reported
    measures: list[Measure]
    band: ROCBand
    points: list[Confusion]  # positions of the slider
    probability: list[float] | None  # at the points
    named_points: list[tuple[str, Confusion]]
    calibration: CalibrationCurve | None
    decision: DecisionCurve | None
    bins: NDArray[np.float64]  # edges, and rows of each class in each bin
    bin_pos: NDArray[np.float64]
    bin_neg: NDArray[np.float64]
    groups: GroupAUCs | None
    periods: list[Period]
    goal: str  # "" if it is the AUC
    threshold: Threshold | None  # that the model promises something for
    verdict: Verdict | None  # of the promise, on these rows


def summarise(
    y: ArrayLike,
    scores: Mapping[str, ArrayLike],
    *,
    probability: ArrayLike | None = None,
    group: ArrayLike | None = None,
    period: ArrayLike | None = None,
    goal: Goal | None = None,
    threshold: Threshold | None = None,
    level: float = 0.95,
    pos_label: object = None,
) -> Summary:
    """Compute the numbers of a report; the first of ``scores`` is the main one."""
    check_level(level)
    if not scores:
        raise ValueError("scores is empty: give at least one model")
    positive = positives(y, pos_label)
    named = {
        str(name): as_scores(score, positive.size, f"score of {name}")
        for name, score in scores.items()
    }
    first, *others = named
    main = named[first]
    rankings = {name: steps(positive, score) for name, score in named.items()}
    ranking = rankings[first]
    if probability is None and main.min() >= 0.0 and main.max() <= 1.0:
        probability = main
    p = None if probability is None else as_scores(probability, positive.size)
    points = [confusion(ranking, at, level) for at in _positions(ranking, threshold)]
    models = []
    for name, one in rankings.items():
        test = None
        if name in others:
            test = auc_test(positive, named[name], main, level=level)
        log_odds = logit(p) if p is not None and name == first else None
        value = _goal(goal, positive, named[name], log_odds, level)
        models.append(_model(name, one, level, value, test))
    verdict = None
    if threshold is not None:
        verdict = verify(positive, main, threshold, level=level)
    bins, bin_pos, bin_neg = _distribution(main, positive)
    return Summary(
        rows=positive.size,
        positives=int(np.count_nonzero(positive)),
        level=level,
        models=models,
        measures=_measures(positive, main, p, ranking, level),
        band=roc_band(positive, main, level=level),
        points=points,
        probability=None if p is None else _probabilities(points, main, p),
        named_points=_named_points(positive, main, ranking, level),
        calibration=None if p is None else calibration_curve(positive, p, level=level),
        decision=None if p is None else _decision(positive, p, level),
        bins=bins,
        bin_pos=bin_pos,
        bin_neg=bin_neg,
        groups=None
        if group is None
        else auc_by_group(positive, main, group, level=level),
        periods=[] if period is None else by_period(positive, main, period, level),
        goal="" if goal is None or isinstance(goal, AUC) else str(goal),
        threshold=threshold,
        verdict=verdict,
    )


def _positions(ranking: Steps, threshold: Threshold | None) -> list[int]:
    """Return the steps that the slider stops at, dense at the top of the ranking.

    The promised threshold is one of them.
    """
    called = ranking.tp + ranking.fp
    n = float(called[-1])
    wanted = np.unique(np.round(np.geomspace(1.0, n, _ALERTS)))
    found = [np.searchsorted(called, wanted, side="right")]
    shares = np.linspace(0.0, 1.0, _RATES)
    for counts in (ranking.tp, ranking.fp):
        found.append(np.searchsorted(counts, shares * counts[-1], side="left") + 1)
    ends = [0, called.size]
    if threshold is not None:
        ends.append(int(np.count_nonzero(ranking.thresholds >= threshold.value)))
    every = np.unique(np.concatenate([ends, *found]))
    return np.minimum(every, called.size).tolist()


def _model(
    name: str,
    ranking: Steps,
    level: float,
    goal: Interval | None,
    against_first: AUCTest | None,
) -> ModelSummary:
    called = ranking.tp + ranking.fp
    at = np.unique(
        np.concatenate(
            [
                np.linspace(0, called.size - 1, _CURVE).astype(np.intp),
                np.searchsorted(called, np.geomspace(1.0, called[-1], _CURVE)),
            ]
        )
    )
    at = at[at < called.size]
    tp, fp = ranking.tp[at], ranking.fp[at]
    return ModelSummary(
        name=name,
        auc=interval(ranking, level),
        goal=goal,
        fpr=np.append(0.0, fp / ranking.fp[-1]),
        tpr=np.append(0.0, tp / ranking.tp[-1]),
        precision=tp / (tp + fp),
        share=np.append(0.0, (tp + fp) / called[-1]),
        against_first=against_first,
    )


def _goal(
    goal: Goal | None,
    positive: NDArray[np.bool_],
    score: Any,
    log_odds: Any,
    level: float,
) -> Interval | None:
    """Return the value of a goal; None for the AUC, or if it needs probabilities."""
    if goal is None or isinstance(goal, AUC):
        return None
    if not isinstance(goal, NetBenefit):
        return goal.interval(positive, score, level)
    return None if log_odds is None else goal.interval(positive, log_odds, level)


def _measures(
    positive: NDArray[np.bool_], score: Any, p: Any, ranking: Steps, level: float
) -> list[Measure]:
    nothing = (np.nan, np.nan)
    n, rate = positive.size, float(np.mean(positive))
    auc = interval(ranking, level)
    found = [
        Measure("AUC", *auc[:3], "area under the ROC curve; 0.5 is chance"),
        Measure(
            "Partial AUC, FPR up to 10 %",
            *partial_auc_interval(
                positive, score, max_fpr=0.1, standardise=True, level=level
            ),
            "on the scale of an AUC",
        ),
        Measure(
            "Average precision",
            *average_precision_interval(positive, score, level=level),
            f"chance is {rate:.3g}, the share of positives",
        ),
    ]
    for fpr in RATES:
        name = f"Recall at a false positive rate of {100 * fpr:g} %"
        recall = tpr_at(positive, score, fpr, level=level)
        found.append(Measure(name, *recall, ESTIMATED))
    for k in (100, 0.01, 0.1):
        if k <= n if isinstance(k, int) else k * n >= 1.0:
            name = f"{k:,} rows" if isinstance(k, int) else f"{100 * k:g} % of the rows"
            hits, rows = top(ranking, k)
            lift = hits / rows / rate
            precision = precision_interval(positive, score, k, level=level)
            found.append(
                Measure(f"Precision of the top {name}", *precision, f"lift {lift:.3g}")
            )
    ks = ks_statistic(positive, score)
    found.append(Measure("Kolmogorov-Smirnov", ks.value, *nothing, "largest TPR - FPR"))
    if p is None:
        return found
    brier, line = brier_score(positive, p), calibration_line(positive, p, level=level)
    remark = (
        f"{brier.miscalibration:.3g} by miscalibration; always saying the share of "
        f"positives has {brier.uncertainty:.3g}"
    )
    return [
        *found,
        Measure("Brier score", brier.value, *nothing, remark),
        Measure("Calibration slope", *line.slope, "1 is right"),
        Measure("Calibration intercept", *line.intercept, "0 is right"),
        Measure(
            "Expected calibration error",
            calibration_error(positive, p),
            *nothing,
            "10 bins with equally many rows",
        ),
    ]


def _probabilities(points: list[Confusion], score: Any, p: Any) -> list[float]:
    """Return the probability at each threshold: the lowest of the called rows."""
    order = np.argsort(score, kind="stable")
    ordered, sorted_p = score[order], np.asarray(p)[order]
    at = np.searchsorted(ordered, [point.threshold for point in points], side="left")
    known = at < ordered.size
    found = np.full(at.size, np.nan)
    found[known] = sorted_p[at[known]]
    return [float(x) for x in found]


def _named_points(
    positive: NDArray[np.bool_], score: Any, ranking: Steps, level: float
) -> list[tuple[str, Confusion]]:
    """Return thresholds that people ask for."""
    asked = [(f"FPR ≤ {100 * rate:g} %", "fpr", rate) for rate in (0.001, *RATES)]
    asked += [(f"recall ≥ {100 * x:g} %", "tpr", x) for x in (0.5, 0.8, 0.95)]
    if positive.size > _FEW_ALERTS:
        asked.append((f"at most {_FEW_ALERTS:,} rows", "rows", _FEW_ALERTS))
    found = [(x, point(ranking, kind, value).threshold) for x, kind, value in asked]
    found.append(("highest F1", best_f_score(positive, score).threshold))
    found.append(("highest accuracy", best_accuracy(positive, score).threshold))
    counted = [(x, int(np.count_nonzero(ranking.thresholds >= t))) for x, t in found]
    return [(name, confusion(ranking, at, level)) for name, at in counted]


def _decision(positive: NDArray[np.bool_], p: Any, level: float) -> DecisionCurve:
    """Return the decision curve up to a threshold where little is left to call."""
    most = float(np.quantile(p, 0.995))
    grid = np.linspace(0.005, min(max(most, 0.05), 0.99), 100)
    return net_benefit(positive, p, thresholds=grid, level=level)


def _distribution(score: Any, positive: NDArray[np.bool_]) -> tuple[Any, Any, Any]:
    """Return edges of bins, and the share of each class in each bin."""
    finite = score[np.isfinite(score)]
    low, high = (float(x) for x in np.quantile(finite, (0.001, 0.999)))
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    shares = []
    for one in (positive, ~positive):
        counts, _ = np.histogram(np.clip(score[one], low, high), edges)
        shares.append(counts / max(counts.sum(), 1))
    return edges, *shares


def explorer(summary: Summary) -> dict[str, Any]:
    """Return the numbers at each position of the slider, as columns for JSON."""
    points = summary.points

    def column(values: list[float]) -> list[float | None]:
        return [value if isfinite(value) else None for value in values]

    found: dict[str, Any] = {
        "threshold": column([point.threshold for point in points]),
        "tp": [point.tp for point in points],
        "fp": [point.fp for point in points],
    }
    for name in ("recall", "fpr", "precision"):
        rates: list[Interval] = [getattr(point, name) for point in points]
        found[name] = column([rate.value for rate in rates])
        found[f"{name}_low"] = column([rate.low for rate in rates])
        found[f"{name}_high"] = column([rate.high for rate in rates])
    if summary.probability is not None:
        found["probability"] = column(summary.probability)
        n = summary.rows
        found["net_benefit"] = column(
            [
                point.tp / n - point.fp / n * p / (1.0 - p) if p < 1.0 else np.nan
                for point, p in zip(points, summary.probability, strict=True)
            ]
        )
    return found
