"""Sets of a paper from the user's own files."""

import json

import numpy as np
import pytest

import toy_paper
from aucmax_reproduction import user_data
from aucmax_reproduction.fitting import Effort, prepared
from aucmax_reproduction.protocols import PROTOCOLS, protocol
from aucmax_reproduction.splits import Given
from helpers.data import gaussian
from test_command import call

X, Y = gaussian(90, 3)


@pytest.fixture
def paper(tmp_path, monkeypatch):
    toy_paper.install(monkeypatch, tmp_path)
    user_data.load.cache_clear()
    prepared.cache_clear()
    return tmp_path / "out"


def svmlight(path, rows=slice(None), labels=None):
    labels = (2 * Y - 1 if labels is None else labels)[rows]
    lines = [
        f"{label:g} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(x))
        for x, label in zip(X[rows].tolist(), labels.tolist(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def table(path):
    lines = [
        f"{','.join(map(repr, x))},{y:g}" for x, y in zip(X.tolist(), Y, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,label", *lines]) + "\n")
    return path


def run(folder, *arguments):
    fixed = ("--datasets", "nowhere", "--runs", 1, "--forms", "ours", "--jobs", 1)
    return call(toy_paper.SOURCE, *fixed, "-o", folder, *arguments)


def test_a_set_that_is_not_in_the_registry_is_run_from_a_file(paper, tmp_path):
    areas = []
    for path in (svmlight(tmp_path / "my.svm"), table(tmp_path / "my.csv")):
        prepared.cache_clear()  # else a test of the first file only
        result = run(paper / path.suffix, "--data", f"nowhere={path}", "--json")
        assert result.exit_code == 0
        report = json.loads(result.stdout)
        (cell,) = report["cells"]
        assert (cell["dataset"], cell["runs"]) == ("nowhere", 1)
        assert cell["verdict"] != "not run"
        assert f"rows of {path.name}" in cell["reason"] or "easier" in cell["reason"]
        areas.append(cell["ours"])
    assert areas[0] == pytest.approx(areas[1])
    assert areas[0] > 0.6
    # The file is in the header of the results, and in the command above the table.
    again = call(toy_paper.SOURCE, "--no-fits", "-o", paper / ".csv")
    assert again.exit_code == 0
    text = (paper / ".csv" / f"{toy_paper.SOURCE}.md").read_text()
    assert f"--data nowhere={tmp_path / 'my.csv'}" in text
    other = run(paper / ".csv", "--data", f"nowhere={tmp_path / 'my.svm'}")
    assert other.exit_code == 1
    assert "has results with data=" in other.stderr


def test_tables_have_the_rows_of_svmlight_files(tmp_path):
    whole = table(tmp_path / "a.csv").read_text().splitlines()
    (tmp_path / "b.csv").write_text("\n".join([whole[0], *whole[61:]]) + "\n")
    files = str(tmp_path / "a.csv"), str(tmp_path / "b.csv")
    rows, labels, first = user_data.load(files)
    np.testing.assert_array_equal(rows, np.vstack([X, X[60:]]))
    np.testing.assert_array_equal(labels, [*Y, *Y[60:]])
    assert first == 90


def test_worker_processes_read_the_files(tmp_path, monkeypatch):
    source = "natole2020-thesis"
    monkeypatch.setitem(PROTOCOLS, source, protocol(source))  # and restore it
    path = svmlight(tmp_path / "my.svm")
    result = call(
        *(source, "--table", "6.4", "--datasets", "mammography", "--runs", 1),
        *("--forms", "ours", "--algorithms", "regSOLAM", "--jobs", 2, "--json"),
        *("--data", f"mammography={path}", "-o", tmp_path / "out"),
    )
    assert result.exit_code == 0
    (cell,) = json.loads(result.stdout)["cells"]
    assert (cell["runs"], cell["failed_runs"]) == (1, 0)


def test_a_second_file_is_the_test_file(paper, tmp_path, monkeypatch):
    plan = toy_paper.PROTOCOL.plans["1"]._replace(split=Given(0.2, 2))
    monkeypatch.setitem(toy_paper.PROTOCOL.plans, "1", plan)
    first = svmlight(tmp_path / "train.svm", slice(60))
    second = svmlight(tmp_path / "test.svm", slice(60, 90))
    given = [f"nowhere={first}", f"nowhere={second}"]
    user_data.use(toy_paper.SOURCE, given)
    ready = prepared(toy_paper.SOURCE, "1", "nowhere", "", 0, Effort())
    assert (len(ready.y), len(ready.y_test)) == (60, 30)
    np.testing.assert_array_equal(ready.y_test, Y[60:] > 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["who=x.svm"],
            "toy2024 has no set 'who'. Use one of pair, four, gone, nowhere",
        ),
        (["nowhere"], "--data nowhere: expected NAME=FILE."),
        (["nowhere=a"] * 3, "nowhere has more than two files. Give the training"),
    ],
)
def test_wrong_files_are_named(paper, given, message):
    result = run(paper, *(word for one in given for word in ("--data", one)))
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())
    assert not paper.exists()


def test_a_missing_file_is_reported(paper):
    result = run(paper, "--data", "nowhere=missing.svm")
    assert "missing.svm does not exist" in " ".join(result.stdout.split())


def test_several_labels_need_a_stated_rule(tmp_path):
    files = (str(svmlight(tmp_path / "s.svm", labels=np.arange(90) % 7 + 1)),)
    paper = protocol("khalid2019-dissertation")
    changed = user_data.with_files(paper, {"segment": files, "w8a": files})
    stated = changed.plans["5.2"].subjects["segment"]
    _, labels, rows = user_data.load(files)
    assert rows == 90
    np.testing.assert_array_equal(user_data.positives(stated, labels), labels <= 3)
    with pytest.raises(ValueError, match="has 7 labels, and the paper does not say"):
        user_data.positives(changed.plans["6.3"].subjects["w8a"], labels)
    assert not paper.plans["5.2"].subjects["segment"].files  # the original is unchanged


def test_a_table_without_labels_is_named(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("a,b\n1.5,2\n2.5,1\n")
    with pytest.raises(ValueError, match="has no labels: a table needs a column named"):
        user_data.load((str(path),))
