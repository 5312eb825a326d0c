"""Compare default SPAM and SOLAM with the optimum and with their rivals, in test AUC.

``python benchmarks/bench_defaults.py``: mean over random 70/30 splits of each data set,
features standardised and raw. "optimum" is the closed form of the pairwise square loss
with next to no penalty; the columns after it are differences from it, in thousandths.
The data sets are read from $AUCMAX_DATA or ../shared/data. The step size was chosen by
test AUC on splits of sets that include the first six (CHOSEN_ON); the others (HELD_OUT)
had no part in that.
"""

import sys
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from aucmax import SOLAM, SPAM
from aucmax.metrics import auc
from bench import Row, main, shared

CHOSEN_ON = ("a9a.train", "german", "diabetes", "ijcnn1.train", "spambase", "magic04")
HELD_OUT = (
    "australian",
    "breastw",
    "cod-rna",
    "donors",
    "fourclass",
    "ionosphere",
    "phishing",
    "phoneme",
    "svmguide1.train",
    "thyroid",
)
L2 = 1e-4


def optimum(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the minimiser of the pairwise square loss, from its normal equations."""
    pos, neg = X[y == 1], X[y == 0]
    delta = pos.mean(0) - neg.mean(0)
    S = np.cov(pos.T, bias=True) + np.cov(neg.T, bias=True) + np.outer(delta, delta)
    S[np.diag_indices_from(S)] += L2 / 2
    unit = np.sqrt(np.diag(S))  # solved in unit-scale coordinates
    return np.linalg.solve(S / np.outer(unit, unit), delta / unit) / unit


def models(seed: int) -> dict[str, Any]:
    """Return the models by the names of their columns."""
    return {
        "SPAM, 1 pass": SPAM(max_iter=1, random_state=seed),
        "SPAM": SPAM(random_state=seed),
        "SPAM stream": SPAM(),
        "SOLAM": SOLAM(random_state=seed),
        "logistic": LogisticRegression(max_iter=1000),
        "balanced": LogisticRegression(class_weight="balanced", max_iter=1000),
    }


def run(repeat: int) -> list[Row]:
    """Return the mean AUC of the optimum, and the differences of all others."""
    rows: list[Row] = []
    for name in CHOSEN_ON + HELD_OUT:
        found = shared(name)
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        X, y = found[0].toarray(), found[1]
        for scaled in (True, False):
            sums: dict[str, float] = {}
            for seed in range(repeat):
                parts = train_test_split(
                    X, y, test_size=0.3, random_state=seed, stratify=y
                )
                for column, value in _one(*parts, scaled=scaled, seed=seed).items():
                    sums[column] = sums.get(column, 0.0) + value / repeat
            best = sums.pop("optimum")
            kind = "standardised" if scaled else "raw"
            rows.append(
                {"data": f"{name}, {kind}", "optimum": best}
                | {key: round(1e3 * (value - best), 1) for key, value in sums.items()}
            )
    return rows


def _one(
    X: np.ndarray,
    X_test: np.ndarray,
    y: np.ndarray,
    y_test: np.ndarray,
    *,
    scaled: bool,
    seed: int,
) -> dict[str, float]:
    scaler = StandardScaler().fit(X)
    unit, unit_test = scaler.transform(X), scaler.transform(X_test)
    if scaled:
        X, X_test = unit, unit_test
    found = {"optimum": auc(y_test, X_test @ optimum(X, y))}
    for name, model in models(seed).items():
        rival = isinstance(model, LogisticRegression)  # always scaled: it needs it
        fit = model.partial_fit if name == "SPAM stream" else model.fit
        fit(unit if rival else X, y)
        scores = model.decision_function(unit_test if rival else X_test)
        found[name] = auc(y_test, scores)
    return found


if __name__ == "__main__":
    main("Test AUC, mean of splits; differences in 0.001", run, repeat=5)
