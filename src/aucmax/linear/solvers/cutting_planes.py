r"""Cutting planes: a piecewise linear lower bound plus a ridge, and its minimum.

.. math:: \max_k (a_k \cdot w + b_k) + \tfrac{1}{2} \sum_j \lambda_j w_j^2

has its minimum at :math:`w_j = -\sum_k \alpha_k a_{kj} / \lambda_j`, where α maximises

.. math:: D(\alpha) = b \cdot \alpha
          - \tfrac{1}{2} \sum_j \tfrac{1}{\lambda_j} (\sum_k \alpha_k a_{kj})^2

over α ≥ 0 with sum one; D of any such α is a lower bound on the function plus the
ridge. The maximum is found by an active-set method: exact on the active planes, adding
or removing one at a time, from the α before.
"""

import numpy as np

from aucmax.core.rows import Float

_IDLE = 50  # rounds with α = 0 after which a plane is dropped
_JITTER = 1e-14  # regularises planes that are equal up to rounding
_STILL = 1e-13  # smallest gain of a new plane, relative to D and its terms


class Planes:
    """Planes below a convex function; ``unit`` is 1/√λ, zero for weights held at zero.

    The first plane is zero: the function is not negative.
    """

    def __init__(self, unit: Float) -> None:
        self.unit = unit
        self.A = np.zeros((16, len(unit)))  # in units of w √λ; grows by doubling
        self.b = np.zeros(1)
        self.G = np.zeros((1, 1))  # Gram matrix
        self.alpha = np.ones(1)
        self.idle = np.zeros(1, dtype=np.int64)

    def add(self, a: Float, b: float) -> None:
        """Add the plane a·w + b."""
        k = len(self.b)
        if k == len(self.A):
            self.A = np.concatenate([self.A, np.zeros_like(self.A)])
        self.A[k] = self.unit * a
        row = self.A[: k + 1] @ self.A[k]
        self.G = np.pad(self.G, (0, 1))
        self.G[k] = self.G[:, k] = row
        self.b = np.append(self.b, b)
        self.alpha = np.append(self.alpha, 0.0)
        self.idle = np.append(self.idle, 0)

    def solve(self) -> tuple[Float, float]:
        """Return w and D, and drop planes that have been inactive for long."""
        self.alpha = maximise(self.G, self.b, self.alpha)
        v = self.alpha @ self.A[: len(self.b)]
        bound = float(self.b @ self.alpha) - 0.5 * float(np.sum(v * v))
        self.idle = np.where(self.alpha > 0.0, 0, self.idle + 1)
        keep = self.idle <= _IDLE
        keep[0] = True
        if not keep.all():  # α is as good without them: the bound does not fall
            count = int(keep.sum())
            self.A[:count] = self.A[: len(keep)][keep]
            self.G = self.G[np.ix_(keep, keep)]
            self.b, self.alpha = self.b[keep], self.alpha[keep]
            self.idle = self.idle[keep]
        return -self.unit * v, bound


def maximise(G: Float, b: Float, alpha: Float) -> Float:
    """Maximise b·α - ½ α·G α over α ≥ 0 with sum one, starting from ``alpha``."""
    active = [int(k) for k in np.flatnonzero(alpha)]
    alpha = alpha.copy()
    noise = _STILL * float(np.abs(b).max() + np.abs(G).max() ** 0.5)
    for _ in range(10 * len(b) + 100):
        _maximise_active(G, b, alpha, active)
        gain = b - G @ alpha
        here = float(alpha @ gain)
        best = int(np.argmax(gain))
        if not gain[best] > here + noise or best in active:
            break
        active.append(best)
    return alpha


def _maximise_active(G: Float, b: Float, alpha: Float, active: list[int]) -> None:
    """Set α to the maximum on the ``active`` planes, and remove planes with α ≤ 0."""
    while True:
        goal = _stationary(G[np.ix_(active, active)], b[active])
        now = alpha[active]
        if (goal > 0.0).all():
            alpha[active] = goal / goal.sum()
            return
        # Move until the first α is zero, and remove its plane.
        leaves = np.flatnonzero(goal <= 0.0)
        share = now[leaves] / np.maximum(now[leaves] - goal[leaves], 1e-300)
        first = int(leaves[np.argmin(share)])
        now = np.maximum(now + float(share.min()) * (goal - now), 0.0)
        now[first] = 0.0
        alpha[active] = now / now.sum()
        del active[first]


def _stationary(G: Float, b: Float) -> Float:
    """Maximise b·α - ½ α·G α over α of any sign with sum one."""
    k = len(b)
    if k == 1:
        return np.ones(1)
    size = max(float(np.trace(G)) / k, _JITTER * float(np.abs(b).max()), 1e-300)
    system = np.empty((k + 1, k + 1))
    system[:k, :k] = G / size
    system[range(k), range(k)] += _JITTER
    system[k, :k] = system[:k, k] = 1.0
    system[k, k] = 0.0
    return np.linalg.solve(system, np.append(b / size, 1.0))[:k]
