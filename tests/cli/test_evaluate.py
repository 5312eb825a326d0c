"""``aucmax evaluate``: measures equal those of ``aucmax.metrics``."""

import json
import re

import numpy as np
import pytest

from aucmax import metrics
from aucmax.metrics._ranking import with_interval
from helpers.commands import HEADER, fields, invoke, table, write_table

LINES = table(400, seed=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("evaluate") / "new.csv", LINES)


@pytest.fixture(scope="module")
def scored(model, data):
    """Return labels, scores and towns from ``aucmax score``."""
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


def test_json_equals_the_metrics(model, data, scored):
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


def test_group_with_one_class_has_no_auc(model, tmp_path):
    path = write_table(tmp_path / "new.csv", [*LINES, "30,Ely,9000,no"])
    found = report(model, path, "--by", "town")
    ely = found["groups"][-1]
    assert ely == {"group": "Ely", "rows": 1, "positives": 0, "auc": None}
    assert "negatives only" in invoke("evaluate", model, path, "--by", "town").stdout


def test_digits_follow_the_confidence_interval(model, tmp_path):
    data = write_table(tmp_path / "few.csv", table(12))
    result = invoke("evaluate", model, data)
    assert result.exit_code == 0, result.output
    assert re.match(
        r"AUC \d\.\d\d, 95 % confidence interval \d\.\d\d to \d\.\d\d\n", result.stdout
    )
    assert re.search(r"Average precision \d\.\d\d;", result.stdout)
    rows = fields(invoke("score", model, data).stdout)
    y, score = zip(
        *((r["clicked"] == "yes", float(r["score"])) for r in rows), strict=True
    )
    exact = metrics.auc_interval(y, score)[:3]
    assert triple(report(model, data)["auc"]) == exact


def test_text_output_has_tables(model, data, scored):
    y, score, _ = scored
    result = invoke("evaluate", model, data, "--by", "town")
    assert result.exit_code == 0
    value, low, high = with_interval(*metrics.auc_interval(y, score)[:3])
    assert len(value) == len("0.123")
    assert result.stdout.startswith(
        f"AUC {value}, 95 % confidence interval {low} to {high}\n400 rows, "
    )
    for words in (
        "Partial AUC",
        "10 %",
        "lift",
        "FPR ≤ 1 %",
        "predicted class",
        "York",
    ):
        assert words in result.stdout


def test_malformed_lines_and_unknown_labels(model, data, tmp_path):
    lines = [LINES[0], "30,York,9000,perhaps", "x,York,1,no", *LINES[1:]]
    path = write_table(tmp_path / "new.csv", lines)
    result = invoke("evaluate", model, path)
    assert result.exit_code == 1
    assert "perhaps" in result.stderr
    assert "line 3" in result.stderr
    result = invoke("evaluate", model, path, "--on-bad-line", "skip", "--json")
    found = json.loads(result.stdout)
    assert found["bad_lines"] == 2
    assert "2 malformed lines were skipped" in result.stderr
    assert found["auc"] == report(model, data)["auc"]


