"""Products X w and Xᵀ u for rows of any layout and float type, without a copy of X.

Sums are in float64 and use all cores. The parts of a sum are fixed, so results do not
depend on the number of threads. Several products at a time take one pass over X and
give the same bits.
"""

from typing import Any

import numpy as np

from aucmax.core.jit import kernel, vectorised
from aucmax.core.rows import (
    Float,
    Rows,
    n_rows,
    raw_add_row,
    raw_dot_row,
    row_bytes,
    take_rows,
)
from aucmax.core.threads import in_threads

_TASK_BYTES = 1 << 22
_TOGETHER = 32  # rows that stay in cache from one vector to the next


@vectorised
def dot(a: Float, b: Float) -> float:
    """Return a·b."""
    s = 0.0
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


@kernel
def _dot(X: Any, W: Float, out: Float) -> None:
    for start in range(0, out.shape[1], _TOGETHER):
        stop = min(start + _TOGETHER, out.shape[1])
        for k in range(W.shape[0]):
            w, to = W[k], out[k]
            for i in range(start, stop):
                to[i] = raw_dot_row(X, i, w)


@kernel
def _add(X: Any, U: Float, out: Float) -> None:
    for start in range(0, U.shape[1], _TOGETHER):
        stop = min(start + _TOGETHER, U.shape[1])
        for k in range(U.shape[0]):
            u, to = U[k], out[k]
            for i in range(start, stop):
                if u[i] != 0.0:
                    raw_add_row(X, i, u[i], to)


def _parts(X: Rows, least_bytes: int) -> list[tuple[int, int]]:
    n = n_rows(X)
    size = max(int(max(_TASK_BYTES, least_bytes) / max(row_bytes(X), 1.0)), 1)
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def times(X: Rows, W: Float) -> Float:
    """Return X w, or X w for each row w of a matrix."""
    W = np.ascontiguousarray(W)
    out = np.empty((*W.shape[:-1], n_rows(X)))
    vectors, scores = np.atleast_2d(W), np.atleast_2d(out)
    parts = _parts(X, 0)
    if len(parts) == 1:  # threads would cost more than they save
        _dot(X, vectors, scores)
        return out

    def part(at: tuple[int, int]) -> None:
        _dot(take_rows(X, *at), vectors, scores[:, at[0] : at[1]])

    for _ in in_threads(part, parts):
        pass
    return out


def transposed_times(X: Rows, U: Float, n_features: int) -> Float:
    """Return Xᵀ u, or Xᵀ u for each row u of a matrix; rows with u = 0 are skipped."""
    vectors = np.atleast_2d(U)

    def part(at: tuple[int, int]) -> Float:
        out = np.zeros((len(vectors), n_features))
        _add(take_rows(X, *at), vectors[:, at[0] : at[1]], out)
        return out

    total = np.zeros((len(vectors), n_features))
    parts = _parts(X, 64 * n_features)
    for partial in map(part, parts) if len(parts) == 1 else in_threads(part, parts):
        total += partial
    return total.reshape((*U.shape[:-1], n_features))
