"""X w and Xᵀ u for rows of any layout and float type, without a copy of X.

Sums are in float64, on all cores; the parts of a sum are fixed, so that results do not
depend on the number of threads.
"""

from typing import Any

import numpy as np

from aucmax.core.jit import kernel
from aucmax.core.moments import in_threads
from aucmax.core.rows import (
    Rows,
    n_rows,
    raw_add_row,
    raw_dot_row,
    row_bytes,
    take_rows,
)
from aucmax.core.table import Float

_TASK_BYTES = 1 << 22


@kernel
def _dot(X: Any, w: Float, out: Float) -> None:
    for i in range(out.shape[0]):
        out[i] = raw_dot_row(X, i, w)


@kernel
def _add(X: Any, u: Float, out: Float) -> None:
    for i in range(u.shape[0]):
        if u[i] != 0.0:
            raw_add_row(X, i, u[i], out)


def _parts(X: Rows, least_bytes: int) -> list[tuple[int, int]]:
    n = n_rows(X)
    size = max(int(max(_TASK_BYTES, least_bytes) / max(row_bytes(X), 1.0)), 1)
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def times(X: Rows, w: Float) -> Float:
    """Return X w."""
    out = np.empty(n_rows(X))
    parts = _parts(X, 0)
    if len(parts) == 1:  # threads would cost more than they save
        _dot(X, w, out)
        return out

    def part(at: tuple[int, int]) -> None:
        _dot(take_rows(X, *at), w, out[at[0] : at[1]])

    for _ in in_threads(part, parts):
        pass
    return out


def transposed_times(X: Rows, u: Float, n_features: int) -> Float:
    """Return Xᵀ u; rows where u is zero are not looked at."""

    def part(at: tuple[int, int]) -> Float:
        out = np.zeros(n_features)
        _add(take_rows(X, *at), u[at[0] : at[1]], out)
        return out

    parts = _parts(X, 64 * n_features)
    if len(parts) == 1:
        return part(parts[0])
    total = np.zeros(n_features)
    for some in in_threads(part, parts):
        total += some
    return total
