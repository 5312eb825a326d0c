"""Rows of a matrix, dense or CSR, behind one set of names.

The only module that knows how a matrix is laid out, but for groups of dense rows
(:mod:`aucmax.core.groups`). A kernel takes ``X`` from :func:`as_rows` and the feature
table from :func:`as_hot`, and calls the ``…_row`` functions; Numba picks the loop by
the type of ``X`` when it compiles the kernel.

Of each function, the Python body is the definition (it runs when the compiler is off,
and the tests hold the loops to it); the two overloads after it are its loops.

Rows are seen centred, x̃ = x - ref. A dense loop subtracts. A sparse one visits the
stored values as if ``ref`` were zero and then the ``listed`` features, those with a
reference point, as if their value were zero (see :mod:`aucmax.core.table`).
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.bits import trailing_zeros, without_first
from aucmax.core.jit import INLINE, SIMD, inlined
from aucmax.core.lanes import CACHE_LINE, fetch
from aucmax.core.sketch import meet
from aucmax.core.table import (
    L2,
    NZ,
    SQ,
    SUM,
    TOLERANCE,
    D,
    Float,
    U,
    W,
    off_scale,
    rescale,
)

_WORD = np.uint64(64)  # bits
_FETCHED = 128  # features at most: the nearest cache has room for 500

Index: TypeAlias = NDArray[np.uint32]
Listed: TypeAlias = Index | None  # dense rows need no list, see below


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


def _lines(size: int) -> Float:
    """Return an array that begins on a cache line."""
    raw = np.empty(size + CACHE_LINE // 8)  # zeros are on small pages
    start = -raw.ctypes.data // 8 % (CACHE_LINE // 8)
    return raw[start : start + size]


def zeros_for(X: Rows, height: int, width: int) -> Float:
    """Return a table of zeros, stored as rows of this kind like it."""
    if not isinstance(X, CSR):
        return np.zeros((height, width))
    raw = _lines(height * width)
    raw[:] = 0.0
    return raw.reshape(width, height).T


def as_hot(hot: Float, X: Rows) -> Float:
    """Store ``hot`` as rows of this kind like it; see :mod:`aucmax.core.table`."""
    if not isinstance(X, CSR):
        return np.ascontiguousarray(hot)
    if hot.flags.f_contiguous and hot.ctypes.data % CACHE_LINE == 0:
        return hot
    return _by_feature(hot)


def _by_feature(*parts: Float) -> Float:
    """Return copies of the parts as one, feature by feature, on a cache line."""
    slots = [slot for part in parts for slot in part]
    height, width = len(slots), slots[0].size
    by_feature = _lines(height * width).reshape(width, height)
    for k, slot in enumerate(slots):
        by_feature[:, k] = slot
    return by_feature.T


def side_by_side(hot: Float, cold: Float, X: Rows) -> tuple[Float, Float]:
    """Store both, for rows of this kind, so that a feature's numbers share a line."""
    if not isinstance(X, CSR):
        return as_hot(hot, X), as_hot(cold, X)
    height = len(hot) + len(cold)
    apart = cold.ctypes.data - hot.ctypes.data
    strides = (hot.itemsize, height * hot.itemsize)
    if hot.strides == cold.strides == strides and apart == hot.itemsize * len(hot):
        return hot, cold
    both = _by_feature(hot, cold)
    return both[: len(hot)], both[len(hot) :]


def n_rows(X: Rows) -> int:
    """Return the number of rows."""
    return len(X.indptr) - 1 if isinstance(X, CSR) else len(X)


def stored(X: Rows) -> int:
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


def _dense_row(X: Rows, i: int, width: int) -> Float:
    if not isinstance(X, CSR):
        return X[i].astype(np.float64)
    x = np.zeros(width)
    at = slice(int(X.indptr[i]), int(X.indptr[i + 1]))
    x[X.indices[at]] = X.data[at]
    return x


def listed(X: Rows, ref: Float) -> Listed:
    """Return the features that sparse rows visit even where they store nothing."""
    if isinstance(X, CSR):
        return np.flatnonzero(ref).astype(np.uint32)
    return None


@overload(listed, jit_options=INLINE)
def _listed_dense(X, ref):
    if isinstance(X, types.Array):
        return lambda X, ref: None


@overload(listed, jit_options=INLINE)
def _listed_csr(X, ref):
    if isinstance(X, types.BaseTuple):

        def loop(X, ref):
            count = 0  # of a wide table mostly none: one look at it is enough
            for j in range(ref.shape[0]):
                count += ref[j] != 0.0
            features = np.empty(count, np.uint32)
            j = 0
            for k in range(count):
                while ref[j] == 0.0:
                    j += 1
                features[k] = j
                j += 1
            return features

        return loop


def _fetch(near: int) -> Any:
    """Return a function that asks for the line ``offset`` bytes into an array."""

    def ask(typing_context, array, offset):
        def emit(context, builder, signature, args):
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            fetch(builder, data, args[1], near)
            return context.get_dummy_value()

        return types.void(array, types.intp), emit

    return intrinsic(ask)


_fetch_far, _fetch_near = _fetch(near=2), _fetch(near=3)


def fetch_row(X: Rows, i: int) -> None:
    """Ask for row ``i`` some time before it is visited; changes nothing else."""


@overload(fetch_row, jit_options=INLINE)
def _fetch_row_dense(X, i):
    if isinstance(X, types.Array):

        def loop(X, i):
            start = np.intp(i) * X.strides[0]
            for offset in range(start, start + X.strides[0], CACHE_LINE):
                _fetch_far(X, offset)

        return loop


@overload(fetch_row, jit_options=INLINE)
def _fetch_row_csr(X, i):
    if isinstance(X, types.BaseTuple):

        def loop(X, i):
            start = np.intp(X.indptr[i])
            stop = min(np.intp(X.indptr[i + 1]), start + _FETCHED)
            size = X.data.itemsize
            for offset in range(start * size, stop * size, CACHE_LINE):
                _fetch_near(X.data, offset)
            for offset in range(start * 4, stop * 4, CACHE_LINE):
                _fetch_near(X.indices, offset)

        return loop


