"""``aucmax demo``: compare with baselines on a table and on a stream, offline."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import aucmax
from aucmax import AUCClassifier, AUCStream
from aucmax.cli.terminal import Screen, table
from aucmax.metrics import auc, auc_interval, auc_test, precision_at
from aucmax.workflows.compare import build

_SPLITS = 3  # of the table: ``seed`` and the next two
_TEST_ROWS = 200_000  # a confidence interval of about ±0.006 at 1 % positives
_CHUNK = 50_000
_ALERTS = 100
_THRESHOLD = 0.3
_N_FEATURES = 24
_POSITIVES = 0.01
_LOGISTIC = "logistic regression, balanced"

Rows = tuple[NDArray[Any], NDArray[Any]]  # X, y


class Comparison(NamedTuple):
    """Models trained on the same rows, aucmax first."""

    y: NDArray[Any]  # of the test rows
    scores: dict[str, NDArray[Any]]
    report: dict[str, Any]  # for JSON

    @classmethod
    def of(
        cls, scores: dict[str, NDArray[Any]], seconds: list[float], y: NDArray[Any]
    ) -> Self:
        """Evaluate the scores of test rows by models that trained for some seconds."""
        aucs = {name: auc_interval(y, score) for name, score in scores.items()}
        ours, *others = scores.values()
        rows = {"test_rows": len(y), "test_positives": int(y.sum())}
        found = [
            {"name": name, "auc": area.value, "low": area.low, "high": area.high}
            | {"found": round(100 * precision_at(y, scores[name], _ALERTS))}
            | {"train_seconds": round(time, 4)}
            for (name, area), time in zip(aucs.items(), seconds, strict=True)
        ]
        ahead = [auc_test(y, ours, other)._asdict() for other in others]
        return cls(y, scores, {**rows, "models": found, "ahead": ahead})


def run(output: Path, rows: int, seed: int, as_json: bool) -> None:
    """Run the demo; write a model file and a figure to the folder ``output``."""
    start = perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    screen = Screen(quiet=as_json)
    screen.print(f"aucmax {aucmax.__version__}: rankers that maximise AUC\n")
    with screen.step("Compiling (first start only)"):
        X, y = np.random.default_rng(0).random((60, 4)), np.arange(60) % 3 == 0
        auc_interval(y, new_blend(0).fit(X, y).decision_function(X))
        AUCStream().partial_fit(X.astype(np.float32), y)
    compile_seconds = perf_counter() - start
    splits, blend = _compare_on_table(seed, screen)
    stream = _compare_on_stream(rows, seed, screen)
    model, figure = output / "bank.aucmax", output / "demo.png"
    blend.save(model)
    drawn = find_spec("matplotlib") is not None
    if drawn:
        _draw(splits[0], figure)
    seconds = perf_counter() - start
    screen.print(
        f"""Model:  {model}
Figure: {figure if drawn else "needs matplotlib: pip install 'aucmax[plot]'"}
Total time {seconds:.0f} s. To use the model in Python:

    import aucmax
    model = aucmax.load({str(model)!r})
    model.predict_proba(frame)[:, 1]  # of a data frame with the same columns

