"""AUCStream with trees, in one pass, against boosting with all rows in memory.

Dense data sets of $AUCMAX_DATA or ../shared/data and tables of $AUCMAX_TABLES or
../shared/tables with more than 3000 rows; at most 20 000 rows of each; 70 % training
rows. Settings were chosen on the sets of ``CHOSEN`` and on the tables that the manifest
marks so; the others are for reporting.

``python benchmarks/stream_trees.py run FILE [choose|report|set …]`` adds a JSON line to
FILE for each set and learner, with test AUC and CPU time per training row. Results that
are in FILE are not computed again. ``order`` instead of ``run`` keeps the order of the
file: the last 30 % of the rows are test rows.

``… forest FILE [set …]`` compares with River's adaptive random forest (10 trees) on at
most 3000 training rows, since it takes about a millisecond per row.

``… report FILE`` prints means.

``… speed FILE [ROWS]`` learns a million generated rows of 30 features, with trees and
without, and writes the model to FILE: time per row, memory, size of the file.
"""

import csv
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pandas
from sklearn.model_selection import train_test_split

from aucmax import AUCStream
from aucmax.metrics import auc
from bench import lines_of, read

TABLES = Path(
    os.environ.get("AUCMAX_TABLES")
    or Path(__file__).resolve().parents[2] / "shared" / "tables"
)
CHOSEN = ("a9a", "covtype_sample", "ijcnn1", "magic04", "phoneme", "spambase")
SETS = (
    *("aloi_ad", "cod-rna", "connect-4", "cover_odds", "creditcard_sample", "donors"),
    *("higgs_sample", "http", "letter", "mnist", "mushrooms", "page-blocks"),
    *("phishing", "shuttle", "skin", "smtp", "splice", "svmguide1", "thyroid", "usps"),
)
MOST, LEAST = 20_000, 3000


class Split(NamedTuple):
    """Training and test rows; tables are data frames."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def manifest() -> dict[str, dict[str, str]]:
    path = TABLES / "MANIFEST.csv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {line["name"]: line for line in csv.DictReader(file)}


def table(about: dict[str, str]) -> tuple[Any, np.ndarray]:
    """Return a table without leaks and identifiers, and its labels."""
    marks = [mark for mark in about["missing_markers"].split("|") if mark]
    frame = pandas.read_csv(
        TABLES / about["file"],
        low_memory=False,
        na_values=marks,
        encoding=about["encoding"],
    )
    label = frame[about["label"]].astype(str)
    dropped = (about["drop"] + "|" + about["identifiers"]).split("|")
    y = (label == about["positive"]).to_numpy()
    columns = [c for c in frame if c not in dropped and c != about["label"]]
    return frame[columns], y


def split(name: str, ordered: bool) -> Split | None:
    tables = manifest()
    found = table(tables[name]) if name in tables else read(name)
    if found is None or not 0 < found[1].mean() < 1:
        return None
    X, y = found
    X = X if name in tables else X.toarray()
    if len(y) > MOST:
        chosen = np.random.RandomState(3).choice(len(y), MOST, replace=False)
        chosen = np.sort(chosen)
        X, y = (X.iloc[chosen] if name in tables else X[chosen]), y[chosen]
    options: dict[str, Any] = {"stratify": y, "random_state": 3}
    if ordered:
        options = {"shuffle": False}
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, **options)
    both = 0 < y.mean() < 1 and 0 < y_test.mean() < 1
    return Split(X, y, X_test, y_test) if len(y) > 0.7 * LEAST and both else None


def stream(nonlinear: bool) -> Callable[[Split], np.ndarray]:
    def run(data: Split) -> np.ndarray:
        model = AUCStream(nonlinear=nonlinear, shuffle=False, random_state=0)
        return model.fit(data.X, data.y).decision_function(data.X_test)

    return run


def coded(data: Split) -> tuple[Any, Any]:
    """Return the columns with categories as LightGBM takes them."""
    if not hasattr(data.X, "columns"):
        return data.X, data.X_test
    train, test = data.X.copy(), data.X_test.copy()
    for name in train:
        if not pandas.api.types.is_numeric_dtype(train[name]):
            kind = pandas.CategoricalDtype(train[name].dropna().unique())
            train[name] = train[name].astype(kind)
            test[name] = test[name].astype(kind)
    return train, test


def boosting(data: Split) -> np.ndarray:
    """Return scores of LightGBM, stopped on a validation fold."""
    import lightgbm

    X, X_test = coded(data)
    train, held = train_test_split(
        np.arange(len(data.y)), test_size=0.15, stratify=data.y, random_state=0
    )
    take = (lambda rows: X.iloc[rows]) if hasattr(X, "iloc") else X.__getitem__
    model = lightgbm.LGBMClassifier(
        n_estimators=2000,
        learning_rate=0.05,
        verbose=-1,
        n_jobs=1,
        random_state=0,
    ).fit(
        take(train),
        data.y[train],
        eval_set=[(take(held), data.y[held])],
        eval_metric="auc",
        callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )
    return model.predict_proba(X_test)[:, 1]


def river(data: Split) -> np.ndarray:
    """Return scores of River's adaptive random forest."""
    from river import forest

    model = forest.ARFClassifier(n_models=10, seed=0)
    for row, label in zip(_records(data.X), data.y.tolist(), strict=True):
        model.learn_one(row, label)
    return np.array(
        [model.predict_proba_one(row).get(True, 0.0) for row in _records(data.X_test)]
    )


