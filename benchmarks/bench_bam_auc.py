"""Compare the test AUC of BAMCV with that of balanced LogisticRegressionCV.

``python benchmarks/bench_bam_auc.py --repeat 5``: mean over so many times 2 halves of
each data set, features standardised; at most 4000 rows are used. "difference" is that
of BAMCV and logistic regression, in thousandths, with the standard deviation over the
halves; the columns after it are the same for other models. Data are read from
$AUCMAX_DATA or ../shared/data.
"""

import sys
import warnings
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler

from aucmax import BAM, BAMCV, LeastSquaresAUCCV
from aucmax.metrics import auc
from bench import Row, main, shared

SETS = (
    "australian",
    "breastw",
    "diabetes",
    "fourclass",
    "german",
    "heart",
    "ionosphere",
    "magic04",
    "phoneme",
    "spambase",
    "splice.train",
    "svmguide1.train",
    "svmguide3.train",
    "thyroid",
)


def models() -> dict[str, Any]:
    """Return the models by name; the first is what the others are compared with."""
    return {
        "LRCV": LogisticRegressionCV(
            Cs=10, cv=5, class_weight="balanced", scoring="roc_auc", max_iter=1000
        ),
        "BAMCV": BAMCV(),
        "hinge": BAMCV(loss="squared_hinge"),
        "logistic": BAMCV(loss="logistic"),
        "square": LeastSquaresAUCCV(),
        "BAM": BAM(),
    }


def run(repeat: int) -> list[Row]:
    """Return a row for each data set."""
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for name in SETS:
        found = shared(name)
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        keep = np.random.default_rng(0).permutation(len(found[1]))[:4000]
        X, y = found[0].toarray()[keep], found[1][keep]
        areas: dict[str, list[float]] = {key: [] for key in models()}
        seconds = dict.fromkeys(areas, 0.0)
        folds = RepeatedStratifiedKFold(n_splits=2, n_repeats=repeat, random_state=0)
        for train, test in folds.split(X, y):
            scaler = StandardScaler().fit(X[train])
            for key, model in models().items():
                start = perf_counter()
                model.fit(scaler.transform(X[train]), y[train])
                seconds[key] += perf_counter() - start
                scores = model.decision_function(scaler.transform(X[test]))
                areas[key].append(auc(y[test], scores))
        base = np.array(areas["LRCV"])
        row: Row = {"data": name, "LRCV": float(base.mean())}
        for key in list(areas)[1:]:
            difference = 1e3 * (np.array(areas[key]) - base)
            row[key] = f"{difference.mean():+.1f} ± {difference.std(ddof=1):.1f}"
        row["time of LRCV / BAMCV"] = seconds["LRCV"] / seconds["BAMCV"]
        rows.append(row)
        print(row, file=sys.stderr)
    return rows


if __name__ == "__main__":
    main("Test AUC, differences in thousandths", run, repeat=5)
