r"""Sums over all pairs of rows that are on different workers.

All that rows of one class are to those of the other is where their scores are. So each
worker sums up its rows on a grid of the score, the grids are added, what they mean to
a row of the other class is worked out once for all points of the grid, and each worker
looks that up for its rows. What goes over the network is the grid.

* **logistic and sigmoid**: the grid of :mod:`aucmax.core.pairs`, cubic interpolation
  and all, with its points at multiples of the spacing, so that grids of parts add up.
  Its bounds hold: with 128 points a unit of the score, 10⁻¹⁰ for the value and each
  slope; with 16, 5·10⁻⁷ for second derivatives. (Beyond 2²⁰ points the grid is coarser;
  wide gaps are not cut out here.)
* **squared hinge**: within a cell, [k h, (k + 1) h), of scores t, those of the
  negatives raised by the margin, three moments of each class are kept. A pair is out of
  order if :math:`t_- > t_+`, and costs :math:`(t_- - t_+)^2`: of two cells all pairs
  are, or none, so that moments give sums which are *exact*. For a pair within a cell,
  half of its squared distance is taken, whatever its order. That is off by at most
  h²/2 a pair for the value, h for its slope and 1 for the curvature, where h = 2⁻¹²: if
  q is the share of the pairs that are within a cell, by **q h²/2 < 3·10⁻⁸ q** for the
  mean loss. q itself is about h times the density of the score, 10⁻⁴, and known at
  every point (``Field.within``). Of few rows (2¹⁸), where single pairs count, each
  distinct score is a cell of its own, which is exact.
* **exponential**: a sum for each class, no grid.

Every loss is a set of pure functions, the methods of a :class:`Pairwise`; what is
broadcast to the workers is a :class:`Field`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import rfft

from aucmax.cluster.ladder import Ladder
from aucmax.core.jit import kernel
from aucmax.core.pairs import (
    FINENESS,
    MOST_POINTS,
    POINTS,
    ROUGHLY,
    convolved,
    parseval,
    read,
    spectra,
    spread,
)
from aucmax.core.rows import Float

_CELLS = 4096.0  # of the squared hinge, in a unit of the score
FEW = 1 << 18  # rows of which each score is a cell
EXACT = -1  # in place of the level of a grid


class Sums(NamedTuple):
    """Sums at the points first, first + 1, …, a row each; others are zero."""

    first: int
    at: Float  # (points, k)

    def __add__(self, other: Any) -> "Sums":
        if not len(self.at) or not len(other.at):
            return self if len(self.at) else other
        first = min(self.first, other.first)
        last = max(self.first + len(self.at), other.first + len(other.at))
        total = np.zeros((last - first, self.at.shape[1]))
        for some in (self, other):
            start = some.first - first
            total[start : start + len(some.at)] += some.at
        return Sums(first, total)


class Seen(NamedTuple):
    """What rows are to a loss: the range of their scores, and sums."""

    low: float
    high: float
    sums: list[Any] | None  # None if the grid would have too many points

    def __add__(self, other: Any) -> "Seen":
        both = None
        if self.sums is not None and other.sums is not None:
            both = [a + b for a, b in zip(self.sums, other.sums, strict=True)]
        return Seen(min(self.low, other.low), max(self.high, other.high), both)


class Field(NamedTuple):
    """What all rows are to a row, as a function of its score."""

    value: float  # the mean loss
    within: float  # share of the pairs that are within a cell
    level: int  # the grid is coarser by a factor of two so many times
    firsts: list[int]  # of the grids
    grids: list[Float]


class Pairwise:
    """A loss of pairs, as sums over rows; ``share`` is that of :func:`shares`."""

    fineness = 1.0

    def first_level(self, n_rows: int) -> int:
        """Return how coarse the grid of so many rows is to be, if there is room."""
        return 0

    def look(self, score: Float, share: Float, level: int) -> Seen:
        """Return the sums of some rows, on a grid."""
        here = share != 0.0  # a row that is not there may be anywhere
        if not here.all():
            score, share = score[here], share[here]
        low, high = float(score.min(initial=np.inf)), float(score.max(initial=-np.inf))
        points = (high - low + 1.0) * self.fineness * 0.5 ** max(level, 0)
        if len(score) and not points <= (np.inf if level == EXACT else MOST_POINTS):
            return Seen(low, high, None)
        return Seen(low, high, self._sums(score, share, level))

    def level(self, seen: Seen) -> int:
        """Return how coarse a grid has to be for scores in such a range."""
        points = (seen.high - seen.low + 1.0) * self.fineness
        if not np.isfinite(points):
            return -1
        return max(int(np.ceil(np.log2(points / MOST_POINTS))), 0)

    def _sums(self, score: Float, share: Float, level: int) -> list[Any]:
        raise NotImplementedError

    def field(self, seen: Seen, level: int) -> Field:
        """Return what to look up in."""
        raise NotImplementedError

    def slope(self, field: Field, score: Float, share: Float) -> Float:
        """Return the derivative by each score."""
        raise NotImplementedError

    def weigh(self, field: Field, score: Float, share: Float, v: Float) -> Any:
        """Return the sums of a Hessian product with ``v``."""
        raise NotImplementedError

    def across(self, field: Field, sums: Any) -> Any:
        """Return what to look up for it."""
        raise NotImplementedError

    def product(
        self, field: Field, across: Any, score: Float, share: Float, v: Float
    ) -> Float:
        """Return the Hessian times ``v``, for these rows."""
        raise NotImplementedError


@kernel
def _fill(t: Float, share: Float, scale: float, first: int, at: Float) -> None:
    """Add three moments of each row to its cell, positives' in front."""
    for i in range(t.shape[0]):
        x = t[i] * scale
        k = np.floor(x)
        off, a, side = x - k, abs(share[i]), 0 if share[i] > 0.0 else 3
        cell = at[int(k) - first]
        cell[side] += a
        cell[side + 1] += a * off
        cell[side + 2] += a * off * off