def fetch_number(numbers: Float, i: int) -> None:
    """Ask for a number some time before it is read; changes nothing else."""


@overload(fetch_number, jit_options=INLINE)
def _fetch_number(numbers, i):
    return lambda numbers, i: _fetch_near(numbers, np.intp(i) * 8)


def fetch_ahead(X: Rows, pairs: bool = False) -> int:
    """Return how many steps before its visit a row, or a pair, is best asked for.

    A multiple of the size of a group, see :mod:`aucmax.core.groups`.
    """
    if pairs and isinstance(X, CSR):  # farther apart in memory than runs of rows
        return 4
    return 4 * (2 + int(1536 / max(row_bytes(X), 1.0)))


def fetch_features_row(X: Rows, i: int, hot: Float) -> None:
    """Ask for the features of the next row, ``i``, if it is sparse.

    They are all over the table. Where statistics are learnt as well, all there is of a
    feature shares a cache line, and its first visit writes.
    """


@overload(fetch_features_row, jit_options=INLINE)
def _fetch_features_dense(X, i, hot):
    if isinstance(X, types.Array):
        return lambda X, i, hot: None


@overload(fetch_features_row, jit_options=INLINE)
def _fetch_features_csr(X, i, hot):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot):
            start = X.indptr[i]
            for k in range(start, min(X.indptr[i + 1], start + np.uint64(_FETCHED))):
                _fetch_near(hot, np.intp(X.indices[k]) * hot.strides[1])

        return loop


def copy_row(X: Rows, i: int, factor: float, ref: Float, out: Float) -> None:
    """Write ``factor`` (x - ref) to ``out``: for what costs more than O(d) anyway."""
    out[: len(ref)] = factor * (_dense_row(X, i, len(ref)) - ref)


@overload(copy_row, jit_options=SIMD)
def _copy_row_dense(X, i, factor, ref, out):
    if isinstance(X, types.Array):

        def loop(X, i, factor, ref, out):
            for j in range(X.shape[1]):
                out[j] = factor * (X[i, j] - ref[j])

        return loop


@overload(copy_row, jit_options=INLINE)
def _copy_row_csr(X, i, factor, ref, out):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, factor, ref, out):
            for j in range(ref.shape[0]):
                out[j] = -factor * ref[j]
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j = X.indices[k]
                out[j] = factor * (X.data[k] - ref[j])

        return loop


def count_row(X: Rows, i: int) -> int:
    """Return how many values of row ``i`` are not zero."""
    if isinstance(X, CSR):
        return int(np.count_nonzero(X.data[X.indptr[i] : X.indptr[i + 1]]))
    return int(np.count_nonzero(X[i]))


@overload(count_row, jit_options=SIMD)
def _count_row_dense(X, i):
    if isinstance(X, types.Array):

        def loop(X, i):
            count = 0
            for j in range(X.shape[1]):
                count += X[i, j] != 0.0
            return count

        return loop


@overload(count_row, jit_options=SIMD)
def _count_row_csr(X, i):
    if isinstance(X, types.BaseTuple):

        def loop(X, i):
            count = 0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                count += X.data[k] != 0.0
            return count

        return loop


def pack_row(X: Rows, i: int, out: Float, at: NDArray[Any]) -> int:
    """Write what is not zero in row ``i`` to ``out``, and where it is to ``at``.

    Returns how many values that are: the row is then the same from any layout.
    """
    if isinstance(X, CSR):
        here = slice(int(X.indptr[i]), int(X.indptr[i + 1]))
        values, features = X.data[here], X.indices[here]
    else:
        values, features = X[i], np.arange(X.shape[1], dtype=np.uint32)
    count = int(np.count_nonzero(values))
    out[:count], at[:count] = values[values != 0.0], features[values != 0.0]
    return count


@overload(pack_row, jit_options=INLINE)
def _pack_row_dense(X, i, out, at):
    if isinstance(X, types.Array):

        def loop(X, i, out, at):
            count = 0
            for j in range(X.shape[1]):
                if X[i, j] != 0.0:
                    out[count] = X[i, j]
                    at[count] = j
                    count += 1
            return count

        return loop


@overload(pack_row, jit_options=INLINE)
def _pack_row_csr(X, i, out, at):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, out, at):
            count = 0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                if X.data[k] != 0.0:
                    out[count] = X.data[k]
                    at[count] = X.indices[k]
                    count += 1
            return count

        return loop


def centred_row(
    X: Rows, i: int, ref: Float, listed: Listed, out: Float, at: NDArray[Any]
) -> int:
    """Write what is not zero in x - ref to ``out``, and where it is to ``at``.

    But for the odd value that equals its reference point, which is written all the
    same. Returns how many values that are.
    """
    x = _dense_row(X, i, len(ref))
    found = np.flatnonzero((x != 0.0) | (ref != 0.0))
    out[: len(found)], at[: len(found)] = (x - ref)[found], found
    return len(found)


@overload(centred_row, jit_options=INLINE)
def _centred_row_dense(X, i, ref, listed, out, at):
    if isinstance(X, types.Array):

        def loop(X, i, ref, listed, out, at):
            count = 0
            for j in range(X.shape[1]):
                if X[i, j] != 0.0 or ref[j] != 0.0:
                    out[count] = X[i, j] - ref[j]
                    at[count] = j
                    count += 1
            return count

        return loop


@overload(centred_row, jit_options=INLINE)
def _centred_row_csr(X, i, ref, listed, out, at):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, ref, listed, out, at):
            count = 0
            k, stop = X.indptr[i], X.indptr[i + 1]
            for m in range(listed.shape[0] + 1):  # merge two sorted lists
                end = m == listed.shape[0]
                feature = np.uint32(0) if end else listed[m]
                while k < stop and (end or X.indices[k] < feature):
                    if X.data[k] != 0.0:
                        out[count] = X.data[k]
                        at[count] = X.indices[k]
                        count += 1
                    k += np.uint64(1)
                if not end:
                    out[count] = -ref[feature]
                    at[count] = feature
                    if k < stop and X.indices[k] == feature:
                        out[count] += X.data[k]
                        k += np.uint64(1)
                    count += 1
            return count

        return loop


