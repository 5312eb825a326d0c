"""Tables: AUCClassifier and other classifiers on the same rows.

All data sets of $AUCMAX_DATA or ../shared/data with at least 500 rows; at most 5000
rows of each, 60 % for training and 40 % for testing, five splits. Raw features, nothing
tuned on test rows. In sets with more than two classes, the rarer half of the labels is
positive.

``python benchmarks/tables.py run FILE [--only "name;name"] [set …]`` adds a JSON line
to FILE for each set, split and model. Results that are in FILE are not computed again,
so it can be stopped and resumed. Libraries that are not installed are skipped.

``… autogluon FILE [set …]`` adds AutoGluon with its defaults and with 60 s, and
AUCClassifier with 60 s; the first split of some sets. On an idle machine.

``… report FILE [PICTURE]`` prints the tables of docs/tables.md, and draws the mean
ranks of the models.

``… speed`` times AUCClassifier on 10 000 rows of 30 features, and ``… size [lightgbm |
stopped]`` on a million rows, with the peak of memory, or LightGBM with 200 rounds or
stopped on 15 % of the rows. On an idle machine.
"""

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.stats import rankdata, t
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import (
    ParameterSampler,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import AUCClassifier
from aucmax.metrics import auc
from bench import lines_of, read
from streams import SETS

MOST, FEWEST, SPLITS = 5000, 500, 5
WIDE = 2000  # features; rows with more stay sparse
AUTOGLUON = (
    *("australian", "german", "diabetes", "svmguide3", "vehicle", "creditcard_sample"),
    *("magic04", "phoneme", "spambase", "higgs_sample", "ijcnn1", "letter", "a9a"),
)

Model = Callable[[], Any]


def lightgbm(**settings: Any) -> Any:
    from lightgbm import LGBMClassifier

    given = {"n_estimators": 200, "learning_rate": 0.05, **settings}
    return LGBMClassifier(**given, verbose=-1, random_state=0, n_jobs=1)


class Searched:
    """LightGBM, the best of twenty random settings by three folds."""

    space: ClassVar[dict[str, Any]] = {
        "n_estimators": [100, 200, 400],
        "learning_rate": [0.02, 0.05, 0.1],
        "num_leaves": [7, 15, 31, 63],
        "min_child_samples": [5, 20, 50],
        "colsample_bytree": [0.4, 0.7, 1.0],
        "subsample": [0.7, 1.0],
        "subsample_freq": [1],
        "reg_lambda": [0.0, 1.0, 10.0],
    }

    def fit(self, X: Any, y: np.ndarray) -> Any:
        """Return the best one, fitted to all rows."""
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        trials = list(ParameterSampler(self.space, 20, random_state=0))
        scores = [
            cross_val_score(lightgbm(**s), X, y, cv=folds, scoring="roc_auc").mean()
            for s in trials
        ]
        return lightgbm(**trials[int(np.argmax(scores))]).fit(X, y)


def xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(
        n_estimators=200, learning_rate=0.05, random_state=0, n_jobs=1, verbosity=0
    )


def catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=500,
        random_seed=0,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )


def balanced() -> Any:
    return make_pipeline(
        StandardScaler(with_mean=True),
        LogisticRegressionCV(
            Cs=10, cv=3, scoring="roc_auc", class_weight="balanced", max_iter=2000
        ),
    )


MODELS: dict[str, Model] = {
    "AUCClassifier": partial(AUCClassifier, random_state=0),
    "LightGBM": lightgbm,
    "LightGBM, searched": Searched,
    "XGBoost": xgboost,
    "CatBoost": catboost,
    "HistGradientBoosting": partial(HistGradientBoostingClassifier, random_state=0),
    "random forest": partial(RandomForestClassifier, 300, random_state=0),
    "balanced logistic regression": balanced,
}


