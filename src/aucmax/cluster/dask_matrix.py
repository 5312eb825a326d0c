"""Products with rows on the workers, for the solvers of a single machine.

A vector with one number per row (scores, slopes) lives on the client; the workers hold
X alone. So ``X v`` sends d numbers to each worker and returns one number per row, and
``Xᵀ u`` sends each block its slice of u and returns d numbers. Losses, line search and
conjugate gradients run on the client, by the code of
:mod:`aucmax.linear.solvers.newton` and :mod:`aucmax.losses.pairwise`.
"""

import numpy as np

from aucmax.base.class_moments import ClassMoments, measure
from aucmax.cluster.distributed_rows import Block, DistributedRows, check_classes
from aucmax.core import products
from aucmax.core.rows import Float


class DaskMatrix:
    """Matrix of the rows of non-zero weight, in the order of the blocks.

    Implements :class:`aucmax.linear.solvers.matrix.Matrix`. ``signed`` are the weights
    of these rows, signed by class. Construction takes one pass.
    """

    def __init__(self, rows: DistributedRows) -> None:
        self._rows = rows
        signed = rows.collect(_signed)
        self._ends = np.cumsum([len(part) for part in signed])[:-1]
        self.signed: Float = np.concatenate(signed)
        positive = np.count_nonzero(self.signed > 0.0)
        counts = [float(positive), float(len(self.signed) - positive)]
        check_classes(rows, [np.array(counts)])

    def times(self, v: Float) -> Float:
        """Return X v; one pass."""
        return np.concatenate(self._rows.collect(_times, v))

    def transposed_times(self, u: Float) -> Float:
        """Return Xᵀ u; one pass."""
        parts = np.split(u, self._ends)
        found: Float = self._rows.total_each(_transposed_times, parts)
        return found


def _signed(block: Block, _: None) -> Float:
    return block.signed


def _times(block: Block, v: Float) -> Float:
    return products.times(block.rows, v)


def _transposed_times(block: Block, u: Float) -> Float:
    return products.transposed_times(block.rows, u, block.X.shape[1])


def _measured(block: Block, _: None) -> ClassMoments:
    with np.errstate(all="ignore"):  # a block may lack a class
        return measure(block.rows, block.signed, block.X.shape[1])


def feature_moments(rows: DistributedRows) -> ClassMoments:
    """Return the means and variances of the features in each class; one pass."""
    found: ClassMoments = rows.total(_measured)
    if not all(np.isfinite(values).all() for values in (found.mean, found.variance)):
        raise ValueError("Sums over X exceed the range of float64; rescale X.")
    return found
