"""Text files of any number, size and compression, as blocks of whole lines.

Blocks do not depend on how the system hands out bytes: from where one begins, the next
6 MB are read, and cut after the last end of a line; if there is none, twice as much is
read. The first block of a file has 256 KB; those of a pipe, which may be slow, are half
of all that came before. Reading that resumes at the end of any block so gives the
blocks it would have given.

A caller that would rather have lines as soon as they arrive says so by ``prompt``; its
blocks are then whatever has arrived.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.validation import DataWarning
from aucmax.io.chunk import START, Position
from aucmax.io.compression import expand, open_stream, read_into, size_of
from aucmax.io.masks import count

Bytes = NDArray[np.uint8]

BLOCK = 6 << 20  # bytes: more are faster, and take memory
LONGEST = 1 << 30  # bytes of a line: longer ones are refused

_FIRST = 1 << 18  # bytes of the first block
_NEWLINE = ord("\n")
_STEP = 1 << 16  # bytes that are searched at a time, or looked at
_UTF8, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


class Block(NamedTuple):
    """Whole lines of one file; only the last one of the file may lack its end."""

    data: Bytes
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

    Attributes
    ----------
    files : list of str
        What will be read, in this order.
    sizes : list of int or None
        Bytes of each file, as it is on disk; None for a pipe.
    size : int or None
        Bytes of all files together; None if nobody knows.
    """

    def __init__(self, paths: str | os.PathLike[str] | Sequence[str]) -> None:
        self.files = expand(paths)
        self.sizes = [size_of(file) for file in self.files]
        known = [size for size in self.sizes if size is not None]
        self.size = sum(known) if len(known) == len(self.files) else None
        self._pipes: dict[int, Reader] = {}

    def blocks(self, start: Position = START, prompt: bool = False) -> Iterator[Block]:
        """Read on from ``start``.

        If ``prompt``, the lines of a pipe are given as soon as they arrive, in blocks
        that differ from run to run.
        """
        if start.file >= len(self.files):
            raise ValueError(
                f"cannot resume in file number {start.file + 1}: there are only "
                f"{len(self.files)}, so these are not the files that were read before"
            )
        done = self.before(start.file)
        for number in range(start.file, len(self.files)):
            begin = start if number == start.file else Position(number)
            # The first block is small: nothing can be done before it is here.
            with self.reader(number, BLOCK, _FIRST, prompt) as reader:
                reader.skip(begin.offset)
                for data, _ in reader.blocks():
                    lines = count(data, _NEWLINE) + int(data[-1] != _NEWLINE)
                    after = Position(
                        number, reader.offset + data.size, begin.line + lines
                    )
                    file = self.files[number]
                    yield Block(data, file, begin, after, done + reader.done)
                    begin = after
                done += reader.done

    def before(self, number: int) -> int:
        """Return the bytes of the files before this one."""
        return sum(size or 0 for size in self.sizes[:number])

    def reader(
        self, number: int, most: int, first: int | None = None, prompt: bool = False
    ) -> "Reader":
        """Open a file for blocks of ``most`` bytes, the first one of ``first``.

        A pipe cannot be opened again: its reader is kept, with all that has been looked
        at, until the rows are read.
        """
        if self.sizes[number] is not None:
            return Reader(self.files[number], most, first, size=self.sizes[number])
        if number not in self._pipes:
            self._pipes[number] = Reader(self.files[number], most, first, pipe=True)
        reader = self._pipes[number]
        if reader.begun:
            raise ValueError(f"{reader.path} is a pipe and can be read only once")
        reader.most, reader.prompt = most, prompt
        return reader

    def beginning(self) -> bytes:
        """Return some of the first bytes; none are lost, not even of a pipe."""
        with self.reader(0, BLOCK) as reader:
            return reader.beginning()


