"""Our algorithms beside those that people use: AUC with its interval, and seconds.

Data sets of $AUCMAX_DATA or ../shared/data, at most 20 000 rows of each, 60 % to learn
from and 40 % to test by; one split, raw features, defaults, one core. Linear models of
scikit-learn get standardised features (texts: divided by the deviation). Rivals take
part if they can be imported. What has to be compiled is compiled before, on some
rows; seconds are processor time of ``fit``, which a busy machine changes little, of
Vowpal Wabbit with its files written already.

``python benchmarks/peers.py run FILE [set …]`` adds a JSON line to FILE for each set
and model; what is there is not done again. ``… report FILE [PICTURE]`` prints the
tables of docs/benchmarks.md, and draws AUC against seconds.
"""

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import aucmax
from aucmax.metrics import auc_interval
from streams import Split, read, river, vw_file
from tables import lightgbm, lines_of

SETS = (
    *("a9a", "creditcard_sample", "covtype_sample", "german", "higgs_sample"),
    *("ijcnn1", "magic04", "mnist", "phishing", "spambase", "news20", "sector"),
)
OURS = (
    *("SPAM", "SOLAM", "OAM", "OPAUC", "AdaOAM", "CBR", "FSAUC", "ASAM", "PSAM"),
    *("SVRGAUC", "SPDAM", "MBA", "LeastSquaresAUC", "BAM", "BAMCV", "SVMPerf"),
    *("AUCStream", "KernelAUCCV", "AUCClassifier"),
)
PACKAGES = ("scikit-learn", "lightgbm", "xgboost", "vowpalwabbit", "river")
MOST, WIDE, DENSE = 20_000, 800, 300  # rows; features; of those that have d x d arrays
SLOW = ("KernelAUCCV", "AUCClassifier")

Result = tuple[np.ndarray, float]  # scores of the test rows, seconds of ``fit``


def timed(make: Callable[[], Any], early: bool = False) -> Callable[[Split], Result]:
    """Return what fits a model and scores with it; ``early``: once more, before."""

    def run(data: Split) -> Result:
        if early:
            make().fit(data.X[:300], data.y[:300])
        model = make()
        start = process_time()
        model.fit(data.X, data.y)
        seconds = process_time() - start
        if hasattr(model, "decision_function"):
            return model.decision_function(data.X_test), seconds
        return model.predict_proba(data.X_test)[:, 1], seconds

    return run


def scaled(model: Any) -> Callable[[Split], Result]:
    def run(data: Split) -> Result:
        scaler = StandardScaler(with_mean=not sparse.issparse(data.X))
        return timed(lambda: make_pipeline(scaler, model))(data)

    return run


def xgboost(objective: str) -> Callable[[Split], Result]:
    """Return XGBoost; to it, all rows are one query."""

    def run(data: Split) -> Result:
        import xgboost

        rows = xgboost.DMatrix(data.X, data.y, nthread=1)
        if objective.startswith("rank"):
            rows.set_group([len(data.y)])
        settings = {"objective": objective, "eta": 0.05, "nthread": 1, "seed": 0}
        start = process_time()
        model = xgboost.train(settings, rows, 200)
        seconds = process_time() - start
        return model.predict(xgboost.DMatrix(data.X_test, nthread=1)), seconds

    return run


def vw(data: Split) -> Result:
    import vowpalwabbit

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vw_file(folder / "train", data.X, data.y)
        vw_file(folder / "test", data.X_test, data.y_test)
        common = "--quiet --loss_function logistic"
        start = process_time()
        vowpalwabbit.Workspace(f"{common} -d {folder}/train -f {folder}/model").finish()
        seconds = process_time() - start
        vowpalwabbit.Workspace(
            f"{common} -d {folder}/test -t -i {folder}/model -r {folder}/scores"
        ).finish()
        lines = (folder / "scores").read_text().split()
    return np.array([float(line.partition(":")[2] or line) for line in lines]), seconds


def slow_river(data: Split) -> Result:
    start = process_time()
    scores = river(data)  # which learns and scores: seconds are of both
    return scores, process_time() - start


def own(name: str) -> Callable[[], Any]:
    def make() -> Any:
        model = getattr(aucmax, name)()
        seeds = {"random_state": 0} if "random_state" in model.get_params() else {}
        return model.set_params(**seeds)

    return make


MODELS: dict[str, Callable[[Split], Result]] = {
    **{name: timed(own(name), early=name not in SLOW) for name in OURS},
    "LogisticRegression": scaled(LogisticRegression(max_iter=2000)),
    "LogisticRegression, balanced": scaled(
        LogisticRegression(max_iter=2000, class_weight="balanced")
    ),
    "SGDClassifier": scaled(SGDClassifier(loss="log_loss", random_state=0)),
    "LinearSVC": scaled(LinearSVC(class_weight="balanced", random_state=0)),
    "Vowpal Wabbit": vw,
    "River, logistic": slow_river,
    "LightGBM": timed(lightgbm),
    "XGBoost": xgboost("binary:logistic"),
    "XGBoost, rank:pairwise": xgboost("rank:pairwise"),
    "XGBoost, rank:ndcg": xgboost("rank:ndcg"),
}


