"""Training from files and streams: any algorithm, bounded memory, no work lost.

A learner of streams sees one chunk after the other. Between two chunks all there is to
know is its state and a :class:`Progress`; a checkpoint is a model file with both, next
to the model that is to be. As learners do not care how a stream is cut, and readers cut
it the same way again, a run that goes on from a checkpoint ends with the very bytes it
would have ended with.

Other learners get all rows at once.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from aucmax.io.batch import labelled
from aucmax.io.malformed_lines import BadLines
from aucmax.io.open_data import reopen
from aucmax.storage.atomic import (
    check_writable,
    discard,
    refuse_overwriting,
    refuse_twice,
    sole_writer,
)
from aucmax.storage.models import save_model
from aucmax.workflows.checkpoint import CheckpointWriter, resumed_run
from aucmax.workflows.holdout import evaluate_held_out
from aucmax.workflows.learning import learn_at_once, learn_stream
from aucmax.workflows.plan import Observer, Plan, Progress
from aucmax.workflows.run import begin, first_chunks, influential_scales

_SILENT = Observer()


class Result(NamedTuple):
    """A model file that has been written, and how it came about."""

    estimator: Any
    recipe: dict[str, Any]
    progress: Progress
    judged: dict[str, Any] | None  # AUC on rows that were not learnt
    resumed: bool  # whether it went on from a checkpoint


def train(
    plan: Plan,
    output: Path,
    *,
    test: Sequence[str] = (),
    quarantine: Path | None = None,
    checkpoint_rows: int | None = None,
    checkpoint_seconds: float = 30.0,
    resume: bool = False,
    observer: Observer = _SILENT,
) -> Result:
    """Train as planned and write the model to ``output``."""
    if test and plan.holdout:
        raise ValueError("The model is judged by --holdout or by --test: take one.")
    check_writable(output)
    with sole_writer(output):
        return _train(
            plan,
            output,
            test,
            quarantine,
            checkpoint_rows,
            checkpoint_seconds,
            resume,
            observer,
        )


def _train(
    plan: Plan,
    output: Path,
    test: Sequence[str],
    quarantine: Path | None,
    checkpoint_rows: int | None,
    checkpoint_seconds: float,
    resume: bool,
    observer: Observer,
) -> Result:
    """Train; nobody else writes to ``output`` meanwhile."""
    checkpoint = output.with_name(output.name + ".checkpoint")
    refuse_twice(output, checkpoint, quarantine)
    run = resumed_run(checkpoint, plan) if resume else None
    if not resume and checkpoint.exists():
        raise FileExistsError(
            f"{checkpoint} is there: a run was interrupted. Go on with --resume, or "
            "delete that file to begin anew."
        )
    if run is None:
        if resume:
            observer.warn(
                f"There is no {checkpoint} to go on from: training begins anew."
            )
        run = begin(plan)
        resumed = False
    else:
        resumed = True
    refuse_overwriting(output, run.source.files)
    if test and "-" not in test:
        # What is wrong with a name or a column is better known before all is learnt.
        judges = reopen(test, run.source.recipe())
        refuse_overwriting(output, judges.files)
        if quarantine is not None:
            refuse_overwriting(quarantine, judges.files)
        for chunk in first_chunks(judges.chunks()):
            labelled(chunk, run.task)
    if quarantine is not None:
        refuse_overwriting(quarantine, run.source.files)
    lines = BadLines(plan.on_bad_line, quarantine, run.progress.quarantined)
    saver = CheckpointWriter(
        run, checkpoint, checkpoint_rows, checkpoint_seconds, observer, resumed
    )
    try:
        if run.streams:
            with observer.listening() as stop:
                held = learn_stream(run, lines, saver, observer, stop)
        else:
            held = learn_at_once(run, lines, observer)
    finally:
        lines.close()
    run.spreads = influential_scales(run)
    with suppress(OSError, ValueError):  # a file may be gone: names are not worth it
        run.words = run.source.words(run.spreads.features)
    recipe = run.recipe()
    save_model(run.estimator, output, recipe=recipe)
    if saver.wrote:  # else somebody else has
        discard(checkpoint)
    try:
        judged = evaluate_held_out(run, held, test, recipe)
    except ValueError as error:
        raise ValueError(
            f"{output} is written, but could not be judged: {error}"
        ) from error
    if judged is not None:
        recipe["judged"] = judged
        save_model(run.estimator, output, recipe=recipe)
    return Result(run.estimator, recipe, run.progress, judged, resumed)
