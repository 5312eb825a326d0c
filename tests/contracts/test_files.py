"""Contract: saved and copied models score and continue training bit for bit."""

import copy
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

import aucmax
from aucmax import SPAM
from contracts.estimators import (
    ONLINE,
    PLAIN,
    VARIANTS,
    as_id,
    assert_same_bits,
    learned_arrays,
    plain,
    seeded,
    trained,
)
from helpers.data import gaussian, mixed


def saved_and_loaded(model, folder):
    model.save(folder / "model.aucmax")
    return aucmax.load(folder / "model.aucmax")


COPIES = {
    "save": saved_and_loaded,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
}


def each_copy_of(estimators):
    """Parametrize by estimator and way to copy; variants are only saved and loaded."""
    found = [(e, way) for e in estimators for way in COPIES]
    found = [(e, way) for e, way in found if way == "save" or e in PLAIN]
    return pytest.mark.parametrize(("estimator", "way"), found, ids=as_id)


@each_copy_of(VARIANTS)
def test_copies_are_equal(estimator, way, tmp_path):
    X, y = mixed(100)
    for rows in (X, sparse.csr_array(X)):
        labels = np.array(["no", "yes"])[y]
        model = trained(estimator, rows, labels)
        twin = COPIES[way](model, tmp_path)
        assert type(twin) is type(model)
        assert repr(twin.get_params()) == repr(model.get_params())
        assert_same_bits(twin, model)
        assert_array_equal(twin.classes_, model.classes_)
        assert_array_equal(twin.decision_function(X), model.decision_function(X))
        assert_array_equal(twin.predict(X), model.predict(X))
        assert_same_bits(clone(twin).fit(rows, labels), model)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@each_copy_of(ONLINE)
def test_resumed_training_equals_uninterrupted(estimator, way, layout, tmp_path):
    X, y = mixed(600)
    uninterrupted = seeded(estimator)
    model = seeded(estimator)
    for lo, hi in ((0, 5), (5, 300), (300, 600)):
        part = layout(X[lo:hi]), y[lo:hi]
        uninterrupted.partial_fit(*part, classes=[0, 1])
        model = COPIES[way](model, tmp_path) if lo else model
        model.partial_fit(*part, classes=[0, 1])
    assert_same_bits(model, uninterrupted)
    fitted = trained(estimator, layout(X), y)
    twin = COPIES[way](fitted, tmp_path)
    assert_same_bits(twin.partial_fit(layout(X), y), fitted.partial_fit(layout(X), y))


@each_copy_of(ONLINE)
def test_copies_are_independent(estimator, way, tmp_path):
    X, y = mixed(100)
    model = trained(estimator, X, y, "partial_fit")
    twin = COPIES[way](model, tmp_path)
    before = learned_arrays(twin)
    model.partial_fit(X, y)
    for key, value in learned_arrays(twin).items():
        assert_array_equal(value, before[key])


def test_file_keeps_names_labels_and_random_state(tmp_path):
    X, y = gaussian(60, 3)
    frame = pd.DataFrame(X, columns=["age", "debt", "income"])
    rng = np.random.RandomState(5)
    model = SPAM(l2=np.float64(0.1), random_state=rng).fit(frame, y == 1)
    twin = saved_and_loaded(model, tmp_path)
    assert_array_equal(twin.feature_names_in_, model.feature_names_in_)
    assert twin.classes_.dtype == bool
    # The random generator continues from its saved state.
    assert_same_bits(twin.fit(frame, y == 1), model.fit(frame, y == 1))


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "model.aucmax"
    model = trained(SPAM(), *gaussian(30))
    model.save(path)
    before = path.read_bytes()
    model.partial_fit(*gaussian(30, seed=1))
    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:

            def fail(*_):
                raise OSError("disk full")

            patch.setattr(os, step, fail)
            with pytest.raises(OSError, match="disk full"):
                model.save(path)
        assert [file.name for file in tmp_path.iterdir()] == ["model.aucmax"]
        assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError, match="does not exist"):
        model.save(tmp_path / "missing" / "model.aucmax")
    model.save(path)
    assert_same_bits(aucmax.load(path), model)


@plain
def test_unfitted_estimators_cannot_be_saved(estimator, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        seeded(estimator).save(tmp_path / "model.aucmax")
