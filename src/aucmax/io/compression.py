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
        raise FileNotFoundError(f"{path}: no such file") from None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


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


def _gzip() -> _Unlimited:
    return _Unlimited(zlib.decompressobj(16 + zlib.MAX_WBITS))


def _zstd() -> _Unlimited:
    return _Unlimited(zstandard.ZstdDecompressor().decompressobj())


class _Format(NamedTuple):
    """A compression format."""

    name: str
    ending: str
    magic: bytes  # pattern of the first bytes
    decoder: Callable[[], Any]


_BZIP2 = rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"
_ZSTD = rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"
_FORMATS = (
    _Format("gzip", ".gz", rb"\x1f\x8b\x08", _gzip),
    _Format("bzip2", ".bz2", _BZIP2, bz2.BZ2Decompressor),
    _Format("xz", ".xz", rb"\xfd7zXZ\0", lzma.LZMADecompressor),
    _Format("Zstandard", ".zst", _ZSTD, _zstd),
)
_MAGIC_BYTES = 10  # of bzip2, the longest
_ERRORS = (OSError, ValueError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


class Stream:
    """Bytes of a file or of standard input, decompressed if necessary.

    The members of a compressed file are decoded one by one: the file objects of the
    standard library silently ignore what follows the first member if it is damaged or
    comes after padding.

    Attributes
    ----------
    path : str
        Name of the file in messages.
    done : int
        Bytes read, as they are on disk.
    format : _Format or None
        Compression format; None for plain files.
    """

    def __init__(self, path: str) -> None:
        self._is_file = path != STDIN
        self.path = path if self._is_file else "standard input"
        self._file: Any
        if not self._is_file:
            if sys.stdin is None:
                raise OSError("standard input (-) is closed: give a file or a pipe")
            # A thread that waits in a buffered file holds a lock, without which the
            # interpreter cannot exit.
            self._file = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        else:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115
        self.done = 0
        self.format: _Format | None = None
        self._input = b""  # read to recognise the format, not yet used
        self._output = memoryview(b"")  # decompressed, not yet handed out
        head = bytearray(_MAGIC_BYTES)
        self._input = bytes(head[: self.fill(memoryview(head))])
        self.done = 0
        self.format = self._recognise()
        self._decoder: Any = self.format and self.format.decoder()

    def _recognise(self) -> _Format | None:
        for known in _FORMATS:
            if re.match(known.magic, self._input):
                return known
        for known in _FORMATS:
            if self.path.endswith(known.ending):
                self.close()
                raise OSError(
                    f"{self.path}: no valid {known.name} data, it begins with "
                    f"{self._input[:8]!r}; if it is not compressed, its name must not "
                    f"end in {known.ending}"
                )
        return None

    def fill(self, view: memoryview) -> int:
        """Read until the view is full or the file ends; return the number of bytes."""
        filled = 0
        while filled < len(view):
            size = self._readinto(view[filled:])
            if not size:
                break
            filled += size
        return filled

    def fill_promptly(self, view: memoryview, whole_lines: bool) -> tuple[int, bool]:
        """Read the bytes that arrive soon; return their number, and whether all ended.

        Wait only briefly once bytes have arrived, and hardly at all if they are
        ``whole_lines``.
        """
        filled, until = 0, 0.0
        while filled < len(view):
            left = until - monotonic()
            if filled and whole_lines and view[filled - 1] == _NEWLINE:
                left = min(left, _GAP)
            if filled and (left <= 0.0 or not self._ready(left)):
                break
            size = self._readinto(view[filled:])
            if not size:
                return filled, True
            if not filled:
                until = monotonic() + _SOON
            filled += size
        return filled, False

    def skip(self, offset: int) -> None:
        """Skip ``offset`` bytes of the decompressed content."""
        if self.format is None and self._is_file and self._file.seekable():
            skipped = min(offset, os.fstat(self._file.fileno()).st_size)
            self._input, self.done = b"", skipped
            self._file.seek(skipped)
        else:
            skipped, scratch = 0, memoryview(bytearray(_MAX_OUTPUT))
            while skipped < offset:
                size = self._readinto(scratch[: offset - skipped])
                if not size:
                    break
                skipped += size
        if skipped < offset:
            raise ValueError(
                f"{self.path}: cannot resume at byte {offset} of the text, which has "
                f"only {skipped}: this is not the file that was read before"
            )

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self._is_file:
            self._file.close()

    def _readinto(self, view: memoryview) -> int:
        """Read some bytes of the content; return their number, 0 at the end."""
        if self.format is None:
            return self._read_file(view)
        while not self._output:
            data = b""
            if self._decoder.eof:
                data = self._decoder.unused_data.lstrip(b"\0")  # padding
                while not data:
                    data = self._read_step()
                    if not data:
                        return 0
                    data = data.lstrip(b"\0")
                self._decoder = self.format.decoder()
            elif self._decoder.needs_input:
                data = self._read_step()
                if not data:
                    raise OSError(
                        f"{self.path}: the file ends at byte {self.done}, within its "
                        f"{self.format.name} data: it is incomplete. Copy or download "
                        "it again"
                    )
            try:
                output = self._decoder.decompress(data, _MAX_OUTPUT)
            except _ERRORS as error:
                raise OSError(
                    f"{self.path}: the {self.format.name} data are corrupted near byte "
                    f"{self.done} ({error}). Copy or download the file again"
                ) from error
            self._output = memoryview(output)
        size = min(len(view), len(self._output))
        view[:size] = self._output[:size]
        self._output = self._output[size:]
        return size

    def _read_step(self) -> bytes:
        buffer = bytearray(_STEP)
        return bytes(buffer[: self._read_file(memoryview(buffer))])

    def _read_file(self, view: memoryview) -> int:
        """Read some bytes as they are on disk."""
        if self._input:
            size = min(len(view), len(self._input))
            view[:size] = self._input[:size]
            self._input = self._input[size:]
        else:
            try:
                size = self._file.readinto(view)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self.path) from error
        self.done += size
        return size

    def _ready(self, seconds: float) -> bool:
        """Wait for bytes or the end; return False if there is none in this time."""
        if self._output or self._input:
            return True
        try:
            return bool(select.select([self._file], [], [], seconds)[0])
        except (OSError, TypeError, ValueError):  # select does not support this file
            return True


def is_packed(path: str) -> bool:
    """Return whether a file is compressed."""
    stream = Stream(path)
    stream.close()
    return stream.format is not None
