r"""A race of members: mean AUC, standard errors, blend weights, elimination.

Every member scores a block of rows before it learns them. The AUC of a block compares
rows that were scored with the same weights. The mean over blocks b is weighted,

.. math:: \bar A = \sum_b u_b A_b / \sum_b u_b , \qquad
          u_b = t_b^2 \, \frac{n_+ n_-}{n_+ + n_-} ,

by the information of the block (van Elteren's weights) and by the rows t so far, since
members improve and their present AUC is of interest. Given the past, blocks are
independent. The standard error of a difference Δ of two members therefore follows from
its variation over blocks,

.. math:: se^2 = \frac{k}{k - 1} \sum_b u_b^2 (\Delta_b - \bar\Delta)^2
                 \Big/ \Big(\sum_b u_b\Big)^2 , \qquad
          k = \Big(\sum_b u_b\Big)^2 \Big/ \sum_b u_b^2 .

The weight of a member in the blend is the likelihood that it is as good as the leader,
exp(-½ (Δ/se)²).

Members are eliminated at checks, whenever the number of rows has doubled. They are
ordered by cost. A member is eliminated if it is worse than another, or better than a
cheaper one by less than the ``tolerance``. The error rate α holds for all pairs and all
checks together: the c-th check uses a share 6/(π²c²) of α, divided among all pairs, and
Student's t with k - 1 degrees of freedom. The first member, which is the cheapest, is
never eliminated: with many rare features, a learner that averages can be behind for a
long time and win later.
"""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from aucmax.core.rows import Float

_FIRST_CHECK = 4096  # rows; up to here, all members together cost little
_ERROR_RATE = 0.05  # α
_TINY = 1e-300


