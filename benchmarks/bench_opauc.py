"""Time one pass of OPAUC and AdaOAM against their rank-one updates alone.

``python benchmarks/bench_opauc.py``. The updates, Σ xxᵀ of either class as full d x d
matrices, are what a pass cannot do without; the gradient comes on top.
"""

from typing import Any

import numpy as np
from numba import njit

from aucmax import OPAUC
from bench import Row, best_of, main, shared


@njit(error_model="numpy", fastmath=True)
def rank_one_updates(X: np.ndarray, y: np.ndarray, S: np.ndarray) -> None:
    """Add xxᵀ of each row to the matrix of its class."""
    for i in range(X.shape[0]):
        side = 0 if y[i] > 0 else 1
        for j in range(X.shape[1]):
            c = X[i, j]
            for k in range(X.shape[1]):
                S[side, j, k] += c * X[i, k]


def data() -> dict[str, tuple[Any, np.ndarray]]:
    """Return the data sets of the benchmark by name."""
    rng = np.random.default_rng(0)
    sets: dict[str, tuple[Any, np.ndarray]] = {}
    a9a = shared("a9a.train")
    if a9a is not None:
        sets["a9a, dense"] = a9a[0].toarray(), a9a[1]
    for n, d in ((100_000, 20), (20_000, 123), (2_000, 1_000)):
        X = rng.standard_normal((n, d))
        y = (X[:, 0] + rng.standard_normal(n) > 1.5).astype(int)
        sets[f"dense {n:,} x {d:,}"] = X, y
    return sets


def run(repeat: int) -> list[Row]:
    """Return the milliseconds of each and the ratios, for each data set."""
    results: list[Row] = []
    for name, (X, y) in data().items():
        S = np.zeros((2, X.shape[1], X.shape[1]))
        jobs = {
            "updates": lambda X=X, y=y, S=S: rank_one_updates(X, y, S),
            "OPAUC": lambda X=X, y=y: OPAUC().partial_fit(X, y),
            "fit": lambda X=X, y=y: OPAUC(max_iter=1).fit(X, y),
        }
        for job in jobs.values():
            job()  # compiles, or loads what was compiled
        s = best_of(repeat, jobs)
        results.append(
            {
                "data": name,
                "updates, ms": 1e3 * s["updates"],
                "OPAUC stream": 1e3 * s["OPAUC"],
                "OPAUC fit": 1e3 * s["fit"],
                "stream / updates": s["OPAUC"] / s["updates"],
                "fit / updates": s["fit"] / s["updates"],
            }
        )
    return results


if __name__ == "__main__":
    main("One pass of OPAUC, milliseconds", run)
