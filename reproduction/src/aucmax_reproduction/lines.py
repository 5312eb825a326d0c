"""Results in a file: a head, then a line of JSON for each fit, written as it is done.

A process that is killed can leave half a line at the end. It is dropped when the file
is opened again; all others hold.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def read(path: Path, head: Mapping[str, Any] | None = None) -> list[Line]:
    """Return the fits in a file; none if it is not there.

    Parameters
    ----------
    path : Path
        The file.
    head : mapping, default=None
        What the first line has to be, so that results of several ways to run a paper
        do not get mixed up. None: anything.
    """
    if not path.exists():
        return []
    lines = list(_whole(path))
    if lines and head is not None:
        _compare(path, lines[0], dict(head))
    return lines[1:]


def head_of(path: Path) -> Line:
    """Return the first line of a file of results."""
    if not path.exists():
        raise FileNotFoundError(f"There are no results yet: {path} is not there.")
    return next(_whole(path), {})


class Writer:
    """Appends lines to a file, which is cut back to its whole lines first."""

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            os.truncate(path, _end(path.read_bytes()))
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        if not self._file.tell():
            self.write(head)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line; it is in the file when this returns."""
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _end(content: bytes) -> int:
    """Return where the last whole line ends."""
    return content.rfind(b"\n") + 1


def _whole(path: Path) -> Iterator[Line]:
    content = path.read_bytes()
    for number, line in enumerate(content[: _end(content)].splitlines(), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: this is no line of results ({error}). Remove "
                "it, or name another folder."
            ) from None


def _compare(path: Path, found: Line, wanted: Line) -> None:
    for key in sorted({*found, *wanted}):
        if found.get(key) != wanted.get(key):
            raise ValueError(
                f"{path} has results with {key}={found.get(key)}, where {key}="
                f"{wanted.get(key)} is asked for: name another folder, or remove it."
            )
