"""Time the AUC against scikit-learn's: ``python benchmarks/bench_auc.py``."""

import numpy as np
from sklearn.metrics import roc_auc_score

from aucmax.metrics import auc
from bench import Row, best_of, main

SIZES = (100_000, 1_000_000, 10_000_000)
SHARES = (0.1, 0.5)


def run(repeat: int) -> list[Row]:
    """Return the milliseconds of both and their ratio, for each number of rows."""
    auc([0, 1], [0.0, 1.0])  # compiles, or loads what was compiled
    results: list[Row] = []
    for share in SHARES:
        for n_rows in SIZES:
            rng = np.random.default_rng(0)
            y = (rng.random(n_rows) < share).astype(np.int64)
            score = rng.standard_normal(n_rows) + y
            seconds = best_of(
                repeat if n_rows < SIZES[-1] else 2,
                {
                    "aucmax": lambda y=y, score=score: auc(y, score),
                    "sklearn": lambda y=y, score=score: roc_auc_score(y, score),
                },
            )
            results.append(
                {
                    "rows": n_rows,
                    "positives": share,
                    "aucmax, ms": 1e3 * seconds["aucmax"],
                    "scikit-learn, ms": 1e3 * seconds["sklearn"],
                    "times faster": seconds["sklearn"] / seconds["aucmax"],
                }
            )
    return results


if __name__ == "__main__":
    main("AUC against roc_auc_score", run)
