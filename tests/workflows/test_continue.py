"""Streams in operation: trees in files, ``--from``, log lines."""

import json
from dataclasses import replace

import numpy as np
import pytest

import aucmax
from aucmax.io.csv_source import CsvSource
from aucmax.workflows.plan import Observer, Plan, StoppedError
from aucmax.workflows.train import train
from helpers.commands import invoke


def write(path, rows, seed=0):
    """Write a table with a nonlinear effect, a category and missing values."""
    rng = np.random.default_rng(seed)
    size, other = rng.normal(size=(2, rows)).round(3)
    kind = rng.choice(["a", "b", "c"], rows)
    odds = 2.0 * np.abs(size) - 2.0 + (kind == "b")
    label = rng.random(rows) < 1.0 / (1.0 + np.exp(-odds))
    values = np.where(rng.random(rows) < 0.05, "", other.astype(str))
    lines = zip(size, values, kind, label.astype(int), strict=True)
    body = "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in lines)
    path.write_text("size,other,kind,label\n" + body)
    return str(path)


def plan(path, **options):
    return Plan([path], "AUCStream", reader={"label": "label"}, **options)


class StopAfter(Observer):
    """Stops training after so many batches."""

    def __init__(self, batches):
        self.left = batches

    def progress(self, progress, done):
        self.left -= 1

    def listening(self):
        from contextlib import nullcontext

        return nullcontext(lambda: int(self.left <= 0))


@pytest.mark.parametrize("batches", [3, 11, 17])
def test_a_stream_with_trees_is_resumed_byte_for_byte(batches, tmp_path, monkeypatch):
    monkeypatch.setattr(CsvSource, "_block", 2000)
    path = write(tmp_path / "rows.csv", 3000)
    whole = train(plan(path), tmp_path / "whole.aucmax")
    assert whole.estimator.refits_[0] > 2
    part = tmp_path / "part.aucmax"
    with pytest.raises(StoppedError):
        train(plan(path), part, observer=StopAfter(batches))
    train(plan(path), part, resume=True)
    assert part.read_bytes() == (tmp_path / "whole.aucmax").read_bytes()


def test_rare_categories_do_not_stop_the_trees(tmp_path, monkeypatch):
    monkeypatch.setattr(CsvSource, "_block", 16_000)
    rng = np.random.default_rng(0)
    lines = (tmp_path / write(tmp_path / "rows.csv", 3000)).read_text().splitlines()
    names = ["name", *(f"name {i}" for i in rng.integers(0, 1500, 3000))]
    wide = "\n".join(f"{n},{line}" for n, line in zip(names, lines, strict=True))
    (tmp_path / "wide.csv").write_text(wide + "\n")
    result = train(plan(str(tmp_path / "wide.csv")), tmp_path / "model.aucmax")
    assert result.estimator.n_features_in_ > 2000
    assert result.estimator.refits_[1] == 3000
    first = (tmp_path / "model.aucmax").read_bytes()
    part = tmp_path / "part.aucmax"
    with pytest.raises(StoppedError):
        train(plan(str(tmp_path / "wide.csv")), part, observer=StopAfter(4))
    train(plan(str(tmp_path / "wide.csv")), part, resume=True)
    assert part.read_bytes() == first


def test_training_ends_with_a_refit(tmp_path):
    path = write(tmp_path / "rows.csv", 3000)
    result = train(plan(path), tmp_path / "model.aucmax")
    assert result.estimator.refits_[1] == 3000
    assert result.progress.auc > 0.65


def test_training_continues_from_a_model(tmp_path):
    first = write(tmp_path / "first.csv", 2000)
    second = write(tmp_path / "second.csv", 1500, seed=1)
    start, end = tmp_path / "first.aucmax", tmp_path / "second.aucmax"
    one = train(plan(first), start)
    two = train(Plan([second], start=str(start)), end)
    assert two.progress.rows == 3500
    assert two.progress.positives > one.progress.positives
    assert two.estimator._race.n_rows > 2900
    expected = aucmax.load(start)
    expected.classes_ = np.array([False, True])
    rows = [batch for batch in _batches(second, start)]
    for X, y in rows:
        expected.partial_fit(X, y)
    expected.finish()
    X = np.vstack([X.toarray() if hasattr(X, "toarray") else X for X, _ in rows])
    np.testing.assert_array_equal(
        aucmax.load(end).decision_function(X), expected.decision_function(X)
    )


