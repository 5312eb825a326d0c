"""Class moments of the features: what the steps of a learner need to know.

Counts are sums of weights, so that the moments of weighted rows are those of repeated
rows. Second moments of pairs of features, for exact solutions, are in
:mod:`aucmax.linear.solvers.covariances`.
"""

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np

from aucmax.core.jit import kernel
from aucmax.core.rows import (
    Float,
    Rows,
    entry,
    n_rows,
    raw_add_row,
    row_bytes,
    rowwise,
    stored,
    take_rows,
    zeros_for,
)

POS, NEG = 0, 1  # which row of an array of class statistics
# A mean square about the reference point below this share of the squared mean is
# rounding error, and one below this size has no inverse.
ROUNDING, TINY = 1e-15, 1e-300
# Where a solver stops unless told, as a share of the sampling error of Δ: the equations
# are not known any better, and with more features than rows to solve them does harm.
NOISE = 0.125
# A variance below this share of the squared mean has lost digits in sums about zero.
_DOUBTFUL = 1e-6

_BLOCK_BYTES = 1 << 24  # fixed, so that sums do not depend on the number of threads


class Tally(NamedTuple):
    """The moments of a set of rows, class by class (positives first)."""

    weight: Float  # (2,)    sum of the weights
    rows: Float  # (2,)    rows of non-zero weight
    mean: Float  # (2, d)
    variance: Float  # (2, d)
    often: Float  # (2, d)  share of the rows in which a feature is not zero


# The slots of the sums: of each pair, the positives' is first. Two are unused, so that
# the numbers of a feature share a cache line.
_SUM, _SQUARES, _COUNT, _SLOTS = 0, 2, 4, 8


@rowwise
def _add_row(X: Rows, i: int, weight: float, side: int, sums: Float) -> None:
    for k in stored(X, i):
        j, x = entry(X, i, k)
        sums[_SUM + side, j] += weight * x
        sums[_SQUARES + side, j] += weight * x * x
        sums[_COUNT + side, j] += weight if x != 0.0 else 0.0


@kernel
def _add(X: Any, y: Float, weight: Float, rows: Float, sums: Float) -> None:
    for i in range(y.shape[0]):
        if y[i] != 0.0:
            side = POS if y[i] > 0.0 else NEG
            weight[side] += abs(y[i])
            rows[side] += 1.0
            _add_row(X, i, abs(y[i]), side, sums)


@kernel
def _divide(
    sums: Float, weight: Float, mean: Float, variance: Float, often: Float
) -> None:
    """Turn sums into moments."""
    for j in range(sums.shape[1]):
        for side in range(2):
            m = sums[_SUM + side, j] / weight[side]
            mean[side, j] = m
            square = sums[_SQUARES + side, j] / weight[side]
            variance[side, j] = max(square - m * m, 0.0)
            often[side, j] = sums[_COUNT + side, j] / weight[side]


@kernel
def _look_closer(X: Any, y: Float, mean: Float, doubtful: Any, sums: Float) -> None:
    """Add up the squares of the ``doubtful`` features, about the class means."""
    x = np.zeros(mean.shape[1])
    for i in range(y.shape[0]):
        if y[i] != 0.0:
            side = POS if y[i] > 0.0 else NEG
            raw_add_row(X, i, 1.0, x)
            for k in range(doubtful.shape[0]):
                off = x[doubtful[k]] - mean[side, doubtful[k]]
                sums[side, k] += abs(y[i]) * off * off
            raw_add_row(X, i, -1.0, x)


def measure(X: Rows, y: Float, n_features: int) -> Tally:
    """Return the tally of all rows; ``y`` holds the weights, signed by class."""
    n = n_rows(X)
    # Enough for a thread to be worth it: in bytes, and against the sums of a block.
    least = max(_BLOCK_BYTES, 1024 * n_features)
    size = -(-n // max(int(n * row_bytes(X) / least), 1))

    def block(start: int) -> tuple[Float, Float, Float]:
        stop = min(start + size, n)
        weight, rows = np.zeros(2), np.zeros(2)
        sums = zeros_for(X, _SLOTS, n_features)
        some = take_rows(X, start, stop)
        _add(some, y[start:stop], weight, rows, sums)
        return weight, rows, sums

    starts = range(0, max(n, 1), max(size, 1))
    if len(starts) == 1:  # to start a thread takes as long as 5000 rows of a9a
        total = block(0)
    else:
        with ThreadPoolExecutor(min(len(starts), cpu_count() or 1)) as pool:
            total, *rest = pool.map(block, starts)
        for part in rest:
            for mine, its in zip(total, part, strict=True):
                mine += its
    weight, rows, sums = total
    mean, variance, often = np.empty((3, 2, n_features))
    _divide(sums, weight, mean, variance, often)
    with np.errstate(all="ignore"):  # the caller looks at the result
        doubtful = np.flatnonzero((variance < _DOUBTFUL * mean * mean).any(axis=0))
        if len(doubtful):
            squares = np.zeros((2, len(doubtful)))
            _look_closer(X, y, mean, doubtful, squares)
            variance[:, doubtful] = squares / weight[:, np.newaxis]
    return Tally(weight, rows, mean, variance, often)


def merged(a: Tally, b: Tally) -> Tally:
    """Return the tally of both sets of rows; either may lack a class."""
    weight = a.weight + b.weight
    part = np.divide(b.weight, weight, out=np.zeros(2), where=weight > 0.0)
    mine, its = (1.0 - part)[:, np.newaxis], part[:, np.newaxis]
    # Of rows that are not there, nothing is known, and nothing is to be counted.
    a, b = (
        some._replace(
            **{
                name: np.where(some.weight[:, np.newaxis] > 0.0, values, 0.0)
                for name, values in zip(some._fields[2:], some[2:], strict=True)
            }
        )
        for some in (a, b)
    )
    apart = b.mean - a.mean
    return Tally(
        weight,
        a.rows + b.rows,
        a.mean + its * apart,
        mine * a.variance + its * b.variance + mine * its * apart**2,
        mine * a.often + its * b.often,
    )


def noise(tally: Tally, pairs: float = np.inf) -> float:
    """Return the sampling error of Δ = m₊ - m₋, as a share of it, in unit-scale terms.

    That of the rows, and of so many ``pairs`` drawn from them.
    """
    variance = tally.variance
    delta = tally.mean[POS] - tally.mean[NEG]
    diagonal = variance.sum(axis=0) + delta**2
    unit = np.divide(1.0, diagonal, out=np.zeros_like(delta), where=diagonal > 1e-300)
    error = variance.sum(axis=0) / pairs + (variance / tally.rows[:, None]).sum(axis=0)
    signal = float(np.sum(unit * delta**2))
    return float(np.sqrt(np.sum(unit * error) / signal)) if signal > 0.0 else 1.0
