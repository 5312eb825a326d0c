r"""Pairwise losses, summed over all pairs of a positive and a negative row.

.. math:: L(s) = \sum_{i: +} \sum_{j: -} \frac{c_i}{\sum c_+} \frac{c_j}{\sum c_-}\,
          \ell(s_i - s_j)

with row weights c. Value and derivatives take O(n log n) time. :data:`NAMES` lists the
losses: "squared_hinge", "logistic", "sigmoid", "exponential", "square",
"smoothed_hinge", "huber", and "hinge", which has no second derivative. "logistic" and
"sigmoid" are accurate to 1e-10 per pair, their second derivatives to 5e-7.

>>> from aucmax import losses
>>> y, score = [0, 0, 1, 1], [0.1, 0.4, 0.3, 2.0]
>>> round(losses.value("squared_hinge", y, score), 4)
0.4625
>>> losses.gradient("squared_hinge", y, score)
array([ 0.4 ,  0.55, -0.95, -0.  ])
"""

from aucmax.losses.functions import (
    NAMES,
    gradient,
    hessian_diagonal,
    hessian_product,
    value,
)

__all__ = [
    "NAMES",
    "gradient",
    "hessian_diagonal",
    "hessian_product",
    "value",
]