def split(name: str, seed: int) -> Any:
    """Return X, X_test, y, y_test; None if the set is missing or too small."""
    found = read(name)
    if found is None or len(found[1]) < FEWEST:
        return None
    X, y = found
    if len(y) > MOST:
        some = np.random.RandomState(seed).choice(len(y), MOST, replace=False)
        X, y = X[some], y[some]
    if y.sum() < 10:
        return None
    X = X.toarray() if X.shape[1] <= WIDE else sparse.csr_array(X)
    return train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)


def scores_of(model: Any, X: Any) -> np.ndarray:
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X))[:, 1]


def note(path: Path, name: str, seed: int, label: str, model: Any, data: Any) -> None:
    X, X_test, y, y_test = data
    start = perf_counter()
    line: dict[str, Any] = {"set": name, "split": seed, "model": label}
    try:
        fitted = model.fit(X, y)
        line["seconds"] = round(perf_counter() - start, 2)
        line["auc"] = float(auc(y_test, scores_of(fitted, X_test)))
        if isinstance(fitted, AUCClassifier):
            line["said"] = list(fitted.auc_)
            with tempfile.TemporaryDirectory() as folder:
                fitted.save(Path(folder) / "m")
                line["bytes"] = (Path(folder) / "m").stat().st_size
    except Exception as error:  # keep the results of the others
        line["error"] = str(error)[:200]
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(line, flush=True)


def run(path: Path, names: list[str], only: list[str]) -> None:
    done = {(one["set"], one["split"], one["model"]) for one in lines_of(path)}
    for seed in range(SPLITS):
        for name in names or SETS:
            left = [m for m in only or MODELS if (name, seed, m) not in done]
            data = split(name, seed) if left else None
            if data is None:
                continue
            for label in left:
                try:
                    model = MODELS[label]()
                except ImportError:
                    continue
                if sparse.issparse(data[0]) and "logistic" in label:
                    model.steps[0][1].set_params(with_mean=False)
                note(path, name, seed, label, model, data)


def autogluon(path: Path, names: list[str]) -> None:
    """Compare with AutoGluon, by default and within 60 s."""
    from autogluon.tabular import TabularPredictor
    from pandas import DataFrame

    class Predictor:
        def __init__(self, preset: str, limit: int | None) -> None:
            self.preset, self.limit = preset, limit

        def fit(self, X: Any, y: np.ndarray) -> Any:
            folder = tempfile.mkdtemp()
            frame = DataFrame(X).assign(y=y.astype(int))
            self.model = TabularPredictor(
                "y", eval_metric="roc_auc", path=folder, verbosity=0
            ).fit(frame, presets=self.preset, time_limit=self.limit, num_cpus=2)
            return self

        def predict_proba(self, X: Any) -> np.ndarray:
            return self.model.predict_proba(DataFrame(X)).to_numpy()

    models: dict[str, Model] = {
        "AutoGluon, medium": lambda: Predictor("medium_quality", None),
        "AutoGluon, best, 60 s": lambda: Predictor("best_quality", 60),
        "AUCClassifier, 60 s": lambda: AUCClassifier(time_budget=60, random_state=0),
    }
    done = {(one["set"], one["model"]) for one in lines_of(path)}
    for name in names or AUTOGLUON:
        data = split(name, 0)
        for label, model in models.items():
            if data is not None and (name, label) not in done:
                note(path, name, 0, label, model(), data)


def areas_of(lines: list[dict[str, Any]], label: str) -> dict[str, dict[int, float]]:
    """Return the AUC of each split, by set."""
    found: dict[str, dict[int, float]] = {}
    for one in lines:
        if one["model"] == label and "auc" in one:
            found.setdefault(one["set"], {})[one["split"]] = one["auc"]
    return found


def corrected(ahead: np.ndarray) -> float:
    """Return the p-value of Nadeau and Bengio's corrected t-test of splits."""
    n = len(ahead)
    deviation = ahead.std(ddof=1) if n > 1 else 0.0
    if deviation == 0.0:
        return 1.0
    statistic = ahead.mean() / (deviation * np.sqrt(1.0 / n + 0.4 / 0.6))
    return float(2.0 * t.sf(abs(statistic), n - 1))


