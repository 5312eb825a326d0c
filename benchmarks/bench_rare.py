"""What it brings to trust the scale of a rare feature less, by test AUC.

``python benchmarks/bench_rare.py --repeat 3``: learners with their defaults, ``fit`` on
70 % of the rows and AUC of the others, mean over so many splits; at most 20,000 rows.
Columns are the change, in thousandths, against scales from the mean squares alone, if
each feature is taken to be in so many rows of either class besides. The task is the
rarer half of the labels against the rest, or where a number is given, that class
against the rest, by size. Data are read from $AUCMAX_DATA or ../shared/data.
"""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from aucmax import ASAM, CBR, OAM, OPAUC, PSAM, SOLAM, SPAM, UniExp
from aucmax.metrics import auc
from aucmax.online.engine.known_moments import fit_table
from bench import Row, main, shared
from streams import read

TASKS = (
    *(("sector", None), ("sector", 0), ("sector", 20), ("sector", 60)),
    ("farm-ads", None),
    *(("reuters_money", None), ("news20", None), ("news20", 0), ("news20", 10)),
    *(("a9a", None), ("mushrooms", None), ("connect-4", None), ("ijcnn1", None)),
)
LEARNERS = {
    **{"OAM": OAM(), "UniExp": UniExp(), "SOLAM": SOLAM(), "SPAM": SPAM()},
    **{"ASAM": ASAM(), "PSAM": PSAM(), "CBR-diag": CBR(covariance="diag")},
    "OPAUCr": OPAUC(rank=50),
}
PRIORS = (0.0, 2.0, 5.0)
MOST = 20_000


def task(name: str, kind: int | None) -> tuple[Any, np.ndarray] | None:
    """Return rows, and which are positive; None if the set is not there."""
    if kind is None:
        return read(name)
    file = "sector.train" if name == "sector" else name
    found = shared(file, positive=None)
    if found is None:
        return None
    X, y = found
    labels, counts = np.unique(y, return_counts=True)
    return X, y == labels[np.argsort(-counts, kind="stable")[kind]]


def run(repeat: int) -> list[Row]:
    """Return a line for each task and learner."""
    lines: list[Row] = []
    for name, kind in TASKS:
        found = task(name, kind)
        if found is None:
            print(f"{name} is not there.")
            continue
        X, y = found
        if X.shape[0] > MOST:
            some = np.random.default_rng(0).permutation(X.shape[0])[:MOST]
            X, y = X[some], y[some]
        title = name if kind is None else f"{name} {kind}"
        for its, learner in LEARNERS.items():
            areas = np.mean([judge(learner, X, y, k) for k in range(repeat)], axis=0)
            gains = {
                f"{prior:g} rows": f"{1000.0 * (area - areas[0]):+.1f}"
                for prior, area in zip(PRIORS[1:], areas[1:], strict=True)
            }
            line = {"task": title, "learner": its, "AUC": round(areas[0], 4), **gains}
            lines.append(line)
    return lines


def judge(learner: Any, X: Any, y: np.ndarray, seed: int) -> list[float]:
    """Return the test AUC with each number of rows."""
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=seed
    )
    areas = []
    for prior in PRIORS:
        fit_table.__defaults__ = (prior,)
        model = clone(learner).set_params(random_state=seed).fit(X, y)
        areas.append(auc(y_test, model.decision_function(X_test)))
    return areas


if __name__ == "__main__":
    main("Rare features", run, repeat=2)
