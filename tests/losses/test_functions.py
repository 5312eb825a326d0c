"""The public losses, and boosting with them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from aucmax import losses
from aucmax.metrics import auc

rng = np.random.default_rng(0)
SCORE = np.round(rng.standard_normal(50), 1)
Y = (rng.random(50) < 0.3).astype(int)
V = rng.standard_normal(50)
CURVED = [name for name in losses.NAMES if name != "hinge"]


@pytest.mark.parametrize("name", losses.NAMES)
def test_weights_and_labels(name):
    weight = rng.integers(0, 3, 50)
    found = losses.gradient(name, Y, SCORE, weight)
    assert_array_equal(found, losses.gradient(name, 2 * Y - 1, SCORE.tolist(), weight))
    assert_array_equal(found[weight == 0], 0.0)
    copied = losses.value(name, Y.repeat(weight), SCORE.repeat(weight))
    assert losses.value(name, Y, SCORE, weight) == pytest.approx(copied, rel=1e-10)
    assert found.sum() == pytest.approx(0.0, abs=1e-9)  # only differences count


@pytest.mark.parametrize("name", CURVED)
def test_second_derivatives(name):
    weight = rng.integers(0, 3, 50)
    args = name, Y, SCORE
    columns = [losses.hessian_product(*args, e, weight) for e in np.eye(50)]
    H = np.array(columns)
    assert_allclose(H, H.T, atol=1e-10)
    assert_allclose(np.diag(H), losses.hessian_diagonal(*args, weight), atol=1e-10)
    assert_allclose(H.sum(axis=0), 0.0, atol=1e-8)
    if name != "sigmoid":
        assert np.linalg.eigvalsh(H)[0] > -1e-9


def test_errors():
    with pytest.raises(ValueError, match="square"):
        losses.value("spam", Y, SCORE)
    with pytest.raises(ValueError, match="loss='hinge'"):
        losses.hessian_diagonal("hinge", Y, SCORE)
    with pytest.raises(ValueError, match="loss='sigmoid'"):
        losses.lightgbm_objective("sigmoid")
    with pytest.raises(ValueError, match="both classes"):
        losses.value("square", np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        losses.value("square", [0, 1], [0.0, np.nan])
    with pytest.raises(ValueError, match="shape"):
        losses.value("square", [0, 1], [0.0])
    with pytest.raises(ValueError, match="shape"):
        losses.hessian_product("square", [0, 1], [0.0, 1.0], [1.0])


def rings():
    X = np.random.default_rng(1).standard_normal((600, 3))
    return X, ((X[:, 0] ** 2 + X[:, 1] ** 2) < 0.6).astype(int)


@pytest.mark.parametrize("name", [name for name in CURVED if name != "sigmoid"])
def test_lightgbm(name):
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    X, y = rings()
    weight = np.random.default_rng(2).integers(0, 3, 600)
    objective = losses.lightgbm_objective(name)
    options = {"objective": objective, "verbosity": -1, "num_threads": 1}
    data = lightgbm.Dataset(X[:400], y[:400], weight=weight[:400])
    model = lightgbm.train(options, data, 30)
    assert auc(y[400:], model.predict(X[400:])) > 0.97
    # What LightGBM is given are the derivatives of the loss at its scores.
    gradient, hessian = objective(model.predict(X[:400]), data)
    expected = losses.gradient(name, y[:400], model.predict(X[:400]), weight[:400])
    half = 0.5 * np.count_nonzero(weight[:400])
    assert_allclose(gradient, half * expected)
    assert (hessian > 0.0).all()
    model = lightgbm.LGBMClassifier(
        objective=objective, verbosity=-1, n_jobs=1, n_estimators=30
    ).fit(X[:400], y[:400])
    assert auc(y[400:], model.predict(X[400:], raw_score=True)) > 0.97


def test_xgboost():
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    X, y = rings()
    data = xgboost.DMatrix(X[:400], y[:400])
    model = xgboost.train({"nthread": 1}, data, 30, obj=losses.xgboost_objective())
    assert auc(y[400:], model.predict(xgboost.DMatrix(X[400:]))) > 0.97


def test_the_objective_of_xgboost_without_xgboost():
    class Data:
        def get_label(self):
            return Y

        def get_weight(self):
            return np.zeros(0)

    ours = losses.xgboost_objective()(SCORE, Data())
    assert_allclose(ours[0], 25 * losses.gradient("squared_hinge", Y, SCORE))
    assert_allclose(ours, losses.xgboost_objective()(Y, SCORE))
