"""Row functions on a row and a buffered one, for OAM.

Each function comes twice: ``…_full`` for rows without zeros, centred on ``shift``, and
one for other rows. A buffered row is given by its start in the flat buffer: a view, or
an index of two numbers or with a sign, costs as much as visiting the row. So do
reference counts (CONTRIBUTING, traps).
"""

import numpy as np

from aucmax.core.jit import inlined, vectorised
from aucmax.core.rows import ColumnIndex, Float
from aucmax.online.engine.feature_table import D, U, W


@inlined
def look(
    x: Float, features: ColumnIndex, length: int, feat: Float, dx: Float
) -> tuple[float, float]:
    """Write D x to ``dx``; return w·x and x·D x."""
    s = x_x = 0.0
    for k in range(length):
        j = features[k]
        dx[j] = feat[D, j] * x[k]
        s += feat[W, j] * x[k]
        x_x += dx[j] * x[k]
    return s, x_x


@vectorised
def look_full(x: Float, feat: Float, shift: Float, dx: Float) -> tuple[float, float]:
    """Do the same as ``look`` for a row without zeros."""
    s = x_x = 0.0
    for j in range(dx.shape[0]):
        dx[j] = feat[D, j] * (x[j] - shift[j])
    for j in range(dx.shape[0]):  # a separate loop: see CONTRIBUTING, traps
        s += feat[W, j] * (x[j] - shift[j])
        x_x += dx[j] * (x[j] - shift[j])
    return s, x_x


@inlined
def compare(
    values: Float,
    places: ColumnIndex,
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
    # Two sums of each: the next pair waits for the scores of this one.
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
    """Do the same as ``compare`` for a row without zeros."""
    s = cross = 0.0
    for j in range(np.uint64(dx.shape[0])):
        v = values[start + j] - shift[j]
        s += feat[W, j] * v
        cross += dx[j] * v
    return s, cross


@inlined
def square(
    values: Float, places: ColumnIndex, start: np.uint64, length: np.uint64, feat: Float
) -> float:
    """Return x·D x of a buffered row."""
    x_x = 0.0
    for k in range(start, start + length):
        x_x += feat[D, places[k]] * (values[k] * values[k])
    return x_x


@vectorised
def square_full(values: Float, start: np.uint64, feat: Float, shift: Float) -> float:
    """Do the same as ``square`` for a row without zeros."""
    x_x = 0.0
    for j in range(np.uint64(shift.shape[0])):
        v = values[start + j] - shift[j]
        x_x += feat[D, j] * (v * v)
    return x_x


@inlined
def move(
    values: Float,
    places: ColumnIndex,
    start: np.uint64,
    length: np.uint64,
    feat: Float,
    c: float,
    past: float,
) -> None:
    """Step along a row: w += c D x, and u += past · c D x for the average."""
    for k in range(start, start + length):
        j = places[k]
        v = c * (feat[D, j] * values[k])
        feat[W, j] += v
        feat[U, j] += past * v


@vectorised
def move_full(
    values: Float, start: np.uint64, feat: Float, shift: Float, c: float, past: float
) -> None:
    """Do the same as ``move`` for a row without zeros."""
    for j in range(np.uint64(shift.shape[0])):
        v = c * (feat[D, j] * (values[start + j] - shift[j]))
        feat[W, j] += v
        feat[U, j] += past * v
