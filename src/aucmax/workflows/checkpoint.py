"""Checkpoints: model files with the progress of a run, to resume it."""

from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from aucmax.io.batch import Position
from aucmax.io.open_data import reopen
from aucmax.storage.state import save_model
from aucmax.tables.labels import Task
from aucmax.workflows.choose import AUTOMATIC
from aucmax.workflows.models import load_with_recipe
from aucmax.workflows.plan import Observer, Plan, Progress
from aucmax.workflows.run import Run, file_digests


def resumed_run(checkpoint: Path, plan: Plan) -> Run | None:
    """Return the run of a checkpoint, or None if there is no checkpoint.

    Raise an error if the checkpoint belongs to another plan or to other data.
    """
    if not checkpoint.exists():
        return None
    estimator, recipe = load_with_recipe(checkpoint)
    if recipe is None or "checkpoint" not in recipe:
        raise ValueError(f"{checkpoint} is a model, not a checkpoint.")
    try:
        theirs, progress, passes = _kept(recipe["checkpoint"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{checkpoint} is a damaged checkpoint: {error}") from error
    source = reopen(plan.data, recipe["input"])
    settled = replace(plan, size=source.size, digests=file_digests(source))
    if plan.algorithm in AUTOMATIC:
        settled = replace(settled, algorithm=theirs["algorithm"])
    differences = settled.differences(theirs)
    if differences:
        raise ValueError(
            f"{checkpoint} belongs to another run: {'; '.join(differences)}. Resume "
            "with the same options and data, or delete the file to start again."
        )
    task = Task.from_json(recipe["task"])
    return Run(settled, source, None, task, estimator, passes, progress)


def _kept(said: Any) -> tuple[dict[str, Any], Progress, int]:
    """Return the plan, the progress and the passes stored in a checkpoint."""
    plan, passes, numbers = said["plan"], said["passes"], dict(said["progress"])
    position = Position(*numbers.pop("position"))
    for number in (passes, *position, *numbers.values()):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"{number!r} is not a number.")
        if not 0 <= number < np.inf:
            raise ValueError(f"{number!r} is not a count.")
    if not all(isinstance(number, int) for number in (passes, *position)):
        raise TypeError(f"its position is {position}, of {passes} passes.")
    if not isinstance(plan["algorithm"], str):
        raise TypeError(f"its algorithm is {plan['algorithm']!r}.")
    return plan, Progress(position=position, **numbers), passes


class CheckpointWriter:
    """Write a checkpoint when one is due."""

    def __init__(
        self,
        run: Run,
        path: Path,
        rows: int | None,
        seconds: float,
        observer: Observer,
        resumed: bool,
    ) -> None:
        self._run, self.path, self._observer = run, path, observer
        self.wrote = resumed  # whether the file belongs to this run
        self._rows, self._seconds = rows, seconds
        self._steps, self._time = run.progress.steps, monotonic()

    def due(self) -> bool:
        """Return whether a checkpoint is due."""
        if self._rows is not None:
            return self._run.progress.steps - self._steps >= self._rows
        return monotonic() - self._time >= self._seconds

    def write(self) -> None:
        """Write a checkpoint; warn if that fails, and continue training."""
        run = self._run
        self._steps, self._time = run.progress.steps, monotonic()
        kept = {
            "plan": asdict(run.plan),
            "passes": run.passes,
            "progress": asdict(run.progress),
        }
        try:
            if self.path.exists() and not self.wrote:
                raise FileExistsError(f"{self.path} belongs to another run")
            self.wrote = True
            recipe = {**run.recipe(), "checkpoint": kept}
            save_model(run.estimator, self.path, recipe=recipe)
        except OSError as error:
            self._observer.warn(
                f"Could not write a checkpoint: {error}. Training continues."
            )