@kernel
def _sweep(at: Float, gap: Float, half: float, out: Float, value: Float) -> None:
    """Work out what the rows of other cells are to a row at the left end of each.

    ``out`` has, for a positive, the share of the negatives that it is below and the sum
    of distances, and then the same for a negative and positives below. Sums are moved
    on from cell to cell, by the ``gap`` to the next one: only positive numbers are
    added, and no digit is lost. Pairs within a cell count ``half``.
    """
    m = at.shape[0]
    zeroth = 0.0
    first = 0.0
    second = 0.0
    for step in range(m):
        c = m - 1 - step
        p, n = at[c, :3], at[c, 3:]
        e0, e1 = zeroth + half * n[0], first + half * n[1]
        e2 = second + half * n[2]
        out[c, 0], out[c, 1] = e0, e1
        value[0] += p[0] * e2 - 2.0 * p[1] * e1 + p[2] * e0
        value[1] += p[0] * n[0]
        zeroth += n[0]
        first += n[1]
        second += n[2]
        if c > 0:
            second += gap[c - 1] * (2.0 * first + gap[c - 1] * zeroth)
            first += gap[c - 1] * zeroth
    zeroth = 0.0
    first = 0.0
    for c in range(m):
        p = at[c, :3]
        out[c, 2], out[c, 3] = zeroth + half * p[0], first - half * p[1]
        zeroth += p[0]
        if c + 1 < m:
            first += gap[c] * zeroth - p[1]


@kernel
def _look_up(
    cell: NDArray[np.int64],
    off: Float,
    share: Float,
    unit: float,
    field: Float,
    out: Float,
) -> None:
    """Set ``out`` to the slopes of the squared hinge."""
    for i in range(cell.shape[0]):
        here = field[cell[i]]
        if share[i] > 0.0:
            distance = here[1] - off[i] * here[0]
        else:
            distance = here[3] + off[i] * here[2]
        out[i] = -2.0 * share[i] * distance * unit


