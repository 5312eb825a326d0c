"""``aucmax train``: train a model from files or standard input."""

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from aucmax.cli.datasets import local_files
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
from aucmax.tables.structure import Hint
from aucmax.workflows.kept_promise import training_goal
from aucmax.workflows.plan import Observer, Plan, Progress, Stop, StoppedError
from aucmax.workflows.train import Result, train

_SUSPICIOUS_AUC = 0.9995  # from here on, a leak of the label is likely
_WORKER_SECONDS = 5.0  # to wait for workers before a note says so


def run(plan: Plan, output: Path, as_json: bool, **options: Any) -> int:
    """Train, show progress and report; return the exit code.

    ``options`` are those of :func:`aucmax.workflows.train.train`.
    """
    screen, start = Screen(quiet=as_json), perf_counter()
    with ReadingBar(local_files(plan.data), plan.passes, logs=not as_json) as bar:
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


def run_on_cluster(plan: Plan, output: Path, where: str, as_json: bool) -> None:
    """Train on a Dask cluster, show progress and report."""
    from aucmax.cluster.files import train as train_on_cluster

    start, data = perf_counter(), local_files(plan.data)
    with _cluster_errors(where), ReadingBar(data) as bar, _client(where):
        bar.pulse("Reading the first rows")
        result = train_on_cluster(
            plan,
            output,
            lambda passes: bar.pulse(f"Training on the cluster, pass {passes}"),
        )
    screen = Screen(quiet=as_json)
    _report(result, output, perf_counter() - start, screen, as_json)


@contextmanager
def _cluster_errors(where: str) -> Iterator[None]:
    """Turn errors of Dask and of its workers into errors reported in one line."""
    try:
        yield
    except (OSError, ValueError, ImportError, MemoryError):
        raise
    except Exception as error:
        package = type(error).__module__.partition(".")[0]
        if package not in ("dask", "distributed") and type(error) is not RuntimeError:
            raise
        reason = str(error) or "no reason given"
        raise OSError(f"--cluster {where}: {type(error).__name__}: {reason}") from error


@contextmanager
def _client(where: str) -> Iterator[None]:
    """Connect to a scheduler, or start local workers, for the time of a block."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError("Dask is missing: pip install 'aucmax[cluster]'") from None

    kind, _, number = where.partition(":")
    if kind != "local":
        with Client(where, timeout="10s") as client:
            try:
                client.wait_for_workers(1, timeout=_WORKER_SECONDS)
            except TimeoutError:  # not an error: an adaptive cluster starts some later
                Screen().warn(
                    f"Note: the scheduler {where} has no workers; training starts when "
                    f"one connects. To start one: dask worker {where}"
                )
            yield
        return
    if not number.isdigit() or int(number) < 1:
        raise ValueError(
            f"--cluster {where}: expected local:N, with N the number of workers."
        )
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=int(number), **options) as cluster, Client(cluster):
        yield


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
            "hints": [hint._asdict() for hint in _hints(result)],
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


def _hints(result: Result) -> list[Hint]:
    """Return columns that look like time or groups."""
    return list(getattr(result.estimator, "hints_", ()))


def notes(result: Result) -> Iterator[str]:
    """Yield notes about suspicious data and results."""
    progress, task = result.progress, Task.from_json(result.recipe["task"])
    budget = getattr(result.estimator, "time_budget", None)
    rows = [line.rows for line in getattr(result.estimator, "leaderboard_", ())]
    if budget and min(rows) < 0.75 * progress.rows:
        yield (
            f"Note: within time_budget={budget:g} seconds, members of the blend were "
            f"trained on {min(rows):,} to {max(rows):,} of {progress.rows:,} rows. For "
            "more time: --algorithm AUCClassifier --param time_budget=600. For one "
            "linear model of all rows: --fast."
        )
    area = getattr(result.estimator, "auc_", None)
    if area is not None and area.value > _SUSPICIOUS_AUC:
        yield (
            f"Note: an AUC of {area.value:.4f} is suspicious. Check the importance of "
            "the columns for one that reveals the label, and remove it with --input "
            "drop=COLUMN."
        )
    for hint in _hints(result):
        yield f"Note: {hint.command_line()}"
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
