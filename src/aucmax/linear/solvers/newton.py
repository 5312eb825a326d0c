r"""Truncated Newton for a loss of the scores plus a ridge.

.. math:: J(w) = L(X w) + \tfrac{1}{2} \sum_j \lambda_j w_j^2

with one λ for all features or one for each. Steps solve the Newton equations
approximately by conjugate gradients (forcing terms of Eisenstat and Walker), in
coordinates in which the curvature at zero is about one, so that features need no
scaling. The line search is on the *scores*: X times the step is computed once, and each
trial costs only the loss. J never rises.

Solvers are generators that *ask* for products with X, so that :func:`together` can run
several of them, for different folds or losses, and read X once for all. The result of a
solver does not depend on the others.
"""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import islice
from os import cpu_count
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrsv

from aucmax.core.products import times, transposed_times
from aucmax.core.rows import Float, Rows, n_rows
from aucmax.core.threads import one_blas_thread
from aucmax.losses.pairwise import Point

Ridge = float | Float  # l2, of all features or of each
Result = TypeVar("Result")

_ENOUGH = 1e-4  # of the decrease that the slope promises (Armijo)
_HALVINGS = 40
_ROUNDING = 1e-16  # of J: a decrease that cannot be seen
_FORCING = 0.5  # the first, and largest, relative residual of the Newton equations
_ROUNDS = 200  # of conjugate gradients a step
_FLAT = 1e-12  # curvature below this share of the largest seen is none
_REACH = 10.0  # of a step: in units of the score, and of the scores so far
_JITTER = 1e-7  # keeps the coordinates of copied features apart
# Solvers at a time: more would take memory, some ten numbers a row each, and save no
# more of it being read. Their losses are worth threads from so many rows on.
_AT_A_TIME = 6
_ROWS = 1 << 16


class Ask(NamedTuple):
    """A product that a solver requests: X v, or Xᵀ v."""

    v: Float
    transposed: bool = False


Solver = Generator[Any, Any, Result]


def together(
    X: Rows, n_features: int, solvers: Sequence[Solver[Result]]
) -> list[Result]:
    """Run solvers, several at a time, and return their results."""
    found: dict[int, Result] = {}
    asked: dict[int, Ask] = {}

    def go(k: int, answer: Float | None = None) -> None:
        # Steps may be too long, and rows of weight zero may hold any values.
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                asked[k] = solvers[k].send(answer)
            except StopIteration as end:
                found[k] = end.value

    waiting = iter(range(len(solvers)))
    threads = len(solvers) > 1 and n_rows(X) >= _ROWS
    with one_blas_thread(), ThreadPoolExecutor(cpu_count() or 1) as pool:
        each = pool.map if threads else map
        while len(found) < len(solvers):
            list(each(go, islice(waiting, _AT_A_TIME - len(asked))))
            # A solver that was given X v asks for Xᵀ u next: answer these together.
            for transposed in (False, True):
                who = sorted(k for k in asked if asked[k].transposed == transposed)
                if who:
                    V = np.array([asked.pop(k).v for k in who])
                    if transposed:
                        out = transposed_times(X, V, n_features)
                    else:
                        out = times(X, V)
                    del V
                    list(each(go, who, out))
    return [found[k] for k in range(len(solvers))]


class Place(NamedTuple):
    """Iterate: weights, their scores, and the loss at these."""

    w: Float
    scores: Any  # of all rows; on a cluster, what they are made of
    point: Point
    gradient: Float  # of the loss, by w


class Minimum(NamedTuple):
    """Result of the solver."""

    place: Place
    objective: float
    gradient_norm: float  # relative to that at zero
    n_iter: int
    history: list[float]  # of J, from the start

    @property
    def w(self) -> Float:
        """The weights."""
        return self.place.w


class Coordinates:
    """Weights u of features of unit scale, w = unit u; zero for constant features."""

    def __init__(self, diagonal: Float, varies: NDArray[np.bool_], l2: Ridge) -> None:
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
        """Return w of u."""
        out = np.zeros(len(self.unit))
        out[self.varies] = self._solve(u[self.varies], transposed=True)
        return self.unit * out

    def gradient(self, g: Float) -> Float:
        """Return the gradient by u of that by w."""
        out = np.zeros(len(self.unit))
        out[self.varies] = self._solve((self.unit * g)[self.varies], transposed=False)
        return out

    def _solve(self, right: Float, *, transposed: bool) -> Float:
        """Return L⁻¹ or L⁻ᵀ times ``right``, without SciPy's slow checks."""
        if not len(right):
            return right
        return np.asarray(dtrsv(self.L, right, lower=1, trans=int(transposed)))


def _dot(u: Float, v: Float) -> float:
    """Return u·v, the same bits for any number of threads."""
    return float(np.sum(u * v))


