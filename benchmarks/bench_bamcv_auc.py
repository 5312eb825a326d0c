"""Find out where BAMCV has a lower AUC than balanced LogisticRegressionCV.

``python benchmarks/bench_bamcv_auc.py --json FILE``: five times two halves of every
data set of less than 100 000 rows, both with their defaults but for the balance of
classes, the score and three folds of logistic regression. This has standardised
features; BAMCV is given raw ones and, with ``--scaled``, standardised ones once more.
Of data sets with several classes the lower half of the labels is one class. Sets with
more than 200 dense features are cut to 4000 rows, others to ``--rows``, if given. "p"
is that of Alpaydin's combined 5x2 F test, so a set is lost if p < 0.05 and the
difference is below zero. Differences are in thousandths. JSON is written after each
set, and sets that are in it are not run again. BAMCV was developed on splits of other
seeds, 0 and 101, of some of these sets. Data are read from $AUCMAX_DATA or
../shared/data.
"""

import argparse
import json
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from aucmax import BAMCV
from aucmax.metrics import auc
from bench import Row, shared

SETS = (
    "australian",
    "breastw",
    "diabetes",
    "fourclass",
    "german",
    "glass",
    "heart",
    "ionosphere",
    "arrhythmia",
    "vehicle",
    "splice.train",
    "svmguide1.train",
    "svmguide3.train",
    "svmguide4.train",
    "thyroid",
    "phoneme",
    "page-blocks",
    "spambase",
    "higgs_sample.train",
    "mushrooms",
    "phishing",
    "magic04",
    "creditcard_sample",
    "letter.train",
    "a9a.train",
    "ijcnn1.train",
    "aloi_ad",
    "shuttle",
    "cod-rna",
    "smtp",
    "connect-4",
    "usps.train",
    "mnist.train",
    "farm-ads",
    "reuters_money.train",
    "sector.train",
    "news20",
)


FEWEST = 20  # rows of a class: if no more are left, all rows stay


def data(name: str, most: int) -> tuple[Any, np.ndarray] | None:
    """Return rows, dense unless there are thousands of features, and two classes."""
    found = shared(name, None)
    if found is None:
        return None
    X, label = found
    kinds = np.unique(label)
    y = (label >= kinds[len(kinds) // 2]).astype(int)
    wide = X.shape[1] > 2000
    most = min(4000, most) if X.shape[1] > 200 and not wide else most
    if most < len(y) and most * min(y.mean(), 1.0 - y.mean()) > FEWEST:
        X, _, y, _ = train_test_split(X, y, train_size=most, random_state=0, stratify=y)
    return X if wide else X.toarray(), y


def combined(difference: np.ndarray) -> float:
    """Return p of the 5x2 F test of differences, shape (5, 2)."""
    mean = difference.mean(axis=1, keepdims=True)
    below = 2.0 * float(((difference - mean) ** 2).sum())
    above = float((difference**2).sum())
    n = difference.size
    if above == 0.0:
        return 1.0
    return float(stats.f.sf(above / below, n, n // 2)) if below else 0.0


def compare(
    X: Any, y: np.ndarray, keys: list[str], bam: dict[str, Any], seed: int
) -> Row:
    """Return AUCs over the halves, differences and what was chosen."""
    areas: dict[str, list[float]] = {key: [] for key in ["LRCV", *keys]}
    seconds = dict.fromkeys(areas, 0.0)
    chosen: dict[str, list[Any]] = {key: [] for key in areas}
    for train, test in RepeatedStratifiedKFold(
        n_splits=2, n_repeats=5, random_state=seed
    ).split(X, y):
        scaler = StandardScaler(with_mean=not sparse.issparse(X)).fit(X[train])
        for key in areas:
            A, B = X[train], X[test]
            if key != "raw":
                A, B = scaler.transform(A), scaler.transform(B)
            model: Any = BAMCV(**bam)
            if key == "LRCV":
                model = LogisticRegressionCV(
                    Cs=10,
                    cv=3,
                    class_weight="balanced",
                    scoring="roc_auc",
                    max_iter=1000,
                )
            start = perf_counter()
            model.fit(A, y[train])
            seconds[key] += perf_counter() - start
            areas[key].append(float(auc(y[test], model.decision_function(B))))
            if key == "LRCV":
                chosen[key].append(float(model.C_[0]))
            else:
                place = int(np.argmin(abs(model.l2s_ - model.l2_)))
                chosen[key].append((model.loss_, place))
    base = np.array(areas["LRCV"])
    row: Row = {"rows": len(y), "features": X.shape[1], "LRCV": float(base.mean())}
    for key in keys:
        difference = np.array(areas[key]) - base
        row[key] = 1e3 * float(difference.mean())
        row[f"p {key}"] = combined(difference.reshape(5, 2))
    row |= {"seconds": seconds, "chosen": chosen, "areas": areas}
    return row


def main() -> None:
    """Run the sets that are not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=Path("bamcv.json"))
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--rows", type=int, default=100_000, help="at most so many")
    parser.add_argument("--seed", type=int, default=5, help="of the splits")
    parser.add_argument("--scaled", action="store_true", help="BAMCV with both")
    parser.add_argument("--bam", type=json.loads, default={}, help="parameters, JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    keys = ["raw", "scaled"] if options.scaled else ["raw"]
    rows: list[Row] = []
    if options.json.exists():
        rows = json.loads(options.json.read_text())
    for name in options.sets:
        if name in {row["data"] for row in rows}:
            continue
        found = data(name, options.rows)
        if found is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        rows.append({"data": name} | compare(*found, keys, options.bam, options.seed))
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
        show(rows[-1], keys)
    for key in keys:
        lost = [r["data"] for r in rows if r[key] < 0 and r[f"p {key}"] < 0.05]
        won = [r["data"] for r in rows if r[key] > 0 and r[f"p {key}"] < 0.05]
        mean = np.mean([r[key] for r in rows])
        print(f"{key}: mean {mean:+.2f} over {len(rows)} sets; lost {lost}; won {won}")


def show(row: Row, keys: list[str]) -> None:
    """Print a line."""
    found = " ".join(f"{key} {row[key]:+.2f} (p {row[f'p {key}']:.3f})" for key in keys)
    time = " ".join(f"{value:.1f}" for value in row["seconds"].values())
    size = f"{row['rows']} x {row['features']}"
    print(f"{row['data']:20} {size:14} LRCV {row['LRCV']:.4f} {found}  s {time}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
