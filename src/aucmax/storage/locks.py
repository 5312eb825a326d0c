"""Locks: one process at a time writes to an output file."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: writers are not locked
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None
# Never follow a symbolic link that was put in place of a temporary file.
SAFE_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Hold a lock next to ``path``; raise an error if another process holds it.

    The lock file ``.NAME.lock`` has the number of the process. The operating system
    releases the lock of a killed process; its lock file stays and does no harm.
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
            os.close(handle)  # releases the lock


def _locked(path: Path, lock: Path) -> int | None:
    """Return the handle of a lock file; None if files cannot be locked here."""
    while True:
        if lock.is_symlink():
            raise FileExistsError(
                f"Cannot lock {path}: {lock} is a symbolic link. Delete it."
            )
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | SAFE_OPEN, 0o666)
        except OSError:  # the folder is missing or read-only: the writer reports it
            return None
        taken = try_lock(handle)
        if taken and lock.exists() and os.path.samestat(lock.stat(), os.fstat(handle)):
            if not _is_lock_file(handle):
                os.close(handle)
                raise FileExistsError(
                    f"Cannot lock {path}: {lock} is not a lock file of aucmax. Rename "
                    "it, or choose another output."
                )
            os.truncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            return handle
        writer = os.pread(handle, 20, 0).decode(errors="replace").strip()
        os.close(handle)  # the owner has just removed the file, or:
        if taken is None:
            return None
        if not taken:
            raise FileExistsError(
                f"{path} is being written by another process, {writer or 'unknown'}: "
                f"wait until it is done, or choose another file. The lock is {lock}."
            )


def _is_lock_file(handle: int) -> bool:
    """Return whether an open file is empty or has the number of a process."""
    about = os.fstat(handle)
    plain = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
    return plain and re.fullmatch(rb"\d{0,18}\n?", os.pread(handle, 99, 0)) is not None


def try_lock(handle: int) -> bool | None:
    """Lock an open file if it is free; return None if files cannot be locked here."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True
