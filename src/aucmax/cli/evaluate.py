"""``aucmax evaluate``: evaluate a model on labelled data."""

import json
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.table import Table

from aucmax.cli.terminal import ReadingBar, Screen, plural, table
from aucmax.io.malformed_lines import BadLines
from aucmax.metrics._ranking import (
    check_level,
    check_share,
    decimals,
    exact,
    with_interval,
)
from aucmax.report.summary import Period, by_period
from aucmax.storage.atomic import check_writable, refuse_overwriting
from aucmax.workflows.evaluate import Evaluation, ScoredRows, collect, evaluate
from aucmax.workflows.kept_promise import GoalReport, goal_report
from aucmax.workflows.score import Model

_MAX_GROUPS = 30  # in a table; JSON contains all


def run(
    model: Path,
    data: Sequence[str],
    report: Path | None,
    policy: str,
    changes: dict[str, Any],
    as_json: bool,
    *,
    positive: str | None,
    weight: str | None,
    by: str | None,
    time: str | None,
    at: str | None,
    **measures: float,
) -> None:
    """Score the data, compute the measures and print them.

    ``measures`` are ``max_fpr`` and ``level``.
    """
    lengths = None if at is None else [_length(word) for word in at.split(",")]
    check_share("--max-fpr", measures["max_fpr"])
    check_level(measures["level"])
    if report is not None:
        check_writable(report)
    start = perf_counter()
    ranker = Model.load_for(model, data, "evaluate")
    source = ranker.open(
        data,
        extra=tuple({by, time} - {None}),
        weight=weight,
        changes=changes,
    )
    if report is not None:
        refuse_overwriting(report, [*source.files, model])
    bad = BadLines(policy)
    with ReadingBar(source.files) as watch:
        rows = collect(ranker, source, bad, watch, by, time, positive)
    if report is not None and rows.weight is not None:
        raise ValueError("--report does not support row weights: add --weight none.")
    found = evaluate(rows, at=lengths, **measures)
    level = measures["level"]
    goal = goal_report(ranker.estimator, rows.scores, rows.positive, level, rows.weight)
    periods = []
    if rows.time is not None:
        periods = by_period(rows.positive, rows.scores, rows.time.text(), level)
    screen = Screen(quiet=as_json)
    if as_json:
        facts: dict[str, Any] = {"model": str(model), "data": source.files}
        facts |= found.to_json() | {"by": by, "bad_lines": bad.count}
        facts["goal"] = None if goal is None else goal.to_json()
        facts["periods"] = [_period(one) for one in periods]
        facts["seconds"] = round(perf_counter() - start, 3)
        print(json.dumps(facts, indent=2, allow_nan=False))
    else:
        _show(found, bad.count, by, screen)
        if goal is not None:
            _show_goal(goal, level, screen)
        if periods:
            _show_periods(periods, level, screen)
    if remark := bad.remark():
        screen.warn(remark)
    if report is not None:
        _report(rows, goal, ranker, model, source.files, level, report)
        screen.print(f"Report: {report}", wrap=False)


def _show(found: Evaluation, bad: int, by: str | None, screen: Screen) -> None:
    """Print the measures for people."""
    interval = f"{_percent(found.level)} CI"
    rows = "rows" if found.weight is None else "weight"
    value, low, high = with_interval(*found.auc[:3])
    places = decimals(found.auc.low, found.auc.high)
    screen.print(
        f"AUC {value}, {_percent(found.level)} confidence interval {low} to {high}",
        style="bold",
    )
    share = _percent(found.positives / found.rows)
    skipped = f"; {plural(bad, 'malformed line')} skipped" if bad else ""
    screen.print(
        f"{plural(found.rows, 'row')}, {found.positives:,} positive ({share}){skipped}"
    )
    if found.weight is not None:
        total, positive = found.weight
        screen.print(
            f"Sum of weights {total:,.6g}, of the positives {positive:,.6g} "
            f"({_percent(positive / total)})"
        )
    screen.print(
        f"Partial AUC up to a false positive rate of {_percent(found.max_fpr)}: "
        f"{found.standardised:.{places}f} (area {found.partial:.{places + 1}f})"
    )
    screen.print(
        f"Average precision {found.average_precision:.{places}f}; break-even point "
        f"(precision = recall) {found.breakeven:.{places}f}"
    )
    tops = table("top", rows, "precision", interval, "lift", "recall")
    for top in found.tops:
        k = f"{top.k:,}" if isinstance(top.k, int) else _percent(top.k)
        precision, low, high = with_interval(*top.precision)
        lift, recall = f"{top.lift:.3g}", _percent(top.recall)
        tops.add_row(k, f"{top.rows:,.0f}", precision, f"{low}–{high}", lift, recall)
    screen.show(tops)
    points = table("threshold for", "score ≥", "TPR", "FPR", "precision", rows)
    for purpose, wanted, point in found.points:
        name, threshold = f"FPR ≤ {_percent(wanted)}", exact(point.threshold)
        if purpose == "threshold":
            name, threshold = "predicted class", "> 0"
        rates = _percent(point.tpr), _percent(point.fpr)
        precision = f"{point.precision:.{places}f}" if point.rows else "–"
        points.add_row(name, threshold, *rates, precision, f"{point.rows:,.0f}")
    screen.show(points)
    if by is not None:
        screen.show(_groups(found, by, interval))
        if isfinite(found.equal_groups):
            screen.print(f"Test of equal AUCs: p = {found.equal_groups:.2g}")
        if (more := len(found.groups) - _MAX_GROUPS) > 0:
            screen.print(
                f"… and {plural(more, 'smaller group')}: --json prints all", style="dim"
            )


