"""AUC and stability of scores by period, and rows without labels."""

import json

import numpy as np
import pandas as pd
import pytest

import aucmax
from aucmax import BAM, AUCClassifier
from aucmax.metrics import auc, stability_index
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


def test_periods_of_files(files, tmp_path):
    folder, _, new = files
    page = tmp_path / "r.html"
    command = ["evaluate", folder / "m", folder / "new.csv", "--time", "day"]
    result = invoke(*command, "--report", page, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    known = (new.y != "").to_numpy()
    assert found["rows"] == known.sum()
    assert [one["name"] for one in found["periods"]] == sorted(
        {str(day)[:10] for day in new.day}
    )
    model = aucmax.load(folder / "m")
    encoder = aucmax.tables.encoder.TableEncoder.from_json(model.recipe_["input"])
    score = model.score_rows(encoder.transform(new.drop(columns="y")))
    period = found["periods"][-1]
    here = known & (new.day >= np.datetime64("2024-09-27")).to_numpy()
    first = known & (new.day == new.day.min()).to_numpy()
    assert period["rows"] == here.sum()
    assert period["auc"][0] == pytest.approx(auc(new.y[here].astype(int), score[here]))
    expected = stability_index(score[first], score[here]).value
    assert period["stability"] == pytest.approx(expected, rel=1e-9)
    assert "population stability index of the scores" in page.read_text()
    people = invoke(*command, "--report", page)
    assert "PSI of scores" in people.stdout
    assert "left out for want of a label" in people.stderr


def test_rows_without_labels_are_left_out(files):
    folder, _, new = files
    result = invoke("evaluate", folder / "m", folder / "new.csv", "--json")
    found = json.loads(result.stdout)
    assert found["rows"] == (new.y != "").sum()
    assert found["periods"] == []
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
    assert found["rows"] == 260
    assert "40 rows were left out for want of a label" in result.stderr
    frame.assign(paid="").to_csv(tmp_path / "new.csv", index=False)
    result = invoke(*command)
    assert result.exit_code == 1
    assert "300 rows were left out for want of a label" in result.stderr
