"""``aucmax train``: train a model from files or standard input."""

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from aucmax.cli.terminal import (
    ReadingBar,
    Screen,
    columns_table,
    cross_validated,
    held_out_auc,
    importance_table,
    leaderboard,
    plural,
)
from aucmax.metrics._ranking import with_interval
from aucmax.tables.labels import Task
from aucmax.workflows.kept_promise import training_goal
from aucmax.workflows.plan import Observer, Plan, Progress, Stop, StoppedError
from aucmax.workflows.train import Result, train

_SUSPICIOUS_AUC = 0.9995  # from here on, a leak of the label is likely


def run(plan: Plan, output: Path, as_json: bool, **options: Any) -> int:
    """Train, show progress and report; return the exit code.

    ``options`` are those of :func:`aucmax.workflows.train.train`.
    """
    screen, start = Screen(quiet=as_json), perf_counter()
    with ReadingBar(plan.data, plan.passes, logs=not as_json) as bar:
        try:
            result = train(plan, output, observer=_Display(bar, screen), **options)
        except StoppedError as stopped:
            screen.warn(
                f"Stopped. The state is saved in {stopped.checkpoint}: run the same "
                "command with --resume to continue."
            )
            return stopped.reason
    _report(result, output, perf_counter() - start, screen, as_json)
    for note in notes(result):
        screen.warn(note)
    return 0


class _Display(Observer):
    """Shows the progress of training, and stops it on a signal."""

    def __init__(self, bar: ReadingBar, screen: Screen) -> None:
        self._bar, self._screen, self._note = bar, screen, ""

    def progress(self, progress: Progress, done: int) -> None:
        self._bar(done, progress.steps, progress.passes, progress.auc, self._note)

    def refit(self, count: int, rows: int) -> None:
        if count:
            self._note = f"{plural(count, 'refit')} of trees, last at row {rows:,}"

    def leaderboard(self, lines: Sequence[Any]) -> None:
        self._bar.table = leaderboard([line._asdict() for line in lines])

    def fitting(self, name: str) -> None:
        self._bar.pulse(f"Fitting {name}")

    def fitted(self, name: str, done: int, total: int) -> None:
        self._bar.pulse(f"Fitting {name}: {done} of {total} models")

    def warn(self, text: str) -> None:
        self._screen.warn(text)

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Stop after the current chunk on SIGINT or SIGTERM, at once on the second."""
        reason = 0

        def stop(number: int, frame: object) -> None:
            nonlocal reason
            if reason:
                raise KeyboardInterrupt
            reason = 128 + number

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield lambda: reason
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _report(
    result: Result, output: Path, seconds: float, screen: Screen, as_json: bool
) -> None:
    """Print the results for people, or as JSON."""
    members = [m._asdict() for m in getattr(result.estimator, "leaderboard_", ())]
    area = getattr(result.estimator, "auc_", None)  # of a blend, cross-validated
    columns = result.recipe["input"].get("roles") or None
    goal = training_goal(result.estimator)
    if as_json:
        found = {
            "model": str(output),
            "features": result.estimator.n_features_in_,
            "task": result.recipe["task"],
            **result.recipe["training"],
            "rows_learnt": result.progress.steps or result.progress.rows,
            "columns": columns,
            "leaderboard": members or None,
            "auc": area._asdict() if area is not None else None,
            "goal": goal.to_json() if goal is not None else None,
            "judged": result.judged,
            "resumed": result.resumed,
            "seconds": round(seconds, 3),
        }
        print(json.dumps(found, indent=2))
        return
    for line in _summary(result, area, seconds):
        screen.print(line)
    if goal is not None:
        screen.print(f"Goal {goal.goal}: {cross_validated(*goal.value)}.")
        if goal.threshold is not None:
            screen.print(f"Threshold: {goal.threshold}.")
    screen.print(f"Model: {output}", wrap=False)
    if columns and (kinds := columns_table(columns)):
        screen.show(kinds)
    if members:
        screen.show(leaderboard(members))
    if importances := getattr(result.estimator, "importances_", ()):
        screen.show(importance_table([line._asdict() for line in importances]))


def _summary(result: Result, area: Any, seconds: float) -> Iterator[str]:
    progress, training = result.progress, result.recipe["training"]
    params = result.estimator.get_params(deep=False)
    passes = training["passes"] or 1
    features = plural(result.estimator.n_features_in_, "feature")
    yield (
        f"{training['algorithm']} trained on {plural(progress.rows, 'row')} with "
        f"{features}"
        + (f", {passes} passes" if passes > 1 else "")
        + f", in {seconds:.1f} s."
    )
    yield Task.from_json(result.recipe["task"]).told(progress.positives, progress.rows)
    if progress.bad:
        yield f"Skipped {plural(progress.bad, 'malformed line')}."
    if progress.unlabelled:
        yield f"Left out {plural(progress.unlabelled, 'row')} without a label."
    if progress.auc is not None:
        yield (
            f"Progressive AUC {progress.auc:.4f}: in the first pass, each row was "
            "scored before the model was trained on it."
        )
    if result.judged is not None:
        yield f"{held_out_auc(result.judged)}."
    elif area is not None and (params.get("time") or params.get("group")):
        yield f"{result.estimator.estimate()}."
    elif area is not None:
        value, low, high = with_interval(*area[:3])
        yield (
            f"Cross-validated AUC {value}, 95 % confidence interval {low} to {high}: "
            "each row was scored by models that were not trained on it."
        )


def notes(result: Result) -> Iterator[str]:
    """Yield notes about suspicious data and results."""
    progress, task = result.progress, Task.from_json(result.recipe["task"])
    area = getattr(result.estimator, "auc_", None)
    if area is not None and area.value > _SUSPICIOUS_AUC:
        yield (
            f"Note: an AUC of {area.value:.4f} is suspicious. Check the importance of "
            "the columns for one that reveals the label, and remove it with --input "
            "drop=COLUMN."
        )
    if task.by_rarity and 2 * progress.positives > progress.rows:
        yield (
            f"Note: labels were read as {task}: the positive label is the rarer one in "
            "the first rows, but the more frequent one in all rows. To choose the "
            "other label, use --positive."
        )
    if progress.steps and progress.chunks > 4 and progress.mixed < progress.chunks / 2:
        share = progress.positives / max(progress.rows, 1)
        if min(share, 1.0 - share) > 0.01:
            yield (
                "Note: most blocks of the data contain one class only. Online learners "
                "need rows in random order: shuffle the file (e.g. with shuf)."
            )