def split(name: str) -> Split | None:
    found = read(name)
    if found is None:
        return None
    X, y = found
    some = np.random.RandomState(0).permutation(len(y))[:MOST]
    X, y = X[some], y[some]
    X = X.toarray() if X.shape[1] <= WIDE else X
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.4, stratify=y, random_state=0
    )
    return Split(X, y, X_test, y_test)


def left_out(label: str, data: Split) -> bool:
    """Tell whether a model is not meant for such rows."""
    matrices = label in ("OPAUC", "AdaOAM", "CBR") and data.X.shape[1] > DENSE
    return matrices or (label == "KernelAUCCV" and sparse.issparse(data.X))


def run(path: Path, names: list[str]) -> None:
    done = {(one["set"], one["model"]) for one in lines_of(path)}
    for name in names or SETS:
        data = split(name)
        if data is None:
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        for label, work in MODELS.items():
            if (name, label) in done or left_out(label, data):
                continue
            line: dict[str, Any] = {"set": name, "model": label, "rows": len(data.y)}
            try:
                scores, seconds = work(data)
                line["auc"] = list(auc_interval(data.y_test, scores))[:3]
                line["seconds"] = round(seconds, 4)
            except ImportError as error:
                print(f"{label}: {error}", file=sys.stderr)
                continue
            except Exception as error:  # one model is not to lose the others
                line["error"] = str(error)[:200]
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, flush=True)


def report(path: Path, picture: str | None = None) -> None:
    lines = [one for one in lines_of(path) if "auc" in one]
    cells = {(one["set"], one["model"]): one for one in lines}
    names = [name for name in SETS if any(one["set"] == name for one in lines)]
    print(f"aucmax {aucmax.__version__}", *map(versions, PACKAGES), sep=", ")
    for start in range(0, len(names), 3):  # as many as fit on a page
        some = names[start : start + 3]
        print("\n| | " + " | ".join(some) + " |\n" + "|---" * (len(some) + 1) + "|")
        for label in MODELS:
            row = [cells.get((name, label)) for name in some]
            if any(row):
                print(f"| {label} | " + " | ".join(map(cell, row)) + " |")
    if picture:
        draw(lines, names, picture)


def cell(one: dict[str, Any] | None) -> str:
    if one is None:
        return ""
    area, low, high = one["auc"]
    return f"{area:.4f} ± {(high - low) / 2:.4f}, {one['seconds']:.2g} s"


def versions(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} not there"


def draw(lines: list[dict[str, Any]], names: list[str], picture: str) -> None:
    """Draw AUC against seconds; name the best, and who is well above all quicker."""
    import matplotlib.pyplot as plt

    columns = 3
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(13, 3.4 * rows), squeeze=False)
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    for ax, name in zip(axes.flat, names, strict=False):
        mine = [one for one in lines if one["set"] == name]
        areas = [one["auc"][0] for one in mine]
        floor = max(min(areas), float(np.quantile(areas, 0.2)) - 0.01)
        best, step = -1.0, 0.04 * (max(areas) - floor)
        longest = max(one["seconds"] for one in mine)
        for one in sorted(mine, key=lambda one: one["seconds"]):
            area, low, high = one["auc"]
            if area < floor:
                continue
            ours = one["model"] in OURS
            x = max(one["seconds"], 1e-3)
            color = "#c8465a" if ours else "#2f6494"
            ax.errorbar(
                *(x, area, [[area - low], [high - area]]),
                fmt="o" if ours else "s",
                color=color,
                ms=4,
                lw=0.7,
                alpha=0.85,
            )
            if area > best + step or area == max(areas):
                best, late = area, x > longest / 10.0
                ax.annotate(
                    one["model"],
                    (x, area),
                    xytext=(-4 if late else 4, 4),
                    textcoords="offset points",
                    ha="right" if late else "left",
                    fontsize=7,
                    color=color,
                )
        ax.set(xscale="log", title=name)
        ax.title.set_size(10)
        ax.tick_params(labelsize=8)
        ax.grid(alpha=0.2)
    figure.supxlabel(
        "processor seconds of fit; red: aucmax, blue: others; bars: 95 % intervals"
    )
    figure.supylabel("AUC")
    figure.tight_layout()
    figure.savefig(picture, dpi=90)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, file, *rest = sys.argv[1:]
    if what == "run":
        run(Path(file), rest)
    else:
        report(Path(file), *rest)
