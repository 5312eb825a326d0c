"""Truncated Newton with X on the workers.

The solver is that of :mod:`aucmax.linear.solvers.newton`, and asks as it does on one
machine. But scores, which are as many as rows, stay where the rows are. As they are X w
for some w, the solver adds up *weights* where it would add up scores (:class:`Scores`),
and a worker makes scores of them when a pass needs some
(:mod:`aucmax.cluster.requests`).

A point costs two passes: one for the loss, one for its gradient; a product with the
Hessian two as well, the sums on the grid and Xᵀ u. What is broadcast and what comes
back are vectors of d numbers and grids of the score: O(d + grid), for any number of
rows. Solvers of several folds or losses are run side by side, and share passes.
"""

from collections.abc import Sequence
from copy import copy
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from aucmax.base.ranker import LinearRanker
from aucmax.cluster.areas import area_of, few
from aucmax.cluster.blocks import Block, Table
from aucmax.cluster.folds import fold_of
from aucmax.cluster.implicit import system
from aucmax.cluster.moments import all_moments, n_folds_of
from aucmax.cluster.pairs import LOSSES, Field
from aucmax.cluster.requests import Back, Judge, Look, Moment, Rows, Weigh, answered
from aucmax.core.rows import Float
from aucmax.linear.bam import BAM, with_covariances
from aucmax.linear.bam import FeatureStatistics as Landscape
from aucmax.linear.bam import from_class_moments as by_tally
from aucmax.linear.bam import from_covariances as by_moments
from aucmax.linear.bam_cv import BAMCV
from aucmax.linear.solvers.newton import Ask, Objective, Place, Solver
from aucmax.losses.pairwise import POINTS

Result = TypeVar("Result")

_AT_A_TIME = 6  # solvers that share passes


class Scores:
    """Scores of all rows, as the weights that they are the scores of."""

    __array_ufunc__ = None  # a number of NumPy times scores is none of its business

    def __init__(self, w: Float) -> None:
        self.w = w

    def __add__(self, other: "Scores") -> "Scores":
        return Scores(self.w + other.w)

    def __rmul__(self, factor: float) -> "Scores":
        return Scores(factor * self.w)


class Slope(NamedTuple):
    """Derivatives by the scores, or their second ones times some: not worked out."""

    point: "Point"
    v: Float | None = None


class Point:
    """The loss at some weights."""

    def __init__(self, w: Float, field: Field | None) -> None:
        self.w, self.field = w, field
        self.value = np.inf if field is None else field.value
        self.slope = Slope(self)

    def product(self, scores: Scores) -> Slope:
        """Return the Hessian times some scores."""
        return Slope(self, scores.w)


class Remote(Objective):
    """J of rows that are on the workers."""

    def __init__(self, land: "Lands", rows: Rows, loss: str) -> None:
        self.land, self.rows, self.name = land, rows, loss
        self.loss, self.l2, self.ref = POINTS[loss], 0.0, land.mean.mean(axis=0)
        self._origin: list[tuple[float, Float]] = []
        self._zero: list[Point] = []  # where a solver looks twice

    def with_loss(self, loss: Any) -> "Remote":
        """Return the same with another loss."""
        other = copy(self)
        other.loss, other._origin, other._zero = loss, [], []
        other.name = next(name for name in POINTS if POINTS[name] is loss)
        return other

    def nothing(self) -> Scores:
        """Return scores of zero."""
        return Scores(np.zeros(len(self.ref)))

    def here(self, scores: Scores) -> Scores:
        """Return the scores: a worker knows which of its rows count."""
        return scores

    def at(self, scores: Scores) -> Solver[Point]:
        """Return the loss at some scores."""
        if not scores.w.any() and self._zero:
            return self._zero[0]
        loss = LOSSES[self.name]
        level = loss.first_level(self.land.n_rows)
        while True:
            seen = yield Look(self.rows, self.name, scores.w, level)
            if seen.sums is not None:
                point = Point(scores.w, loss.field(seen, level))
                if not scores.w.any():
                    self._zero.append(point)
                return point
            needed = loss.level(seen)
            if needed < 0:  # scores that are not finite
                return Point(scores.w, None)
            level = max(level + 1, needed)

    def place(self, w: Float) -> Solver[Place]:
        """Return what there is to know at w."""
        scores = Scores(w)
        point = yield from self.at(scores)
        gradient = yield from self.back(point.slope)
        return Place(w, scores, point, gradient)  # type: ignore[arg-type]

    def back(self, slope: Slope) -> Solver[Float]:
        """Return the gradient by w for one by the scores."""
        point, v = slope
        field = point.field
        assert field is not None
        across = None
        if v is not None:
            sums = yield Weigh(self.rows, self.name, point.w, field, v)
            across = LOSSES[self.name].across(field, sums)
        found = yield Back(self.rows, self.name, point.w, field, v, across)
        return np.asarray(found[:-1] - found[-1] * self.ref)

    def spread(self, scores: Scores) -> Solver[float]:
        """Return the root mean square of scores about their mean, classes balanced."""
        variance = self.land.variance_of(scores.w)
        if variance is None:
            mean, square = yield Moment(self.rows, scores.w)
            variance = square - mean**2
        return float(np.sqrt(max(variance, 0.0))) + 1e-300


