r"""Weights of the members of a blend: logistic regression on out-of-fold scores.

With the standardised scores :math:`z_i` of the members, the weights minimise

.. math:: \sum_i c_i \log(1 + e^{-y_i (w \cdot z_i + b)}) + \lambda \|w\|^2,
   \quad w \ge 0 .

The bound keeps members from getting negative weights. The small penalty matters where a
member separates the classes; it is larger where rows are very few.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from aucmax.core.rows import Float

VERY_FEW_ROWS = 500
RIDGE, RIDGE_OF_FEW = 0.5, 5.0  # λ; the best of 0.5, 2, 5 and 20 on tables for choosing


def blend_weights(Z: Float, signed: Float) -> Float:
    """Return the weight of each member; ``Z`` has one column of scores per member."""
    ridge = RIDGE_OF_FEW if len(signed) < VERY_FEW_ROWS else RIDGE
    count = Z.shape[1]
    sign, weight = np.sign(signed), np.abs(signed)
    weight = weight / weight.mean()
    class_ratio = weight[sign > 0.0].sum() / weight[sign < 0.0].sum()

    def loss(parameters: Float) -> tuple[float, Float]:
        w = parameters[:count]
        margin = sign * (Z @ w + parameters[count])
        slope = -weight * sign * expit(-margin)
        value = weight @ np.logaddexp(0.0, -margin) + ridge * (w @ w)
        return float(value), np.append(Z.T @ slope + 2.0 * ridge * w, slope.sum())

    start = np.append(np.full(count, 1.0 / count), np.log(class_ratio))
    bounds = [(0.0, None)] * count + [(None, None)]
    result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    w = np.asarray(result.x[:count])
    return w if w.any() else start[:count]  # all weights are zero: use equal weights
