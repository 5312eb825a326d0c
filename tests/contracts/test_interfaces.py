"""The interfaces of design: what estimators promise to storage, streams and exports."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import aucmax
from aucmax.base.interfaces import StreamLearner
from aucmax.storage.state import (
    Spec,
    Storable,
    check_arrays,
    flatten,
    restore,
    unflatten,
)
from helpers.data import mixed

SOURCES = Path(aucmax.__file__).parent
SETTINGS = {
    "AUCClassifier": {"members": [aucmax.BAM(), aucmax.LeastSquaresAUC()], "cv": 3},
    "Chain": {
        "map": aucmax.RandomFourier(20, random_state=0),
        "learner": aucmax.SPAM(),
        "first_rows": 100,
    },
    "KernelAUCCV": {"n_components": 10, "cv": 2},
}


def made(name):
    return getattr(aucmax, name)(**SETTINGS.get(name, {}))


def seeded(model):
    keys = [key for key in model.get_params() if key.endswith("random_state")]
    return model.set_params(**dict.fromkeys(keys, 0))


@pytest.fixture(scope="module")
def fitted():
    X, y = mixed(300)
    models = {}

    def get(name):
        if name not in models:
            models[name] = seeded(made(name)).fit(X, y)
        return models[name], X, y

    return get


@pytest.mark.parametrize("name", aucmax.ESTIMATORS)
def test_a_state_is_plain_data_and_restores_the_model(name, fitted):
    model, X, _ = fitted(name)
    assert isinstance(model, Storable)
    header, arrays = flatten(model.state())
    again = restore(unflatten(json.loads(json.dumps(header)), arrays))
    assert type(again) is type(model)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    header_again, arrays_again = flatten(again.state())
    assert header_again == header
    assert arrays_again.keys() == arrays.keys()
    for key, array in arrays.items():
        assert_array_equal(arrays_again[key], array)


@pytest.mark.parametrize("name", aucmax.ESTIMATORS)
def test_an_array_that_is_missing_or_not_finite_is_an_error(name, fitted):
    model, *_ = fitted(name)
    header, arrays = flatten(model.state())
    for key in arrays:
        rest = {other: arrays[other] for other in arrays if other != key}
        if key.startswith("state.") or ".state." in key or "own.before" in key:
            continue  # a learner without any state is a model that cannot continue
        with pytest.raises((ValueError, LookupError)):
            restore(unflatten(header, rest))
    for key in ("coef", "learner.coef", "result.dual_coef_", "own.blend"):
        if key in arrays:
            wrong = {**arrays, key: np.full_like(arrays[key], np.nan)}
            with pytest.raises(ValueError, match="not finite"):
                restore(unflatten(header, wrong))


@pytest.mark.parametrize(
    ("spec", "array", "text"),
    [
        (Spec("d"), np.zeros(2), "shape"),
        (Spec("1"), np.zeros(2), "shape"),
        (Spec("kk"), np.zeros((2, 3)), "shape"),
        (Spec("k"), np.array([np.inf]), "not finite"),
        (Spec("k"), np.zeros(2, np.float32), "float32"),
        (Spec("k", is_index=True), np.array([3.0]), "out of range"),
        (Spec("k", is_index=True), np.array([-1.0]), "out of range"),
        (Spec("k", is_index=True), np.array([0.5]), "not whole"),
    ],
)
def test_specs_are_checked(spec, array, text):
    with pytest.raises(ValueError, match=text):
        check_arrays({"a": array}, {"a": spec}, n_features=3)


def test_specs_that_hold():
    specs = {
        "a": Spec("kd"),
        "b": Spec("k", is_index=True),
        "c": Spec(finite=False),
        "d": Spec(""),
    }
    arrays = {
        "a": np.zeros((2, 3)),
        "b": np.array([0.0, 2.0]),
        "c": np.full((1, 1, 1), np.nan),
        "d": np.array(1.0),
    }
    found = check_arrays(arrays, specs, n_features=3)
    assert found["b"].dtype == np.int64
    with pytest.raises(ValueError, match="missing"):
        check_arrays({}, specs, n_features=3)


@pytest.mark.parametrize("name", aucmax.ESTIMATORS)
def test_an_expression_scores_as_the_model_does_or_is_none(name, fitted):
    model, X, _ = fitted(name)
    expression = model.expression()
    if expression is None:
        assert name == "AUCClassifier"
        return
    Z, total = X, 0.0
    if expression.scaling is not None:
        Z = expression.scaling.apply(X[:, expression.scaling.columns])
    if expression.units is not None:
        kind, directions, phases, amplitudes = expression.units
        inner = Z @ directions + phases
        if kind == "gaussian":
            inner = np.exp(inner - 0.5 * np.sum(Z * Z, axis=1)[:, np.newaxis])
        else:
            inner = np.cos(inner)
        total = inner @ amplitudes
    score = expression.intercept + Z @ expression.weights + total
    assert_allclose(score, model.decision_function(X), rtol=1e-5, atol=1e-5)


STREAMS = [name for name in aucmax.ESTIMATORS if hasattr(made(name), "partial_fit")]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_learner_has_the_whole_interface(name):
    X, y = mixed(300)
    model = seeded(made(name)).partial_fit(X, y, classes=[0, 1])
    for member in vars(StreamLearner):
        assert member.startswith("_") or member in dir(model), member
    assert model.resumable
    pairs = model.progressive_auc
    assert pairs is None or 0.0 <= pairs[0] <= pairs[1]
    quadratic = model.grows_quadratically
    assert quadratic == (name in ("OPAUC", "CBR", "LeastSquaresAUC", "AdaOAM"))


@pytest.mark.parametrize("name", STREAMS)
def test_a_scorer_stays_what_it_was(name):
    X, y = mixed(400)
    model = seeded(made(name)).partial_fit(X[:200], y[:200], classes=[0, 1])
    score = model.scorer()
    before = score(X)
    scores = model.decision_function(X)
    # Up to a constant: the interface promises the order.
    assert_allclose(before - before[0], scores - scores[0], rtol=1e-9, atol=1e-9)
    model.partial_fit(X[200:], y[200:])
    assert_array_equal(score(X), before)


@pytest.mark.parametrize("name", STREAMS)
def test_new_features_count_as_zero_so_far(name):
    X, y = mixed(300)
    wide = np.hstack([X, np.zeros((300, 2))])
    model = seeded(made(name)).partial_fit(X, y, classes=[0, 1])
    scores = model.decision_function(X)
    model.resize(X.shape[1] + 2)
    assert model.n_features_in_ == X.shape[1] + 2
    # BLAS may sum a wider row in another order.
    assert_allclose(model.decision_function(wide), scores, rtol=1e-14, atol=1e-14)
    model.partial_fit(wide, y)
    model.resize(X.shape[1])
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("name", STREAMS)
def test_fading_keeps_the_scores_or_is_an_error(name):
    X, y = mixed(300)
    model = seeded(made(name)).partial_fit(X, y, classes=[0, 1])
    before = model.decision_function(X)
    try:
        model.fade(0.5)
    except NotImplementedError:
        return
    assert_array_equal(model.decision_function(X), before)
    model.partial_fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def test_nothing_is_found_by_hasattr_on_private_names():
    found = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id not in ("hasattr", "getattr") or len(node.args) < 2:
                continue
            name = node.args[1]
            if isinstance(name, ast.Constant) and str(name.value).startswith("_"):
                found.append(f"{path.relative_to(SOURCES)}:{node.lineno}")
    numba = [place for place in found if place.startswith("core/jit.py")]
    assert found == numba
