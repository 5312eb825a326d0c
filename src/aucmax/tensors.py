"""Model files: safetensors with a JSON header, written whole or not at all.

The header names the format and its version; what else is in it, and what the arrays
mean, is for the caller to say.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from aucmax import __version__
from aucmax.files import replacing

FORMAT = "aucmax model"
VERSION = 3  # 1: other statistics of the features; 2: stored in other parts

_LONGEST_HEADER = 100_000_000  # bytes, that the package reads


def write(
    path: str | Path, header: dict[str, Any], tensors: dict[str, NDArray[Any]]
) -> None:
    """Write float64 arrays to ``path``, atomically, with a header for JSON."""
    marks = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"aucmax {__version__}",
    }
    with replacing(path) as file:
        for part in _parts(tensors, json.dumps(marks | header, sort_keys=True)):
            file.write(part)


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file of this version."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a model file.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            header = json.loads(metadata.get("aucmax", "null"))
            names = file.keys()
            tensors = {name: np.array(file.get_tensor(name)) for name in names}
    except (SafetensorError, ValueError) as error:
        raise ValueError(
            f"{path} is not an aucmax model file, or it is damaged: {error}"
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is a safetensors file, but not one of aucmax.")
    version = header.get("version")
    if version != VERSION:
        old = isinstance(version, int) and version < VERSION
        remedy = "It is too old: train it again." if old else "Upgrade aucmax."
        raise ValueError(
            f"{path} has version {version!r} of the format, written by "
            f"{header.get('written_by')!r}; this is aucmax {__version__}, which "
            f"reads version {VERSION}. {remedy}"
        )
    return header, tensors


def _parts(tensors: dict[str, Any], header: str) -> Iterator[Any]:
    """Yield a safetensors file of float64 arrays piece by piece, without a copy.

    Byte for byte what the package writes, which makes three copies of a large state.
    """
    table: dict[str, Any] = {"__metadata__": {"aucmax": header}}
    arrays, end = [], 0
    for name in sorted(tensors):
        array = np.asarray(tensors[name], "<f8")
        start, end = end, end + array.nbytes
        shape, place = list(array.shape), [start, end]
        table[name] = {"dtype": "F64", "shape": shape, "data_offsets": place}
        arrays.append(array)
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LONGEST_HEADER:
        raise ValueError(
            f"The header of the file would take {len(text)} bytes, and nobody reads "
            f"more than {_LONGEST_HEADER}: hash categories, or use shorter names."
        )
    yield len(text).to_bytes(8, "little")
    yield text
    for array in arrays:
        # A table that is stored feature by feature is turned round slot by slot.
        whole = array.ndim < 2 or array.flags.c_contiguous
        for part in [array] if whole else array:
            yield np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
