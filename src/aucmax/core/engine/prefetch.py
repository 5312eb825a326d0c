"""Prefetching: memory is requested some time before it is read.

Rows are visited in random order, and the features of a sparse row are all over the
table: without this, a learner waits for memory half of the time. It changes no result.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from aucmax.core.jit import inlined
from aucmax.core.rows import CSR, Float, Rows, by_layout, row_bytes

CACHE_LINE = 64  # bytes
_FETCHED = 128  # features at most: the nearest cache has room for 500

_BYTES = ir.IntType(8).as_pointer()
_WORD = ir.IntType(32)


def _fetch(near: int) -> Any:
    """Return a function that prefetches the line ``offset`` bytes into an array.

    ``near=3`` is the nearest cache, 2 the next. Dense rows go to the second one: in the
    nearest, few requests can be under way, and rows of a hundred numbers came half as
    fast.
    """

    def ask(typing_context, array, offset):
        def emit(context, builder, signature, args):
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            place = builder.gep(builder.bitcast(data, _BYTES), [args[1]])
            kind = ir.FunctionType(ir.VoidType(), [_BYTES, _WORD, _WORD, _WORD])
            function = cgutils.get_or_insert_function(
                builder.module, kind, "llvm.prefetch.p0"
            )
            to_read, is_data = _WORD(0), _WORD(1)
            builder.call(function, [place, to_read, _WORD(near), is_data])
            return context.get_dummy_value()

        return types.void(array, types.intp), emit

    return intrinsic(ask)


_fetch_far, _fetch_near = _fetch(near=2), _fetch(near=3)


def _dense_row(X, i):
    start = np.intp(i) * X.strides[0]
    for offset in range(start, start + X.strides[0], CACHE_LINE):
        _fetch_far(X, offset)


def _csr_row(X, i):
    start = np.intp(X.indptr[i])
    stop = min(np.intp(X.indptr[i + 1]), start + _FETCHED)
    size = X.data.itemsize
    for offset in range(start * size, stop * size, CACHE_LINE):
        _fetch_near(X.data, offset)
    for offset in range(start * 4, stop * 4, CACHE_LINE):
        _fetch_near(X.indices, offset)


def _csr_features(X, i, feat):
    start = X.indptr[i]
    for k in range(start, min(X.indptr[i + 1], start + np.uint64(_FETCHED))):
        _fetch_near(feat, np.intp(X.indices[k]) * feat.strides[1])


fetch_row = by_layout(_dense_row, _csr_row, silent=True)
_fetch_features = by_layout(lambda X, i, feat: None, _csr_features, silent=True)


def fetch_ahead(X: Rows, pairs: bool = False) -> int:
    """Return how many steps before its visit a row, or a pair, is prefetched."""
    if pairs and isinstance(X, CSR):  # farther apart in memory than runs of rows
        return 4
    return 4 * (2 + int(1536 / max(row_bytes(X), 1.0)))


@inlined
def prefetch(X: Rows, order: Any, k: int, ahead: int, feat: Float) -> None:
    """Prefetch a row to come and, if rows are sparse, the features of the next."""
    last = order.shape[0] - 1
    fetch_row(X, order[min(k + ahead, last)])
    _fetch_features(X, order[min(k + 1, last)], feat)