@kernel
def _along(
    cell: NDArray[np.int64],
    share: Float,
    field: Float,
    across: Float,
    v: Float,
    out: Float,
) -> None:
    """Set ``out`` to the Hessian of the squared hinge times v."""
    for i in range(cell.shape[0]):
        k, side = cell[i], 0 if share[i] > 0.0 else 1
        out[i] = 2.0 * abs(share[i]) * (field[k, 2 * side] * v[i] - across[k, side])


@kernel
def _add_up(cell: NDArray[np.int64], share: Float, v: Float, at: Float) -> None:
    for i in range(cell.shape[0]):
        at[cell[i], 0 if share[i] > 0.0 else 1] += abs(share[i]) * v[i]


@kernel
def _locate(
    t: Float,
    scale: float,
    first: int,
    low: int,
    high: int,
    cell: NDArray[np.int64],
    off: Float,
) -> None:
    for i in range(t.shape[0]):
        x = t[i] * scale
        k = np.floor(x)
        cell[i] = min(max(int(k) - first, low), high)
        off[i] = x - k


def _located(
    t: Float, scale: float, first: int, low: int, high: int
) -> tuple[Any, Float]:
    """Return the cell of each t, and how far it is into it."""
    cell, off = np.empty(len(t), np.int64), np.empty(len(t))
    _locate(t, scale, first, low, high, cell, off)
    return cell, off


class SquaredHinge(Pairwise):
    """Mean of max(0, 1 - (s_i - s_j))²."""

    fineness = _CELLS

    def first_level(self, n_rows: int) -> int:
        """Return how coarse the grid of so many rows is to be, if there is room."""
        return EXACT if n_rows <= FEW else 0

    def _sums(self, score: Float, share: Float, level: int) -> list[Any]:
        t = score + (share < 0.0)
        if level == EXACT:
            both = np.column_stack([np.maximum(share, 0.0), np.maximum(-share, 0.0)])
            return [Ladder.of(t, both)]
        if not len(t):
            return [Sums(0, np.zeros((0, 6)))]
        scale = _CELLS * 0.5**level
        first, last = (int(np.floor(end * scale)) for end in (t.min(), t.max()))
        at = np.zeros((last - first + 1, 6))
        _fill(t, share, scale, first, at)
        return [Sums(first, at)]

    def field(self, seen: Seen, level: int) -> Field:
        """Return what to look up in."""
        assert seen.sums is not None
        (cells,) = seen.sums
        n, value = len(cells.at), np.zeros(2)
        out = np.empty((n, 4))
        if level == EXACT:
            at = np.zeros((n, 6))
            at[:, 0], at[:, 3] = cells.at.T
            _sweep(at, np.diff(cells.value), 0.0, out, value)
            return Field(float(value[0]), 0.0, level, [0], [out, cells.value])
        _sweep(cells.at, np.ones(max(n - 1, 0)), 0.5, out, value)
        unit = 2.0**level / _CELLS
        return Field(
            float(value[0]) * unit**2, float(value[1]), level, [cells.first], [out]
        )

    def slope(self, field: Field, score: Float, share: Float) -> Float:
        """Return the derivative by each score."""
        out = np.empty_like(score)
        cell, off, unit = _cells(field, score, share)
        _look_up(cell, off, share, unit, field.grids[0], out)
        return out

    def weigh(self, field: Field, score: Float, share: Float, v: Float) -> Any:
        """Return the sums of a Hessian product with ``v``."""
        at = np.zeros((len(field.grids[0]), 2))
        _add_up(_cells(field, score, share)[0], share, v, at)
        return at

    def across(self, field: Field, sums: Any) -> Any:
        """Return what to look up for it."""
        pos, neg = sums.T
        half = 1.0 if field.level == EXACT else 0.5
        above = np.cumsum(neg[::-1])[::-1] - half * neg
        below = np.cumsum(pos) - half * pos
        return np.ascontiguousarray(np.column_stack([above, below]))

    def product(
        self, field: Field, across: Any, score: Float, share: Float, v: Float
    ) -> Float:
        """Return the Hessian times ``v``, for these rows."""
        out = np.empty_like(score)
        cell = _cells(field, score, share)[0]
        _along(cell, share, field.grids[0], across, v, out)
        return out


