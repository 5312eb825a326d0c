"""The one place where Numba's options are set, and where its cache is made safe.

Numba keeps compiled code beside the source, or in the user's cache folder when the
installation is read-only. Three things can go wrong there, each seen in the wild, and
:func:`kernel` guards against all of them:

* code compiled against an older ``rows.py`` is served, because Numba looks at a
  kernel's own file only: here a fingerprint of ``core`` and of the kernel's own folder
  is part of the file name;
* two processes that start at once save two signatures under one name and later load
  the wrong one: here saving holds a lock;
* no folder can be written, or a cache file is damaged: here the kernel is compiled in
  memory and nothing else happens.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
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
