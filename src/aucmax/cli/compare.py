"""``aucmax compare``: cross-validate several algorithms and test the differences."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.cli.terminal import ReadingBar, Screen, fits_bar, plural, table
from aucmax.goals import parse as parse_goal
from aucmax.io.collect import collect
from aucmax.io.compression import expand
from aucmax.io.open_data import open_data
from aucmax.storage.atomic import check_writable, refuse_overwriting, write_atomically
from aucmax.tables.labels import Task
from aucmax.workflows.compare import DEFAULT, Comparison, Row, compare, full_name

_SIGNIFICANT = 0.05


def run(
    data: Sequence[str],
    algorithms: Sequence[str],
    positive: str | None,
    reader: dict[str, Any],
    output: Path | None,
    as_json: bool,
    **design: Any,
) -> int:
    """Compare, show progress and report; return the exit code.

    ``design`` is ``folds``, ``repeats``, ``seed`` and ``goal``.
    """
    parse_goal(design["goal"])
    names = list(dict.fromkeys(map(full_name, algorithms or DEFAULT)))
    if output is not None:
        refuse_overwriting(output, expand(data))
        check_writable(output)
    X, y, task = _load(data, positive, reader)
    fits = design["folds"] * design["repeats"] * len(names)
    with fits_bar() as watch:
        result = compare(
            X, y, names, watch=lambda name, done: watch(name, done, fits), **design
        )
    if output is not None:
        write_atomically(output, result.table().encode())
    if as_json:
        head = {"data": list(data), "task": task.to_json()}
        print(json.dumps(head | result.summary(), indent=2))
    else:
        screen = Screen()
        _show(result, ", ".join(data), task, screen)
        if output is not None:
            screen.print(f"AUC of every fold: {output}", wrap=False)
    return int(any(row.error for row in result.rows))


def _load(
    data: Sequence[str], positive: str | None, reader: dict[str, Any]
) -> tuple[Any, NDArray[np.bool_], Task]:
    """Return features, classes and task of files."""
    source = open_data(data, **reader)
    with ReadingBar(data) as bar:
        X, y, weight = collect(source, bar)
    if weight is not None:
        raise ValueError("compare does not support row weights: remove weight=COLUMN.")
    if y is None:
        raise ValueError("The data have no labels: name the label column by --label.")
    task = Task.parse(positive).settle(y)
    side = task.sides(y)
    kept = side != 0
    return (X if kept.all() else X[kept]), side[kept] > 0, task


def _show(result: Comparison, title: str, task: Task, screen: Screen) -> None:
    heads = ["algorithm", "AUC", "95 % CI", "difference", "p", "train s"]
    if result.goal != "auc":
        heads = ["algorithm", "goal", "95 % CI", "difference", "p", "AUC"]
    grid = table(*heads)
    for row in result.rows:
        grid.add_row(
            *_cells(row, result.goal), style="bold" if row is result.rows[0] else ""
        )
    screen.print(title, style="bold")
    screen.print(
        f"{plural(result.n_rows, 'row')}, {plural(result.n_features, 'feature')}"
    )
    screen.print(task.told(result.n_positives, result.n_rows))
    screen.show(grid)
    screen.print(_explanation(result), style="dim")
    if conclusion := _conclusion(result):
        screen.print(conclusion)
    for row in result.rows:
        if row.error is not None:
            screen.warn(f"{row.algorithm} failed: {row.error}")
        for kind, count in row.warnings.items():
            screen.warn(f"{row.algorithm}: {kind} in {plural(count, 'fold')}.")


def _cells(row: Row, goal: str) -> list[str]:
    if row.auc is None or row.goal is None:
        return [row.algorithm, "failed"]
    value, limits = f"{row.goal.mean:.4f}", f"{row.goal.low:.4f}–{row.goal.high:.4f}"
    difference = p_value = ""
    if row.behind is not None and row.p_holm is not None:
        difference = f"{row.behind.mean:+.4f}"
        p_value = "< 0.001" if row.p_holm < 0.001 else f"{row.p_holm:.3f}"
    last = f"{row.seconds:.3f}" if goal == "auc" else f"{row.auc.mean:.4f}"
    return [row.algorithm, value, limits, difference, p_value, last]


def _explanation(result: Comparison) -> str:
    repeats = f" × {result.repeats}" if result.repeats > 1 else ""
    ranked = sum(row.auc is not None for row in result.rows)
    pairs = ranked * (ranked - 1) // 2
    adjusted = f"; p is adjusted for all {pairs} pairs (Holm)" if pairs > 1 else ""
    goal, seconds = f"Goal: {result.goal}. ", ""
    if result.goal == "auc":
        goal, seconds = "", " Seconds per fold, without compilation."
    return (
        f"{goal}Means over {result.folds} stratified folds{repeats}; difference to the "
        "best algorithm. Confidence intervals and p: corrected resampled t-test of "
        "Nadeau and Bengio, which allows for overlapping training sets"
        f"{adjusted}. All parameters are defaults.{seconds}"
    )


def _conclusion(result: Comparison) -> str:
    ranked = [row for row in result.rows if row.auc is not None]
    if len(ranked) < 2:
        return ""
    best, *others = ranked
    similar = [row.algorithm for row in others if (row.p_holm or 0.0) >= _SIGNIFICANT]
    if not similar:
        return f"{best.algorithm} is significantly better than the others."
    names = "the others" if len(similar) == len(others) > 1 else ", ".join(similar)
    measure = "AUC" if result.goal == "auc" else result.goal
    return (
        f"{best.algorithm} has the highest {measure}; the difference to {names} is not "
        "significant."
    )
