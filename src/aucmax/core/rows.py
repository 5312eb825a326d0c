"""Rows of a matrix, dense or CSR, behind one set of names.

The only module that knows how a matrix is laid out. A kernel takes
``X`` from :func:`as_rows` and visits what row i has by

    for k in stored(X, i):
        j, x = entry(X, i, k)

the feature j and its value x: of a dense row all of them, of a sparse one those that it
stores. Numba picks the accessors by the type of ``X`` when it compiles the kernel, and
compiles them into it. A function with such a loop is decorated with :func:`rowwise`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.jit import INLINE, SIMD, told_apart

F = TypeVar("F", bound=Callable[..., object])

Float: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.uint32]

_CACHE_LINE = 64  # bytes


class CSR(NamedTuple):
    """A CSR matrix as kernels see it; an unsigned index needs no test of its sign."""

    data: NDArray[np.floating[Any]]
    indices: Index
    indptr: NDArray[np.uint64]


Rows: TypeAlias = NDArray[np.floating[Any]] | CSR


def as_rows(X: Any) -> Rows:
    """Give validated ``X`` the layout that kernels are compiled for, without a copy.

    Copied all the same: what is not C-contiguous, CSR with repeated entries, and
    64-bit column indices (4 bytes a value).
    """
    if not sparse.issparse(X):
        return _writeable(np.ascontiguousarray(X))
    # Kernels rely on it that no row has a feature twice. A matrix remembers what it
    # found before somebody changed its indices; one on the same arrays looks again.
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype == np.int32:
        indices = _writeable(np.ascontiguousarray(X.indices)).view(np.uint32)
    else:
        indices = X.indices.astype(np.uint32)
    data = _writeable(np.ascontiguousarray(X.data))
    return CSR(data, indices, X.indptr.astype(np.uint64))


class _Alias:
    """The memory of a read-only array, offered as writeable."""

    def __init__(self, array: NDArray[Any]) -> None:
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {
            **array.__array_interface__,
            "data": (address, False),
        }
        self.owner = array


def _writeable(array: NDArray[Any]) -> NDArray[Any]:
    """Spare a read-only array, such as a memory map, a compilation of its own.

    Kernels never write to X.
    """
    return array if array.flags.writeable else np.asarray(_Alias(array))


def zeros_for(X: Rows, height: int, width: int) -> Float:
    """Return a table of zeros, stored as rows of this kind like it."""
    return as_table(np.zeros((height, width)), X)


def as_table(table: Float, X: Rows) -> Float:
    """Store the numbers of features, a column each, as rows of this kind like it.

    For dense rows number by number, so that loops run in SIMD; for sparse ones, whose
    features are all over the table, feature by feature and on whole cache lines.
    """
    if not isinstance(X, CSR):
        return np.ascontiguousarray(table)
    if table.flags.f_contiguous and table.ctypes.data % _CACHE_LINE == 0:
        return table
    height, width = table.shape
    spare = _CACHE_LINE // 8
    raw = np.empty(height * width + spare)
    start = -raw.ctypes.data // 8 % spare
    by_feature = raw[start : start + height * width].reshape(width, height)
    for k, slot in enumerate(table):
        by_feature[:, k] = slot
    return by_feature.T


def n_rows(X: Rows) -> int:
    """Return the number of rows."""
    return len(X.indptr) - 1 if isinstance(X, CSR) else len(X)


def n_values(X: Rows) -> int:
    """Return the number of values that a pass over all rows visits."""
    return int(X.data.size) if isinstance(X, CSR) else int(X.size)


def row_bytes(X: Rows) -> float:
    """Return the mean size of a row in memory."""
    size = X.data.nbytes + X.indices.nbytes if isinstance(X, CSR) else X.nbytes
    return size / max(n_rows(X), 1)


def take_rows(X: Rows, start: int, stop: int) -> Rows:
    """Return rows ``start`` to ``stop`` without copying a value."""
    if isinstance(X, CSR):
        return CSR(X.data, X.indices, X.indptr[start : stop + 1])
    return X[start:stop]


def cut_rows(X: Rows, start: int, stop: int) -> Rows:
    """Return the same as rows that have no others behind them, and know their size."""
    if isinstance(X, CSR):
        first, last = int(X.indptr[start]), int(X.indptr[stop])
        indptr = X.indptr[start : stop + 1] - X.indptr[start]
        return CSR(X.data[first:last], X.indices[first:last], indptr)
    return X[start:stop]


def by_layout(
    dense: Callable[..., Any], csr: Callable[..., Any], silent: bool = False
) -> Any:
    """Return one function of two: the first for dense rows, the other for CSR.

    Kernels have either compiled into them. Where the compiler is off, Python calls the
    one that fits, or none if they are ``silent``: all they change is the speed.
    """

    def either(X, *args):
        if not silent:
            return (csr if isinstance(X, CSR) else dense)(X, *args)

    dense, csr = told_apart(dense, "dense"), told_apart(csr, "csr")
    _compile(either, dense, csr, INLINE)
    return either


def rowwise(func: F) -> F:
    """Compile ``func(X, …)`` into the kernels that call it, for either layout.

    Sums over dense rows may run in any order, hence in SIMD. Those that gather by index
    keep theirs: there it slows short rows down.
    """

    def either(X, *args):
        return func(X, *args)

    _compile(either, func, func, SIMD)
    return cast(F, either)


def _compile(either: Any, dense: Any, csr: Any, options: Any) -> None:
    # A registration for each layout, because their options differ. What Numba calls
    # strict is that signatures be equal; ``either`` has one for all.
    @overload(either, jit_options=options, strict=False)
    def _dense(X, *args):
        return dense if isinstance(X, types.Array) else None

    @overload(either, jit_options=INLINE, strict=False)
    def _csr(X, *args):
        return csr if isinstance(X, types.BaseTuple) else None


# The numbers k of what row i has.
stored = by_layout(
    lambda X, i: range(np.uint64(X.shape[1])),
    lambda X, i: range(X.indptr[i], X.indptr[i + 1]),
)

# The feature and the value of the k-th.
entry = by_layout(
    lambda X, i, k: (k, np.float64(X[i, k])),
    lambda X, i, k: (X.indices[k], np.float64(X.data[k])),
)


@rowwise
def raw_dot_row(X: Rows, i: int, w: Float) -> float:
    """Return w·x."""
    s = 0.0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        s += w[j] * x
    return s


@rowwise
def raw_add_row(X: Rows, i: int, c: float, out: Float) -> None:
    """Add c x to ``out``."""
    for k in stored(X, i):
        j, x = entry(X, i, k)
        out[j] += c * x


@rowwise
def copy_row(X: Rows, i: int, factor: float, ref: Float, out: Float) -> None:
    """Write ``factor`` (x - ref) to ``out``: for what costs more than O(d) anyway."""
    for j in range(ref.shape[0]):
        out[j] = -factor * ref[j]
    for k in stored(X, i):
        j, x = entry(X, i, k)
        out[j] = factor * (x - ref[j])


@rowwise
def mark_row(X: Rows, i: int, c: float, table: Float, slot: int) -> None:
    """Add ``c`` to a slot of ``table`` wherever row ``i`` is not zero."""
    for k in stored(X, i):
        j, x = entry(X, i, k)
        table[slot, j] += c if x != 0.0 else 0.0


@rowwise
def count_row(X: Rows, i: int) -> int:
    """Return how many values of row ``i`` are not zero."""
    count = 0
    for k in stored(X, i):
        _, x = entry(X, i, k)
        count += x != 0.0
    return count


@rowwise
def pack_row(X: Rows, i: int, out: Float, at: NDArray[Any]) -> int:
    """Write what is not zero in row ``i`` to ``out``, and where it is to ``at``.

    Returns how many values that are: the row is then the same from any layout.
    """
    count = 0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        if x != 0.0:
            out[count] = x
            at[count] = j
            count += 1
    return count