def raw_dot_row(X: Rows, i: int, w: Float) -> float:
    """Return w·x, not centred."""
    return float(w @ _dense_row(X, i, len(w)))


@overload(raw_dot_row, jit_options=SIMD)
def _raw_dot_row_dense(X, i, w):
    if isinstance(X, types.Array):

        def loop(X, i, w):
            s = 0.0
            for j in range(X.shape[1]):
                s += w[j] * X[i, j]
            return s

        return loop


@overload(raw_dot_row, jit_options=INLINE)
def _raw_dot_row_csr(X, i, w):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, w):
            s = 0.0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                s += w[X.indices[k]] * X.data[k]
            return s

        return loop


def raw_add_row(X: Rows, i: int, c: float, out: Float) -> None:
    """Add c x, not centred, to ``out``."""
    out += c * _dense_row(X, i, len(out))


@overload(raw_add_row, jit_options=SIMD)
def _raw_add_row_dense(X, i, c, out):
    if isinstance(X, types.Array):

        def loop(X, i, c, out):
            for j in range(X.shape[1]):
                out[j] += c * X[i, j]

        return loop


@overload(raw_add_row, jit_options=INLINE)
def _raw_add_row_csr(X, i, c, out):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, c, out):
            for k in range(X.indptr[i], X.indptr[i + 1]):
                out[X.indices[k]] += c * X.data[k]

        return loop


def tally_row(X: Rows, i: int, weight: float, side: int, sums: Float) -> None:
    """Add ``weight`` times x, x² and [x ≠ 0] to three pairs of slots of ``sums``.

    Of each pair, to the one of this ``side``.
    """
    x = _dense_row(X, i, sums.shape[1])
    sums[side] += weight * x
    sums[2 + side] += weight * x * x
    sums[4 + side] += weight * (x != 0.0)


@overload(tally_row, jit_options=SIMD)
def _tally_row_dense(X, i, weight, side, sums):
    if isinstance(X, types.Array):

        def loop(X, i, weight, side, sums):
            for j in range(X.shape[1]):
                x = np.float64(X[i, j])
                sums[side, j] += weight * x
                sums[2 + side, j] += weight * x * x
                sums[4 + side, j] += weight if x != 0.0 else 0.0

        return loop


@overload(tally_row, jit_options=INLINE)
def _tally_row_csr(X, i, weight, side, sums):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, weight, side, sums):
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j, x = X.indices[k], np.float64(X.data[k])
                sums[side, j] += weight * x
                sums[2 + side, j] += weight * x * x
                sums[4 + side, j] += weight if x != 0.0 else 0.0

        return loop


def learn_row(
    X: Rows,
    i: int,
    weight: float,
    side: int,
    hot: Float,
    cold: Float,
    ref: Float,
    listed: Listed,
) -> None:
    """Add row ``i`` of a stream to the class moments of the table."""
    x = _dense_row(X, i, len(ref))
    hot[SUM + side] += weight * x
    cold[SQ + side] += weight * (x - ref) ** 2
    cold[NZ] += weight * (x != 0.0)


@overload(learn_row, jit_options=SIMD)
def _learn_row_dense(X, i, weight, side, hot, cold, ref, listed):
    if isinstance(X, types.Array):

        def loop(X, i, weight, side, hot, cold, ref, listed):
            for j in range(X.shape[1]):
                x = np.float64(X[i, j])
                off = x - ref[j]
                hot[SUM + side, j] += weight * x
                cold[SQ + side, j] += weight * off * off
                cold[NZ, j] += weight if x != 0.0 else 0.0

        return loop


@overload(learn_row, jit_options=INLINE)
def _learn_row_csr(X, i, weight, side, hot, cold, ref, listed):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, weight, side, hot, cold, ref, listed):
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j, x = X.indices[k], np.float64(X.data[k])
                hot[SUM + side, j] += weight * x
                cold[SQ + side, j] += weight * x * x
                cold[NZ, j] += weight if x != 0.0 else 0.0
            # A branch here would count references, at every row (see CONTRIBUTING).
            stop = X.indptr[i + 1] if listed.shape[0] > 0 else X.indptr[i]
            for k in range(X.indptr[i], stop):
                j, x = X.indices[k], np.float64(X.data[k])
                cold[SQ + side, j] -= 2.0 * weight * x * ref[j]
            for j in listed:
                cold[SQ + side, j] += weight * ref[j] * ref[j]

        return loop


def meet_row(
    X: Rows,
    i: int,
    hot: Float,
    cold: Float,
    ref: Float,
    mark: Float | None,
    to_pos: float,
    to_neg: float,
    l2: L2,
    past: float | None,
    own: float,
) -> tuple[float, float, float, float]:
    """Rescale the features that row ``i`` has, from the class moments so far.

    ``own`` makes the share of the row in a second moment of its square. Returns by how
    much that changes the row's own score, the mean scores of the
    classes, and the squared norm Σ w²/D.
    """
    x = _dense_row(X, i, len(ref))
    before = hot[W].copy()
    pull = np.divide(hot[W], hot[D], out=np.zeros_like(before), where=hot[D] > 0.0)
    for j in np.flatnonzero(x):
        off = float(x[j] - ref[j])
        share = own * off * off
        rescale(hot, cold, mark, int(j), to_pos, to_neg, l2, past, share)
    change = hot[W] - before
    return (
        float(change @ (x - ref)),
        float(change @ (hot[SUM] * to_pos - ref)),
        float(change @ (hot[SUM + 1] * to_neg - ref)),
        float(change @ pull),
    )


