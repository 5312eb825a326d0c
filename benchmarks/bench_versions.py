"""Test AUC of every estimator with its defaults, to be held against another version's.

``python benchmarks/bench_versions.py --json new.json`` with this version; the same with
``PYTHONPATH`` set to the ``src`` of another one, and another file; then
``python benchmarks/bench_versions.py --against old.json new.json``. Sets of
``bench_defaults.py``, raw and standardised, and four of words; ``fit`` and one pass of
``partial_fit``; three random 70/30 splits of a small set, one of a large one.
"""

import sys
import warnings
from collections import defaultdict
from json import loads
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import aucmax
from aucmax.metrics import auc
from bench import Row, main, shared
from bench_defaults import CHOSEN_ON, HELD_OUT

WORDS = ("news20", "farm-ads", "sector.train", "reuters_money.train")
SLOW = {"BAM", "BAMCV", "SVMPerf", "LeastSquaresAUCCV"}  # not changed by learners
SQUARE = {"OPAUC", "AdaOAM", "CBR"}  # a number for each pair of features
_LARGE, _MOST = 20_000, 60_000  # rows


def run(repeat: int) -> list[Row]:
    """Return a row for each set, scale, estimator and method."""
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for data in (*CHOSEN_ON, *HELD_OUT, *WORDS):
        found = shared(data, None)
        if found is None:
            print(f"{data}: not there, left out", file=sys.stderr)
            continue
        X, labels = found
        levels = np.unique(labels)
        y = (labels >= levels[len(levels) // 2]).astype(int)[:_MOST]
        X = X[:_MOST] if data in WORDS else X[:_MOST].toarray()
        splits = 1 if data in WORDS or len(y) > _LARGE else repeat
        for scaled in (False,) if data in WORDS else (False, True):
            for name in aucmax.ESTIMATORS:
                if name in SLOW or (data in WORDS and name in SQUARE):
                    continue
                for method in ("fit", "partial_fit"):
                    if not hasattr(getattr(aucmax, name)(), method):
                        continue
                    if data in WORDS and (name, method) == (
                        "LeastSquaresAUC",
                        "partial_fit",
                    ):
                        continue  # d x d moments
                    areas = [
                        _one(X, y, scaled, name, method, seed) for seed in range(splits)
                    ]
                    kind = "standardised" if scaled else "raw"
                    key = f"{name}.{method}, {data}, {kind}"
                    rows.append({"data": key, "AUC": float(np.mean(areas))})
    return rows


def _one(X: Any, y: Any, scaled: bool, name: str, method: str, seed: int) -> float:
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
    return auc(y_test, model.decision_function(test))


def compare(old: Path, new: Path) -> None:
    """Print the differences of two files: means, and the worst two of each."""
    before, after = (
        {row["data"]: row["AUC"] for row in loads(path.read_text())}
        for path in (old, new)
    )
    groups = defaultdict(list)
    for key in before.keys() & after.keys():
        learner, data, _ = key.split(", ")
        kind = "words" if data in WORDS else "tables"
        groups[learner, kind].append((after[key] - before[key], key))
    for (learner, kind), found in sorted(groups.items()):
        mean = np.mean([difference for difference, _ in found])
        worst = "; ".join(f"{d:+.4f} {key}" for d, key in sorted(found)[:2])
        print(f"{learner:30} {kind:6} {mean:+.5f}   worst: {worst}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--against"]:
        compare(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main("Test AUC with defaults", run, repeat=3)
