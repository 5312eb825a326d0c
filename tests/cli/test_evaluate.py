"""aucmax evaluate: the measures of the package, on the scores of the model."""

import json

import numpy as np
import pytest

from aucmax import metrics
from commands import fields, invoke, table, write_table

LINES = table(400, seed=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("evaluate") / "new.csv", LINES)


@pytest.fixture(scope="module")
def scored(model, data):
    """Return labels, scores and towns, as ``aucmax score`` gives them."""
    rows = fields(invoke("score", model, data).stdout)
    y = np.array([row["clicked"] == "yes" for row in rows])
    score = np.array([float(row["score"]) for row in rows])
    return y, score, np.array([row["town"] for row in rows])


def report(*arguments):
    result = invoke("evaluate", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def triple(found):
    return found["value"], found["low"], found["high"]


def test_json_has_what_the_measures_say(model, data, scored):
    y, score, _ = scored
    found = report(model, data, "--at", "7,0.05,25%", "--max-fpr", "0.3")
    assert triple(found["auc"]) == metrics.auc_interval(y, score)[:3]
    assert found["partial_auc"] == {
        "max_fpr": 0.3,
        "value": metrics.partial_auc(y, score, max_fpr=0.3),
        "standardised": metrics.partial_auc(y, score, max_fpr=0.3, standardise=True),
    }
    assert found["average_precision"] == metrics.average_precision(y, score)
    assert found["breakeven"] == metrics.breakeven(y, score)
    assert [entry["k"] for entry in found["at"]] == [7, 0.05, 0.25]
    for entry in found["at"]:
        k = entry["k"]
        assert triple(entry["precision"]) == metrics.precision_interval(y, score, k)
        assert entry["lift"] == metrics.lift_at(y, score, k)
        assert entry["rows"] == (7 if k == 7 else 400 * k)
    for entry in found["operating_points"]:
        called = score >= entry["threshold"] if entry["for"] == "fpr" else score > 0
        assert entry["rows"] == called.sum()
        assert entry["tpr"] == called[y].mean()
        assert entry["fpr"] == called[~y].mean()
        assert entry["precision"] == y[called].mean()
    wanted = [(entry["for"], entry["wanted"]) for entry in found["operating_points"]]
    assert wanted == [("fpr", 0.01), ("fpr", 0.05), ("fpr", 0.1), ("threshold", 0.0)]
    assert (found["rows"], found["positives"]) == (400, int(y.sum()))
    assert (found["bad_lines"], found["level"]) == (0, 0.95)
    assert found["groups"] == []


def test_groups(model, data, scored):
    y, score, town = scored
    found = report(model, data, "--by", "town", "--level", "0.8")
    assert {group["group"] for group in found["groups"]} == set(town.tolist())
    for group in found["groups"]:
        here = town == group["group"]
        assert group["rows"] == here.sum()
        assert group["positives"] == y[here].sum()
        expected = metrics.auc_interval(y[here], score[here], level=0.8)
        assert triple(group["auc"]) == expected[:3]
    sizes = [group["rows"] for group in found["groups"]]
    assert sizes == sorted(sizes, reverse=True)


def test_a_group_of_one_class_is_said_to_be_one(model, tmp_path):
    path = write_table(tmp_path / "new.csv", [*LINES, "30,Ely,9000,no"])
    found = report(model, path, "--by", "town")
    ely = found["groups"][-1]
    assert ely == {"group": "Ely", "rows": 1, "positives": 0, "auc": None}
    assert "negatives only" in invoke("evaluate", model, path, "--by", "town").stdout


def test_people_get_tables(model, data, scored, tmp_path):
    y, score, _ = scored
    picture = tmp_path / "roc.png"
    result = invoke("evaluate", model, data, "--by", "town", "--plot", picture)
    assert result.exit_code == 0
    value, low, high, _ = metrics.auc_interval(y, score)
    assert result.stdout.startswith(
        f"AUC {value:.4f}, 95 % interval {low:.4f} to {high:.4f}\n400 rows, "
    )
    for words in ("Partial AUC", "10 %", "lift", "fpr ≤ 1 %", "model's", "York"):
        assert words in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in result.stdout


def test_bad_lines_and_labels_nobody_knows(model, data, tmp_path):
    lines = [LINES[0], "30,York,9000,perhaps", "x,York,1,no", *LINES[1:]]
    path = write_table(tmp_path / "new.csv", lines)
    result = invoke("evaluate", model, path)
    assert result.exit_code == 1
    assert "perhaps" in result.stderr
    assert "line 3" in result.stderr
    result = invoke("evaluate", model, path, "--on-bad-line", "skip", "--json")
    found = json.loads(result.stdout)
    assert found["bad_lines"] == 2
    assert "2 bad lines were left out" in result.stderr
    assert found["auc"] == report(model, data)["auc"]


@pytest.mark.parametrize(
    ("lines", "arguments", "words"),
    [
        ([line for line in LINES if line.endswith("no")], [], "rows are negative"),
        ([line for line in LINES if line.endswith("yes")], [], "rows are positive"),
        ([], [], "There is no row in"),
        (LINES, ["--at", "401"], "k=401, but there are 400 rows only"),
        (LINES, ["--at", "many"], "--at many: it has to be a number of rows"),
        (LINES, ["--at", "1.5"], "k=1.5 is neither a share"),
        (LINES, ["--max-fpr", "0"], "--max-fpr must lie in (0, 1]"),
        (LINES, ["--level", "95"], "level must lie between 0 and 1"),
        (LINES, ["--by", "country"], "country"),
        (LINES, ["--plot", "no/folder/a.png"], "folder"),
    ],
)
def test_what_is_wrong_is_one_line(model, tmp_path, lines, arguments, words):
    path = write_table(tmp_path / "new.csv", lines)
    result = invoke("evaluate", model, path, *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_few_rows_have_no_list_of_a_hundred(model, tmp_path):
    found = report(model, write_table(tmp_path / "new.csv", LINES[:50]))
    assert [entry["k"] for entry in found["at"]] == [0.01, 0.1]


def test_lines_with_odd_labels_are_kept(model, tmp_path):
    lines = table(50, seed=2)
    odd = lines[7].rpartition(",")[0] + ",perhaps"
    data = write_table(tmp_path / "new.csv", [*lines, odd])
    aside = tmp_path / "aside.csv"
    result = invoke("evaluate", model, data, "--on-bad-line", "quarantine", aside)
    assert result.exit_code == 0, result.stderr
    assert aside.read_text() == odd + "\n"


@pytest.mark.parametrize("flag", [("--on-bad-line", "quarantine"), ("--plot",)])
def test_data_are_not_overwritten(model, tmp_path, flag):
    data = write_table(tmp_path / "new.csv", table(50, seed=2))
    before = data.read_bytes()
    result = invoke("evaluate", model, data, *flag, data)
    assert result.exit_code == 1
    assert "would be overwritten" in result.stderr
    assert data.read_bytes() == before
