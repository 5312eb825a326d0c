"""Files, folders, patterns and standard input as decompressed byte streams."""

import bz2
import glob
import lzma
import os
import re
import select
import stat
import sys
import zlib
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple

import zstandard

STDIN = "-"

_SOON = 0.2  # seconds that promptly wanted lines wait for more bytes …
_GAP = 0.002  # … and after a newline
_NEWLINE = ord("\n")
_STEP = 1 << 14  # compressed bytes per step
_MAX_OUTPUT = 1 << 20  # decompressed bytes per step, where the decoder has a limit


def expand(paths: str | os.PathLike[str] | Sequence[str]) -> list[str]:
    """Expand names, folders and patterns to files."""
    if isinstance(paths, str | os.PathLike):
        paths = [os.fspath(paths)]
    files: list[str] = []
    for path in map(os.fspath, paths):
        if os.path.isdir(path):
            found = [
                entry.path
                for entry in os.scandir(path)
                if entry.is_file() and not entry.name.startswith(".")
            ]
            problem = "the folder has no files"
        elif path == STDIN or os.path.exists(path) or not glob.has_magic(path):
            found, problem = [path], ""
        else:
            names = glob.glob(path, recursive=True)
            found = [name for name in names if not os.path.isdir(name)]
            problem = "no file matches this pattern"
        if not found:
            raise FileNotFoundError(f"{path}: {problem}")
        files += sorted(found)
    if not files:
        raise ValueError("no files to read: give at least one path")
    if files.count(STDIN) > 1:
        raise ValueError("standard input (-) can be read only once")
    return files


def size_of(path: str) -> int | None:
    """Return the size of a file in bytes; None if it is a pipe."""
    if path == STDIN:
        return None
    try:
        status = os.stat(path)
    except FileNotFoundError:
        is_word = path.isidentifier()  # perhaps a misspelt data set
        hint = ", and no named data set either: see aucmax datasets" if is_word else ""
        raise FileNotFoundError(f"{path}: no such file{hint}") from None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class _Plain:
    """Uncompressed file, or the compressed bytes below :class:`_Unpacked`."""

    def __init__(self, path: str) -> None:
        self.path = "standard input" if path == STDIN else path
        self.done = 0
        self._file: Any
        if path == STDIN:
            if sys.stdin is None:
                raise OSError("standard input (-) is closed: give a file or a pipe")
            # A thread that waits in a buffered file holds a lock, without which the
            # interpreter cannot exit.
            self._file = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        else:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115
        self.head = b""  # first bytes, not yet handed out
        head = bytearray(_MAGIC_BYTES)
        self.head = bytes(head[: _fill(self, memoryview(head))])
        self.done = 0

    def readinto(self, view: memoryview) -> int:
        if self.head:
            size = min(len(view), len(self.head))
            view[:size] = self.head[:size]
            self.head = self.head[size:]
        else:
            try:
                size = self._file.readinto(view)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self.path) from error
        self.done += size
        return size

    def ready(self, seconds: float) -> bool:
        """Wait for bytes or the end; return False if there is none in this time."""
        if self.head:
            return True
        try:
            return bool(select.select([self._file], [], [], seconds)[0])
        except (OSError, TypeError, ValueError):  # select does not support this file
            return True

    def skip(self, offset: int) -> None:
        if self.path != "standard input" and self._file.seekable():
            size = os.fstat(self._file.fileno()).st_size
            if offset > size:
                raise _too_short(self.path, offset, size)
            self.head, self.done = b"", offset
            self._file.seek(offset)
        else:
            _discard(self, offset)

    def close(self) -> None:
        if self.path != "standard input":
            self._file.close()


