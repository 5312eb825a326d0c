"""Reservoir sample of the rows of each class, for learners that draw random pairs.

All parts are float64 arrays of fixed size, so that they are part of a learner's state:
``kept`` has the number of rows of each class; row r of a class has the features
``where[class, starts[class, r] : starts[class, r + 1]]``, sorted, and their values.
Zeros are not stored. ``seed`` is the state of the random generator.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, count_row, pack_row
from aucmax.online.engine.feature_table import PAST, D, Table, U, W
from aucmax.online.engine.random_numbers import MODULI, check_seed, uniform
from aucmax.storage.state import whole_numbers

ROWS = 256  # rows of each class at most
_VALUES = 1 << 19  # values of each class at most, or one row of all features


class Reservoir(NamedTuple):
    """Arrays of the sample; updated in place."""

    seed: Float  # (2,)
    kept: Float  # (2,)
    starts: Float  # (2, rows + 1)
    where: Float  # (2, values)
    value: Float  # (2, values)


def empty(n_features: int, rng: np.random.RandomState) -> Reservoir:
    """Return an empty reservoir."""
    values = min(ROWS * n_features, max(_VALUES, n_features))
    seed = rng.randint(1, MODULI[1], size=2).astype(np.float64)
    shape = 2, values
    starts = np.zeros((2, ROWS + 1))
    return Reservoir(seed, np.zeros(2), starts, np.zeros(shape), np.zeros(shape))


def check(rows: Reservoir, n: Float, n_features: int) -> None:
    """Raise an error if rows from a file are not valid; ``n`` are class weights."""
    check_seed(rows.seed)
    values = rows.where.shape[1]
    kept = whole_numbers(
        "counts of stored rows", rows.kept, 0, rows.starts.shape[1] - 1
    )
    if np.any((n > 0.0) & (kept == 0)):
        raise ValueError("no stored row of a class that was seen.")
    for side, count in enumerate(kept):
        what = "positions of stored rows"
        starts = whole_numbers(what, rows.starts[side, : count + 1], 0, values)
        if starts[0] != 0 or np.any(np.diff(starts) < 0):
            raise ValueError(f"the {what} are not in order.")
        what = "features of stored rows"
        at = whole_numbers(what, rows.where[side, : starts[-1]], 0, n_features - 1)
        first = np.isin(np.arange(1, len(at)), starts)  # first value of a row
        if np.any((np.diff(at) <= 0) & ~first):
            raise ValueError(f"the {what} are not in order.")


@inlined
def choose(seed: Float, n: float) -> int:
    """Return a random integer from 0 to n - 1."""
    return int(uniform(seed) * n)


@inlined
def _drop(pool: Reservoir, side: int, r: int) -> None:
    """Remove row ``r``; later rows move up."""
    _, kept, starts, where, value = pool
    lo, hi = int(starts[side, r]), int(starts[side, r + 1])
    count = int(kept[side])
    for k in range(hi, int(starts[side, count])):
        where[side, k - hi + lo] = where[side, k]
        value[side, k - hi + lo] = value[side, k]
    for k in range(r, count):
        starts[side, k] = starts[side, k + 1] - (hi - lo)
    kept[side] -= 1.0


@kernel
def keep(X: Any, i: int, side: int, share: float, pool: Reservoir) -> None:
    """Store row ``i`` if there is room, else at random in place of another row.

    ``share`` is its fraction of the weight of its class so far: a row stays with a
    probability proportional to its weight (Chao 1982).
    """
    seed, kept, starts, where, value = pool
    count = int(kept[side])
    size = count_row(X, i)
    most, room = starts.shape[1] - 1, where.shape[1]
    full = count == most or starts[side, count] + size > room
    if full and uniform(seed) >= count * share:
        return
    while count == most or starts[side, count] + size > room:
        _drop(pool, side, choose(seed, kept[side]))
        count -= 1
    start = int(starts[side, count])
    pack_row(X, i, value[side, start:], where[side, start:])
    starts[side, count + 1] = start + size
    kept[side] += 1.0


@kernel
def fill(X: Any, order: NDArray[np.int64], side: int, pool: Reservoir) -> None:
    """Store the rows ``order`` as long as there is room."""
    for k in range(order.shape[0]):
        keep(X, order[k], side, 0.0, pool)


@inlined
def kept_score(pool: Reservoir, side: int, r: int, feat: Float) -> float:
    """Return w·x of a stored row."""
    _, _, starts, where, value = pool
    s = 0.0
    for k in range(int(starts[side, r]), int(starts[side, r + 1])):
        s += feat[W, int(where[side, k])] * value[side, k]
    return s


@inlined
def move_kept(pool: Reservoir, side: int, r: int, table: Table, c: float) -> None:
    """Step along a stored row: w += c D x, and u += Σγ · c D x for the average."""
    _, _, starts, where, value = pool
    feat, past = table.feat, table.stats[PAST]
    for k in range(int(starts[side, r]), int(starts[side, r + 1])):
        j = int(where[side, k])
        x = c * (feat[D, j] * value[side, k])
        feat[W, j] += x
        feat[U, j] += past * x
