r"""Sums over all pairs of rows that are on different workers.

All that rows of one class are to those of the other is where their scores are. So each
worker sums up its rows on a grid of the score, the grids are added, what they mean to
a row of the other class is worked out once for all points of the grid, and each worker
looks that up for its rows. What goes over the network is the grid.

* **logistic and sigmoid**: the grid of :mod:`aucmax.losses.pairwise`, cubic
  interpolation and all, with its points at multiples of the spacing, so that grids of
  parts add up. Its bounds hold: with 128 points a unit of the score, 10⁻¹⁰ for the
  value and each slope; with 16, 5·10⁻⁷ for second derivatives. (Beyond 2²⁰ points the
  grid is coarser; wide gaps are not cut out here.)
* **squared hinge**: within a cell, [k h, (k + 1) h), of scores t, those of the
  negatives raised by the margin, three moments of each class are kept. A pair is out of
  order if :math:`t_- > t_+`, and costs :math:`(t_- - t_+)^2`: of two cells all pairs
  are, or none, so that moments give sums which are *exact*. For a pair within a cell,
  half of its squared distance is taken, whatever its order. That is off by at most
  h²/2 a pair for the value, h for its slope and 1 for the curvature, where h = 2⁻¹²: if
  q is the share of the pairs that are within a cell, by **q h²/2 < 3·10⁻⁸ q** for the
  mean loss. q itself is about h times the density of the score, 10⁻⁴, and known at
  every point (``Field.within``). Of few rows (2²⁰), where single pairs count, each
  distinct score is a cell of its own, which is exact.
* **exponential**: a sum for each class, no grid.

A loss is what the methods of a :class:`Pairwise` do with some rows at a time: they add
to sums, or write to an array that is given, and make none as long as the rows (see
:mod:`aucmax.cluster.passes`). What is broadcast to the workers is a :class:`Field`.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.fft import rfft

from aucmax.cluster.ladder import Ladder
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float
from aucmax.losses.pairwise import (
    FINENESS,
    MOST_POINTS,
    POINTS,
    ROUGHLY,
    convolved,
    parseval,
    spectra,
)

_CELLS = 4096.0  # of the squared hinge, in a unit of the score
FEW = 1 << 20  # rows of which each score is a cell
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


class Strip:
    """Sums on a grid that grows with what is to be added."""

    def __init__(self, columns: int) -> None:
        self.first, self.at = 0, np.zeros((0, columns))

    def cover(self, first: int, last: int) -> None:
        """Have points from ``first`` to ``last``, and all that were there before."""
        n = len(self.at)
        if n:
            if self.first <= first and last < self.first + n:
                return
            first, last = min(first, self.first), max(last, self.first + n - 1)
        slack = (last - first) // 2  # so that there are few copies
        at = np.zeros((last - first + 1 + 2 * slack, self.at.shape[1]))
        start = self.first - first + slack
        at[start : start + n] = self.at
        self.first, self.at = first - slack, at

    def sums(self, first: int, last: int) -> Sums:
        """Return those from ``first`` to ``last``."""
        return Sums(first, self.at[first - self.first : last + 1 - self.first])


class Sight:
    """What rows are to a loss, as they are added."""

    def __init__(self, loss: "Pairwise", level: int) -> None:
        self.loss, self.level = loss, level
        self.ends = np.array([np.inf, -np.inf, np.inf, -np.inf])
        self.sums: list[Any] | None = loss._begin(level)

    def add(self, score: Float, share: Float) -> None:
        """Add some rows."""
        _range(score, share, self.ends)
        low, high = self.ends[:2]
        points = (high - low + 1.0) * self.loss.fineness * 0.5 ** max(self.level, 0)
        if high > -np.inf and not points <= self.loss.most(self.level):
            self.sums = None
        if self.sums is not None and low <= high:
            self.loss._add(self.sums, score, share, self.level, self.ends)

    def seen(self) -> Seen:
        """Return what to add to that of other rows."""
        low, high = map(float, self.ends[:2])
        if self.sums is None:
            return Seen(low, high, None)
        return Seen(low, high, self.loss._end(self.sums, self.level, self.ends))


class Pairwise:
    """A loss of pairs, as sums over rows; ``share`` is that of :func:`shares`."""

    fineness = 1.0

    def first_level(self, n_rows: int) -> int:
        """Return how coarse the grid of so many rows is to be, if there is room."""
        return 0

    def most(self, level: int) -> float:
        """Return how many points a grid may have."""
        return np.nextafter(np.inf, 0.0) if level == EXACT else MOST_POINTS

    def level(self, seen: Seen) -> int:
        """Return how coarse a grid has to be for scores in such a range."""
        points = (seen.high - seen.low + 1.0) * self.fineness
        if not np.isfinite(points):
            return -1
        return max(int(np.ceil(np.log2(points / MOST_POINTS))), 0)

    def _begin(self, level: int) -> list[Any]:
        """Return sums of no rows, to add to."""
        raise NotImplementedError

    def _add(
        self, sums: list[Any], score: Float, share: Float, level: int, ends: Float
    ) -> None:
        """Add rows; ``ends`` are those that :func:`_range` found so far."""
        raise NotImplementedError

    def _end(self, sums: list[Any], level: int, ends: Float) -> list[Any]:
        """Return sums that add up to those of all rows."""
        raise NotImplementedError

    def field(self, seen: Seen, level: int) -> Field:
        """Return what to look up in."""
        raise NotImplementedError

    def slope(self, field: Field, score: Float, share: Float, out: Float) -> None:
        """Set ``out`` to the derivative by each score."""
        raise NotImplementedError

    def nothing(self, field: Field) -> Float:
        """Return the sums of a Hessian product, of no rows."""
        return np.zeros((len(field.grids[-1]), 2))

    def weigh(
        self, field: Field, score: Float, share: Float, v: Float, sums: Float
    ) -> None:
        """Add these rows to the sums of a Hessian product with ``v``."""
        raise NotImplementedError

    def across(self, field: Field, sums: Any) -> Any:
        """Return what to look up for it."""
        raise NotImplementedError

    def product(
        self,
        field: Field,
        across: Any,
        score: Float,
        share: Float,
        v: Float,
        out: Float,
    ) -> None:
        """Set ``out`` to the Hessian times ``v``, for these rows."""
        raise NotImplementedError


@kernel
def _range(score: Float, share: Float, ends: Float) -> None:
    """Widen ``ends``: of the scores, and of those with negatives' raised by one."""
    low, high, lowest, highest = ends[0], ends[1], ends[2], ends[3]
    for i in range(score.shape[0]):
        s = score[i]
        if share[i] != 0.0:  # a row that is not there may be anywhere
            if not np.isfinite(s):
                low, high = -np.inf, np.inf
            t = s + 1.0 if share[i] < 0.0 else s
            low, high = min(low, s), max(high, s)
            lowest, highest = min(lowest, t), max(highest, t)
    ends[0], ends[1], ends[2], ends[3] = low, high, lowest, highest