@overload(meet_row, jit_options=SIMD)
def _meet_row_dense(X, i, hot, cold, ref, mark, to_pos, to_neg, l2, past, own):
    if isinstance(X, types.Array):

        def loop(X, i, hot, cold, ref, mark, to_pos, to_neg, l2, past, own):
            s = a = b = q = 0.0
            misfits = 0  # a loop that only reads runs in SIMD, and mostly that is all
            for j in range(X.shape[1]):
                off = off_scale(hot, cold, j, to_pos, to_neg, l2, TOLERANCE)
                misfits += off & (X[i, j] != 0.0)
            if misfits == 0:
                return s, a, b, q
            for j in range(X.shape[1]):
                if X[i, j] != 0.0:
                    pull = hot[W, j] / hot[D, j] if hot[D, j] > 0.0 else 0.0
                    off = X[i, j] - ref[j]
                    share = own * off * off
                    change = rescale(
                        hot, cold, mark, j, to_pos, to_neg, l2, past, share
                    )
                    s += change * off
                    a += change * (hot[SUM, j] * to_pos - ref[j])
                    b += change * (hot[SUM + 1, j] * to_neg - ref[j])
                    q += change * pull
            return s, a, b, q

        return loop


@overload(meet_row, jit_options=INLINE)
def _meet_row_csr(X, i, hot, cold, ref, mark, to_pos, to_neg, l2, past, own):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, cold, ref, mark, to_pos, to_neg, l2, past, own):
            s = a = b = q = 0.0
            # Nobody can guess which scale is off, so the search has no branch.
            for start in range(X.indptr[i], X.indptr[i + 1], _WORD):
                misfits = np.uint64(0)
                for k in range(start, min(X.indptr[i + 1], start + _WORD)):
                    j = X.indices[k]
                    off = off_scale(hot, cold, j, to_pos, to_neg, l2, TOLERANCE)
                    here = off & (X.data[k] != 0.0)
                    misfits |= np.uint64(here) << (k - start)
                while misfits != 0:
                    at = start + np.uint64(trailing_zeros(misfits))
                    misfits = without_first(misfits)
                    j, x = X.indices[at], np.float64(X.data[at])
                    pull = hot[W, j] / hot[D, j] if hot[D, j] > 0.0 else 0.0
                    off = x - ref[j]
                    share = own * off * off
                    change = rescale(
                        hot, cold, mark, j, to_pos, to_neg, l2, past, share
                    )
                    s += change * off
                    a += change * (hot[SUM, j] * to_pos - ref[j])
                    b += change * (hot[SUM + 1, j] * to_neg - ref[j])
                    q += change * pull
            return s, a, b, q

        return loop


def look_row(
    X: Rows,
    i: int,
    hot: Float,
    ref: Float,
    listed: Listed,
    to_pos: float,
    to_neg: float,
) -> tuple[float, float, float, float]:
    """Return what a step along row ``i`` needs to know, in one visit.

    With z = D x̃, the direction of the step: the score w·x̃, the squared norm z·x̃, and
    how fast the step moves the mean scores of the classes, z·(m₊ - ref) and
    z·(m₋ - ref).
    """
    x = _dense_row(X, i, len(ref)) - ref
    z = hot[D] * x
    return (
        float(hot[W] @ x),
        float(z @ x),
        float(z @ (hot[SUM] * to_pos - ref)),
        float(z @ (hot[SUM + 1] * to_neg - ref)),
    )


@overload(look_row, jit_options=SIMD)
def _look_row_dense(X, i, hot, ref, listed, to_pos, to_neg):
    if isinstance(X, types.Array):

        def loop(X, i, hot, ref, listed, to_pos, to_neg):
            s = q = a = b = 0.0
            for j in range(X.shape[1]):
                r = ref[j]
                x = X[i, j] - r
                z = hot[D, j] * x
                s += hot[W, j] * x
                q += z * x
                a += z * (hot[SUM, j] * to_pos - r)
                b += z * (hot[SUM + 1, j] * to_neg - r)
            return s, q, a, b

        return loop


@overload(look_row, jit_options=INLINE)
def _look_row_csr(X, i, hot, ref, listed, to_pos, to_neg):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, ref, listed, to_pos, to_neg):
            s = q = a = b = 0.0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j, x = X.indices[k], np.float64(X.data[k])
                z = hot[D, j] * x
                s += hot[W, j] * x
                q += z * x
                a += z * hot[SUM, j]
                b += z * hot[SUM + 1, j]
            # A branch here would count references, at every row (see CONTRIBUTING).
            cross = 0.0
            stop = X.indptr[i + 1] if listed.shape[0] > 0 else X.indptr[i]
            for k in range(X.indptr[i], stop):
                j = X.indices[k]
                cross += hot[D, j] * X.data[k] * ref[j]
            q -= 2.0 * cross  # with ref² below: D (x - ref)²
            a = a * to_pos - cross
            b = b * to_neg - cross
            for j in listed:
                r = ref[j]
                z = -hot[D, j] * r
                s -= hot[W, j] * r
                q -= z * r
                a += z * (hot[SUM, j] * to_pos - r)
                b += z * (hot[SUM + 1, j] * to_neg - r)
            return s, q, a, b

        return loop


def move_row(
    X: Rows,
    i: int,
    hot: Float,
    cold: Float,
    ref: Float,
    listed: Listed,
    c: float,
    past: float,
) -> None:
    """Step along row ``i``: w += c D x̃, and the average's part u += past · c D x̃."""
    z = hot[D] * (_dense_row(X, i, hot.shape[1]) - ref)
    hot[W] += c * z
    cold[U] += past * c * z


@overload(move_row, jit_options=SIMD)
def _move_row_dense(X, i, hot, cold, ref, listed, c, past):
    if isinstance(X, types.Array):

        def loop(X, i, hot, cold, ref, listed, c, past):
            for j in range(X.shape[1]):
                z = c * (hot[D, j] * (X[i, j] - ref[j]))
                hot[W, j] += z
                cold[U, j] += past * z

        return loop


