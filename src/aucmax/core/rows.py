"""Access to the rows of a matrix, dense or CSR, by one set of functions.

This is the only module that depends on the layout of a matrix. A kernel takes ``X``
from :func:`as_rows` and visits row i by

    for k in stored(X, i):
        j, x = entry(X, i, k)

with the feature j and its value x: all features of a dense row, the stored ones of a
sparse row. Numba chooses the accessors by the type of ``X`` and compiles them into the
kernel. A function with such a loop is decorated with :func:`rowwise`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.jit import INLINE, SIMD, uniquely_named

F = TypeVar("F", bound=Callable[..., object])

Float: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.int64]  # numbers of rows or features
ColumnIndex: TypeAlias = NDArray[np.uint32]  # of CSR; unsigned needs no sign test


class CSR(NamedTuple):
    """A CSR matrix as kernels see it."""

    data: NDArray[np.floating[Any]]
    indices: ColumnIndex
    indptr: NDArray[np.uint64]


Rows: TypeAlias = NDArray[np.floating[Any]] | CSR


def as_rows(X: Any) -> Rows:
    """Return validated ``X`` in the layout that kernels are compiled for.

    Nothing is copied, except arrays that are not C-contiguous, CSR matrices with
    duplicate entries, and 64-bit column indices (4 bytes per value).
    """
    if not sparse.issparse(X):
        return _read_only(np.ascontiguousarray(X))
    # Kernels assume that no row has a feature twice. SciPy caches this property even if
    # the indices change afterwards; a new matrix on the same arrays checks again.
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype == np.int32:
        indices = _read_only(np.ascontiguousarray(X.indices)).view(np.uint32)
    else:
        indices = _read_only(X.indices.astype(np.uint32))
    data = _read_only(np.ascontiguousarray(X.data))
    return CSR(data, indices, X.indptr.astype(np.uint64))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that kernels cannot write to.

    Numba compiles for read-only arrays (memory maps, data frames) and for others apart:
    with a view of this kind for all, each kernel is compiled once.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def zeros_for(X: Rows, height: int, width: int) -> Float:
    """Return a table of zeros in the layout that suits ``X``; see :func:`as_table`."""
    return as_table(np.zeros((height, width)), X)


def as_table(table: Float, X: Rows) -> Float:
    """Store a table with a column for each feature in the layout that suits ``X``.

    For dense rows C order, so that loops use SIMD; for sparse rows, which access
    scattered features, Fortran order.
    """
    return np.require(table, requirements="F" if isinstance(X, CSR) else "C")


def n_rows(X: Rows) -> int:
    """Return the number of rows."""
    return len(X.indptr) - 1 if isinstance(X, CSR) else len(X)


def n_values(X: Rows) -> int:
    """Return the number of stored values."""
    return int(X.data.size) if isinstance(X, CSR) else int(X.size)


def row_bytes(X: Rows) -> float:
    """Return the mean number of bytes of a row."""
    size = X.data.nbytes + X.indices.nbytes if isinstance(X, CSR) else X.nbytes
    return size / max(n_rows(X), 1)


def take_rows(X: Rows, start: int, stop: int) -> Rows:
    """Return rows ``start`` to ``stop`` without a copy."""
    if isinstance(X, CSR):
        return CSR(X.data, X.indices, X.indptr[start : stop + 1])
    return X[start:stop]


def cut_rows(X: Rows, start: int, stop: int) -> Rows:
    """Return rows ``start`` to ``stop`` with only their own values behind them."""
    if isinstance(X, CSR):
        first, last = int(X.indptr[start]), int(X.indptr[stop])
        indptr = X.indptr[start : stop + 1] - X.indptr[start]
        return CSR(X.data[first:last], X.indices[first:last], indptr)
    return X[start:stop]


def by_layout(dense: Callable[..., Any], csr: Callable[..., Any]) -> Any:
    """Combine two functions into one: ``dense`` for dense rows, ``csr`` for CSR."""

    def either(X, *args):
        return (csr if isinstance(X, CSR) else dense)(X, *args)

    dense, csr = uniquely_named(dense, "dense"), uniquely_named(csr, "csr")
    _compile(either, dense, csr, INLINE)
    return either


def rowwise(func: F) -> F:
    """Compile ``func(X, …)`` into the kernels that call it, for both layouts.

    Sums over dense rows may run in any order, hence in SIMD. Sums that gather by index
    keep their order: there SIMD slows short rows down.
    """

    def either(X, *args):
        return func(X, *args)

    _compile(either, func, func, SIMD)
    return cast(F, either)


def _compile(either: Any, dense: Any, csr: Any, options: Any) -> None:
    # One registration per layout, because their options differ. Numba's ``strict``
    # would demand equal signatures; that of ``either`` is generic.
    @overload(either, jit_options=options, strict=False)
    def _dense(X, *args):
        return dense if isinstance(X, types.Array) else None

    @overload(either, jit_options=INLINE, strict=False)
    def _csr(X, *args):
        return csr if isinstance(X, types.BaseTuple) else None


# The positions k of the stored values of row i.
stored = by_layout(
    lambda X, i: range(np.uint64(X.shape[1])),
    lambda X, i: range(X.indptr[i], X.indptr[i + 1]),
)

# The feature and the value at position k.
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
    """Write ``factor`` (x - ref) to ``out``, in O(d)."""
    for j in range(ref.shape[0]):
        out[j] = -factor * ref[j]
    for k in stored(X, i):
        j, x = entry(X, i, k)
        out[j] = factor * (x - ref[j])


@rowwise
def mark_row(X: Rows, i: int, c: float, table: Float, slot: int) -> None:
    """Add ``c`` to a slot of ``table`` for each nonzero feature of row ``i``."""
    for k in stored(X, i):
        j, x = entry(X, i, k)
        table[slot, j] += c if x != 0.0 else 0.0


@rowwise
def count_row(X: Rows, i: int) -> int:
    """Return the number of nonzero values of row ``i``."""
    count = 0
    for k in stored(X, i):
        _, x = entry(X, i, k)
        count += x != 0.0
    return count


@rowwise
def pack_row(X: Rows, i: int, out: Float, at: NDArray[Any]) -> int:
    """Write the nonzero values of a row and their features; return their number."""
    count = 0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        if x != 0.0:
            out[count] = x
            at[count] = j
            count += 1
    return count
