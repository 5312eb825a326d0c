"""Text files of any number, size and packing, as blocks of whole lines.

Blocks do not depend on how the system hands out bytes: from where one begins, the next
6 MB are read, and cut after the last end of a line; if there is none, twice as much is
read. The first block of a file is of 256 KB, and of a pipe, which may be slow, the next
ones are half of what came before. So reading that goes on at any block's end gives the
blocks it would have given.

Who wants lines as soon as they are there has to ask for it, and gets other blocks each
time.
"""

import bz2
import glob
import lzma
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import Empty, Queue
from threading import Event, Thread
from time import monotonic
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from aucmax.data.chunk import START, Position
from aucmax.data.masks import count

T = TypeVar("T")

BLOCK = 6 << 20  # bytes: more are faster, and take memory
LONGEST = 1 << 30  # a line that is longer is none
STDIN = "-"

_FIRST = 1 << 18  # bytes of the first block
_SOON = 0.2  # seconds that lines wait for others, for who wants them soon

_NEWLINE = ord("\n")
_STEP = 1 << 16  # bytes at a time where the whole would be too much
_UTF8, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


class Block(NamedTuple):
    """Whole lines of one file; only the last one of the file may lack its end."""

    data: NDArray[np.uint8]
    file: str
    start: Position
    after: Position
    done: int  # bytes of ``Text.size`` that have been read


class Text:
    """The lines of files, folders, patterns and standard input, in blocks.

    Parameters
    ----------
    paths : str or sequence of str
        Files; folders, for the files in them whose names do not begin with a dot;
        patterns such as ``part-*.svm`` or ``**/*.svm``; ``-`` for standard input. What
        is in a folder or fits a pattern is taken in the order of the names. Files may
        be packed (gzip, bzip2, xz, Zstandard): what is in a file counts, not its name.
    prompt : bool, default=False
        Whether the lines of a pipe are given as soon as they are there, in blocks that
        nobody can foresee.

    Attributes
    ----------
    files : list of str
        What will be read, in this order.
    size : int or None
        Bytes of all files together, as they are on disk; None if nobody knows.
    """

    def __init__(
        self, paths: str | os.PathLike[str] | Sequence[str], prompt: bool = False
    ) -> None:
        self.files = expand(paths)
        self._prompt = prompt
        self._sizes = [_size(file) for file in self.files]
        known = [size for size in self._sizes if size is not None]
        self.size = sum(known) if len(known) == len(self.files) else None

    def blocks(self, start: Position = START) -> Iterator[Block]:
        """Read on from ``start``."""
        if start.file >= len(self.files):
            raise ValueError(
                f"reading was to go on in file number {start.file + 1}, but there are "
                f"only {len(self.files)}: these are not the files that were read before"
            )
        done = sum(size or 0 for size in self._sizes[: start.file])
        for number in range(start.file, len(self.files)):
            begin = start if number == start.file else Position(number)
            file = self.files[number]
            stream = _open(file)
            try:
                stream.skip(begin.offset)
                pipe = self._sizes[number] is None
                prompt = pipe and self._prompt
                for data, offset in _blocks(stream, begin.offset, pipe, prompt):
                    lines = count(data, _NEWLINE) + int(data[-1] != _NEWLINE)
                    after = Position(number, offset, begin.line + lines)
                    yield Block(data, file, begin, after, done + stream.done)
                    begin = after
                done += stream.done
            finally:
                stream.close()


_seen: list[bytes] = []  # of standard input, by ``beginning``


def beginning(path: str) -> bytes:
    """Return some of the first bytes of a text; none are lost, not even of a pipe."""
    some = bytearray(_STEP)
    if path != STDIN:
        stream = _open(path)
        try:
            return bytes(some[: _fill(stream, memoryview(some))])
        finally:
            stream.close()
    plain = _Plain(path)
    size = plain.readinto(memoryview(some))  # what has been seen, or is there now
    size += plain.readinto(memoryview(some)[size:])
    seen = bytes(some[:size])
    _seen.append(seen)
    for packing in _PACKINGS:
        if seen.startswith(packing.magic):
            return bytes(packing.decoder(path).decompress(seen, _STEP))
    return seen


