"""Real tables, as people publish them: AUCClassifier and boosting libraries.

Tables of $AUCMAX_TABLES or ../shared/tables, with a MANIFEST.csv that says for each one
which column is the label and whether settings may be chosen on it (``choose``) or only
results reported (``report``). At most 10,000 rows are for training (60 % of a smaller
table), at most 20,000 for testing. AUCClassifier gets the data frame as it is; for the
others, columns of text, and numbers that the manifest calls codes, are categories.

``python benchmarks/real_tables.py run FILE choose|report [--splits 3] [--part 0/2]
[table …]`` adds a JSON line to FILE for each table, split and model; results that are
in FILE are not computed again. ``--part 0/2`` takes every other table, for two
processes. Libraries that are not installed are skipped. Each model has one thread.
AutoGluon gets as long as AUCClassifier took, or $AUTOGLUON_SECONDS.

``… report FILE`` prints the differences.
"""

import argparse
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, train_test_split

from aucmax import AUCClassifier
from aucmax.metrics import auc
from bench import lines_of

MOST_TRAIN, MOST_TEST = 10_000, 20_000
OURS = "AUCClassifier"
_FOLDER = Path(__file__).parents[2] / "shared" / "tables"
SECONDS = float(os.environ.get("AUTOGLUON_SECONDS", 0))
FOLDER = Path(os.environ.get("AUCMAX_TABLES", _FOLDER))

Scores = np.ndarray
Model = Callable[[pd.DataFrame, np.ndarray, pd.DataFrame, list[str]], Scores]


def labelled_table(about: Any) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns and the labels of a table."""
    markers = [marker for marker in about.missing_markers.split("|") if marker]
    frame = pd.read_csv(
        FOLDER / about.file,
        encoding=about.encoding,
        na_values=markers or None,
        low_memory=False,
    )
    frame = frame[frame[about.label].notna()].reset_index(drop=True)
    label = frame[about.label]
    if about.positive_rule.startswith("greater than"):
        y = (label > float(about.positive_rule.split()[-1])).to_numpy()
    else:
        text = label.astype(str).str.strip().str.lower()
        y = (text == about.positive.lower()).to_numpy()
        if not y.any():
            y = (pd.to_numeric(label) == float(about.positive)).to_numpy()
        if about.positive_rule.startswith("every value except"):
            y = ~y
    dropped = [name for name in about.drop_.split("|") if name in frame]
    return frame.drop(columns=[about.label, *dropped]), y


def load(about: Any, seed: int) -> Any:
    """Return X, X_test, y, y_test."""
    frame, y = labelled_table(about)
    n = min(MOST_TRAIN, int(0.6 * len(y)))
    rest = min(MOST_TEST, len(y) - n)
    return train_test_split(
        frame, y, train_size=n, test_size=rest, stratify=y, random_state=seed
    )


def ours(X: pd.DataFrame, y: np.ndarray, test: pd.DataFrame, _: list[str]) -> Any:
    model = AUCClassifier(random_state=0, n_jobs=1).fit(X, y)
    return model, lambda: model.decision_function(test)


def words(column: pd.Series) -> pd.Series:
    """Return a column as text, in which a missing value is a word."""
    return column.astype(object).where(column.notna(), "missing").astype(str)


def as_categories(
    X: pd.DataFrame, test: pd.DataFrame, columns: list[str], most: int | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both frames with categories of pandas, or codes of those with many."""
    X, test = X.copy(), test.copy()
    for name in columns:
        known = pd.Index(words(X[name]).unique())
        for frame in (X, test):
            column = pd.Categorical(words(frame[name]), known)
            many = most is not None and len(known) > most
            frame[name] = column.codes.astype(float) if many else column
    for frame in (X, test):
        frame.columns = [f"x{k}" for k in range(frame.shape[1])]
    return X, test


def lightgbm(X: Any, y: Any, test: Any, columns: list[str]) -> Any:
    from lightgbm import LGBMClassifier

    X, test = as_categories(X, test, columns)
    model = LGBMClassifier(n_estimators=200, verbose=-1, n_jobs=1).fit(X, y)
    return model, lambda: model.predict_proba(test)[:, 1]


