r"""Truncated Newton for a loss of the scores plus a ridge penalty.

.. math:: J(w) = L(X w) + \tfrac{1}{2} \sum_j \lambda_j w_j^2

λ is l2, one number for all features or one per feature. Conjugate gradients solve the
Newton equations with the forcing terms of Eisenstat and Walker, in coordinates in which
the curvature at zero is about one; so the units of the features do not matter, and
gradient norms are comparable. The line search works on the *scores*: X times the step
is computed once, and each trial then costs one evaluation of the loss. J never rises.

The solver uses X only through the products of
:class:`aucmax.core.products.Matrix`.
"""

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrsv

from aucmax.core.products import Matrix
from aucmax.core.rows import Float
from aucmax.losses.pairwise import Point

Ridge = float | Float  # l2, for all features or for each

_ARMIJO = 1e-4  # required share of the decrease that the slope predicts
_HALVINGS = 40
_ROUNDING = 1e-16  # relative decrease of J below which it is rounding error
_FORCING = 0.5  # the first, and largest, relative residual of the Newton equations
_CG_STEPS = 200  # conjugate-gradient steps per Newton step, at most
_FLAT = 1e-12  # curvature below this share of the largest seen counts as zero
_REACH = 10.0  # longest step, in units of 1 + the standard deviation of the scores
_JITTER = 1e-7  # keeps the matrix of duplicated features positive definite


class Iterate(NamedTuple):
    """Weights, their scores, and the loss there."""

    w: Float
    scores: Float  # of all rows
    point: Point
    gradient: Float  # of the loss, with respect to w


class Minimum(NamedTuple):
    """Result of the solver."""

    iterate: Iterate
    objective: float
    gradient_norm: float  # relative to that at zero
    n_iter: int
    history: list[float]  # of J, from the start

    @property
    def w(self) -> Float:
        """The weights."""
        return self.iterate.w


class Coordinates:
    """Weights of features of unit scale, w = unit u; zero for constant features."""

    def __init__(self, diagonal: Float, varies: NDArray[np.bool_], l2: Ridge) -> None:
        safe = np.where(varies, 2.0 * diagonal + l2, np.inf)
        self.unit = 1.0 / np.sqrt(safe)

    def weights(self, u: Float) -> Float:
        """Return w for u."""
        return self.unit * u

    def gradient(self, g: Float) -> Float:
        """Convert a gradient with respect to w into one with respect to u."""
        return self.unit * g

    def only(self, active: NDArray[np.bool_]) -> "Coordinates":
        """Return the same coordinates with the other weights fixed at zero."""
        other = copy(self)
        other.unit = np.where(active, self.unit, 0.0)
        return other


class FullCoordinates(Coordinates):
    """Coordinates in which the square loss has curvature one in all directions."""

    def __init__(self, H: Float, varies: NDArray[np.bool_], l2: Ridge) -> None:
        diagonal = np.zeros(len(varies))
        diagonal[varies] = np.diag(H)
        super().__init__(diagonal, varies, l2)
        self.varies = varies
        unit = self.unit[varies]
        A = H * unit * (2.0 * unit[:, np.newaxis])
        np.fill_diagonal(A, 1.0 + _JITTER)
        L = cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        self.L = np.asfortranarray(L)

    def weights(self, u: Float) -> Float:
        """Return w for u."""
        out = np.zeros(len(self.unit))
        out[self.varies] = self._solve(u[self.varies], transposed=True)
        return self.unit * out

    def gradient(self, g: Float) -> Float:
        """Convert a gradient with respect to w into one with respect to u."""
        out = np.zeros(len(self.unit))
        out[self.varies] = self._solve((self.unit * g)[self.varies], transposed=False)
        return out

    def only(self, active: NDArray[np.bool_]) -> "FullCoordinates":
        """Return the same coordinates with the other weights fixed at zero."""
        other = copy(self)
        other.unit, other.varies = np.where(active, self.unit, 0.0), active
        rows = self.L[active[self.varies]]
        L = cholesky(rows @ rows.T, lower=True, check_finite=False)
        other.L = np.asfortranarray(L)
        return other

    def _solve(self, right: Float, *, transposed: bool) -> Float:
        """Return L⁻¹ or L⁻ᵀ times ``right``, without SciPy's slow checks."""
        if not len(right):
            return right
        return np.asarray(dtrsv(self.L, right, lower=1, trans=int(transposed)))


def _dot(u: Float, v: Float) -> float:
    """Return u·v, the same bits for any number of threads."""
    return float(np.sum(u * v))