@overload(move_row, jit_options=INLINE)
def _move_row_csr(X, i, hot, cold, ref, listed, c, past):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, cold, ref, listed, c, past):
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j, x = X.indices[k], np.float64(X.data[k])
                z = c * (hot[D, j] * x)
                hot[W, j] += z
                cold[U, j] += past * z
            for j in listed:
                z = -c * (hot[D, j] * ref[j])
                hot[W, j] += z
                cold[U, j] += past * z

        return loop


def gather_row(
    X: Rows, i: int, hot: Float, ref: Float, listed: Listed, B: Float, u: Float
) -> None:
    """Write BᵀD x̃ to ``u``: B has a row of numbers for each feature."""
    u[:] = B.T @ (hot[D] * (_dense_row(X, i, hot.shape[1]) - ref))


@overload(gather_row, jit_options=SIMD)
def _gather_row_dense(X, i, hot, ref, listed, B, u):
    if isinstance(X, types.Array):

        def loop(X, i, hot, ref, listed, B, u):
            u[:] = 0.0
            for j in range(X.shape[1]):
                z = hot[D, j] * (X[i, j] - ref[j])
                if z != 0.0:
                    for k in range(u.shape[0]):
                        u[k] += z * B[j, k]

        return loop


@overload(gather_row, jit_options=SIMD)
def _gather_row_csr(X, i, hot, ref, listed, B, u):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, ref, listed, B, u):
            u[:] = 0.0
            for at in range(X.indptr[i], X.indptr[i + 1]):
                j = X.indices[at]
                z = hot[D, j] * X.data[at]
                for k in range(u.shape[0]):
                    u[k] += z * B[j, k]
            for j in listed:
                z = hot[D, j] * -ref[j]
                for k in range(u.shape[0]):
                    u[k] += z * B[j, k]

        return loop


def resize_row(
    X: Rows,
    i: int,
    hot: Float,
    cold: Float,
    ref: Float,
    listed: Listed,
    B: Float,
    M: Float,
    k: Float,
    to_pos: float,
    to_neg: float,
    l2: L2,
) -> None:
    """Rescale the features that a step along row ``i`` moves: aucmax.core.sketch."""
    moved = (_dense_row(X, i, hot.shape[1]) != 0.0) | (ref != 0.0)
    for j in np.flatnonzero(moved):
        meet(hot, cold, B, M, k, int(j), to_pos, to_neg, l2)


@overload(resize_row, jit_options=INLINE)
def _resize_row_dense(X, i, hot, cold, ref, listed, B, M, k, to_pos, to_neg, l2):
    if isinstance(X, types.Array):

        def loop(X, i, hot, cold, ref, listed, B, M, k, to_pos, to_neg, l2):
            for j in range(X.shape[1]):
                if X[i, j] != 0.0 or ref[j] != 0.0:
                    meet(hot, cold, B, M, k, j, to_pos, to_neg, l2)

        return loop


@overload(resize_row, jit_options=INLINE)
def _resize_row_csr(X, i, hot, cold, ref, listed, B, M, k, to_pos, to_neg, l2):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, cold, ref, listed, B, M, k, to_pos, to_neg, l2):
            for at in range(X.indptr[i], X.indptr[i + 1]):
                if X.data[at] != 0.0:
                    j = int(X.indices[at])
                    meet(hot, cold, B, M, k, j, to_pos, to_neg, l2)
            for j in listed:
                meet(hot, cold, B, M, k, int(j), to_pos, to_neg, l2)

        return loop


def spread_row(
    X: Rows,
    i: int,
    hot: Float,
    cold: Float,
    ref: Float,
    listed: Listed,
    B: Float,
    e: Float,
    start: int,
    c: float,
    past: float,
) -> None:
    """Add x̃eᵀ to the columns of B from ``start``, c D x̃ to w, ``past`` D x̃ to u.

    A feature with a reference point and no scale has been constant: its x̃ is rounding.
    """
    x = _dense_row(X, i, hot.shape[1]) - ref
    x[(ref != 0.0) & (hot[D] == 0.0)] = 0.0
    hot[W] += c * hot[D] * x
    cold[U] += past * hot[D] * x
    B[:, start : start + len(e)] += np.outer(x, e)


@overload(spread_row, jit_options=SIMD)
def _spread_row_dense(X, i, hot, cold, ref, listed, B, e, start, c, past):
    if isinstance(X, types.Array):

        def loop(X, i, hot, cold, ref, listed, B, e, start, c, past):
            for j in range(X.shape[1]):
                x = X[i, j] - ref[j]
                hot[W, j] += c * (hot[D, j] * x)
                cold[U, j] += past * (hot[D, j] * x)
                if x != 0.0 and (hot[D, j] > 0.0 or ref[j] == 0.0):
                    for k in range(e.shape[0]):
                        B[j, start + k] += x * e[k]

        return loop


@overload(spread_row, jit_options=SIMD)
def _spread_row_csr(X, i, hot, cold, ref, listed, B, e, start, c, past):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, cold, ref, listed, B, e, start, c, past):
            for at in range(X.indptr[i], X.indptr[i + 1]):
                j, x = X.indices[at], np.float64(X.data[at])
                hot[W, j] += c * (hot[D, j] * x)
                cold[U, j] += past * (hot[D, j] * x)
                if hot[D, j] > 0.0 or ref[j] == 0.0:
                    for k in range(e.shape[0]):
                        B[j, start + k] += x * e[k]
            for j in listed:
                x = -ref[j]
                hot[W, j] += c * (hot[D, j] * x)
                cold[U, j] += past * (hot[D, j] * x)
                if hot[D, j] > 0.0:
                    for k in range(e.shape[0]):
                        B[j, start + k] += x * e[k]

        return loop