class _Unpacked:
    """Decompressed content of a file with one or more members.

    The readers of the standard library ignore what follows the first member if it is
    damaged or comes after padding, so members are decoded one by one.
    """

    def __init__(self, packed: _Plain, packing: "_Packing") -> None:
        self.path = packed.path
        self._packed, self._packing = packed, packing
        self._decoder = packing.decoder()
        self._output = memoryview(b"")  # not yet handed out
        self._buffer = memoryview(bytearray(_STEP))

    @property
    def done(self) -> int:
        return self._packed.done

    def readinto(self, view: memoryview) -> int:
        while not self._output:
            data = b""
            if self._decoder.eof:
                data = self._decoder.unused_data.lstrip(b"\0")  # padding
                while not data:
                    data = self._read()
                    if not data:
                        return 0
                    data = data.lstrip(b"\0")
                self._decoder = self._packing.decoder()
            elif self._decoder.needs_input:
                data = self._read()
                if not data:
                    raise OSError(
                        f"{self.path}: the file ends at byte {self.done}, within its "
                        f"{self._packing.name} data: it is incomplete. Copy or "
                        "download it again"
                    )
            try:
                output = self._decoder.decompress(data, _MAX_OUTPUT)
            except _ERRORS as error:
                raise OSError(
                    f"{self.path}: the {self._packing.name} data are corrupted near "
                    f"byte {self.done} ({error}). Copy or download the file again"
                ) from error
            self._output = memoryview(output)
        size = min(len(view), len(self._output))
        view[:size] = self._output[:size]
        self._output = self._output[size:]
        return size

    def ready(self, seconds: float) -> bool:
        return bool(self._output) or self._packed.ready(seconds)

    def _read(self) -> bytes:
        return bytes(self._buffer[: self._packed.readinto(self._buffer)])

    def skip(self, offset: int) -> None:
        _discard(self, offset)

    def close(self) -> None:
        self._packed.close()


Stream = _Plain | _Unpacked


def _fill(stream: Stream, view: memoryview) -> int:
    """Read until the view is full or the file ends; return the number of bytes."""
    filled = 0
    while filled < len(view):
        size = stream.readinto(view[filled:])
        if not size:
            break
        filled += size
    return filled


def read_into(
    stream: Stream, view: memoryview, prompt: bool, whole_lines: bool = True
) -> tuple[int, bool]:
    """Fill the view; return the number of bytes, and whether the file ended.

    If ``prompt``, wait only briefly once bytes have arrived, and hardly at all if they
    are ``whole_lines``.
    """
    if not prompt:
        size = _fill(stream, view)
        return size, size < len(view)
    filled, until = 0, 0.0
    while filled < len(view):
        left = until - monotonic()
        if filled and whole_lines and view[filled - 1] == _NEWLINE:
            left = min(left, _GAP)
        if filled and (left <= 0.0 or not stream.ready(left)):
            break
        size = stream.readinto(view[filled:])
        if not size:
            return filled, True
        if not filled:
            until = monotonic() + _SOON
        filled += size
    return filled, False


def _discard(stream: Stream, offset: int) -> None:
    scratch = memoryview(bytearray(min(offset, _MAX_OUTPUT)))
    left = offset
    while left:
        size = stream.readinto(scratch[: min(left, len(scratch))])
        if not size:
            raise _too_short(stream.path, offset, offset - left)
        left -= size


def _too_short(path: str, offset: int, size: int) -> ValueError:
    return ValueError(
        f"{path}: cannot resume at byte {offset} of the text, which has only "
        f"{size}: this is not the file that was read before"
    )


class _Unlimited:
    """Decoder without ``max_length``, with the interface of ``bz2`` and ``lzma``."""

    needs_input = True

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    @property
    def eof(self) -> bool:
        return bool(self._decoder.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._decoder.unused_data)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return bytes(self._decoder.decompress(data))


class _Packing(NamedTuple):
    """A compression format."""

    name: str
    ending: str
    magic: bytes  # pattern of the first bytes
    decoder: Callable[[], Any]


_PACKINGS = (
    _Packing(
        "gzip",
        ".gz",
        rb"\x1f\x8b\x08",
        lambda: _Unlimited(zlib.decompressobj(16 + zlib.MAX_WBITS)),
    ),
    _Packing("bzip2", ".bz2", rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", bz2.BZ2Decompressor),
    _Packing("xz", ".xz", rb"\xfd7zXZ\0", lzma.LZMADecompressor),
    _Packing(
        "Zstandard",
        ".zst",
        rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18",
        lambda: _Unlimited(zstandard.ZstdDecompressor().decompressobj()),
    ),
)
_MAGIC_BYTES = 10  # of bzip2, the longest
_ERRORS = (OSError, ValueError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


def open_stream(path: str) -> Stream:
    """Open a file, decompressing it if necessary."""
    plain = _Plain(path)
    for packing in _PACKINGS:
        if re.match(packing.magic, plain.head):
            return _Unpacked(plain, packing)
    for packing in _PACKINGS:
        if path.endswith(packing.ending):
            plain.close()
            raise OSError(
                f"{path}: no valid {packing.name} data, it begins with "
                f"{plain.head[:8]!r}; if it is not compressed, its name must not end "
                f"in {packing.ending}"
            )
    return plain


def is_packed(path: str) -> bool:
    """Return whether a file is compressed."""
    stream = open_stream(path)
    stream.close()
    return isinstance(stream, _Unpacked)