To train on your own data:

    aucmax train table.csv -o model.aucmax --label NAME --holdout 0.2""",
        wrap=False,
    )
    if as_json:
        report = {
            "version": aucmax.__version__,
            "seed": seed,
            "seconds": round(seconds, 2),
            "compile_seconds": round(compile_seconds, 2),
            "table": [split.report for split in splits],
            "stream": stream.report | {"ahead": stream.report["ahead"][0]},
            "model": str(model),
            "picture": str(figure) if drawn else None,
        }
        print(json.dumps(report, indent=2))


def new_blend(seed: int) -> AUCClassifier:
    """Return an unfitted blend."""
    return AUCClassifier(random_state=seed)


def _compare_on_table(
    seed: int, screen: Screen
) -> tuple[list[Comparison], AUCClassifier]:
    """Return a comparison for each split of a table, and the last blend."""
    table = read_table()
    rows, labels = table.drop_columns("y"), table["y"].to_numpy() == "yes"
    splits = []
    for k in range(seed, seed + _SPLITS):
        train, test = train_test_split(
            np.arange(len(labels)), test_size=0.5, stratify=labels, random_state=k
        )
        X, y, X_test, y_test = (
            *(rows.take(train), labels[train]),
            *(rows.take(test), labels[test]),
        )
        with screen.step(f"Bank marketing, seed {k}"):
            blend = new_blend(k)
            seconds, scores = [_fit(blend, X, y)], {}
            scores["AUCClassifier"] = blend.decision_function(X_test)
            for name, baseline in _BASELINES.items():
                start = perf_counter()
                scores[name] = baseline(X, y, X_test, k)
                seconds.append(perf_counter() - start)
            splits.append(Comparison.of(scores, seconds, y_test))
        splits[-1].report.update(seed=k, train_rows=len(y))
    screen.print("\nA table: AUCClassifier", style="bold")
    screen.print(
        "Who will subscribe to a term deposit? Calls of a bank (UCI, CC BY 4.0): "
        f"{rows.num_columns} columns, nine of them categories, with missing values; "
        f"{len(y):,} training rows, {len(y_test):,} test rows, "
        f"{100 * labels.mean():.0f} % positive."
    )
    _show(splits, screen)
    screen.print(_at_threshold(blend, X_test, y_test))
    screen.print(f"\nThe last blend, by model.explain():\n{blend.explain()}\n")
    return splits, blend


def read_table() -> Any:
    """Return the table of the demonstration, of Arrow."""
    from pyarrow import csv

    path = Path(__file__).with_name("data") / "bank-marketing.csv.gz"
    options = csv.ConvertOptions(strings_can_be_null=True, null_values=[""])
    return csv.read_csv(path, convert_options=options)


def _at_threshold(blend: AUCClassifier, X: Any, y: NDArray[Any]) -> str:
    p = blend.predict_proba(X)[:, 1]
    chosen = p >= _THRESHOLD
    return (
        f"Probabilities are calibrated: of the {chosen.sum():,} test rows with "
        f"{100 * _THRESHOLD:.0f} % or more, {100 * p[chosen].mean():.0f} % should be "
        f"positive, and {100 * y[chosen].mean():.0f} % are; they are "
        f"{100 * y[chosen].sum() / y.sum():.0f} % of all positives."
    )


def _boosting(X: Any, y: NDArray[Any], X_test: Any, seed: int) -> NDArray[Any]:
    """Return scores by LightGBM, which knows the categories."""
    from aucmax.tables.encoder import TableEncoder
    from aucmax.tables.schema import Overrides

    encoder = TableEncoder.fit(X, Overrides(encode="codes", missing="keep"))
    categories = np.flatnonzero(np.greater(encoder.schema.n_levels, 0)).tolist()
    model = build("lightgbm", seed, is_sparse=False).set_params(n_estimators=200)
    model.fit(encoder.transform(X), y, categorical_feature=categories)
    scores: NDArray[Any] = model.predict_proba(encoder.transform(X_test))[:, 1]
    return scores


def _logistic(X: Any, y: NDArray[Any], X_test: Any, seed: int) -> NDArray[Any]:
    """Return scores by logistic regression on one-hot categories."""
    from aucmax.tables.encoder import TableEncoder

    encoder = TableEncoder.fit(X)
    model = build("balanced-logistic", seed, is_sparse=True)
    model.fit(encoder.transform(X), y)
    scores: NDArray[Any] = model.decision_function(encoder.transform(X_test))
    return scores


_BASELINES = {"LightGBM, 200 rounds": _boosting, _LOGISTIC: _logistic}


def _compare_on_stream(n_rows: int, seed: int, screen: Screen) -> Comparison:
    """Train on a stream in one pass, and a baseline on all its rows."""
    X_test, y_test = _joined(rare_stream(_TEST_ROWS, seed, part=1))
    ours, seconds, done = AUCStream(random_state=seed), 0.0, 0
    looks: list[tuple[int, float]] = []  # AUC during the pass
    with screen.step("AUCStream, one pass", n_rows) as bar:
        for X, y in rare_stream(n_rows, seed, part=0):
            start = perf_counter()
            ours.partial_fit(X, y, classes=[False, True])
            seconds += perf_counter() - start
            done += len(y)
            looks.append((done, auc(y_test, ours.decision_function(X_test))))
            bar.show(done, details=f"{done:,} rows")
    with screen.step(_LOGISTIC.capitalize()):
        baseline = build("balanced-logistic", seed, is_sparse=False)
        times = [seconds, _fit(baseline, *_joined(rare_stream(n_rows, seed, part=0)))]
        models = {"AUCStream": ours, _LOGISTIC: baseline}
        scores = {
            name: model.decision_function(X_test) for name, model in models.items()
        }
        stream = Comparison.of(scores, times, y_test)
    stream.report.update(seed=seed, train_rows=n_rows, looks=looks)
    screen.print("\nA stream: AUCStream", style="bold")
    screen.print(
        f"Generated: {n_rows:,} rows, {_N_FEATURES} features of different scales, "
        f"{100 * _POSITIVES:g} % positive; {len(y_test):,} test rows. AUCStream reads "
        "raw rows once and keeps 30,000 at most; logistic regression holds all rows."
    )
    _show([stream], screen)
    return stream


def rare_stream(n_rows: int, seed: int, part: int) -> Iterator[Rows]:
    """Yield chunks of a stream with 1 % positives and features of different scales.

    Features are correlated and have heavy tails: mixtures of t-distributed numbers
    (four degrees of freedom). In half of them the positives are shifted. Scales span
    seven powers of ten, and most features lie far from zero. Streams with the same
    ``seed`` and different ``part`` have the same distribution and different rows.
    """
    rng, d = np.random.default_rng(seed), _N_FEATURES
    scale = 10.0 ** rng.uniform(-3.0, 4.0, d)
    offset = scale * rng.normal(0.0, 10.0, d)
    shift = np.where(np.arange(d) % 2 == 0, rng.normal(0.0, 0.8, d), 0.0)
    mix = np.eye(d) + rng.normal(0.0, 0.5, (d, d)) / np.sqrt(d)
    rng = np.random.default_rng([seed, part])
    for first in range(0, n_rows, _CHUNK):
        n = min(_CHUNK, n_rows - first)
        y = rng.random(n) < _POSITIVES
        X = rng.standard_t(4, (n, d)) @ mix + y[:, np.newaxis] * shift
        yield (X * scale + offset).astype(np.float32), y


def _joined(chunks: Iterator[Rows]) -> Rows:
    X, y = zip(*chunks, strict=True)
    return np.concatenate(X), np.concatenate(y)


def _fit(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Fit a model; return the seconds taken."""
    start = perf_counter()
    model.fit(X, y)
    return perf_counter() - start


