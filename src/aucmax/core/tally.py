"""Class counts, sums and sums of squares of the features.

Counts are sums of weights, so that the moments of weighted rows are those of repeated
rows. What the steps of a learner need; second moments of pairs of features, for exact
solutions, are in :mod:`aucmax.core.moments`.
"""

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np

from aucmax.core.jit import kernel
from aucmax.core.rows import (
    Rows,
    fetch_ahead,
    fetch_row,
    n_rows,
    row_bytes,
    take_rows,
    tally_row,
    zeros_for,
)
from aucmax.core.table import SQ, SUM, Float, refresh

POS, NEG = 0, 1
# Where a solver stops unless told, as a share of the sampling error of Δ: the equations
# are not known any better, and with more features than rows to solve them does harm.
NOISE = 0.125
RENEW = 4.0  # scales are taken anew when there are so many times more rows

# What every learner's numbers ``z`` begin with: rows whose statistics are known; mean
# squared norm κ̄² of a row; about how many features make it up; smallest and largest
# scale; rows at which to take them anew.
ROWS, NORM, WIDTH, SMALLEST, LARGEST, RENEW_AT = range(6)

_BLOCK_BYTES = 1 << 24  # fixed, so that sums do not depend on the number of threads


class Tally(NamedTuple):
    """What a set of rows adds up to, class by class (positives first)."""

    weight: Float  # (2,)    sum of the weights
    rows: Float  # (2,)    rows of non-zero weight
    sums: Float  # (2, d)  Σ x
    squares: Float  # (2, d)  Σ x²


@kernel
def _add(X: Any, y: Float, ahead: int, weight: Float, rows: Float, both: Float) -> None:
    for i in range(y.shape[0]):
        fetch_row(X, min(i + ahead, y.shape[0] - 1))
        if y[i] != 0.0:
            side = POS if y[i] > 0.0 else NEG
            weight[side] += abs(y[i])
            rows[side] += 1.0
            tally_row(X, i, abs(y[i]), both, side, both, 2 + side)


def measure(X: Rows, y: Float, n_features: int) -> Tally:
    """Return the tally of all rows; ``y`` holds the weights, signed by class."""
    n = n_rows(X)
    # Enough for a thread to be worth it: in bytes, and against the sums of a block.
    least = max(_BLOCK_BYTES, 1024 * n_features)
    size = -(-n // max(int(n * row_bytes(X) / least), 1))

    def block(start: int) -> tuple[Float, Float, Float]:
        stop = min(start + size, n)
        weight, rows = np.zeros(2), np.zeros(2)
        both = zeros_for(X, 4, n_features)  # sums, then squares
        some = take_rows(X, start, stop)
        _add(some, y[start:stop], fetch_ahead(X), weight, rows, both)
        return weight, rows, both

    starts = range(0, max(n, 1), max(size, 1))
    if len(starts) == 1:  # to start a thread takes as long as 5000 rows of a9a
        total = block(0)
    else:
        with ThreadPoolExecutor(min(len(starts), cpu_count() or 1)) as pool:
            total, *rest = pool.map(block, starts)
        for part in rest:
            for mine, its in zip(total, part, strict=True):
                mine += its
    weight, rows, both = total
    return Tally(weight, rows, both[:2], both[2:])


def noise(tally: Tally, pairs: float = np.inf) -> float:
    """Return the sampling error of Δ = m₊ - m₋, as a share of it, in unit-scale terms.

    That of the rows, and of so many ``pairs`` drawn from them.
    """
    mean = tally.sums / tally.weight[:, np.newaxis]
    second = tally.squares / tally.weight[:, np.newaxis]
    variance = np.maximum(second - mean**2, 0.0)
    delta = mean[POS] - mean[NEG]
    diagonal = variance.sum(axis=0) + delta**2
    unit = np.divide(1.0, diagonal, out=np.zeros_like(delta), where=diagonal > 1e-300)
    error = variance.sum(axis=0) / pairs + (variance / tally.rows[:, None]).sum(axis=0)
    signal = float(np.sum(unit * delta**2))
    return float(np.sqrt(np.sum(unit * error) / signal)) if signal > 0.0 else 1.0


def know(state: Any, tally: Tally, l2: float, precondition: bool) -> None:
    """Give a learner exact statistics in place of running ones."""
    for side in (POS, NEG):  # one by one: NumPy's loops would have two steps each
        state.hot[SUM + side] = tally.sums[side]
        state.cold[SQ + side] = tally.squares[side]
    state.n[:] = tally.weight
    to_pos, to_neg = (1.0 / tally.weight).tolist()
    rows = tally.rows.sum()
    state.z[ROWS], state.z[RENEW_AT] = rows, RENEW * rows
    state.z[NORM : LARGEST + 1] = refresh(
        state.hot, state.cold, to_pos, to_neg, l2, precondition
    )