def ahead(items: Iterable[T], depth: int = 1) -> Iterator[T]:
    """Iterate in a thread of its own, which is at most ``depth`` items ahead.

    What ``items`` raises is raised here. Closing this iterator stops the thread, which
    then closes ``items``.
    """
    for item in ticking(items, None, depth):
        yield cast(T, item)


def ticking(
    items: Iterable[T], seconds: float | None, depth: int = 1
) -> Iterator[T | None]:
    """Iterate as :func:`ahead` does; give None whenever nothing has come for long."""
    results: Queue[tuple[bool, Any]] = Queue(depth)
    stopped = Event()
    iterator = iter(items)

    def work() -> None:
        try:
            for item in iterator:
                results.put((True, item))
                if stopped.is_set():
                    return
            last = None
        except BaseException as error:
            last = error
        finally:
            getattr(iterator, "close", lambda: None)()
        results.put((False, last))

    thread = Thread(target=work, name="aucmax-ahead", daemon=True)
    thread.start()
    try:
        while True:
            try:
                more, item = results.get(timeout=seconds)
            except Empty:
                yield None
                continue
            if not more:
                break
            yield item
            del item  # it may be large, and the consumer may be done with it
        if item is not None:
            raise item
    finally:
        stopped.set()
        while not results.empty():  # a thread that waits for room finds it
            results.get_nowait()
        thread.join(timeout=1.0)  # not for ever: it may be waiting for a pipe


# Files


def expand(paths: str | os.PathLike[str] | Sequence[str]) -> list[str]:
    """Return the files that are meant by names, folders and globs."""
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
                raise FileNotFoundError(f"{path}: this folder has no files in it")
            files += sorted(inside)
        elif os.path.exists(path) or not glob.has_magic(path):
            files.append(path)
        else:
            names = glob.glob(path, recursive=True)
            found = [name for name in names if not os.path.isdir(name)]
            if not found:
                raise FileNotFoundError(f"{path}: no file has such a name")
            files += sorted(found)
    if not files:
        raise ValueError("no files to read: give at least one path")
    if files.count(STDIN) > 1:
        raise ValueError("standard input (-) can be read once only")
    return files


def _size(path: str) -> int | None:
    if path == STDIN:
        return None
    try:
        status = os.stat(path)
    except FileNotFoundError:
        plain = path.isidentifier()  # perhaps the name of a set was meant
        hint = ", and no set either: see aucmax datasets" if plain else ""
        raise FileNotFoundError(f"{path}: there is no such file{hint}") from None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class _Plain:
    """A file as it is; what has been looked at beforehand comes first."""

    def __init__(self, path: str) -> None:
        self.path = "standard input" if path == STDIN else path
        self.done = 0
        self._head = b""
        self._file: Any
        if path == STDIN:
            # Not buffered: a thread that waits in a buffered file holds a lock, without
            # which the interpreter cannot end.
            self._file = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
            self._head = _seen.pop() if _seen else b""
        else:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115
        head = bytearray(_LONGEST_MAGIC)
        size = _fill(self, memoryview(head))
        self._head = bytes(head[:size]) + self._head
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
    """What a packed file contains: one member or several, one after the other."""

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
                        f"{self._packing.name} data: it is not complete. Copy or fetch "
                        "it again"
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
                f"{self.path}: the {self._packing.name} data are damaged at about byte "
                f"{self.done} ({error}). Copy or fetch the file again"
            ) from error

    def skip(self, offset: int) -> None:
        _discard(self, offset)

    def close(self) -> None:
        self._packed.close()


_Stream = _Plain | _Unpacked


def _fill(stream: _Stream, view: memoryview) -> int:
    """Read until the view is full or the file ends; return how much it was."""
    filled = 0
    while filled < len(view):
        size = stream.readinto(view[filled:])
        if not size:
            break
        filled += size
    return filled


