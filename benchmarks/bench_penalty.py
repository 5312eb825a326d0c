"""Compare the default penalty of BAM, SVMPerf and LeastSquaresAUC, by test AUC.

``python benchmarks/bench_penalty.py --repeat 3``: mean over so many random halves of
each data set, on features as they are; at most 3000 rows are used, and the largest
class is told from the rest if there are more than two. "LR" is balanced logistic
regression with C=1 on standardised features (on raw ones if there are more than 1000:
those are texts); the other columns are differences from it, in thousandths. Set
``_CROWD`` in ``aucmax.base.penalty`` to zero to see what the number of features does
to it. Data are read from $AUCMAX_DATA or ../shared/data.
"""

import sys
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import BAM, LeastSquaresAUC, SVMPerf
from aucmax.metrics import auc
from bench import Row, main, shared

SETS = (
    "a9a.train",
    "arrhythmia",
    "australian",
    "breastw",
    "connect-4",
    "covtype_sample",
    "creditcard_sample",
    "diabetes",
    "farm-ads",
    "fourclass",
    "german",
    "glass",
    "heart",
    "higgs_sample.train",
    "ijcnn1.train",
    "ionosphere",
    "letter.train",
    "magic04",
    "mushrooms",
    "page-blocks",
    "phishing",
    "phoneme",
    "reuters_money.train",
    "sector.train",
    "spambase",
    "splice.train",
    "svmguide1.train",
    "svmguide3.train",
    "svmguide4.train",
    "thyroid",
    "usps.train",
    "vehicle",
)


def models(texts: bool) -> dict[str, Any]:
    """Return the models by name; the first is what the others are compared with."""
    rival = LogisticRegression(class_weight="balanced", max_iter=1000)
    return {
        "LR": rival if texts else make_pipeline(StandardScaler(), rival),
        "l2=1e-4": BAM(1e-4),
        "BAM": BAM(),
        "logistic": BAM(loss="logistic"),
        "exponential": BAM(loss="exponential"),
        "SVMPerf": SVMPerf(),
        "square": LeastSquaresAUC(),
    }


def run(repeat: int) -> list[Row]:
    """Return a row for each data set, and their mean and least difference."""
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for name in SETS:
        found = shared(name, None)
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        labels, counts = np.unique(found[1], return_counts=True)
        keep = np.random.default_rng(0).permutation(len(found[1]))[:3000]
        label = labels[1] if len(labels) == 2 else labels[np.argmax(counts)]
        X, y = found[0][keep], (found[1][keep] == label).astype(int)
        texts = X.shape[1] > 1000
        X = X if texts else X.toarray()
        areas: dict[str, list[float]] = {key: [] for key in models(texts)}
        halves = StratifiedShuffleSplit(repeat, test_size=0.5, random_state=0)
        for train, test in halves.split(X, y):
            for key, model in models(texts).items():
                model.fit(X[train], y[train])
                areas[key].append(auc(y[test], model.decision_function(X[test])))
        mean = {key: float(np.mean(some)) for key, some in areas.items()}
        row: Row = {"data": name, "LR": mean.pop("LR")}
        row |= {key: round(1e3 * (some - row["LR"]), 1) for key, some in mean.items()}
        rows.append(row)
        print(row, file=sys.stderr)
    for name, summary in (("mean", np.mean), ("median", np.median), ("least", np.min)):
        last: Row = {"data": name, "LR": float("nan")}
        for key in list(rows[0])[2:]:
            values = [row[key] for row in rows if row["data"] in SETS]
            last[key] = round(float(summary(values)), 1)
        rows.append(last)
    return rows


if __name__ == "__main__":
    main("Test AUC, differences in thousandths", run, repeat=3)
