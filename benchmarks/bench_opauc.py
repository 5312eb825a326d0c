"""Time one pass of OPAUC and AdaOAM against their rank-one updates alone.

``python benchmarks/bench_opauc.py``. The updates, Σ xxᵀ of either class as full d x d
matrices, are what a pass cannot do without; the gradient comes on top. For sparse data
with many features there are sketches instead, and SPAM to compare with.
"""

from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from aucmax import OPAUC, SPAM, AdaOAM
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
    news20 = shared("news20")
    if news20 is not None:
        sets["news20, sparse"] = news20[0], np.arange(len(news20[1])) % 2
    return sets


def run(repeat: int) -> list[Row]:
    """Return the milliseconds of each and the ratios, for each data set."""
    results: list[Row] = []
    for name, (X, y) in data().items():
        d = 0 if sparse.issparse(X) else X.shape[1]
        S = np.zeros((2, d, d))
        jobs = {
            "updates": lambda X=X, y=y, S=S: rank_one_updates(X, y, S),
            "OPAUC": lambda X=X, y=y: OPAUC().partial_fit(X, y),
            "fit": lambda X=X, y=y: OPAUC(max_iter=1).fit(X, y),
            "AdaOAM": lambda X=X, y=y: AdaOAM().partial_fit(X, y),
            "sketch": lambda X=X, y=y: OPAUC(rank=50).partial_fit(X, y),
            "SPAM": lambda X=X, y=y: SPAM().partial_fit(X, y),
        }
        if sparse.issparse(X):
            jobs = {"sketch": jobs["sketch"], "SPAM": jobs["SPAM"]}
        for job in jobs.values():
            job()  # compiles, or loads what was compiled
        ms = {key: 1e3 * value for key, value in best_of(repeat, jobs).items()}
        updates, stream = ms.get("updates", np.nan), ms.get("OPAUC", np.nan)
        results.append(
            {
                "data": name,
                "updates, ms": updates,
                "OPAUC stream": stream,
                "OPAUC fit": ms.get("fit", np.nan),
                "AdaOAM stream": ms.get("AdaOAM", np.nan),
                "rank=50 stream": ms["sketch"],
                "SPAM stream": ms["SPAM"],
                "OPAUC / updates": stream / updates,
            }
        )
    return results


if __name__ == "__main__":
    main("One pass of OPAUC, milliseconds", run)
