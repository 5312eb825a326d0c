"""From names of files to a reader: which format, by name or by looking."""

import bz2
import gzip
import lzma
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aucmax.data.chunk import Source

FORMATS = ("svmlight", "csv", "parquet")

_ENDINGS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "parquet",
    ".feather": "parquet",
}
_PACKED = {".gz", ".bz2", ".xz", ".zst"}
_OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

# A label, then only index:value pairs; a comment may follow. At least one pair.
_SVMLIGHT = re.compile(rb"\s*[^\s,;:#]+(\s+(qid|[+-]?\d+):[^\s:,;]+)+\s*(#.*)?$")

_FEW = 1 << 16  # bytes to look at


def open_data(
    paths: Sequence[str], *, format: str | None = None, **options: Any
) -> Source:
    """Return a reader of files, folders, globs, or standard input (``-``).

    ``options`` are those of :class:`SvmlightSource`, :class:`CsvSource` and
    :class:`ParquetSource`; the format is guessed if it is not given.
    """
    if not paths:
        raise ValueError("There is nothing to read: name a file, or - for a pipe.")
    known = guess_format(paths[0]) if format is None else format
    if known not in FORMATS:
        raise ValueError(f"format={format!r} is none of {', '.join(FORMATS)}.")
    reader = _reader(known)
    options = {name: value for name, value in options.items() if value is not None}
    unknown = options.keys() - reader.options
    if unknown:
        raise ValueError(
            f"{', '.join(sorted(unknown))}: not for {known} data, whose options are "
            f"{', '.join(sorted(reader.options))}."
        )
    source: Source = reader(paths, **options)
    return source


def reopen(
    paths: Sequence[str],
    recipe: dict[str, Any],
    *,
    keep_text: bool = False,
    extra: Sequence[str] = (),
    n_features: int | None = None,
) -> Source:
    """Return a reader that makes the same features as the one with this recipe.

    Tables may come in another format than the one trained on.
    """
    if not paths:
        raise ValueError("There is nothing to read: name a file, or - for a pipe.")
    known = recipe["format"]
    if known != "svmlight":
        guess = guess_format(paths[0])
        known = known if guess == "svmlight" else guess
    reader = _reader(known)
    options = {"recipe": recipe, "keep_text": keep_text}
    if known == "svmlight":
        options["n_features"] = n_features
        if extra:
            raise ValueError(f"svmlight data have no columns with names like {extra}.")
    else:
        options["extra"] = extra
    source: Source = reader(paths, **options)
    return source


def guess_format(path: str) -> str:
    """Return the format by the file's name, else by its first line."""
    if Path(path).is_dir():
        inside = sorted(one for one in Path(path).iterdir() if one.is_file())
        path = next((str(one) for one in inside if one.name[0] != "."), path)
    endings = [ending.lower() for ending in Path(path).suffixes]
    packed = endings.pop() if endings and endings[-1] in _PACKED else ""
    if endings and endings[-1] in _ENDINGS:
        return _ENDINGS[endings[-1]]
    lines = (line.strip() for line in _beginning(path, packed).split(b"\n"))
    first = next((line for line in lines if line and line[:1] != b"#"), b"")
    if first[:4] == b"PAR1" or first[:6] == b"ARROW1":
        return "parquet"
    return "svmlight" if _SVMLIGHT.match(first) else "csv"


def _beginning(path: str, packed: str) -> bytes:
    if path == "-":
        return bytes(sys.stdin.buffer.peek(_FEW))  # type: ignore[attr-defined]
    try:
        with _OPEN.get(packed, open)(path, "rb") as file:
            return bytes(file.read(_FEW))
    except (OSError, EOFError):
        return b""  # a glob, or something that the reader will complain about


def _reader(format: str) -> Any:
    if format == "svmlight":
        from aucmax.data.svmlight import SvmlightSource

        return SvmlightSource
    if format == "csv":
        from aucmax.data.csv import CsvSource

        return CsvSource
    from aucmax.data.parquet import ParquetSource

    return ParquetSource
