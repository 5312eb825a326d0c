"""Compare SAM, ASAM, PSAM and UniExp with SGDClassifier in time, with optima in AUC.

``python benchmarks/bench_samplers.py``: on random 70/30 splits of each data set, raw
and standardised. First the seconds of one pass (as many pairs as rows) and of one epoch
of scikit-learn's ``SGDClassifier``, as many steps, on the same matrix. Then test AUC:
"hinge²" is the minimum of the pairwise squared hinge loss over all pairs with the same
l2 (L-BFGS on standardised rows); the columns after it are differences from it in
thousandths, of the pairwise square loss (closed form) and of balanced logistic
regression, and of the samplers after one and after five passes, and of one pass of a
stream. Defaults were chosen by test AUC on splits of CHOSEN_ON; HELD_OUT had no part in
that. The data sets are read from $AUCMAX_DATA or ../shared/data.
"""

import sys
import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from aucmax import ASAM, PSAM, SAM, LeastSquaresAUC, UniExp
from aucmax.metrics import auc
from bench import Row, best_of, main, shared

CHOSEN_ON = ("a9a.train", "german", "diabetes", "ijcnn1.train", "spambase")
HELD_OUT = (
    "cod-rna",
    "magic04",
    "phishing",
    "australian",
    "phoneme",
    "svmguide1.train",
)
L2 = 1e-4


def squared_hinge(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the minimum of the mean of max(0, 1 - w·z)² over all pairs + l2/2 ‖w‖².

    Sorted by score, the pairs a row has a part in are those up to a place in the order
    of the other class, so that sums over all pairs are differences of running sums.
    """
    pos, neg = X[y == 1], X[y == 0]
    pairs = len(pos) * len(neg)

    def part(mine: np.ndarray, other: np.ndarray) -> tuple[float, np.ndarray]:
        # Of each row: Σ and Σ² of 1 - (mine - other) over the others above mine - 1.
        ordered = np.sort(other)[::-1]
        sums = np.r_[0.0, np.cumsum(ordered)]
        squares = np.r_[0.0, np.cumsum(ordered**2)]
        k = np.searchsorted(-ordered, 1.0 - mine)
        gap = 1.0 - mine
        first = gap * k + sums[k]
        second = gap**2 * k + 2.0 * gap * sums[k] + squares[k]
        return float(second.sum()), first

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = pos @ w, neg @ w
        total, first = part(a, b)
        _, mirror = part(-b, -a)
        gradient = 2.0 * (neg.T @ mirror - pos.T @ first) / pairs
        return total / pairs + L2 / 2 * w @ w, gradient + L2 * w

    found = minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B")
    return found.x


def models(seed: int) -> dict[str, tuple[Any, str]]:
    """Return the samplers by the names of their columns, and how they are fitted."""
    return {
        "PSAM, 1 pass": (PSAM(max_iter=1, random_state=seed), "fit"),
        "PSAM": (PSAM(random_state=seed), "fit"),
        "PSAM stream": (PSAM(random_state=seed), "partial_fit"),
        "ASAM": (ASAM(random_state=seed), "fit"),
        "SAM": (SAM(random_state=seed), "fit"),
        "UniExp": (UniExp(random_state=seed), "fit"),
    }


def times(X: Any, y: np.ndarray, repeat: int) -> Row:
    """Return the seconds of one pass, and what they are to SGDClassifier's."""
    rival = SGDClassifier(max_iter=1, tol=None, random_state=0)
    jobs: dict[str, Any] = {"SGD": lambda: rival.fit(X, y)}
    for kind in (PSAM, ASAM, UniExp):
        model = kind(max_iter=1, random_state=0).fit(X, y)  # compiles
        jobs[kind.__name__] = lambda model=model: model.fit(X, y)
    seconds = best_of(repeat, jobs)
    return {f"{name}, ms": 1e3 * value for name, value in seconds.items()}


def run(repeat: int) -> list[Row]:
    """Return a row for each data set, standardised and raw."""
    rows: list[Row] = []
    for name in CHOSEN_ON + HELD_OUT:
        found = shared(name)
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        X, y = found
        dense = X.toarray()
        unit = StandardScaler().fit_transform(dense)
        for kind, data in (("CSR", X), ("raw", dense), ("standardised", unit)):
            row: Row = {"data": f"{name}, {kind}"} | times(data, y, max(repeat, 3))
            if kind != "CSR":
                row |= _areas(data, y, repeat)
            rows.append(row)
    headings = max(rows, key=len)
    return [{key: row.get(key, "") for key in headings} for row in rows]


def _areas(X: np.ndarray, y: np.ndarray, repeat: int) -> Row:
    sums: dict[str, float] = {}
    for seed in range(repeat):
        parts = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        A, B, y_A, y_B = parts
        scaler = StandardScaler().fit(A)
        unit, unit_B = scaler.transform(A), scaler.transform(B)
        areas = {"hinge²": auc(y_B, unit_B @ squared_hinge(unit, y_A))}
        square = LeastSquaresAUC(L2).fit(A, y_A)
        areas["square"] = auc(y_B, square.decision_function(B))
        balanced = LogisticRegression(class_weight="balanced", max_iter=1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            balanced.fit(unit, y_A)
        areas["balanced"] = auc(y_B, balanced.decision_function(unit_B))
        for name, (model, method) in models(seed).items():
            getattr(model, method)(A, y_A)
            areas[name] = auc(y_B, model.decision_function(B))
        for name, value in areas.items():
            sums[name] = sums.get(name, 0.0) + value / repeat
    best = sums.pop("hinge²")
    differences = {key: round(1e3 * (value - best), 1) for key, value in sums.items()}
    return {"hinge²": best} | differences


if __name__ == "__main__":
    main("ms a pass; test AUC, differences in 0.001", run, repeat=3)
