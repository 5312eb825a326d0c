"""``aucmax algorithms``: what there is, from which paper, and what it costs."""

import json

from rich.table import Table

from aucmax.cli.screen import Screen
from aucmax.registry import CLASSES, SYSTEMS


def run(as_json: bool) -> None:
    """Print the systems of the literature, and how this library writes them."""
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
    if as_json:
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
        "\nEach is a name for --algorithm, and for aucmax.named in Python. So are the "
        "classes themselves:\n" + ", ".join(CLASSES) + "."
    )