@dataclass
class Race:
    """State of a race of ``K`` members, in arrays that model files store by name."""

    runs: Float  # (K,) 1 if the member is running, else 0
    sums: Float  # (K,) Σ u A
    squares: Float  # (K,) Σ u² A
    products: Float  # (K, K) Σ u² A Aᵀ
    totals: Float  # (2,) Σ u and Σ u²
    final: Float  # (K, 4) mean, error, gap and rows of eliminated members
    at: Float  # (2,) rows so far, checks so far

    @classmethod
    def of(cls, n: int) -> Self:
        """Return the race of ``n`` members before the first block."""
        sums = np.ones(n), np.zeros(n), np.zeros(n), np.zeros((n, n))
        return cls(*sums, np.zeros(2), np.zeros((n, 4)), np.zeros(2))

    @classmethod
    def restored(cls, n: int, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the race of stored arrays; raise a ValueError if invalid."""
        shapes = {name: array.shape for name, array in cls.of(n).arrays().items()}
        race = cls(**{name: arrays[name] for name in shapes})
        for name, array in race.arrays().items():
            if array.shape != shapes[name] or not np.isfinite(array).all():
                raise ValueError(
                    f"race: {name!r} has shape {array.shape}, expected {shapes[name]} "
                    "and finite values."
                )
        if not np.isin(race.runs, (0.0, 1.0)).all() or not race.runs.any():
            raise ValueError(
                "race: 'runs' must be 0 or 1, and 1 for at least one member."
            )
        if (race.totals < 0.0).any() or (race.at < 0.0).any():
            raise ValueError("race: 'totals' or 'at' is negative.")
        return race

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a model file stores."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def running(self) -> NDArray[np.bool_]:
        """Which members are running."""
        return self.runs > 0.0

    @property
    def n_rows(self) -> float:
        """Number of rows in completed blocks."""
        return float(self.at[0])

    def add_block(self, aucs: Float, information: float, rows: int) -> float:
        """Add the AUC of each member on a block; return the weight u of the block.

        ``information`` is n₊n₋/(n₊ + n₋). The AUC of eliminated members is ignored.
        """
        self.at[0] += rows
        u = float(information * self.at[0] ** 2)
        aucs = np.where(self.running, aucs, 0.0)
        self.totals += u, u * u
        self.sums += u * aucs
        self.squares += u * u * aucs
        self.products += u * u * np.outer(aucs, aucs)
        return u

    def fade(self, share: float) -> None:
        """Multiply the weights of all blocks so far by ``share``."""
        self.sums *= share
        self.totals[0] *= share
        for array in (self.squares, self.products):
            array *= share * share
        self.totals[1] *= share * share

    def means(self) -> Float:
        """Return the mean AUC of each member; 0.5 before the first block."""
        known = self.totals[0] > 0.0
        mean = self.sums / self.totals[0] if known else np.full(len(self.runs), 0.5)
        return np.where(self.running, mean, self.final[:, 0])

    def errors(self) -> Float:
        """Return the standard error of each mean."""
        mean, square = self.means(), self.totals[1]
        sums = np.diag(self.products) - 2.0 * mean * self.squares + mean**2 * square
        errors = self._error(np.maximum(sums, 0.0), unknown=0.5)
        return np.where(self.running, errors, self.final[:, 1])

    def gaps(self) -> Float:
        """Return the AUC of the leader minus that of each member."""
        mean = self.means()
        return np.where(self.running, self._best() - mean, self.final[:, 2])

    def rows_seen(self) -> Float:
        """Return the number of rows that each member was evaluated on."""
        return np.where(self.running, self.at[0], self.final[:, 3])

    def weights(self) -> Float:
        """Return the weight of each member in the blend; they sum to one."""
        leader = int(np.argmax(np.where(self.running, self.means(), -np.inf)))
        gaps = np.where(self.running, self.gaps(), 0.0)
        error = np.maximum(self._error_of_difference()[leader], _TINY)
        with np.errstate(over="ignore"):
            weight = self.runs * np.exp(-0.5 * (gaps / error) ** 2)
        return weight / weight.sum()

    def losers(self, tolerance: float) -> NDArray[np.intp]:
        """Return the members to eliminate now; empty between checks."""
        rows, checks = self.at
        if rows < _FIRST_CHECK * 2.0**checks:
            return np.array([], np.intp)
        self.at[1] = checks + 1.0
        n, degrees = len(self.runs), self._blocks() - 1.0
        rate = _ERROR_RATE * 6.0 / (np.pi * self.at[1]) ** 2 / max(n * (n - 1), 1)
        if n == 1 or degrees <= 0.0:
            return np.array([], np.intp)
        mean, running, losers = self.means(), self.running, []
        margin = -stdtrit(degrees, rate) * self._error_of_difference()
        for i in np.argsort(mean, kind="stable"):
            allowed = np.where(np.arange(n) < i, tolerance, 0.0)
            beaten = mean[i] - mean + margin[i] < allowed
            if i > 0 and running[i] and (beaten & running)[np.arange(n) != i].any():
                running[i] = False
                losers.append(i)
        return np.array(losers, np.intp)

    def eliminate(self, member: int) -> None:
        """Stop a member, and keep its results as they are."""
        results = self.means(), self.errors(), self.gaps(), self.rows_seen()
        self.final[member] = [result[member] for result in results]
        self.runs[member] = 0.0

    def _best(self) -> float:
        return float(self.means()[self.running].max())

    def _blocks(self) -> float:
        """Return k, the effective number of blocks."""
        return float(self.totals[0] ** 2 / max(self.totals[1], _TINY))

    def _error(self, squares: Float, unknown: float) -> Float:
        """Return the standard errors for sums of squared deviations."""
        k = self._blocks()
        if not k > 1.0:
            return np.full_like(squares, unknown)
        return np.sqrt(squares * (k / (k - 1.0))) / self.totals[0]

    def _error_of_difference(self) -> Float:
        mean, P = self.means(), self.products
        gap = np.subtract.outer(mean, mean)
        diagonal = np.add.outer(np.diag(P), np.diag(P))
        mixed = gap * np.subtract.outer(self.squares, self.squares)
        sums = diagonal - 2.0 * P - 2.0 * mixed + gap**2 * self.totals[1]
        return self._error(np.maximum(sums, 0.0), unknown=np.inf)
