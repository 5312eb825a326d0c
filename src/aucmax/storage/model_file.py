"""Model files: safetensors with a JSON header, written whole or not at all.

The header names the format and its version; what else is in it, and what the arrays
mean, is for the caller to say.

Beside the header, a file has the SHA-256 of all its bytes, taken with zeros in place of
the digest itself: what has been damaged on a disk or on the way is not mistaken for a
model. Files without one, as earlier versions wrote them, are read as well.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from aucmax import __version__
from aucmax.storage.atomic import replacing

FORMAT = "aucmax model"
VERSION = 3  # 1: other statistics of the features; 2: stored in other parts

_LONGEST_HEADER = 100_000_000  # bytes, that the package reads
_BLOCK = 1 << 20  # bytes, read at a time
_KINDS = {"<f8": "F64", "<f4": "F32", "<i4": "I32", "<i2": "I16"}
_HEADER, _DIGEST = "aucmax", "sha256"  # the keys of the metadata
_UNKNOWN = "0" * 64  # in place of the digest, while it is taken


def write(
    path: str | Path, header: dict[str, Any], tensors: dict[str, NDArray[Any]]
) -> None:
    """Write arrays to ``path``, atomically, with a header for JSON.

    Short integers and float32 stay so; all else becomes float64.
    """
    marks = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"aucmax {__version__}",
    }
    with replacing(path) as file:
        for part in _signed(tensors, json.dumps(marks | header, sort_keys=True)):
            file.write(part)


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file of this version."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a model file.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.keys() & {_HEADER, _DIGEST}:
                _check_digest(path, metadata)
            header = json.loads(metadata.get(_HEADER, "null"))
            names = file.keys()
            tensors = {name: np.array(file.get_tensor(name)) for name in names}
    except (SafetensorError, AttributeError, TypeError, ValueError) as error:
        # An AttributeError or a TypeError: arrays are of a type that NumPy has not.
        raise ValueError(
            f"{path} is not an aucmax model file, or it is damaged: {error}"
        ) from error
    except RecursionError:
        raise ValueError(
            f"{path} is not an aucmax model file, or it is damaged: its header is "
            "nested too deeply."
        ) from None
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


def is_model(path: str | Path) -> bool:
    """Tell whether a file begins as model files do."""
    try:
        with open(path, "rb") as file:
            return file.read(99)[8:].startswith(b'{"__metadata__":{"aucmax":')
    except OSError:
        return False


def _check_digest(path: Path, metadata: dict[str, str]) -> None:
    """Raise an error if the bytes of the file are not those that were written."""
    # A digest under a name that one bit makes another would go unnoticed.
    if other := metadata.keys() - {_HEADER, _DIGEST}:
        raise ValueError(f"its metadata have a key {min(other)!r}.")
    if _DIGEST not in metadata:
        return
    found = metadata[_DIGEST]
    place, unknown = _place(found), _place(_UNKNOWN)
    with open(path, "rb") as file:
        size = file.read(8)
        start = file.read(int.from_bytes(size, "little"))
        if start.count(place) != 1 or len(place) != len(unknown):
            raise ValueError("its checksum is not where it should be.")
        taken = hashlib.sha256(size + start.replace(place, unknown))
        while block := file.read(_BLOCK):
            taken.update(block)
    if taken.hexdigest() != found:
        raise ValueError(
            "its bytes are not those that were written, says their checksum. Copy it "
            "again, or train it again."
        )


def _place(digest: str) -> bytes:
    """Return the digest as it stands in a file; in the header, quotes are escaped."""
    return f'"{_DIGEST}":"{digest}"'.encode()


def _signed(tensors: dict[str, Any], header: str) -> Iterator[Any]:
    """Yield a file as ``_parts`` does, with its digest: arrays are gone through twice.

    (Not to go back to the start of the file: a pipe has none.)
    """
    metadata = {_HEADER: header, _DIGEST: _UNKNOWN}
    taken = hashlib.sha256()
    for part in _parts(tensors, metadata):
        taken.update(part)
    yield from _parts(tensors, metadata | {_DIGEST: taken.hexdigest()})


def _parts(tensors: dict[str, Any], metadata: dict[str, str]) -> Iterator[Any]:
    """Yield a safetensors file piece by piece, without a copy of its arrays.

    Byte for byte what the package writes, which makes three copies of a large state.
    """
    table: dict[str, Any] = {"__metadata__": metadata}
    arrays, end = [], 0
    for name in sorted(tensors):
        array = np.asarray(tensors[name])
        dtype = array.dtype.newbyteorder("<").str
        array = array.astype(dtype if dtype in _KINDS else "<f8", copy=False)
        start, end = end, end + array.nbytes
        shape, place = list(array.shape), [start, end]
        kind = _KINDS[array.dtype.newbyteorder("<").str]
        table[name] = {"dtype": kind, "shape": shape, "data_offsets": place}
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
