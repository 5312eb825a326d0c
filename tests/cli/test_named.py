"""Named data sets as data of commands."""

import hashlib
import json
import lzma

import numpy as np
import pytest

from aucmax.data import load
from aucmax.io import datasets as registry
from helpers.commands import invoke
from helpers.data import gaussian, registry_line


def rows(n, seed):
    """Return svmlight lines with labels 1, 2 and 3; rows of 2 are the positives."""
    X, y = gaussian(n, seed=seed)
    other = np.where(np.arange(n) % 3, 1, 3)
    return "".join(
        f"{2 if positive else negative} "
        + " ".join(f"{j}:{value!r}" for j, value in enumerate(x.tolist(), 1))
        + "\n"
        for x, positive, negative in zip(X, y == 1, other, strict=True)
    ).encode()


@pytest.fixture(autouse=True)
def toy(tmp_path, monkeypatch):
    """Register a data set of two parts, and change to an empty folder."""
    here = tmp_path / "sets"
    here.mkdir()
    lines = []
    for seed, part in enumerate(("train", "test")):
        text = rows(150, seed)
        labels = [line.split()[0].decode() for line in text.splitlines()]
        packed = lzma.compress(text)
        (here / f"toy.{part}.svm.xz").write_bytes(packed)
        lines.append(
            registry_line(
                "toy",
                part,
                features=8,
                rows=150,
                classes=" ".join(f"{k}:{labels.count(k)}" for k in "123"),
                task="positive=2",
                sha256=hashlib.sha256(packed).hexdigest(),
            )
        )
    known = {"toy": registry._entry(lines)}
    monkeypatch.setattr(registry, "_registry", lambda: known)
    monkeypatch.setattr(registry, "_cache", lambda: tmp_path / "cache")
    monkeypatch.setenv("AUCMAX_DATA", str(here))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return here


def told(*arguments):
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_train_evaluate_and_score_a_named_set():
    command = "train", "toy.train", "--test", "toy.test", "-o", "m.aucmax"
    found = told(*command, "--algorithm", "SPAM")
    X, y, _, _, _ = load("toy", "train")
    assert (found["rows"], found["positives"]) == (150, y.sum())
    assert found["features"] == X.shape[1] == 8  # two more than the rows have
    assert found["judged"]["rows"] == 150
    judged = told("evaluate", "m.aucmax", "toy.test")
    assert judged["auc"] == found["judged"]["auc"]
    assert judged["auc"]["value"] > 0.7
    assert told("evaluate", "m.aucmax", "toy")["rows"] == 300
    scores = invoke("score", "m.aucmax", "toy.test")
    assert len(scores.stdout.split()) == 150


def test_positive_overrides_the_rule_of_the_set():
    _, y, labels, _, _ = load("toy")
    found = told("train", "toy", "-o", "m.aucmax", "--positive", "3,1")
    assert found["positives"] == np.sum(labels != 2)
    command = "evaluate", "m.aucmax", "toy"
    assert told(*command)["positives"] == np.sum(labels != 2)
    other = told(*command, "--positive", "2")
    assert other["positives"] == y.sum()
    assert other["auc"]["value"] == pytest.approx(1 - told(*command)["auc"]["value"])


def test_model_trained_in_python_uses_the_rule_of_the_set():
    from aucmax import SPAM

    X, y, _, _, _ = load("toy")
    SPAM().fit(X, y).save("m.aucmax")
    found = told("evaluate", "m.aucmax", "toy")
    assert (found["rows"], found["positives"]) == (300, y.sum())


def test_file_of_the_same_name_takes_precedence(toy):
    name = "toy.train"
    with open(name, "wb") as file:
        file.write(rows(40, seed=5).replace(b"\n3", b"\n1"))
    found = told("train", name, "-o", "m.aucmax", "--positive", "2")
    assert (found["rows"], found["features"]) == (40, 6)


def test_compare_accepts_named_sets():
    command = "compare", "toy.test", "--algorithm", "SPAM", "--folds", 2
    found = told(*command)
    _, y, _, task, _ = load("toy", "test")
    assert (found["rows"], found["positives"]) == (150, y.sum())
    assert found["task"] == task.to_json()
    assert told(*command, "--positive", "3")["positives"] < 150 - y.sum()
    with open("toy.test", "wb") as file:
        file.write(rows(40, seed=5))
    assert told(*command, "--positive", "2")["rows"] == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["toy", "other.svm"], "toy is a named set and cannot be combined"),
        (["toy", "--label", "y"], "toy is a named set: label cannot be set"),
        (["toy.csv"], "toy.csv: no such file"),
        (
            ["toys"],
            "toys: no such file, and no named data set either: see aucmax datas",
        ),
    ],
)
@pytest.mark.parametrize("command", ["train", "compare"])
def test_errors_are_reported_in_one_line(command, arguments, message):
    output = ["-o", "m.aucmax"] if command == "train" else []
    result = invoke(command, *arguments, *output)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_corrupted_copy_is_an_error(toy):
    with open(toy / "toy.train.svm.xz", "ab") as file:
        file.write(b"\0")
    result = invoke("train", "toy", "-o", "m.aucmax")
    assert result.exit_code == 1
    assert "is corrupted or another version" in result.stderr


def test_model_of_a_table_rejects_a_named_set(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("x,y\n1,0\n2,1\n3,1\n")
    told("train", table, "--label", "y", "--algorithm", "SPAM", "-o", "m.aucmax")
    result = invoke("score", "m.aucmax", "toy")
    assert result.exit_code == 1
    assert "unlike the columns that the model was trained on" in result.stderr