def _cells(field: Field, score: Float, share: Float) -> tuple[Any, Float, float]:
    """Return the cell of each row, how far it is from its left end, and the unit."""
    t = score + (share < 0.0)
    last = len(field.grids[0]) - 1
    if field.level == EXACT:
        edges = field.grids[1]
        cell = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, last)
        return cell, t - edges[cell], 1.0
    scale = _CELLS * 0.5**field.level
    return *_located(t, scale, field.firsts[0], 0, last), 1.0 / scale


class Smooth(Pairwise):
    """Mean of the logistic or the sigmoid loss."""

    fineness = FINENESS

    def __init__(self, name: str) -> None:
        self.loss: Any = POINTS[name]._loss  # type: ignore[attr-defined]

    def _sums(self, score: Float, share: Float, level: int) -> list[Any]:
        return [
            _on_grid(score, share, fine * 0.5**level) for fine in (FINENESS, ROUGHLY)
        ]

    def field(self, seen: Seen, level: int) -> Field:
        """Return slopes on the fine grid, curvature on the other."""
        assert seen.sums is not None
        fine, rough = seen.sums
        points, transforms = _transforms(fine)
        waves = spectra(self.loss, points, 2.0**level / FINENESS)
        value = parseval(waves[0], transforms, points)
        slopes = convolved(waves[1], transforms, points)[:, : len(fine.at)]
        mass = self._curved(level, rough)
        firsts = [fine.first, rough.first]
        return Field(value, 0.0, level, firsts, [np.ascontiguousarray(slopes), mass])

    def _curved(self, level: int, sums: Sums) -> Float:
        points, transforms = _transforms(sums)
        waves = spectra(self.loss, points, 2.0**level / ROUGHLY)
        both = convolved(waves[2], transforms, points)
        return np.ascontiguousarray(both[:, : len(sums.at)])

    def slope(self, field: Field, score: Float, share: Float) -> Float:
        """Return the derivative by each score."""
        fine = FINENESS * 0.5**field.level
        return share * _looked_up(score, share, fine, field.firsts[0], field.grids[0])

    def weigh(self, field: Field, score: Float, share: Float, v: Float) -> Any:
        """Return the sums of a Hessian product with ``v``."""
        rough, grid = ROUGHLY * 0.5**field.level, np.zeros_like(field.grids[1])
        place, off = _place(score, rough, field.firsts[1], grid.shape[1])
        spread(place, off, share, np.abs(share) * v, grid)
        return grid

    def across(self, field: Field, sums: Any) -> Any:
        """Return what to look up for it."""
        return self._curved(field.level, Sums(0, sums.T))

    def product(
        self, field: Field, across: Any, score: Float, share: Float, v: Float
    ) -> Float:
        """Return the Hessian times ``v``, for these rows."""
        rough, first = ROUGHLY * 0.5**field.level, field.firsts[1]
        mass = _looked_up(score, share, rough, first, field.grids[1])
        other = _looked_up(score, share, rough, first, across)
        return np.abs(share) * (mass * v - other)


def _place(score: Float, fineness: float, first: int, points: int) -> tuple[Any, Float]:
    """Return the point to the left of each score, and how far it is from there."""
    return _located(score, fineness, first, 1, points - 3)


