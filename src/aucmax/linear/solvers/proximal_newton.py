r"""Proximal Newton for a loss of the scores with a ridge and an l1 penalty.

.. math:: J(w) = L(X w) + \tfrac{1}{2} \sum_j \lambda_j w_j^2 + l_1 \|w\|_1

A round takes two steps. A proximal gradient step, with the curvature of each feature,
sets weights to zero or makes them leave it. A truncated Newton step then moves the
others with their signs fixed; a weight that would change its sign becomes zero. Neither
step raises J, and the first ensures convergence. Once the zeros are found, the second
converges as fast as without the l1 penalty.
"""

import numpy as np

from aucmax.core.rows import Float
from aucmax.linear.solvers.newton import (
    Coordinates,
    Iterate,
    Minimum,
    Objective,
    newton_step,
)

_ARMIJO = 1e-4  # required share of the decrease that the slope predicts
_HALVINGS = 40
_TRIALS = 8  # lengths of a Newton step; if all fail, only the first step counts
_ROUNDING = 1e-15  # relative rounding error of J
_FORCING = 0.1  # largest relative residual of the Newton equations


class L1Objective:
    """J, its value and its proximal gradient steps; ``unit`` scales the features."""

    def __init__(self, smooth: Objective, unit: Float, l1: float) -> None:
        self.smooth, self.unit, self.l1 = smooth, unit, l1
        self.curvature = 1.0  # largest one, in units of that of a feature

    def value(self, at: Iterate) -> float:
        """Return J."""
        return self._part(at) + self.l1 * float(np.abs(at.w).sum())

    def slope(self, at: Iterate) -> Float:
        """Return the gradient of the loss and the ridge."""
        return at.gradient + self.smooth.l2 * at.w

    def at(self, w: Float, scores: Float) -> Iterate:
        """Evaluate the loss and its gradient."""
        point = self.smooth.point(scores)
        return Iterate(w, scores, point, self.smooth.gradient(point.slope))

    def residual(self, at: Iterate) -> float:
        """Return the norm of a proximal gradient step, at unit scale."""
        return float(np.sqrt(self._squared(self._proximal(at, 1.0) - at.w)))

    def gradient_step(self, here: Iterate) -> Iterate:
        """Take a proximal gradient step that does not raise J."""
        self.curvature = max(0.5 * self.curvature, 0.25)
        slope, base = self.slope(here), self._part(here)
        for _ in range(_HALVINGS):
            w = self._proximal(here, self.curvature)
            there = self.at(w, self.smooth.X.times(w))
            move = w - here.w
            bound = np.sum(slope * move) + 0.5 * self.curvature * self._squared(move)
            if self._part(there) <= base + bound + _ROUNDING * abs(base):
                return there
            self.curvature *= 2.0
        return here

    def newton_step(self, here: Iterate, at: Coordinates, forcing: float) -> Iterate:
        """Take a Newton step on the weights that are not zero."""
        o, active = self.smooth, here.w != 0.0
        if not active.any():
            return here
        h = np.where(active, self.slope(here) + self.l1 * np.sign(here.w), 0.0)
        c = at.only(active)
        d, steps = newton_step(o, c, here.point, c.gradient(h), forcing)
        move, J, length = c.weights(d), self.value(here), 1.0
        for _ in range(_TRIALS):
            w = here.w + length * move
            flips = w * here.w < 0.0
            w[flips] = 0.0
            scores = o.X.times(w) if flips.any() else here.scores + length * steps
            there = self.at(w, scores)
            predicted = float(np.sum(h * (w - here.w)))
            if self.value(there) <= J + _ARMIJO * min(predicted, 0.0):
                return there
            length *= 0.5
        return here

    def _part(self, at: Iterate) -> float:
        """Return J without the l1 penalty."""
        return at.point.value + self.smooth.ridge(at.w)

    def _squared(self, move: Float) -> float:
        """Return the squared norm of a move, at unit scale."""
        unit = np.divide(move, self.unit, out=np.zeros_like(move), where=self.unit > 0)
        return float(np.sum(unit * unit))

    def _proximal(self, at: Iterate, curvature: float) -> Float:
        step = self.unit * self.unit / curvature
        ahead = at.w - step * self.slope(at)
        return np.sign(ahead) * np.maximum(np.abs(ahead) - step * self.l1, 0.0)


# Trial steps can overflow, and rows of zero weight can hold any value.
@np.errstate(over="ignore", invalid="ignore")
def descend_l1(
    objective: Objective,
    coordinates: Coordinates,
    l1: float,
    tol: float,
    max_iter: int,
    start: Iterate | None = None,
) -> Minimum:
    """Minimise J until a proximal gradient step is ``tol`` times that at zero."""
    J = L1Objective(objective, coordinates.unit, l1)
    here = objective.iterate(np.zeros_like(coordinates.unit))
    first = norm = J.residual(here)
    if start is not None and J.value(start) < J.value(here):
        here, norm = start, J.residual(start)
    history = [J.value(here)]
    n_iter = 0
    while norm > tol * first and n_iter < max_iter:
        n_iter += 1
        here = J.gradient_step(here)
        here = J.newton_step(here, coordinates, min(_FORCING, norm / first))
        norm = J.residual(here)
        history.append(J.value(here))
        if history[-1] >= history[-2]:  # the decrease of J is below its rounding error
            break
    relative = norm / first if first > 0.0 else 0.0
    return Minimum(here, history[-1], relative, max(n_iter, 1), history)
