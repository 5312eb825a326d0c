r"""A race of rankers: who is ahead, by how much, and how sure that is.

Every ranker scores a block of rows before it learns them. The AUC of a block compares
rows that were scored by the same weights, so scores of different times never meet. Over
blocks b the mean is weighted,

.. math:: \bar A = \sum_b u_b A_b / \sum_b u_b , \qquad
          u_b = t_b^2 \, \frac{n_+ n_-}{n_+ + n_-} ,

by what the block knows (van Elteren's weights) and by the rows t so far: rankers learn,
and what counts is how they rank now. Given the past, blocks are independent, so the
error of a difference of two rankers comes from how it varies over blocks,

.. math:: se^2 = \frac{k}{k - 1} \sum_b u_b^2 (\Delta_b - \bar\Delta)^2
                 \Big/ \Big(\sum_b u_b\Big)^2 , \qquad
          k = \Big(\sum_b u_b\Big)^2 \Big/ \sum_b u_b^2 .

A ranker's weight in the blend is the likelihood that it is as good as the leader,
exp(-½ (Δ/se)²).

Rankers drop out at checks, each time that the rows have doubled. They are in the order
of what they cost: one is dropped if it is behind another, or better than a cheaper one
by less than the ``tolerance``. That it is so has to be sure, at the error rate α for
all pairs of all checks together: the c-th check has a share 6/(π²c²) of α, shared by
all pairs, and compares by Student's t with k - 1 degrees of freedom. The first, which
is the cheapest, never drops out: who is ahead now need not be ahead a million rows
later (of many rare features, a learner that averages knows little for long).
"""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from aucmax.core.rows import Float

_FIRST_CHECK = 4096  # rows; before, all of them together cost next to nothing
_ERROR_RATE = 0.05  # α
_TINY = 1e-300


