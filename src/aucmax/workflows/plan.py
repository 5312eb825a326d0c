"""TODO."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aucmax.io.chunk import START, Position

Stop = Callable[[], int]  # 0 to go on, else a reason to stop


class StoppedError(Exception):
    """Training was asked to stop, and has; ``checkpoint`` has all that was learnt."""

    def __init__(self, checkpoint: Path, reason: int) -> None:
        super().__init__(f"Stopped; {checkpoint} has all that was learnt.")
        self.checkpoint = checkpoint
        self.reason = reason  # what the observer gave


@dataclass(frozen=True)
class Plan:
    """What is to be done: the same plan on the same data gives the same model."""

    data: list[str]
    algorithm: str = "auto"
    params: dict[str, Any] = field(default_factory=dict)
    passes: int | None = None
    seed: int = 0
    holdout: float = 0.0  # share of the rows
    positive: str | None = None  # labels, see Task.parse
    reader: dict[str, Any] = field(default_factory=dict)  # options of open_data
    on_bad_line: str = "fail"  # or "skip", "quarantine"
    size: int | None = None  # of the data: they must not change either
    digests: list[str] | None = None  # of each file, see file_digest

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Return what is not as in another plan, given as a dictionary."""
        mine = asdict(self)
        digests, known = mine.pop("digests"), other.get("digests")
        found = [
            f"{name} was {other.get(name)!r}, is {mine[name]!r}"
            for name in mine
            if mine[name] != other.get(name)
        ]
        # Of a run of an earlier version nobody knows.
        if not found and known is not None and digests != known:
            found = ["the data have changed since, though their size is the same"]
        return found


@dataclass
class Progress:
    """How far a run has come."""

    passes: int = 0  # that are over
    position: Position = START
    steps: int = 0  # rows learnt in all passes
    rows: int = 0  # learnt in the first pass
    positives: int = 0  # of these
    held_out: int = 0  # rows in the first pass that were not learnt
    features: int = 0  # seen
    bad: int = 0  # lines in the first pass that were no rows
    quarantined: int = 0  # bytes
    wins: float = 0.0  # pairs of some rows, ranked right before they were learnt …
    pairs: float = 0.0  # … of so many
    mixed: int = 0  # chunks of the first pass with both classes …
    chunks: int = 0  # … of so many

    @property
    def auc(self) -> float | None:
        """Progressive validation: rows are ranked before they are learnt."""
        return self.wins / self.pairs if self.pairs else None


class Observer:
    """Whom a run tells how it goes, and asks whether to stop; this one is silent."""

    def progress(self, progress: Progress, done: int) -> None:
        """Take note of how far things are; ``done`` bytes have been read."""

    def leaderboard(self, lines: Sequence[Any]) -> None:
        """Take note of how members of a race stand, the leader first."""

    def fitting(self, name: str) -> None:
        """Take note that all rows are read, by a learner that wants them at once."""

    def fitted(self, name: str, done: int, total: int) -> None:
        """Take note that a model of a blend is fitted, and how many are."""

    def warn(self, text: str) -> None:
        """Take what a user should know."""

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Give, while a stream is learnt, what is asked between chunks."""
        yield lambda: 0