def stopped(X: Any, y: Any, test: Any, columns: list[str]) -> Any:
    """Fit LightGBM to five folds, stopped by AUC on the one that is left out."""
    from lightgbm import LGBMClassifier, early_stopping

    X, test = as_categories(X, test, columns, most=50)
    models = []
    for k, (a, b) in enumerate(
        StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    ):
        model = LGBMClassifier(
            n_estimators=2000,
            learning_rate=0.03,
            colsample_bytree=0.5,
            min_child_samples=10,
            subsample=0.8,
            subsample_freq=1,
            cat_smooth=20,
            max_cat_to_onehot=8,
            verbose=-1,
            n_jobs=1,
            random_state=k,
        )
        watched = [(X.iloc[b], y[b])]
        stop = early_stopping(80, verbose=False)
        model.fit(
            X.iloc[a], y[a], eval_set=watched, eval_metric="auc", callbacks=[stop]
        )
        models.append(model)

    def score() -> Scores:
        return np.mean([m.predict_proba(test, raw_score=True) for m in models], axis=0)

    return models, score


def catboost(X: Any, y: Any, test: Any, columns: list[str]) -> Any:
    from catboost import CatBoostClassifier

    X, test = X.copy(), test.copy()
    for name in columns:
        X[name], test[name] = words(X[name]), words(test[name])
    model = CatBoostClassifier(
        cat_features=columns, verbose=0, thread_count=1, allow_writing_files=False
    ).fit(X, y)
    return model, lambda: model.predict(test, prediction_type="RawFormulaVal")


def xgboost(X: Any, y: Any, test: Any, columns: list[str]) -> Any:
    from xgboost import XGBClassifier

    X, test = as_categories(X, test, columns)
    model = XGBClassifier(n_jobs=1, enable_categorical=True).fit(X, y)
    return model, lambda: model.predict_proba(test)[:, 1]


def stacking(X: Any, y: Any, test: Any, columns: list[str]) -> Any:
    """Fit scikit-learn's stack of boosting, a forest and a linear model."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        RandomForestClassifier,
        StackingClassifier,
    )
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, test = X.copy(), test.copy()
    for name in columns:
        X[name], test[name] = words(X[name]), words(test[name])
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=10, sparse_output=False
    )
    numbers = [name for name in X if name not in columns]
    encoder = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            ("categories", one_hot, columns),
        ]
    )
    stack = StackingClassifier(
        [
            ("boosting", HistGradientBoostingClassifier(early_stopping=True)),
            ("forest", RandomForestClassifier(300, min_samples_leaf=3)),
            ("linear", LogisticRegression(max_iter=1000)),
        ]
    )
    model = make_pipeline(encoder, stack).fit(X, y)
    return model, lambda: model.predict_proba(test)[:, 1]


def autogluon(
    X: Any, y: Any, test: Any, columns: list[str], seconds: float | None = None
) -> Any:
    """Fit AutoGluon's best_quality in the seconds that AUCClassifier took."""
    from autogluon.tabular import TabularPredictor

    X, test = X.copy(), test.copy()
    for name in columns:
        X[name], test[name] = words(X[name]), words(test[name])
    with tempfile.TemporaryDirectory() as folder:
        model = TabularPredictor(
            "label of the row",
            problem_type="binary",
            eval_metric="roc_auc",
            path=folder,
            verbosity=0,
        ).fit(
            X.assign(**{"label of the row": y}),
            presets="best_quality",
            time_limit=seconds,
            num_cpus=1,
        )
        scores = model.predict_proba(test)[True].to_numpy()
    return model, lambda: scores


MODELS: dict[str, Any] = {
    OURS: ours,
    "LightGBM, 200 rounds": lightgbm,
    "LightGBM, stopped on five folds": stopped,
    "CatBoost": catboost,
    "XGBoost": xgboost,
    "StackingClassifier": stacking,
    "AutoGluon, equal time": autogluon,
}


