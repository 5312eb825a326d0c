"""The bytes of model files: safetensors with a JSON header and a checksum.

The checksum is the SHA-256 of all bytes of the file, with zeros in place of the
checksum itself.
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

_LONGEST_HEADER = 100_000_000  # bytes that the safetensors package reads
_BLOCK = 1 << 20  # bytes, read at a time
_KINDS = {"<f8": "F64", "<f4": "F32", "<i4": "I32", "<i2": "I16"}
_HEADER, _DIGEST = "aucmax", "sha256"  # the keys of the metadata
_UNKNOWN = "0" * 64  # in place of the digest while it is computed


def write(
    path: str | Path, header: dict[str, Any], tensors: dict[str, NDArray[Any]]
) -> None:
    """Write arrays and a header to ``path``, atomically.

    Short integers and float32 keep their type; all others become float64.
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
        # AttributeError and TypeError: array types that NumPy does not have.
        raise ValueError(
            f"{path} is not an aucmax model file, or it is damaged: {error}"
        ) from error
    except RecursionError:
        raise ValueError(
            f"{path} is not an aucmax model file, or it is damaged: its header is "
            "nested too deeply."
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is a safetensors file, but not an aucmax model.")
    version = header.get("version")
    if version != VERSION:
        old = isinstance(version, int) and version < VERSION
        remedy = "It is too old: train the model again." if old else "Upgrade aucmax."
        raise ValueError(
            f"{path} has version {version!r} of the format, written by "
            f"{header.get('written_by')!r}; this is aucmax {__version__}, which "
            f"reads version {VERSION}. {remedy}"
        )
    return header, tensors


def is_model(path: str | Path) -> bool:
    """Return whether a file begins like a model file."""
    if not Path(path).is_file():  # what is read of a pipe is gone
        return False
    try:
        with open(path, "rb") as file:
            return file.read(99)[8:].startswith(b'{"__metadata__":{"aucmax":')
    except OSError:
        return False


def _check_digest(path: Path, metadata: dict[str, str]) -> None:
    """Raise an error if the checksum of the file does not match."""
    # A flipped bit in the name of the checksum would hide it.
    if other := metadata.keys() - {_HEADER, _DIGEST}:
        raise ValueError(f"its metadata have an unknown key {min(other)!r}.")
    if _DIGEST not in metadata:
        raise ValueError("it has no checksum.")
    found = metadata[_DIGEST]
    place, unknown = _place(found), _place(_UNKNOWN)
    with open(path, "rb") as file:
        size = file.read(8)
        start = file.read(int.from_bytes(size, "little"))
        if start.count(place) != 1 or len(place) != len(unknown):
            raise ValueError("its checksum is misplaced.")
        taken = hashlib.sha256(size + start.replace(place, unknown))
        while block := file.read(_BLOCK):
            taken.update(block)
    if taken.hexdigest() != found:
        raise ValueError(
            "checksum mismatch: the file is corrupted. Copy it again, or train the "
            "model again."
        )


def _place(digest: str) -> bytes:
    """Return the bytes of the digest in a file; quotes in the header are escaped."""
    return f'"{_DIGEST}":"{digest}"'.encode()


def _signed(tensors: dict[str, Any], header: str) -> Iterator[Any]:
    """Yield the parts of a file with its digest, in two passes over the arrays.

    (Writing the digest afterwards would need a file that can seek, not a pipe.)
    """
    metadata = {_HEADER: header, _DIGEST: _UNKNOWN}
    taken = hashlib.sha256()
    for part in _parts(tensors, metadata):
        taken.update(part)
    yield from _parts(tensors, metadata | {_DIGEST: taken.hexdigest()})


def _parts(tensors: dict[str, Any], metadata: dict[str, str]) -> Iterator[Any]:
    """Yield the parts of a safetensors file without copying arrays.

    The bytes are those of the safetensors package, which copies a large state three
    times.
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
            f"The header of the model file would have {len(text)} bytes; at most "
            f"{_LONGEST_HEADER} can be read. Hash categories, or use shorter names."
        )
    yield len(text).to_bytes(8, "little")
    yield text
    for array in arrays:
        # Transpose a table stored feature by feature one slot at a time.
        whole = array.ndim < 2 or array.flags.c_contiguous
        for part in [array] if whole else array:
            yield np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
