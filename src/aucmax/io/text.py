"""Text files of any number, size and compression, as blocks of whole lines.

Block boundaries do not depend on how the operating system delivers bytes: a block is
the next 6 MB, cut after the last newline; without a newline, twice as much is read. The
first block of a file has 256 KB. A block of a pipe, which may be slow, has at most half
the bytes that came before it. Reading that resumes at the end of any block therefore
gives the same blocks.

With ``prompt``, the blocks of a pipe are whatever lines have arrived.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.validation import DataWarning
from aucmax.io.batch import START, Position
from aucmax.io.compression import STDIN, Stream, expand, size_of

Bytes = NDArray[np.uint8]

BLOCK = 6 << 20  # bytes of a block
LONGEST = 1 << 30  # bytes of the longest line

_FIRST = 1 << 18  # bytes of the first block
_NEWLINE = ord("\n")
_STEP = 1 << 16  # bytes at the end searched first for a newline; bytes to peek at
_UTF8, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


def empty_input(files: Sequence[str]) -> ValueError:
    """Return the error for files without a line."""
    if list(files) == [STDIN]:
        return ValueError(
            "standard input is empty: no line arrived. Check the command before the "
            "pipe."
        )
    return ValueError(f"{', '.join(files)}: the file is empty")


class Block(NamedTuple):
    """Whole lines of one file; the last line of the file may lack its newline."""

    data: Bytes
    file: str
    start: Position
    end: Position
    done: int  # bytes of ``Text.size`` that have been read


class Text:
    """Lines of files, folders, patterns and standard input, in blocks.

    Parameters
    ----------
    paths : str or sequence of str
        Files; folders (without hidden files); glob patterns such as ``part-*.svm`` or
        ``**/*.svm``; ``-`` for standard input. Folders and patterns are sorted by name.
        Compression (gzip, bzip2, xz, Zstandard) is recognised by content, not by name.

    Attributes
    ----------
    files : list of str
        Files to read, in this order.
    sizes : list of int or None
        Size of each file on disk in bytes; None for a pipe.
    size : int or None
        Total size in bytes; None if there is a pipe.
    """

    def __init__(self, paths: str | os.PathLike[str] | Sequence[str]) -> None:
        self.files = expand(paths)
        self.sizes = [size_of(file) for file in self.files]
        known = [size for size in self.sizes if size is not None]
        self.size = sum(known) if len(known) == len(self.files) else None
        self._pipes: dict[int, Reader] = {}

    def blocks(self, start: Position = START, prompt: bool = False) -> Iterator[Block]:
        """Read blocks from ``start`` on.

        If ``prompt``, yield the lines of a pipe as soon as they arrive, in blocks that
        differ from run to run.
        """
        if start.file >= len(self.files):
            raise ValueError(
                f"cannot resume in file number {start.file + 1}: there are only "
                f"{len(self.files)}, so these are not the files that were read before"
            )
        done = self.before(start.file)
        for number in range(start.file, len(self.files)):
            begin = start if number == start.file else Position(number)
            # The first block is small, so that work can start early.
            with self.reader(number, BLOCK, _FIRST, prompt) as reader:
                reader.skip(begin.offset)
                for data, _ in reader.blocks():
                    lines = int(np.count_nonzero(data == _NEWLINE))
                    line = begin.line + lines + int(data[-1] != _NEWLINE)
                    end = Position(number, reader.offset + data.size, line)
                    file = self.files[number]
                    yield Block(data, file, begin, end, done + reader.done)
                    begin = end
                done += reader.done

    def before(self, number: int) -> int:
        """Return the total size of the files before this one."""
        return sum(size or 0 for size in self.sizes[:number])

    def reader(
        self, number: int, most: int, first: int | None = None, prompt: bool = False
    ) -> "Reader":
        """Open a file for blocks of ``most`` bytes, the first one of ``first``.

        A pipe cannot be opened twice: its reader is kept, with the bytes peeked at,
        until the rows are read.
        """
        reader = self._pipes.get(number)
        if reader is None:
            size = self.sizes[number]
            reader = Reader(self.files[number], size, most, first)
            if size is not None:
                return reader
            self._pipes[number] = reader
        if reader.begun:
            raise ValueError(f"{reader.path} is a pipe and can be read only once")
        reader.most, reader.prompt = most, prompt
        return reader

    def beginning(self) -> bytes:
        """Peek at the first bytes, also of a pipe."""
        with self.reader(0, BLOCK) as reader:
            return reader.beginning()


class Reader:
    """One file in blocks of whole lines; the unused end of a block is read again."""

    def __init__(
        self, file: str, size: int | None, most: int, first: int | None = None
    ) -> None:
        self._stream = Stream(file)
        self._known = size  # on disk
        self._pipe = size is None  # stays open until the rows have been read
        self.most, self._first = most, first or most
        self.prompt = False
        self.offset = 0  # start of the next block
        self.begun = False
        self._rest = np.empty(0, np.uint8)  # read but not used
        self._tried = 0  # bytes of _rest that were in the last block
        self._used = 0  # bytes used of the last block
        self._ended = False

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        if self.begun or not self._pipe:
            self._stream.close()

    @property
    def path(self) -> str:
        """Name of the file in messages."""
        return self._stream.path

    @property
    def done(self) -> int:
        """Number of bytes read."""
        return self._stream.done

    def beginning(self) -> bytes:
        """Peek at the first bytes; of a pipe, those that have arrived."""
        prompt, self.prompt = self.prompt, self._pipe
        data, _ = self._fill(_STEP, whole_lines=False)  # one line is not enough
        self.prompt = prompt
        return data.tobytes()

    def peek(self) -> tuple[Bytes, bool]:
        """Peek at the first item of ``blocks``."""
        lines, final, _ = self._lines(self._size())
        self._tried = 0
        return lines, final

    def skip(self, offset: int) -> None:
        """Move to ``offset`` of the uncompressed text."""
        self.begun = True
        known = min(len(self._rest), max(offset - self.offset, 0))
        self._rest = self._rest[known:]
        self.offset += known
        if offset > self.offset:
            self._stream.skip(offset - self.offset)
            self.offset = offset

    def blocks(self) -> Iterator[tuple[Bytes, bool]]:
        """Yield blocks of lines, and whether they are the last; see :meth:`use`."""
        self.begun = True
        size = self._size()
        while True:
            lines, final, size = self._lines(size)
            if not lines.size:
                self._check_size()
                return
            self._used = lines.size
            yield lines, final
            self.offset += self._used
            self._rest = self._rest[self._used :]
            self._tried -= self._used
            size = self._size() if self._used else self._larger(size)

    def _check_size(self) -> None:
        """Raise an error if the file has shrunk; warn if it has grown."""
        if not self._known or self.done == self._known:  # files in /proc have size 0
            return
        change = (
            f"{self.path} changed while it was read: it had {self._known:,} bytes, "
            f"and {self.done:,} were read"
        )
        if self.done < self._known:
            raise OSError(f"{change}. Run again when it is complete.")
        warnings.warn(
            f"{change}; appended lines are included.", DataWarning, stacklevel=2
        )

    def use(self, size: int) -> int:
        """Mark only the first ``size`` bytes of the last block as used.

        Return their number, at most the size of the block. The rest is read again.
        """
        self._used = min(size, self._used)
        return self._used

    def _lines(self, size: int) -> tuple[Bytes, bool, int]:
        """Return lines, whether they are the last, and the number of bytes read."""
        while True:
            data, final = self._fill(size)
            self._tried = len(data)
            end = len(data) if final else _after_last_line(data)
            if end or final:
                return self._without_mark(data[:end]), final, size
            size = self._larger(size)

    def _without_mark(self, data: Bytes) -> Bytes:
        """Remove the byte order mark from the first block."""
        mark = data[:3].tobytes() if self.offset == 0 else b""
        if mark.startswith(_UTF16):
            raise ValueError(
                f"{self.path}: UTF-16 text is not supported. Convert it to UTF-8: "
                "iconv -f UTF-16 -t UTF-8"
            )
        if mark != _UTF8:
            return data
        self.offset, self._rest = 3, self._rest[3:]
        self._tried -= 3
        return data[3:]

    def _fill(self, size: int, whole_lines: bool = True) -> tuple[Bytes, bool]:
        """Return up to ``size`` bytes, and whether the file ends before that."""
        known = len(self._rest)
        if known >= size:
            return self._rest[:size], False
        if self.prompt and known > self._tried:
            return self._rest, False
        buffer = np.empty(size, np.uint8)
        buffer[:known] = self._rest
        view = memoryview(buffer.data)[known:]
        if self.prompt:
            more, self._ended = self._stream.fill_promptly(view, whole_lines)
        else:
            more = self._stream.fill(view)
            self._ended = more < len(view)
        self._rest = buffer[: known + more]
        return self._rest, self._ended

    def _size(self) -> int:
        """Return the number of bytes to read for the next block."""
        if self._pipe:
            return min(self.most, max(_FIRST, self.offset // 2))
        return self.most if self.offset else min(self.most, self._first)

    def _larger(self, size: int) -> int:
        """Return the number of bytes to read if ``size`` bytes have no newline."""
        if self.prompt and not self._ended and len(self._rest) < size:
            return size  # wait for more bytes
        if 2 * size > LONGEST:
            raise ValueError(
                f"{self.path}: the line that begins at byte {self.offset} of the text "
                f"is longer than {size} bytes. Is this a text file?"
            )
        return 2 * size


def _after_last_line(data: Bytes) -> int:
    """Return the index after the last newline; 0 if there is none."""
    for tail in (data[-_STEP:], data):
        found = tail.tobytes().rfind(b"\n")
        if found >= 0:
            return len(data) - len(tail) + found + 1
    return 0
