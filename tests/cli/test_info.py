"""``aucmax info``."""

import json
from datetime import datetime

import numpy as np
import pytest

import aucmax
from aucmax.metrics._ranking import with_interval
from aucmax.storage import model_file as tensors
from aucmax.storage.model_file import VERSION
from aucmax.storage.state import save_model
from aucmax.workflows.models import load_with_recipe
from aucmax.workflows.plan import Plan
from aucmax.workflows.score import Model
from aucmax.workflows.train import train
from helpers.commands import invoke, table, write_table
from helpers.states import dump

READER = {"label": "clicked"}


def test_info_json(model):
    result = invoke("info", model, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["class"] == "LeastSquaresAUC"
    assert found["parameters"] == aucmax.load(model).get_params()
    assert found["features"] == found["nonzero"] == 6
    assert found["training"]["rows"] == 300
    assert found["training"]["positives"] == 60
    assert found["task"] == "yes against no"
    assert found["bytes"] == model.stat().st_size
    assert found["format_version"] == VERSION
    sizes = [abs(entry["weight"]) for entry in found["largest_weights"]]
    assert sizes == sorted(sizes, reverse=True)
    entries = {entry["feature"]: entry for entry in found["largest_weights"]}
    assert {"age", "income", "town=York"} < entries.keys()
    written = datetime.fromisoformat(found["written"]).timestamp()
    assert written == int(model.stat().st_mtime)
    assert found["chosen"] is found["judged"] is None


def test_info_is_json_even_if_the_file_has_nan(tmp_path):
    path = tmp_path / "m.aucmax"
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    model = aucmax.AUCClassifier([("linear", aucmax.BAM())], cv=2).fit(X, y)
    model.auc_ = model.auc_._replace(low=float("nan"))
    model.save(path)
    result = invoke("info", path, "--json")
    assert result.exit_code == 0
    strict = {"parse_constant": lambda text: pytest.fail(text)}
    assert json.loads(result.stdout, **strict)["auc"][1] is None
    assert invoke("info", path).exit_code == 0


@pytest.mark.parametrize("width", [10**6, 10**9, 10**15])
def test_claimed_width_without_an_array(width, tmp_path, monkeypatch):
    path = tmp_path / "m.aucmax"
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    chain = aucmax.Chain(aucmax.RandomFourier(4, random_state=0), aucmax.BAM())
    header, arrays = dump(chain.fit(X, y))
    for part in (header, header["parts"]["map"]):
        part["attributes"]["n_features_in_"] = width
    tensors.write(path, header, arrays)
    made = []
    monkeypatch.setattr(Model, "names", lambda self, some=None: made.append(some) or [])
    result = invoke("info", path)
    assert result.exit_code == int(width > 2**27)
    if result.exit_code:
        assert f"it claims {width:,} features" in result.stderr
    assert all(some == [] for some in made)


def test_info_text(model):
    result = invoke("info", model)
    assert result.exit_code == 0
    for words in ("LeastSquaresAUC", "yes against no", "rows: 300", "town=York", "l2="):
        assert words in result.stdout


def test_info_has_chosen_parameters_and_held_out_auc(tmp_path):
    data = write_table(tmp_path / "train.csv", table())
    path = tmp_path / "m.aucmax"
    plan = Plan([str(data)], "LeastSquaresAUCCV", holdout=0.3, reader=READER)
    judged = train(plan, path).judged
    found = json.loads(invoke("info", path, "--json").stdout)
    model = aucmax.load(path)
    assert found["judged"] == judged
    assert found["chosen"]["l2"] == model.l2_
    assert found["chosen"]["auc"] == model.path_["auc"].max()
    assert found["chosen"]["error"] == model.path_["error"][model.path_["auc"].argmax()]
    text = " ".join(invoke("info", path).stdout.split())
    area = with_interval(*(judged["auc"][key] for key in ("value", "low", "high")))
    assert f"AUC {area[0]}, 95 % confidence interval {area[1]} to {area[2]}" in text
    assert f"on {judged['rows']} held-out rows" in text
    assert f"l2 = {model.l2_:.4g}: AUC {found['chosen']['auc']:.4f} ± " in text
    # Missing and malformed entries of a model file are None.
    model.scores_ = np.zeros(())
    _, recipe = load_with_recipe(path)
    kept = {key: recipe[key] for key in ("input", "task", "training")}
    save_model(model, path, recipe=kept)
    found = json.loads(invoke("info", path, "--json").stdout)
    assert found["chosen"] is found["judged"] is None
    assert invoke("info", path).exit_code == 0


def test_info_of_a_model_trained_in_python(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 20))
    path = tmp_path / "m.aucmax"
    model = aucmax.LeastSquaresAUC().fit(X, np.where(X[:, 7] > 0, "cat", "ant"))
    model.save(path)
    found = json.loads(invoke("info", path, "--json").stdout)
    assert found["training"] is None
    assert found["classes"] == ["ant", "cat"]
    assert len(found["largest_weights"]) == 10
    assert found["largest_weights"][0]["feature"] == "7"
    assert "cat" in invoke("info", path).stdout


def test_other_files_are_not_models(tmp_path):
    (tmp_path / "m.aucmax").write_bytes(b"no model")
    result = invoke("info", tmp_path / "m.aucmax")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "not an aucmax model file" in result.stderr
