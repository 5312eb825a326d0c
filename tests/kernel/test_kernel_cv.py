"""Choice of the kernel by cross-validation, and its evaluation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import aucmax
from aucmax import BAMCV, KernelAUCCV, KMeansNystroem, LeastSquaresAUC
from aucmax.base.folds import drawn
from aucmax.kernel import kernel_cv
from helpers.data import gaussian


def moons(n=400, seed=0):
    return make_moons(n, noise=0.3, random_state=seed)


def test_the_judge_is_a_fit_on_every_fold():
    X, y = moons(200)
    parts = list(StratifiedKFold(3).split(X, y))
    mapper = KMeansNystroem(10, linear=True, random_state=0).fit(X)
    found = kernel_cv.evaluate(mapper, X, 2.0 * y - 1.0, parts, weighted=False)
    F = mapper.features(X, np.float32)
    expected = []
    for train, test in parts:
        model = LeastSquaresAUC(found.l2).fit(F[train], y[train])
        expected.append(roc_auc_score(y[test], model.decision_function(F[test])))
    assert_allclose(found.scores, expected, atol=2e-3)


def test_a_kernel_where_it_is_worth_it():
    X, y = moons()
    model = KernelAUCCV(50, random_state=0).fit(X, y)
    assert isinstance(model.map_, KMeansNystroem)
    assert model.kernel_scores_.mean() > model.linear_scores_.mean()
    X, y = moons(2000, seed=1)
    assert model.score(X, y) > BAMCV().fit(*moons()).score(X, y) + 0.02


def test_the_linear_ranker_where_it_is_not():
    X, y = gaussian(300, 8)
    model = KernelAUCCV(50, random_state=0).fit(X, y)
    assert model.map_ is None
    assert isinstance(model.learner_, BAMCV)
    assert model.score(X, y) == pytest.approx(BAMCV().fit(X, y).score(X, y), abs=0.01)


def test_all_rows_give_the_model_and_some_choose(monkeypatch):
    monkeypatch.setattr(kernel_cv, "_CHOOSING", 300)
    monkeypatch.setattr(kernel_cv, "_PART", 64)
    X, y = moons(1000)
    model = KernelAUCCV(30, random_state=0).fit(X, y)
    F = model.map_.features(X, np.float32)
    expected = LeastSquaresAUC(model.learner_.l2).fit(F, y).coef_
    assert_allclose(model.learner_.coef_, expected, rtol=1e-6, atol=1e-6)


def test_a_rare_class_keeps_its_rows():
    signed = np.where(np.arange(1000) < 30, 1.0, -1.0)
    chosen = drawn(signed, 100, np.random.RandomState(0))
    assert len(chosen) == len(set(chosen)) == 100
    assert np.sum(signed[chosen] > 0) == 30
    many = np.where(np.arange(1000) < 600, 1.0, -1.0)
    assert len(drawn(many, 100, np.random.RandomState(0))) == 100


def test_a_choice_of_landmarks_and_of_widths():
    X, y = moons(300)
    model = KernelAUCCV([5, 40], widths=[0.3, 1.0], random_state=0).fit(X, y)
    assert model.map_.width in (0.3, 1.0)
    assert model.map_.landmarks_.shape[1] in (5, 40)


@pytest.mark.parametrize(
    "data", [moons, lambda: gaussian(200, 4)], ids=["kernel", "linear"]
)
def test_a_file_of_it(data, tmp_path):
    X, y = data()
    model = KernelAUCCV(20, widths=[1.0], random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    again = aucmax.load(tmp_path / "model")
    assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-15)
    assert_allclose(again.kernel_scores_, model.kernel_scores_)
