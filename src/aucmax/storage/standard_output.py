"""Standard output that is written completely or raises an error."""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Whole(io.RawIOBase):
    """Repeat short writes of an unbuffered file until all is written."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()

    def write(self, content: Any) -> int:
        with memoryview(content).cast("B") as left:
            at = 0
            while at < len(left):
                count = self._raw.write(left[at:])
                if not count:
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                at += count
            return at


@contextmanager
def whole_output() -> Iterator[None]:
    """Return a context in which output that cannot be written is an error.

    With PYTHONUNBUFFERED, Python ignores short writes, on a full disk for instance.
    With a buffer, an error at exit would come too late to be reported: it is flushed.
    """
    given = sys.stdout
    if given is None:  # closed: output is discarded
        yield
        return
    raw = getattr(given, "buffer", None)
    if isinstance(raw, io.RawIOBase) and not isinstance(raw, _Whole):
        whole: Any = _Whole(raw)
        sys.stdout = io.TextIOWrapper(
            whole, given.encoding, given.errors, write_through=True
        )
    try:
        yield
        try:
            sys.stdout.flush()
        except OSError as error:  # name the file
            raise OSError(error.errno, error.strerror, "standard output") from error
    finally:
        sys.stdout = given
