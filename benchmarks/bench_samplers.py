"""Compare SAM, ASAM, PSAM and UniExp with optima in AUC, with SGDClassifier in time.

``python benchmarks/bench_samplers.py``: on random 70/30 splits of each data set, raw
and standardised, the mean test AUC. "square" is the minimum of the pairwise square
loss; the columns after it are differences from it in thousandths. "hinge²" is the
minimum of the pairwise squared hinge loss over all pairs with the same l2 (L-BFGS on
standardised rows, not on wide data), "balanced" is logistic regression; then the
samplers after one and after five passes, and after one pass of a stream. Last, for
TIMED, the milliseconds of one pass (as many pairs as rows) and of one epoch of
``SGDClassifier``, as many steps, on the same matrix. Step sizes were chosen by test AUC
on a split of CHOSEN_ON (subsets of 12 000 rows, two seeds); HELD_OUT had no part in
that. But the number of partners of a row in a stream was chosen on eight sets, news20
and sector among them: for "PSAM stream" these two are not held out. The data sets are
read from $AUCMAX_DATA or ../shared/data.
"""

import sys
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from aucmax import ASAM, PSAM, SAM, LeastSquaresAUC, UniExp
from aucmax.metrics import auc
from bench import Row, best_of, main, shared

CHOSEN_ON = ("a9a.train", "german", "diabetes", "ijcnn1.train", "spambase")
CHOSEN_ON += ("splice.train", "svmguide3.train", "thyroid", "usps.train")
HELD_OUT = (
    "cod-rna",
    "magic04",
    "phishing",
    "australian",
    "phoneme",
    "svmguide1.train",
)
HELD_OUT += ("covtype_sample", "news20", "sector.train")
WIDE = ("news20", "sector.train")  # too many features for a dense matrix
TIMED = ("a9a.train", "ijcnn1.train", "cod-rna", "news20")
# Half the classes against the other half, but for covtype: class 2 against the rest.
POSITIVE = {
    "usps.train": lambda y: y <= 5,
    "covtype_sample": lambda y: y == 2,
    "news20": lambda y: y <= 10,
    "sector.train": lambda y: y <= 52,
}
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
        found = shared(name, POSITIVE.get(name, lambda y: y > 0))
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        X, y = found
        kinds: dict[str, Any] = {"raw": X}
        if name not in WIDE:
            dense = X.toarray()
            unit = StandardScaler().fit_transform(dense)
            kinds = {"raw": dense, "standardised": unit}
            if name in TIMED:
                kinds["CSR"] = X
        for kind, data in kinds.items():
            row: Row = {"data": f"{name.removesuffix('.train')}, {kind}"}
            row |= _areas(data, y, repeat) if kind != "CSR" else {}
            rows.append(row | (times(data, y, 20) if name in TIMED else {}))
    headings = sorted({key: 0 for row in rows for key in row}, key=_place)
    return [{key: row.get(key, "") for key in headings} for row in rows]


def _place(heading: str) -> tuple[bool, bool]:
    return heading != "data", heading.endswith("ms")


def _areas(X: Any, y: np.ndarray, repeat: int) -> Row:
    sums: dict[str, float] = {}
    for seed in range(repeat):
        A, B, y_A, y_B = train_test_split(
            X, y, test_size=0.3, random_state=seed, stratify=y
        )
        areas = {}
        if not sparse.issparse(X):
            scaler = StandardScaler().fit(A)
            unit, unit_B = scaler.transform(A), scaler.transform(B)
            areas["hinge²"] = auc(y_B, unit_B @ squared_hinge(unit, y_A))
        else:
            unit, unit_B = A, B
        square = LeastSquaresAUC(L2).fit(A, y_A)
        areas["square"] = auc(y_B, square.decision_function(B))
        balanced = LogisticRegression(class_weight="balanced", max_iter=1000)
        balanced.fit(unit, y_A)
        areas["balanced"] = auc(y_B, balanced.decision_function(unit_B))
        for name, (model, method) in models(seed).items():
            getattr(model, method)(A, y_A)
            areas[name] = auc(y_B, model.decision_function(B))
        for name, value in areas.items():
            sums[name] = sums.get(name, 0.0) + value / repeat
    best = sums.pop("square")
    differences = {key: round(1e3 * (value - best), 1) for key, value in sums.items()}
    return {"square": best, "hinge²": ""} | differences


if __name__ == "__main__":
    main("Test AUC, differences in 0.001; ms a pass", run, repeat=2)
