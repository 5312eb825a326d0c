"""The top of the ranking: models that aim at it, models that do not, and promises.

Imbalanced tables (positives below 20 %) of real_tables.py. Recall at a false positive
rate of 1 % and precision of the top 1 % of the test rows, for AUCClassifier and for
LightGBM: with 200 rounds; with ``scale_pos_weight``; stopped by AUC; stopped by the
partial AUC up to 5 %; trained again with three times the weight for the tenth of the
negatives that scores highest out of fold; with the pairwise loss of LibAUC's SOPA-s,
which concentrates on the highest negatives of each positive; and XGBoost's
rank:pairwise. For AUCClassifier(goal="recall@fpr=0.01") also the false positive rate on
the test rows, which its threshold promises not to exceed 1 %; and once with weights of
the members that maximise the partial AUC out of fold.

``python benchmarks/goals.py run FILE choose|report [--splits 3] [--rows 4000]`` adds a
JSON line to FILE for each table, split and model; ``… report FILE`` prints the means
and paired differences.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import expit, logsumexp, softmax
from sklearn.model_selection import StratifiedKFold

from aucmax import AUCClassifier
from aucmax.blend.combine import blend_weights
from aucmax.metrics import auc, confusion_at, partial_auc, precision_at, tpr_at
from bench import lines_of
from real_tables import FOLDER, as_categories, load

_MOST_POSITIVE, _FEWEST = 0.2, 60  # share of positives; positives of the test rows
STOPPED = "LightGBM, stopped by AUC"


def partial(predicted: Any, data: Any) -> tuple[str, float, bool]:
    """Return the partial AUC up to 5 %, for LightGBM."""
    return "partial", partial_auc(data.get_label() > 0.5, predicted, max_fpr=0.05), True


def stopped(
    X: Any,
    y: np.ndarray,
    test: Any,
    measure: Any = "auc",
    weight: Any = None,
    loss: Any = "binary",
) -> tuple[np.ndarray, np.ndarray]:
    """Return test scores of five stopped LightGBMs, and out-of-fold scores."""
    import lightgbm

    scores, held = np.zeros(len(test)), np.zeros(len(y))
    metric = "auc" if measure == "auc" else "None"
    parameters = {
        "objective": loss,
        "metric": metric,
        "learning_rate": 0.03,
        "feature_fraction": 0.5,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "min_data_in_leaf": 10,
        "num_threads": 1,
        "verbosity": -1,
    }
    for a, b in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        w = None if weight is None else weight[a]
        rows = lightgbm.Dataset(X.iloc[a], y[a].astype(float), weight=w)
        watched = lightgbm.Dataset(X.iloc[b], y[b].astype(float), reference=rows)
        model = lightgbm.train(
            parameters,
            rows,
            1000,
            valid_sets=[watched],
            feval=None if measure == "auc" else measure,
            callbacks=[lightgbm.early_stopping(80, verbose=False)],
        )
        scores += model.predict(test, raw_score=True)
        held[b] = model.predict(X.iloc[b], raw_score=True)
    return scores, held


def top_loss(predicted: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient and curvature of a loss of the highest negatives, for LightGBM.

    For a positive i, the loss is log mean_j exp(l(s_i - s_j)) over the negatives j with
    the logistic loss l: the higher a negative, the larger its weight (Zhu et al. 2022).
    It is l(s_i - m) with m = log mean_j exp(s_j). The curvature of negatives is bounded
    by their gradient.
    """
    y = data.get_label() > 0.5
    gradient, curvature = np.empty(y.size), np.empty(y.size)
    level = logsumexp(predicted[~y]) - np.log(np.count_nonzero(~y))
    slope = expit(level - predicted[y])
    gradient[y], curvature[y] = -slope, slope * (1.0 - slope)
    gradient[~y] = curvature[~y] = slope.sum() * softmax(predicted[~y])
    return gradient, np.maximum(curvature, 1e-6)


def top_weights(Z: np.ndarray, signed: np.ndarray) -> np.ndarray:
    """Return weights of members by their partial AUC, among 200 random ones."""
    drawn = np.random.default_rng(0).dirichlet(np.full(Z.shape[1], 0.5), 200)
    each = [blend_weights(Z, signed), *drawn]
    values = [partial_auc(signed > 0.0, Z @ w, max_fpr=0.05) for w in each]
    return np.asarray(each[int(np.argmax(values))])


