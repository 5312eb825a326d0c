"""Training from files: the same model however often a run is interrupted."""

import errno
import io
import json
import os
import random
import signal
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse

import aucmax
from aucmax.io import text
from aucmax.io.batch import Batch, Position
from aucmax.io.csv_source import CsvSource  # before BLOCK is patched: it copies it
from aucmax.storage.state import save_model
from aucmax.workflows import checkpoint
from aucmax.workflows.choose import build, choose
from aucmax.workflows.holdout import held_out
from aucmax.workflows.models import load_with_recipe
from aucmax.workflows.plan import Observer, Plan, StoppedError
from aucmax.workflows.run import _file_digest
from aucmax.workflows.train import train
from helpers.data import scattered


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    # Readers that are imported later would keep the number.
    for name in ("arrow_source", "csv_source", "json_lines"):
        import_module(f"aucmax.io.{name}")
    monkeypatch.setattr(text, "BLOCK", 500)


def lines(X, y):
    return [
        f"{2 * label - 1:+d} "
        + " ".join(
            f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()) if value
        )
        for row, label in zip(X, y, strict=True)
    ]


@pytest.fixture
def data(tmp_path):
    X, y = scattered(300, 12)
    X[:100, 7:] = 0.0  # some features come later
    path = tmp_path / "rows.svm"
    path.write_text("\n".join(lines(X, y)) + "\n")
    return str(path), X, y


def model_of(plan, path, **options):
    train(plan, path, **options)
    return path.read_bytes()


class Impatient(Observer):
    """Asks a run to stop after so many chunks."""

    def __init__(self, chunks):
        self._chunks = chunks

    @contextmanager
    def listening(self):
        left = self._chunks

        def stop():
            nonlocal left
            left -= 1
            return 130 if left <= 0 else 0

        yield stop


@pytest.mark.parametrize("name", ["SPAM", "PSAM", "OAM", "LeastSquaresAUC"])
def test_a_stream_is_partial_fit(data, tmp_path, name):
    path, X, y = data
    result = train(Plan([path], name, passes=1), tmp_path / "m.aucmax")
    expected = build(name, {}, 0).partial_fit(sparse.csr_array(X), y == 1)
    assert np.allclose(result.estimator.coef_, expected.coef_, rtol=1e-12, atol=0)
    assert result.progress.rows == 300
    assert result.progress.chunks > 5
    assert result.estimator.n_features_in_ == 12
    loaded = aucmax.load(tmp_path / "m.aucmax")
    assert np.array_equal(loaded.coef_, result.estimator.coef_)


@pytest.mark.parametrize(("name", "passes"), [("SPAM", 5), ("LeastSquaresAUC", 1)])
def test_passes_if_nobody_says_how_many(data, tmp_path, name, passes):
    path, *_ = data
    result = train(Plan([path], name), tmp_path / "m.aucmax")
    assert result.progress.passes == passes
    assert result.progress.steps == 300 * passes


def test_other_learners_get_all_rows(data, tmp_path):
    path, X, y = data
    result = train(Plan([path], "bam"), tmp_path / "m.aucmax")
    expected = aucmax.BAM().fit(sparse.csr_array(X), y == 1)
    assert np.array_equal(result.estimator.coef_, expected.coef_)


@pytest.mark.parametrize("name", ["SPAM", "PSAM", "CBR"])
def test_stopped_anywhere_and_resumed(data, tmp_path, name):
    path, *_ = data
    plan = Plan([path], name, passes=2, holdout=0.2)
    whole = model_of(plan, tmp_path / "whole.aucmax")
    output = tmp_path / "parts.aucmax"
    stops = 0
    while True:
        try:
            train(plan, output, observer=Impatient(3), resume=stops > 0)
            break
        except StoppedError:
            stops += 1
        assert (tmp_path / "parts.aucmax.checkpoint").exists()
        assert not output.exists()
    assert stops > 5
    assert output.read_bytes() == whole
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "parts.aucmax",
        "rows.svm",
        "whole.aucmax",
    ]


def json_lines(path, X, y):
    """Write rows as JSON lines, with a category and lines that end anywhere."""
    with open(path, "w") as file:
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            values = {f"x{j}": value for j, value in enumerate(row) if value}
            kind = {"kind": ["a", "b", "\u00e9"][len(values) % 3]}
            file.write(json.dumps({**values, **kind, "y": int(label)}) + "\n")
    return str(path)


