"""AUCStream on data frames and lists of dictionaries."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import aucmax
from aucmax import AUCStream

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


def test_rare_categories_have_no_feature_if_there_are_too_many():
    frame, y = table(4000)
    names = np.array([f"name {i}" for i in range(3000)])
    frame["name"] = np.where(
        np.arange(4000) % 2, "Smith", names[np.arange(4000) % 3000]
    )
    frame["zone"] = np.where(np.arange(4000) % 3, "east", "west")
    model = AUCStream(random_state=0).fit(frame, y)
    assert model.n_features_in_ <= 2000
    found = model.encoder_.get_feature_names_out()
    assert {"name=Smith", "zone=east", "zone=west", "town=Bath"} <= set(found)
    assert model.refits_[0] > 0
    test, label = table(1000, seed=1)
    test["name"], test["zone"] = "Smith", "east"
    assert model.score(test, label) > 0.75
