"""``aucmax datasets``: the named sets, what they are, and whether they are here."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from aucmax.cli.screen import Console, Screen, table
from aucmax.io import datasets as registry
from aucmax.io.datasets import Entry, Part
from aucmax.io.open_data import named_set


def run(name: str | None, fetch: bool, as_json: bool) -> None:
    """List all sets, or describe one; with ``fetch``, download it first."""
    screen = Screen(quiet=as_json)
    if fetch and name is not None:
        _fetch(name)
    names = registry.names() if name is None else [name]
    sets = [registry.described(one) for one in names]
    if as_json:
        facts = [_facts(entry) for entry in sets]
        print(json.dumps(facts if name is None else facts[0], indent=2))
    elif name is None:
        _list(sets, screen)
    else:
        screen.print(_description(sets[0]), wrap=False)


def local_files(data: Sequence[str]) -> list[str]:
    """Return what is to be read: of a named set its files, fetched if need be."""
    name = named_set(data)
    return list(data) if name is None else [str(path) for path in _fetch(name)]


def _fetch(name: str) -> list[Path]:
    """Download what is not here; show how far it is, if there is a terminal."""
    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn(f"Fetching {name}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bars:
        bar = bars.add_task(name)
        return registry.fetch(
            name, lambda done, total: bars.update(bar, completed=done, total=total)
        )


def _list(sets: list[Entry], screen: Screen) -> None:
    grid = table("name", "rows", "features", "positives")
    for heading in ("labels", "here"):
        grid.add_column(heading)
    for column in grid.columns:
        column.no_wrap = True
    # However narrow the screen is: one wants to type the names.
    grid.columns[0].min_width = max(len(entry.name) for entry in sets)
    for entry in sets:
        grid.add_row(
            entry.name,
            f"{entry.rows:,}",
            f"{entry.features:,}",
            f"{entry.positives:,}",
            _rule(entry),
            _state(entry),
        )
    screen.show(grid)
    looked = " and ".join(str(folder) for folder in registry.folders())
    screen.print(
        "Labels: positive : negative. Here: in "
        f"{looked}, or to be had by aucmax datasets NAME --fetch. In Python: "
        "aucmax.data.load(NAME).",
    )


def _rule(entry: Entry) -> str:
    """Return the task in the fewest words: "1 : -1", "2 : rest", "1–13 : 14–26"."""
    task = entry.task
    if task.halves:
        halves = (task.positive, task.negative)
        return " : ".join(f"{half[0]:g}–{half[-1]:g}" for half in halves)
    return str(task).replace(" against ", " : ")


def _state(entry: Entry) -> str:
    away = [part for part in entry.parts.values() if registry.locate(part) is None]
    if not away:
        return "yes"
    return "no" if any(part.url is None for part in away) else "fetch"


def _description(entry: Entry) -> str:
    lines = [
        f"{entry.name}: {entry.rows:,} rows, {entry.features:,} features, "
        f"{entry.positives:,} positives ({100 * entry.positives / entry.rows:.3g} %)",
        f"task:       {entry.task}",
        f"labels:     {_labels(entry.classes)}",
    ]
    for part in entry.parts.values():
        path = registry.locate(part)
        lines += [
            "",
            f"{part.name}: {part.rows:,} rows",
            f"  here:     {path if path is not None else 'no'}",
            f"  came from {part.source}",
            f"  SHA-256   {part.sha256} of {part.file}, {part.bytes:,} bytes",
        ]
        if part.url is not None:
            lines += [f"  address   {part.url}"]
        if part.note:
            lines += [f"  note      {part.note}"]
    return "\n".join(lines)


def _labels(classes: dict[float, int], most: int = 12) -> str:
    shown = [f"{label:g} ({count:,})" for label, count in sorted(classes.items())]
    if len(shown) > most:
        shown[most - 2 : -1] = ["…"]
    return ", ".join(shown)


def _facts(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "rows": entry.rows,
        "features": entry.features,
        "positives": entry.positives,
        "task": entry.task.to_json(),
        "labels": {f"{label:g}": count for label, count in entry.classes.items()},
        "parts": {which: _part(part) for which, part in entry.parts.items()},
    }


def _part(part: Part) -> dict[str, Any]:
    path = registry.locate(part)
    return {
        "file": part.file,
        "path": None if path is None else str(path),
        "rows": part.rows,
        "bytes": part.bytes,
        "sha256": part.sha256,
        "source": part.source,
        "url": part.url,
        "note": part.note,
    }