@kernel
def _fill(score: Float, share: Float, scale: float, first: int, at: Float) -> None:
    """Add three moments of each row to its cell, positives' in front."""
    for i in range(score.shape[0]):
        if share[i] != 0.0:
            x = (score[i] + 1.0 if share[i] < 0.0 else score[i]) * scale
            k = np.floor(x)
            off, a, side = x - k, abs(share[i]), 0 if share[i] > 0.0 else 3
            c = int(k) - first
            at[c, side] += a
            at[c, side + 1] += a * off
            at[c, side + 2] += a * off * off


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


@inlined
def _cell(t: float, scale: float, first: int, edges: Float, last: int) -> int:
    """Return the cell of t: by its number, or between edges if there are some."""
    if edges.shape[0] == 0:
        return min(max(int(np.floor(t * scale)) - first, 0), last)
    low, high = 0, edges.shape[0]
    while low < high:
        middle = (low + high) // 2
        if edges[middle] <= t:
            low = middle + 1
        else:
            high = middle
    return max(low - 1, 0)


@kernel
def _look_up(
    score: Float,
    share: Float,
    scale: float,
    first: int,
    edges: Float,
    field: Float,
    out: Float,
) -> None:
    """Set ``out`` to the slopes of the squared hinge."""
    last = field.shape[0] - 1
    for i in range(score.shape[0]):
        t = score[i] + 1.0 if share[i] < 0.0 else score[i]
        k = _cell(t, scale, first, edges, last)
        if edges.shape[0] == 0:
            x = t * scale
            off = x - np.floor(x)
        else:
            off = t - edges[k]
        if share[i] > 0.0:
            distance = field[k, 1] - off * field[k, 0]
        else:
            distance = field[k, 3] + off * field[k, 2]
        out[i] = -2.0 * share[i] * distance / scale


