"""``aucmax train``."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd
import pytest

import aucmax
from aucmax import BAM
from aucmax.blend.boosting import BoostedTrees
from aucmax.blend.crossfit import Member
from aucmax.cli.options import parameters, reader_options
from aucmax.metrics._ranking import with_interval
from helpers.commands import fields, invoke, table, write_table
from helpers.data import scattered


@pytest.fixture
def rows(tmp_path):
    X, y = scattered(300, 12)
    path = tmp_path / "rows.svm"
    path.write_text(
        "".join(
            f"{2 * label - 1} "
            + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v)
            + "\n"
            for row, label in zip(X, y, strict=True)
        )
    )
    return path


def test_train_on_a_table(tmp_path):
    data = write_table(tmp_path / "clicks.csv", table())
    model = tmp_path / "clicks.aucmax"
    result = invoke(
        *("train", data, "-o", model, "--label", "clicked", "--holdout", "0.3"),
        *("--algorithm", "SPAM", "--param", "l2=0.01", "--json"),
    )
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["algorithm"] == "SPAM"
    assert told["rows"] + told["held_out"] == 300
    area = told["judged"]["auc"]
    assert 0.5 < area["low"] < area["value"] < area["high"] <= 1.0
    assert aucmax.load(model).l2 == 0.01


def test_text_output(rows, tmp_path):
    model = tmp_path / "m.aucmax"
    result = invoke(
        "train", rows, "-o", model, "--algorithm", "spam", "--param", "max_iter=2"
    )
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "SPAM trained on 300 rows with 12 features" in said
    assert "2 passes" in said
    assert str(model) in result.stdout.replace("\n", "")


def test_the_same_seed_gives_the_same_file(rows, tmp_path):
    models = [tmp_path / f"{k}.aucmax" for k in range(2)]
    for model in models:
        options = "--algorithm", "PSAM", "--seed", "4"
        assert invoke("train", rows, "-o", model, *options).exit_code == 0
    assert models[0].read_bytes() == models[1].read_bytes()


def test_malformed_lines(rows, tmp_path):
    with open(rows, "a") as file:
        file.write("+1 3:oops\n")
    model = tmp_path / "m.aucmax"
    command = "train", rows, "-o", model, "--algorithm", "SPAM"
    result = invoke(*command)
    assert result.exit_code == 1
    assert "rows.svm, line 301, column 3" in result.stderr
    assert "oops" in result.stderr
    assert not model.exists()
    result = invoke(*command, "--on-bad-line", "skip")
    assert result.exit_code == 0, result.output
    assert "Skipped 1 malformed line." in result.stdout
    assert invoke(*command, "--on-bad-line", "ignore").exit_code == 2


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--algorithm", "magic"], "magic"),
        (["--param", "l2"], "KEY=VALUE"),
        (["--param", "l2=-1", "--algorithm", "SPAM"], "l2"),
        (["--param", "depth=3", "--algorithm", "SPAM"], "depth"),
        (["--label", "y"], "label"),
        (["--input", "format=excel"], "excel"),
        (["--input", "colour=red"], "colour"),
        (["--positive", "7", "--algorithm", "SPAM"], "both classes"),
    ],
)
def test_invalid_options_are_errors(rows, tmp_path, options, word):
    result = invoke("train", rows, "-o", tmp_path / "m.aucmax", *options)
    assert result.exit_code == 1
    assert word in result.stderr
    assert "Traceback" not in result.output
    assert [file.name for file in tmp_path.iterdir()] == ["rows.svm"]


def test_missing_files_and_folders(rows, tmp_path):
    result = invoke("train", tmp_path / "none.svm", "-o", tmp_path / "m.aucmax")
    assert result.exit_code == 1
    assert "none.svm" in result.stderr
    result = invoke("train", rows, "-o", tmp_path / "nowhere" / "m.aucmax")
    assert result.exit_code == 1
    assert "nowhere" in result.stderr


def test_help_fits_on_a_screen():
    result = invoke("train", "-h")
    lines = result.stdout.splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80
    assert "Example: aucmax train" in result.stdout


def test_parsing_of_settings():
    given = ["l2=0.5", "loss=logistic", "shuffle=false", "l2s=[1, 2]"]
    assert parameters(given, "--param") == {
        "l2": 0.5,
        "loss": "logistic",
        "shuffle": False,
        "l2s": [1, 2],
    }
    with pytest.raises(ValueError, match="twice"):
        parameters(["a=1", "a=2"], "--param")
    assert reader_options(["drop=a,b"], label="y", missing=None) == {
        "drop": ["a", "b"],
        "label": "y",
    }
    with pytest.raises(ValueError, match="twice"):
        reader_options(["label=x"], label="y")


def shell(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "aucmax", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def test_interrupted_pipe_is_resumed(rows, tmp_path):
    """Training is stopped while it waits for data."""
    model = tmp_path / "m.aucmax"
    checkpoint = tmp_path / "m.aucmax.checkpoint"
    command = "train", "-", "-o", model, "--algorithm", "SPAM"
    command += "--checkpoint-seconds", 0
    text = rows.read_bytes()
    process = shell(*command)
    # More than the first blocks, which are small.
    block = text * ((1 << 20) // len(text))
    process.stdin.write(block)
    process.stdin.flush()
    for _ in range(600):
        if checkpoint.exists():
            break
        time.sleep(0.1)
    time.sleep(0.5)  # until all data so far are read
    process.send_signal(signal.SIGINT)
    process.wait(60)
    complaint = process.stderr.read().decode()
    process.stdin.close()
    assert process.returncode == 130, complaint
    assert "--resume" in complaint
    assert checkpoint.exists()
    assert not model.exists()
    process = shell(*command, "--resume")
    process.communicate(block)
    assert process.returncode == 0
    assert not checkpoint.exists()
    whole = tmp_path / "whole.aucmax"
    invoke("train", "-", "-o", whole, "--algorithm", "SPAM", input=block)
    assert model.read_bytes() == whole.read_bytes()


def test_killed_training_is_resumed(rows, tmp_path):
    """Two kills do not change the model file."""
    model, whole = tmp_path / "m.aucmax", tmp_path / "whole.aucmax"
    checkpoint = tmp_path / "m.aucmax.checkpoint"
    options = "--algorithm", "SPAM", "--param", "max_iter=300"
    options += "--checkpoint-seconds", 0
    kept = None
    for attempt in range(2):
        process = shell("train", rows, "-o", model, *options, *["--resume"][:attempt])
        for _ in range(600):
            now = checkpoint.read_bytes() if checkpoint.exists() else None
            if now != kept or process.poll() is not None:
                break
            time.sleep(0.05)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not model.exists()
        kept = checkpoint.read_bytes()
    done = invoke("train", rows, "-o", model, *options[:-2], "--resume")
    assert done.exit_code == 0
    assert not checkpoint.exists()
    invoke("train", rows, "-o", whole, *options[:-2])
    assert model.read_bytes() == whole.read_bytes()
    assert {file.name for file in tmp_path.iterdir()} == {
        *("rows.svm", "m.aucmax", "whole.aucmax")
    }


@pytest.mark.parametrize("positive", [">0", "@half", "-1"])
def test_rules_for_labels(rows, tmp_path, positive):
    model = tmp_path / "m.aucmax"
    options = "--algorithm", "SPAM", "--positive=" + positive, "--json"
    told = json.loads(invoke("train", rows, "-o", model, *options).stdout)
    labels = [float(line.split()[0]) for line in rows.read_text().splitlines()]
    above = sum(label > 0 for label in labels)
    assert told["positives"] == (above if positive == ">0" else 300 - above)


def test_from_pipe_to_pipe(rows, tmp_path):
    model = tmp_path / "m.aucmax"
    train = shell("train", "-", "-o", model, "--json")
    said, _ = train.communicate(rows.read_bytes())
    told = json.loads(said)
    assert told["algorithm"] == "AUCStream"
    assert [line["member"][:3] for line in told["leaderboard"]].count("OAM") == 4
    blend, *members = told["leaderboard"]
    assert (blend["member"], blend["weight"]) == ("blend", 1.0)
    assert sum(line["weight"] for line in members) == pytest.approx(1.0)
    assert train.returncode == 0
    score = invoke("score", model, rows)  # of a pipe: see test_score.py
    assert score.exit_code == 0
    scores = np.array([float(line) for line in score.stdout.split()])
    assert scores.shape == (300,)
    evaluate = shell("evaluate", model, "-", "--json")
    told, _ = evaluate.communicate(rows.read_bytes())
    named = tmp_path / "pipe"  # a pipe by its name
    os.mkfifo(named)
    score = shell("score", model, named)
    named.write_bytes(rows.read_bytes())
    assert [float(line) for line in score.communicate()[0].split()] == scores.tolist()
    labels = [line.split()[0] for line in rows.read_text().splitlines()]
    expected = aucmax.metrics.auc(np.array(labels, float), scores)
    assert json.loads(told)["auc"]["value"] == pytest.approx(expected)


def test_a_full_disk(rows, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    model = tmp_path / "m.aucmax"
    assert invoke("train", rows, "-o", model, "--algorithm", "SPAM").exit_code == 0
    result = invoke("score", model, rows, "-o", "/dev/full")
    assert result.exit_code == 1
    assert "/dev/full" in result.stderr


def test_convergence_warning_is_a_note(rows, tmp_path):
    result = invoke(
        *("train", rows, "-o", tmp_path / "m.aucmax", "--algorithm", "BAM"),
        *("--param", "max_iter=1", "--param", "tol=1e-9"),
    )
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("Note: BAM has not converged within max_iter=1: ")
    assert result.stderr.count("\n") == 1


def test_data_are_not_overwritten(rows, tmp_path):
    before = rows.read_bytes()
    link = tmp_path / "link.svm"
    link.symlink_to(rows)
    for output in (rows, link):
        result = invoke("train", rows, "-o", output, "--algorithm", "SPAM")
        assert result.exit_code == 1
        assert f"Refusing to overwrite input file {output}" in result.stderr
    other = tmp_path / "other.svm"
    other.write_bytes(before)
    assert invoke("train", rows, "-o", other, "--test", other).exit_code == 1
    assert rows.read_bytes() == other.read_bytes() == before


def test_test_data_are_checked_before_training(rows, tmp_path):
    model = tmp_path / "model.aucmax"
    command = ("train", rows, "-o", model, "--algorithm", "SPAM")
    absent = invoke(*command, "--test", tmp_path / "absent.svm")
    assert absent.exit_code == 1
    assert "no such file" in absent.stderr
    other = write_table(tmp_path / "clicks.csv", table(20))
    mismatch = invoke(*command, "--test", other)
    assert mismatch.exit_code == 1
    assert "csv data, but the model was trained on svmlight data" in mismatch.stderr
    tables = ("train", other, "-o", model, "--label", "clicked", "--algorithm", "SPAM")
    narrow = write_table(
        tmp_path / "narrow.csv", ["1,2,no"], header="age,income,clicked"
    )
    unlabelled = write_table(
        tmp_path / "no.csv", ["1,York,2"], header="age,town,income"
    )
    for data, message in ((narrow, "no column 'town'"), (unlabelled, "no labels")):
        result = invoke(*tables, "--test", data)
        assert result.exit_code == 1
        assert message in result.stderr
        assert "written" not in result.stderr
    one = write_table(tmp_path / "one.csv", [line for line in table() if "no" in line])
    result = invoke(*tables, "--test", one)
    assert "is written, but could not be evaluated: all" in result.stderr
    model.unlink()
    both = invoke(*command, "--test", rows, "--holdout", 0.1)
    assert both.exit_code == 1
    assert "--holdout and --test exclude each other" in both.stderr
    assert not model.exists()


@pytest.mark.parametrize("algorithm", ["SPAM", "BAM"])
def test_positive_label_without_rows(tmp_path, algorithm):
    data = write_table(tmp_path / "clicks.csv", table())
    result = invoke(
        *("train", data, "-o", tmp_path / "model.aucmax", "--label", "clicked"),
        *("--positive", "maybe", "--algorithm", algorithm),
    )
    assert result.exit_code == 1
    assert "All 300 rows are negative" in result.stderr
    assert "maybe against rest" in result.stderr


@pytest.mark.parametrize(
    ("labels", "more", "told"),
    [
        ("legit legit fraud", (), "fraud (1 of 3 rows, 33.3 %); * --positive legit"),
        ("good bad bad", (), "bad (2 of 3 rows, 66.7 %); * --positive good"),
        ("no Yes no", (), "Yes (1 of 3 rows, 33.3 %); * --positive no"),
        ("a a b", (), "b (1 of 3 rows, 33.3 %); * --positive a"),
        ("1 1 0", (), "1 (2 of 3 rows, 66.7 %); * --positive 0"),
        ("1 1 -1", ("--positive", "-1"), "-1 against rest (1 of 3 rows, 33.3 %)."),
        ("a b b", ("--positive", "b"), "b against rest (2 of 3 rows, 66.7 %)."),
    ],
)
def test_positive_label_is_always_printed(tmp_path, labels, more, told):
    data = tmp_path / "few.csv"
    rows = (f"{i},{label}\n" for i, label in enumerate(labels.split()))
    data.write_text("x,y\n" + "".join(rows))
    command = "train", data, "-o", tmp_path / "model.aucmax", "--label", "y"
    result = invoke(*command, "--algorithm", "SPAM", *more)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    said = " ".join(result.stdout.split())
    assert fnmatchcase(said, f"* s. Positive: {told} Model: *")


def test_note_if_the_rarer_label_is_the_more_frequent_one(tmp_path):
    """The first rows of a sorted file are not a sample of it."""
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("x,y\n1,a\n2,a\n3,b\n")
    second.write_text("x,y\n" + "4,b\n" * 9)
    command = "train", first, second, "-o", tmp_path / "m.aucmax", "--label", "y"
    result = invoke(*command, "--algorithm", "SPAM")
    assert "Positive: b (10 of 12 rows, 83.3 %)" in " ".join(result.stdout.split())
    assert "the more frequent one in all rows" in " ".join(result.stderr.split())


def test_labels_of_pipes_and_files_are_read_alike(tmp_path):
    """The first block of a pipe is small, and has the frequent label once."""
    labels = "a" + "b" * 11_000 + "a" * 21_000
    digits = "0" * 30
    text = "x,y\n" + "".join(f"{i % 7}.{digits},{y}\n" for i, y in enumerate(labels))
    data = tmp_path / "rows.csv"
    data.write_text(text)
    told = []
    for source in (data, "-"):
        command = "train", source, "-o", tmp_path / "m.aucmax", "--label", "y"
        result = invoke(*command, "--algorithm", "SPAM", "--json", input=text)
        assert result.exit_code == 0, result.stderr
        told.append(json.loads(result.stdout)["task"])
    assert told == [{"positive": ["b"], "negative": ["a"]}] * 2


def test_resume_without_a_checkpoint_is_noted(rows, tmp_path):
    model = tmp_path / "m.aucmax"
    command = "train", rows, "-o", model, "--algorithm", "SPAM", "--json"
    result = invoke(*command, "--resume")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["resumed"] is False
    said = " ".join(result.stderr.split())
    assert "training starts from the beginning." in said
    assert "m.aucmax.checkpoint" in said.replace(" ", "")
    result = invoke(*command)
    assert json.loads(result.stdout)["resumed"] is False
    assert result.stderr == ""


def test_index_of_a_billion(tmp_path):
    data, model = tmp_path / "rows.svm", tmp_path / "m.aucmax"
    data.write_text("1 1:1\n0 2:1\n1 1:1 1000000000:1\n0 3:1\n")
    result = invoke("train", data, "-o", model, "--algorithm", "SPAM")
    assert result.exit_code == 1
    assert "line 3, column 1000000000: 1000000000 is too large" in result.stderr
    assert "max_features=1000000000" in result.stderr
    command = "train", data, "-o", model, "--algorithm", "SPAM", "--input"
    assert invoke(*command, "max_features=3", "--on-bad-line", "skip").exit_code == 0
    assert aucmax.load(model).n_features_in_ == 3
    assert invoke(*command, "max_features=many").exit_code == 1


def test_internal_reader_options_are_rejected(rows, tmp_path):
    command = "train", rows, "-o", tmp_path / "m.aucmax", "--input"
    unknown = invoke(*command, "colour=red").stderr
    assert "zero_based" in unknown
    for ours in ("keep_text", "extra", "labelled"):
        assert ours not in unknown
        result = invoke(*command, f"{ours}=true")
        assert result.exit_code == 1
        assert f"--input {ours}: there is no such option" in result.stderr


def test_a_label_with_a_comma(tmp_path):
    data = tmp_path / "letters.csv"
    data.write_text('x,y\n1,"no, thanks"\n2,"yes, please"\n3,yes\n4,"no, thanks"\n')
    command = "train", data, "-o", tmp_path / "m.aucmax", "--label", "y", "--json"
    for positive, count in ('"yes, please",yes', 2), ('"no, thanks"', 2), ("yes", 1):
        result = invoke(*command, "--algorithm", "SPAM", "--positive", positive)
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["positives"] == count
    result = invoke(*command, "--algorithm", "SPAM")
    assert '3 labels: "no, thanks", yes, "yes, please"' in result.stderr


def test_other_encodings_are_noted(tmp_path):
    data = tmp_path / "a.csv"
    data.write_bytes(b"x,c,y\n1,caf\xe9,0\n2,tea,1\n")
    command = "train", data, "-o", tmp_path / "m.aucmax", "--label", "y"
    result = invoke(*command, "--algorithm", "SPAM", "--param", "max_iter=3")
    assert result.exit_code == 0
    assert result.stderr.startswith(f"Note: {data}, line 2: this is not UTF-8.")
    assert result.stderr.count("\n") == 1


def test_queries_are_noted_once(tmp_path):
    data = tmp_path / "a.svm"
    data.write_text("1 qid:1 1:1 2:1\n-1 qid:1 1:0.5 2:1\n" * 20)
    command = "train", data, data, "-o", tmp_path / "m.aucmax", "--algorithm", "SPAM"
    result = invoke(*command, "--param", "max_iter=3", "--test", data)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith(f"Note: {data}: qid is ignored")
    assert result.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Return a table with a column of 100,000 values, each in one row."""
    path = tmp_path_factory.mktemp("wide") / "wide.csv"
    rng = np.random.default_rng(0)
    x = rng.standard_normal(100_000)
    y = x + rng.standard_normal(100_000) > 1.0
    lines = zip(range(100_000), x.tolist(), y.tolist(), strict=True)
    text = "".join(f"u{k},{value:.2f},{label:d}\n" for k, value, label in lines)
    path.write_text("who,x,y\n" + text)
    return path


