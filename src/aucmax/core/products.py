"""Products X w and Xᵀ u for rows of any layout and float type, without a copy of X.

Sums are in float64 and use all cores. The parts of a sum are fixed, so results do not
depend on the number of threads. Solvers see a :class:`Matrix`.
"""

from typing import Any, NamedTuple, Protocol

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


@vectorised
def dot(a: Float, b: Float) -> float:
    """Return a·b."""
    s = 0.0
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


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
    w, out = np.ascontiguousarray(w), np.empty(n_rows(X))

    def part(at: tuple[int, int]) -> None:
        _dot(take_rows(X, *at), w, out[at[0] : at[1]])

    parts = _parts(X, 0)
    # For one part, threads would cost more than they save.
    for _ in map(part, parts) if len(parts) == 1 else in_threads(part, parts):
        pass
    return out


def transposed_times(X: Rows, u: Float, n_features: int) -> Float:
    """Return Xᵀ u; rows with u = 0 are skipped."""

    def part(at: tuple[int, int]) -> Float:
        out = np.zeros(n_features)
        _add(take_rows(X, *at), u[at[0] : at[1]], out)
        return out

    total = np.zeros(n_features)
    parts = _parts(X, 64 * n_features)
    for partial in map(part, parts) if len(parts) == 1 else in_threads(part, parts):
        total += partial
    return total


class Matrix(Protocol):
    """Feature matrix X that solvers only multiply with.

    The rows can be in memory (:class:`LocalMatrix`) or on the workers of a cluster
    (:class:`aucmax.cluster.fitting.DaskMatrix`).
    """

    def times(self, v: Float) -> Float:
        """Return X v."""
        ...

    def transposed_times(self, u: Float) -> Float:
        """Return Xᵀ u; rows where u is zero do not count, whatever their values."""
        ...


class LocalMatrix(NamedTuple):
    """Feature matrix in memory, dense or CSR."""

    rows: Rows
    n_features: int

    def times(self, v: Float) -> Float:
        """Return X v."""
        return times(self.rows, v)

    def transposed_times(self, u: Float) -> Float:
        """Return Xᵀ u."""
        return transposed_times(self.rows, u, self.n_features)
