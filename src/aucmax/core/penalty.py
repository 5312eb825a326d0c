r"""The default ridge: one that needs no tuning and depends on no feature's unit.

.. math:: \lambda_j = \tfrac{1}{2} \ell''\, E[z_j^2 \mid z_j \ne 0] \sum_i s_i^2

with z the difference of a pair, :math:`\ell''` the curvature of the loss and s the
shares of the rows in their classes; without weights the sum is
:math:`1/n_+ + 1/n_-`. So a feature is held back as it would be on unit scale, as
logistic regression does with C=1 on standardised features, and less the more rows there
are. What is rare is not scaled up for that: zeros count for nothing in the mean, and a
word that is in one text has the penalty of one that is in all.
"""

import numpy as np

from aucmax.core.jit import kernel
from aucmax.core.rows import Rows, pack_row
from aucmax.core.table import Float


def default_ridge(X: Rows, share: Float, diagonal: Float, curvature: float) -> Float:
    """Return λ; ``diagonal`` are the means of z² over all pairs."""
    there = np.zeros((2, len(diagonal)))
    _frequency(X, share, there)
    found = there[0] + there[1] - there[0] * there[1]  # in a row of a pair, or in both
    squares = float(np.sum(share[share != 0.0] ** 2))
    mean = diagonal / np.where(found > 0.0, found, 1.0)
    return 0.5 * curvature * squares * mean


@kernel
def _frequency(X: Rows, share: Float, out: Float) -> None:
    """Add to ``out`` the share of either class in which a feature is not zero."""
    x, at = np.empty(out.shape[1]), np.empty(out.shape[1], np.uint32)
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            side = 0 if share[i] > 0.0 else 1
            for k in range(pack_row(X, i, x, at)):
                out[side, at[k]] += abs(share[i])
