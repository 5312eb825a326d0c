"""Files, folders, patterns and standard input as decompressed byte streams."""

import bz2
import glob
import lzma
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple

STDIN = "-"

_SOON = 0.2  # seconds that lines wait for others if they are wanted promptly …
_GAP = 0.002  # … if these come one right after the other
_NEWLINE = ord("\n")
_STEP = 1 << 16  # bytes at a time where the whole would be too much


def expand(paths: str | os.PathLike[str] | Sequence[str]) -> list[str]:
    """Expand names, folders and patterns to files."""
    if isinstance(paths, str | os.PathLike):
        paths = [os.fspath(paths)]
    files: list[str] = []
    for path in map(os.fspath, paths):
        if path == STDIN:
            files.append(path)
        elif os.path.isdir(path):
            inside = [
                entry.path
                for entry in os.scandir(path)
                if entry.is_file() and not entry.name.startswith(".")
            ]
            if not inside:
                raise FileNotFoundError(f"{path}: the folder has no files")
            files += sorted(inside)
        elif os.path.exists(path) or not glob.has_magic(path):
            files.append(path)
        else:
            names = glob.glob(path, recursive=True)
            found = [name for name in names if not os.path.isdir(name)]
            if not found:
                raise FileNotFoundError(f"{path}: no file matches this pattern")
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
        plain = path.isidentifier()  # perhaps the name of a set was meant
        hint = ", and no named data set either: see aucmax datasets" if plain else ""
        raise FileNotFoundError(f"{path}: no such file{hint}") from None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class _Plain:
    """An uncompressed file."""

    def __init__(self, path: str) -> None:
        self.path = "standard input" if path == STDIN else path
        self.done = 0
        self._head = b""
        self._file: Any
        if path == STDIN:
            if sys.stdin is None:
                raise OSError("standard input (-) is closed: give a file or a pipe")
            # Not buffered: a thread that waits in a buffered file holds a lock, without
            # which the interpreter cannot end.
            self._file = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        else:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115
        head = bytearray(_LONGEST_MAGIC)
        size = _fill(self, memoryview(head))
        self._head = bytes(head[:size])
        self.done = 0

    @property
    def head(self) -> bytes:
        """The first bytes of the file."""
        return self._head

    def readinto(self, view: memoryview) -> int:
        if self._head:
            size = min(len(view), len(self._head))
            view[:size] = self._head[:size]
            self._head = self._head[size:]
        else:
            try:
                size = self._file.readinto(view)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self.path) from error
        self.done += size
        return size

    def ready(self, seconds: float) -> bool:
        """Wait that long at most; return whether there is more, or an end."""
        if self._head:
            return True
        try:
            return bool(select.select([self._file], [], [], seconds)[0])
        except (OSError, TypeError, ValueError):  # nobody can tell
            return True

    def skip(self, offset: int) -> None:
        if self.path != "standard input" and self._file.seekable():
            size = os.fstat(self._file.fileno()).st_size
            if offset > size:
                raise _shorter(self.path, offset, size)
            self._head, self.done = b"", offset
            self._file.seek(offset)
        else:
            _discard(self, offset)

    def close(self) -> None:
        if self.path != "standard input":
            self._file.close()