def report(path: Path, picture: str | None) -> None:
    lines = lines_of(path)
    areas = {one["model"]: areas_of(lines, one["model"]) for one in lines}
    ours = areas.pop("AUCClassifier")
    titles = ("AUCClassifier against", "sets (splits)", "mean", "median")
    titles += ("> 0.001 above", "within", "> 0.001 below", "> 0.002 below", "worst")
    titles += ("won, lost (p < 0.05)", "seconds")
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|")
    for label, theirs in sorted(areas.items()):
        both = {
            name: sorted(ours[name].keys() & its.keys())
            for name, its in theirs.items()
            if name in ours and ours[name].keys() & its.keys()
        }
        if not both:
            continue
        ahead = {
            name: np.array([ours[name][k] - theirs[name][k] for k in splits])
            for name, splits in both.items()
        }
        d = np.array([some.mean() for some in ahead.values()])
        sure = [corrected(some) < 0.05 for some in ahead.values()]
        won = sum(one and x > 0 for one, x in zip(sure, d, strict=True))
        lost = sum(one and x < 0 for one, x in zip(sure, d, strict=True))
        took = [o["seconds"] for o in lines if o["model"] == label and "auc" in o]
        few = min(map(len, both.values())), max(map(len, both.values()))
        splits = f"{few[0]} to {few[1]}" if few[0] < few[1] else few[0]
        print(
            f"| {label} | {len(both)} ({splits}) | {d.mean():+.4f} | "
            f"{np.median(d):+.4f} | {np.sum(d > 0.001)} | {np.sum(abs(d) <= 0.001)} | "
            f"{np.sum(d < -0.001)} | {np.sum(d < -0.002)} | "
            f"{d.min():+.4f} {list(both)[int(np.argmin(d))]} | {won}, {lost} | "
            f"{np.median(took):.1f} |"
        )
    mine = [o for o in lines if o["model"] == "AUCClassifier" and "auc" in o]
    print(
        f"\nours: {np.median([o['seconds'] for o in mine]):.1f} s median, "
        f"{max(o['seconds'] for o in mine):.1f} s at most, "
        f"{max(o['bytes'] for o in mine) / 1e6:.1f} MB at most"
    )
    # The test AUC has an error of its own, from two thirds as many rows.
    off = [(o["said"][0] - o["auc"], o["said"][3] * np.sqrt(2.5)) for o in mine]
    z = np.array([difference / error for difference, error in off if error])
    print(
        f"auc_ against test AUC, in units of both errors: above +1.96 in "
        f"{np.mean(z > 1.96):.1%} of the runs, below -1.96 in "
        f"{np.mean(z < -1.96):.1%}; median of the difference "
        f"{np.median([one for one, _ in off]):+.4f}"
    )
    every = {"AUCClassifier": ours, **areas}
    names = sorted(ours)
    means = {
        label: {name: float(np.mean([*its.values()])) for name, its in found.items()}
        for label, found in every.items()
    }
    shown = [
        m
        for m, its in every.items()
        if all(len(its.get(n, ())) == len(ours[n]) for n in names)
    ]
    print("\n| set | " + " | ".join(shown) + " |\n" + "|---" * (len(shown) + 1) + "|")
    for name in names:
        print(
            f"| {name} | " + " | ".join(f"{means[m][name]:.4f}" for m in shown) + " |"
        )
    if picture:
        # Sets and splits that all models have.
        usual = [m for m, its in every.items() if len(its) > len(names) - 8]
        cells = set.intersection(
            *({(n, k) for n, its in every[m].items() for k in its} for m in usual)
        )
        common = sorted({name for name, _ in cells})
        table = [
            [np.mean([every[m][n][k] for o, k in cells if o == n]) for m in usual]
            for n in common
        ]
        draw(np.array(table), usual, picture)


