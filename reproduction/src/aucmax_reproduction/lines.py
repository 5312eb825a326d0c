"""Results file: a header line, then one JSON line per fit.

A killed process can leave an incomplete last line. It is dropped when the file is
opened again.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def read(path: Path, head: Mapping[str, Any] | None = None) -> list[Line]:
    """Return the fits in a file; an empty list if it does not exist.

    Parameters
    ----------
    path : Path
        The file.
    head : mapping, default=None
        Expected header, so that runs with different limits are not mixed. None: do
        not check.
    """
    if not path.exists():
        return []
    lines = list(_whole(path))
    if lines and head is not None:
        _compare(path, lines[0], dict(head))
    return lines[1:]


def head_of(path: Path) -> Line:
    """Return the header of a results file."""
    if not path.exists():
        raise FileNotFoundError(
            f"No results: {path} does not exist. Run without --no-fits first."
        )
    return next(_whole(path), {})


class Writer:
    """Append lines to a file, after dropping an incomplete last line."""

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            os.truncate(path, _end(path.read_bytes()))
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        if not self._file.tell():
            self.write(head)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line and flush it."""
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _end(content: bytes) -> int:
    """Return the end of the last complete line."""
    return content.rfind(b"\n") + 1


def _whole(path: Path) -> Iterator[Line]:
    content = path.read_bytes()
    for number, line in enumerate(content[: _end(content)].splitlines(), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: malformed result ({error}). Remove the "
                "line, or use another folder."
            ) from None


def _compare(path: Path, found: Line, wanted: Line) -> None:
    for key in sorted({*found, *wanted}):
        if found.get(key) != wanted.get(key):
            raise ValueError(
                f"{path} has results with {key}={found.get(key)}, not {key}="
                f"{wanted.get(key)}. Use another folder, or remove the file."
            )
