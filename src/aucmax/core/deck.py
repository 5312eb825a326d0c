"""Random pairs of rows, in an order that memory likes.

Two independent random rows a step are two waits for memory a step. Instead each class
is a deck of cards that is dealt from end to end, shuffled anew each time it runs out:
both rows of a pair are uniform and independent, as the papers have it, but no row comes
again before all others came. Neighbours in memory stay together in short runs, a few of
which are dealt in turn, so that rows that follow each other are still far apart. (Runs
of 64 rows are faster by a fifth, and cost 0.002 of AUC where neighbours are alike.)
"""

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import kernel
from aucmax.core.rows import Float

Index = NDArray[np.int64]

_MAX_RUN = 8  # rows next to each other in memory …
_MIN_RUNS = 1024  # … in so many runs at least …
_ABREAST = 64  # … of which so many are dealt in turn
_SMALL = 4096  # cards shuffled at once at least: small decks several times over


@kernel
def _deal_runs(cards: Index, starts: Index, run: int, out: Index) -> None:
    """Write the cards of all runs, _ABREAST of them in turn."""
    k = 0
    for first in range(0, starts.shape[0], _ABREAST):
        for step in range(run):
            for s in range(first, first + _ABREAST):
                if starts[s] + step < cards.shape[0]:
                    out[k] = cards[starts[s] + step]
                    k += 1


class Deck:
    """The rows of one class, dealt in proportion to their weights."""

    def __init__(
        self, rows: Index, weight: Float, rng: np.random.RandomState, run: int | None
    ) -> None:
        self.rows, self.rng = rows, rng
        most = min(max(len(rows) // _MIN_RUNS, 1), _MAX_RUN)
        self.run = most if run is None else run
        self.until = None if (weight == weight[0]).all() else np.cumsum(weight)
        self.hand: Index = np.zeros(0, np.int64)

    def spread(self, size: int, times: int) -> Index:
        """Return ``size`` rows evenly spread over the weights, ``times`` over.

        A row whose share of all weight is k / size, k a whole number, occurs k times;
        otherwise chance rounds. (Systematic sampling: unbiased, and sorted.)
        """
        if self.until is None and size == len(self.rows):
            return np.broadcast_to(self.rows, (times, size))
        at = (np.arange(size) + self.rng.random_sample((times, 1))) / size
        if self.until is None:
            card = (at * len(self.rows)).astype(np.int64)
        else:
            card = np.searchsorted(self.until, at * self.until[-1], side="right")
        return self.rows[np.minimum(card, len(self.rows) - 1)]

    def _shuffled(self) -> Index:
        size = len(self.rows)
        times = max(_SMALL // size, 1)
        cards = self.spread(size, times)
        if self.run == 1:
            keys = self.rng.random_sample(cards.shape)
            return np.take_along_axis(cards, keys.argsort(axis=1), axis=1).ravel()
        group = self.run * _ABREAST
        starts = np.arange(0, -(-size // group) * group, self.run)
        self.rng.shuffle(starts)
        dealt = np.empty(size, np.int64)
        _deal_runs(cards[0].copy(), starts, self.run, dealt)
        return dealt

    def deal(self, k: int) -> Index:
        """Return the next ``k`` rows."""
        hands, left = [self.hand[:k]], k - len(self.hand)
        self.hand = self.hand[k:]
        while left > 0:
            cards = self._shuffled()
            hands.append(cards[:left])
            self.hand = cards[left:]
            left -= len(cards)
        return np.ascontiguousarray(np.concatenate(hands))


def decks(
    y: Float, rng: np.random.RandomState, run: int | None = None
) -> tuple[Deck, Deck]:
    """Return the decks of the positives and of the negatives; ``y`` signed weights."""
    sides = (np.flatnonzero(y > 0.0), np.flatnonzero(y < 0.0))
    one, other = (Deck(rows, np.abs(y[rows]), rng, run) for rows in sides)
    return one, other
