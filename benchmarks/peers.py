"""The algorithms of aucmax and of other libraries: AUC with its interval, and seconds.

Data sets of $AUCMAX_DATA or ../shared/data; at most 20 000 rows of each, 60 % for
training and 40 % for testing; one split, raw features, defaults, one core. Linear
models of scikit-learn get standardised features (texts: without centring). Libraries
that are not installed are skipped. Kernels are compiled before, on a few rows; seconds
are processor time of ``fit``, for Vowpal Wabbit without writing its files.

``python benchmarks/peers.py run FILE [set …]`` adds a JSON line to FILE for each set
and model that is not there yet. ``… report FILE [PICTURE]`` prints the tables of
docs/benchmarks.md, and draws AUC against seconds.

Two questions have jobs of their own, ``… JOB [--repeat N] [--sets NAME …]``:

cv        BAMCV and balanced LogisticRegressionCV with their defaults, 5 x 2 halves of
          each set (of 4000 rows if it has more than 200 dense features). Differences
          are in thousandths, "p" is of Alpaydin's combined 5x2 F test.
kernel    KernelAUCCV, linear BAMCV and LightGBM, on 70/30 splits.
"""

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import f
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import aucmax
from aucmax import BAMCV, KernelAUCCV
from aucmax.metrics import auc, auc_interval
from bench import Options, Row, lines_of, main, read, shared
from streams import Split, river, vw_file
from tables import lightgbm

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
MOST, WIDE, DENSE = 20_000, 800, 300  # rows; dense features; features of d x d states
SLOW = ("KernelAUCCV", "AUCClassifier")

Result = tuple[np.ndarray, float]  # scores of the test rows, seconds of ``fit``


def timed(make: Callable[[], Any], early: bool = False) -> Callable[[Split], Result]:
    """Return a function that fits a model and scores; ``early`` compiles it before."""

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
    """Return XGBoost; for ranking, all rows are one query."""

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
    scores = river(data)  # seconds include scoring
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
    """Return True if a model is not made for such rows."""
    matrices = label in ("OPAUC", "AdaOAM", "CBR") and data.X.shape[1] > DENSE
    return matrices or (label == "KernelAUCCV" and sparse.issparse(data.X))


def run(path: Path, names: list[str]) -> None:
    done = {(one["set"], one["model"]) for one in lines_of(path)}
    for name in names or SETS:
        data = split(name)
        if data is None:
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
            except Exception as error:  # keep the results of the others
                line["error"] = str(error)[:200]
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, flush=True)


def report(path: Path, picture: str | None = None) -> None:
    lines = [one for one in lines_of(path) if "auc" in one]
    cells = {(one["set"], one["model"]): one for one in lines}
    names = [name for name in SETS if any(one["set"] == name for one in lines)]
    print(f"aucmax {aucmax.__version__}", *map(versions, PACKAGES), sep=", ")
    for start in range(0, len(names), 3):  # three sets fit on a page
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
        return f"{package} not installed"


def draw(lines: list[dict[str, Any]], names: list[str], picture: str) -> None:
    """Draw AUC against seconds; name the best, and those well above faster ones."""
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


CV_SETS = (
    *("australian", "breastw", "diabetes", "fourclass", "german", "glass", "heart"),
    *("ionosphere", "arrhythmia", "vehicle", "splice.train", "svmguide1.train"),
    *("svmguide3.train", "svmguide4.train", "thyroid", "phoneme", "page-blocks"),
    *("spambase", "higgs_sample.train", "mushrooms", "phishing", "magic04"),
    *("creditcard_sample", "letter.train", "a9a.train", "ijcnn1.train", "aloi_ad"),
    *("shuttle", "cod-rna", "smtp", "connect-4", "usps.train", "mnist.train"),
    *("farm-ads", "reuters_money.train", "sector.train", "news20"),
)


