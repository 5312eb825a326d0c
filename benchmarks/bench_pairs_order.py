"""Compare the order of pairs that memory likes with pairs drawn anew at each step.

``python benchmarks/bench_pairs_order.py [--rows N]``: one pass of PSAM over N × 300
dense rows, classes of 20 % and 80 %, in seconds, and the AUC on other rows. "naive" is
two independent random rows a step; "fetched" asks for them ahead; "dealt" is what
``fit`` does (:mod:`aucmax.core.deck`). Rows come in order of time and drift, so that
neighbours are alike: the worst case for an order that keeps them together. Drawing the
pairs is part of the time.
"""

import sys
from collections.abc import Callable

import numpy as np

from aucmax import PSAM
from aucmax.core.base import generator
from aucmax.core.deck import decks
from aucmax.core.rows import as_rows, fetch_ahead
from aucmax.core.tally import measure
from aucmax.metrics import auc
from aucmax.stochastic.asam import update
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


def run(repeat: int) -> list[Row]:
    """Return times and AUC for both float types."""
    found: list[Row] = []
    for dtype in (np.float32, np.float64):
        X, y = drifting(ROWS, dtype, 1)
        X_test, y_test = drifting(50_000, dtype, 2)
        rows, signed = as_rows(X), np.where(y == 1, 1.0, -1.0)
        model = PSAM()
        model.n_features_in_, model.classes_ = FEATURES, np.array([0, 1])
        tally = measure(rows, signed, FEATURES)
        sides = [np.flatnonzero(signed > 0.0), np.flatnonzero(signed < 0.0)]
        weights = {}

        def one(name: str, dealt: bool, ahead: int, seed: int) -> None:
            state = model._begin(rows, tally)
            rng = generator(seed)
            hands = decks(signed, rng)
            for start in range(0, len(y), PIECE):
                size = min(PIECE, len(y) - start)
                if dealt:
                    pos, neg = (deck.deal(size) for deck in hands)
                else:
                    pos, neg = (
                        side[rng.randint(len(side), size=size)] for side in sides
                    )
                table = state.hot, state.cold, state.z
                update(rows, pos, neg, *table, ahead, True, *model._hyper())
            weights[name, seed] = model._weights(state)[0]

        kinds = {
            "naive": (False, 0),
            "fetched": (False, fetch_ahead(rows)),
            "dealt": (True, fetch_ahead(rows)),
        }

        def job(name: str) -> Callable[[], None]:
            return lambda: one(name, *kinds[name], 0)

        one("naive", False, 0, 0)  # compiles
        seconds = best_of(repeat, {name: job(name) for name in kinds})
        row: Row = {"data": f"{len(y)} × {FEATURES} {np.dtype(dtype)}"}
        row |= {f"{name}, s": seconds[name] for name in kinds}
        row["naive / dealt"] = seconds["naive"] / seconds["dealt"]
        for name in kinds:
            for seed in (1, 2):
                one(name, *kinds[name], seed)
            areas = [auc(y_test, X_test @ weights[name, seed]) for seed in range(3)]
            row[f"AUC {name}"] = round(float(np.mean(areas)), 5)
            row[f"± {name}"] = round(float(np.std(areas)), 5)
        found.append(row)
    return found


if __name__ == "__main__":
    ROWS = 200_000
    if "--rows" in sys.argv:
        at = sys.argv.index("--rows")
        ROWS = int(sys.argv[at + 1])
        del sys.argv[at : at + 2]
    main("One pass of PSAM by order of pairs", run, repeat=3)