@pytest.mark.parametrize("form", ["svmlight", "jsonl"])
def test_killed_at_random_moments_and_resumed(data, tmp_path, form):
    path, X, y = data
    plan, n_kills = Plan([path], "SPAM", passes=4), 20
    if form == "jsonl":
        path = json_lines(tmp_path / "rows.jsonl", X[:150], y[:150])
        plan, n_kills = Plan([path], "SPAM", passes=3, reader={"label": "y"}), 8
    whole = model_of(plan, tmp_path / "whole.aucmax", checkpoint_rows=1)
    start = time.monotonic()  # now that all is compiled
    model_of(plan, tmp_path / "whole.aucmax", checkpoint_rows=1)
    needed = time.monotonic() - start
    output = tmp_path / "parts.aucmax"
    checkpoint = tmp_path / "parts.aucmax.checkpoint"
    kills, resumed, rng = 0, 0, random.Random(0)
    for attempt in range(200):
        resumed += checkpoint.exists()
        child = os.fork()
        if child == 0:
            try:
                train(plan, output, checkpoint_rows=1, resume=attempt > 0)
            finally:
                os._exit(0)
        # To fork takes its time, too: some children get far, some nowhere.
        time.sleep(needed * rng.uniform(0.02, 0.6))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        kills += os.WIFSIGNALED(status)
        if kills >= n_kills and resumed >= 5:
            break
        if output.exists():  # done too soon: once more
            assert output.read_bytes() == whole
            output.unlink()
    assert kills >= n_kills
    assert resumed >= 5
    train(plan, output, resume=True)
    assert output.read_bytes() == whole
    left = {file.name for file in tmp_path.iterdir()} - {"rows.svm", "rows.jsonl"}
    assert left == {"parts.aucmax", "whole.aucmax"}


def test_a_run_left_half_done_is_not_overwritten(data, tmp_path):
    path, *_ = data
    output = tmp_path / "m.aucmax"
    plan = Plan([path], "SPAM", passes=1)
    with pytest.raises(StoppedError):
        train(plan, output, observer=Impatient(2))
    with pytest.raises(FileExistsError, match="--resume"):
        train(plan, output)
    with pytest.raises(ValueError, match="seed was 0, is 1"):
        train(replace(plan, seed=1), output, resume=True)
    with open(path, "a") as file:
        file.write("+1 1:1\n")
    with pytest.raises(ValueError, match="size was"):
        train(plan, output, resume=True)


def test_data_that_change_between_two_runs_are_noticed(data, tmp_path):
    path, *_ = data
    output = tmp_path / "m.aucmax"
    plan = Plan([path], "SPAM", passes=1)
    with pytest.raises(StoppedError):
        train(plan, output, observer=Impatient(2))
    rows = Path(path).read_text()
    before, after = rows.splitlines()[-2:]
    other = rows.replace(f"{before}\n{after}\n", f"{after}\n{before}\n")
    assert len(other) == len(rows)
    assert other != rows
    Path(path).write_text(other)
    with pytest.raises(ValueError, match="have changed since, though their size is"):
        train(plan, output, resume=True)
    Path(path).write_text(rows)
    train(plan, output, resume=True)


def test_where_a_large_file_is_looked_at(tmp_path):
    path = tmp_path / "rows"
    content = bytes(4_000_000)
    path.write_bytes(content)
    first = _file_digest(path)
    for place in (0, 65_535, 2_285_714, 3_999_999):
        path.write_bytes(content[:place] + b"1" + content[place + 1 :])
        assert _file_digest(path) != first
    assert _file_digest(tmp_path / "absent") == ""


def test_a_damaged_checkpoint(data, tmp_path):
    path, *_ = data
    output, checkpoint = tmp_path / "m.aucmax", tmp_path / "m.aucmax.checkpoint"
    plan = Plan([path], "SPAM", passes=1)
    with pytest.raises(StoppedError):
        train(plan, output, observer=Impatient(2))
    estimator, recipe = load_with_recipe(checkpoint)
    for key, value in (("plan", 7), ("progress", {}), ("passes", "x")):
        kept = recipe["checkpoint"] | {key: value}
        save_model(estimator, checkpoint, recipe=recipe | {"checkpoint": kept})
        with pytest.raises(ValueError, match="is a damaged checkpoint"):
            train(plan, output, resume=True)
    save_model(estimator, checkpoint, recipe=recipe)
    train(plan, output, resume=True)


