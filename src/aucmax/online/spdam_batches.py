"""The batches of SPDAM and their step sizes.

See :mod:`aucmax.online.spdam`.
"""

from math import ceil
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows
from aucmax.online.engine import Known, Table, scales
from aucmax.online.engine.centred_rows import add_row, dot_row
from aucmax.online.engine.feature_table import class_means

ROUND = 3  # passes of steps between two gradients
_POWER = 2, 8  # power iterations per batch, and in all at least
_SAFETY = 1.1  # power iterations find a little less than the eigenvalue

# Slots of dual: the extrapolated weights w̄; u; the change of u by the batch.
BAR, U, ADD = range(3)


@inlined
def bar_scores(table: Table, dual: Float) -> tuple[float, float]:
    """Return the mean scores of the classes by w̄; O(d)."""
    a = b = 0.0
    for j in range(dual.shape[1]):
        m_pos, m_neg = class_means(table, j)
        a += dual[BAR, j] * m_pos
        b += dual[BAR, j] * m_neg
    return a, b


@kernel
def largest_eigenvalues(
    X: Rows,
    share: Float,
    order: NDArray[np.int64],
    ends: NDArray[np.int64],
    table: Table,
    dual: Float,
    how: Known,
    times: int,
    found: Float,
) -> None:
    """Write the largest eigenvalue of each batch's mean of x̄ x̄ᵀ, in scaled features.

    By ``times`` power iterations per batch, from the vector in BAR.
    """
    scale, ref, listed = scales(table), table.ref, how.listed
    start = 0
    for batch in range(ends.shape[0]):
        for _ in range(times):
            a, b = bar_scores(table, dual)
            sum_pos = sum_neg = 0.0
            for j in range(dual.shape[1]):
                dual[ADD, j] = 0.0
            for k in range(start, ends[batch]):
                i = order[k]
                s = dot_row(X, i, dual, BAR, ref, listed)
                s -= a if share[i] > 0.0 else b
                s *= 2.0 * abs(share[i])
                add_row(X, i, s, dual, ADD, ref, listed)
                if share[i] > 0.0:
                    sum_pos += s
                else:
                    sum_neg += s
            size = 0.0
            for j in range(dual.shape[1]):
                m_pos, m_neg = class_means(table, j)
                dual[ADD, j] -= sum_pos * m_pos + sum_neg * m_neg
                size += scale[j] * dual[ADD, j] * dual[ADD, j]
            size = np.sqrt(size)
            if size == 0.0:
                break  # all rows of the batch are at the mean of their class
            found[batch] = size * ends.shape[0]
            for j in range(dual.shape[1]):
                dual[BAR, j] = scale[j] * dual[ADD, j] / size
        start = ends[batch]


def pace(batches: int, kappa2: float, convexity: float) -> tuple[float, float, float]:
    """Return σ, τ and θ; ``convexity`` is λ, in scaled features."""
    sigma = 0.5 / (ROUND - 1.0)  # so that 1/(1 - θ) is a round
    if convexity > 0.0:
        rest, ratio = batches - 1.0, convexity / kappa2  # in units of m
        root = np.sqrt(rest * rest + 4.0 * batches / ratio)
        sigma = max(sigma, float(0.25 * ratio * (rest + root)))
    theta = 1.0 - 2.0 * sigma / (batches * (1.0 + 2.0 * sigma))
    # The proof has 4 for 2; a round that it guards against would be undone.
    return sigma, 1.0 / (2.0 * sigma * kappa2), theta


def printed_pace(
    n: int, m: int, kappa2: float, lam: float
) -> tuple[float, float, float]:
    """Return σ (corrected), τ and θ of Theorem 5.1; ``lam`` is λ."""
    root = np.sqrt((n - m) ** 2 + 4.0 * n * kappa2 * m / lam)
    sigma = lam * (n - m + root) / (4.0 * m * kappa2)
    return sigma, 1.0 / (4.0 * sigma * kappa2), 1.0 - lam / (lam + 2.0 * sigma * kappa2)


def rows_a_batch(batch_size: float, n: int) -> int:
    """Return m, the number of rows in a batch."""
    size = batch_size if isinstance(batch_size, Integral) else ceil(batch_size * n)
    return min(int(size), n)


def partition(
    y: Float, batch_size: float, rng: np.random.RandomState
) -> list[NDArray[np.int64]]:
    """Return a random partition of the rows; rows of a batch are sorted."""
    present = np.flatnonzero(y)  # rows of weight zero are ignored
    n = len(present)
    batches = ceil(n / rows_a_batch(batch_size, n))
    parts = np.array_split(present[rng.permutation(n)], batches)
    return [np.sort(part) for part in parts]


def visit(
    batches: list[NDArray[np.int64]], rng: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of all batches in random order, and the end of each batch."""
    parts = [batches[k] for k in rng.permutation(len(batches))]
    return np.concatenate(parts), np.cumsum([len(part) for part in parts])


@kernel
def _shuffle_starts(
    rows: NDArray[np.int64], swaps: NDArray[np.int64], drawn: NDArray[np.int64]
) -> None:
    """Draw batches by the first swaps of a shuffle each (Fisher and Yates); O(m)."""
    for batch in range(swaps.shape[0]):
        for k in range(swaps.shape[1]):
            other = swaps[batch, k]
            rows[k], rows[other] = rows[other], rows[k]
            drawn[batch, k] = rows[k]


def draw(
    y: Float, m: int, rng: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and batch ends of a pass as published: batches are drawn anew.

    A batch has m different rows, sorted.
    """
    rows = np.flatnonzero(y)
    first, batches = np.arange(m), ceil(len(rows) / m)
    swaps = first + (rng.random_sample((batches, m)) * (len(rows) - first)).astype(int)
    drawn = np.empty_like(swaps)
    _shuffle_starts(rows, swaps, drawn)
    return np.sort(drawn, axis=1).ravel(), m * np.arange(1, batches + 1)


def longest(X: Rows, share: Float, table: Table, dual: Float, how: Known) -> float:
    """Return the largest ‖x̄‖²: the eigenvalue of a batch of one row."""
    present = np.flatnonzero(share)
    found = np.zeros(len(present))
    dual[BAR] = 1.0
    ends = np.arange(1, len(present) + 1)
    largest_eigenvalues(X, share, present, ends, table, dual, how, 2, found)
    return float(found.max())


def widest(
    X: Rows,
    share: Float,
    batches: list[NDArray[np.int64]],
    table: Table,
    dual: Float,
    how: Known,
    rng: np.random.RandomState,
) -> float:
    """Return κ², the largest eigenvalue over all batches."""
    scale = scales(table)
    dual[BAR] = np.sqrt(scale) * rng.standard_normal(len(scale))
    found = np.zeros(len(batches))
    each, in_all = _POWER
    times = max(each, ceil(in_all / len(batches)))
    largest_eigenvalues(X, share, *visit(batches, rng), table, dual, how, times, found)
    return _SAFETY * float(found.max())