@kernel
def _along(
    score: Float,
    share: Float,
    scale: float,
    first: int,
    edges: Float,
    field: Float,
    across: Float,
    v: Float,
    out: Float,
) -> None:
    """Set ``out`` to the Hessian of the squared hinge times v."""
    last = field.shape[0] - 1
    for i in range(score.shape[0]):
        t = score[i] + 1.0 if share[i] < 0.0 else score[i]
        k = _cell(t, scale, first, edges, last)
        side = 0 if share[i] > 0.0 else 1
        out[i] = 2.0 * abs(share[i]) * (field[k, 2 * side] * v[i] - across[k, side])


@kernel
def _add_up(
    score: Float,
    share: Float,
    scale: float,
    first: int,
    edges: Float,
    v: Float,
    at: Float,
) -> None:
    """Add v of each row to its cell."""
    last = at.shape[0] - 1
    for i in range(score.shape[0]):
        t = score[i] + 1.0 if share[i] < 0.0 else score[i]
        k = _cell(t, scale, first, edges, last)
        at[k, 0 if share[i] > 0.0 else 1] += abs(share[i]) * v[i]


class SquaredHinge(Pairwise):
    """Mean of max(0, 1 - (s_i - s_j))²."""

    fineness = _CELLS

    def first_level(self, n_rows: int) -> int:
        """Return how coarse the grid of so many rows is to be, if there is room."""
        return EXACT if n_rows <= FEW else 0

    def _begin(self, level: int) -> list[Any]:
        return [] if level == EXACT else [Strip(6)]

    def _add(
        self, sums: list[Any], score: Float, share: Float, level: int, ends: Float
    ) -> None:
        if level == EXACT:
            here = share != 0.0
            some = share[here]
            both = np.column_stack([np.maximum(some, 0.0), np.maximum(-some, 0.0)])
            sums.append(Ladder.of(score[here] + (some < 0.0), both))
            return
        scale = _CELLS * 0.5**level
        sums[0].cover(*_cells_of(ends, scale))
        _fill(score, share, scale, sums[0].first, sums[0].at)

    def _end(self, sums: list[Any], level: int, ends: Float) -> list[Any]:
        if level == EXACT:
            nothing = Ladder(np.zeros(0), np.zeros((0, 2)))
            return [Ladder.joined([nothing, *sums])]
        if not len(sums[0].at):
            return [Sums(0, np.zeros((0, 6)))]
        return [sums[0].sums(*_cells_of(ends, _CELLS * 0.5**level))]

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
            return Field(float(value[0]), 0.0, level, [0], [cells.value, out])
        _sweep(cells.at, np.ones(max(n - 1, 0)), 0.5, out, value)
        unit = 2.0**level / _CELLS
        grids = [np.zeros(0), out]
        return Field(
            float(value[0]) * unit**2, float(value[1]), level, [cells.first], grids
        )

    def slope(self, field: Field, score: Float, share: Float, out: Float) -> None:
        """Set ``out`` to the derivative by each score."""
        scale, first, (edges, at) = _scale(field), field.firsts[0], field.grids
        _look_up(score, share, scale, first, edges, at, out)

    def weigh(
        self, field: Field, score: Float, share: Float, v: Float, sums: Float
    ) -> None:
        """Add these rows to the sums of a Hessian product with ``v``."""
        scale, first, edges = _scale(field), field.firsts[0], field.grids[0]
        _add_up(score, share, scale, first, edges, v, sums)

    def across(self, field: Field, sums: Any) -> Any:
        """Return what to look up for it."""
        pos, neg = sums.T
        half = 1.0 if field.level == EXACT else 0.5
        above = np.cumsum(neg[::-1])[::-1] - half * neg
        below = np.cumsum(pos) - half * pos
        return np.ascontiguousarray(np.column_stack([above, below]))

    def product(
        self,
        field: Field,
        across: Any,
        score: Float,
        share: Float,
        v: Float,
        out: Float,
    ) -> None:
        """Set ``out`` to the Hessian times ``v``, for these rows."""
        scale, first, (edges, at) = _scale(field), field.firsts[0], field.grids
        _along(score, share, scale, first, edges, at, across, v, out)