def sum_row(X: Rows, i: int, hot: Float, ref: Float, listed: Listed) -> float:
    """Return Σ |w|/√D over the features that a step along row ``i`` moves."""
    moved = (_dense_row(X, i, hot.shape[1]) != 0.0) | (ref != 0.0)
    moved &= hot[D] > 0.0  # else met for the first time
    return float(np.sum(np.abs(hot[W, moved]) / np.sqrt(hot[D, moved])))


@overload(sum_row, jit_options=SIMD)
def _sum_row_dense(X, i, hot, ref, listed):
    if isinstance(X, types.Array):

        def loop(X, i, hot, ref, listed):
            s = 0.0
            for j in range(X.shape[1]):
                moved = X[i, j] != 0.0 or ref[j] != 0.0
                if moved and hot[D, j] > 0.0:
                    s += abs(hot[W, j]) / np.sqrt(hot[D, j])
            return s

        return loop


@overload(sum_row, jit_options=INLINE)
def _sum_row_csr(X, i, hot, ref, listed):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, ref, listed):
            s = 0.0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j = X.indices[k]
                if X.data[k] != 0.0 and ref[j] == 0.0 and hot[D, j] > 0.0:
                    s += abs(hot[W, j]) / np.sqrt(hot[D, j])
            for j in listed:
                if hot[D, j] > 0.0:
                    s += abs(hot[W, j]) / np.sqrt(hot[D, j])
            return s

        return loop


def dot_row(
    X: Rows, i: int, table: Float, slot: int, ref: Float, listed: Listed
) -> float:
    """Return the product of a slot of ``table`` with the centred row, v·x̃."""
    return float(table[slot] @ (_dense_row(X, i, table.shape[1]) - ref))


@overload(dot_row, jit_options=SIMD)
def _dot_row_dense(X, i, table, slot, ref, listed):
    if isinstance(X, types.Array):

        def loop(X, i, table, slot, ref, listed):
            s = 0.0
            for j in range(X.shape[1]):
                s += table[slot, j] * (X[i, j] - ref[j])
            return s

        return loop


@overload(dot_row, jit_options=INLINE)
def _dot_row_csr(X, i, table, slot, ref, listed):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, table, slot, ref, listed):
            s = 0.0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                s += table[slot, X.indices[k]] * np.float64(X.data[k])
            for j in listed:
                s -= table[slot, j] * ref[j]
            return s

        return loop


def add_row(
    X: Rows, i: int, c: float, table: Float, slot: int, ref: Float, listed: Listed
) -> None:
    """Add ``c`` times the centred row to a slot of ``table``."""
    table[slot] += c * (_dense_row(X, i, table.shape[1]) - ref)


@overload(add_row, jit_options=SIMD)
def _add_row_dense(X, i, c, table, slot, ref, listed):
    if isinstance(X, types.Array):

        def loop(X, i, c, table, slot, ref, listed):
            for j in range(X.shape[1]):
                table[slot, j] += c * (X[i, j] - ref[j])

        return loop


@overload(add_row, jit_options=INLINE)
def _add_row_csr(X, i, c, table, slot, ref, listed):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, c, table, slot, ref, listed):
            for k in range(X.indptr[i], X.indptr[i + 1]):
                table[slot, X.indices[k]] += c * np.float64(X.data[k])
            for j in listed:
                table[slot, j] -= c * ref[j]

        return loop


def mark_row(X: Rows, i: int, c: float, table: Float, slot: int) -> None:
    """Add ``c`` to a slot of ``table`` wherever row ``i`` is not zero."""
    table[slot] += c * (_dense_row(X, i, table.shape[1]) != 0.0)


@overload(mark_row, jit_options=SIMD)
def _mark_row_dense(X, i, c, table, slot):
    if isinstance(X, types.Array):

        def loop(X, i, c, table, slot):
            for j in range(X.shape[1]):
                table[slot, j] += c if X[i, j] != 0.0 else 0.0

        return loop


@overload(mark_row, jit_options=INLINE)
def _mark_row_csr(X, i, c, table, slot):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, c, table, slot):
            for k in range(X.indptr[i], X.indptr[i + 1]):
                if X.data[k] != 0.0:
                    table[slot, X.indices[k]] += c

        return loop


def prox_row(
    X: Rows,
    i: int,
    hot: Float,
    ref: Float,
    listed: Listed,
    pull: Float,
    c: float,
    eta: float,
    ridge: Float,
    l1: float,
    to_pos: float,
    to_neg: float,
) -> tuple[float, float]:
    """Take a proximal step on the features that row ``i`` has, and only on those.

    Down the gradient c x̃ + pull[0], in the metric of D, then the proximal map of
    pull[1] times the penalty ½ Σ ridge_j w_j² + l1 ‖w‖₁. Every row has the features
    with a reference point. Returns by how much the mean scores of the classes change.
    """
    x = _dense_row(X, i, len(ref))
    here = (x != 0.0) | (ref != 0.0)
    step = eta * hot[D]
    w = hot[W] - step * (c * (x - ref) + pull[0])
    share = step * pull[1]
    w = np.sign(w) * np.maximum(np.abs(w) - l1 * share, 0.0) / (1.0 + ridge * share)
    change = np.where(here, w - hot[W], 0.0)
    hot[W] += change
    return (
        float(change @ (hot[SUM] * to_pos - ref)),
        float(change @ (hot[SUM + 1] * to_neg - ref)),
    )


@inlined
def _prox_step(hot, pull, j, gradient, eta, ridge, l1):
    """Return the change of weight ``j`` in a proximal step."""
    step = eta * hot[D, j]
    w = hot[W, j] - step * gradient
    share = step * pull[1, j]
    if l1 > 0.0:
        w -= min(max(w, -l1 * share), l1 * share)
    return w / (1.0 + ridge[j] * share) - hot[W, j]