def models(X: Any, y: np.ndarray, test: Any, columns: list[str]) -> Any:
    """Yield names and test scores."""
    from lightgbm import LGBMClassifier

    ours = AUCClassifier(goal="recall@fpr=0.01", random_state=0).fit(X, y)
    yield "AUCClassifier", ours.decision_function(test), ours
    with patch("aucmax.blend.combine.blend_weights", top_weights):
        ours = AUCClassifier(random_state=0).fit(X, y)
    yield "AUCClassifier, weights by partial AUC", ours.decision_function(test), None
    X, test = as_categories(X, test, columns, most=50)
    plain = LGBMClassifier(n_estimators=200, verbose=-1, n_jobs=1)
    yield "LightGBM, 200 rounds", plain.fit(X, y).predict_proba(test)[:, 1], None
    ratio = (~y).sum() / y.sum()
    plain.set_params(scale_pos_weight=ratio)
    yield "LightGBM, scale_pos_weight", plain.fit(X, y).predict_proba(test)[:, 1], None
    scores, held = stopped(X, y, test)
    yield STOPPED, scores, None
    yield "LightGBM, stopped by partial AUC", stopped(X, y, test, partial)[0], None
    yield "LightGBM, loss of SOPA-s", stopped(X, y, test, loss=top_loss)[0], None
    hard = ~y & (held >= np.quantile(held[~y], 0.9))
    weight = np.where(hard, 3.0, 1.0)
    yield "LightGBM, hard negatives x 3", stopped(X, y, test, weight=weight)[0], None
    try:
        from xgboost import XGBRanker
    except ImportError:
        return
    ranker = XGBRanker(objective="rank:pairwise", n_jobs=1, enable_categorical=True)
    ranker.fit(X, y.astype(int), qid=np.zeros(len(y), int))
    yield "XGBoost, rank:pairwise", ranker.predict(test), None


def run(path: Path, use: str, splits: int, rows: int) -> None:
    manifest = pd.read_csv(FOLDER / "MANIFEST.csv", keep_default_na=False, dtype=str)
    manifest = manifest.rename(columns={"drop": "drop_"})
    done = {(one["set"], one["split"]) for one in lines_of(path)}
    for about in manifest[manifest.use == use].itertuples():
        if float(about.positive_rate) > _MOST_POSITIVE:
            continue
        for split in range(splits):
            if (about.name, split) in done:
                continue
            X, test, y, y_test = load(about, split)
            if y_test.sum() < _FEWEST:
                continue
            X, y = X.iloc[:rows], y[:rows]
            coded = about.integer_coded_categories.split("|")
            columns = [
                c for c in X if not pd.api.types.is_numeric_dtype(X[c]) or c in coded
            ]
            found = []
            for name, score, model in models(X, y, test, columns):
                line: dict[str, Any] = {
                    "set": about.name,
                    "split": split,
                    "model": name,
                }
                line["auc"] = auc(y_test, score)
                line["recall"] = tpr_at(y_test, score, 0.01).value
                line["precision"] = precision_at(y_test, score, 0.01)
                if model is not None and model.threshold_ is not None:
                    at = confusion_at(y_test, score, model.threshold_.value)
                    line |= {"fpr": list(at.fpr), "found": at.recall.value}
                found.append(line)
            with path.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in found)
            print(about.name, split, flush=True)


def report(path: Path) -> None:
    frame = pd.DataFrame(lines_of(path))
    for measure in ("recall", "precision", "auc"):
        means = frame.pivot_table(index="set", columns="model", values=measure)
        apart = means.sub(means[STOPPED], axis=0)
        error = apart.std() / np.sqrt(len(apart))
        print(f"\n{measure}, {len(means)} tables; minus {STOPPED} (standard error)")
        for name in means:
            print(
                f"  {name:38} {means[name].mean():.4f}  {apart[name].mean():+.4f} "
                f"({error[name]:.4f})"
            )
    kept = frame[frame.fpr.notna()] if "fpr" in frame else frame[:0]
    if len(kept):
        rates = np.array(kept.fpr.tolist())
        print(
            f"\npromise fpr <= 1 %: {len(kept)} runs, mean {rates[:, 0].mean():.2%}, "
            f"above in {np.mean(rates[:, 0] > 0.01):.0%}, clearly above in "
            f"{np.mean(rates[:, 1] > 0.01):.0%}"
        )


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("file", type=Path)
    parser.add_argument("use", nargs="?", choices=["choose", "report"])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=4000)
    given = parser.parse_args()
    if given.what == "report":
        report(given.file)
    else:
        run(given.file, given.use, given.splits, given.rows)


if __name__ == "__main__":
    main()
