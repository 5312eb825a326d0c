"""Matrix interface of the solvers: products with X and its transpose."""

from typing import NamedTuple, Protocol

from aucmax.core import products
from aucmax.core.rows import Float, Rows


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
        return products.times(self.rows, v)

    def transposed_times(self, u: Float) -> Float:
        """Return Xᵀ u."""
        return products.transposed_times(self.rows, u, self.n_features)