@pytest.mark.parametrize("algorithm", ["SPAM", "BAM"])
def test_an_output_that_cannot_be_written_is_found_at_once(
    algorithm, data, tmp_path, monkeypatch
):
    path, *_ = data

    def refused(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "x")

    def read(*_, **__):
        pytest.fail("data were read")

    monkeypatch.setattr("aucmax.workflows.run.open_data", read)
    plan = Plan([path], algorithm)
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        train(plan, tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        train(plan, tmp_path / "no" / "m.aucmax")
    with monkeypatch.context() as m:
        m.setattr(os, "open", refused)  # root may write anywhere
        with pytest.raises(PermissionError) as caught:
            train(plan, tmp_path / "m.aucmax")
    assert caught.value.filename == str(tmp_path / "m.aucmax")


def test_a_checkpoint_that_somebody_else_has_written_stays(data, tmp_path):
    path, *_ = data
    output, checkpoint = tmp_path / "m.aucmax", tmp_path / "m.aucmax.checkpoint"

    class Other(Observer):
        warned: ClassVar[list[str]] = []

        def progress(self, progress, done):
            checkpoint.write_text("theirs")

        def fitting(self, name):
            checkpoint.write_text("theirs")

        def warn(self, text):
            self.warned.append(text)

    for algorithm in ("SPAM", "BAM"):
        plan = Plan([path], algorithm)
        train(plan, output, observer=Other(), checkpoint_rows=1)
        assert checkpoint.read_text() == "theirs"
        checkpoint.unlink()
    assert "belongs to another run" in Other.warned[0]


def test_a_model_is_not_written_over_its_data(data, tmp_path):
    path, *_ = data
    plan = Plan([path], "SPAM", passes=1)
    with pytest.raises(FileExistsError, match="Refusing to overwrite input file"):
        train(plan, Path(path))
    assert os.listdir(tmp_path) == ["rows.svm"]


def test_bad_lines(data, tmp_path):
    path, X, y = data
    good = lines(X, y)
    bad = ["+1 0:1", "maybe 1:2", "-1 3:x"]
    mixed = good[:100] + bad[:1] + good[100:200] + bad[1:] + good[200:]
    spoilt = tmp_path / "spoilt.svm"
    spoilt.write_text("\n".join(mixed))
    whole = train(Plan([path], "SPAM", passes=2), tmp_path / "whole.aucmax")
    output = tmp_path / "m.aucmax"
    plan = Plan([str(spoilt)], "SPAM", passes=2)
    with pytest.raises(ValueError, match=r"spoilt.svm, line 101.*--on-bad-line skip"):
        train(plan, output)
    assert not output.exists()
    result = train(replace(plan, on_bad_line="skip"), output)
    assert result.progress.bad == 3
    assert np.array_equal(result.estimator.coef_, whole.estimator.coef_)


def test_labels_nobody_knows_are_bad_lines(data, tmp_path):
    path, X, y = data
    spoilt = tmp_path / "spoilt.svm"
    good = lines(X, y)
    spoilt.write_text("\n".join([*good[:50], "7 1:1", *good[50:]]))
    plan = Plan([str(spoilt)], "SPAM", passes=1)
    with pytest.raises(ValueError, match=r"line 51.*7"):
        train(plan, tmp_path / "m.aucmax")
    whole = train(Plan([path], "SPAM", passes=1), tmp_path / "whole.aucmax")
    result = train(replace(plan, on_bad_line="skip"), tmp_path / "m.aucmax")
    assert result.progress.bad == 1
    assert np.array_equal(result.estimator.coef_, whole.estimator.coef_)


def test_progressive_validation(data, tmp_path):
    path, *_ = data
    result = train(Plan([path], "SPAM", passes=3), tmp_path / "m.aucmax")
    model, wins, pairs = aucmax.SPAM(), 0.0, 0.0
    for chunk in text_chunks(path):
        some = chunk.rows.toarray()
        some = np.pad(some, ((0, 0), (0, 12 - some.shape[1])))
        up = chunk.labels > 0
        if hasattr(model, "coef_") and up.any() and not up.all():
            score = some @ model.coef_[0]
            wins += np.sum(score[up][:, None] > score[~up])
            wins += 0.5 * np.sum(score[up][:, None] == score[~up])
            pairs += up.sum() * (~up).sum()
        model.partial_fit(some, up, classes=[False, True])
    assert result.progress.auc == pytest.approx(wins / pairs, rel=1e-9)


def test_a_race_judges_itself(data, tmp_path):
    path, *_ = data
    result = train(Plan([path], "AUCStream", passes=2), tmp_path / "m.aucmax")
    once = train(Plan([path], "AUCStream", passes=1), tmp_path / "once.aucmax")
    wins, pairs = once.estimator.progressive_auc
    assert once.progress.auc == wins / pairs
    assert result.progress.auc == once.progress.auc  # the first pass counts


def text_chunks(path):
    from aucmax.io.open_data import open_data

    return open_data([path]).batches()


def test_rows_held_out_are_not_learnt(data, tmp_path):
    path, X, y = data
    plan = Plan([path], "SPAM", passes=2, holdout=0.3, seed=5)
    result = train(plan, tmp_path / "m.aucmax")
    out = held_out(X, 0.3, 5)
    assert result.progress.held_out == out.sum() == result.judged["rows"]
    expected = build("SPAM", {}, 5)
    for _ in range(2):
        expected.partial_fit(sparse.csr_array(X[~out]), y[~out] == 1)
    assert np.array_equal(result.estimator.coef_, expected.coef_)
    area = aucmax.metrics.auc(
        y[out], expected.decision_function(sparse.csr_array(X[out]))
    )
    assert result.judged["auc"]["value"] == pytest.approx(area)
    batch = train(replace(plan, algorithm="BAM"), tmp_path / "b.aucmax")
    assert batch.judged["rows"] == out.sum()


def test_who_is_held_out():
    X, _ = scattered(4000, 12)
    out = held_out(X, 0.25, 0)
    assert 0.2 < out.mean() < 0.3
    assert np.array_equal(out, held_out(sparse.csr_array(X), 0.25, 0))
    assert np.array_equal(out[::-1], held_out(X[::-1], 0.25, 0))
    assert not np.array_equal(out, held_out(X, 0.25, 1))
    assert (out <= held_out(X, 0.5, 0)).all()
    X = np.concatenate([X, X])
    assert np.array_equal(held_out(X, 0.25, 0), np.concatenate([out, out]))


def test_a_test_file(data, tmp_path):
    path, *_ = data
    other = tmp_path / "test.svm"
    A, b = scattered(200, 12, seed=9)
    other.write_text("\n".join([*lines(A, b), "+1 1:1 99:3"]))
    result = train(Plan([path], "SPAM", passes=1), tmp_path / "m", test=[str(other)])
    scores = result.estimator.decision_function(
        np.concatenate([A, np.eye(12)[:1]])  # feature 99 is unknown to the model
    )
    area = aucmax.metrics.auc([*b, 1], scores)
    assert result.judged["auc"]["value"] == pytest.approx(area)


def test_a_model_that_cannot_be_judged_is_there(data, tmp_path):
    """One class alone cannot be ranked."""
    path, *_ = data
    few, output = tmp_path / "few.svm", tmp_path / "m.aucmax"
    few.write_text("1 1:2\n1 1:3\n")
    with pytest.raises(ValueError, match=r"m\.aucmax is written, but could not be"):
        train(Plan([path], "SPAM"), output, test=[str(few)])
    assert output.exists()


def test_a_model_says_where_it_comes_from(data, tmp_path):
    path, _, y = data
    train(Plan([path], "SPAM", passes=1), tmp_path / "m.aucmax")
    model, recipe = load_with_recipe(tmp_path / "m.aucmax")
    assert recipe["training"]["rows"] == 300
    assert recipe["training"]["positives"] == int(np.sum(y))
    assert recipe["input"]["format"] == "svmlight"
    model.save(tmp_path / "plain.aucmax")
    assert load_with_recipe(tmp_path / "plain.aucmax")[1] is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "No rows"),
        ("+1 1:2\n+1 2:1\n", "both classes are needed"),
        ("hello\n", "No rows"),
        ("3 1:1\n4 1:2\n5 1:1\n", "positive=LABELS"),
    ],
)
@pytest.mark.parametrize("name", ["SPAM", "BAM"])
def test_data_that_teach_nothing(tmp_path, name, content, text):
    path = tmp_path / "x.svm"
    path.write_text(content)
    with pytest.raises(ValueError, match=text):
        train(Plan([str(path)], name, on_bad_line="skip"), tmp_path / "m.aucmax")
    assert [file.name for file in tmp_path.iterdir()] == ["x.svm"]


