"""Class moments: means, variances and nonzero shares of the features of each class.

Counts are sums of weights, so the moments of weighted rows are those of repeated rows.
Covariances, for exact solutions, are in :mod:`aucmax.linear.solvers.covariances`.
"""

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
from aucmax.core.threads import in_threads

POS, NEG = 0, 1  # rows of an array of class statistics
# A mean square about the reference point below ROUNDING times the squared mean is
# rounding error; one below TINY has no inverse.
ROUNDING, TINY = 1e-15, 1e-300
# Default tolerance of solvers, relative to the sampling error of Δ. A better solution
# would be no more accurate, and with more features than rows it would overfit.
NOISE = 0.125
# A variance below this share of the squared mean has lost digits in sums about zero.
_INACCURATE = 1e-6

_BLOCK_BYTES = 1 << 24  # fixed, so that sums do not depend on the number of threads


class ClassMoments(NamedTuple):
    """Moments of a set of rows for each class (positives first)."""

    weight: Float  # (2,) sum of the weights
    rows: Float  # (2,) number of rows of nonzero weight
    mean: Float  # (2, d)
    variance: Float  # (2, d)
    nonzero_share: Float  # (2, d) share of the rows in which a feature is nonzero

    def __add__(self, other: Any) -> "ClassMoments":
        """Return the moments of both sets of rows; either may lack a class."""
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros(2), where=weight > 0.0)
        of_a, of_b = (1.0 - share)[:, np.newaxis], share[:, np.newaxis]
        # Moments of a class without rows are undefined: set them to zero.
        (mean_a, variance_a, share_a), (mean_b, variance_b, share_b) = (
            [np.where(one.weight[:, np.newaxis] > 0.0, x, 0.0) for x in one[2:]]
            for one in (self, other)
        )
        apart = mean_b - mean_a
        return ClassMoments(
            weight,
            self.rows + other.rows,
            mean_a + of_b * apart,
            of_a * variance_a + of_b * variance_b + of_a * of_b * apart**2,
            of_a * share_a + of_b * share_b,
        )


# Slots of the sums; in each pair the positives come first. Two are unused, so that the
# numbers of a feature share a cache line.
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
    sums: Float, weight: Float, mean: Float, variance: Float, nonzero_share: Float
) -> None:
    """Turn sums into moments."""
    for j in range(sums.shape[1]):
        for side in range(2):
            m = sums[_SUM + side, j] / weight[side]
            mean[side, j] = m
            square = sums[_SQUARES + side, j] / weight[side]
            variance[side, j] = max(square - m * m, 0.0)
            nonzero_share[side, j] = sums[_COUNT + side, j] / weight[side]


@kernel
def _add_centred(X: Any, y: Float, mean: Float, features: Any, sums: Float) -> None:
    """Add up the squares of some features about the class means."""
    x = np.zeros(mean.shape[1])
    for i in range(y.shape[0]):
        if y[i] != 0.0:
            side = POS if y[i] > 0.0 else NEG
            raw_add_row(X, i, 1.0, x)
            for k in range(features.shape[0]):
                off = x[features[k]] - mean[side, features[k]]
                sums[side, k] += abs(y[i]) * off * off
            raw_add_row(X, i, -1.0, x)


def measure(X: Rows, y: Float, n_features: int) -> ClassMoments:
    """Return the class moments of all rows; ``y`` holds weights, signed by class."""
    n = n_rows(X)
    # Blocks large enough to be worth a thread, in bytes and relative to their sums.
    least = max(_BLOCK_BYTES, 1024 * n_features)
    size = -(-n // max(int(n * row_bytes(X) / least), 1))

    def block(start: int) -> tuple[Float, Float, Float]:
        stop = min(start + size, n)
        weight, rows = np.zeros(2), np.zeros(2)
        sums = zeros_for(X, _SLOTS, n_features)
        _add(take_rows(X, start, stop), y[start:stop], weight, rows, sums)
        return weight, rows, sums

    starts = range(0, max(n, 1), max(size, 1))
    # Starting a thread takes as long as 5000 rows of a9a.
    parts = map(block, starts) if len(starts) == 1 else in_threads(block, starts)
    weight, rows, sums = next(parts)
    for part in parts:
        for total, more in zip((weight, rows, sums), part, strict=True):
            total += more
    mean, variance, nonzero_share = np.empty((3, 2, n_features))
    _divide(sums, weight, mean, variance, nonzero_share)
    with np.errstate(all="ignore"):  # the caller checks the result
        inaccurate = np.flatnonzero((variance < _INACCURATE * mean * mean).any(axis=0))
        if len(inaccurate):
            squares = np.zeros((2, len(inaccurate)))
            _add_centred(X, y, mean, inaccurate, squares)
            variance[:, inaccurate] = squares / weight[:, np.newaxis]
    return ClassMoments(weight, rows, mean, variance, nonzero_share)


def noise(moments: ClassMoments, pairs: float = np.inf) -> float:
    """Return the relative sampling error of Δ = m₊ - m₋, for features of unit scale.

    It includes the error of drawing that many ``pairs`` from the rows.
    """
    variance, n = moments.variance, moments.rows[:, None]
    delta = moments.mean[POS] - moments.mean[NEG]
    diagonal = variance.sum(axis=0) + delta**2
    unit = np.divide(1.0, diagonal, out=np.zeros_like(delta), where=diagonal > 1e-300)
    error = variance.sum(axis=0) / pairs + (variance / n).sum(axis=0)
    signal = float(np.sum(unit * delta**2))
    return float(np.sqrt(np.sum(unit * error) / signal)) if signal > 0.0 else 1.0