class Objective:
    """J and its derivatives, for rows of nonzero share (``present``).

    Only differences of rows matter; ``ref`` is a central row.
    """

    def __init__(
        self,
        X: Rows,
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
        self._origin: list[tuple[float, Float]] = []  # known once for all ridges

    def with_ridge(self, l2: Ridge) -> "Objective":
        """Return the same loss with another ridge."""
        other = copy(self)
        other.l2 = l2
        return other

    def with_loss(self, loss: Callable[[Float, Float], Point]) -> "Objective":
        """Return the same with another loss."""
        other = copy(self)
        other.loss, other._origin = loss, []
        return other

    def nothing(self) -> Any:
        """Return scores of zero."""
        return np.zeros(self.n)

    def here(self, scores: Any) -> Any:
        """Return the scores of the rows that are present."""
        return scores if self.all else scores[self.present]

    def at(self, scores: Any) -> Solver[Any]:
        """Return the loss at scores of all rows."""
        return self.loss(self.here(scores), self.share)
        yield  # others have to ask for it

    def origin(self) -> Solver[tuple[float, Float]]:
        """Return the loss at zero, and its gradient by w."""
        if not self._origin:
            point = yield from self.at(self.nothing())
            self._origin.append((point.value, (yield from self.back(point.slope))))
        return self._origin[0]

    def place(self, w: Float) -> Solver[Place]:
        """Return the iterate at w."""
        scores = yield Ask(w, transposed=False)
        point = yield from self.at(scores)
        return Place(w, scores, point, (yield from self.back(point.slope)))

    def back(self, slope: Any) -> Solver[Float]:
        """Return the gradient by w for one by the scores, Xᵀ slope."""
        g = yield Ask(self.everywhere(slope), transposed=True)
        return g - float(slope.sum()) * self.ref  # zero, were it not for rounding

    def ridge(self, w: Float) -> float:
        """Return the penalty, ½ Σ l2 w²."""
        return 0.5 * _dot(self.l2 * w, w)

    def spread(self, scores: Any) -> Solver[float]:
        """Return the root mean square of scores about their mean, classes balanced."""
        some = self.here(scores)
        weight = 0.5 * np.abs(self.share)
        off = some - _dot(weight, some)
        return float(np.sqrt(_dot(weight, off * off))) + 1e-300
        yield  # as in ``at``

    def everywhere(self, some: Float) -> Float:
        """Return values of the present rows, with zeros for the others."""
        if self.all:
            return some
        out = np.zeros(self.n)
        out[self.present] = some
        return out


def _step(
    o: Objective, c: Coordinates, point: Point, g: Float, forcing: float
) -> Solver[tuple[Float, Any]]:
    """Return the approximate Newton step, and its scores.

    Conjugate gradients on H d = -g, from zero. If the curvature is not positive, the
    step so far is returned, or the steepest descent.
    """
    d, steps = np.zeros_like(g), o.nothing()
    r = -g
    p = r.copy()
    rr = _dot(r, r)
    goal = forcing * forcing * rr
    largest = 0.0
    for k in range(_ROUNDS):
        v = c.weights(p)
        scores = yield Ask(v, transposed=False)
        along = yield from o.back(point.product(o.here(scores)))
        Hp = c.gradient(along + o.l2 * v)
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


def descend(
    objective: Objective,
    coordinates: Coordinates,
    tol: float,
    max_iter: int,
    start: Place | None = None,
) -> Solver[Minimum]:
    """Minimise J until the gradient norm is below ``tol``, relative to that at zero.

    Norms are measured in ``coordinates``. A start where J is above that at zero is
    ignored.
    """
    o, c = objective, coordinates
    value, gradient = yield from o.origin()
    first = float(np.sqrt(_dot(*[c.gradient(gradient)] * 2)))
    if start is None or not start.point.value + o.ridge(start.w) <= value:
        nothing = o.nothing()
        point = yield from o.at(nothing)
        start = Place(np.zeros_like(gradient), nothing, point, gradient)
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
        d, steps = yield from _step(o, c, here.point, h, forcing)
        move = c.weights(d)
        slope = _dot(d, h)
        if slope >= -_ROUNDING * abs(J):
            break
        w_move, move_move = _dot(o.l2 * here.w, move), o.ridge(move)
        base = o.ridge(here.w)
        # With nearly no curvature a Newton step is unbounded: limit its scores.
        so_far = yield from o.spread(here.scores)
        length = min(1.0, _REACH * (1.0 + so_far) / (yield from o.spread(steps)))
        for _ in range(_HALVINGS):
            trial = here.scores + length * steps
            point = yield from o.at(trial)
            ridge = base + length * (w_move + length * move_move)
            if point.value + ridge <= J + _ENOUGH * length * slope:
                break
            length *= 0.5
        else:  # J has reached its rounding error
            break
        w = here.w + length * move
        here = Place(w, trial, point, (yield from o.back(point.slope)))
        J = point.value + o.ridge(w)
        history.append(J)
    relative = norm / first if first > 0.0 else 0.0
    return Minimum(here, J, relative, max(n_iter, 1), history)