def _records(X: Any) -> Iterator[dict[Any, Any]]:
    if hasattr(X, "columns"):
        return ({k: v for k, v in r.items() if v == v} for r in X.to_dict("records"))
    return (dict(enumerate(row)) for row in X.tolist())


LEARNERS: dict[str, Callable[[Split], np.ndarray]] = {
    "LightGBM, all rows": boosting,
    "AUCStream": stream(True),
    "AUCStream, linear": stream(False),
}


def names_of(given: list[str]) -> list[str]:
    tables = {n: t for n, t in manifest().items() if int(t["rows"]) > LEAST}
    use = {
        kind: [n for n in tables if tables[n]["use"] == kind]
        for kind in ("choose", "report")
    }
    groups = {"choose": [*CHOSEN, *use["choose"]], "report": [*SETS, *use["report"]]}
    return [name for group in given or groups for name in groups.get(group, [group])]


def run(path: Path, given: list[str], ordered: bool = False, few: bool = False) -> None:
    learners = dict(LEARNERS)
    if few:
        learners = {"AUCStream": stream(True), "River, forest": river}
    done = {(line["set"], line["learner"]) for line in lines_of(path)}
    with path.open("a") as file:
        for name in names_of(given):
            if all((name, learner) in done for learner in learners):
                continue
            data = split(name, ordered)
            if data is None:
                continue
            if few:
                data = Split(data.X[:3000], data.y[:3000], *data[2:])
                data = data._replace(
                    X_test=data.X_test[:3000], y_test=data.y_test[:3000]
                )
            for learner, scores in learners.items():
                if (name, learner) in done:
                    continue
                start = process_time()
                try:
                    area = auc(data.y_test, scores(data))
                except (ImportError, ValueError) as error:
                    print(f"{name}, {learner}: {error}", file=sys.stderr)
                    continue
                micros = 1e6 * (process_time() - start) / len(data.y)
                line = {"set": name, "learner": learner, "rows": len(data.y)}
                line |= {"auc": round(area, 5), "micros": round(micros, 1)}
                file.write(json.dumps(line) + "\n")
                file.flush()


def report(path: Path) -> None:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for line in lines_of(path):
        found.setdefault(line["set"], {})[line["learner"]] = line
    learners = list(dict.fromkeys(k for lines in found.values() for k in lines))
    found = {
        name: lines for name, lines in found.items() if len(lines) == len(learners)
    }
    print("| set | training rows | " + " | ".join(learners) + " |")
    print("|---" * (2 + len(learners)) + "|")
    for name, lines in found.items():
        cells = [f"{lines[k]['auc']:.4f}" for k in learners]
        rows = lines[learners[0]]["rows"]
        print(f"| {name} | {rows:,} | " + " | ".join(cells) + " |")
    areas = {
        k: np.array([lines[k]["auc"] for lines in found.values()]) for k in learners
    }
    for k in learners:
        micros = np.median([lines[k]["micros"] for lines in found.values()])
        gap = areas["AUCStream"] - areas[k]
        print(
            f"{k}: mean {areas[k].mean():.4f}; AUCStream minus it {gap.mean():+.4f} "
            f"(median {np.median(gap):+.4f}), higher on "
            f"{(gap > 0).sum()} of {len(gap)}; "
            f"median {micros:.0f} µs CPU per row"
        )


def speed(path: Path, rows: int = 1_000_000) -> None:
    import resource

    for nonlinear in (False, True):
        rng, model = np.random.default_rng(0), AUCStream(random_state=0)
        model.set_params(nonlinear=nonlinear)
        w, wall, cpu = rng.normal(size=30), 0.0, 0.0
        for part in range(rows // 20_000 + 1):
            X = rng.normal(size=(20_000, 30))
            odds = 0.3 * X @ w + np.sin(2 * X[:, 0]) * X[:, 1] - 2.0
            y = rng.random(20_000) < 1.0 / (1.0 + np.exp(-odds))
            start = perf_counter(), process_time()
            model.partial_fit(X, y, classes=[False, True])
            if part:  # the first one compiles
                wall += perf_counter() - start[0]
                cpu += process_time() - start[1]
        model.save(path)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            f"nonlinear={nonlinear}: {1e6 * wall / rows:.1f} µs per row, CPU "
            f"{1e6 * cpu / rows:.1f} µs; {memory} MB; file "
            f"{path.stat().st_size / 1e6:.1f} MB; refits {model.refits_[0]}"
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, file_name, *rest = sys.argv[1:]
    jobs: dict[str, Callable[[], None]] = {
        "run": lambda: run(Path(file_name), rest),
        "order": lambda: run(Path(file_name), rest, ordered=True),
        "forest": lambda: run(Path(file_name), rest, few=True),
        "report": lambda: report(Path(file_name)),
        "speed": lambda: speed(Path(file_name), *map(int, rest)),
    }
    jobs[what]()
