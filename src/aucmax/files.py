"""Writing files whole or not at all, and standard output in full or with an error."""

import errno
import io
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # not a POSIX system: two writers do not see each other there
    fcntl = None  # type: ignore[assignment]


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path``; a crash leaves the old file or the new one."""
    with replacing(path) as file:
        file.write(content)


class _Whole(io.RawIOBase):
    """Writes all that it is given to a file that may take a part at a time."""

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
    """See to it that all that goes to standard output arrives, or is an error.

    Under PYTHONUNBUFFERED it has no buffer: a file that has room for a part of what is
    written takes that part, and nobody asks how much that was. Otherwise, what is left
    in the buffer when a program ends would be an error that comes too late to be told.
    """
    given = sys.stdout
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
        except OSError as error:  # nobody would know which file it is
            raise OSError(error.errno, error.strerror, "standard output") from error
    finally:
        sys.stdout = given


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that becomes ``path`` when the block ends without an error.

    A process that is killed can leave its unfinished file behind, under a name that
    begins with a dot and says who wrote it; whoever writes to ``path`` next sweeps it.

    A link stays one: what it points to is replaced. A device or a pipe, such as
    /dev/null, is written to as it is.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        with open(path, "wb") as file:
            yield file
        return
    _sweep(path)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f"{_prefix(path)}{os.getpid()}.", dir=path.parent
        )
    except FileNotFoundError:
        reason = "takes no files" if path.parent.is_dir() else "does not exist"
        raise FileNotFoundError(
            f"Cannot write {path}: the folder {path.parent} {reason}."
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp makes private files
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def refuse_overwriting(output: Path, inputs: Iterable[str | Path]) -> None:
    """Raise an error if the file to be written is one that is read."""
    for name in inputs:
        if output.is_file() and os.path.exists(name) and output.samefile(name):
            raise FileExistsError(
                f"{output} is read, and would be overwritten: name another file."
            )


def refuse_twice(*outputs: Path | None) -> None:
    """Raise an error if two files to be written are one; a device may be."""
    seen: dict[str, Path] = {}
    for output in outputs:
        if output is None or (output.exists() and not output.is_file()):
            continue
        other = seen.setdefault(os.path.realpath(output), output)
        if other is not output:
            raise FileExistsError(
                f"{output} is to be written twice, for two purposes: name another file."
            )


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Hold a lock next to ``path``; raise an error if another process has it.

    The file says which process that is. The lock is the system's: of a process that was
    killed the file stays, but the lock does not.
    """
    real = Path(os.path.realpath(path))
    handle = None
    if fcntl is not None and (real.is_file() or not real.exists()):
        handle = _locked(path, real.with_name(real.name + ".lock"))
    try:
        yield
    finally:
        if handle is not None:
            real.with_name(real.name + ".lock").unlink(missing_ok=True)
            os.close(handle)  # releases it


def _locked(path: Path, lock: Path) -> int | None:
    """Return a handle of a lock that is ours; None if there can be none here."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # no such folder, not ours: whoever writes there will say so
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            writer = os.read(handle, 20).decode(errors="replace").strip()
            os.close(handle)
            raise FileExistsError(
                f"{path} is being written by another process, {writer or 'unknown'}: "
                f"wait until it is done, or name another file. Its lock is {lock}."
            ) from None
        except OSError:  # a file system without locks
            os.close(handle)
            return None
        if lock.exists() and os.path.samestat(os.stat(lock), os.fstat(handle)):
            os.truncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
            return handle
        os.close(handle)  # its owner has just removed it


def discard(path: Path) -> None:
    """Remove a file, if it is there, and what killed processes have left of it."""
    path.unlink(missing_ok=True)
    _sweep(path)


def _prefix(path: Path) -> str:
    return f".{path.name}.unfinished."


def _sweep(path: Path) -> None:
    """Remove what processes that are no more have left of ``path``."""
    if os.name != "posix" or not path.parent.is_dir():
        return  # elsewhere there is no harmless way to ask for a process
    for left in path.parent.iterdir():
        if left.name.startswith(_prefix(path)):
            writer = left.name.removeprefix(_prefix(path)).split(".")[0]
            if writer.isdigit() and not _alive(int(writer)):
                left.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks, and does nothing
    except ProcessLookupError:
        return False
    except OSError:  # it is there, and somebody else's
        return True
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