def _batches(path, model):
    from aucmax.io.open_data import reopen
    from aucmax.tables.labels import Task
    from aucmax.workflows.models import load_with_recipe

    _, recipe = load_with_recipe(model)
    task = Task.from_json(recipe["task"])
    for batch in reopen([path], recipe["input"]).batches():
        labelled = batch.labelled(task)
        yield labelled.rows, labelled.labels


def test_a_continued_run_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(CsvSource, "_block", 2000)
    first = write(tmp_path / "first.csv", 1500)
    second = write(tmp_path / "second.csv", 1500, seed=1)
    start = tmp_path / "first.aucmax"
    train(plan(first), start)
    onward = Plan([second], start=str(start))
    train(onward, tmp_path / "whole.aucmax")
    part = tmp_path / "part.aucmax"
    with pytest.raises(StoppedError):
        train(onward, part, observer=StopAfter(5))
    with pytest.raises(ValueError, match="start was"):
        train(replace(onward, start=None), part, resume=True)
    train(onward, part, resume=True)
    assert part.read_bytes() == (tmp_path / "whole.aucmax").read_bytes()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"algorithm": "SPAM"}, "--algorithm does not work with --from"),
        ({"params": {"half_life": 9}}, "--param does not work with --from"),
        ({"positive": "1"}, "--positive does not work"),
        ({"reader": {"label": "kind"}}, "--input or --label does not"),
    ],
)
def test_the_model_fixes_the_options(options, why, tmp_path):
    path = write(tmp_path / "rows.csv", 300)
    train(plan(path), tmp_path / "m.aucmax")
    with pytest.raises(ValueError, match=why):
        train(
            Plan([path], start=str(tmp_path / "m.aucmax"), **options),
            tmp_path / "n.aucmax",
        )


def test_models_that_cannot_continue_are_refused(tmp_path):
    path = write(tmp_path / "rows.csv", 300)
    output = tmp_path / "n.aucmax"
    batch = replace(plan(path), algorithm="BAM")
    train(batch, tmp_path / "bam.aucmax")
    with pytest.raises(ValueError, match="BAM cannot continue training"):
        train(Plan([path], start=str(tmp_path / "bam.aucmax")), output)
    aucmax.AUCStream().partial_fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "arrays")
    with pytest.raises(ValueError, match="not trained from files"):
        train(Plan([path], start=str(tmp_path / "arrays")), output)


def test_log_lines_without_a_terminal(tmp_path, monkeypatch):
    from aucmax.cli import terminal

    monkeypatch.setattr(CsvSource, "_block", 2000)
    monkeypatch.setattr(terminal, "_LOG_SECONDS", 0.0)
    path, model = write(tmp_path / "rows.csv", 3000), tmp_path / "m.aucmax"
    options = "--algorithm", "AUCStream", "--label", "label"
    result = invoke("train", path, "-o", model, *options)
    assert result.exit_code == 0, result.output
    line = result.stderr.splitlines()[-1]
    assert ", AUC 0." in line
    assert "refits of trees, last at row" in line
    more = invoke("train", path, "-o", tmp_path / "n.aucmax", "--from", model, "--json")
    assert more.exit_code == 0, more.output
    assert json.loads(more.stdout)["rows"] == 6000
    assert not more.stderr


def test_fast_is_linear(tmp_path, monkeypatch):
    monkeypatch.setattr("aucmax.workflows.run.choose", lambda *_: "AUCStream")
    path = write(tmp_path / "rows.csv", 300)
    for algorithm, nonlinear in (("fast", False), ("auto", True)):
        chosen = replace(plan(path), algorithm=algorithm)
        result = train(chosen, tmp_path / f"{algorithm}.aucmax")
        assert result.estimator.nonlinear is nonlinear
