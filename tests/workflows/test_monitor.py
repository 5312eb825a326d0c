"""Monitoring: shifted columns, rows without labels, and the report."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import aucmax
from aucmax import BAM, AUCClassifier, report
from aucmax.metrics import auc, expected_auc, stability_index
from aucmax.report import UnlabelledRows
from aucmax.report.monitoring import monitor
from aucmax.tables.periods import MISSING
from helpers.commands import invoke


def months(n, seed, shift=0.0):
    """Return rows of ten months; x moves in the last three."""
    rng = np.random.default_rng(seed)
    month = np.sort(rng.integers(1, 11, n))
    x = rng.normal(size=n) + shift * (month > 7)
    kind = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    y = (x + (kind == "c") + rng.normal(size=n) > 0.5).astype(int)
    day = np.datetime64("2024-01-01") + 30 * (month - 1)
    return pd.DataFrame({"day": day, "x": x, "kind": kind, "y": y})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("monitor")
    train, new = months(800, 0), months(1500, 1, shift=2.0)
    train.to_csv(folder / "train.csv", index=False)
    waiting = np.flatnonzero(new.day >= np.datetime64("2024-09-01"))
    new["y"] = new["y"].astype(object)
    new.loc[waiting, "y"] = ""
    new.loc[waiting[::4], "y"] = 1
    new.loc[waiting[1::4], "y"] = 0
    new.to_csv(folder / "new.csv", index=False)
    options = "--algorithm", "AUCClassifier", "--input", "drop=day"
    made = invoke(
        "train", folder / "train.csv", "-o", folder / "m", "--label", "y", *options
    )
    assert made.exit_code == 0, made.stderr
    return folder, train, new


def test_monitoring_of_files(files, tmp_path):
    folder, train, new = files
    page = tmp_path / "r.html"
    command = ["evaluate", folder / "m", folder / "new.csv", "--time", "day"]
    result = invoke(*command, "--report", page, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    known = (new.y != "").to_numpy()
    assert found["rows"] == known.sum()
    change = found["monitoring"]
    assert change["unlabelled"] == (~known).sum()
    # Columns against the training file, by the slow way.
    by_name = {one["column"]: one for one in change["columns"]}
    assert list(by_name) == ["x", "kind"]
    expected = stability_index(train.x, new.x).value
    assert by_name["x"]["stability"] == pytest.approx(expected, rel=1e-9)
    last = new[new.day >= np.datetime64("2024-09-27")]
    expected = stability_index(train.x, last.x).value
    assert by_name["x"]["last"] == pytest.approx(expected, rel=1e-9)
    counts = [[*(np.sum(t.kind == one) for one in "abc"), 0, 0] for t in (train, new)]
    p, q = ((np.array(c) + 0.5) / (sum(c) + 2.5) for c in counts)
    slow = float(np.sum((q - p) * np.log(q / p)))
    assert by_name["kind"]["stability"] == pytest.approx(slow, rel=1e-9)
    # Rows without labels, by the scores of the model.
    model = aucmax.load(folder / "m")
    encoder = aucmax.tables.encoder.TableEncoder.from_json(model.recipe_["input"])
    score = model.score_rows(encoder.transform(new.drop(columns="y")))
    labels = new.y[known].astype(int)
    with pytest.warns(UserWarning, match="calibration"):
        area = expected_auc(
            expit(score[~known]), reference=(labels, expit(score[known]))
        )
    assert change["expected_auc"] == pytest.approx(list(area))
    assert "calibration" in change["doubt"]
    period = change["periods"][-1]
    here = known & (new.day >= np.datetime64("2024-09-27")).to_numpy()
    assert period["rows"] == here.sum()
    assert period["auc"][0] == pytest.approx(auc(new.y[here].astype(int), score[here]))
    assert period["unlabelled"] == len(last) - here.sum()
    assert "Shifted since training" in change["advice"]
    text = page.read_text()
    assert "more rows have no label yet" in text
    assert "PSI, last period" in text
    people = invoke(*command, "--report", page)
    assert "PSI against training" in people.stdout
    assert "without a label: expected AUC" in people.stdout
    assert "left out for want of a label" not in people.stderr


def test_rows_without_labels_are_left_out_without_a_report(files):
    folder, _, new = files
    result = invoke("evaluate", folder / "m", folder / "new.csv", "--json")
    found = json.loads(result.stdout)
    assert found["rows"] == (new.y != "").sum()
    assert found["monitoring"] is None
    assert "left out for want of a label" in result.stderr


def test_labels_are_read_beside_rows_without_one(tmp_path):
    rng = np.random.default_rng(4)
    x = rng.normal(size=300)
    y = x + rng.normal(size=300) > 0.0
    frame = pd.DataFrame({"x": x, "kind": rng.choice(["a", "b"], 300)})
    model = AUCClassifier([BAM()], random_state=0).fit(frame, y)
    model.save(tmp_path / "m")
    answer = np.where(y, "yes", "no")
    answer[:40] = ""
    frame.assign(paid=answer).to_csv(tmp_path / "new.csv", index=False)
    command = ["evaluate", tmp_path / "m", tmp_path / "new.csv", "--label", "paid"]
    command += ["--json", "--report", tmp_path / "r.html"]
    result = invoke(*command)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["rows"], found["monitoring"]["unlabelled"]) == (260, 40)
    frame.assign(paid="").to_csv(tmp_path / "new.csv", index=False)
    result = invoke(*command)
    assert result.exit_code == 1
    assert "300 rows were left out for want of a label" in result.stderr


def test_rows_without_a_date_are_no_late_period():
    rng = np.random.default_rng(5)
    x = rng.normal(size=1200)
    y = x + rng.normal(size=1200) > 0.0
    month = np.repeat(["2024-01", "2024-02", "2024-03", MISSING], 300)
    score = np.where(month == MISSING, -x, x)
    found = monitor(y, score, period=month)
    assert found.advice == monitor(y[:900], x[:900], period=month[:900]).advice
    assert "not needed yet" in found.advice


def test_a_period_may_have_no_labels_at_all(tmp_path):
    rng = np.random.default_rng(3)
    p = rng.random(900)
    y = rng.random(900) < p
    month = np.repeat(["2024-01", "2024-02", "2024-03"], 300)
    later = UnlabelledRows(p[600:], p[600:], month[600:])
    path = Path(tmp_path / "r.html")
    report.html(y[:600], p[:600], path, time=month[:600], unlabelled=later)
    text = path.read_text()
    assert "300 more rows have no label yet" in text
    assert "2024-03" in text
    assert "no labels" in text