def _cells_of(ends: Float, scale: float) -> tuple[int, int]:
    first, last = (int(np.floor(end * scale)) for end in ends[2:])
    return first, last


def _scale(field: Field) -> float:
    """Return the cells in a unit of the score; a distinct score has no width."""
    return 1.0 if field.level == EXACT else _CELLS * 0.5**field.level


@inlined
def _point(s: float, fineness: float, first: int, points: int) -> tuple[int, float]:
    """Return the point to the left of a score, and how far it is from there."""
    x = s * fineness
    k = np.floor(x)
    return min(max(int(k) - first, 1), points - 3), x - k


@inlined
def _cubic(f: float) -> tuple[float, float, float, float]:
    """Return the weights of the points at -1, 0, 1 and 2 for a value at f."""
    a, b, c = f + 1.0, f - 1.0, f - 2.0
    return -f * b * c / 6.0, a * b * c / 2.0, -a * f * c / 2.0, a * f * b / 6.0


@kernel
def _spread(
    score: Float,
    share: Float,
    v: Float,
    along: bool,
    fineness: float,
    first: int,
    grid: Float,
) -> None:
    """Add rows, or v ``along`` them, to the points around; positives' in front."""
    for i in range(score.shape[0]):
        if share[i] != 0.0:
            k, f = _point(score[i], fineness, first, grid.shape[0])
            p, q, r, s = _cubic(f)
            side = 0 if share[i] > 0.0 else 1
            amount = abs(share[i])
            if along:
                amount *= v[i]
            grid[k - 1, side] += amount * p
            grid[k, side] += amount * q
            grid[k + 1, side] += amount * r
            grid[k + 2, side] += amount * s


@kernel
def _read(
    score: Float, share: Float, fineness: float, first: int, grid: Float, out: Float
) -> None:
    """Set ``out`` to the share of each row times what is read between the points."""
    for i in range(score.shape[0]):
        k, f = _point(score[i], fineness, first, grid.shape[0])
        p, q, r, s = _cubic(f)
        side = 0 if share[i] > 0.0 else 1
        out[i] = share[i] * (
            p * grid[k - 1, side]
            + q * grid[k, side]
            + r * grid[k + 1, side]
            + s * grid[k + 2, side]
        )


@kernel
def _bend(
    score: Float,
    share: Float,
    v: Float,
    fineness: float,
    first: int,
    mass: Float,
    across: Float,
    out: Float,
) -> None:
    """Set ``out`` to the Hessian times v, of two grids with points at one place."""
    for i in range(score.shape[0]):
        k, f = _point(score[i], fineness, first, mass.shape[0])
        p, q, r, s = _cubic(f)
        side = 0 if share[i] > 0.0 else 1
        out[i] = abs(share[i]) * (
            p * (mass[k - 1, side] * v[i] - across[k - 1, side])
            + q * (mass[k, side] * v[i] - across[k, side])
            + r * (mass[k + 1, side] * v[i] - across[k + 1, side])
            + s * (mass[k + 2, side] * v[i] - across[k + 2, side])
        )