def test_which_algorithm():
    class Data:
        size = 10_000_000

    def first(n, d, done):
        X = np.zeros((n, d))
        return Batch(X, None, None, np.arange(n), [], Position(), "", done, None, {})

    assert choose(Data, first(100, 10, 20_000)) == "AUCClassifier"  # 50 000 rows
    assert choose(Data, first(100, 10, 20_000), fast=True) == "BAMCV"
    assert choose(Data, first(100, 10, 5_000_000)) == "BAMCV"  # 200
    assert choose(Data, first(100, 3000, 1_000_000)) == "BAMCV"  # wide
    assert choose(Data, first(100, 10, 10_000)) == "AUCClassifier"
    assert choose(Data, first(100, 10, 9000)) == "AUCClassifier"
    assert choose(Data, first(100, 10, 9000), fast=True) == "BAMCV"
    assert choose(Data, first(100, 10, 400), fast=True) == "LeastSquaresAUCCV"
    assert choose(Data, first(100, 600, 40_000), fast=True) == "BAMCV"
    assert choose(Data, first(100, 600, 1000)) == "AUCStream"
    Data.size = 10**15
    assert choose(Data, first(100, 10, 10_000)) == "AUCStream"
    Data.size = None
    assert choose(Data, first(100, 10, 10_000)) == "AUCStream"


