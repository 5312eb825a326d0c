"""Test AUC of every estimator with its defaults, to compare two versions of aucmax.

``python benchmarks/versions.py run --json new.json`` with this version, the same with
``PYTHONPATH`` set to the ``src`` of another version and another file, then
``python benchmarks/versions.py compare old.json new.json``.

Sets of ``bench.py``, raw and standardised, and four of texts; ``fit`` and one pass of
``partial_fit``; as many random 70/30 splits as repeats, one of large sets and texts.
"""

import sys
from collections import defaultdict
from json import loads
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import aucmax
from aucmax.metrics import auc
from bench import CHOSEN_ON, HELD_OUT, Options, Row, main, shared

TEXTS = ("news20", "farm-ads", "sector.train", "reuters_money.train")
SLOW = {"BAM", "BAMCV", "SVMPerf", "LeastSquaresAUCCV", "KernelBAM", "KernelAUCCV"}
SLOW |= {"AUCClassifier", "Chain"}  # tables.py and peers.py have them
# Their state is quadratic in the number of features.
QUADRATIC = {("LeastSquaresAUC", "partial_fit")}
QUADRATIC |= {
    (name, method)
    for name in ("OPAUC", "AdaOAM", "CBR")
    for method in ("fit", "partial_fit")
}
LARGE, MOST = 20_000, 60_000  # rows


def run(options: Options) -> list[Row]:
    """Return a row for each set, scale, estimator and method."""
    rows: list[Row] = []
    for data in options.sets or (*CHOSEN_ON, *HELD_OUT, *TEXTS):
        found = shared(data, None)
        if found is None:
            continue
        X, labels = found
        levels = np.unique(labels)
        y = (labels >= levels[len(levels) // 2]).astype(int)[:MOST]
        X = X[:MOST] if data in TEXTS else X[:MOST].toarray()
        splits = 1 if data in TEXTS or len(y) > LARGE else options.repeat
        for scaled in (False,) if data in TEXTS else (False, True):
            for name, method in learners(data):
                areas = [
                    one(X, y, scaled, name, method, seed) for seed in range(splits)
                ]
                kind = "standardised" if scaled else "raw"
                key = f"{name}.{method}, {data}, {kind}"
                rows.append({"data": key, "AUC": float(np.mean(areas))})
    return rows


def learners(data: str) -> list[tuple[str, str]]:
    """Return the estimators and training methods for a set."""
    found = [
        (name, method)
        for name in aucmax.ESTIMATORS
        for method in ("fit", "partial_fit")
        if name not in SLOW and hasattr(getattr(aucmax, name), method)
    ]
    return [one for one in found if data not in TEXTS or one not in QUADRATIC]


def one(X: Any, y: Any, scaled: bool, name: str, method: str, seed: int) -> float:
    train, test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, random_state=seed, stratify=y
    )
    if scaled:
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)
    model = getattr(aucmax, name)()
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    getattr(model, method)(train, y_train)
    return float(auc(y_test, model.decision_function(test)))


def compare(old: Path, new: Path) -> None:
    """Print the mean difference of each estimator, and its two worst sets."""
    before, after = (
        {row["data"]: row["AUC"] for row in loads(path.read_text())["run"]}
        for path in (old, new)
    )
    groups = defaultdict(list)
    for key in before.keys() & after.keys():
        learner, data, _ = key.split(", ")
        kind = "texts" if data in TEXTS else "tables"
        groups[learner, kind].append((after[key] - before[key], key))
    for (learner, kind), found in sorted(groups.items()):
        mean = np.mean([difference for difference, _ in found])
        worst = "; ".join(f"{d:+.4f} {key}" for d, key in sorted(found)[:2])
        print(f"{learner:30} {kind:6} {mean:+.5f}   worst: {worst}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main(__doc__, {"run": run})
