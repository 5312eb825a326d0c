"""A training run: its data, labels and estimator."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from aucmax.io.batch import Batch, Source
from aucmax.io.collect import join
from aucmax.io.open_data import open_data, reopen
from aucmax.io.table_source import TableSource
from aucmax.io.text import BLOCK
from aucmax.online.base import OnlineAUC
from aucmax.registry import configured, full_name
from aucmax.stream.auc_stream import AUCStream
from aucmax.tables.labels import Task
from aucmax.workflows.choose import AUTOMATIC, FAST, build, choose
from aucmax.workflows.models import load_with_recipe
from aucmax.workflows.plan import Plan, Progress

_BLOCKS, _BLOCK_BYTES = 8, 1 << 16  # blocks of a file that are hashed, and their size


@dataclass
class Run:
    """A training run in progress."""

    plan: Plan
    source: Source
    begun: Iterator[Batch] | None  # the first pass, if its first rows have been read
    task: Task
    estimator: Any
    passes: int
    progress: Progress

    @property
    def streams(self) -> bool:
        """Whether the learner is trained batch by batch."""
        return hasattr(self.estimator, "partial_fit")

    def recipe(self) -> dict[str, Any]:
        """Return how a model file describes its training data."""
        progress = self.progress
        return {
            "input": self.source.recipe(),
            "task": self.task.to_json(),
            "training": {
                "algorithm": self.plan.algorithm,
                "data": self.source.files,
                "rows": progress.rows,
                "positives": progress.positives,
                "held_out": progress.held_out,
                "bad_lines": progress.bad,
                "passes": self.passes if self.streams else None,
                "progressive_auc": progress.auc,
            },
        }


def begin(plan: Plan) -> Run:
    """Open the data, read the first rows, choose the algorithm if none is given."""
    if plan.start is not None:
        return _begin_from_model(plan, plan.start)
    source = open_data(plan.data, **plan.reader)
    batches, seen = _begun(source)
    name, linear = plan.algorithm, plan.algorithm == FAST
    if name in AUTOMATIC:
        name = choose(source, seen[-1], name == FAST)
    name = full_name(name)
    if name == "AUCClassifier" and _takes_codes(source, plan.reader):
        coded = {**plan.reader, "encode": "codes", "missing": "keep"}
        source = open_data(plan.data, **coded)
        batches, seen = _begun(source)
    task = _settled(Task.parse(plan.positive), source, seen, batches)
    plan = replace(plan, algorithm=name, size=source.size, digests=file_digests(source))
    params = {"nonlinear": False} if linear and name == "AUCStream" else {}
    estimator = build(name, params | plan.params, plan.seed)
    if isinstance(estimator, AUCStream) and isinstance(source, TableSource):
        estimator.set_categories(source.encoder.category_of_feature)
    passes = plan.passes
    if passes is None:
        # Learners that sum moments gain nothing by a second pass.
        learner = getattr(estimator, "learner", estimator)
        again = isinstance(learner, OnlineAUC) and source.size is not None
        passes = learner.max_iter if again else 1
    if hasattr(estimator, "partial_fit"):
        if passes > 1 and source.size is None:
            raise ValueError(
                "A pipe can be read only once: set max_iter=1, or give a file."
            )
    elif plan.passes is not None:
        configured(estimator, {"max_iter": passes})
    return Run(
        plan,
        source,
        chain(seen, batches),
        task,
        estimator,
        passes,
        Progress(),
    )


def _begin_from_model(plan: Plan, path: str) -> Run:
    """Continue training a model with its parameters, features and labels."""
    estimator, recipe = load_with_recipe(path)
    if recipe is None:
        raise ValueError(
            f"--from {path}: the model was not trained from files, so it is not known "
            "how to read them. Continue it with partial_fit in Python."
        )
    if not hasattr(estimator, "partial_fit") or not estimator.resumable:
        raise ValueError(
            f"--from {path}: {type(estimator).__name__} cannot continue training. Use "
            "a model of AUCStream or of another stream learner."
        )
    given = {
        "--algorithm": plan.algorithm != AUTOMATIC[0],
        "--param": bool(plan.params),
        "--positive": plan.positive is not None,
        "--input or --label": bool(plan.reader),
    }
    for option, chosen in given.items():
        if chosen:
            raise ValueError(f"{option} does not work with --from: the model fixes it.")
    source = reopen(plan.data, recipe["input"])
    if (plan.passes or 1) > 1 and source.size is None:
        raise ValueError(
            "A pipe can be read only once: set max_iter=1, or give a file."
        )
    batches, seen = _begun(source)
    earlier = recipe.get("training", {})
    progress = Progress(features=estimator.n_features_in_)
    progress.rows = int(earlier.get("rows", 0))
    progress.positives = int(earlier.get("positives", 0))
    plan = replace(
        plan,
        algorithm=type(estimator).__name__,
        size=source.size,
        digests=file_digests(source),
    )
    return Run(
        plan,
        source,
        chain(seen, batches),
        Task.from_json(recipe["task"]),
        estimator,
        plan.passes or 1,
        progress,
    )


def _begun(source: Source) -> tuple[Iterator[Batch], list[Batch]]:
    """Return the batches of a source, and the first ones, up to one with rows."""
    batches = source.batches()
    seen = list(first_batches(batches))
    if not seen or seen[-1].rows.shape[0] == 0:
        problem = next((str(line) for batch in seen for line in batch.malformed), None)
        reason = f": {problem}" if problem else "; is it empty?"
        raise ValueError(f"No rows in {', '.join(source.files)}{reason}")
    if seen[-1].labels is None:
        raise ValueError("No labels to learn from: name the label column with --label.")
    return batches, seen


def _takes_codes(source: Source, options: dict[str, Any]) -> bool:
    """Return whether a table can be encoded by codes, for a blend."""
    chosen = options.keys() & {"encode", "missing", "hash_size"}
    return isinstance(source, TableSource) and source.size is not None and not chosen


def _settled(
    task: Task, source: Source, seen: list[Batch], batches: Iterator[Batch]
) -> Task:
    """Return the task with the positive label determined by the first rows.

    The first batch of a pipe is small and may have only one class. More batches are
    read and added to ``seen`` until the labels are known, or as much is read as of a
    file.
    """
    labels = [batch.labels for batch in seen if batch.rows.shape[0]]
    while source.size is None and seen[-1].end.offset < BLOCK:
        if not task.halves:  # those need all labels
            with suppress(ValueError):
                found = task.settle(join(labels))
                if not found.by_rarity:
                    return found
        more = next(batches, None)
        if more is None:
            break
        seen.append(more)
        labels.append(more.labels)
    return task.settle(join(labels))


def first_batches(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches up to the first one with rows."""
    for batch in batches:
        yield batch
        if batch.rows.shape[0]:
            return


def file_digests(source: Source) -> list[str] | None:
    """Return a digest of some blocks of each file; None for a pipe.

    Reading the whole file would take as long as training. Sorted, edited or regenerated
    files differ nearly everywhere.
    """
    if source.size is None:
        return None
    return [_file_digest(Path(name)) for name in source.files]


def _file_digest(path: Path) -> str:
    if not path.is_file():
        return ""
    digest = sha256()
    with open(path, "rb") as file:
        last = max(path.stat().st_size - _BLOCK_BYTES, 0)
        for start in sorted({last * k // (_BLOCKS - 1) for k in range(_BLOCKS)}):
            file.seek(start)
            digest.update(file.read(_BLOCK_BYTES))
    return digest.hexdigest()
