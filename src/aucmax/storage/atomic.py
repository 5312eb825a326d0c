"""Atomic writes: a file is replaced completely or not at all."""

import errno
import glob
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: temporary files are not locked
    fcntl = None  # type: ignore[assignment]

# Never follow a symbolic link that was put in place of a temporary file.
_SAFE_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_LONGEST = 200  # bytes of a name that the name of a temporary file contains


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path``; a crash leaves the old file or the new one."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block ends without error.

    A killed process can leave its temporary file behind, under a name that begins with
    a dot; the next writer of ``path`` removes it. An existing file keeps its mode; a
    new one gets 0o666 without the umask. A symbolic link stays: its target is replaced.
    A device or a pipe, such as /dev/null, is written to directly.
    """
    path = _target(path)
    if path.exists() and not path.is_file():
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
            if fcntl is not None:  # while the lock is held
                os.replace(name, path)
        if fcntl is None:  # Windows renames only closed files
            os.replace(name, path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _FULL:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def check_writable(path: Path) -> None:
    """Raise an error if a file at ``path`` could not be written or replaced."""
    real = _target(path)
    if real.exists() and not real.is_file():
        return  # opening a device or a pipe may have side effects
    handle, name = _unfinished(real)
    os.close(handle)
    os.unlink(name)


def _target(path: str | Path) -> Path:
    """Return the file that is written: a symbolic link stays."""
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise IsADirectoryError(f"Cannot write {path}: it is a folder.")
    if real.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return real


def _unfinished(path: Path) -> tuple[int, str]:
    """Create and lock a temporary file beside ``path``; see ``_sweep``."""
    while True:
        name = path.parent / f"{_prefix(path)}{secrets.token_hex(8)}"
        try:
            handle = os.open(
                name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE_OPEN, 0o666
            )
        except FileNotFoundError:
            reason = "is not writable" if path.parent.is_dir() else "does not exist"
            raise FileNotFoundError(
                f"Cannot write {path}: the folder {path.parent} {reason}."
            ) from None
        except OSError as error:  # name the file that the user knows
            raise OSError(error.errno, error.strerror, str(path)) from error
        # Another process may sweep and remove it between the two calls.
        if _try_lock(handle) is not False and name.exists():
            return handle, str(name)
        os.close(handle)


def refuse_overwriting(output: Path, inputs: Iterable[str | Path]) -> None:
    """Raise an error if the output is one of the input files; "-" is standard input."""
    real = Path(os.path.realpath(output))
    for name in inputs if real.is_file() else ():
        try:
            read = os.fstat(0) if str(name) == "-" else os.stat(name)
        except OSError:  # no such file, or standard input is closed
            continue
        if os.path.samestat(read, real.stat()):
            raise FileExistsError(
                f"Refusing to overwrite input file {output}: name another output file."
            )


def discard(path: Path) -> None:
    """Remove a file, if it exists, and temporary files left by killed processes."""
    path.unlink(missing_ok=True)
    _sweep(path)


def _prefix(path: Path) -> str:
    name = os.fsencode(path.name)
    short = path.name if len(name) <= _LONGEST else hashlib.sha256(name).hexdigest()
    return f".{short}.unfinished."


def _sweep(path: Path) -> None:
    """Remove temporary files of ``path`` whose writers were killed.

    A living writer holds the lock of its file, also in another container or, if the
    file system has locks, on another host. Without locks, nothing is removed.
    """
    if not path.parent.is_dir():
        return
    for left in path.parent.glob(f"{glob.escape(_prefix(path))}*"):
        try:
            handle = os.open(left, os.O_RDWR | _SAFE_OPEN)
        except OSError:  # gone, or not accessible
            continue
        if _try_lock(handle):
            left.unlink(missing_ok=True)
        os.close(handle)


def _try_lock(handle: int) -> bool | None:
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