WIDE = ("--label", "y", "--input", "categorical=who")


@pytest.mark.parametrize("name", ["LeastSquaresAUCCV", "BAMCV"])
def test_many_categories_need_little_memory(wide, tmp_path, name):
    few = ("--param", "l2s=[1.0]", "--param", "cv=2")
    command = ("train", wide, "-o", tmp_path / "m.aucmax", *WIDE, "--algorithm", name)
    result = invoke(*command, *few, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["features"] > 100_000
    assert os.path.getsize(tmp_path / "m.aucmax") < 50e6


@pytest.mark.parametrize("name", ["LeastSquaresAUC", "OPAUC", "AdaOAM", "CBR"])
def test_too_many_features_for_a_matrix_name_alternatives(wide, tmp_path, name):
    command = ("train", wide, "-o", tmp_path / "m.aucmax", *WIDE, "--algorithm", name)
    result = invoke(*command)
    assert result.exit_code == 1
    assert re.search(r"d x d .* features would take .*(SPAM|diag)", result.stderr)
    assert os.listdir(tmp_path) == []


@pytest.fixture
def quick_team(monkeypatch):
    """Replace the members of the blend by small models."""
    team = [Member("linear", BAM()), Member("trees", BoostedTrees(10))]
    monkeypatch.setattr("aucmax.blend.classifier.default_team", lambda *_: team)


def test_cross_validated_auc_of_a_blend_is_printed(quick_team, tmp_path):
    data = write_table(tmp_path / "clicks.csv", table(500))
    command = ("train", data, "-o", tmp_path / "m.aucmax", "--label", "clicked")
    shown = " ".join(invoke(*command).stdout.split())
    own = aucmax.load(tmp_path / "m.aucmax").auc_
    value, low, high = with_interval(*own[:3])
    assert (
        f"Cross-validated AUC {value}, 95 % confidence interval {low} to {high}: each"
        in shown
    )
    assert json.loads(invoke(*command, "--json").stdout)["auc"] == own._asdict()
    shown = invoke(*command, "--holdout", "0.2").stdout
    assert "held-out rows" in shown
    assert "Cross-validated" not in shown


def test_auto_chooses_a_blend_for_a_table(quick_team, tmp_path):
    data = write_table(tmp_path / "clicks.csv", table(500))
    model = tmp_path / "m.aucmax"
    command = ("train", data, "-o", model, "--label", "clicked", "--holdout", "0.2")
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("AUCClassifier trained on")
    for words in ("linear", "trees", "when shuffled", "confidence interval"):
        assert words in result.stdout
    told = json.loads(invoke("info", model, "--json").stdout)
    assert {line["member"] for line in told["leaderboard"]} == {"linear", "trees"}
    columns = {line["column"] for line in told["importances"]}
    assert columns <= {role["name"] for role in told["columns"]}
    assert told["auc"][0] > 0.5
    shown = invoke("info", model).stdout
    assert "estimated on held-out rows" in " ".join(shown.split())
    scored = invoke("score", model, data)
    assert scored.exit_code == 0
    assert len(fields(scored.stdout)) == 500
    scores = aucmax.load(model).leaderboard_[0].auc
    assert (
        json.loads(invoke(*command, "--json").stdout)["leaderboard"][0]["auc"] == scores
    )


def test_fast_trains_one_model(tmp_path):
    data = write_table(tmp_path / "clicks.csv", table(500))
    command = ("train", data, "-o", tmp_path / "m.aucmax", "--label", "clicked")
    told = json.loads(invoke(*command, "--algorithm", "fast", "--json").stdout)
    assert told["algorithm"] == "BAMCV"
    both = invoke(*command, "--algorithm", "fast", "--goal", "auc")
    assert both.exit_code == 2
    assert "--goal needs the default algorithm" in both.stderr


def table_of(n, columns=3, seed=0):
    """Return lines of CSV: numbers, a category, a label in words."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    y = X[:, 0] + rng.normal(size=n) > 1.0
    names = ",".join(f"x{j}" for j in range(columns))
    words = np.where(y, "bad", "good")
    rows = (
        ",".join([*(f"{v:.4f}" for v in x), w]) for x, w in zip(X, words, strict=True)
    )
    return "\n".join([f"{names},outcome", *rows, ""])


def test_tables_too_large_for_a_blend_are_streamed(tmp_path, monkeypatch):
    monkeypatch.setattr("aucmax.workflows.choose._MOST_BLENDED", 1000.0)
    (tmp_path / "a.csv").write_text(table_of(2000))
    args = ("-o", tmp_path / "m", "--label", "outcome")
    result = invoke("train", tmp_path / "a.csv", *args)
    assert "AUCStream" in result.stdout
    result = invoke("train", tmp_path / "a.csv", *args, "--algorithm", "fast")
    assert "BAMCV" in result.stdout


def test_a_time_budget_and_the_rows_of_members(tmp_path):
    (tmp_path / "a.csv").write_text(table_of(2000))
    args = ("-o", tmp_path / "m", "--label", "outcome", "--algorithm", "AUCClassifier")
    result = invoke("train", tmp_path / "a.csv", *args, "--param", "time_budget=1")
    model = aucmax.load(tmp_path / "m")
    assert model.time_budget == 1.0
    rows = {line.rows for line in model.leaderboard_}
    for words in (result.stdout, invoke("info", tmp_path / "m").stdout):
        assert f"{max(rows):,}" in words


def test_models_of_files_keep_the_labels_of_the_data(tmp_path):
    (tmp_path / "a.csv").write_text(table_of(400))
    args = ("-o", tmp_path / "m", "--label", "outcome", "--algorithm", "fast")
    invoke("train", tmp_path / "a.csv", *args)
    frame = pd.read_csv(tmp_path / "a.csv")
    model = aucmax.load(tmp_path / "m")
    assert model.classes_.tolist() == ["good", "bad"]
    assert model.score(frame, frame["outcome"]) > 0.7
    assert {*model.predict(frame)} == {"good", "bad"}
    model.save(tmp_path / "again")
    assert aucmax.load(tmp_path / "again").classes_.tolist() == ["good", "bad"]


def test_kinds_are_found_from_the_whole_file(tmp_path):
    rng = np.random.default_rng(0)
    n = 200_000
    x = rng.normal(size=n)
    late = ["" if i < 100_000 else f"{v:.3f}" for i, v in enumerate(x)]
    y = (x + rng.normal(size=n) > 1.0).astype(int)
    rows = (f"{i % 97},{v},{c}" for i, (v, c) in enumerate(zip(late, y, strict=True)))
    text = "\n".join(["a,late,y", *rows, ""])
    (tmp_path / "a.csv").write_text(text)
    args = ("-o", tmp_path / "m", "--label", "y", "--algorithm", "SPAM", "--json")
    found = json.loads(invoke("train", tmp_path / "a.csv", *args).stdout)
    assert {c["name"]: c["role"] for c in found["columns"]}["late"] == "number"
    # A pipe is read once: a column that is empty at first is noted.
    result = invoke("train", "-", *args, input=text.encode())
    assert "Column 'late' was empty" in result.stderr
    assert "numeric=late" in result.stderr


@pytest.mark.parametrize(
    ("factor", "text"), [(1000.0, "far from"), (np.nan, "missing")]
)
def test_changed_columns_are_noted_when_scoring(tmp_path, factor, text):
    (tmp_path / "a.csv").write_text(table_of(400))
    args = ("-o", tmp_path / "m", "--label", "outcome", "--algorithm", "fast")
    invoke("train", tmp_path / "a.csv", *args)
    frame = pd.read_csv(tmp_path / "a.csv")
    assert "column" not in invoke("score", tmp_path / "m", tmp_path / "a.csv").stderr
    frame["x1"] = frame["x1"] * factor + factor
    frame.to_csv(tmp_path / "b.csv", index=False)
    result = invoke("score", tmp_path / "m", tmp_path / "b.csv")
    assert "column 'x1'" in result.stderr
    assert text in result.stderr


def test_suspicious_auc_is_noted(tmp_path):
    lines = table_of(400).replace("outcome", "leak,outcome", 1).splitlines()
    rows = [
        f"{line.rpartition(',')[0]},{len(line.rpartition(',')[2])},"
        f"{line.rpartition(',')[2]}"
        for line in lines[1:]
    ]
    (tmp_path / "a.csv").write_text("\n".join([lines[0], *rows, ""]))
    result = invoke(
        "train", tmp_path / "a.csv", "-o", tmp_path / "m", "--label", "outcome"
    )
    assert "is suspicious" in result.stderr


def test_rows_without_a_label_are_left_out_and_counted(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    labels = np.where(x + rng.normal(size=200) > 0.0, "yes", "no").astype(object)
    labels[::20] = ""
    path, model = tmp_path / "a.csv", tmp_path / "m.aucmax"
    rows = "".join(f"{v},{y}\n" for v, y in zip(x, labels, strict=True))
    path.write_text("x,y\n" + rows)
    command = ("train", path, "-o", model, "--label", "y", "--algorithm", "SPAM")
    result = invoke(*command)
    assert result.exit_code == 0, result.stderr
    assert "trained on 190 rows" in result.stdout
    assert "Left out 10 rows without a label." in result.stdout
    result = invoke("evaluate", model, path)
    assert "190 rows" in result.stdout
    assert "10 rows were left out for want of a label" in result.stderr
