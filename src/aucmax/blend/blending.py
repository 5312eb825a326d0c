r"""Weights of the members of a blend: logistic regression on out-of-fold scores.

With the standardised scores :math:`z_i` of the members, the weights minimise

.. math:: \sum_i c_i \log(1 + e^{-y_i (w \cdot z_i + b)}) + \lambda \|w\|^2,
   \quad w \ge 0 ,

and are divided by their sum. The bound keeps members from getting negative weights. The
penalty keeps weights of similar members alike. It also shrinks the size of all weights,
more so in a fold, which has fewer rows. With a sum of one, scores have the same scale
in the folds and in the blend that is served, so that calibration and threshold, which
are found on out-of-fold scores, fit the scores that are served.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from aucmax.core.rows import Float

_RIDGE = 5.0  # λ; chosen on tables of 150 to 2,400 rows, and hardly matters for more
_MIN_WEIGHT = 0.01  # of the total: lighter members are not worth the time to score


def blend_weights(Z: Float, signed: Float) -> Float:
    """Return the weight of each member, with a sum of one.

    ``Z`` has one column of scores per member.
    """
    count = Z.shape[1]
    sign, weight = np.sign(signed), np.abs(signed)
    weight = weight / weight.mean()
    class_ratio = weight[sign > 0.0].sum() / weight[sign < 0.0].sum()

    def loss(parameters: Float) -> tuple[float, Float]:
        w = parameters[:count]
        margin = sign * (Z @ w + parameters[count])
        slope = -weight * sign * expit(-margin)
        value = weight @ np.logaddexp(0.0, -margin) + _RIDGE * (w @ w)
        return float(value), np.append(Z.T @ slope + 2.0 * _RIDGE * w, slope.sum())

    start = np.append(np.full(count, 1.0 / count), np.log(class_ratio))
    bounds = [(0.0, None)] * count + [(None, None)]
    result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    w = np.asarray(result.x[:count])
    if not w.any():
        return start[:count]  # equal weights
    w[w < _MIN_WEIGHT * w.sum()] = 0.0
    return w / w.sum()
