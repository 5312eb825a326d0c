"""``aucmax demo``: what the library does, on data that need no download."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aucmax
from aucmax import SOLAM, SPAM
from aucmax.cli.screen import Screen, table
from aucmax.cli.warmup import compile_kernels
from aucmax.metrics import auc_interval, auc_test, roc_curve

Features: TypeAlias = NDArray[Any]
Labels: TypeAlias = NDArray[np.bool_]

_TEST_ROWS = 200_000  # enough for an interval of about ±0.006 at 1 % positives
_CHUNK = 50_000
_N_FEATURES = 24
_POSITIVES = 0.01


class Result(NamedTuple):
    """A model that has been trained, and how it ranks the test rows."""

    name: str
    seconds: float  # to train
    scores: NDArray[np.float64]  # of the test rows
    auc: float
    low: float
    high: float


class Contest(NamedTuple):
    """Several models on the same data."""

    data: str
    positive: str  # the class that is to come out on top
    train_rows: int
    y: Labels  # of the test rows
    results: list[Result]
    note: str

    def summary(self) -> dict[str, Any]:
        """Return what is worth keeping, for JSON."""
        return {
            "data": self.data,
            "positive": self.positive,
            "train_rows": self.train_rows,
            "test_rows": self.y.size,
            "test_positives": int(self.y.sum()),
            "models": [
                {
                    "name": result.name,
                    "auc": result.auc,
                    "low": result.low,
                    "high": result.high,
                    "train_seconds": round(result.seconds, 4),
                }
                for result in self.results
            ],
        }


def run(output: Path, rows: int, seed: int, as_json: bool) -> None:
    """Run the demo; the model and the picture go to the folder ``output``."""
    start = perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    screen = Screen(quiet=as_json)
    screen.print(f"aucmax {aucmax.__version__}: rankers that maximise AUC\n")
    with screen.step("Compiling (at the first start only)"):
        compile_seconds = compile_kernels(
            ["SPAM", "SOLAM"], [np.asarray], detours=False
        )

    tumours = breast_cancer(seed)
    show(tumours, screen)
    stream, spam, X_test = rare_positives(rows, seed, screen)
    show(stream, screen)

    model = output / "spam.aucmax"
    spam.save(model)
    if not np.array_equal(
        aucmax.load(model).decision_function(X_test), stream.results[0].scores
    ):
        raise RuntimeError(f"{model} gives other scores than the model saved to it.")
    picture = draw(stream, output / "roc.png")
    seconds = perf_counter() - start
    farewell(model, picture, seconds, screen)
    if as_json:
        report = {
            "version": aucmax.__version__,
            "seed": seed,
            "seconds": round(seconds, 2),
            "compile_seconds": round(compile_seconds, 2),
            "contests": [tumours.summary(), stream.summary()],
            "model": str(model),
            "picture": None if picture is None else str(picture),
        }
        print(json.dumps(report, indent=2))


def breast_cancer(seed: int) -> Contest:
    """Train all models on one half of a small real set, test them on the other."""
    X, benign = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, benign == 0, test_size=0.5, stratify=benign, random_state=seed
    )
    models = {"SPAM": SPAM(random_state=seed), "SOLAM": SOLAM(random_state=seed)}
    return Contest(
        data="Wisconsin breast cancer, 30 features",
        positive="malignant",
        train_rows=len(y_train),
        y=y_test,
        results=[
            compete(name, model, X_train, y_train, X_test, y_test)
            for name, model in (models | rivals(seed)).items()
        ],
        note="SPAM and SOLAM see the raw features; the others need standardised ones "
        "and get them (their seconds include it).",
    )


def rare_positives(
    n_rows: int, seed: int, screen: Screen
) -> tuple[Contest, SPAM, Features]:
    """Train SPAM and SOLAM on a stream as it comes by, the others on all its rows."""
    X_test, y_test = (
        np.concatenate(parts)
        for parts in zip(*rare_stream(_TEST_ROWS, seed, part=1), strict=True)
    )
    # The stream is kept for the rivals only.
    X, y = np.empty((n_rows, _N_FEATURES), np.float32), np.empty(n_rows, np.bool_)
    ours = {"SPAM": SPAM(), "SOLAM": SOLAM()}
    seconds = dict.fromkeys(ours, 0.0)
    done = 0
    with screen.step("SPAM and SOLAM, one pass", n_rows) as advance:
        for X_chunk, y_chunk in rare_stream(n_rows, seed, part=0):
            for name, model in ours.items():
                start = perf_counter()
                model.partial_fit(X_chunk, y_chunk, classes=[False, True])
                seconds[name] += perf_counter() - start
            here = slice(done, done + len(y_chunk))
            X[here], y[here] = X_chunk, y_chunk
            done = here.stop
            advance(len(y_chunk))
    results = [
        judge(name, model, seconds[name], X_test, y_test)
        for name, model in ours.items()
    ]
    for name, model in rivals(seed).items():
        with screen.step(name):
            results.append(compete(name, model, X, y, X_test, y_test))
    contest = Contest(
        data=f"Generated stream with rare positives, {_N_FEATURES} features",
        positive=f"about {100 * _POSITIVES:g} % of the rows",
        train_rows=n_rows,
        y=y_test,
        results=results,
        note="SPAM and SOLAM see the raw features once, chunk by chunk, and keep "
        "nothing; the others hold all rows in memory, standardised (their seconds "
        "include it).",
    )
    return contest, ours["SPAM"], X_test


def rare_stream(n_rows: int, seed: int, part: int) -> Iterator[tuple[Features, Labels]]:
    """Yield chunks of a stream as raw tables are: no two features of one scale.

    Features are correlated and have heavy tails: mixtures of t-distributed numbers
    (four degrees of freedom). In half of them the positives are shifted. Scales run
    over seven powers of ten, and most features lie far from zero. Streams of the same
    ``seed`` differ in their rows only.
    """
    recipe = np.random.default_rng(seed)
    d = _N_FEATURES
    scale = 10.0 ** recipe.uniform(-3.0, 4.0, d)
    offset = scale * recipe.normal(0.0, 10.0, d)
    shift = np.where(np.arange(d) % 2 == 0, recipe.normal(0.0, 0.8, d), 0.0)
    mix = np.eye(d) + recipe.normal(0.0, 0.5, (d, d)) / np.sqrt(d)
    rng = np.random.default_rng([seed, part])
    for first in range(0, n_rows, _CHUNK):
        n = min(_CHUNK, n_rows - first)
        y = rng.random(n) < _POSITIVES
        X = rng.standard_t(4, (n, d)) @ mix + y[:, np.newaxis] * shift
        yield (X * scale + offset).astype(np.float32), y


def rivals(seed: int) -> dict[str, Any]:
    """Return the models one would otherwise take, on standardised features."""
    balanced = LogisticRegression(class_weight="balanced")
    return {
        "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression()),
        "LogisticRegression, balanced": make_pipeline(StandardScaler(), balanced),
        "SGDClassifier, log loss": make_pipeline(
            StandardScaler(), SGDClassifier(loss="log_loss", random_state=seed)
        ),
    }


def compete(
    name: str, model: Any, X: Features, y: Labels, X_test: Features, y_test: Labels
) -> Result:
    """Train ``model`` and judge it."""
    start = perf_counter()
    model.fit(X, y)
    return judge(name, model, perf_counter() - start, X_test, y_test)


def judge(
    name: str, model: Any, seconds: float, X_test: Features, y_test: Labels
) -> Result:
    """Return what a trained model is worth on the test rows."""
    scores = model.decision_function(X_test)
    interval = auc_interval(y_test, scores)
    return Result(name, seconds, scores, interval.value, interval.low, interval.high)


def draw(contest: Contest, path: Path) -> Path | None:
    """Draw the ROC curves; return the path, or None without matplotlib."""
    if find_spec("matplotlib") is None:
        return None
    from aucmax.report.roc import Curve, roc_figure, save_figure

    curves = []
    for result in contest.results:
        fpr, tpr, _ = roc_curve(contest.y, result.scores)
        curves.append(Curve(result.name, fpr, tpr, result.auc, result.low, result.high))
    save_figure(roc_figure(curves, contest.data), path)
    return path


def show(contest: Contest, screen: Screen) -> None:
    """Print a table of the models, and what to think of it."""
    models = table("model", "AUC", "95 % interval", "seconds")
    best = max(contest.results, key=lambda result: result.auc)
    for result in contest.results:
        models.add_row(
            result.name,
            f"{result.auc:.4f}",
            f"{result.low:.4f}–{result.high:.4f}",
            f"{result.seconds:.3f}",
            style="bold" if result is best else "",
        )
    screen.print(f"\n{contest.data}", style="bold")
    screen.print(
        f"{contest.train_rows:,} rows to train on, {contest.y.size:,} to test on; "
        f"positive: {contest.positive}"
    )
    screen.show(models)
    screen.print(contest.note, style="dim")
    screen.print(_verdict(contest) + "\n")


def farewell(model: Path, picture: Path | None, seconds: float, screen: Screen) -> None:
    """Say where things are and what to do with them."""
    lines = [f"Model:   {model} (loaded again, it gives the same scores)"]
    if picture is None:
        lines += ["No picture: matplotlib is missing; pip install 'aucmax[plot]'"]
    else:
        lines += [f"Picture: {picture}"]
    lines += [
        f"All in all {seconds:.1f} s. To go on, in Python:",
        "",
        "    import aucmax",
        f"    model = aucmax.load({str(model)!r})",
        "    model.decision_function(X)  # scores: higher ranks higher",
        "    model.partial_fit(X, y)     # learns on from where it stopped",
    ]
    screen.print("\n".join(lines), wrap=False)


def _verdict(contest: Contest) -> str:
    """Compare the best of ours with the best rival on the same test rows."""
    by_area = sorted(contest.results, key=lambda result: -result.auc)
    ours = next(result for result in by_area if result.name in aucmax.ESTIMATORS)
    rival = next(result for result in by_area if result.name not in aucmax.ESTIMATORS)
    test = auc_test(contest.y, ours.scores, rival.scores)
    return (
        f"{ours.name} minus {rival.name}, on the same rows: {test.difference:+.4f}, "
        f"95 % interval {test.low:+.4f} to {test.high:+.4f}."
    )