class Fold(NamedTuple):
    """A fold of rows that are on the workers, see aucmax.linear.bam_cv."""

    rows: Rows
    land: "Lands"
    weighted: bool

    def shares(self) -> Rows:
        """Return which rows to train on."""
        return self.rows

    def area(self, scores: Scores) -> Solver[float]:
        """Return the AUC on the rows left out."""
        centre = float((self.land.mean @ scores.w).mean())
        exact = few(self.land.n_rows, 1)
        unit = 1.0
        if not exact:
            spread = self.land.objective(self.rows, "squared_hinge").spread(scores)
            unit = yield from spread
        found = yield Judge(self.rows, scores.w, centre, unit, exact)
        each, _ = area_of(found, self.weighted)
        return float(each[0])


class Lands(Landscape):
    """What the solver knows of the features, of rows that are on the workers."""

    n_rows = 0

    def objective(self, share: Any, loss: str) -> Remote:
        """Return J, but for the ridge, over some :class:`Rows`."""
        return Remote(self, share, loss)

    def variance_of(self, w: Float) -> float | None:
        """Return that of scores, classes balanced, if covariances are known."""
        if self.H is None:
            return None
        some = w[self.varies]
        apart = float((self.mean[0] - self.mean[1])[self.varies] @ some)
        return 0.5 * float(some @ self.H @ some) - 0.25 * apart**2


def run(table: Table, solvers: Sequence[Solver[Result]]) -> list[Result]:
    """Return what the solvers find; passes are shared by several of them."""
    found: dict[int, Result] = {}
    asked: dict[int, Any] = {}

    def go(k: int, answer: Any = None) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                request = solvers[k].send(answer)
                while isinstance(request, Ask):  # X v, which stays what it is
                    request = solvers[k].send(Scores(request.v))
                asked[k] = request
            except StopIteration as end:
                found[k] = end.value

    waiting = iter(range(len(solvers)))
    while len(found) < len(solvers):
        for k in islice(waiting, _AT_A_TIME - len(asked)):
            go(k)
        if asked:
            who, requests = list(asked), list(asked.values())
            asked.clear()
            for k, answer in zip(who, table.total(answered, requests), strict=True):
                go(k, answer)
    return [found[k] for k in range(len(solvers))]


def survey(ranker: LinearRanker, table: Table) -> Lands:
    """Return the class moments of the features; one pass."""
    if with_covariances(table.n_rows, table.width, table.n_values):
        (moments,) = all_moments(ranker, table)
        found = by_moments(Lands, None, moments)
    else:
        equations, tally = system(table)
        found = by_tally(Lands, None, tally, equations)
    found.n_rows = table.n_rows
    return found


def check_loss(loss: str) -> None:
    """Raise an error if a loss is not for clusters."""
    if loss not in LOSSES:
        raise ValueError(
            f"loss={loss!r} cannot be had on a cluster; {', '.join(LOSSES)} can."
        )


def _weights(block: Block, n_folds: int) -> Float:
    """Return the weight of each class in each fold, positives first."""
    fold = fold_of(block.places(), n_folds)
    sides = np.maximum(block.signed, 0.0), np.maximum(-block.signed, 0.0)
    return np.column_stack([np.bincount(fold, side, n_folds) for side in sides])


def fit_bam_cv(model: BAMCV, table: Table) -> None:
    """Fit to all rows, penalty and loss by cross-validation."""
    n_folds = n_folds_of(model.cv)
    for loss in model._losses():
        check_loss(loss)
    table.keep()
    land = survey(model, table)
    weights: Float = table.total(_weights, n_folds)
    if not weights.all():
        number, side = np.argwhere(weights == 0.0)[0]
        raise ValueError(
            f"No row of class {table.classes[1 - side]} in fold {number} of {n_folds} "
            "has a weight above zero: there are too few for cross-validation; use BAM."
        )
    folds = [
        Fold(Rows(weights.sum(axis=0) - weights[k], k, n_folds), land, table.weighted)
        for k in range(n_folds)
    ]
    model._search(land, folds, Rows(land.weight), lambda solvers: run(table, solvers))


def fit_bam(model: BAM, table: Table) -> None:
    """Fit to all rows."""
    check_loss(model.loss)
    table.keep()
    land = survey(model, table)
    objective = land.objective(Rows(land.weight), model.loss)
    model._minimise(land, objective, lambda solvers: run(table, solvers))
