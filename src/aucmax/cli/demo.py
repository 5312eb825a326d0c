"""``aucmax demo``: a table and a stream, on data that need no download."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aucmax
from aucmax import AUCClassifier, AUCStream
from aucmax.cli.screen import Screen, table
from aucmax.metrics import AUCInterval, AUCTest, auc_interval, auc_test

Features: TypeAlias = NDArray[Any]
Labels: TypeAlias = NDArray[np.bool_]

SPLITS = 3  # of the table: the seed, and the two after it
_TEST_ROWS = 200_000  # enough for an interval of about ±0.006 at 1 % positives
_CHUNK = 50_000
_LOOKS = 12  # at the stream, as it comes by
_N_FEATURES = 24
_POSITIVES = 0.01
_BOOSTING, _LOGISTIC = "gradient boosting", "logistic regression, balanced"


class Result(NamedTuple):
    """A model that has been trained, and how it ranks the test rows."""

    name: str
    seconds: float  # to train
    scores: NDArray[np.float64]  # of the test rows
    auc: AUCInterval


class Split(NamedTuple):
    """Models on the same rows of a table, ours first."""

    seed: int
    train_rows: int
    y: Labels  # of the test rows
    results: list[Result]

    def ahead(self) -> list[AUCTest]:
        """Return by how much ours is above each of the others."""
        ours, *others = self.results
        return [auc_test(self.y, ours.scores, other.scores) for other in others]


class Stream(NamedTuple):
    """A stream in one pass, and a model of all its rows at once."""

    rows: int
    y: Labels  # of the test rows
    results: list[Result]
    looks: list[tuple[int, AUCInterval]]  # rows learnt so far, AUC

    def ahead(self) -> AUCTest:
        """Return by how much the one pass is above the other model."""
        ours, other = self.results
        return auc_test(self.y, ours.scores, other.scores)


def run(output: Path, rows: int, seed: int, as_json: bool) -> None:
    """Run the demo; the model and the picture go to the folder ``output``."""
    start = perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    screen = Screen(quiet=as_json)
    screen.print(f"aucmax {aucmax.__version__}: rankers that maximise AUC\n")
    with screen.step("Compiling (at the first start only)"):
        compile_seconds = _compile()
    splits, blend = digits(seed, screen)
    show_table(splits, blend, screen)
    stream = rare_positives(rows, seed, screen)
    show_stream(stream, screen)
    model = output / "digits.aucmax"
    blend.save(model)
    picture = draw(splits[0], stream, output / "demo.png")
    seconds = perf_counter() - start
    farewell(model, picture, seconds, screen)
    if as_json:
        report = {
            "version": aucmax.__version__,
            "seed": seed,
            "seconds": round(seconds, 2),
            "compile_seconds": round(compile_seconds, 2),
            "table": [_split_summary(split) for split in splits],
            "stream": _stream_summary(stream),
            "model": str(model),
            "picture": None if picture is None else str(picture),
        }
        print(json.dumps(report, indent=2))


def _compile() -> float:
    """Use both on a few rows; return the seconds taken."""
    start = perf_counter()
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 3 == 0
    auc_interval(y, new_blend(0).fit(X, y).decision_function(X))
    AUCStream().partial_fit(X.astype(np.float32), y)
    return perf_counter() - start


def new_blend(seed: int) -> AUCClassifier:
    """Return a blend that has learnt nothing."""
    return AUCClassifier(random_state=seed)


def digits(seed: int, screen: Screen) -> tuple[list[Split], AUCClassifier]:
    """Train on halves of a small real set, test on the others."""
    X, digit = load_digits(return_X_y=True)
    splits, blend = [], new_blend(seed)
    for k in range(seed, seed + SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(
            X, digit % 2 == 1, test_size=0.5, stratify=digit, random_state=k
        )
        blend = new_blend(k)
        models = {
            "AUCClassifier": blend,
            _BOOSTING: HistGradientBoostingClassifier(random_state=k),
            _LOGISTIC: _logistic(),
        }
        with screen.step(f"Digits, seed {k}"):
            results = [
                compete(name, model, X_train, y_train, X_test, y_test)
                for name, model in models.items()
            ]
        splits.append(Split(k, len(y_train), y_test, results))
    return splits, blend


def rare_positives(n_rows: int, seed: int, screen: Screen) -> Stream:
    """Learn a stream as it comes by, then fit another model to all of its rows."""
    X_test, y_test = (
        np.concatenate(parts)
        for parts in zip(*rare_stream(_TEST_ROWS, seed, part=1), strict=True)
    )
    # The stream is kept for the rival only.
    X, y = np.empty((n_rows, _N_FEATURES), np.float32), np.empty(n_rows, np.bool_)
    ours, seconds, done = AUCStream(), 0.0, 0
    looks: list[tuple[int, AUCInterval]] = []
    ends = np.unique(np.geomspace(min(1000, n_rows), n_rows, _LOOKS).astype(int))
    with screen.step("AUCStream, one pass", n_rows) as advance:
        for X_chunk, y_chunk in rare_stream(n_rows, seed, part=0):
            here = slice(done, done + len(y_chunk))
            X[here], y[here] = X_chunk, y_chunk
            inside = ends[(ends > done) & (ends < here.stop)] - done
            for part in np.split(np.arange(len(y_chunk)), inside):
                start = perf_counter()
                ours.partial_fit(X_chunk[part], y_chunk[part], classes=[False, True])
                seconds += perf_counter() - start
                done += len(part)
                if done in ends:
                    scores = ours.decision_function(X_test)
                    looks.append((done, auc_interval(y_test, scores)))
            advance(len(y_chunk))
    results = [judge("AUCStream", ours, seconds, X_test, y_test)]
    with screen.step(_LOGISTIC.capitalize()):
        results.append(compete(_LOGISTIC, _logistic(), X, y, X_test, y_test))
    return Stream(n_rows, y_test, results, looks)


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


def _logistic() -> Any:
    balanced = LogisticRegression(class_weight="balanced", max_iter=1000)
    return make_pipeline(StandardScaler(), balanced)


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
    scores = np.asarray(model.decision_function(X_test))
    return Result(name, seconds, scores, auc_interval(y_test, scores))


def show_table(splits: list[Split], blend: AUCClassifier, screen: Screen) -> None:
    """Print what the table has shown, split by split."""
    first = splits[0]
    screen.print("\nA table: AUCClassifier", style="bold")
    screen.print(
        "Handwritten digits, 64 numbers each: which are odd? "
        f"{first.train_rows:,} rows to train on, {first.y.size:,} others to test on."
    )
    grid = table("seed", "AUCClassifier", "boosting", "logistic", "ahead by")
    for split in splits:
        least = min(split.ahead(), key=lambda test: test.difference)
        grid.add_row(
            str(split.seed),
            *(f"{result.auc.value:.4f}" for result in split.results),
            f"{least.difference:+.4f} ({least.low:+.4f} to {least.high:+.4f})",
        )
    screen.show(grid)
    ours = max(split.results[0].seconds for split in splits)
    others = max(other.seconds for split in splits for other in split.results[1:])
    screen.print(
        "AUC, and by how much the blend is ahead of the better of the two, with a 95 % "
        f"interval on the same rows (DeLong). Blending took {ours:.1f} s at most, the "
        f"others {others:.1f} s: scikit-learn's gradient boosting, and balanced "
        "logistic regression on standardised rows.",
        style="dim",
    )
    screen.print(f"\nWhat the last one says of itself:\n{blend.explain()}")


def show_stream(stream: Stream, screen: Screen) -> None:
    """Print what the stream has shown."""
    screen.print("\nA stream: AUCStream", style="bold")
    screen.print(
        f"Generated: {stream.rows:,} rows of {_N_FEATURES} features in odd units, "
        f"{100 * _POSITIVES:g} % positive; {stream.y.size:,} others to test on."
    )
    grid = table("model", "AUC", "95 % interval", "seconds")
    for result in stream.results:
        area = result.auc
        grid.add_row(
            result.name,
            f"{area.value:.4f}",
            f"{area.low:.4f}–{area.high:.4f}",
            f"{result.seconds:.1f}",
        )
    screen.show(grid)
    test = stream.ahead()
    screen.print(
        "AUCStream sees raw rows once and keeps none; the other holds all of them, "
        f"standardised. On the same rows: {test.difference:+.4f}, 95 % interval "
        f"{test.low:+.4f} to {test.high:+.4f}.\n",
        style="dim",
    )


def draw(split: Split, stream: Stream, path: Path) -> Path | None:
    """Draw both; return the path, or None without matplotlib."""
    if find_spec("matplotlib") is None:
        return None
    from aucmax.report.demo import demo_figure
    from aucmax.report.roc import Curve, save_figure

    curves = [
        Curve.of(result.name, split.y, result.scores, result.auc)
        for result in split.results
    ]
    _, other = stream.results
    save_figure(demo_figure(curves, stream.looks, other.name, other.auc), path)
    return path


def farewell(model: Path, picture: Path | None, seconds: float, screen: Screen) -> None:
    """Say where things are and what to do with them."""
    lines = [f"Model:   {model} (one file that can run nothing)"]
    if picture is None:
        lines += ["No picture: matplotlib is missing; pip install 'aucmax[plot]'"]
    else:
        lines += [f"Picture: {picture}"]
    lines += [
        f"All in all {seconds:.0f} s. To go on, in Python:",
        "",
        "    import aucmax",
        f"    model = aucmax.load({str(model)!r})",
        "    model.decision_function(X)  # scores: higher ranks higher",
        "",
        "or with a file of your own:",
        "",
        "    aucmax train table.csv -o model.aucmax --label NAME --holdout 0.2",
    ]
    screen.print("\n".join(lines), wrap=False)


def _result_summary(result: Result) -> dict[str, Any]:
    return {
        "name": result.name,
        "auc": result.auc.value,
        "low": result.auc.low,
        "high": result.auc.high,
        "train_seconds": round(result.seconds, 4),
    }


def _split_summary(split: Split) -> dict[str, Any]:
    return {
        "seed": split.seed,
        "train_rows": split.train_rows,
        "test_rows": split.y.size,
        "models": [_result_summary(result) for result in split.results],
        "ahead": [test._asdict() for test in split.ahead()],
    }


def _stream_summary(stream: Stream) -> dict[str, Any]:
    return {
        "train_rows": stream.rows,
        "test_rows": stream.y.size,
        "test_positives": int(stream.y.sum()),
        "models": [_result_summary(result) for result in stream.results],
        "ahead": stream.ahead()._asdict(),
        "looks": [[rows, area.value] for rows, area in stream.looks],
    }
