"""``aucmax algorithms``, and models with feature maps on the command line."""

import json
from contextlib import nullcontext

import numpy as np
import pytest

import aucmax
from aucmax import BAM, AUCClassifier, KernelAUCCV
from aucmax.blend.boosting import BoostedTrees
from aucmax.workflows.plan import Observer, Plan, StoppedError
from aucmax.workflows.score import Model
from aucmax.workflows.train import train
from helpers.commands import fields, invoke, table, write_table
from helpers.data import mixed

SMALL = ("--param", "n_components=10", "--param", "first_rows=100")


@pytest.fixture
def data(tmp_path):
    return write_table(tmp_path / "clicks.csv", table(600))


def test_algorithms_lists_all_systems():
    result = invoke("algorithms")
    assert result.exit_code == 0
    assert "NPSAM" in result.stdout
    assert "KMeansNystroem(n_components=1600)" in result.stdout
    found = json.loads(invoke("algorithms", "--json").stdout)
    assert len(found) == 41
    assert {"name", "papers", "minimises", "cost", "settings"} == found[0].keys()


@pytest.mark.parametrize(
    "name", ["npsam", "NBAM", "OPAUCrp", "RBF-RankSVM", "KernelAUCCV"]
)
def test_every_kind_of_name_trains_scores_and_exports(name, data, tmp_path):
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
    exported = json.loads(invoke("export", model).stdout)
    assert ("units" in exported) == (info["units"] is not None)


@pytest.mark.parametrize("name", ["NPSAM", "FASAM", "OPAUCrp", "RBF-RankSVM-sub"])
def test_onnx_gives_the_same_scores(name, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    estimator = aucmax.named(name, random_state=0)
    if "map__n_components" in estimator.get_params():
        estimator.set_params(map__n_components=4)
    path, output = tmp_path / "m.aucmax", tmp_path / "m.onnx"
    estimator.fit(X, X[:, 0] * X[:, 1] > 0).save(path)
    assert invoke("export", path, "-o", output).exit_code == 0
    session = runtime.InferenceSession(output)
    (scores,) = session.run(["score"], {"X": 2.0 * X})
    np.testing.assert_allclose(scores, Model.load(path).score(2.0 * X), rtol=1e-9)


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


def test_onnx_of_a_blend_gives_the_same_scores(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X, y = mixed(200)
    X[::5, 2] = np.nan
    kernel = KernelAUCCV(20, widths=[1.0], cv=2, fallback=False)
    members = [BAM(), kernel, BoostedTrees(5)]
    model = AUCClassifier(members, cv=2, random_state=0).fit(X, y)
    assert len(model.members_) > 2
    path, output = tmp_path / "m.aucmax", tmp_path / "m.onnx"
    model.save(path)
    assert invoke("export", path, "-o", output).exit_code == 0
    session = runtime.InferenceSession(output, providers=["CPUExecutionProvider"])
    (scores,) = session.run(["score"], {"X": X})
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-4, atol=1e-5)
    said = invoke("export", path, "-o", tmp_path / "m.json")
    assert said.exit_code == 1
    assert "not one linear or kernel expression" in said.stderr