class _Unpacked:
    """Decompressed content of a file with one or more members."""

    def __init__(self, packed: _Plain, packing: "_Packing") -> None:
        self.path = packed.path
        self._packed, self._packing = packed, packing
        self._decoder = packing.decoder(self.path)
        self._ready = memoryview(b"")
        self._buffer = memoryview(bytearray(packing.step))

    @property
    def done(self) -> int:
        return self._packed.done

    def readinto(self, view: memoryview) -> int:
        while not self._ready:
            if self._decoder.eof:
                rest = self._decoder.unused_data
                while not rest.strip(b"\0"):  # members may be followed by padding
                    rest = self._more()
                    if not rest:
                        return 0
                self._decoder = self._packing.decoder(self.path)
                self._decode(rest.lstrip(b"\0"))
            elif self._decoder.needs_input:
                data = self._more()
                if not data:
                    raise OSError(
                        f"{self.path}: the file ends at byte {self.done}, within its "
                        f"{self._packing.name} data: it is incomplete. Copy or "
                        "download it again"
                    )
                self._decode(data)
            else:
                self._decode(b"")
        size = min(len(view), len(self._ready))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def ready(self, seconds: float) -> bool:
        return bool(self._ready) or self._packed.ready(seconds)

    def _more(self) -> bytes:
        return bytes(self._buffer[: self._packed.readinto(self._buffer)])

    def _decode(self, data: bytes) -> None:
        try:
            self._ready = memoryview(self._decoder.decompress(data, 1 << 20))
        except self._packing.errors() as error:
            raise OSError(
                f"{self.path}: the {self._packing.name} data are corrupted near byte "
                f"{self.done} ({error}). Copy or download the file again"
            ) from error

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

    If ``prompt``, do not wait for long once something has arrived, and hardly at all if
    that is ``whole_lines``.
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
    scratch = memoryview(bytearray(min(offset, 16 * _STEP)))
    left = offset
    while left:
        size = stream.readinto(scratch[: min(left, len(scratch))])
        if not size:
            raise _shorter(stream.path, offset, offset - left)
        left -= size


def _shorter(path: str, offset: int, size: int) -> ValueError:
    return ValueError(
        f"{path}: cannot resume at byte {offset} of the text, which has only "
        f"{size}: this is not the file that was read before"
    )


class _Gzip:
    """zlib's decoder with the interface of the other ones."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        result = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self.needs_input = not self._inner.unconsumed_tail and len(result) < max_length
        return result


class _Zstandard:
    """The decoder of the package ``zstandard``, which knows no ``max_length``."""

    needs_input = True

    def __init__(self, module: Any) -> None:
        self._inner = module.ZstdDecompressor().decompressobj()

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return bytes(self._inner.decompress(data))


def _zstd(path: str) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        import zstandard

        return _Zstandard(zstandard)
    return zstd.ZstdDecompressor()


def _zstd_errors() -> Any:
    names = {"compression.zstd", "zstandard"} & sys.modules.keys()
    return tuple(sys.modules[name].ZstdError for name in names)


class _Packing(NamedTuple):
    name: str
    ending: str
    magic: tuple[bytes, ...]
    decoder: Callable[[str], Any]
    errors: Callable[[], Any]
    # Bytes that are unpacked at once; where the result has no limit they are few.
    step: int = _STEP


_PACKINGS = (
    _Packing(
        "gzip", ".gz", (b"\x1f\x8b\x08",), lambda path: _Gzip(), lambda: zlib.error
    ),
    _Packing(
        "bzip2",
        ".bz2",
        tuple(
            b"BZh%d" % level + block
            for level in range(1, 10)
            for block in (b"1AY&SY", b"\x17rE8P\x90")
        ),
        lambda path: bz2.BZ2Decompressor(),
        lambda: (OSError, ValueError),
    ),
    _Packing(
        "xz",
        ".xz",
        (b"\xfd7zXZ\0",),
        lambda path: lzma.LZMADecompressor(),
        lambda: lzma.LZMAError,
    ),
    _Packing(
        "Zstandard",
        ".zst",
        (b"\x28\xb5\x2f\xfd", *(bytes([k]) + b"\x2a\x4d\x18" for k in range(80, 96))),
        _zstd,
        _zstd_errors,
        1 << 14,
    ),
)
_LONGEST_MAGIC = max(len(magic) for packing in _PACKINGS for magic in packing.magic)


def open_stream(path: str) -> Stream:
    """Open a file, decompressing it if necessary."""
    plain = _Plain(path)
    try:
        for packing in _PACKINGS:
            if plain.head.startswith(packing.magic):
                return _Unpacked(plain, packing)
        for packing in _PACKINGS:
            if path.endswith(packing.ending):
                raise OSError(
                    f"{path}: no valid {packing.name} data, it begins with "
                    f"{plain.head[:8]!r}; if it is not compressed, its name must not "
                    f"end in {packing.ending}"
                )
    except BaseException:
        plain.close()
        raise
    return plain


def is_packed(path: str) -> bool:
    """Return whether a file is compressed."""
    stream = open_stream(path)
    stream.close()
    return isinstance(stream, _Unpacked)
