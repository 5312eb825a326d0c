"""Compare default OAM and CBR with exact solutions of other losses, in test AUC.

``python benchmarks/bench_buffer_auc.py``: mean over random 70/30 splits of each data
set as it comes, at most 10 000 rows of it. "square" is LeastSquaresAUC; the columns
after it are differences from it, in thousandths. "balanced" is logistic regression
with balanced classes, on standardised features. C and the number of passes were chosen
on splits of CHOSEN_ON, and some of it on australian; the rest of HELD_OUT had no part.
"""

import sys
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import CBR, OAM, LeastSquaresAUC
from aucmax.metrics import auc
from bench import Row, main, shared

CHOSEN_ON = (
    "german",
    "svmguide3.train",
    "spambase",
    "magic04",
    "heart",
    "vehicle",
    "ijcnn1.train",
    "a9a.train",
)
HELD_OUT = ("australian", "phishing", "phoneme", "ionosphere", "splice.train")
ROWS = 10_000


def models(seed: int) -> dict[str, Any]:
    """Return the models by the names of their columns."""
    logistic = LogisticRegression(class_weight="balanced", max_iter=1000)
    return {
        "square": LeastSquaresAUC(),
        "balanced": make_pipeline(StandardScaler(), logistic),
        "OAM": OAM(random_state=seed),
        "OAM gra": OAM(update="gra", random_state=seed),
        "OAM reservoir": OAM(policy="reservoir", random_state=seed),
        "OAM stream": OAM(),
        "CBR": CBR(random_state=seed),
        "CBR diag": CBR(covariance="diag", random_state=seed),
        "CBR stream": CBR(),
    }


def _one(labels: np.ndarray) -> np.ndarray:
    return labels == 1


def _above_zero(labels: np.ndarray) -> np.ndarray:
    return labels > 0


def run(repeat: int) -> list[Row]:
    """Return the mean AUC of the square loss, and the differences of all others."""
    rows: list[Row] = []
    for name in CHOSEN_ON + HELD_OUT:
        found = shared(
            name, lambda y, name=name: y == 1 if name == "vehicle" else y > 0
        )
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        some = np.random.default_rng(0).permutation(len(found[1]))[:ROWS]
        X, y = found[0][some].toarray(), found[1][some]
        sums: dict[str, float] = {}
        for seed in range(repeat):
            train, test, y_train, y_test = train_test_split(
                X, y, test_size=0.3, random_state=seed, stratify=y
            )
            for column, model in models(seed).items():
                fit = model.partial_fit if "stream" in column else model.fit
                fit(train, y_train)
                score = auc(y_test, model.decision_function(test))
                sums[column] = sums.get(column, 0.0) + score / repeat
        best = sums.pop("square")
        rows.append(
            {"data": name, "square": round(best, 4)}
            | {key: round(1e3 * (value - best), 1) for key, value in sums.items()}
        )
    return rows


if __name__ == "__main__":
    main("Test AUC, mean of splits; differences in 0.001", run, repeat=3)