def draw(table: np.ndarray, labels: list[str], picture: str) -> None:
    """Draw mean ranks, with Nemenyi's critical difference (Demšar 2006)."""
    import matplotlib.pyplot as plt
    from scipy.stats import studentized_range

    n, k = table.shape
    ranks = np.mean([rankdata(-np.round(row, 4)) for row in table], axis=0)
    q = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2.0)
    critical = q * np.sqrt(k * (k + 1) / (6.0 * n))
    order = np.argsort(ranks)
    figure, axes = plt.subplots(figsize=(8, 0.42 * k + 1.3))
    y = np.arange(k)
    colours = ["#d1495b" if labels[j] == "AUCClassifier" else "#30638e" for j in order]
    axes.hlines(y, ranks[order], ranks[order] + critical, color="#bbbbbb", lw=2)
    axes.scatter(ranks[order], y, color=colours, zorder=3, s=46)
    axes.set_yticks(y, [labels[j] for j in order])
    axes.invert_yaxis()
    axes.set_xlabel(
        f"mean rank over {n} data sets (1 is best); bars: critical difference, 5 %"
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    figure.tight_layout()
    figure.savefig(picture, dpi=130)


def speed() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_000, 30))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(10_000) > 1.5
    AUCClassifier(random_state=0).fit(X[:500], y[:500])  # compiles
    start = perf_counter()
    model = AUCClassifier(random_state=0).fit(X, y)
    print(f"10 000 x 30: {perf_counter() - start:.1f} s")
    for line in model.leaderboard_:
        print(f"  {line.member}: {line.seconds:.1f} s, AUC {line.auc:.4f}")
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "m")
        print(f"  {(Path(folder) / 'm').stat().st_size / 1e6:.1f} MB")
    start = perf_counter()
    model.decision_function(X)
    print(f"  {perf_counter() - start:.2f} s to score them")
    for budget in (2.0, 10.0, 30.0):
        start = perf_counter()
        model = AUCClassifier(time_budget=budget, random_state=0).fit(X, y)
        took = perf_counter() - start
        print(f"  budget {budget:.0f} s: {took:.1f} s, AUC {model.auc_.value:.4f}")


def size(name: str = "ours") -> None:
    """Fit one model to a million rows; print seconds, AUC and memory."""
    import lightgbm

    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_200_000, 30))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3.0 * X[:, 3])
    y = signal + 3.0 * rng.standard_normal(len(X)) > 2.0
    X, X_test, y, y_test = X[:1_000_000], X[1_000_000:], y[:1_000_000], y[1_000_000:]
    before = getrusage(RUSAGE_SELF).ru_maxrss / 1e6
    start = perf_counter()
    if name == "ours":
        model = AUCClassifier(random_state=0).fit(X, y)
    elif name == "lightgbm":
        model = lightgbm.LGBMClassifier(n_estimators=200, verbose=-1).fit(X, y)
    else:
        stop = lightgbm.early_stopping(50, verbose=False)
        model = lightgbm.LGBMClassifier(n_estimators=2000, verbose=-1).fit(
            X[:850_000],
            y[:850_000],
            eval_set=[(X[850_000:], y[850_000:])],
            eval_metric="auc",
            callbacks=[stop],
        )
    seconds = perf_counter() - start
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 1e6
    score = model.predict_proba(X_test)[:, 1]
    print(
        f"{name}: {seconds:.0f} s, AUC {auc(y_test, score):.4f}; memory at most "
        f"{memory:.2f} GB, {before:.2f} GB before; the rows take {X.nbytes / 1e9:.2f}"
    )


def main() -> None:
    warnings.simplefilter("ignore")
    what, *rest = sys.argv[1:] or ["help"]
    if what == "speed":
        speed()
    elif what == "size":
        size(*rest)
    elif what in ("run", "autogluon", "report") and rest:
        path, *names = rest
        only: list[str] = []
        if "--only" in names:
            at = names.index("--only")
            only = names[at + 1].split(";")
            names = names[:at] + names[at + 2 :]
        if what == "run":
            run(Path(path), names, only)
        elif what == "autogluon":
            autogluon(Path(path), names)
        else:
            report(Path(path), names[0] if names else None)
    else:
        print(__doc__)


if __name__ == "__main__":
    main()
