r"""Truncated Newton for a loss of the scores plus a ridge.

.. math:: J(w) = L(X w) + \tfrac{l_2}{2} \|w\|^2

The steps solve the Newton equations by conjugate gradients, only as well as it pays
(Eisenstat and Walker), in coordinates in which the curvature at zero is about one: then
raw features do no harm, and norms of gradients mean something. In place of l2 there may
be an array, a ridge for each feature. A step is tried on the
*scores*: X times the step once, and each trial costs no more than the loss. J never
rises.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from aucmax.core.pairs import Point
from aucmax.core.products import times, transposed_times
from aucmax.core.rows import Rows
from aucmax.core.table import Float

_ENOUGH = 1e-4  # of the decrease that the slope promises (Armijo)
_HALVINGS = 40
_ROUNDING = 1e-16  # of J: a decrease that cannot be seen
_FORCING = 0.5  # the first, and largest, relative residual of the Newton equations
_ROUNDS = 200  # of conjugate gradients a step
_FLAT = 1e-12  # curvature below this share of the largest seen is none
_REACH = 10.0  # of a step: in units of the score, and of the scores so far
_JITTER = 1e-7  # keeps the coordinates of copied features apart


class Minimum(NamedTuple):
    """What the solver has found."""

    w: Float
    scores: Float  # of all rows
    objective: float
    gradient_norm: float  # relative to that at zero
    n_iter: int
    history: list[float]  # of J, from the start


class Coordinates:
    """Weights of features of unit scale, w = unit u; features that vary only."""

    def __init__(
        self, diagonal: Float, varies: NDArray[np.bool_], l2: float | Float
    ) -> None:
        safe = np.where(varies, 2.0 * diagonal + l2, np.inf)
        self.unit = 1.0 / np.sqrt(safe)

    def weights(self, u: Float) -> Float:
        """Return w of u."""
        return self.unit * u

    def gradient(self, g: Float) -> Float:
        """Return the gradient by u of that by w."""
        return self.unit * g


class FullCoordinates(Coordinates):
    """Coordinates in which the square loss has curvature one in all directions."""

    def __init__(self, H: Float, varies: NDArray[np.bool_], l2: float | Float) -> None:
        diagonal = np.zeros(len(varies))
        diagonal[varies] = np.diag(H)
        super().__init__(diagonal, varies, l2)
        self.varies = varies
        unit = self.unit[varies]
        A = H * unit * (2.0 * unit[:, np.newaxis])
        np.fill_diagonal(A, 1.0 + _JITTER)
        self.L = cholesky(A, lower=True, overwrite_a=True, check_finite=False)

    def weights(self, u: Float) -> Float:
        """Return w of u."""
        out = np.zeros(len(self.unit))
        out[self.varies] = solve_triangular(
            self.L, u[self.varies], lower=True, trans=1, check_finite=False
        )
        return self.unit * out

    def gradient(self, g: Float) -> Float:
        """Return the gradient by u of that by w."""
        out = np.zeros(len(self.unit))
        out[self.varies] = solve_triangular(
            self.L, (self.unit * g)[self.varies], lower=True, check_finite=False
        )
        return out


def _dot(u: Float, v: Float) -> float:
    """Return u·v, the same bits for any number of threads."""
    return float(np.sum(u * v))


class Objective:
    """J and its derivatives, for rows that are there (``present``).

    Only differences of rows count; ``ref`` is a row in their middle.
    """

    def __init__(
        self,
        X: Rows,
        share: Float,
        loss: Callable[[Float, Float], Point],
        l2: float | Float,
        ref: Float,
    ) -> None:
        self.X, self.loss, self.l2, self.ref = X, loss, l2, ref
        present = np.flatnonzero(share)
        self.all = len(present) == len(share)
        self.present, self.n = present, len(share)
        self.share = share if self.all else share[present]

    def at(self, scores: Float) -> Point:
        """Return the loss at scores of all rows."""
        return self.loss(scores if self.all else scores[self.present], self.share)

    def gradient(self, slope: Float, w: Float) -> Float:
        """Return Xᵀ slope + l2 w."""
        g = transposed_times(self.X, self._everywhere(slope), len(w)) + self.l2 * w
        return g - float(slope.sum()) * self.ref  # zero, were it not for rounding

    def ridge(self, v: Float, w: Float) -> float:
        """Return l2 v·w."""
        return _dot(self.l2 * v, w)

    def along(self, point: Point, v: Float) -> Float:
        """Return the Hessian of J times v."""
        scores = times(self.X, v)
        slope = point.product(scores if self.all else scores[self.present])
        return self.gradient(slope, v)

    def spread(self, scores: Float) -> float:
        """Return the root mean square of scores about their mean, classes balanced."""
        some = scores if self.all else scores[self.present]
        weight = 0.5 * np.abs(self.share)
        off = some - _dot(weight, some)
        return float(np.sqrt(_dot(weight, off * off))) + 1e-300

    def _everywhere(self, some: Float) -> Float:
        if self.all:
            return some
        out = np.zeros(self.n)
        out[self.present] = some
        return out


def _step(along: Callable[[Float], Float], g: Float, forcing: float) -> Float:
    """Return about the Newton step: conjugate gradients on H d = -g, from zero.

    Where the curvature is not positive it stops: with what it has, or going downhill.
    """
    d = np.zeros_like(g)
    r = -g
    p = r.copy()
    rr = _dot(r, r)
    goal = forcing * forcing * rr
    largest = 0.0
    for k in range(_ROUNDS):
        Hp = along(p)
        curvature = _dot(p, Hp) / max(_dot(p, p), 1e-300)
        largest = max(largest, curvature)
        if curvature <= _FLAT * largest or not np.isfinite(curvature):
            return d if k else r
        length = rr / (curvature * _dot(p, p))
        d += length * p
        r -= length * Hp
        before, rr = rr, _dot(r, r)
        if rr <= goal:
            break
        p = r + (rr / before) * p
    return d


def minimise(
    objective: Objective,
    coordinates: Coordinates,
    n_features: int,
    tol: float,
    max_iter: int,
    start: Float | None = None,
) -> Minimum:
    """Return the minimum of J; ``tol`` is the gradient to stop at, relative to zero's.

    Both are measured in ``coordinates``.
    """
    o, c = objective, coordinates
    w = np.zeros(n_features)
    scores = np.zeros(o.n)
    point = o.at(scores)
    J = point.value
    g = o.gradient(point.slope, w)
    first = float(np.sqrt(_dot(*[c.gradient(g)] * 2)))
    if start is not None and np.any(start):
        warm = times(o.X, start)
        other = o.at(warm)
        value = other.value + 0.5 * o.ridge(start, start)
        if value <= J:  # or false, if it is not a number
            w, scores, point, J = start.copy(), warm, other, value
            g = o.gradient(point.slope, w)
    history = [J]
    goal = tol * first
    forcing, before = _FORCING, 0.0
    n_iter = 0
    while True:
        h = c.gradient(g)
        norm = float(np.sqrt(_dot(h, h)))
        if norm <= goal or n_iter == max_iter or not np.isfinite(norm):
            break
        n_iter += 1
        if before > 0.0:  # Eisenstat and Walker's second choice, safeguarded
            ahead = 0.9 * (norm / before) ** 2
            if 0.9 * forcing * forcing > 0.1:
                ahead = max(ahead, 0.9 * forcing * forcing)
            forcing = min(max(ahead, 0.5 * goal / norm), _FORCING)
        before = norm
        here = point

        def along(u: Float, here: Point = here) -> Float:
            return c.gradient(o.along(here, c.weights(u)))

        d = _step(along, h, forcing)
        move = c.weights(d)
        slope = _dot(d, h)
        if slope >= -_ROUNDING * abs(J):
            break
        steps = times(o.X, move)
        w_w, w_move, move_move = o.ridge(w, w), o.ridge(w, move), o.ridge(move, move)
        # Where curvature is next to none, a Newton step knows no bounds.
        length = min(1.0, _REACH * (1.0 + o.spread(scores)) / o.spread(steps))
        for _ in range(_HALVINGS):
            trial = scores + length * steps
            point = o.at(trial)
            ridge = 0.5 * w_w + length * (w_move + 0.5 * length * move_move)
            if point.value + ridge <= J + _ENOUGH * length * slope:
                break
            length *= 0.5
        else:  # J is as low as its rounding error lets us see
            point = here
            break
        w = w + length * move
        scores, J = trial, point.value + 0.5 * o.ridge(w, w)
        history.append(J)
        g = o.gradient(point.slope, w)
    relative = norm / first if first > 0.0 else 0.0
    return Minimum(w, scores, J, relative, max(n_iter, 1), history)
