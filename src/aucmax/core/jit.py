"""Compilation options of Numba, and a safe cache of compiled kernels.

Numba's cache alone is not safe enough:

* It checks a kernel's own file only, so code compiled against an older ``rows.py``
  could be used after an upgrade. Here a fingerprint of all sources that may be compiled
  into a kernel is part of the folder's name.
* Two processes that start at once may save two signatures under one name and later load
  the wrong one. Here saving holds a lock.
* A damaged file, a full disk or a missing folder raises an error, and flipped bits in
  compiled code give wrong numbers. Here code has a checksum, and the kernel is compiled
  in memory.
* Cache files are pickles and could run code if others can write to them. Here the
  folder belongs to the user alone. If it cannot be had below ``NUMBA_CACHE_DIR`` or the
  user's cache folder (an account without HOME), it is made in the system's temporary
  folder.
"""

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TypeVar, cast

from numba import config, njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import register_jitable

try:
    import fcntl
except ImportError:  # Windows: Numba's own atomic renames have to do
    fcntl = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., object])

# For functions inside a kernel's loop: an array is nine arguments, so that a call can
# cost more than a short row.
INLINE = {
    "forceinline": True,
    "error_model": "numpy",
    # Wrappers for calls from Python or C take time to compile.
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
# LLVM may add in any order, so in SIMD; NaN and infinity keep their meaning.
# Not for loops that gather by index: there it slows short rows down.
SIMD = {**INLINE, "fastmath": {"reassoc", "contract", "nsz"}}

_PACKAGE = Path(__file__).parents[1]


def kernel(func: F) -> F:
    """Compile ``func`` on first call and keep the result on disk.

    A kernel that may run for long changes its state, all of it arrays, in place and
    returns nothing: making Python objects of results while an interrupt (Ctrl-C) is
    pending can crash the interpreter, and would leave the state inconsistent.
    ``error_model="numpy"`` makes a division by zero give inf or nan, as in NumPy. No
    fast-math here: the row primitives ask for the flags they need.
    """
    compiled = njit(error_model="numpy", nogil=True, no_cfunc_wrapper=True)(func)
    source = Path(cast(Any, func).__code__.co_filename)
    folder = _cache_folder(_fingerprint(source.parent))
    if folder is None or config.DISABLE_JIT:
        return cast(F, compiled)
    before, config.CACHE_DIR = config.CACHE_DIR, folder
    try:
        compiled._cache = _Cache(func)
    except RuntimeError:  # Numba needs a source file to know when it has changed
        pass
    finally:
        config.CACHE_DIR = before
    return cast(F, compiled)


def inlined(func: F) -> F:
    """Compile ``func`` into the kernels that call it; Python runs it as it is."""
    return cast(F, register_jitable(**INLINE)(func))


def vectorised(func: F) -> F:
    """Compile ``func`` into its kernels, with sums in whatever order is fastest."""
    return cast(F, register_jitable(**SIMD)(func))


def uniquely_named(func: F, kind: str) -> F:
    """Give a lambda a name that no other function of its module has.

    Compiled code is identified by names, also in the cache: two lambdas with equal
    arguments would be one.
    """
    if func.__name__ == "<lambda>":
        func.__name__ = f"{kind}_{func.__code__.co_firstlineno}"
        func.__qualname__ = func.__name__
    return func


class _CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """Files of compiled code, with a checksum of name and content."""

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        checksum = sha256(name.encode() + content).digest()
        super()._save_data(name, (checksum, content))

    def _load_data(self, name: str) -> Any:
        checksum, content = super()._load_data(name)
        if checksum != sha256(name.encode() + content).digest():
            raise ValueError(f"{name} is damaged")
        return pickle.loads(content)


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one kernel, safe to share between processes."""

    def __init__(self, func: Any) -> None:
        super().__init__(func)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFile(
            self._cache_path, self._impl.filename_base, stamp
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file: start again with an empty index
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):  # disk full, folder gone: the code in memory will do
            os.makedirs(self.cache_path, exist_ok=True)
            with _locked(Path(self.cache_path) / "aucmax.lock"):
                super().save_overload(sig, data)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # releases the lock


def _cache_folder(fingerprint: str) -> str | None:
    """Return a folder that only this user can write to, or None if there is none."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for base in (config.CACHE_DIR or os.path.join(home, "aucmax"), gettempdir()):
        if (folder := _private_folder(base, fingerprint)) is not None:
            return folder
    return None


@cache
def _private_folder(base: str, fingerprint: str) -> str | None:
    """Return a private folder in ``base``, or None if it cannot be made or trusted."""
    if not os.path.isabs(base):
        return None
    user = os.geteuid() if os.name == "posix" else 0
    folder = Path(base, f"aucmax-{fingerprint}-{user}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    private = os.name != "posix" or (
        about.st_uid == user and not about.st_mode & 0o022 and not folder.is_symlink()
    )
    return str(folder) if private and os.access(folder, os.W_OK) else None


@cache
def _fingerprint(folder: Path) -> str:
    """Return a name for the sources that may be compiled into a kernel of ``folder``.

    Kernels call functions of ``core``, of ``base`` and of their own top-level folder;
    those of ``io`` call functions of ``tables``, too.
    """
    if not folder.is_relative_to(_PACKAGE):
        parts = [_digest(_PACKAGE / "core"), _digest(folder, "*.py")]
    else:
        own = folder.relative_to(_PACKAGE).parts[0]
        names = ["core", "base", own, *(["tables"] if own == "io" else [])]
        parts = [_digest(_PACKAGE / name) for name in names]
    return sha256("".join(parts).encode()).hexdigest()[:12]


@cache
def _digest(folder: Path, pattern: str = "**/*.py") -> str:
    content = b"".join(path.read_bytes() for path in sorted(folder.glob(pattern)))
    return sha256(content).hexdigest()