def test_names_and_parameters():
    assert build("spam", {"l2": 0.5}, 3).get_params()["random_state"] == 3
    with pytest.raises(ValueError, match="no algorithm 'magic'"):
        build("magic", {}, 0)
    with pytest.raises(ValueError, match=r"no parameter 'l3'.* l2"):
        build("SPAM", {"l3": 1}, 0)


def test_a_full_disk_does_not_stop_training(data, tmp_path, monkeypatch):
    path, *_ = data
    whole = model_of(Plan([path], "SPAM", passes=2), tmp_path / "whole.aucmax")
    write, warnings = checkpoint.save_model, []

    class Listener(Observer):
        def warn(self, text):
            warnings.append(text)

    def save(estimator, path, **header):
        if path.name.endswith(".checkpoint"):
            raise OSError("No space left on device")
        write(estimator, path, **header)

    monkeypatch.setattr(checkpoint, "save_model", save)
    parts = model_of(
        Plan([path], "SPAM", passes=2),
        tmp_path / "parts.aucmax",
        checkpoint_rows=50,
        observer=Listener(),
    )
    assert parts == whole
    assert "No space left" in warnings[0]


def test_the_first_block_of_a_pipe_may_have_one_class_only(tmp_path, monkeypatch):
    """It is small; labels that say nothing alone are settled by more of them."""
    X, y = scattered(300, 12)
    order = np.argsort(y, kind="stable")
    classes = np.where(y[order] == 1, np.where(np.arange(300) % 2, 5, 4), 3)
    rows = [
        line.replace(line.split()[0], str(label), 1)
        for line, label in zip(lines(X[order], y[order]), classes, strict=True)
    ]
    monkeypatch.setattr(text, "_FIRST", 100)
    found = {}
    for positive, wanted in ((None, (3, 4)), ("@half", (3, 4, 5)), (None, (3,))):
        kept = [row for row in rows if int(row.split()[0]) in wanted]
        stdin = SimpleNamespace(buffer=io.BytesIO("\n".join(kept).encode()))
        monkeypatch.setattr("sys.stdin", stdin)
        plan = Plan(["-"], "SPAM", positive=positive, reader={"format": "svmlight"})
        if wanted == (3,):
            with pytest.raises(ValueError, match="All labels of the first rows are 3"):
                train(plan, tmp_path / "m.aucmax")
        else:
            result = train(plan, tmp_path / "m.aucmax")
            found[wanted] = result.recipe["task"]
            assert result.progress.rows == len(kept)
    assert found == {
        (3, 4): {"positive": [4.0], "negative": [3.0]},
        (3, 4, 5): {"positive": [3.0], "negative": [4.0, 5.0], "halves": True},
    }


@pytest.mark.parametrize("format", ["svmlight", "csv"])
def test_a_pipe_stopped_anywhere_and_resumed(data, tmp_path, monkeypatch, format):
    """Blocks grow with what came before; who reads on finds them as they were."""
    path, X, y = data
    content = Path(path).read_bytes()
    reader = {"format": format}
    if format == "csv":
        rows = [
            ",".join(map(repr, row)) + f",one of {k % 7}{k % 7}"
            for k, row in enumerate(np.c_[X, y].tolist())
        ]
        names = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y", "note"])
        content = "\n".join([names, *rows]).encode()
        reader |= {"label": "y", "text": ["note"]}
    monkeypatch.setattr(text, "BLOCK", 3000)
    monkeypatch.setattr(text, "_FIRST", 200)
    monkeypatch.setattr(CsvSource, "_block", 3000)
    plan = Plan(["-"], "SPAM", reader=reader)
    whole, output = tmp_path / "whole.aucmax", tmp_path / "parts.aucmax"

    def go(path, step, **options):
        class Pieces(io.BytesIO):
            def readinto(self, view):
                return super().readinto(view[:step])

        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Pieces(content)))
        return train(plan, path, **options)

    assert go(whole, 100_000).progress.chunks > 6
    stops = 0
    while True:
        try:
            assert go(output, 17, observer=Impatient(2), resume=stops > 0).resumed
            break
        except StoppedError:
            stops += 1
    assert stops > 2
    assert output.read_bytes() == whole.read_bytes()
