"""``aucmax datasets``: list, describe and download the named data sets."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aucmax.cli.terminal import ProgressBar, Screen, table
from aucmax.io import datasets as registry
from aucmax.io.datasets import Entry, Part
from aucmax.io.open_data import named_set

_MAX_LABELS = 12


def run(name: str | None, fetch: bool, as_json: bool) -> None:
    """List all data sets, or describe one; with ``fetch``, download it first."""
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
        screen.print("\n".join(_description(sets[0])), wrap=False)


def local_files(data: Sequence[str]) -> list[str]:
    """Return the files to read; those of a named set are downloaded if necessary."""
    name = named_set(data)
    return list(data) if name is None else [str(path) for path in _fetch(name)]


def _fetch(name: str) -> list[Path]:
    """Return the files of a data set; download missing ones with a progress bar."""
    with ProgressBar(f"Downloading {name}") as bar:

        def watch(done: int, total: int | None) -> None:
            bar.show(done, total=total, details=f"{done / 1e6:.1f} MB")

        return registry.fetch(name, watch)


def _list(sets: list[Entry], screen: Screen) -> None:
    grid = table("name", "rows", "features", "positives", "labels", "available")
    for column in grid.columns:
        column.no_wrap = True
    for column in grid.columns[4:]:
        column.justify = "left"
    # Names are to be typed: never truncated, however narrow the terminal is.
    grid.columns[0].min_width = max(len(entry.name) for entry in sets)
    for entry in sets:
        counts = (f"{n:,}" for n in (entry.rows, entry.features, entry.positives))
        grid.add_row(entry.name, *counts, _rule(entry), _available(entry))
    screen.show(grid)
    folders = " and ".join(str(folder) for folder in registry.folders())
    screen.print(
        f"Labels: positive : negative. Available: yes if the files are in {folders}; "
        "fetch if aucmax datasets NAME --fetch downloads them. In Python: "
        "aucmax.data.load(NAME)."
    )


def _rule(entry: Entry) -> str:
    """Return the task in short: "1 : -1", "2 : rest", "1–13 : 14–26"."""
    task = entry.task
    if task.halves:
        halves = (task.positive, task.negative)
        return " : ".join(f"{half[0]:g}–{half[-1]:g}" for half in halves)
    return str(task).replace(" against ", " : ")


def _available(entry: Entry) -> str:
    absent = [part for part in entry.parts.values() if registry.locate(part) is None]
    if not absent:
        return "yes"
    return "no" if any(part.url is None for part in absent) else "fetch"


def _description(entry: Entry) -> list[str]:
    labels = [f"{label:g} ({n:,})" for label, n in sorted(entry.classes.items())]
    if len(labels) > _MAX_LABELS:
        labels[_MAX_LABELS - 2 : -1] = ["…"]
    lines = [
        f"{entry.name}: {entry.rows:,} rows, {entry.features:,} features, "
        f"{entry.positives:,} positives ({100 * entry.positives / entry.rows:.3g} %)",
        f"task:       {entry.task}",
        f"labels:     {', '.join(labels)}",
    ]
    for part in entry.parts.values():
        facts = {
            "file": registry.locate(part) or "not available locally",
            "source": part.source,
            "SHA-256": f"{part.sha256} of {part.file}, {part.bytes:,} bytes",
            "URL": part.url,
            "note": part.note,
        }
        lines += ["", f"{part.name}: {part.rows:,} rows"]
        lines += [f"  {k + ':':9} {text}" for k, text in facts.items() if text]
    return lines


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
    facts = part._asdict()
    del facts["name"], facts["classes"]
    return {"file": part.file, "path": path and str(path), **facts}
