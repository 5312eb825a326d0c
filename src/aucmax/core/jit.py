"""The one place where Numba's options are set, and where its cache is made safe.

Numba keeps compiled code beside the source, or in the user's cache folder when the
installation is read-only. Four things can go wrong there, each seen in the wild, and
:func:`kernel` guards against all of them:

* code compiled against an older ``rows.py`` is served, because Numba looks at a
  kernel's own file only: here a fingerprint of ``core`` and of the kernel's own folder
  is part of the file name;
* two processes that start at once save two signatures under one name and later load
  the wrong one: here saving holds a lock;
* no folder can be written, or a cache file is damaged: here the kernel is compiled in
  memory and nothing else happens;
* the cache folder is relative (an account without HOME), or others can write to it:
  cached files are pickles, so that they could run code. Here a private folder below
  the system's temporary one is used instead.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TypeVar, cast

from numba import config, njit
from numba.core.caching import IndexDataCacheFile
from numba.extending import register_jitable

try:
    import fcntl
except ImportError:  # Windows: numba's own atomic renames have to do
    fcntl = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., object])

# For what runs inside a kernel's loop: an array is nine arguments, so that a call can
# cost more than a short row.
INLINE = {
    "forceinline": True,
    "error_model": "numpy",
    # What would let Python or C call it takes time to compile.
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
# LLVM may add in any order, so in SIMD; NaN and infinity keep their meaning.
# Not for loops that gather by index: there it slows short rows down.
SIMD = {**INLINE, "fastmath": {"reassoc", "contract", "nsz"}}


def kernel(func: F) -> F:
    """Compile ``func`` on first call and keep the result on disk.

    A kernel that may run for long changes its state, all of it arrays, in place and
    returns nothing: making Python objects of results while an interrupt (Ctrl-C) is
    pending can crash the interpreter, and would leave a state half old, half new.
    ``error_model="numpy"`` lets a division by zero give inf or nan, as in NumPy. No
    fast-math here: the row primitives ask for the flags they need.
    """
    options = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    try:
        with _safe_folder():
            compiled = njit(cache=True, **options)(func)
    except RuntimeError:  # no folder to write to: Numba has no place for a cache
        return cast(F, njit(**options)(func))
    if hasattr(compiled, "_cache"):  # absent when NUMBA_DISABLE_JIT is set
        compiled._cache._cache_file = _CacheFile(compiled._cache)
        # Numba would check the folder again, outside of what is guarded below.
        compiled._cache._impl.locator.ensure_cache_path = lambda: None
    return cast(F, compiled)


def inlined(func: F) -> F:
    """Compile ``func`` into the kernels that call it; Python runs it as it is."""
    return cast(F, register_jitable(**INLINE)(func))


def vectorised(func: F) -> F:
    """Do the same, with sums in whatever order is fastest."""
    return cast(F, register_jitable(**SIMD)(func))


def told_apart(func: F, kind: str) -> F:
    """Give a function without a name one that no other of its module has.

    What is compiled is known by names, also to what other processes left in the cache:
    two lambdas of equal arguments would be one.
    """
    if func.__name__ == "<lambda>":
        func.__name__ = f"{kind}_{func.__code__.co_firstlineno}"
        func.__qualname__ = func.__name__
    return func


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and data files of one kernel, safe to share between processes."""

    def __init__(self, cache: Any) -> None:
        folder = Path(cache._py_func.__code__.co_filename).parent
        name = f"{cache._impl.filename_base}.{_fingerprint(folder)}"
        super().__init__(cache.cache_path, name, cache._cache_file._source_stamp)

    def save(self, key: Any, data: Any) -> None:
        try:
            os.makedirs(self._cache_path, exist_ok=True)
            with _locked(Path(self._cache_path) / "aucmax.lock"):
                super().save(key, data)
        except OSError:  # disk full, folder gone: the code in memory is what counts
            pass

    def load(self, key: Any) -> Any:
        try:
            return super().load(key)
        except Exception:  # a damaged file: compile again
            return None

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:
            return {}


@contextmanager
def _safe_folder() -> Iterator[None]:
    """Have Numba choose a cache folder that only this user, or root, can write to."""
    before = config.CACHE_DIR
    wanted = before or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~")
    if os.name == "posix" and not _is_safe(wanted, bool(before)):
        config.CACHE_DIR = _private_folder(wanted)
    try:
        yield
    finally:
        config.CACHE_DIR = before


@cache
def _is_safe(folder: str, make: bool) -> bool:
    """Tell whether nobody else can write to a folder; ``make`` it if it is not there.

    One that is not there, and is not to be made, is safe if its parent is.
    """
    if not os.path.isabs(folder):
        return False
    try:
        if make:
            os.makedirs(folder, exist_ok=True)
        about = os.stat(folder)
    except FileNotFoundError:
        return _is_safe(os.path.dirname(folder), make)
    except OSError:  # nothing can be written, so nothing is read either
        return True
    return about.st_uid in (os.geteuid(), 0) and not about.st_mode & stat.S_IWOTH


@cache
def _private_folder(instead_of: str) -> str:
    """Return a folder of this user's own; an error if somebody else has taken it."""
    name = sha256(instead_of.encode()).hexdigest()[:8]
    folder = Path(gettempdir(), f"aucmax-numba-{os.geteuid()}-{name}")
    with suppress(OSError):
        folder.mkdir(mode=0o700)
    about = folder.lstat() if folder.exists() else None
    if (
        about is None
        or not stat.S_ISDIR(about.st_mode)
        or about.st_uid != os.geteuid()
        or about.st_mode & 0o022
    ):
        raise RuntimeError(f"{folder} cannot be used as a cache")
    return str(folder)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # releases the lock


@cache
def _fingerprint(folder: Path) -> str:
    """Return a name for the sources that may be compiled into a kernel of ``folder``.

    Kernels call functions of ``core``, and of their neighbours.
    """
    sources = {*Path(__file__).parent.rglob("*.py"), *folder.glob("*.py")}
    content = b"".join(path.read_bytes() for path in sorted(sources))
    return sha256(content).hexdigest()[:12]
