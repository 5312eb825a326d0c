"""Compare the order of pairs that memory likes with pairs drawn anew at each step.

``python benchmarks/bench_pairs_order.py [--rows N]``: one pass of PSAM over N × 300
dense rows, classes of 20 % and 80 %, in seconds, and the AUC on other rows. "naive" is
two independent random rows a step; "fetched" asks for them ahead; "dealt" is what
``fit`` does (:mod:`aucmax.core.deck`). Rows come in order of time and drift, so that
neighbours are alike: the worst case for an order that keeps them together. Drawing the
pairs is part of the time.
"""

import sys
from functools import partial

import numpy as np

from aucmax import PSAM
from aucmax.core.base import generator
from aucmax.core.deck import decks
from aucmax.core.engine import fetch_ahead
from aucmax.core.rows import as_rows
from aucmax.core.tally import measure
from aucmax.metrics import auc
from aucmax.stochastic.sampler import update
from bench import Row, best_of, main

FEATURES = 300
PIECE = 1 << 16


def drifting(n: int, dtype: type, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose features drift slowly, and labels by a linear score."""
    rng = np.random.default_rng(seed)
    w = np.random.default_rng(0).standard_normal(FEATURES)
    X = np.empty((n, FEATURES), dtype)
    score = np.empty(n)
    for start in range(0, n, 10_000):
        some = rng.standard_normal((min(10_000, n - start), FEATURES))
        some += rng.standard_normal((len(some) // 100 + 1, FEATURES)).repeat(100, 0)[
            : len(some)
        ]
        X[start : start + len(some)] = some
        score[start : start + len(some)] = some @ w
    score += 2.0 * score.std() * rng.standard_normal(n)
    return X, (score > np.quantile(score, 0.8)).astype(int)


class Trial:
    """One pass of PSAM over the same rows, by whatever order."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self.rows, self.signed = as_rows(X), np.where(y == 1, 1.0, -1.0)
        self.tally = measure(self.rows, self.signed, FEATURES)
        self.sides = [np.flatnonzero(y == 1), np.flatnonzero(y == 0)]
        self.model = PSAM()
        self.model.n_features_in_ = FEATURES

    def __call__(self, dealt: bool, fetched: bool, seed: int) -> np.ndarray:
        """Return the weights."""
        state = self.model._begin(self.rows, self.tally)
        rng = generator(seed)
        hands = decks(self.signed, rng)
        how = self.model._visit(self.rows, state, learn=False)
        how = how._replace(ahead=fetch_ahead(self.rows) if fetched else 0)
        for start in range(0, len(self.signed), PIECE):
            size = min(PIECE, len(self.signed) - start)
            if dealt:
                pos, neg = (deck.deal(size) for deck in hands)
            else:
                pos, neg = (
                    side[rng.randint(len(side), size=size)] for side in self.sides
                )
            update(self.rows, pos, neg, state, how, *self.model._hyper())
        return self.model._weights(state)[0]


KINDS = {"naive": (False, False), "fetched": (False, True), "dealt": (True, True)}


def run(repeat: int) -> list[Row]:
    """Return times and AUC for both float types."""
    found: list[Row] = []
    for dtype in (np.float32, np.float64):
        X, y = drifting(ROWS, dtype, 1)
        X_test, y_test = drifting(50_000, dtype, 2)
        trial = Trial(X, y)
        trial(False, False, 0)  # compiles
        jobs = {name: partial(trial, *kind, 0) for name, kind in KINDS.items()}
        seconds = best_of(repeat, jobs)
        row: Row = {"data": f"{len(y)} × {FEATURES} {np.dtype(dtype)}"}
        row |= {f"{name}, s": seconds[name] for name in KINDS}
        row["naive / dealt"] = seconds["naive"] / seconds["dealt"]
        for name in ("naive", "dealt"):
            areas = [
                auc(y_test, X_test @ trial(*KINDS[name], seed)) for seed in range(3)
            ]
            row[f"AUC {name}"] = f"{np.mean(areas):.5f} ± {np.std(areas):.5f}"
        found.append(row)
    return found


if __name__ == "__main__":
    ROWS = 500_000
    if "--rows" in sys.argv:
        at = sys.argv.index("--rows")
        ROWS = int(sys.argv[at + 1])
        del sys.argv[at : at + 2]
    main("One pass of PSAM by order of pairs", run, repeat=3)
