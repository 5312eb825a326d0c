"""``aucmax train``: from a file or a pipe to a model file."""

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from aucmax.cli.datasets import local_files
from aucmax.cli.screen import (
    Console,
    Meter,
    Screen,
    columns_table,
    judgement,
    leaderboard,
    reading,
    some,
    worth,
)
from aucmax.io.open_data import OURS
from aucmax.metrics.decimals import with_interval
from aucmax.tables.labels import Task
from aucmax.workflows.plan import Observer, Plan, Progress, Stop, StoppedError
from aucmax.workflows.train import Result, train

_TOO_GOOD = 0.9995  # an AUC, from which on a leak is likely
_PATIENCE = 5.0  # seconds to wait for workers before a note says so
# Options of readers that are lists, with commas.
_LISTS = {"drop", "only", "categorical", "text", "numeric", "date", "na"}


def run(
    plan: Plan,
    output: Path,
    *,
    test: Sequence[str],
    quarantine: Path | None,
    checkpoint_rows: int | None,
    checkpoint_seconds: float,
    resume: bool,
    as_json: bool,
) -> int:
    """Train, show how it goes, say what came out; return the exit code."""
    console = Console(highlight=False, markup=False, quiet=as_json)
    notes = Console(highlight=False, markup=False, stderr=True)
    start = perf_counter()
    with reading(local_files(plan.data), passes=plan.passes) as meter:
        try:
            result = train(
                plan,
                output,
                test=test,
                quarantine=quarantine,
                checkpoint_rows=checkpoint_rows,
                checkpoint_seconds=checkpoint_seconds,
                resume=resume,
                observer=_Shown(meter, notes),
            )
        except StoppedError as stopped:
            notes.print(
                f"Stopped. {stopped.checkpoint} has all that was learnt so far; go on "
                "with the same command and --resume."
            )
            return stopped.reason
    seconds = perf_counter() - start
    if as_json:
        print(json.dumps(summary(result, output, seconds), indent=2))
    else:
        console.print(_report(result, output, seconds))
        if columns := columns_table(result.recipe["input"].get("roles", [])):
            console.print(columns)
        members = getattr(result.estimator, "leaderboard_", ())
        if members:
            console.print(leaderboard([line._asdict() for line in members]))
        columns_worth = getattr(result.estimator, "importances_", ())
        if columns_worth:
            console.print(worth([line._asdict() for line in columns_worth]))
    for remark in remarks(result):
        notes.print(remark)
    return 0


def run_on_cluster(plan: Plan, output: Path, where: str, as_json: bool) -> None:
    """Train on a Dask cluster, show how it goes, say what came out."""
    from aucmax.cluster.files import train as train_on_cluster

    start = perf_counter()
    data = local_files(plan.data)
    with _cluster_errors(where), reading(data) as meter, _client(where):
        meter.label("Reading the first rows")

        def watch(passes: int) -> None:
            meter.label(f"On the cluster: {passes} × over the rows")

        result = train_on_cluster(plan, output, watch)
    seconds = perf_counter() - start
    if as_json:
        print(json.dumps(summary(result, output, seconds), indent=2))
        return
    console = Console(highlight=False, markup=False)
    console.print(_report(result, output, seconds))
    if columns := columns_table(result.recipe["input"].get("roles", [])):
        console.print(columns)


@contextmanager
def _cluster_errors(where: str) -> Iterator[None]:
    """Turn an error of Dask or of a worker into one that is told in a line."""
    try:
        yield
    except (OSError, ValueError, ImportError, MemoryError):
        raise
    except Exception as error:
        place = type(error).__module__.partition(".")[0]
        if place not in ("dask", "distributed") and type(error) is not RuntimeError:
            raise
        raise OSError(
            f"--cluster {where}: {type(error).__name__}: {str(error) or 'no reason'}"
        ) from error


@contextmanager
def _client(where: str) -> Iterator[None]:
    """Give a context in which Dask works there."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError("Clusters need Dask: pip install 'aucmax[cluster]'") from None

    kind, _, number = where.partition(":")
    if kind != "local":
        with Client(where, timeout="10s") as client:
            try:
                client.wait_for_workers(1, timeout=_PATIENCE)
            except TimeoutError:  # more than a note would rule out adaptive clusters
                Screen().warn(
                    f"Note: the scheduler {where} has no workers; training starts when "
                    f"one has come: dask worker {where}"
                )
            yield
        return
    if not number.isdigit() or int(number) < 1:
        raise ValueError(f"--cluster {where}: local:N has a number of workers, N.")
    with (
        LocalCluster(
            n_workers=int(number), threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster),
    ):
        yield


class _Shown(Observer):
    """Shows a run to people, and lets them stop it."""

    def __init__(self, meter: Meter, notes: Console) -> None:
        self._meter, self._notes = meter, notes

    def progress(self, progress: Progress, done: int) -> None:
        self._meter(done, progress.steps, progress.passes, progress.auc)

    def leaderboard(self, lines: Sequence[Any]) -> None:
        self._meter.board(lines)

    def fitting(self, name: str) -> None:
        self._meter.label(f"Fitting {name}")

    def fitted(self, name: str, done: int, total: int) -> None:
        self._meter.label(f"Fitting {total} models: {done} done, {name}")

    def warn(self, text: str) -> None:
        self._notes.print(text)

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Let the first Ctrl-C or TERM be a wish, and the second an order."""
        asked = 0

        def wish(number: int, frame: object) -> None:
            nonlocal asked
            if asked:
                raise KeyboardInterrupt
            asked = 128 + number

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, wish) for number in numbers}
        try:
            yield lambda: asked
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def summary(result: Result, output: Path, seconds: float) -> dict[str, Any]:
    """Return what a machine wants to know."""
    progress, board = result.progress, getattr(result.estimator, "leaderboard_", None)
    own = getattr(result.estimator, "auc_", None)  # a blend's, by cross-validation
    return {
        "model": str(output),
        "features": result.estimator.n_features_in_,
        "task": result.recipe["task"],
        **result.recipe["training"],
        "rows_learnt": progress.steps or progress.rows,
        "columns": result.recipe["input"].get("roles") or None,
        "leaderboard": [line._asdict() for line in board] if board else None,
        "auc": own._asdict() if own is not None else None,
        "judged": result.judged,
        "resumed": result.resumed,
        "seconds": round(seconds, 3),
    }