class Objective:
    """J and its derivatives over the rows of non-zero ``share``.

    Only differences between rows matter; ``ref`` is a row near their mean.
    """

    def __init__(
        self,
        X: Matrix,
        share: Float,
        loss: Callable[[Float, Float], Point],
        l2: Ridge,
        ref: Float,
    ) -> None:
        self.X, self.loss, self.l2, self.ref = X, loss, l2, ref
        present = np.flatnonzero(share)
        self.all = len(present) == len(share)
        self.present, self.n = present, len(share)
        self.share = share if self.all else share[present]
        self._origin: list[tuple[float, Float]] = []  # shared by all ridges

    def with_ridge(self, l2: Ridge) -> "Objective":
        """Return the same loss with another ridge."""
        other = copy(self)
        other.l2 = l2
        return other

    def with_loss(self, loss: Callable[[Float, Float], Point]) -> "Objective":
        """Return the same objective with another loss."""
        other = copy(self)
        other.loss, other._origin = loss, []
        return other

    def select(self, scores: Float) -> Float:
        """Return the scores of the rows of non-zero share."""
        return scores if self.all else scores[self.present]

    def point(self, scores: Float) -> Point:
        """Return the loss at scores of all rows."""
        return self.loss(self.select(scores), self.share)

    def origin(self) -> tuple[float, Float]:
        """Return the loss at zero, and its gradient with respect to w."""
        if not self._origin:
            point = self.point(np.zeros(self.n))
            self._origin.append((point.value, self.gradient(point.slope)))
        return self._origin[0]

    def iterate(self, w: Float) -> Iterate:
        """Evaluate the loss and its gradient at w."""
        scores = self.X.times(w)
        point = self.point(scores)
        return Iterate(w, scores, point, self.gradient(point.slope))

    def gradient(self, slope: Float) -> Float:
        """Return Xᵀ slope, for slopes of the rows of non-zero share."""
        everywhere = slope
        if not self.all:
            everywhere = np.zeros(self.n)
            everywhere[self.present] = slope
        # The slopes sum to zero but for rounding, which large means would amplify.
        return self.X.transposed_times(everywhere) - float(slope.sum()) * self.ref

    def ridge(self, w: Float) -> float:
        """Return the penalty, ½ Σ l2 w²."""
        return 0.5 * _dot(self.l2 * w, w)

    def score_scale(self, scores: Float) -> float:
        """Return the standard deviation of scores, with balanced classes."""
        values = self.select(scores)
        weight = 0.5 * np.abs(self.share)
        centred = values - _dot(weight, values)
        return float(np.sqrt(_dot(weight, centred * centred))) + 1e-300


def newton_step(
    o: Objective, c: Coordinates, point: Point, g: Float, forcing: float
) -> tuple[Float, Float]:
    """Return the approximate Newton step, and its scores.

    Conjugate gradients on H d = -g, from zero. They stop where the curvature is not
    positive, with the current d, or with -g in the first step.
    """
    d, steps = np.zeros_like(g), np.zeros(o.n)
    r = -g
    p = r.copy()
    rr = _dot(r, r)
    goal = forcing * forcing * rr
    largest = 0.0
    for k in range(_CG_STEPS):
        v = c.weights(p)
        scores = o.X.times(v)
        Hv = o.gradient(point.product(o.select(scores)))
        Hp = c.gradient(Hv + o.l2 * v)
        curvature = _dot(p, Hp) / max(_dot(p, p), 1e-300)
        largest = max(largest, curvature)
        if curvature <= _FLAT * largest or not np.isfinite(curvature):
            return (d, steps) if k else (r, scores)
        length = rr / (curvature * _dot(p, p))
        d += length * p
        steps += length * scores
        r -= length * Hp
        before, rr = rr, _dot(r, r)
        if rr <= goal:
            break
        p = r + (rr / before) * p
    return d, steps


# Trial steps can overflow, and rows of zero weight can hold any value.
@np.errstate(over="ignore", invalid="ignore")
def descend(
    objective: Objective,
    coordinates: Coordinates,
    tol: float,
    max_iter: int,
    start: Iterate | None = None,
) -> Minimum:
    """Minimise J until the gradient norm is ``tol`` times that at zero.

    Both norms are measured in ``coordinates``. A start where J is above that at zero
    is ignored.
    """
    o, c = objective, coordinates
    value, gradient = o.origin()
    first = float(np.sqrt(_dot(*[c.gradient(gradient)] * 2)))
    if start is None or not start.point.value + o.ridge(start.w) <= value:
        zero = np.zeros(o.n)
        start = Iterate(np.zeros_like(gradient), zero, o.point(zero), gradient)
    here = start
    J = here.point.value + o.ridge(here.w)
    history = [J]
    goal = tol * first
    forcing, before = _FORCING, 0.0
    n_iter = 0
    while True:
        h = c.gradient(here.gradient + o.l2 * here.w)
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
        d, steps = newton_step(o, c, here.point, h, forcing)
        move = c.weights(d)
        slope = _dot(d, h)
        if slope >= -_ROUNDING * abs(J):
            break
        w_move, move_move = _dot(o.l2 * here.w, move), o.ridge(move)
        base = o.ridge(here.w)
        # Where the curvature is almost zero, a Newton step is unbounded.
        reach = _REACH * (1.0 + o.score_scale(here.scores))
        length = min(1.0, reach / o.score_scale(steps))
        for _ in range(_HALVINGS):
            trial = here.scores + length * steps
            point = o.point(trial)
            ridge = base + length * (w_move + length * move_move)
            if point.value + ridge <= J + _ARMIJO * length * slope:
                break
            length *= 0.5
        else:  # the decrease of J is below its rounding error
            break
        w = here.w + length * move
        here = Iterate(w, trial, point, o.gradient(point.slope))
        J = point.value + o.ridge(w)
        history.append(J)
    relative = norm / first if first > 0.0 else 0.0
    return Minimum(here, J, relative, max(n_iter, 1), history)
