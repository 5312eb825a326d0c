r"""Balanced logistic loss of single rows.

.. math:: L(s) = \min_b \sum_i c_i \log(1 + \exp(-y_i (s_i + b))),

with weights c that sum to one half in each class. As it includes the best intercept b,
it does not depend on a shift of all scores, as a pairwise loss. So the same solver
(:mod:`aucmax.linear.solvers.newton`) minimises it.
"""

import numpy as np
from scipy.special import expit

from aucmax.core.rows import Float
from aucmax.losses.pairwise import Point

_ROUNDS = 100
_ROUNDING = 1e-15


class BalancedLogistic(Point):
    """The balanced logistic loss at given scores, and its derivatives."""

    def __init__(self, score: Float, share: Float) -> None:
        weight = 0.5 * np.abs(share)
        sign = np.sign(share)
        margin = sign * (score + _threshold(score, sign, weight))
        wrong = expit(-margin)
        self.value = float(np.sum(weight * np.logaddexp(0.0, -margin)))
        self.slope = -sign * weight * wrong
        self._curvature = weight * wrong * (1.0 - wrong)

    def product(self, v: Float) -> Float:
        """Return the Hessian times ``v``; the intercept follows the scores."""
        c = self._curvature
        total = float(np.sum(c))
        mean = float(np.sum(c * v)) / total if total > 0.0 else 0.0
        return c * (v - mean)

    def diagonal(self) -> Float:
        """Return the diagonal of the Hessian."""
        c = self._curvature
        return c - c * c / max(float(np.sum(c)), 1e-300)


def _threshold(score: Float, sign: Float, weight: Float) -> float:
    """Return the best b, by Newton's method with shrinking bounds."""
    low, high = -float(score.max()) - 1.0, -float(score.min()) + 1.0
    b = -float(np.sum(weight * score))
    for _ in range(_ROUNDS):
        wrong = expit(-sign * (score + b))
        slope = -float(np.sum(sign * weight * wrong))
        low, high = (b, high) if slope < 0.0 else (low, b)
        if abs(slope) <= _ROUNDING or high - low <= _ROUNDING * abs(b):
            break
        curvature = float(np.sum(weight * wrong * (1.0 - wrong)))
        step = b - slope / curvature if curvature > 0.0 else low
        b = step if low < step < high else 0.5 * (low + high)
    return b