def run(path: Path, use: str, splits: int, part: str, names: list[str]) -> None:
    manifest = pd.read_csv(FOLDER / "MANIFEST.csv", keep_default_na=False, dtype=str)
    manifest = manifest.rename(columns={"drop": "drop_"})
    chosen = manifest[manifest.use == use]
    if names:
        chosen = chosen[chosen.name.isin(names)]
    place, parts = map(int, part.split("/"))
    lines = lines_of(path)
    done = {(one["set"], one["split"], one["model"]) for one in lines}
    took = {
        (one["set"], one["split"]): one["seconds"]
        for one in lines
        if one["model"] == OURS and "seconds" in one
    }
    for seed in range(splits):
        for about in list(chosen.itertuples())[place::parts]:
            name = about[1 + list(manifest.columns).index("name")]
            left = [m for m in MODELS if (name, seed, m) not in done]
            if not left:
                continue
            X, test, y, y_test = load(about, seed)
            coded = about.integer_coded_categories.split("|")
            columns = [
                c for c in X if not pd.api.types.is_numeric_dtype(X[c]) or c in coded
            ]
            for label in left:
                line: dict[str, Any] = {"set": name, "split": seed, "model": label}
                line["rows"] = len(y)
                fit = MODELS[label]
                if fit is autogluon:
                    fit = partial(fit, seconds=SECONDS or took.get((name, seed)))
                start, cpu = perf_counter(), process_time()
                try:
                    model, score = fit(X, y, test, columns)
                    line["seconds"] = round(perf_counter() - start, 2)
                    line["cpu"] = round(process_time() - cpu, 2)
                    if label == OURS:
                        took[name, seed] = line["seconds"]
                    start = perf_counter()
                    line["auc"] = float(auc(y_test, score()))
                    line["microseconds"] = 1e6 * (perf_counter() - start) / len(y_test)
                    if label == OURS:
                        line["said"] = list(model.auc_)
                        with tempfile.TemporaryDirectory() as folder:
                            model.save(Path(folder) / "m")
                            line["bytes"] = (Path(folder) / "m").stat().st_size
                except ImportError:
                    continue
                except Exception as error:  # keep the results of the others
                    line["error"] = str(error)[:300]
                with path.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


def report(path: Path) -> None:
    frame = pd.DataFrame(lines_of(path))
    if "error" in frame:
        print(frame[frame.error.notna()][["set", "split", "model", "error"]])
        frame = frame[frame.error.isna()]
    areas = frame.pivot_table(index="set", columns="model", values="auc")
    times = frame.pivot_table(index="set", columns="model", values="cpu")
    print(
        "| AUCClassifier minus | tables | mean (standard error) | median "
        "| > 0.003 above | > 0.003 below | worst | CPU s, median |\n" + "|---" * 8 + "|"
    )
    for label in areas.columns.drop(OURS):
        d = (areas[OURS] - areas[label]).dropna()
        error = d.std() / np.sqrt(len(d))
        print(
            f"| {label} | {len(d)} | {d.mean():+.4f} ({error:.4f}) "
            f"| {d.median():+.4f} | {(d > 0.003).sum()} | {(d < -0.003).sum()} "
            f"| {d.min():+.4f} {d.idxmin()} | {times[label].median():.1f} |"
        )
    mine = frame[frame.model == OURS]
    print(
        f"\nfiles: {mine.bytes.median() / 1e6:.1f} MB, at most "
        f"{mine.bytes.max() / 1e6:.1f} MB; scoring: "
        f"{mine.microseconds.median():.0f} µs per row; CPU at most "
        f"{mine.cpu.max():.0f} s"
    )
    print(f"\n{areas.round(4).to_string()}")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("file", type=Path)
    parser.add_argument("use", nargs="?", choices=["choose", "report"])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--part", default="0/1")
    given = parser.parse_intermixed_args()
    if given.what == "report":
        report(given.file)
    else:
        run(given.file, given.use, given.splits, given.part, given.tables)


if __name__ == "__main__":
    main()