def _show_goal(report: GoalReport, level: float, screen: Screen) -> None:
    """Print the goal, and whether its promise held."""
    value, low, high = with_interval(*report.value)
    limits = f"{_percent(level)} CI {low} to {high}"
    screen.print(f"Goal {report.goal}: {value} ({limits})", style="bold")
    if report.threshold is not None and report.rate is not None:
        rate, low, high = (_percent(x) for x in report.rate)
        screen.print(
            f"Promise {report.threshold.promise}, score ≥ "
            f"{exact(report.threshold.value)}: {report.verdict}; on these data {rate} "
            f"({_percent(level)} CI {low} to {high})"
        )


def _period(one: Period) -> dict[str, Any]:
    """Return a period for JSON."""
    known = isfinite(one.auc.value)
    return one._asdict() | {"auc": list(one.auc[:3]) if known else None}


def _show_periods(found: Sequence[Period], level: float, screen: Screen) -> None:
    """Print the AUC and the stability of the scores by period."""
    heads = "AUC", f"{_percent(level)} CI", "rows", "positive", "PSI of scores"
    grid = table("period", *heads)
    for one in found:
        area, limits = "–", "one class only"
        if isfinite(one.auc.value):
            area, low, high = with_interval(*one.auc[:3])
            limits = f"{low}–{high}"
        counts = f"{one.rows:,}", f"{one.positives:,}"
        grid.add_row(one.name, area, limits, *counts, f"{one.stability:.3f}")
    screen.show(grid)


def _groups(found: Evaluation, by: str, interval: str) -> Table:
    groups = table(by, "AUC", interval, "rows", "positive")
    for group in found.groups[:_MAX_GROUPS]:
        area, limits = "–", f"{'positives' if group.positives else 'negatives'} only"
        if group.auc is not None:
            area, low, high = with_interval(*group.auc[:3])
            limits = f"{low}–{high}"
        counts = f"{group.rows:,}", f"{group.positives:,}"
        groups.add_row(group.name.strip() or "(missing)", area, limits, *counts)
    return groups


def _length(word: str) -> int | float:
    """Return 100 for "100", 0.01 for "0.01" or "1%"."""
    try:
        if word.strip().endswith("%"):
            return float(word.strip()[:-1]) / 100.0
        return float(word) if "." in word or "e" in word.lower() else int(word)
    except ValueError:
        raise ValueError(
            f"--at {word}: expected a number of rows (100) or a share (0.01 or 1%)."
        ) from None


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %" if share < 0.9995 else f"{100.0 * share:.5g} %"


def _report(
    rows: ScoredRows,
    goal: GoalReport | None,
    ranker: Model,
    model: Path,
    data: Sequence[str],
    level: float,
    path: Path,
) -> None:
    from scipy.special import expit

    from aucmax.report import html
    from aucmax.workflows.model_card import model_card

    name = type(ranker.estimator).__name__
    calibrated = hasattr(ranker.estimator, "predict_proba")
    html(
        rows.positive,
        {name: rows.scores},
        path,
        probability=expit(rows.scores) if calibrated else None,
        group=None if rows.group is None else rows.group.text(),
        time=None if rows.time is None else rows.time.text(),
        goal="auc" if goal is None else goal.goal,
        threshold=None if goal is None else goal.threshold,
        importances=[
            tuple(one) for one in getattr(ranker.estimator, "importances_", ())
        ],
        card=model_card(ranker, str(model), data),
        title=f"{name} on {', '.join(Path(file).name for file in data)}",
        level=level,
    )
