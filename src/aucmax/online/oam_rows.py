"""What OAM does with a row and with one of its buffer.

Of each function there are two: for rows without zeros, seen from ``shift``, and
for the others. Buffered rows are given by where they start: to make a view of one, or
to index it with more than one number, or with one that has a sign, would cost as much
as to visit it. The same is true of references, which are counted at every call if the
last use of an array is in a branch (CONTRIBUTING.md, traps).
"""

import numpy as np

from aucmax.core.jit import inlined, vectorised
from aucmax.core.rows import ColumnIndex as Index
from aucmax.core.rows import Float
from aucmax.online.engine import D, U, W


@inlined
def look(
    x: Float, features: Index, length: int, feat: Float, dx: Float
) -> tuple[float, float]:
    """Write D x to ``dx``; return w·x and x·D x."""
    s = 0.0
    x_x = 0.0
    for k in range(length):
        j = features[k]
        dx[j] = feat[D, j] * x[k]
        s += feat[W, j] * x[k]
        x_x += dx[j] * x[k]
    return s, x_x


@vectorised
def look_full(x: Float, feat: Float, shift: Float, dx: Float) -> tuple[float, float]:
    """Do what ``look`` does."""
    s = 0.0
    x_x = 0.0
    for j in range(dx.shape[0]):
        dx[j] = feat[D, j] * (x[j] - shift[j])
    for j in range(dx.shape[0]):  # apart: see CONTRIBUTING.md, traps
        s += feat[W, j] * (x[j] - shift[j])
        x_x += dx[j] * (x[j] - shift[j])
    return s, x_x


@inlined
def compare(
    values: Float,
    places: Index,
    start: np.uint64,
    length: np.uint64,
    feat: Float,
    dx: Float,
) -> tuple[float, float]:
    """Return w·x and the product with ``dx`` of a buffered row."""
    s = s1 = cross = cross1 = 0.0
    if length & np.uint64(1):
        j, v = places[start], values[start]
        s += feat[W, j] * v
        cross += dx[j] * v
    # Two sums of each: the next pair has to wait for the scores of this one.
    for k in range(start + (length & np.uint64(1)), start + length, np.uint64(2)):
        j, v, k1 = places[k], values[k], k + np.uint64(1)
        s += feat[W, j] * v
        cross += dx[j] * v
        j, v = places[k1], values[k1]
        s1 += feat[W, j] * v
        cross1 += dx[j] * v
    return s + s1, cross + cross1


@vectorised
def compare_full(
    values: Float, start: np.uint64, feat: Float, shift: Float, dx: Float
) -> tuple[float, float]:
    """Do what ``compare`` does."""
    s = 0.0
    cross = 0.0
    for j in range(np.uint64(dx.shape[0])):
        v = values[start + j] - shift[j]
        s += feat[W, j] * v
        cross += dx[j] * v
    return s, cross


@inlined
def square(
    values: Float, places: Index, start: np.uint64, length: np.uint64, feat: Float
) -> float:
    """Return x·D x of a buffered row."""
    x_x = 0.0
    for k in range(start, start + length):
        x_x += feat[D, places[k]] * (values[k] * values[k])
    return x_x


@vectorised
def square_full(values: Float, start: np.uint64, feat: Float, shift: Float) -> float:
    """Do what ``square`` does."""
    x_x = 0.0
    for j in range(np.uint64(shift.shape[0])):
        v = values[start + j] - shift[j]
        x_x += feat[D, j] * (v * v)
    return x_x


@inlined
def move(
    values: Float,
    places: Index,
    start: np.uint64,
    length: np.uint64,
    feat: Float,
    c: float,
    past: float,
) -> None:
    """Add c D x to w, and the average's part of it."""
    for k in range(start, start + length):
        j = places[k]
        v = c * (feat[D, j] * values[k])
        feat[W, j] += v
        feat[U, j] += past * v


@vectorised
def move_full(
    values: Float,
    start: np.uint64,
    feat: Float,
    shift: Float,
    c: float,
    past: float,
) -> None:
    """Do what ``move`` does."""
    for j in range(np.uint64(shift.shape[0])):
        v = c * (feat[D, j] * (values[start + j] - shift[j]))
        feat[W, j] += v
        feat[U, j] += past * v
