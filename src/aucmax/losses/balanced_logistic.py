r"""Balanced logistic loss: rows against a threshold, in place of pairs.

.. math:: L(s) = \min_b \sum_i c_i \log(1 + \exp(-y_i (s_i + b))),

each class with weights c of sum one half. As the best threshold b is part of it, a
shift of all scores does nothing, as with a loss of pairs; so what minimises those
(:mod:`aucmax.linear.solvers.newton`) minimises this.
"""

import numpy as np
from scipy.special import expit

from aucmax.core.rows import Float
from aucmax.losses.pairwise import Point

_ROUNDS = 100
_ROUNDING = 1e-15


class BalancedLogistic(Point):
    """The loss at some scores, and its derivatives there."""

    def __init__(self, score: Float, share: Float) -> None:
        weight = 0.5 * np.abs(share)
        sign = np.sign(share)
        margin = sign * (score + _threshold(score, sign, weight))
        wrong = expit(-margin)
        self.value = float(np.sum(weight * np.logaddexp(0.0, -margin)))
        self.slope = -sign * weight * wrong
        self._curvature = weight * wrong * (1.0 - wrong)

    def product(self, v: Float) -> Float:
        """Return the Hessian times ``v``; the threshold follows the scores."""
        c = self._curvature
        total = float(np.sum(c))
        mean = float(np.sum(c * v)) / total if total > 0.0 else 0.0
        return c * (v - mean)

    def diagonal(self) -> Float:
        """Return the diagonal of the Hessian."""
        c = self._curvature
        return c - c * c / max(float(np.sum(c)), 1e-300)


def _threshold(score: Float, sign: Float, weight: Float) -> float:
    """Return the best b, by Newton's method between bounds that close in."""
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