class Reader:
    """One file, in blocks of whole lines; what is not used of one comes again."""

    def __init__(
        self,
        file: str,
        most: int,
        first: int | None = None,
        pipe: bool = False,
        size: int | None = None,
    ) -> None:
        self._stream, self._known = open_stream(file), size
        self.most, self._first = most, first or most
        self._pipe = pipe  # stays open until the rows have been read
        self.prompt = False
        self.offset = 0  # where the next block begins
        self.begun = False
        self._rest = np.empty(0, np.uint8)  # read, and not used
        self._tried = 0  # bytes of it that have been given
        self._used = 0  # bytes of the last block
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
        """Return what is there of the first bytes, without using it."""
        wanted, self.prompt = self.prompt, self._pipe
        data, _ = self._fill(_STEP, whole_lines=False)  # one line tells little
        self.prompt = wanted
        return data.tobytes()

    def peek(self) -> tuple[Bytes, bool]:
        """Return what ``blocks`` will give first, without using it."""
        lines, final, _ = self._lines(self._size())
        self._tried = 0
        return lines, final

    def skip(self, offset: int) -> None:
        """Go to ``offset``."""
        self.begun = True
        known = min(len(self._rest), max(offset - self.offset, 0))
        self._rest = self._rest[known:]
        self.offset += known
        if offset > self.offset:
            self._stream.skip(offset - self.offset)
            self.offset = offset

    def blocks(self) -> Iterator[tuple[Bytes, bool]]:
        """Yield lines, and whether they are the last; see :meth:`use`."""
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
        if not self._known or self.done == self._known:  # those of /proc have none
            return
        told = (
            f"{self.path} changed while it was read: it had {self._known:,} bytes, "
            f"and {self.done:,} were read"
        )
        if self.done < self._known:
            raise OSError(f"{told}. Run again when it is complete.")
        warnings.warn(
            f"{told}; appended lines are included.", DataWarning, stacklevel=2
        )

    def use(self, size: int) -> int:
        """Let what follows the first ``size`` bytes of a block come again.

        Return how many that are: no more than the block has.
        """
        self._used = min(size, self._used)
        return self._used

    def _lines(self, size: int) -> tuple[Bytes, bool, int]:
        """Return lines, whether they are the last, and how much was read for them."""
        while True:
            data, final = self._fill(size)
            self._tried = len(data)
            end = len(data) if final else _after_last_line(data)
            if end or final:
                return self._without_mark(data[:end]), final, size
            size = self._larger(size)

    def _without_mark(self, data: Bytes) -> Bytes:
        """Return the first block without its byte order mark."""
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
        """Return the next ``size`` bytes, and whether the file ends before that."""
        known = len(self._rest)
        if known >= size:
            return self._rest[:size], False
        if self.prompt and known > self._tried:
            return self._rest, False
        buffer = np.empty(size, np.uint8)
        buffer[:known] = self._rest
        view = memoryview(buffer.data)[known:]
        more, self._ended = read_into(self._stream, view, self.prompt, whole_lines)
        self._rest = buffer[: known + more]
        return self._rest, self._ended

    def _size(self) -> int:
        """Return the number of bytes to read; fewer at the start of a pipe."""
        if self._pipe:
            return min(self.most, max(_FIRST, self.offset // 2))
        return self.most if self.offset else min(self.most, self._first)

    def _larger(self, size: int) -> int:
        """Return how much to read if ``size`` bytes were not enough."""
        if self.prompt and not self._ended and len(self._rest) < size:
            return size  # there may be enough when more has come
        if 2 * size > LONGEST:
            raise ValueError(
                f"{self.path}: the line that begins at byte {self.offset} of the text "
                f"is longer than {size} bytes. Is this a text file?"
            )
        return 2 * size


def _after_last_line(data: Bytes) -> int:
    """Return the place after the last newline; 0 if there is none."""
    stop = len(data)
    while stop > 0:
        step = max(stop - _STEP, 0)
        found = data[step:stop].tobytes().rfind(b"\n")
        if found >= 0:
            return step + found + 1
        stop = step
    return 0
