"""Snapshots: the model file, written again while training runs."""

from pathlib import Path
from time import monotonic

from aucmax.storage.state import save_model
from aucmax.workflows.plan import Observer
from aucmax.workflows.run import Run, influential_scales


class SnapshotWriter:
    """Write the model every ``seconds`` seconds; never if ``seconds`` is None.

    A reader of the file sees a complete model at any time.
    """

    def __init__(
        self, run: Run, path: Path, seconds: float | None, observer: Observer
    ) -> None:
        self._run, self._path, self._observer = run, path, observer
        self._seconds, self._time = seconds, monotonic()

    def due(self) -> bool:
        """Return whether a snapshot is due; not before both classes have occurred."""
        progress = self._run.progress
        if self._seconds is None or progress.positives in (0, progress.rows):
            return False
        return monotonic() - self._time >= self._seconds

    def write(self) -> None:
        """Write the model; warn if that fails, and continue training."""
        recipe = self._run.recipe()
        recipe["spreads"] = influential_scales(self._run)._asdict()
        try:
            save_model(self._run.estimator, self._path, recipe=recipe)
        except OSError as error:
            self._observer.warn(
                f"Could not write a snapshot: {error}. Training continues."
            )
        self._time = monotonic()