@pytest.mark.parametrize(
    ("lines", "arguments", "words"),
    [
        ([line for line in LINES if line.endswith("no")], [], "rows are negative"),
        ([line for line in LINES if line.endswith("yes")], [], "rows are positive"),
        ([], [], "There is no row in"),
        (LINES, ["--at", "401"], "k=401, but there are only 400 rows"),
        (LINES, ["--at", "many"], "--at many: expected a number of rows"),
        (LINES, ["--at", "1.5"], "k=1.5: expected"),
        (LINES, ["--max-fpr", "0"], "--max-fpr=0.0: expected a number in (0, 1]"),
        (LINES, ["--level", "95"], "expected a number between 0 and 1"),
        (LINES, ["--by", "country"], "country"),
        (LINES, ["--report", "no/folder/a.html"], "folder"),
    ],
)
def test_errors_are_reported_in_one_line(model, tmp_path, lines, arguments, words):
    path = write_table(tmp_path / "new.csv", lines)
    result = invoke("evaluate", model, path, *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_default_lists_fit_the_number_of_rows(model, tmp_path):
    found = report(model, write_table(tmp_path / "new.csv", LINES[:50]))
    assert [entry["k"] for entry in found["at"]] == [0.1]  # 1 % is less than a row


def test_data_are_not_overwritten(model, tmp_path):
    data = write_table(tmp_path / "new.png", table(50, seed=2))
    before = data.read_bytes()
    result = invoke("evaluate", model, data, "--report", data)
    assert result.exit_code == 1
    assert "Refusing to overwrite" in result.stderr
    assert data.read_bytes() == before


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """Return a model trained with weights, and data that have them."""
    folder = tmp_path_factory.mktemp("weighted")
    weights = np.random.default_rng(5).exponential(2.0, len(LINES)).round(3)
    weights[::9] = 0.0
    lines = [f"{line},{w!r}" for line, w in zip(LINES, weights.tolist(), strict=True)]
    data = write_table(folder / "new.csv", lines, header=f"{HEADER},w")
    model = folder / "model.aucmax"
    command = "train", data, "-o", model, "--label", "clicked", "--input", "weight=w"
    result = invoke(*command, "--algorithm", "SPAM", "--test", data, "--json")
    assert result.exit_code == 0, result.stderr
    return model, data, weights, json.loads(result.stdout)["judged"]


def test_weighted_measures(weighted):
    model, data, weight, judged = weighted
    rows = fields(invoke("score", model, data).stdout)
    y = np.array([row["clicked"] == "yes" for row in rows])
    score = np.array([float(row["score"]) for row in rows])
    found = report(model, data, "--at", "50,0.05", "--by", "town")
    assert triple(found["auc"]) == pytest.approx(
        metrics.auc_interval(y, score, sample_weight=weight)[:3]
    )
    assert judged["weighted"]
    assert judged["auc"] == found["auc"]
    assert found["weight"] == pytest.approx(
        {"rows": weight.sum(), "positives": weight[y].sum()}
    )
    assert (found["rows"], found["positives"]) == (400, y.sum())
    for entry, k in zip(found["at"], (50, 0.05), strict=True):
        assert triple(entry["precision"]) == pytest.approx(
            metrics.precision_interval(y, score, k, sample_weight=weight)
        )
        lift = metrics.lift_at(y, score, k, sample_weight=weight)
        assert entry["lift"] == pytest.approx(lift)
    for entry in found["operating_points"]:
        called = score >= entry["threshold"] if entry["for"] == "fpr" else score > 0
        assert entry["rows"] == pytest.approx(weight[called].sum())
        assert entry["tpr"] == pytest.approx(np.average(called[y], weights=weight[y]))
    for group in found["groups"]:
        here = np.array([row["town"] == group["group"] for row in rows])
        expected = metrics.auc_interval(
            y[here], score[here], sample_weight=weight[here]
        )
        assert triple(group["auc"]) == pytest.approx(expected[:3])
    shown = invoke("evaluate", model, data).stdout
    assert f"Sum of weights {weight.sum():,.6g}" in shown
    plain = report(model, data, "--weight", "none")
    assert plain["weight"] is None
    assert triple(plain["auc"]) == metrics.auc_interval(y, score)[:3]
    heavy = invoke("evaluate", model, data, "--at", "1000")
    assert heavy.exit_code == 1
    assert "weights of all rows sum to" in heavy.stderr


def test_weight_column_given_for_evaluation_only(model, weighted, data, tmp_path):
    own, heavy, weight, _ = weighted
    found = report(model, heavy, "--weight", "w")
    refused = invoke(
        *("evaluate", model, heavy, "--weight", "w"),
        *("--report", tmp_path / "r.html"),
    )
    assert "--report does not support row weights" in refused.stderr
    assert refused.stdout == ""  # before anything is computed
    assert found["weight"]["rows"] == pytest.approx(weight.sum())
    assert found["auc"] != report(model, heavy)["auc"]
    for wrong, message in (("v", "no weight column 'v'"), ("age", "is a feature")):
        result = invoke("evaluate", model, heavy, "--weight", wrong)
        assert result.exit_code == 1
        assert message in result.stderr
    result = invoke("evaluate", own, heavy, data)  # data have no weights
    assert result.exit_code == 1
    assert "have weights" in result.stderr
    assert report(own, heavy, data, "--weight", "none")["rows"] == 800


def test_positive_label_other_than_in_training(model, data):
    found, other = report(model, data), report(model, data, "--positive", "no")
    assert other["positives"] == 400 - found["positives"]
    assert other["auc"]["value"] == pytest.approx(1 - found["auc"]["value"])


def test_reader_options_other_than_in_training(model, data, tmp_path):
    plain = report(model, data)["auc"]
    lines = [line for line in LINES if "Bath" not in line]
    named = write_table(tmp_path / "named.csv", LINES, HEADER.replace("clicked", "y"))
    assert report(model, named, "--label", "y")["auc"] == plain
    assert report(model, named, "--input", "label=y")["auc"] == plain
    piped = write_table(
        tmp_path / "piped.csv",
        [line.replace(",", "|") for line in lines],
        HEADER.replace(",", "|"),
    )
    assert report(model, piped, "--input", "delimiter=|")["rows"] == len(lines)
    holes = write_table(tmp_path / "holes.csv", [*LINES, ",York,3,no"])
    result = invoke("evaluate", model, holes)
    assert "the value is missing" in result.stderr
    assert "missing=zero replaces it by zero" in result.stderr
    assert report(model, holes, "--input", "missing=zero")["rows"] == len(LINES) + 1
    for more, message in (
        (("--input", "missing=impute"), "trained without it and has no column means"),
        (("--input", "missing=guess"), "not 'guess'"),
        (("--input", "categorical=age"), "categorical: the model fixes how features a"),
        (("--label", "clickd"), "(did you mean 'clicked'?); there are 'age'"),
    ):
        result = invoke("evaluate", model, data, *more)
        assert result.exit_code == 1
        assert message in result.stderr


def test_errors_name_existing_options(model, tmp_path):
    """Options of training are named as such."""
    bad = {
        "empty.csv": (HEADER, ",York,3,no"),
        "word.csv": (HEADER, "old,York,3,no"),
        "again.csv": (HEADER, HEADER),
        "twice.csv": ("age,town,income,age", "1,York,3,no"),
        "town.csv": (HEADER, "1,,3,no"),
        "label.csv": (HEADER, "1,York,3,perhaps"),
    }
    for name, (header, line) in bad.items():
        data = write_table(tmp_path / name, [*LINES[:9], line], header)
        for verb in ("score", "evaluate"):
            result = invoke(verb, model, data)
            if (verb, name) == ("score", "label.csv"):
                continue
            assert result.exit_code == 1, name
            said = re.sub("in training,? --[a-z]+", "", result.stderr)
            for option in re.findall("--[a-z-]+", said):
                assert option in invoke(verb, "-h").stdout, (verb, name, said)


def test_report_has_the_numbers_of_json(model, data, tmp_path):
    path = tmp_path / "report.html"
    result = invoke("evaluate", model, data, "--report", path, "--by", "town")
    assert result.exit_code == 0, result.stderr
    text = path.read_text(encoding="utf-8")
    embedded = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    found = report(model, data)
    assert next(iter(embedded["models"].values())) == list(triple(found["auc"]))
    for part in ("Model card", "Training data", "Groups"):
        assert part in text


def test_report_refuses_weights_and_inputs(model, data, tmp_path):
    before = data.read_bytes()
    result = invoke("evaluate", model, data, "--report", data)
    assert result.exit_code != 0
    assert data.read_bytes() == before
    result = invoke("evaluate", model, data, "--time", "town")
    assert result.exit_code != 0
    assert "--time needs --report" in result.stderr


def test_groups_by_date_are_periods(tmp_path):
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(300)
    x = rng.normal(size=300)
    y = (x + rng.normal(size=300) > 0).astype(int)
    lines = [f"{d},{a:.4f},{b}" for d, a, b in zip(days, x, y, strict=True)]
    path = tmp_path / "days.csv"
    path.write_text("\n".join(["day,x,y", *lines]) + "\n")
    out = tmp_path / "m.aucmax"
    made = invoke(
        "train",
        path,
        "-o",
        out,
        "--label",
        "y",
        "--algorithm",
        "fast",
        "--input",
        "drop=day",
    )
    assert made.exit_code == 0, made.stderr
    found = report(out, path, "--by", "day")
    names = sorted(group["group"] for group in found["groups"])
    assert names[0] == "2024-01"
    assert len(names) == 10
    assert 0.0 <= found["groups_pvalue"] <= 1.0


def test_columns_of_tables_that_have_no_value(tmp_path):
    rng = np.random.default_rng(0)
    x, town = rng.normal(size=400), rng.choice(["York", ""], 400)
    y = (x + rng.normal(size=400) > 0).astype(int)
    days = np.datetime64("2024-01-01") + np.arange(400)
    columns = zip(days, town, x, y, strict=True)
    lines = [f"{d},{t},{a:.4f},{b}" for d, t, a, b in columns]
    path = write_table(tmp_path / "t.csv", lines, "day,town,x,y")
    out = tmp_path / "m.aucmax"
    made = invoke("train", path, "-o", out, "--label", "y", "--input", "drop=day,town")
    assert made.exit_code == 0, made.stderr
    page = tmp_path / "report.html"
    plain = invoke("evaluate", out, path, "--by", "town", "--report", page)
    assert plain.exit_code == 0, plain.stderr
    assert re.search(r"^ ?\(missing\) +0\.", plain.stdout, re.M)
    assert "PSI" not in plain.stdout
    text = page.read_text(encoding="utf-8")
    assert "<th>(missing)</th>" in text
    timed = invoke("evaluate", out, path, "--time", "day", "--report", page)
    assert timed.exit_code == 0, timed.stderr
    assert "PSI of scores" in timed.stdout
    assert "<h2>Time" in page.read_text(encoding="utf-8")
    names = {group["group"] for group in report(out, path, "--by", "town")["groups"]}
    assert names == {"York", ""}  # as in the data


def test_goal_and_promise_are_weighted_as_the_auc_is(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,b,w,y"]
    for _ in range(600):
        a, b = rng.normal(size=2)
        heavy = rng.random() < 0.2
        y = int(a + rng.normal() > 1.0)
        lines.append(f"{a + 1.5 * heavy:.4f},{b:.4f},{10 if heavy else 1},{y}")
    data, model = tmp_path / "d.csv", tmp_path / "m.aucmax"
    data.write_text("\n".join(lines) + "\n")
    names = "--label", "y", "--input", "weight=w"
    goal = "--goal", "recall@fpr=0.2", "--algorithm", "AUCClassifier"
    invoke("train", data, "-o", model, *names, *goal)
    found = json.loads(invoke("evaluate", model, data, "--json").stdout)
    scored = invoke("score", model, data).stdout.split()[1:]
    w, y, score = np.array([line.split(",")[2:] for line in scored], float).T
    assert found["auc"]["value"] == metrics.auc(y, score, sample_weight=w)
    goal = found["goal"]
    assert goal["value"] == pytest.approx(
        metrics.tpr_at(y, score, 0.2, sample_weight=w), rel=1e-6
    )
    called = score >= goal["threshold"]
    negative = y == 0
    expected = np.average(called[negative], weights=w[negative])
    assert goal["rate"][0] == pytest.approx(expected)
    assert abs(expected - called[negative].mean()) > 0.01


def test_report_and_terminal_name_the_same_thresholds(model, data, tmp_path):
    path = tmp_path / "report.html"
    result = invoke("evaluate", model, data, "--report", path)
    page = path.read_text(encoding="utf-8")
    for rate in (1, 5, 10):
        line = next(x for x in result.stdout.splitlines() if f"FPR ≤ {rate} %" in x)
        threshold = line.split("%")[1].split()[0]
        assert f"<th>FPR ≤ {rate} %</th><td>{threshold}</td>" in page
        found = report(model, data)["operating_points"]
        assert float(threshold) in [point["threshold"] for point in found]