def _show(comparisons: list[Comparison], screen: Screen) -> None:
    """Print the AUC of each model, and the difference to each baseline."""
    grid = table("model", "seed", "AUC", "ahead by", f"in {_ALERTS}", "seconds")
    for *_, report in comparisons:
        for model, test in zip(report["models"], [{}, *report["ahead"]], strict=True):
            ahead = "{difference:+.4f} ({low:+.4f} to {high:+.4f})" if test else ""
            grid.add_row(
                model["name"].partition(",")[0],
                str(report["seed"]),
                f"{model['auc']:.4f}",
                ahead.format(**test),
                str(model["found"]),
                f"{model['train_seconds']:.1f}",
            )
    screen.show(grid)
    screen.print(
        "Test AUC; by how much aucmax is ahead, with 95 % confidence interval (DeLong);"
        f" positives among the {_ALERTS} rows that rank highest; seconds of training. "
        "Logistic regression: balanced classes, standardised features.\n",
        style="dim",
    )


def _draw(split: Comparison, path: Path) -> None:
    from matplotlib.figure import Figure

    from aucmax.report import ROCDisplay

    figure = Figure(figsize=(6.5, 6.0), layout="constrained")
    axes = figure.subplots()
    axes.set_title("aucmax demo: who will subscribe?")
    for model in split.report["models"]:
        name = model["name"]
        score = split.scores[name]
        ROCDisplay.from_predictions(split.y, score, name=name, ax=axes, band=None)
    figure.savefig(path, dpi=150)