def arriving(stream: _Stream, view: memoryview, prompt: bool) -> tuple[int, bool]:
    """Read as :func:`_fill` does; return how much it was, and whether the file ends.

    If ``prompt``, do not wait for long when there is something.
    """
    if not prompt:
        size = _fill(stream, view)
        return size, size < len(view)
    filled, until = 0, 0.0
    while filled < len(view):
        left = until - monotonic()
        if filled and (left <= 0.0 or not stream.ready(left)):
            break
        size = stream.readinto(view[filled:])
        if not size:
            return filled, True
        if not filled:
            until = monotonic() + _SOON
        filled += size
    return filled, False


def _discard(stream: _Stream, offset: int) -> None:
    scratch = memoryview(bytearray(min(offset, 16 * _STEP)))
    left = offset
    while left:
        size = stream.readinto(scratch[: min(left, len(scratch))])
        if not size:
            raise _shorter(stream.path, offset, offset - left)
        left -= size


def _shorter(path: str, offset: int, size: int) -> ValueError:
    return ValueError(
        f"{path}: reading was to go on at byte {offset} of the text, which has only "
        f"{size}: this is not the file that was read before"
    )


# Packings


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
        try:
            import zstandard
        except ImportError:
            raise ImportError(
                f"{path} is packed with Zstandard, and nothing here can unpack it: "
                "pip install 'aucmax[data]'"
            ) from None
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


def _open(path: str) -> _Stream:
    plain = _Plain(path)
    try:
        for packing in _PACKINGS:
            if plain.head.startswith(packing.magic):
                return _Unpacked(plain, packing)
        for packing in _PACKINGS:
            if path.endswith(packing.ending):
                raise OSError(
                    f"{path}: this is no {packing.name} file, it begins with "
                    f"{plain.head[:8]!r}; if it is not packed, its name must not end "
                    f"in {packing.ending}"
                )
    except BaseException:
        plain.close()
        raise
    return plain


# Lines


def block_size(offset: int, most: int, pipe: bool) -> int:
    """Return how many bytes to read from ``offset`` on: of a pipe, fewer at first."""
    return min(most, max(_FIRST, offset // 2)) if pipe else most


def _blocks(
    stream: _Stream, offset: int, pipe: bool, prompt: bool
) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Yield lines, and how many bytes of the file are done with them."""
    rest = np.empty(0, np.uint8)
    while True:
        # Who waits for the first lines of a file has nothing else to do.
        size = block_size(offset, BLOCK, pipe or offset == 0)
        data, rest = _whole_lines(stream, rest, offset, size, prompt)
        if not data.size:
            return
        if offset == 0:
            mark = data[:3].tobytes()
            if mark.startswith(_UTF16):
                raise ValueError(
                    f"{stream.path}: this text is UTF-16, which is not read; make it "
                    "UTF-8, such as by: iconv -f UTF-16 -t UTF-8"
                )
            if mark == _UTF8:
                offset, data = 3, data[3:]
        offset += data.size
        if data.size:
            yield data, offset


def _whole_lines(
    stream: _Stream, rest: NDArray[np.uint8], offset: int, size: int, prompt: bool
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the next block, and what has been read beyond it."""
    searched = 0
    buffer = np.empty(size, np.uint8)
    while True:
        known = min(rest.size, size - searched)
        buffer[searched : searched + known] = rest[:known]
        rest = rest[known:]
        filled = searched + known
        more, ended = arriving(stream, memoryview(buffer.data)[filled:], prompt)
        filled += more
        if ended:
            return buffer[:filled], rest
        cut = _after_last_line(buffer, searched, filled)
        if cut > searched:
            return buffer[:cut], np.concatenate([buffer[cut:filled], rest])
        if filled < size:  # not a whole line yet
            searched = filled
            continue
        if 2 * size > LONGEST:
            raise ValueError(
                f"{stream.path}: the line that begins at byte {offset} of the text is "
                f"longer than {size} bytes: are these text data?"
            )
        size, searched = 2 * size, size
        buffer = np.concatenate([buffer, np.empty(size - searched, np.uint8)])


def _after_last_line(data: NDArray[np.uint8], start: int, stop: int) -> int:
    """Return the place after the last newline from ``start`` on, else ``start``."""
    while stop > start:
        step = max(stop - _STEP, start)
        found = data[step:stop].tobytes().rfind(b"\n")
        if found >= 0:
            return step + found + 1
        stop = step
    return start
