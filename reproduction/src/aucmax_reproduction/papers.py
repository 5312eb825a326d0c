"""Published values of the papers: ``papers.csv``, one line per table cell.

AUC and accuracy are fractions, times are seconds. ``note`` has the paper's spelling of
the algorithm or the set, whether the value was copied from another paper, and the
result of a t-test.
"""

from collections.abc import Collection
from csv import DictReader
from functools import cache
from importlib.resources import files
from typing import NamedTuple

AUC, ACCURACY, SECONDS = "auc", "accuracy_optroc", "train_seconds"


class Printed(NamedTuple):
    """A published table cell."""

    source: str
    table: str
    dataset: str
    algorithm: str
    metric: str
    mean: float
    std: float | None  # None: not published
    note: str

    @property
    def copied(self) -> bool:
        """Whether the authors copied the value from another paper."""
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
    """Return the names of the papers."""
    return sorted({cell.source for cell in every()})


def cells(
    source: str,
    tables: Collection[str] = (),
    datasets: Collection[str] = (),
    algorithms: Collection[str] = (),
) -> list[Printed]:
    """Return the cells of a paper, filtered by table, set and algorithm if given."""
    found = [cell for cell in every() if cell.source == source]
    if not found:
        raise ValueError(
            f"Unknown source {source!r}. Use one of {', '.join(sources())}."
        )
    wanted = {"table": tables, "dataset": datasets, "algorithm": algorithms}
    for field, names in wanted.items():
        known = list(dict.fromkeys(getattr(cell, field) for cell in found))
        if unknown := [name for name in names if name not in known]:
            raise ValueError(
                f"{source} has no {field} {unknown[0]!r}. "
                f"Use one of {', '.join(known)}."
            )
        found = [cell for cell in found if not names or getattr(cell, field) in names]
    return found


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