@dataclass
class Race:
    """The state of a race, all arrays."""

    runs: Float  # (K,) whether a ranker takes part, 1 or 0
    sums: Float  # (K,) Σ u A
    squares: Float  # (K,) Σ u² A
    products: Float  # (K, K) Σ u² A Aᵀ
    totals: Float  # (2,) Σ u and Σ u²
    final: Float  # (K, 4) mean, error, gap, rows of those that are out: as they went
    at: Float  # (2,) rows so far, checks so far

    @classmethod
    def of(cls, n: int) -> Self:
        """Return a race of ``n`` rankers before it begins."""
        lists = np.ones(n), np.zeros(n), np.zeros(n), np.zeros((n, n))
        return cls(*lists, np.zeros(2), np.zeros((n, 4)), np.zeros(2))

    @classmethod
    def restored(cls, n: int, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the race that ``arrays`` were of; raise an error if they cannot be."""
        shapes = {name: array.shape for name, array in cls.of(n).arrays().items()}
        race = cls(**{name: arrays[name] for name in shapes})
        for name, array in race.arrays().items():
            if array.shape != shapes[name] or not np.isfinite(array).all():
                raise ValueError(f"the {name!r} of its race are none.")
        if not np.isin(race.runs, (0.0, 1.0)).all() or not race.runs.any():
            raise ValueError("nobody takes part in its race.")
        if (race.totals < 0.0).any() or (race.at < 0.0).any():
            raise ValueError("its race counts below zero.")
        return race

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all there is, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def running(self) -> NDArray[np.bool_]:
        """Who takes part."""
        return self.runs > 0.0

    def judge(self, areas: Float, weight: float, rows: int) -> None:
        """Count a block in: the AUC of each ranker, and n₊n₋/(n₊ + n₋).

        Of those that are out, whatever is there.
        """
        self.at[0] += rows
        u = weight * self.at[0] ** 2
        areas = np.where(self.running, areas, 0.0)
        self.totals += u, u * u
        self.sums += u * areas
        self.squares += u * u * areas
        self.products += u * u * np.outer(areas, areas)

    def fade(self, share: float) -> None:
        """Let all so far count ``share`` of what it did."""
        self.sums *= share
        self.totals[0] *= share
        for array in (self.squares, self.products):
            array *= share * share
        self.totals[1] *= share * share

    def means(self) -> Float:
        """Return the mean AUC of each ranker so far; ½ before the first block."""
        known = self.totals[0] > 0.0
        mean = self.sums / self.totals[0] if known else np.full(len(self.runs), 0.5)
        return np.where(self.running, mean, self.final[:, 0])

    def errors(self) -> Float:
        """Return the standard error of each mean."""
        mean, square = self.means(), self.totals[1]
        spread = np.diag(self.products) - 2.0 * mean * self.squares + mean**2 * square
        own = self._error(np.maximum(spread, 0.0), unknown=0.5)
        return np.where(self.running, own, self.final[:, 1])

    def gaps(self) -> Float:
        """Return by how much each is behind the leader."""
        mean = self.means()
        return np.where(self.running, self._best() - mean, self.final[:, 2])

    def rows(self) -> Float:
        """Return how many rows each ranker has seen."""
        return np.where(self.running, self.at[0], self.final[:, 3])

    def weights(self) -> Float:
        """Return the weight of each ranker in the blend; their sum is one."""
        leader = int(np.argmax(np.where(self.running, self.means(), -np.inf)))
        behind = np.where(self.running, self.gaps(), 0.0)
        error = np.maximum(self._error_of_difference()[leader], _TINY)
        with np.errstate(over="ignore"):
            weight = self.runs * np.exp(-0.5 * (behind / error) ** 2)
        return weight / weight.sum()

    def drop(self, tolerance: float) -> NDArray[np.intp]:
        """Return who is to drop out now, if it is time for a check."""
        rows, checks = self.at
        if rows < _FIRST_CHECK * 2.0**checks:
            return np.array([], np.intp)
        self.at[1] = checks + 1.0
        n, degrees = len(self.runs), self._blocks() - 1.0
        rate = _ERROR_RATE * 6.0 / (np.pi * self.at[1]) ** 2 / max(n * (n - 1), 1)
        if n == 1 or degrees <= 0.0:
            return np.array([], np.intp)
        mean, running, out = self.means(), self.running, []
        margin = -stdtrit(degrees, rate) * self._error_of_difference()
        for i in np.argsort(mean, kind="stable"):
            allowed = np.where(np.arange(n) < i, tolerance, 0.0)
            beaten = mean[i] - mean + margin[i] < allowed
            if i > 0 and running[i] and (beaten & running)[np.arange(n) != i].any():
                running[i] = False
                out.append(i)
        return np.array(out, np.intp)

    def retire(self, ranker: int) -> None:
        """Let a ranker stop where it is."""
        where = self.means(), self.errors(), self.gaps(), self.rows()
        self.final[ranker] = [some[ranker] for some in where]
        self.runs[ranker] = 0.0

    def _best(self) -> float:
        return float(self.means()[self.running].max())

    def _blocks(self) -> float:
        """Return k, how many blocks of equal weight there would be."""
        return float(self.totals[0] ** 2 / max(self.totals[1], _TINY))

    def _error(self, spread: Float, unknown: float) -> Float:
        """Return the standard errors that go with sums of squared deviations."""
        k = self._blocks()
        if not k > 1.0:
            return np.full_like(spread, unknown)
        return np.sqrt(spread * (k / (k - 1.0))) / self.totals[0]

    def _error_of_difference(self) -> Float:
        mean, P = self.means(), self.products
        gap = np.subtract.outer(mean, mean)
        own = np.add.outer(np.diag(P), np.diag(P))
        mixed = gap * np.subtract.outer(self.squares, self.squares)
        spread = own - 2.0 * P - 2.0 * mixed + gap**2 * self.totals[1]
        return self._error(np.maximum(spread, 0.0), unknown=np.inf)