class Smooth(Pairwise):
    """Mean of the logistic or the sigmoid loss."""

    fineness = FINENESS

    def __init__(self, name: str) -> None:
        self.loss: Any = POINTS[name]._loss  # type: ignore[attr-defined]

    def _begin(self, level: int) -> list[Any]:
        return [Strip(2), Strip(2)]

    def _add(
        self, sums: list[Any], score: Float, share: Float, level: int, ends: Float
    ) -> None:
        for strip, fine in zip(sums, _finenesses(level), strict=True):
            strip.cover(*_points_of(ends, fine))
            _spread(score, share, score, False, fine, strip.first, strip.at)

    def _end(self, sums: list[Any], level: int, ends: Float) -> list[Any]:
        if not len(sums[0].at):
            return [Sums(0, np.zeros((0, 2)))] * 2
        return [
            strip.sums(*_points_of(ends, fine))
            for strip, fine in zip(sums, _finenesses(level), strict=True)
        ]

    def field(self, seen: Seen, level: int) -> Field:
        """Return slopes on the fine grid, curvature on the other."""
        assert seen.sums is not None
        fine, rough = seen.sums
        points, transforms = _transforms(fine.at)
        waves = spectra(self.loss, points, 2.0**level / FINENESS)
        value = parseval(waves[0], transforms, points)
        slopes = convolved(waves[1], transforms, points)[:, : len(fine.at)]
        mass = self._curved(level, rough.at)
        firsts = [fine.first, rough.first]
        return Field(value, 0.0, level, firsts, [np.ascontiguousarray(slopes.T), mass])

    def _curved(self, level: int, at: Float) -> Float:
        points, transforms = _transforms(at)
        waves = spectra(self.loss, points, 2.0**level / ROUGHLY)
        both = convolved(waves[2], transforms, points)
        return np.ascontiguousarray(both[:, : len(at)].T)

    def slope(self, field: Field, score: Float, share: Float, out: Float) -> None:
        """Set ``out`` to the derivative by each score."""
        fine, first = _finenesses(field.level)[0], field.firsts[0]
        _read(score, share, fine, first, field.grids[0], out)

    def weigh(
        self, field: Field, score: Float, share: Float, v: Float, sums: Float
    ) -> None:
        """Add these rows to the sums of a Hessian product with ``v``."""
        rough, first = _finenesses(field.level)[1], field.firsts[1]
        _spread(score, share, v, True, rough, first, sums)

    def across(self, field: Field, sums: Any) -> Any:
        """Return what to look up for it."""
        return self._curved(field.level, sums)

    def product(
        self,
        field: Field,
        across: Any,
        score: Float,
        share: Float,
        v: Float,
        out: Float,
    ) -> None:
        """Set ``out`` to the Hessian times ``v``, for these rows."""
        rough, first = _finenesses(field.level)[1], field.firsts[1]
        _bend(score, share, v, rough, first, field.grids[1], across, out)


def _finenesses(level: int) -> tuple[float, float]:
    """Return the points of either grid in a unit of the score."""
    return FINENESS * 0.5**level, ROUGHLY * 0.5**level


def _points_of(ends: Float, fineness: float) -> tuple[int, int]:
    """Return the first and the last point around the scores."""
    first, last = (int(np.floor(end * fineness)) for end in ends[:2])
    return first - 1, last + 2


def _transforms(at: Float) -> tuple[int, tuple[Any, Any]]:
    points = 1 << int(np.ceil(np.log2(max(len(at), 8))))
    pos, neg = at.T
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

    def _begin(self, level: int) -> list[Any]:
        return [Tops(np.full(2, -np.inf), np.zeros(2))]

    def _add(
        self, sums: list[Any], score: Float, share: Float, level: int, ends: Float
    ) -> None:
        top, total = np.full(2, -np.inf), np.zeros(2)
        for side, (here, sign) in enumerate(((share > 0.0, -1.0), (share < 0.0, 1.0))):
            if here.any():
                power = sign * score[here]
                top[side] = power.max()
                total[side] = np.abs(share[here]) @ np.exp(power - top[side])
        sums[0] = sums[0] + Tops(top, total)

    def _end(self, sums: list[Any], level: int, ends: Float) -> list[Any]:
        return sums

    def level(self, seen: Seen) -> int:
        """Return that there is no grid: scores are not finite."""
        return -1

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

    def slope(self, field: Field, score: Float, share: Float, out: Float) -> None:
        """Set ``out`` to the derivative by each score."""
        out[:] = -np.sign(share) * field.value * self._parts(field, score, share)

    def nothing(self, field: Field) -> Float:
        """Return the sums of a Hessian product, of no rows."""
        return np.zeros(2)

    def weigh(
        self, field: Field, score: Float, share: Float, v: Float, sums: Float
    ) -> None:
        """Add to the mean of ``v`` over each class."""
        weighed = self._parts(field, score, share) * v
        sums += np.bincount(np.where(share > 0.0, 0, 1), weighed, 2)

    def across(self, field: Field, sums: Any) -> Any:
        """Return the means."""
        return sums

    def product(
        self,
        field: Field,
        across: Any,
        score: Float,
        share: Float,
        v: Float,
        out: Float,
    ) -> None:
        """Set ``out`` to the Hessian times ``v``, for these rows."""
        other = np.where(share > 0.0, across[1], across[0])
        out[:] = field.value * self._parts(field, score, share) * (v - other)


LOSSES: dict[str, Pairwise] = {
    "squared_hinge": SquaredHinge(),
    "logistic": Smooth("logistic"),
    "sigmoid": Smooth("sigmoid"),
    "exponential": Exponential(),
}