def _on_grid(score: Float, share: Float, fineness: float) -> Sums:
    if not len(score):
        return Sums(0, np.zeros((0, 2)))
    first, last = (int(np.floor(end * fineness)) for end in (score.min(), score.max()))
    grid = np.zeros((2, last - first + 4))  # a point before, and two after
    place, off = _place(score, fineness, first - 1, grid.shape[1])
    spread(place, off, share, np.abs(share), grid)
    return Sums(first - 1, grid.T)


def _looked_up(
    score: Float, share: Float, fineness: float, first: int, grid: Float
) -> Float:
    place, off = _place(score, fineness, first, grid.shape[1])
    out = np.empty_like(score)
    read(place, off, share, grid, out)
    return out


def _transforms(sums: Sums) -> tuple[int, tuple[Any, Any]]:
    points = 1 << int(np.ceil(np.log2(max(len(sums.at), 8))))
    pos, neg = sums.at.T
    return points, (rfft(pos, 2 * points), rfft(neg, 2 * points))


class Tops(NamedTuple):
    """A sum of exponentials for each class, as its largest term and the rest."""

    top: Float  # (2,)
    total: Float  # (2,) of exp(power - top)

    def __add__(self, other: Any) -> "Tops":
        top = np.maximum(self.top, other.top)
        with np.errstate(invalid="ignore"):  # -inf less -inf: a class without rows
            mine, its = (np.nan_to_num(np.exp(x.top - top)) for x in (self, other))
        return Tops(top, mine * self.total + its * other.total)


class Exponential(Pairwise):
    """Mean of exp(-(s_i - s_j)): a sum over each class, and their product."""

    fineness = 0.0

    def _sums(self, score: Float, share: Float, level: int) -> list[Any]:
        top, total = np.full(2, -np.inf), np.zeros(2)
        for side, (here, sign) in enumerate(((share > 0.0, -1.0), (share < 0.0, 1.0))):
            if here.any():
                power = sign * score[here]
                top[side] = power.max()
                total[side] = np.abs(share[here]) @ np.exp(power - top[side])
        return [Tops(top, total)]

    def level(self, seen: Seen) -> int:
        """Return that there is no grid."""
        return 0

    def field(self, seen: Seen, level: int) -> Field:
        """Return the two sums."""
        assert seen.sums is not None
        (tops,) = seen.sums
        log_value = float((tops.top + np.log(tops.total)).sum())
        value = float(np.exp(min(log_value, 709.0)))
        return Field(value, 0.0, 0, [], [tops.top, tops.total])

    def _parts(self, field: Field, score: Float, share: Float) -> Float:
        """Return what share of the sum of its class a row has."""
        side = np.where(share > 0.0, 0, 1)
        top, total = field.grids
        power = np.where(share > 0.0, -score, score)
        # Rows that are not there may be above all others.
        power = np.where(share == 0.0, top[side], power)
        return np.abs(share) * np.exp(power - top[side]) / total[side]

    def slope(self, field: Field, score: Float, share: Float) -> Float:
        """Return the derivative by each score."""
        return -np.sign(share) * field.value * self._parts(field, score, share)

    def weigh(self, field: Field, score: Float, share: Float, v: Float) -> Any:
        """Return the mean of ``v`` over each class."""
        weighed = self._parts(field, score, share) * v
        return np.bincount(np.where(share > 0.0, 0, 1), weighed, 2)

    def across(self, field: Field, sums: Any) -> Any:
        """Return the means."""
        return sums

    def product(
        self, field: Field, across: Any, score: Float, share: Float, v: Float
    ) -> Float:
        """Return the Hessian times ``v``, for these rows."""
        other = np.where(share > 0.0, across[1], across[0])
        return field.value * self._parts(field, score, share) * (v - other)


LOSSES: dict[str, Pairwise] = {
    "squared_hinge": SquaredHinge(),
    "logistic": Smooth("logistic"),
    "sigmoid": Smooth("sigmoid"),
    "exponential": Exponential(),
}
