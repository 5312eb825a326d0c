"""``aucmax compare``: algorithms on the same folds, and which differences count."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.cli.datasets import local_files
from aucmax.cli.progress import fits_bar
from aucmax.cli.screen import Screen, reading, some, table
from aucmax.io.collect import collect
from aucmax.io.compression import expand
from aucmax.io.open_data import open_data
from aucmax.storage.atomic import refuse_overwriting, write_atomically
from aucmax.tables.labels import Task
from aucmax.workflows.compare import DEFAULT, Comparison, Row, compare, full_name
from aucmax.workflows.run import requested_task

_CLEAR = 0.05  # a p-value below this one is a difference


def run(
    data: Sequence[str],
    algorithms: Sequence[str],
    *,
    positive: str | None,
    options: dict[str, Any],
    folds: int,
    repeats: int,
    seed: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Compare, show how it goes, say what came out; return the exit code."""
    screen = Screen(quiet=as_json)
    names = [full_name(name) for name in algorithms or DEFAULT]
    if output is not None and not output.parent.is_dir():
        raise FileNotFoundError(f"Cannot write {output}: there is no such folder.")
    if output is not None:
        refuse_overwriting(output, expand(data))
    X, y, task = _load(data, positive, options)
    fits = folds * repeats * len(set(names))
    with fits_bar() as watch:
        result = compare(
            X,
            y,
            names,
            folds=folds,
            repeats=repeats,
            seed=seed,
            watch=lambda name, done: watch(name, done, fits),
        )
    if output is not None:
        write_atomically(output, result.table().encode())
    if as_json:
        head = {"data": list(data), "task": task.to_json()}
        print(json.dumps(head | result.summary(), indent=2))
    else:
        _show(result, ", ".join(data), task, screen)
        if output is not None:
            screen.print(f"Every fold: {output}", wrap=False)
    return int(any(row.error for row in result.rows))


def _load(
    data: Sequence[str], positive: str | None, options: dict[str, Any]
) -> tuple[Any, NDArray[np.bool_], Task]:
    """Return features, classes and task of files, or of a named set."""
    files = local_files(data)
    source = open_data(data, **options)
    with reading(files) as meter:
        X, y, weight = collect(source, lambda done, n_rows: meter(done, n_rows))
    if weight is not None:
        raise ValueError("compare does not take weights: every row counts once.")
    if y is None:
        raise ValueError("There are no labels to judge by: name their --label column.")
    task = requested_task(positive, source).settle(y)
    side = task.sides(y)
    kept = side != 0
    return (X if kept.all() else X[kept]), side[kept] > 0, task


def _show(result: Comparison, title: str, task: Task, screen: Screen) -> None:
    grid = table("algorithm", "AUC", "95 % interval", "behind the best", "p", "train s")
    for row in result.rows:
        grid.add_row(*_cells(row), style="bold" if row is result.rows[0] else "")
    screen.print(title, style="bold")
    screen.print(f"{some(result.n_rows, 'row')}, {some(result.n_features, 'feature')}")
    screen.print(task.told(result.n_positives, result.n_rows))
    screen.show(grid)
    screen.print(_explanation(result), style="dim")
    if verdict := _verdict(result):
        screen.print(verdict)
    for row in result.rows:
        if row.error is not None:
            screen.warn(f"{row.algorithm} failed: {row.error}")
        for kind, count in row.warnings.items():
            screen.warn(f"{row.algorithm}: {kind} in {some(count, 'fold')}.")


def _cells(row: Row) -> list[str]:
    if row.auc is None:
        return [row.algorithm, "failed", "", "", "", ""]
    cells = [
        row.algorithm,
        f"{row.auc.mean:.4f}",
        f"{row.auc.low:.4f}–{row.auc.high:.4f}",
    ]
    if row.behind is None or row.p_holm is None:
        cells += ["", ""]
    else:
        cells += [f"{row.behind.mean:+.4f}", _p(row.p_holm)]
    return [*cells, f"{row.seconds:.3f}"]


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _explanation(result: Comparison) -> str:
    times = f" × {result.repeats}" if result.repeats > 1 else ""
    ranked = sum(row.auc is not None for row in result.rows)
    pairs = ranked * (ranked - 1) // 2
    adjusted = f"; p is Holm's, for all {pairs} pairs" if pairs > 1 else ""
    return (
        f"Means over {result.folds} stratified folds{times}. Intervals and p: the "
        "corrected resampled t-test of Nadeau and Bengio, which allows for the overlap "
        f"of training sets{adjusted}. Parameters are the defaults. Seconds are of one "
        "fold, without compilation."
    )


def _verdict(result: Comparison) -> str:
    ranked = [row for row in result.rows if row.auc is not None]
    if len(ranked) < 2:
        return ""
    best, *rest = (row.algorithm for row in ranked)
    alike = [
        row.algorithm
        for row in ranked[1:]
        if row.p_holm is not None and row.p_holm >= _CLEAR
    ]
    if not alike:
        return f"{best} is the best, by more than chance."
    others = "the others" if len(alike) == len(rest) > 1 else ", ".join(alike)
    return f"{best} is ahead, but these folds cannot tell it from {others}."
