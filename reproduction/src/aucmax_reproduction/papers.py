"""What the papers print: ``papers.csv``, a line for each cell of their tables.

AUC and accuracy are fractions, times are seconds. ``note`` says what is special about a
cell: how the algorithm or the set is spelt there, whether the value was copied from
another paper, and which way a t-test went.
"""

from collections.abc import Collection
from csv import DictReader
from functools import cache
from importlib.resources import files
from typing import NamedTuple

AUC, ACCURACY, SECONDS = "auc", "accuracy_optroc", "train_seconds"


class Printed(NamedTuple):
    """A cell of a table, as it is printed."""

    source: str
    table: str
    dataset: str
    algorithm: str
    metric: str
    mean: float
    std: float | None  # None: none is printed
    note: str

    @property
    def copied(self) -> bool:
        """Whether the authors took the value over from another paper."""
        return "copied by the authors" in self.note

    @property
    def significance(self) -> int:
        """+1 if the paper calls its own algorithm better, -1 if worse, else 0."""
        return ("significantly better" in self.note) - (
            "significantly worse" in self.note
        )


@cache
def every() -> tuple[Printed, ...]:
    """Return all cells of all papers."""
    text = (files("aucmax_reproduction") / "papers.csv").read_text(encoding="utf-8")
    return tuple(_cell(row) for row in DictReader(text.splitlines()))


def sources() -> list[str]:
    """Return the papers by the names that they have here."""
    return sorted({cell.source for cell in every()})


def cells(
    source: str,
    tables: Collection[str] = (),
    datasets: Collection[str] = (),
    algorithms: Collection[str] = (),
) -> list[Printed]:
    """Return the cells of a paper; of some tables, sets and algorithms if given."""
    mine = [cell for cell in every() if cell.source == source]
    if not mine:
        raise ValueError(f"There is no source {source!r}: {', '.join(sources())}.")
    wanted = {"table": tables, "dataset": datasets, "algorithm": algorithms}
    for field, names in wanted.items():
        known = list(dict.fromkeys(getattr(cell, field) for cell in mine))
        if unknown := [name for name in names if name not in known]:
            raise ValueError(
                f"{source} prints no {field} {unknown[0]!r}. It has {', '.join(known)}."
            )
        mine = [cell for cell in mine if not names or getattr(cell, field) in names]
    return mine


def _cell(row: dict[str, str]) -> Printed:
    return Printed(
        source=row["source"],
        table=row["table"],
        dataset=row["dataset"],
        algorithm=row["algorithm"],
        metric=row["metric"],
        mean=float(row["mean"]),
        std=float(row["std"]) if row["std"] else None,
        note=row["note"],
    )
