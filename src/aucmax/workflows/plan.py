"""Options, progress and callbacks of a training run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aucmax.io.batch import START, Position

Stop = Callable[[], int]  # 0 to continue, else a reason to stop


class StoppedError(Exception):
    """Training was stopped on request; ``checkpoint`` has its state."""

    def __init__(self, checkpoint: Path, reason: int) -> None:
        super().__init__(f"Stopped; {checkpoint} has the state of training.")
        self.checkpoint = checkpoint
        self.reason = reason  # as the observer returned it


@dataclass(frozen=True)
class Plan:
    """Options of a run. The same plan on the same data gives the same model."""

    data: list[str]
    algorithm: str = "auto"
    params: dict[str, Any] = field(default_factory=dict)
    passes: int | None = None
    seed: int = 0
    holdout: float = 0.0  # fraction of the rows
    positive: str | None = None  # labels, see Task.parse
    reader: dict[str, Any] = field(default_factory=dict)  # options of open_data
    on_bad_line: str = "fail"  # or "skip"
    size: int | None = (
        None  # of the data, which must not change before a run is resumed
    )
    digests: list[str] | None = None  # of each file, see run.file_digests
    start: str | None = None  # model file from which training continues

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Return the differences from another plan, given as a dictionary."""
        mine = asdict(self)
        digests, known = mine.pop("digests"), other.get("digests")
        found = [
            f"{name} was {other.get(name)!r}, is {mine[name]!r}"
            for name in mine
            if mine[name] != other.get(name)
        ]
        if not found and digests != known:
            found = ["the data have changed since, though their size is the same"]
        return found


@dataclass
class Progress:
    """Counters of a run."""

    passes: int = 0  # finished
    position: Position = START
    steps: int = 0  # rows learnt in all passes
    rows: int = 0  # learnt in the first pass
    positives: int = 0  # of these
    held_out: int = 0  # rows in the first pass
    features: int = 0  # seen
    bad: int = 0  # malformed lines in the first pass
    unlabelled: int = 0  # rows without a label in the first pass
    wins: float = 0.0  # pairs ranked correctly before they were learnt …
    pairs: float = 0.0  # … of this many
    mixed: int = 0  # batches of the first pass with both classes …
    chunks: int = 0  # … of this many

    @property
    def auc(self) -> float | None:
        """The progressive AUC: rows are ranked before they are learnt."""
        return self.wins / self.pairs if self.pairs else None


class Observer:
    """Callbacks for training progress; this default does nothing."""

    def progress(self, progress: Progress, done: int) -> None:
        """Report progress; ``done`` bytes have been read."""

    def leaderboard(self, lines: Sequence[Any]) -> None:
        """Report the members of a race, the leader first."""

    def refit(self, count: int, rows: int) -> None:
        """Report how often trees were refitted, and at which row the last time."""

    def fitting(self, name: str) -> None:
        """Report that all rows are read and a batch learner is being fitted."""

    def fitted(self, name: str, done: int, total: int) -> None:
        """Report that a model of a blend is fitted, the ``done``-th of ``total``."""

    def warn(self, text: str) -> None:
        """Show a warning to the user."""

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Return a context whose function is asked between batches whether to stop."""
        yield lambda: 0
