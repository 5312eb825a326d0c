"""Row functions on pairs of rows, of which z is the difference.

Dense rows are subtracted in one loop; sparse rows are visited one after the other.
"""

import numpy as np

from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Rows, by_layout, entry, rowwise, stored
from aucmax.online.engine.feature_table import (
    PAST,
    D,
    Table,
    U,
    W,
    class_means,
    mean_square,
)

# A value of row i, for dense rows minus that of the other row; and the values of the
# other row that are left to visit.
_less_other = by_layout(
    lambda X, i, other, k: (k, np.float64(X[i, k]) - X[other, k]),
    lambda X, i, other, k: (X.indices[k], np.float64(X.data[k])),
)
_left = by_layout(
    lambda X, other: range(np.uint64(0)),
    lambda X, other: range(X.indptr[other], X.indptr[other + 1]),
)


@rowwise
def score_pair(X: Rows, i: int, other: int, feat: Float) -> float:
    """Return w·z."""
    s = b = 0.0  # two sums, so that one need not wait for the other
    for k in stored(X, i):
        j, x = _less_other(X, i, other, k)
        s += feat[W, j] * x
    for k in _left(X, other):
        j, x = entry(X, other, k)
        b += feat[W, j] * x
    return s - b


@rowwise
def move_pair(X: Rows, i: int, other: int, table: Table, c: float) -> None:
    """Step along a difference: w += c D z, and u += Σγ · c D z for the average."""
    feat, past = table.feat, table.stats[PAST]
    for k in stored(X, i):
        j, x = _less_other(X, i, other, k)
        step = c * (feat[D, j] * x)
        feat[W, j] += step
        feat[U, j] += past * step
    for k in _left(X, other):
        j, x = entry(X, other, k)
        step = c * (feat[D, j] * x)
        feat[W, j] -= step
        feat[U, j] -= past * step


@rowwise
def length_pair(X: Rows, i: int, other: int, feat: Float, room: Float) -> float:
    """Return the squared length z·Dz of a difference, in the metric of the steps.

    ``room`` is a workspace of one zero per feature. (Merging the features of two sparse
    rows takes twice as long.)
    """
    for k in _left(X, other):
        j, x = entry(X, other, k)
        room[j] = x
    q = r = 0.0
    for k in stored(X, i):
        j, x = _less_other(X, i, other, k)
        z = x - room[j]
        q += (feat[D, j] * z) * z
        room[j] = 0.0
    for k in _left(X, other):
        j, _ = entry(X, other, k)
        z = room[j]  # zero if row i has the feature as well
        r += (feat[D, j] * z) * z
        room[j] = 0.0
    return q + r


@rowwise
def raw_move_row(X: Rows, i: int, table: Table, c: float) -> None:
    """Step along the uncentred row ``i``: w += c D x, and u += Σγ · c D x."""
    feat, past = table.feat, table.stats[PAST]
    for k in stored(X, i):
        j, x = entry(X, i, k)
        step = c * (feat[D, j] * x)
        feat[W, j] += step
        feat[U, j] += past * step


@rowwise
def length_kept(
    X: Rows,
    i: int,
    feat: Float,
    where: Float,
    value: Float,
    start: int,
    stop: int,
    room: Float,
) -> float:
    """Return z·Dz of the difference of row ``i`` and a stored row."""
    for k in range(start, stop):
        room[int(where[k])] = value[k]
    q = r = 0.0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        z = x - room[j]
        q += (feat[D, j] * z) * z
        room[j] = 0.0
    for k in range(start, stop):
        j = int(where[k])
        z = room[j]  # zero if row i has the feature as well
        r += (feat[D, j] * z) * z
        room[j] = 0.0
    return q + r


@kernel
def mean_length(table: Table) -> float:
    """Return the mean of z·Dz over all pairs, or one if it is zero; O(d)."""
    length = 0.0
    for j in range(table.ref.shape[0]):
        m_pos, m_neg = class_means(table, j)
        product = max(mean_square(table, j) - m_pos * m_neg, 0.0)
        length += 2.0 * table.feat[D, j] * product
    return length if length > 0.0 else 1.0