@overload(prox_row, jit_options=SIMD)
def _prox_row_dense(X, i, hot, ref, listed, pull, c, eta, ridge, l1, to_pos, to_neg):
    if isinstance(X, types.Array):

        def loop(X, i, hot, ref, listed, pull, c, eta, ridge, l1, to_pos, to_neg):
            a = b = 0.0
            for j in range(X.shape[1]):
                r = ref[j]
                x = np.float64(X[i, j])
                gradient = c * (x - r) + pull[0, j]
                change = _prox_step(hot, pull, j, gradient, eta, ridge, l1)
                change = change if (x != 0.0) | (r != 0.0) else 0.0
                hot[W, j] += change
                a += change * (hot[SUM, j] * to_pos - r)
                b += change * (hot[SUM + 1, j] * to_neg - r)
            return a, b

        return loop


@overload(prox_row, jit_options=INLINE)
def _prox_row_csr(X, i, hot, ref, listed, pull, c, eta, ridge, l1, to_pos, to_neg):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, ref, listed, pull, c, eta, ridge, l1, to_pos, to_neg):
            a = b = a_listed = b_listed = 0.0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j, x = X.indices[k], np.float64(X.data[k])
                r = ref[j]
                if r != 0.0:  # the rest of its step is below
                    change = -eta * hot[D, j] * c * x
                    a_listed -= change * r
                    b_listed -= change * r
                elif x != 0.0:
                    gradient = c * x + pull[0, j]
                    change = _prox_step(hot, pull, j, gradient, eta, ridge, l1)
                else:
                    continue
                hot[W, j] += change
                a += change * hot[SUM, j]
                b += change * hot[SUM + 1, j]
            a = a * to_pos + a_listed
            b = b * to_neg + b_listed
            for j in listed:
                r = ref[j]
                gradient = pull[0, j] - c * r
                change = _prox_step(hot, pull, j, gradient, eta, ridge, l1)
                hot[W, j] += change
                a += change * (hot[SUM, j] * to_pos - r)
                b += change * (hot[SUM + 1, j] * to_neg - r)
            return a, b

        return loop


def start_row(
    X: Rows, i: int, hot: Float, ref: Float, listed: Listed, origin: Float
) -> float:
    """Return the score of row ``i`` by other weights, those of ``origin`` times D."""
    x = _dense_row(X, i, hot.shape[1]) - ref
    return float((origin * hot[D]) @ x)


@overload(start_row, jit_options=SIMD)
def _start_row_dense(X, i, hot, ref, listed, origin):
    if isinstance(X, types.Array):

        def loop(X, i, hot, ref, listed, origin):
            s = 0.0
            for j in range(X.shape[1]):
                s += origin[j] * (hot[D, j] * (X[i, j] - ref[j]))
            return s

        return loop


@overload(start_row, jit_options=INLINE)
def _start_row_csr(X, i, hot, ref, listed, origin):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, ref, listed, origin):
            s = 0.0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j, x = X.indices[k], np.float64(X.data[k])
                s += origin[j] * (hot[D, j] * x)
            for j in listed:
                s -= origin[j] * (hot[D, j] * ref[j])
            return s

        return loop


def reach_row(
    X: Rows,
    i: int,
    hot: Float,
    ref: Float,
    listed: Listed,
    origin: Float,
    scale: float,
) -> float:
    """Return what ``sum_row`` does for the weights origin · D + scale · w."""
    moved = (_dense_row(X, i, hot.shape[1]) != 0.0) | (ref != 0.0)
    moved &= hot[D] > 0.0
    unit = np.sqrt(hot[D, moved])
    return float(np.sum(np.abs(origin[moved] * unit + scale * hot[W, moved] / unit)))


@overload(reach_row, jit_options=SIMD)
def _reach_row_dense(X, i, hot, ref, listed, origin, scale):
    if isinstance(X, types.Array):

        def loop(X, i, hot, ref, listed, origin, scale):
            s = 0.0
            for j in range(X.shape[1]):
                moved = X[i, j] != 0.0 or ref[j] != 0.0
                if moved and hot[D, j] > 0.0:
                    unit = np.sqrt(hot[D, j])
                    s += abs(origin[j] * unit + scale * hot[W, j] / unit)
            return s

        return loop


@overload(reach_row, jit_options=INLINE)
def _reach_row_csr(X, i, hot, ref, listed, origin, scale):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, ref, listed, origin, scale):
            s = 0.0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j = X.indices[k]
                if X.data[k] != 0.0 and ref[j] == 0.0 and hot[D, j] > 0.0:
                    unit = np.sqrt(hot[D, j])
                    s += abs(origin[j] * unit + scale * hot[W, j] / unit)
            for j in listed:
                if hot[D, j] > 0.0:
                    unit = np.sqrt(hot[D, j])
                    s += abs(origin[j] * unit + scale * hot[W, j] / unit)
            return s

        return loop


def score_pair_row(X: Rows, i: int, other: int, hot: Float) -> float:
    """Return w·z for the difference z of row ``i`` and the ``other`` one."""
    width = hot.shape[1]
    return float(hot[W] @ (_dense_row(X, i, width) - _dense_row(X, other, width)))


@overload(score_pair_row, jit_options=SIMD)
def _score_pair_row_dense(X, i, other, hot):
    if isinstance(X, types.Array):

        def loop(X, i, other, hot):
            s = 0.0
            for j in range(X.shape[1]):
                s += hot[W, j] * (np.float64(X[i, j]) - X[other, j])
            return s

        return loop


@overload(score_pair_row, jit_options=INLINE)
def _score_pair_row_csr(X, i, other, hot):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, other, hot):
            s = b = 0.0  # two sums, so that one need not wait for the other
            for k in range(X.indptr[i], X.indptr[i + 1]):
                s += hot[W, X.indices[k]] * np.float64(X.data[k])
            for k in range(X.indptr[other], X.indptr[other + 1]):
                b += hot[W, X.indices[k]] * np.float64(X.data[k])
            return s - b

        return loop


