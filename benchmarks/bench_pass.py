"""Time one pass: SPAM against SGDClassifier and against a plain sum over X.

``python benchmarks/bench_pass.py``. The sum is the memory limit: no pass can be faster.
A fit is a pass for exact class moments, one of steps, and what is looked at before; a
pass of steps alone is a fifth of what five more of them take.
"""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from aucmax import SOLAM, SPAM
from bench import Row, best_of, main, shared


def data() -> dict[str, tuple[Any, np.ndarray]]:
    """Return the data sets of the benchmark by name."""
    rng = np.random.default_rng(0)
    sets: dict[str, tuple[Any, np.ndarray]] = {}
    for n, d in ((500_000, 30), (100_000, 300)):
        X = rng.standard_normal((n, d))
        y = (X[:, 0] + rng.standard_normal(n) > 1.5).astype(int)
        sets[f"dense {n:,} x {d}"] = X, y
        sets[f"dense {n:,} x {d}, float32"] = X.astype(np.float32), y
    n, d, nnz = 50_000, 200_000, 75
    columns = rng.integers(0, d, n * nnz).astype(np.int32)
    start = np.arange(n + 1, dtype=np.int32) * nnz
    X = sparse.csr_matrix((rng.standard_normal(n * nnz), columns, start), shape=(n, d))
    X.sum_duplicates()
    sets[f"sparse {n:,} x {d:,}"] = X, (rng.random(n) < 0.1).astype(int)
    a9a = shared("a9a.train")
    if a9a is not None:
        sets["a9a, sparse"] = a9a
        sets["a9a, dense"] = a9a[0].toarray(), a9a[1]
    return sets


def run(repeat: int) -> list[Row]:
    """Return the milliseconds of each and the ratios, for each data set."""
    results: list[Row] = []
    for name, (X, y) in data().items():
        values = X.data if sparse.issparse(X) else X
        jobs = {
            "fit": lambda X=X, y=y: SPAM(max_iter=1).fit(X, y),
            "partial": lambda X=X, y=y: SPAM().partial_fit(X, y),
            "six": lambda X=X, y=y: SPAM(max_iter=6).fit(X, y),
            "solam": lambda X=X, y=y: SOLAM(max_iter=1).fit(X, y),
            "sgd": lambda X=X, y=y: SGDClassifier(max_iter=1, tol=None).fit(X, y),
            "sum": lambda values=values: values.sum(),
        }
        for name_of_job in ("fit", "partial", "solam"):
            jobs[name_of_job]()  # compiles, or loads what was compiled
        s = best_of(repeat, jobs)
        one_pass = (s["six"] - s["fit"]) / 5.0
        results.append(
            {
                "data": name,
                "SPAM fit, ms": 1e3 * s["fit"],
                "one more pass": 1e3 * one_pass,
                "partial_fit": 1e3 * s["partial"],
                "SOLAM fit": 1e3 * s["solam"],
                "SGD fit": 1e3 * s["sgd"],
                "sum": 1e3 * s["sum"],
                "SGD / SPAM fit": s["sgd"] / s["fit"],
                "SGD / pass": s["sgd"] / one_pass,
                "SPAM fit / sum": s["fit"] / s["sum"],
                "pass / sum": one_pass / s["sum"],
            }
        )
    return results


if __name__ == "__main__":
    main("One pass, milliseconds", run)
