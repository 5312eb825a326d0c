"""Row functions on centred rows.

With x̃ = x - ref, the direction of a step along the row is z = D x̃. Dense rows subtract
in one loop. Sparse rows take two: the stored values as if there were no reference
points, then the *listed* features, those with a reference point, as if their value were
zero. A feature may be in both loops, as x and as -ref; a third loop adds the cross term
that squares are missing.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, vectorised
from aucmax.core.rows import ColumnIndex as Index
from aucmax.core.rows import Float, Rows, by_layout, entry, rowwise, stored
from aucmax.online.engine.feature_table import (
    L2,
    NZ,
    PAST,
    SQ,
    SUM,
    TO_NEG,
    TO_POS,
    TOLERANCE,
    D,
    Table,
    U,
    W,
    off_scale,
    rescale,
    unit_weight,
)


class Known(NamedTuple):
    """How a kernel visits rows whose class statistics are known."""

    precondition: bool  # centre and scale features
    follows: bool  # the average follows changes of scale, see feature_table
    l2: L2
    stretch: float  # steps at most between two proximal maps of the penalty
    most: float  # largest λ_j D_j times the penalty that is due
    listed: Index  # (d + 1,) number of features with a reference point, then these


class Stream(Known):
    """How a kernel visits rows of a stream, whose statistics it updates.

    A type of its own, so that ``fit`` does not compile code for streams.
    """


Visit: TypeAlias = Known | Stream

_ONE = np.uint64(1)

# A stored feature of row i, its value and its reference point in the first loop.
seen = by_layout(
    lambda X, i, k, ref: (k, X[i, k] - ref[k], ref[k]),
    lambda X, i, k, ref: (X.indices[k], np.float64(X.data[k]), 0.0),
)
# Positions in ``listed`` of the features of the second loop.
others = by_layout(
    lambda X, listed: range(_ONE, _ONE),
    lambda X, listed: range(_ONE, np.uint64(listed[0]) + _ONE),
)


# Values of the third loop: all that row i stores, if any feature is listed. (Not by a
# branch, which would count references at every row: see CONTRIBUTING, traps.)
in_both = by_layout(
    lambda X, i, listed: range(np.uint64(0)),
    lambda X, i, listed: range(X.indptr[i], X.indptr[i + np.int64(listed[0] > 0)]),
)
# The stored values of row i, or none.
_stored_if = by_layout(
    lambda X, i, wanted: range(np.uint64(X.shape[1]) * np.uint64(wanted)),
    lambda X, i, wanted: range(X.indptr[i], X.indptr[i + np.int64(wanted)]),
)
_is_dense = by_layout(lambda X: True, lambda X: False)


@inlined
def list_features(ref: Float, listed: Index) -> None:
    """Write the number of features with a reference point, then their indices."""
    count = 0
    for j in range(ref.shape[0]):
        if ref[j] != 0.0:
            count += 1
            listed[count] = j
    listed[0] = count


@vectorised
def _look(
    sums: tuple[float, float, float, float],
    feat: Float,
    j: int,
    x: float,
    r: float,
    to_pos: float,
    to_neg: float,
) -> tuple[float, float, float, float]:
    s, q, a, b = sums
    z = feat[D, j] * x
    s += feat[W, j] * x
    q += z * x
    a += z * (feat[SUM, j] * to_pos - r)
    b += z * (feat[SUM + 1, j] * to_neg - r)
    return s, q, a, b


@rowwise
def look_row(
    X: Rows, i: int, table: Table, how: Visit
) -> tuple[float, float, float, float]:
    """Return w·x̃, the squared norm z·x̃, z·(m₊ - ref) and z·(m₋ - ref) of row ``i``.

    The last two are how fast a step along the row moves the mean class scores.
    """
    feat, ref, listed = table.feat, table.ref, how.listed
    to_pos, to_neg = table.stats[TO_POS], table.stats[TO_NEG]
    sums = 0.0, 0.0, 0.0, 0.0
    for k in stored(X, i):
        j, x, r = seen(X, i, k, ref)
        sums = _look(sums, feat, j, x, r, to_pos, to_neg)
    for m in others(X, listed):
        j = listed[m]
        sums = _look(sums, feat, j, -ref[j], ref[j], to_pos, to_neg)
    cross = 0.0
    for k in in_both(X, i, listed):
        j, x = entry(X, i, k)
        cross += feat[D, j] * x * ref[j]
    s, q, a, b = sums
    return s, q - 2.0 * cross, a - cross, b - cross


@inlined
def _move(feat: Float, j: int, z: float, past: float) -> None:
    feat[W, j] += z
    feat[U, j] += past * z


@rowwise
def move_row(X: Rows, i: int, table: Table, how: Visit, c: float) -> None:
    """Step along row ``i``: w += c z, and u += Σγ · c z for the average."""
    feat, ref, listed, past = table.feat, table.ref, how.listed, table.stats[PAST]
    for k in stored(X, i):
        j, x, _ = seen(X, i, k, ref)
        _move(feat, j, c * (feat[D, j] * x), past)
    for m in others(X, listed):
        j = listed[m]
        _move(feat, j, -c * (feat[D, j] * ref[j]), past)


@rowwise
def dot_row(
    X: Rows, i: int, values: Float, slot: int, ref: Float, listed: Index
) -> float:
    """Return the product v·x̃ of a slot of ``values`` and the centred row."""
    s = 0.0
    for k in stored(X, i):
        j, x, _ = seen(X, i, k, ref)
        s += values[slot, j] * x
    for m in others(X, listed):
        j = listed[m]
        s -= values[slot, j] * ref[j]
    return s


@inlined
def score_row(X: Rows, i: int, table: Table, how: Visit) -> float:
    """Return the score w·x̃ of row ``i``."""
    return dot_row(X, i, table.feat, W, table.ref, how.listed)


@rowwise
def add_row(
    X: Rows, i: int, c: float, values: Float, slot: int, ref: Float, listed: Index
) -> None:
    """Add ``c`` times the centred row to a slot of ``values``."""
    for k in stored(X, i):
        j, x, _ = seen(X, i, k, ref)
        values[slot, j] += c * x
    for m in others(X, listed):
        j = listed[m]
        values[slot, j] -= c * ref[j]


@rowwise
def count_in(
    X: Rows, i: int, weight: float, side: int, table: Table, how: Visit
) -> None:
    """Add row ``i`` of a stream to the class moments of the table."""
    feat, ref, listed = table.feat, table.ref, how.listed
    for k in stored(X, i):
        j, x = entry(X, i, k)
        _, off, _ = seen(X, i, k, ref)
        feat[SUM + side, j] += weight * x
        feat[SQ + side, j] += weight * off * off
        feat[NZ, j] += weight if x != 0.0 else 0.0
    for k in in_both(X, i, listed):
        j, x = entry(X, i, k)
        feat[SQ + side, j] -= 2.0 * weight * x * ref[j]
    for m in others(X, listed):
        j = listed[m]
        feat[SQ + side, j] += weight * ref[j] * ref[j]


@rowwise
def rescale_row(
    X: Rows, i: int, table: Table, how: Visit, own: float, wanted: bool
) -> tuple[float, float, float, float]:
    """Update the scales of the features of row ``i``, if ``wanted``.

    ``own`` times a squared value is the row's part of the second moment. Returns the
    changes of the two mean class scores, of Σ w²/D and of Σ |w|/√D.
    """
    feat, ref, stats, l2 = table.feat, table.ref, table.stats, how.l2
    to_pos, to_neg = stats[TO_POS], stats[TO_NEG]
    # In a dense row mostly no scale is off: a loop that only tests runs in SIMD.
    misfits = np.int64(wanted and not _is_dense(X))
    for k in _stored_if(X, i, wanted and _is_dense(X)):
        j, x = entry(X, i, k)
        misfits += off_scale(feat, j, to_pos, to_neg, l2, TOLERANCE) & (x != 0.0)
    d_a = d_b = squares = absolute = 0.0
    centred = np.uint32(how.listed[0] > 0)  # else no reference point is looked up
    for k in _stored_if(X, i, misfits > 0):
        j, x = entry(X, i, k)
        if x != 0.0 and off_scale(feat, j, to_pos, to_neg, l2, TOLERANCE):
            r = ref[j * centred]
            share = own * (x - r) * (x - r)
            before = unit_weight(feat, j)
            change = rescale(table, j, l2, how.follows, share)
            after = unit_weight(feat, j)
            d_a += change * (feat[SUM, j] * to_pos - r)
            d_b += change * (feat[SUM + 1, j] * to_neg - r)
            squares += after * after - before * before
            absolute += after - before
    return d_a, d_b, squares, absolute


@rowwise
def centred_row(
    X: Rows, i: int, ref: Float, listed: Index, out: Float, at: NDArray[np.uint32]
) -> int:
    """Write the non-zero values of x - ref to ``out``, their features to ``at``.

    A value that equals its reference point is written as zero. Returns the number of
    values; features are in order in all layouts.
    """
    count = 0
    m, end = _ONE, np.uint64(listed[0]) + _ONE
    for k in stored(X, i):
        j, x = entry(X, i, k)
        while m < end and listed[m] < j:  # a listed feature that is not stored
            out[count], at[count] = -ref[listed[m]], listed[m]
            count += 1
            m += _ONE
        if m < end and listed[m] == j:
            m += _ONE
        if x != 0.0 or ref[j] != 0.0:
            out[count], at[count] = x - ref[j], j
            count += 1
    while m < end:
        out[count], at[count] = -ref[listed[m]], listed[m]
        count += 1
        m += _ONE
    return count