@inlined
def _merged_length(indices, data, a, a_stop, index, value, b, b_stop, hot):
    """Return z·Dz of the difference of two sparse rows, each sorted by feature.

    The processor cannot guess which row is ahead, so it is not asked to: the loop has
    no branch but its end.
    """
    q = 0.0
    while a < a_stop and b < b_stop:
        mine, its = np.int64(indices[a]), np.int64(index[b])
        x, other = np.float64(data[a]), np.float64(value[b])
        first, second = mine <= its, its <= mine
        z = (x if first else 0.0) - (other if second else 0.0)
        q += (hot[D, min(mine, its)] * z) * z
        a += np.int64(first)
        b += np.int64(second)
    for k in range(a, a_stop):
        x = np.float64(data[k])
        q += (hot[D, np.int64(indices[k])] * x) * x
    for k in range(b, b_stop):
        x = np.float64(value[k])
        q += (hot[D, np.int64(index[k])] * x) * x
    return q


def length_pair_row(X: Rows, i: int, other: int, hot: Float, room: Float) -> float:
    """Return the squared length z·Dz of a difference, in the metric of the steps.

    ``room`` has a number a feature, all of them zero before and after. (To merge the
    features of two sparse rows takes twice as long: each step waits for the last one.)
    """
    width = hot.shape[1]
    z = _dense_row(X, i, width) - _dense_row(X, other, width)
    return float((hot[D] * z) @ z)


@overload(length_pair_row, jit_options=SIMD)
def _length_pair_row_dense(X, i, other, hot, room):
    if isinstance(X, types.Array):

        def loop(X, i, other, hot, room):
            q = 0.0
            for j in range(X.shape[1]):
                z = np.float64(X[i, j]) - X[other, j]
                q += (hot[D, j] * z) * z
            return q

        return loop


@overload(length_pair_row, jit_options=INLINE)
def _length_pair_row_csr(X, i, other, hot, room):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, other, hot, room):
            for k in range(X.indptr[i], X.indptr[i + 1]):
                room[X.indices[k]] = np.float64(X.data[k])
            q = r = 0.0
            for k in range(X.indptr[other], X.indptr[other + 1]):
                j = X.indices[k]
                z = room[j] - np.float64(X.data[k])
                q += (hot[D, j] * z) * z
                room[j] = 0.0
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j = X.indices[k]
                z = room[j]  # zero, if the other one has the feature, too
                r += (hot[D, j] * z) * z
                room[j] = 0.0
            return q + r

        return loop


def move_pair_row(
    X: Rows, i: int, other: int, hot: Float, cold: Float, c: float, past: float
) -> None:
    """Step along a difference: w += c D z, and the average's part u += past · c D z."""
    width = hot.shape[1]
    z = hot[D] * (_dense_row(X, i, width) - _dense_row(X, other, width))
    hot[W] += c * z
    cold[U] += past * c * z


@overload(move_pair_row, jit_options=SIMD)
def _move_pair_row_dense(X, i, other, hot, cold, c, past):
    if isinstance(X, types.Array):

        def loop(X, i, other, hot, cold, c, past):
            for j in range(X.shape[1]):
                z = c * (hot[D, j] * (np.float64(X[i, j]) - X[other, j]))
                hot[W, j] += z
                cold[U, j] += past * z

        return loop


@overload(move_pair_row, jit_options=INLINE)
def _move_pair_row_csr(X, i, other, hot, cold, c, past):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, other, hot, cold, c, past):
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j = X.indices[k]
                z = c * (hot[D, j] * np.float64(X.data[k]))
                hot[W, j] += z
                cold[U, j] += past * z
            for k in range(X.indptr[other], X.indptr[other + 1]):
                j = X.indices[k]
                z = c * (hot[D, j] * np.float64(X.data[k]))
                hot[W, j] -= z
                cold[U, j] -= past * z

        return loop


def raw_move_row(
    X: Rows, i: int, hot: Float, cold: Float, c: float, past: float
) -> None:
    """Step along row ``i``, not centred: w += c D x, and u += past · c D x."""
    z = hot[D] * _dense_row(X, i, hot.shape[1])
    hot[W] += c * z
    cold[U] += past * c * z


@overload(raw_move_row, jit_options=SIMD)
def _raw_move_row_dense(X, i, hot, cold, c, past):
    if isinstance(X, types.Array):

        def loop(X, i, hot, cold, c, past):
            for j in range(X.shape[1]):
                z = c * (hot[D, j] * X[i, j])
                hot[W, j] += z
                cold[U, j] += past * z

        return loop


@overload(raw_move_row, jit_options=INLINE)
def _raw_move_row_csr(X, i, hot, cold, c, past):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, cold, c, past):
            for k in range(X.indptr[i], X.indptr[i + 1]):
                j = X.indices[k]
                z = c * (hot[D, j] * np.float64(X.data[k]))
                hot[W, j] += z
                cold[U, j] += past * z

        return loop


def distance_row(
    X: Rows, i: int, hot: Float, index: Float, value: Float, start: int, stop: int
) -> float:
    """Return z·Dz of the difference of row ``i`` and a row packed by ``pack_row``."""
    z = _dense_row(X, i, hot.shape[1])
    z[index[start:stop].astype(np.int64)] -= value[start:stop]
    return float((hot[D] * z) @ z)


@overload(distance_row, jit_options=INLINE)
def _distance_row_dense(X, i, hot, index, value, start, stop):
    if isinstance(X, types.Array):

        def loop(X, i, hot, index, value, start, stop):
            q = 0.0
            for j in range(X.shape[1]):
                z = np.float64(X[i, j])
                if start < stop and index[start] == j:
                    z -= value[start]
                    start += 1
                q += (hot[D, j] * z) * z
            return q

        return loop


@overload(distance_row, jit_options=INLINE)
def _distance_row_csr(X, i, hot, index, value, start, stop):
    if isinstance(X, types.BaseTuple):

        def loop(X, i, hot, index, value, start, stop):
            a, a_stop = np.int64(X.indptr[i]), np.int64(X.indptr[i + 1])
            return _merged_length(
                X.indices, X.data, a, a_stop, index, value, start, stop, hot
            )

        return loop
