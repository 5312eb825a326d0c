"""Time the exact solvers against logistic regression and against BLAS itself.

``python benchmarks/bench_leastsquares.py``. "products" are the two symmetric products
that the second moments cannot do without, of the positives and of the negatives, by
NumPy: once as plain calls, once in blocks on all cores, the fastest that BLAS was found
to do. "grid" is scikit-learn's GridSearchCV of balanced logistic regression, 10 values
of C and 5 folds; LeastSquaresAUCCV has 50 penalties and the same folds.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from aucmax import LeastSquaresAUC, LeastSquaresAUCCV, Moments
from bench import Row, best_of, main, shared

CPUS = os.cpu_count() or 1
BLOCK = 4096


def products(parts: list[np.ndarray]) -> None:
    for part in parts:
        part.T @ part


def products_in_blocks(parts: list[np.ndarray]) -> None:
    """Do the same on all cores: for few features, BLAS by itself uses one."""
    jobs = [part[k : k + BLOCK] for part in parts for k in range(0, len(part), BLOCK)]

    def work(first: int) -> None:
        total = np.zeros((parts[0].shape[1],) * 2)
        for job in jobs[first::CPUS]:
            total += job.T @ job

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(CPUS) as pool:
        list(pool.map(work, range(CPUS)))


def solver(n: int, d: int, repeat: int) -> Row:
    """Return the times of one solution for one penalty."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = (X[:, 0] + rng.standard_normal(n) > 1.5).astype(int)
    parts = [X[y == 1], X[y == 0]]
    LeastSquaresAUC().fit(X[:100], y[:100])
    s = best_of(
        repeat,
        {
            "fit": lambda: LeastSquaresAUC().fit(X, y),
            "moments": lambda: Moments.of(X, y),
            "products": lambda: products(parts),
            "in blocks": lambda: products_in_blocks(parts),
            "logistic": lambda: LogisticRegression().fit(X, y),
        },
    )
    return {
        "data": f"{n:,} x {d}",
        "ours, ms": 1e3 * s["fit"],
        "rival, ms": 1e3 * s["logistic"],
        "rival / ours": s["logistic"] / s["fit"],
        "ours / products": s["fit"] / s["products"],
        "ours / products in blocks": s["fit"] / s["in blocks"],
        "our AUC": float("nan"),
        "rival's AUC": float("nan"),
    }


def path(name: str, repeat: int) -> Row | None:
    """Return the times of cross-validation on a real data set."""
    found = shared(name)
    if found is None:
        return None
    X, y = found[0].toarray(), found[1]
    LeastSquaresAUCCV().fit(X[:100], y[:100])
    ours = best_of(repeat, {"fit": lambda: LeastSquaresAUCCV(50).fit(X, y)})["fit"]
    grid = GridSearchCV(
        LogisticRegression(class_weight="balanced"),
        {"C": np.geomspace(1e-4, 1e4, 10)},
        scoring="roc_auc",
        cv=5,
    )
    start = perf_counter()
    grid.fit(X, y)
    rival = perf_counter() - start
    return {
        "data": f"{name}, 5 folds",
        "ours, ms": 1e3 * ours,
        "rival, ms": 1e3 * rival,
        "rival / ours": rival / ours,
        "ours / products": float("nan"),
        "ours / products in blocks": float("nan"),
        "our AUC": float(LeastSquaresAUCCV(50).fit(X, y).path_["auc"].max()),
        "rival's AUC": float(grid.best_score_),
    }


def run(repeat: int) -> list[Row]:
    """Return the milliseconds of each and the ratios."""
    rows = [solver(500_000, 30, repeat), solver(100_000, 300, repeat)]
    return rows + [row for row in [path("a9a.train", repeat)] if row is not None]


if __name__ == "__main__":
    main("Exact solutions", run, repeat=3)
