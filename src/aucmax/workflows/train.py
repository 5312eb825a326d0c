"""Training from files and pipes, with bounded memory and checkpoints.

A stream learner sees one batch of rows after the other. Between two batches, its state
and a :class:`Progress` are all there is to know; a checkpoint is a model file with
both, next to the model file to be written. Neither learners nor readers depend on how a
stream is cut into batches, so a resumed run writes the same bytes as an uninterrupted
one.

Batch learners get all rows at once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aucmax.io.batch import Batch
from aucmax.io.malformed_lines import BadLines
from aucmax.io.open_data import reopen
from aucmax.storage.atomic import (
    check_writable,
    discard,
    refuse_overwriting,
)
from aucmax.storage.state import save_model
from aucmax.workflows.checkpoint import CheckpointWriter, resumed_run
from aucmax.workflows.holdout import evaluate_held_out
from aucmax.workflows.learning import learn_at_once, learn_stream
from aucmax.workflows.plan import Observer, Plan, Progress
from aucmax.workflows.run import Run, begin, first_batches

_SILENT = Observer()


class Result(NamedTuple):
    """What a run has written."""

    estimator: Any
    recipe: dict[str, Any]
    progress: Progress
    judged: dict[str, Any] | None  # AUC on held-out or test rows
    resumed: bool  # whether it continued from a checkpoint


def train(
    plan: Plan,
    output: Path,
    *,
    test: Sequence[str] = (),
    checkpoint_rows: int | None = None,
    checkpoint_seconds: float = 30.0,
    resume: bool = False,
    observer: Observer = _SILENT,
) -> Result:
    """Train as planned and write the model to ``output``."""
    if test and plan.holdout:
        raise ValueError("--holdout and --test exclude each other: give one of them.")
    check_writable(output)
    checkpoint = output.with_name(output.name + ".checkpoint")
    run, resumed = _run(plan, checkpoint, resume, observer)
    _check_files(run, output, test)
    saver = CheckpointWriter(
        run, checkpoint, checkpoint_rows, checkpoint_seconds, observer, resumed
    )
    lines = BadLines(plan.on_bad_line)
    if run.streams:
        with observer.listening() as stop:
            held = learn_stream(run, lines, saver, observer, stop)
    else:
        held = learn_at_once(run, lines, observer)
    recipe, judged = _save(run, output, held, test, saver)
    return Result(run.estimator, recipe, run.progress, judged, resumed)


def _run(
    plan: Plan, checkpoint: Path, resume: bool, observer: Observer
) -> tuple[Run, bool]:
    """Return the run, and whether it continues from a checkpoint."""
    if not resume and checkpoint.exists():
        raise FileExistsError(
            f"{checkpoint} exists: a run was interrupted. Continue it with --resume, "
            "or delete the file to start again."
        )
    run = resumed_run(checkpoint, plan) if resume else None
    if run is not None:
        return run, True
    if resume:
        observer.warn(
            f"There is no checkpoint {checkpoint}: training starts from the beginning."
        )
    return begin(plan), False


def _check_files(run: Run, output: Path, test: Sequence[str]) -> None:
    """Raise an error if a file cannot be used, before hours of training."""
    inputs = list(run.source.files)
    if test and "-" not in test:
        source = reopen(test, run.source.recipe())
        inputs += source.files
        for batch in first_batches(source.batches()):
            batch.labelled(run.task)
    refuse_overwriting(output, inputs)


def _save(
    run: Run,
    output: Path,
    held: list[Batch],
    test: Sequence[str],
    saver: CheckpointWriter,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Write the model, evaluate it, and write it again with its AUC."""
    recipe = run.recipe()
    save_model(run.estimator, output, recipe=recipe)
    if saver.wrote:
        discard(saver.path)
    try:
        judged = evaluate_held_out(run, held, test, recipe)
    except ValueError as error:
        raise ValueError(
            f"{output} is written, but could not be evaluated: {error}"
        ) from error
    if judged is not None:
        recipe["judged"] = judged
        save_model(run.estimator, output, recipe=recipe)
    return recipe, judged
