"""A buffer of rows of each class, for learners that pair a new row with old ones.

Of 2B slots, B a class, the positives' are first. A row in its slot is what is not zero
in it and where that is, as it came, whatever its layout was. A row without zeros needs
no list of features, and loops over it run in SIMD.

``rows`` (2, 2B, width) holds values and features, ``slots`` (2, 2B) how many there are
and the weight of the row. The width is that of the fullest row seen so far: it grows
with the data, from nothing. How many rows of each class have been offered, and the
state of the random numbers, are the learner's to keep.

OAM and both kinds of CBR share it. The samplers' :mod:`aucmax.online.engine.reservoir`
is apart, but for the random numbers: rows there have no slots that scores and
covariances could hang on, and of long rows it keeps fewer, so that memory is bounded.
"""

from typing import Any

import numpy as np

from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.rows import ColumnIndex as Index
from aucmax.core.rows import Float, Rows, count_row
from aucmax.core.validation import check_whole
from aucmax.online.engine.random_numbers import SEED as SEED
from aucmax.online.engine.random_numbers import check_seed, uniform

VALUES, FEATURES = 0, 1  # of rows
LENGTH, WEIGHT = 0, 1  # of slots

_COUNTS = 2.0**53  # up to this, floats count


def empty(size: int) -> tuple[Float, Float]:
    """Return ``rows`` and ``slots`` for ``size`` rows a class."""
    return np.zeros((2, 2 * size, 0)), np.zeros((2, 2 * size))


def widened(state: Any, X: Rows, y: Float) -> Any:
    """Return the state with room for the rows of X that count."""
    _, slots, width = state.rows.shape
    needed = fullest(X, y)
    if needed <= width:
        return state
    wider = np.zeros((2, slots, needed))
    wider[:, :, :width] = state.rows
    return state._replace(rows=wider)


def check(state: Any, seen: Float, seed: Float, n_features: int) -> None:
    """Raise an error if kernels could not trust the buffer; for one out of a file."""
    width = state.rows.shape[2]
    at = check_whole("features in its buffer", state.rows[FEATURES], 0, n_features - 1)
    most = min(width, n_features)
    lengths = check_whole("lengths in its buffer", state.slots[LENGTH], 0, most)
    check_whole("counts of its buffer", seen, 0, _COUNTS)
    check_seed(seed)
    # A pair of rows has no more features than there are: none comes twice in a row.
    inside = np.arange(1, width) < lengths[:, np.newaxis]
    if np.any(inside & (np.diff(at) <= 0)):
        raise ValueError("the features in its buffer are not in order.")


def sample_anew(seen: Float, size: int) -> None:
    """Let another pass over the same rows sample them anew; full slots stay so.

    A reservoir that went on would hardly change any more, and the rows of all passes
    would be paired with the same few.
    """
    np.minimum(seen, size, out=seen)


@kernel
def fullest(X: Rows, y: Float) -> int:
    """Return the largest number of values that are not zero in a row that counts."""
    most = 0
    for i in range(y.shape[0]):
        if y[i] != 0.0:
            most = max(most, count_row(X, i))
    return most


@inlined
def features_of(rows: Float, slots: Float) -> Index:
    """Return the features of all slots as whole numbers; once a kernel."""
    at = np.zeros((rows.shape[1], rows.shape[2]), np.uint32)
    for b in range(rows.shape[1]):
        for k in range(int(slots[LENGTH, b])):
            at[b, k] = np.uint32(rows[FEATURES, b, k])
    return at


@inlined
def find_slot(seen: Float, side: int, size: int, reservoir: bool, seed: Float) -> int:
    """Count a row of this class in; return its slot, or -1 if it is not to be kept.

    Either the oldest row makes room, or a random one does, with probability B over the
    rows so far: the buffer is then a uniform sample of these (Vitter's algorithm R, in
    which one random number decides both).
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
    """Return how many slots of a class are in use."""
    return int(min(seen[side], size))


@inlined
def scatter(x: Float, features: Index, length: int, out: Float) -> None:
    """Write a packed row to where its features are; the rest is left."""
    for k in range(length):
        out[features[k]] = x[k]


@inlined
def erase(features: Index, length: int, out: Float) -> None:
    """Write zero to where a packed row has features."""
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
