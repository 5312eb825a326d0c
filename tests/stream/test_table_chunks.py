"""AUCStream on data frames and lists of dictionaries."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import aucmax
from aucmax import AUCStream
from aucmax.workflows.export_onnx import to_onnx
from aucmax.workflows.score import Model

pandas = pytest.importorskip("pandas")


def table(n, seed=0):
    """Return a table with a category, missing numbers and a nonlinear effect."""
    rng = np.random.default_rng(seed)
    size, other = rng.normal(size=(2, n))
    town = rng.choice(["York", "Bath", "Hull"], n)
    odds = 2.0 * np.abs(size) - 2.5 + 2.0 * (town == "Bath")
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-odds))
    other[rng.random(n) < 0.2] = np.nan
    return pandas.DataFrame({"size": size, "other": other, "town": town}), y


def records(frame):
    """Return dictionaries without the keys of missing values."""
    rows = frame.to_dict("records")
    return [{k: v for k, v in row.items() if v == v} for row in rows]


@pytest.mark.parametrize("form", [lambda frame: frame, records], ids=["frame", "dicts"])
def test_tables_in_chunks(form, tmp_path):
    frame, y = table(4000)
    model = AUCStream(random_state=0)
    for start in range(0, 4000, 500):
        part = slice(start, start + 500)
        model.partial_fit(form(frame[part]), y[part], classes=[False, True])
    test, label = table(2000, seed=1)
    assert model.score(form(test), label) > 0.8
    assert model.refits_[0] > 2
    model.save(tmp_path / "model")
    twin = aucmax.load(tmp_path / "model")
    expected = model.decision_function(test)
    assert_array_equal(twin.decision_function(form(test)), expected)
    for one in (model, twin):
        one.partial_fit(form(test), label)
    assert_array_equal(
        twin.decision_function(test), model.decision_function(form(test))
    )


def test_fit_accepts_tables():
    frame, y = table(1500)
    model = AUCStream(random_state=0).fit(frame, np.where(y, "yes", "no"))
    assert model.score(frame, np.where(y, "yes", "no")) > 0.8
    assert model.predict_proba(frame).shape == (1500, 2)


def test_numbers_stay_numbers():
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    model = AUCStream().partial_fit(pandas.DataFrame(X, columns=["a", "b"]), y)
    assert model.encoder_ is None
    assert model.feature_names_in_.tolist() == ["a", "b"]
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(pandas.DataFrame(X, columns=["a", "b"]), y)
    assert AUCStream().partial_fit(pandas.DataFrame(X), y).encoder_ is not None


def test_unknown_categories_and_keys_are_accepted():
    rows = [{"a": float(i % 7), "b": "xy"[i % 2]} for i in range(100)]
    y = np.arange(100) % 2
    model = AUCStream().partial_fit(rows, y)
    model.partial_fit([{"b": "new"}, {"a": 1.0, "c": 3}], [0, 1])
    assert np.isfinite(model.decision_function([{"a": 2.0}, {"b": "other"}])).all()


def with_names(n, seed=0):
    """Return a table with a column of many names, some of which matter."""
    frame, y = table(n, seed)
    rng = np.random.default_rng(seed + 10)
    who = rng.integers(0, 20_000, n)
    frame["name"] = np.where(rng.random(n) < 0.5, "Smith", [f"name {i}" for i in who])
    y = np.where((frame["name"] != "Smith") & (who % 5 == 0), rng.random(n) < 0.9, y)
    return frame, y


def test_many_categories_do_not_stop_the_trees():
    frame, y = with_names(6000)
    model = AUCStream(random_state=0).fit(frame, y)
    assert model.n_features_in_ > 2000
    assert model.refits_[0] > 0
    assert model._trees.columns.width < 20
    test, label = with_names(3000, seed=1)
    linear = AUCStream(nonlinear=False, random_state=0).fit(frame, y)
    assert model.score(test, label) > linear.score(test, label) + 0.02


def test_many_categories_in_chunks_and_from_files(tmp_path):
    frame, y = with_names(6000)
    encoder = AUCStream().fit(frame, y).encoder_
    X, models = encoder.transform(frame), []
    for size in (6000, 700):
        model = AUCStream(random_state=0, reservoir=1500)
        model.set_categories(encoder.category_of_feature)
        for start in range(0, 6000, size):
            part = slice(start, start + size)
            model.partial_fit(X[part], y[part], classes=[False, True])
            if size == 700:
                model.save(tmp_path / "part")
                model = aucmax.load(tmp_path / "part")
        models.append(model.finish())
    assert models[0].refits_[0] > 2
    assert models[0]._trees.forest.encoding is not None
    for k, model in enumerate(models):
        model.save(tmp_path / f"model {k}")
    assert (tmp_path / "model 0").read_bytes() == (tmp_path / "model 1").read_bytes()
    with pytest.raises(ValueError, match="before the first row"):
        model.set_categories(encoder.category_of_feature)
    model = AUCStream()
    model.set_categories(encoder.category_of_feature[:-1])
    with pytest.raises(ValueError, match="set_categories was given shape"):
        model.partial_fit(X[:100], y[:100])


def test_many_categories_are_exported_to_onnx(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    frame, y = with_names(6000)
    model = AUCStream(random_state=0).fit(frame, y)
    assert not model.blended_score().linear
    model.save(tmp_path / "model")
    graph = to_onnx(Model.load(tmp_path / "model"))
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    test = with_names(500, seed=1)[0]
    test.loc[:50, "name"] = "unknown"
    X = model.encoder_.transform(test, warn_unknown=False).toarray()
    (found,) = session.run(None, {"X": X})
    assert_allclose(found, model.decision_function(test), atol=1e-4)


def test_dictionaries_with_values_of_several_types():
    rng = np.random.default_rng(0)
    values = [8001, "x", 9000.0, True, None]
    codes = rng.integers(0, 5, 2000)
    rows = [{"code": values[k], "size": float(k)} for k in codes]
    y = rng.random(2000) < np.where(codes == 1, 0.8, 0.2)
    model = AUCStream(random_state=0)
    for start in range(0, 2000, 500):
        model.partial_fit(rows[start : start + 500], y[start : start + 500])
    scores = model.decision_function(rows)
    alone = [model.decision_function([row])[0] for row in rows[:20]]
    assert_array_equal(alone, scores[:20])
    huge = model.decision_function([{"code": 2**70, "size": 1.0}])
    assert np.isfinite(huge).all()


@pytest.mark.parametrize("nonlinear", [False, True])
@pytest.mark.parametrize("n_features", [1, 3])
def test_equal_rows_do_not_spoil_the_calibration(n_features, nonlinear):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, n_features))
    X = np.vstack([X, np.ones((3000, n_features)), X])  # a sensor that is stuck
    y = X[:, 0] + rng.normal(size=len(X)) > 0.5
    y[1500:4500] = rng.random(3000) < 0.3
    model = AUCStream(nonlinear=nonlinear, random_state=0)
    model.partial_fit(X[:4500], y[:4500])
    assert np.abs(model.decision_function(X)).max() < 100.0
    model.partial_fit(X[4500:], y[4500:])
    assert model.score(X[4500:], y[4500:]) > 0.7
    assert np.abs(model.decision_function(X)).max() < 100.0
