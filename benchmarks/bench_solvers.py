"""Passes that the batch solvers need with their defaults, and what is left then.

``python benchmarks/bench_solvers.py``: a random 70/30 split of each data set; "gap" is
(J(w) - J*) / (J(0) - J*), with J* from the normal equations; "AUC" is the difference of
test AUC from that of the exact minimum, in thousandths. The data sets are read from
$AUCMAX_DATA or ../shared/data; at most 20 000 rows of each are used.
"""

import sys
from time import perf_counter

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from aucmax import SPDAM, SVRGAUC
from aucmax.metrics import auc
from bench import Row, main, shared

SETS = ("a9a.train", "german", "splice.train", "ijcnn1.train", "spambase", "magic04")
L2 = 1e-4


def normal_equations(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return H and Δ: J is 1 - 2 Δ·w + w·H·w."""
    pos, neg = X[y == 1], X[y == 0]
    delta = pos.mean(0) - neg.mean(0)
    H = np.cov(pos.T, bias=True) + np.cov(neg.T, bias=True) + np.outer(delta, delta)
    H[np.diag_indices_from(H)] += L2 / 2
    return H, delta


def run(repeat: int) -> list[Row]:
    """Return a row for each data set, scaling and solver."""
    rows: list[Row] = []
    for name in SETS:
        found = shared(name)
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        for kind in ("raw", "standardised"):
            X, y = found[0].toarray(), found[1]
            keep = np.random.default_rng(0).permutation(len(y))[:20_000]
            X, y = X[keep], y[keep]
            if kind == "standardised":
                X = StandardScaler().fit_transform(X)
            X, X_test, y, y_test = train_test_split(
                X, y, test_size=0.3, random_state=0, stratify=y
            )
            H, delta = normal_equations(X, y)
            unit = np.sqrt(np.diag(H))
            best = np.linalg.solve(H / np.outer(unit, unit), delta / unit) / unit
            for solver in (SVRGAUC, SPDAM):
                times = []
                for _ in range(repeat):
                    start = perf_counter()
                    model = solver(L2, random_state=0).fit(X, y)
                    times.append(perf_counter() - start)
                w = model.coef_[0]
                difference = auc(y_test, X_test @ w) - auc(y_test, X_test @ best)
                rows.append(
                    {
                        "data": f"{name}, {kind}",
                        "solver": solver.__name__,
                        "passes": model.n_iter_,
                        "residual": model.residual_,
                        "gap": float((w - best) @ H @ (w - best) / (delta @ best)),
                        "AUC": round(1e3 * difference, 2),
                        "seconds": min(times),
                    }
                )
    return rows


if __name__ == "__main__":
    main("Batch solvers with defaults", run, repeat=3)
