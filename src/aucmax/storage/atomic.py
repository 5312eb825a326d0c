"""Writing files whole or not at all, and standard output in full or with an error."""

import errno
import glob
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # not a POSIX system: two writers do not see each other there
    fcntl = None  # type: ignore[assignment]

# Never follow a link that somebody has put in place of a file of ours.
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


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
    if given is None:  # closed: what is printed goes nowhere
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
        except OSError as error:  # nobody would know which file it is
            raise OSError(error.errno, error.strerror, "standard output") from error
    finally:
        sys.stdout = given


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that becomes ``path`` when the block ends without an error.

    A process that is killed can leave its unfinished file behind, under a name that
    begins with a dot; the next writer of ``path`` removes it. An existing file keeps
    its mode; a new one gets 0o666 without the umask.

    A link stays one: what it points to is replaced. A device or a pipe, such as
    /dev/null, is written to as it is.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        with open(path, "wb") as file:
            yield file
        return
    _sweep(path)
    handle, name = _unfinished(path)
    try:
        with os.fdopen(handle, "wb") as file:
            if path.exists() and hasattr(os, "fchmod"):
                os.fchmod(handle, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # the lock is held until there is nothing to sweep
                os.replace(name, path)
        if fcntl is None:  # Windows renames closed files only
            os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Raise an error if a file at ``path`` could not be written or replaced."""
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise IsADirectoryError(f"Cannot write {path}: it is a folder.")
    if real.exists() and not real.is_file():
        return  # a device or a pipe: opening it may have effects
    handle, name = _unfinished(real)
    os.close(handle)
    os.unlink(name)


def _unfinished(path: Path) -> tuple[int, str]:
    """Create a file beside ``path``, and hold its lock: see ``_sweep``."""
    while True:
        name = path.parent / f"{_prefix(path)}{secrets.token_hex(8)}"
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, 0o666)
        except FileNotFoundError:
            reason = "takes no files" if path.parent.is_dir() else "does not exist"
            raise FileNotFoundError(
                f"Cannot write {path}: the folder {path.parent} {reason}."
            ) from None
        except OSError as error:  # the name of the temporary file would say nothing
            raise OSError(error.errno, error.strerror, str(path)) from error
        # Somebody may sweep between the two calls, and remove it.
        if _try_lock(handle) is not False and name.exists():
            return handle, str(name)
        os.close(handle)


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

    The lock file, ``.NAME.lock``, says which process that is. The lock is the system's:
    of a process that was killed the file stays, but the lock does not.
    """
    real = Path(os.path.realpath(path))
    lock, handle = real.with_name(f".{real.name}.lock"), None
    if fcntl is not None and (real.is_file() or not real.exists()):
        handle = _locked(path, lock)
    try:
        yield
    finally:
        if handle is not None:
            lock.unlink(missing_ok=True)
            os.close(handle)  # releases it


def _locked(path: Path, lock: Path) -> int | None:
    """Return a handle of a lock that is ours; None if there can be none here."""
    while True:
        if lock.is_symlink():
            raise FileExistsError(
                f"Cannot lock {path}: {lock} is a symbolic link. Delete it."
            )
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | _SAFE, 0o666)
        except OSError:  # no such folder, not ours: whoever writes there will say so
            return None
        taken = _try_lock(handle)
        if taken and lock.exists() and os.path.samestat(lock.stat(), os.fstat(handle)):
            if not _is_lock_file(handle):
                os.close(handle)
                raise FileExistsError(
                    f"Cannot lock {path}: {lock} is not a lock file of aucmax. Rename "
                    "it, or name another output."
                )
            os.truncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            return handle
        writer = os.pread(handle, 20, 0).decode(errors="replace").strip()
        os.close(handle)  # its owner has just removed it, or:
        if taken is None:
            return None
        if not taken:
            raise FileExistsError(
                f"{path} is being written by another process, {writer or 'unknown'}: "
                f"wait until it is done, or name another file. Its lock is {lock}."
            )


def _is_lock_file(handle: int) -> bool:
    """Tell whether an open file is empty or has the number of a process."""
    about = os.fstat(handle)
    plain = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
    return plain and re.fullmatch(rb"\d{0,18}\n?", os.pread(handle, 99, 0)) is not None


def _try_lock(handle: int) -> bool | None:
    """Take the lock of an open file if it is free; None if there are no locks here."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def discard(path: Path) -> None:
    """Remove a file, if it is there, and what killed processes have left of it."""
    path.unlink(missing_ok=True)
    _sweep(path)


def _prefix(path: Path) -> str:
    return f".{path.name}.unfinished."


def _sweep(path: Path) -> None:
    """Remove unfinished files of ``path`` whose writers are gone.

    A writer holds the lock of its file, also in another container or, if the file
    system has locks, on another host. Without locks, nothing is removed.
    """
    if not path.parent.is_dir():
        return
    for left in path.parent.glob(f"{glob.escape(_prefix(path))}*"):
        try:
            handle = os.open(left, os.O_RDWR | _SAFE)
        except OSError:  # gone, or not ours
            continue
        if _try_lock(handle):
            left.unlink(missing_ok=True)
        os.close(handle)
