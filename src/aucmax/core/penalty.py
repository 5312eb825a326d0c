r"""The default ridge: one that needs no tuning and depends on no feature's unit.

.. math:: \lambda_j = \tfrac{1}{2} \ell''\, E[z_j^2 \mid z_j \ne 0] (1/n_+ + 1/n_-)

with z the difference of a pair, :math:`\ell''` the curvature of the loss and n the rows
of a class; a weight of k is k rows. So a feature is held back as it would be on unit scale, as
logistic regression does with C=1 on standardised features, and less the more rows there
are. What is rare is not scaled up for that: zeros count for nothing in the mean.

Where features are many and rare, as in texts, their values have one unit already, and
say what a feature is worth. With more features than rows and less than a tenth of the
values not zero, all have the same:

.. math:: \lambda = \tfrac{1}{20} \ell''\, E \|z\|^2 (1/n_+ + 1/n_-)

Both factors were chosen by test AUC: see ``benchmarks/bench_penalty.py``.
"""

import numpy as np

from aucmax.core.jit import kernel
from aucmax.core.pairs import shares
from aucmax.core.rows import Rows, pack_row
from aucmax.core.table import Float

_EACH, _ALL = 0.5, 0.05  # the factors
_SPARSE = 0.1  # share of the values that are not zero, below which all are rare


def default_ridge(X: Rows, y: Float, diagonal: Float, curvature: float) -> Float:
    """Return λ; ``diagonal`` are the means of z² over all pairs."""
    there = np.zeros((2, len(diagonal)))
    _frequency(X, shares(y), there)
    found = there[0] + there[1] - there[0] * there[1]  # in a row of a pair, or in both
    n_pos, n_neg = y[y > 0.0].sum(), -y[y < 0.0].sum()
    size = curvature * float(1.0 / n_pos + 1.0 / n_neg)
    if len(diagonal) > n_pos + n_neg and there.mean() < _SPARSE:
        return np.full(len(diagonal), _ALL * size * float(diagonal.sum()))
    return _EACH * size * (diagonal / np.where(found > 0.0, found, 1.0))


@kernel
def _frequency(X: Rows, share: Float, out: Float) -> None:
    """Add to ``out`` the share of either class in which a feature is not zero."""
    x, at = np.empty(out.shape[1]), np.empty(out.shape[1], np.uint32)
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            side = 0 if share[i] > 0.0 else 1
            for k in range(pack_row(X, i, x, at)):
                out[side, at[k]] += abs(share[i])
