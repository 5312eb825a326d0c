"""``aucmax compare``."""

import json
from csv import DictReader

import numpy as np
import pytest

from aucmax.tables.labels import Task
from helpers import commands
from helpers.data import gaussian

PAIR = ("--algorithm", "spam", "--algorithm", "balanced-logistic")


def invoke(*arguments: object):
    return commands.invoke("compare", *arguments)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a CSV file with text labels."""
    X, y = gaussian(300)
    path = tmp_path_factory.mktemp("compare") / "mail.csv"
    with open(path, "w") as file:
        print("kind", *(f"x{j}" for j in range(X.shape[1])), sep=",", file=file)
        for x, positive in zip(X, y, strict=True):
            print("spam" if positive else "ham", *x, sep=",", file=file)
    return path


@pytest.fixture(scope="module")
def comparison(table, tmp_path_factory):
    folds = tmp_path_factory.mktemp("folds") / "folds.csv"
    result = invoke(table, *PAIR, "--label", "kind", "--json", "-o", folds)
    return result, folds


def test_json_contains_all_results(comparison, table):
    result, _ = comparison
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["data"] == [str(table)]
    assert Task.from_json(report["task"]) == Task.of("spam", "ham")
    assert (report["rows"], report["features"], report["positives"]) == (300, 6, 90)
    assert {row["name"] for row in report["algorithms"]} == {
        "SPAM",
        "balanced-logistic",
    }
    for row in report["algorithms"]:
        assert 0.6 < row["auc"]["low"] < row["auc"]["value"] < row["auc"]["high"] <= 1
        assert row["error"] is None


def test_output_file_has_every_fold(comparison):
    result, folds = comparison
    with open(folds) as lines:
        rows = list(DictReader(lines))
    assert len(rows) == 10
    report = json.loads(result.stdout)
    for algorithm in report["algorithms"]:
        mine = [float(r["auc"]) for r in rows if r["algorithm"] == algorithm["name"]]
        assert np.mean(mine) == pytest.approx(algorithm["auc"]["value"])


def test_text_output_has_a_table_and_an_explanation(table):
    result = invoke(table, *PAIR, "--label", "kind", "--positive", "ham", "--folds", 3)
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for words in ("Positive: ham against rest (210 of 300 rows", "95 % CI",
                  "Nadeau and Bengio", "300 rows, 6 features", "3 stratified folds",
                  "has the highest AUC; the difference to",
                  "is not significant"):  # fmt: skip
        assert words in text
    assert max(map(len, result.stdout.splitlines())) <= 80 + len(str(table))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "nowhere.csv"),
        (["{table}", "--label", "kind", "--algorithm", "SPA"], "no algorithm 'SPA'"),
        (["{table}", "--label", "kind", "--folds", "200"], "only 90 rows"),
        (["{table}", "--label", "kind", "-o", "no/where.csv"], "no does not exist"),
        (["{table}", "--label", "nothing"], "nothing"),
    ],
)
def test_errors_are_reported_in_one_line(table, arguments, message):
    result = invoke(*(word.replace("{table}", str(table)) for word in arguments))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("wrong", [["--folds", "1"], ["--repeats", "0"], ["--colour"]])
def test_usage_errors_have_exit_code_2(table, wrong):
    assert invoke(table, *wrong).exit_code == 2


def test_failed_algorithm_is_reported_with_exit_code_1(table, monkeypatch):
    from aucmax.workflows import compare

    class Broken:
        def get_params(self, deep=True):
            return {}

        def fit(self, X, y):
            raise MemoryError("36 GB are too many")

    real = compare.build
    monkeypatch.setattr(
        compare,
        "build",
        lambda name, *rest: Broken() if name == "OPAUC" else real(name, *rest),
    )
    result = invoke(
        table, *PAIR, "--algorithm", "OPAUC", "--label", "kind", "--folds", 2
    )
    assert result.exit_code == 1
    assert "failed" in result.stdout
    assert "OPAUC failed: MemoryError: 36 GB are too many" in result.stderr
    assert "SPAM" in result.stdout


def test_threshold_labels_and_data_are_not_overwritten(tmp_path):
    data = tmp_path / "stars.csv"
    data.write_text("x,stars\n" + "".join(f"{i / 2},{i % 5 + 1}\n" for i in range(40)))
    command = (data, "--label", "stars", "--positive", ">3")
    command += ("--algorithm", "LeastSquaresAUC", "--folds", 2)
    found = json.loads(invoke(*command, "--json").stdout)
    assert found["positives"] == 16
    before = data.read_bytes()
    result = invoke(*command, "-o", data)
    assert result.exit_code == 1
    assert "Refusing to overwrite" in result.stderr
    assert data.read_bytes() == before


def test_singular_of_one_feature(tmp_path):
    data = tmp_path / "one.csv"
    data.write_text("x,y\n" + "".join(f"{k / 2},{k % 3 == 0:d}\n" for k in range(40)))
    result = invoke(data, "--label", "y", "--algorithm", "SPAM", "--folds", 2)
    assert "40 rows, 1 feature\nPositive: 1 (14 of 40 rows, 35 %)" in result.stdout


def test_goal_is_a_column_and_names_the_best(table):
    goal = ("--goal", "recall@fpr=0.1", "--label", "kind", "--folds", 2)
    text = " ".join(invoke(table, *PAIR, *goal).stdout.split())
    assert "algorithm goal 95 % CI difference p AUC" in text
    assert "Goal: recall@fpr=0.1. Means over 2" in text
    assert "has the highest recall@fpr=0.1" in text
    result = invoke(table, *PAIR, "--goal", "recall", "--label", "kind")
    assert "goal='recall': expected auc, pauc@fpr=0.05" in result.stderr


def test_progress_lines_without_a_terminal(table, monkeypatch):
    command = (table, "--algorithm", "LeastSquaresAUC", "--label", "kind", "--folds", 2)
    monkeypatch.setattr("aucmax.cli.terminal._LOG_SECONDS", np.inf)
    assert invoke(*command, "--json").stderr == ""
    monkeypatch.setattr("aucmax.cli.terminal._LOG_SECONDS", 0.0)
    result = invoke(*command, "--json")
    assert result.stderr.splitlines() == [
        f"LeastSquaresAUC: {done} of 2 fits" for done in range(3)
    ]
    json.loads(result.stdout)


def test_help_has_metavars():
    result = invoke("-h")
    options = result.stdout.partition("Options:")[2]
    assert "--folds N" in options
    assert "<" not in options
