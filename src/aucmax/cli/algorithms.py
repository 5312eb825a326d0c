"""``aucmax algorithms``: list the algorithms from the literature."""

import json

from rich.table import Table

from aucmax.cli.terminal import Screen
from aucmax.registry import CLASSES, SYSTEMS


def run(as_json: bool) -> None:
    """Print each algorithm with its papers, objective, cost and settings."""
    if as_json:
        rows = [
            {
                "name": system.name,
                "papers": list(system.papers),
                "minimises": system.minimises,
                "cost": system.cost,
                "settings": system.settings(),
            }
            for system in SYSTEMS.values()
        ]
        print(json.dumps(rows, indent=2))
        return
    screen = Screen()
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for system in SYSTEMS.values():
        papers = ", ".join(paper.partition("-")[0] for paper in system.papers)
        grid.add_row(system.name, system.settings())
        grid.add_row("", f"{system.minimises}; {system.cost}; {papers}")
    screen.show(grid)
    screen.print(
        "\nUse these names with --algorithm, or with aucmax.named in Python. The names "
        "of the classes work as well:\n" + ", ".join(CLASSES) + "."
    )
