"""Compare the defaults of the whole square-loss family, in test AUC.

``python benchmarks/bench_family.py``: mean over random 70/30 splits, at most 16 000
rows, raw features. "exact" is LeastSquaresAUC: the minimum of the pairwise square loss
that all of them approach (l2 = 1e-4). For the two sets with more features than rows,
where that minimum is not what anyone wants, it is where LeastSquaresAUC stops by
default. The other columns are differences from it, in thousandths. "tuned" is
LeastSquaresAUCCV; "balanced" is logistic regression with balanced classes, on features
of unit scale. Several of these data sets served to choose step sizes.
"""

import sys
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aucmax
from aucmax.metrics import auc
from bench import Row, main, shared

ROWS = 16_000
SETS = (
    "a9a.train",
    "german",
    "splice.train",
    "usps.train",
    "ijcnn1.train",
    "covtype_sample",
    "news20",
    "sector.train",
)


def data(name: str) -> tuple[Any, np.ndarray] | None:
    """Return rows and two classes: the upper half of the labels against the lower."""
    found = shared(name, None)
    if found is None:
        return None
    X, label = found
    kinds = np.unique(label)
    y = label == 2 if name == "covtype_sample" else label >= kinds[len(kinds) // 2]
    some = np.random.default_rng(0).permutation(len(y))[:ROWS]
    X = X[some].astype(np.float64)
    return X if X.shape[1] > 5000 else X.toarray(), y[some].astype(int)


def models(wide: bool, seed: int) -> dict[str, Any]:
    """Return the models by the names of their columns."""
    scaler = StandardScaler(with_mean=not wide)
    logistic = LogisticRegression(class_weight="balanced", max_iter=1000)
    found = {
        "exact": aucmax.LeastSquaresAUC(),
        "tuned": aucmax.LeastSquaresAUCCV(),
        "balanced": logistic if wide else make_pipeline(scaler, logistic),
        "MBA": aucmax.MBA(random_state=seed),
        "SVRG": aucmax.SVRGAUC(random_state=seed),
        "SPDAM": aucmax.SPDAM(random_state=seed),
        "SPAM": aucmax.SPAM(random_state=seed),
        "SOLAM": aucmax.SOLAM(random_state=seed),
        "FSAUC": aucmax.FSAUC(random_state=seed),
        "OPAUC": aucmax.OPAUC(random_state=seed),
        "AdaOAM": aucmax.AdaOAM(random_state=seed),
        "rank 50": aucmax.OPAUC(rank=50, random_state=seed),
    }
    if wide:
        del found["OPAUC"], found["AdaOAM"]
    return found


def run(repeat: int) -> list[Row]:
    """Return the mean AUC of the exact solution, and the differences of all others."""
    rows: list[Row] = []
    for name in SETS:
        found = data(name)
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        wide = sparse.issparse(found[0])
        sums: dict[str, float] = dict.fromkeys(models(False, 0), 0.0)
        for seed in range(repeat):
            X, X_test, y, y_test = train_test_split(
                *found, test_size=0.3, random_state=seed, stratify=found[1]
            )
            for column, model in models(wide, seed).items():
                score = model.fit(X, y).decision_function(X_test)
                sums[column] += auc(y_test, score) / repeat
        best = sums.pop("exact")
        rows.append(
            {"data": name, "exact": best}
            | {
                column: round(1e3 * (value - best), 1) if value else float("nan")
                for column, value in sums.items()
            }
        )
    return rows


if __name__ == "__main__":
    main("Test AUC with defaults; differences in 0.001", run, repeat=3)