def _report(result: Result, output: Path, seconds: float) -> str:
    progress, estimator = result.progress, result.estimator
    name = result.recipe["training"]["algorithm"]
    passes = result.recipe["training"]["passes"]
    lines = [
        f"{name} learnt from {some(progress.rows, 'row')} of "
        f"{some(estimator.n_features_in_, 'feature')}"
        + (f", in {passes} passes" if passes and passes > 1 else "")
        + f": {seconds:.1f} s.",
        Task.from_json(result.recipe["task"]).told(progress.positives, progress.rows),
    ]
    if progress.bad:
        bad = (
            "1 bad line was"
            if progress.bad == 1
            else f"{progress.bad:,} bad lines were"
        )
        lines += [f"{bad} left out."]
    if progress.auc is not None:
        lines += [
            f"Progressive AUC {progress.auc:.4f}: in the first pass, rows were ranked "
            "before they were learnt."
        ]
    if result.judged is not None:
        lines += [f"{judgement(result.judged)}."]
    elif (own := getattr(estimator, "auc_", None)) is not None:
        value, low, high = with_interval(*own[:3])
        lines += [
            f"Cross-validated AUC {value}, 95 % interval {low} to {high}: each row was "
            "scored by models that had not learnt from it."
        ]
    lines += [f"Model: {output}"]
    return "\n".join(lines)


def remarks(result: Result) -> Iterator[str]:
    """Yield what a user should know who has not asked."""
    progress, task = result.progress, Task.from_json(result.recipe["task"])
    budget = getattr(result.estimator, "time_budget", None)
    rows = [line.rows for line in getattr(result.estimator, "leaderboard_", ())]
    if budget and min(rows) < 0.75 * progress.rows:
        yield (
            f"Note: within time_budget={budget:g} seconds, models of the blend learnt "
            f"from {min(rows):,} to {max(rows):,} of {progress.rows:,} rows each. For "
            "more time: --algorithm AUCClassifier --param time_budget=600. For one "
            "linear model of all rows: --fast."
        )
    if (area := getattr(result.estimator, "auc_", None)) and area.value > _TOO_GOOD:
        yield (
            f"Note: an AUC of {area.value:.4f} is rarely real. Does a column give the "
            "label away? Look at the importance of the columns, and leave a leak out "
            "by --input drop=COLUMN."
        )
    if task.by_rarity and 2 * progress.positives > progress.rows:
        yield (
            f"Note: labels were taken as {task}, the rarer one of the first rows as "
            "the positive one, and it is the frequent one of all rows. If it is the "
            "other: --positive."
        )
    if progress.steps and progress.chunks > 4 and progress.mixed < progress.chunks / 2:
        share = progress.positives / max(progress.rows, 1)
        if min(share, 1.0 - share) > 0.01:
            yield (
                "Note: most stretches of the data have one class only. A learner of "
                "streams wants rows in mixed order: shuffle the file (shuf)."
            )


def parameters(settings: Sequence[str], flag: str) -> dict[str, Any]:
    """Return KEY=VALUE settings; values are JSON, or else words."""
    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ValueError(f"{flag} {setting}: it has to be KEY=VALUE.")
        if key in found:
            raise ValueError(f"{flag} {key} is given twice.")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def reader_options(settings: Sequence[str], **flags: Any) -> dict[str, Any]:
    """Return the options for a reader, from flags and from KEY=VALUE settings."""
    options = parameters(settings, "--input")
    if ours := OURS & options.keys():
        raise ValueError(f"--input {min(ours)}: there is no such option.")
    for name, value in flags.items():
        if value is not None:
            if name in options:
                raise ValueError(f"{name} is given twice.")
            options[name] = value
    for setting in settings:  # as it stands: a column may be called true, or 007
        name, _, value = setting.partition("=")
        if name in _LISTS and not isinstance(options[name], list):
            options[name] = value.split(",")
    return options
