"""A buffer of rows of each class, for learners that pair a new row with old ones.

There are 2B slots, B for each class, the positives first. A slot stores the non-zero
values of a row and their features, whatever the layout of X. Loops over rows without
zeros need no list of features and run in SIMD.

``rows`` (2, 2B, width) has the values and the features, ``slots`` (2, 2B) the number of
values and the weight of each row. The width grows with the fullest row so far. Counts
of the rows offered and the random generator are part of the learner's state.
"""

from typing import Any

import numpy as np

from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.rows import ColumnIndex as Index
from aucmax.core.rows import Float, Rows, count_row
from aucmax.online.engine.random_numbers import SEED as SEED
from aucmax.online.engine.random_numbers import check_seed, uniform
from aucmax.storage.state import whole_numbers

VALUES, FEATURES = 0, 1  # slots of ``rows``
LENGTH, WEIGHT = 0, 1  # slots of ``slots``

_COUNTS = 2.0**53  # largest count that floats represent exactly


def empty(size: int) -> tuple[Float, Float]:
    """Return ``rows`` and ``slots`` for ``size`` rows of each class."""
    return np.zeros((2, 2 * size, 0)), np.zeros((2, 2 * size))


def widened(state: Any, X: Rows, y: Float) -> Any:
    """Return the state with a buffer wide enough for the rows of X."""
    _, slots, width = state.rows.shape
    needed = fullest(X, y)
    if needed <= width:
        return state
    wider = np.zeros((2, slots, needed))
    wider[:, :, :width] = state.rows
    return state._replace(rows=wider)


def check(state: Any, seen: Float, seed: Float, n_features: int) -> None:
    """Raise an error if a buffer from a file is not valid."""
    width = state.rows.shape[2]
    at = whole_numbers(
        "features in its buffer", state.rows[FEATURES], 0, n_features - 1
    )
    most = min(width, n_features)
    lengths = whole_numbers("lengths in its buffer", state.slots[LENGTH], 0, most)
    whole_numbers("counts of its buffer", seen, 0, _COUNTS)
    check_seed(seed)
    # Kernels rely on it that no feature occurs twice in a row.
    inside = np.arange(1, width) < lengths[:, np.newaxis]
    if np.any(inside & (np.diff(at) <= 0)):
        raise ValueError("the features in its buffer are not in order.")


def restart(seen: Float, size: int) -> None:
    """Restart the reservoir for another pass; full slots stay full.

    Otherwise the buffer would hardly change, and the rows of all passes would be paired
    with the same few.
    """
    np.minimum(seen, size, out=seen)


@kernel
def fullest(X: Rows, y: Float) -> int:
    """Return the largest number of non-zero values in a row of non-zero weight."""
    most = 0
    for i in range(y.shape[0]):
        if y[i] != 0.0:
            most = max(most, count_row(X, i))
    return most


@inlined
def features_of(rows: Float, slots: Float) -> Index:
    """Return the features of all slots as integers."""
    at = np.zeros((rows.shape[1], rows.shape[2]), np.uint32)
    for b in range(rows.shape[1]):
        for k in range(int(slots[LENGTH, b])):
            at[b, k] = np.uint32(rows[FEATURES, b, k])
    return at


@inlined
def find_slot(seen: Float, side: int, size: int, reservoir: bool, seed: Float) -> int:
    """Count a row of this class; return its slot, or -1 if it is not stored.

    It replaces the oldest row, or, with ``reservoir``, a random one with probability B
    over the rows so far: a uniform sample (Vitter's algorithm R; one random number
    decides both).
    """
    seen[side] += 1.0
    slot = int(seen[side]) - 1
    if slot >= size:
        if reservoir:
            slot = int(uniform(seed) * seen[side])
            if slot >= size:
                return -1
        else:
            slot %= size
    return side * size + slot


@inlined
def put(
    rows: Float,
    slots: Float,
    at: Index,
    slot: int,
    x: Float,
    features: Index,
    length: int,
    weight: float,
) -> None:
    """Write a packed row to a slot."""
    for k in range(length):
        rows[VALUES, slot, k] = x[k]
        rows[FEATURES, slot, k] = features[k]
        at[slot, k] = features[k]
    slots[LENGTH, slot] = length
    slots[WEIGHT, slot] = weight


@inlined
def filled(seen: Float, side: int, size: int) -> int:
    """Return the number of slots of a class in use."""
    return int(min(seen[side], size))


@inlined
def scatter(x: Float, features: Index, length: int, out: Float) -> None:
    """Write the values of a packed row to their features in ``out``."""
    for k in range(length):
        out[features[k]] = x[k]


@inlined
def erase(features: Index, length: int, out: Float) -> None:
    """Write zero to the features of a packed row."""
    for k in range(length):
        out[features[k]] = 0.0


@vectorised
def unpack(
    x: Float, features: Index, length: int, unit: Float, ref: Float, out: Float
) -> None:
    """Write ``unit`` (x - ref) to ``out``; O(d)."""
    for j in range(out.shape[0]):
        out[j] = 0.0
    for k in range(length):
        out[features[k]] = x[k]
    for j in range(out.shape[0]):
        out[j] = unit[j] * (out[j] - ref[j])
