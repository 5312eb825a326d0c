"""Systems of the papers, with feature maps, on the command line."""

import json
from contextlib import nullcontext

import pytest

from aucmax.workflows.plan import Observer, Plan, StoppedError
from aucmax.workflows.train import train
from helpers.commands import fields, invoke, table, write_table

SMALL = ("--param", "n_components=10", "--param", "first_rows=100")


@pytest.fixture
def data(tmp_path):
    return write_table(tmp_path / "clicks.csv", table(600))


@pytest.mark.parametrize(
    "name", ["npsam", "NBAM", "OPAUCrp", "RBF-RankSVM", "KernelAUCCV"]
)
def test_every_kind_of_name_trains_and_scores(name, data, tmp_path):
    model = tmp_path / "model.aucmax"
    more = () if name in ("RBF-RankSVM", "KernelAUCCV") else SMALL
    result = invoke(
        *("train", data, "-o", model, "--label", "clicked", "--algorithm", name),
        *(*more, "--holdout", 0.2, "--json"),
    )
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["algorithm"].lower() == name.lower()
    assert told["judged"]["auc"]["value"] > 0.65
    assert len(fields(invoke("score", model, data).stdout)) == 600
    assert invoke("evaluate", model, data).exit_code == 0
    info = json.loads(invoke("info", model, "--json").stdout)
    assert info["class"] in ("Chain", "KernelBAM", "KernelAUCCV")
    assert info["units"] is None or name != "OPAUCrp"
    assert invoke("info", model).exit_code == 0


class _Stop(Observer):
    """Stops training after a number of rows."""

    def __init__(self, rows):
        self.rows, self.seen = rows, 0

    def progress(self, progress, done):
        self.seen = progress.steps

    def listening(self):
        return nullcontext(lambda: int(self.seen >= self.rows))


@pytest.mark.parametrize("rows", [1, 250])
def test_resumed_training_gives_the_same_bytes(rows, tmp_path, monkeypatch):
    """Training is stopped before or after the feature map is fitted."""
    monkeypatch.setattr("aucmax.io.text.BLOCK", 1 << 12)
    monkeypatch.setattr("aucmax.io.csv_source.CsvSource._block", 1 << 12)
    data = write_table(tmp_path / "clicks.csv", table(600))
    plan = Plan(
        [str(data)],
        algorithm="NPSAM",
        params={"n_components": 10, "first_rows": 200},
        reader={"label": "clicked"},
    )
    whole, parts = tmp_path / "whole.aucmax", tmp_path / "parts.aucmax"
    train(plan, whole)
    with pytest.raises(StoppedError):
        train(plan, parts, observer=_Stop(rows))
    train(plan, parts, resume=True)
    assert parts.read_bytes() == whole.read_bytes()


def test_unknown_parameter_and_unknown_algorithm_are_errors(data, tmp_path):
    result = invoke(
        *("train", data, "-o", tmp_path / "m", "--label", "clicked"),
        *("--algorithm", "NPSAM", "--param", "colour=3"),
    )
    assert result.exit_code == 1
    assert "no parameter 'colour'" in result.stderr
    result = invoke(
        *("train", data, "-o", tmp_path / "m", "--label", "clicked"),
        *("--algorithm", "NPSAN"),
    )
    assert "Did you mean NPSAM" in result.stderr