def cv(options: Options) -> list[Row]:
    """Compare cross-validated linear models; the upper half of labels is positive."""
    rows = []
    for name in options.sets or CV_SETS:
        found = shared(name, None)
        if found is None:
            continue
        X, labels = found
        levels = np.unique(labels)
        y = (labels >= levels[len(levels) // 2]).astype(int)
        texts = X.shape[1] > 2000
        if X.shape[1] > 200 and not texts and len(y) > 4000:
            X, _, y, _ = train_test_split(
                X, y, train_size=4000, random_state=0, stratify=y
            )
        X = X if texts else X.toarray()
        areas = []
        halves = RepeatedStratifiedKFold(n_splits=2, n_repeats=5, random_state=5)
        for train, test in halves.split(X, y):
            rival = make_pipeline(
                StandardScaler(with_mean=not texts),
                LogisticRegressionCV(
                    Cs=10,
                    cv=3,
                    class_weight="balanced",
                    scoring="roc_auc",
                    max_iter=1000,
                ),
            )
            models = (BAMCV().fit(X[train], y[train]), rival.fit(X[train], y[train]))
            areas.append([auc(y[test], m.decision_function(X[test])) for m in models])
        ours, theirs = np.array(areas).T
        row: Row = {"data": name, "LogisticRegressionCV": float(theirs.mean())}
        row["BAMCV"] = f"{1e3 * (ours - theirs).mean():+.2f}"
        rows.append(row | {"p": f"{combined((ours - theirs).reshape(5, 2)):.3f}"})
        print(rows[-1], file=sys.stderr)
    return rows


def combined(difference: np.ndarray) -> float:
    """Return p of the 5x2 F test of differences of shape (5, 2)."""
    mean = difference.mean(axis=1, keepdims=True)
    below = 2.0 * float(((difference - mean) ** 2).sum())
    above = float((difference**2).sum())
    if above == 0.0:
        return 1.0
    return float(f.sf(above / below, 10, 5)) if below else 0.0


KERNEL_SETS = (
    *("arrhythmia", "australian", "breastw", "creditcard_sample", "diabetes"),
    *("fourclass", "german", "glass", "heart", "higgs_sample", "ionosphere", "letter"),
    *("magic04", "mushrooms", "page-blocks", "phishing", "phoneme", "spambase"),
    *("splice", "svmguide1", "svmguide3", "svmguide4", "thyroid", "usps", "vehicle"),
    *("farm-ads", "news20", "reuters_money", "sector"),
)


def kernel(options: Options) -> list[Row]:
    rows = []
    for name in options.sets or KERNEL_SETS:
        found = read(name)
        if found is None:
            continue
        X, y = found
        X, gains = X if X.shape[1] > 5000 else X.toarray(), []
        for seed in range(options.repeat):
            A, B, a, b = train_test_split(
                X, y, test_size=0.3, stratify=y, random_state=seed
            )
            data = Split(A, a, B, b)
            makes = BAMCV, partial(KernelAUCCV, random_state=seed), lightgbm
            results = [timed(make)(data) for make in makes]
            gains.append([(auc(b, score), seconds) for score, seconds in results])
        table = np.array(gains)  # split, model, (AUC, seconds)
        row: Row = {"data": name, "linear AUC": float(table[:, 0, 0].mean())}
        for k, key in ((1, "kernel"), (2, "LightGBM")):
            ahead = table[:, k, 0] - table[:, 0, 0]
            row[key] = f"{ahead.mean():+.4f}, worst {ahead.min():+.4f}"
            row[f"{key}, s"] = float(table[:, k, 1].mean())
        rows.append(row)
        print(row, file=sys.stderr)
    return rows


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, *rest = sys.argv[1:] or [""]
    if what == "run":
        run(Path(rest[0]), rest[1:])
    elif what == "report":
        report(Path(rest[0]), *rest[1:])
    else:
        main(__doc__, {"cv": cv, "kernel": kernel}, repeat=5)
