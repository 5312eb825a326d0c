"""Cross-validation without refitting, against cross-validation by refitting."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

import aucmax
from aucmax import LeastSquaresAUC, LeastSquaresAUCCV
from aucmax.linear import least_squares
from helpers.data import closed_form, gaussian, mixed, quadratic, scaled, wide

L2S = [10.0, 1.0, 0.1, 1e-3]


def slow_scores(X, y, l2s, folds, weight=None):
    """Refit for every fold and every penalty."""
    weight = np.ones(len(y)) if weight is None else weight
    return np.array(
        [
            [
                roc_auc_score(
                    y[test],
                    X[test] @ closed_form(X[train], y[train], l2, weight[train]),
                    sample_weight=weight[test],
                )
                for train, test in folds
            ]
            for l2 in l2s
        ]
    )


@pytest.mark.parametrize("solver", ["moments", "cg"])
@pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array, np.float32], ids=["dense", "CSR", "single"]
)
def test_scores_are_those_of_refitting(layout, solver):
    X, y = mixed(200)
    X = X.astype(np.float32).astype(float)
    model = LeastSquaresAUCCV(L2S, cv=4, solver=solver).fit(layout(X), y)
    folds = list(StratifiedKFold(4).split(X, y))
    expected = slow_scores(X, y, L2S, folds)
    # A near tie may go either way: one pair in a fold.
    assert_allclose(model.scores_, expected, atol=2e-3 if solver == "cg" else 1e-3)
    assert np.mean(np.abs(model.scores_ - expected)) < 2e-4
    assert model.l2_ == L2S[int(np.argmax(model.scores_.mean(axis=1)))]
    assert_allclose(
        model.coef_[0],
        LeastSquaresAUC(model.l2_).fit(X, y).coef_[0],
        rtol=1e-3 if solver == "cg" else 1e-9,
        atol=1e-4,
    )


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(3, shuffle=True, random_state=0),
        ShuffleSplit(3, test_size=0.3, random_state=0),
        list(StratifiedKFold(3).split(np.zeros(200), np.arange(200) % 2)),
    ],
    ids=["folds", "splits that overlap", "a list"],
)
def test_any_splitter(cv):
    X, _ = mixed(200)
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    y[:20] = 1 - y[:20]
    model = LeastSquaresAUCCV(L2S, cv=cv).fit(X, y)
    folds = list(cv.split(X, y)) if hasattr(cv, "split") else cv
    assert_allclose(model.scores_, slow_scores(X, y, L2S, folds), atol=1e-3)


def test_weights():
    X, y = gaussian(150, 4)
    weight = np.random.default_rng(0).random(150)
    weight[::6] = 0.0
    here = weight > 0.0
    model = LeastSquaresAUCCV(L2S, cv=3).fit(X, y, weight)
    rows = X[here], y[here]
    folds = list(StratifiedKFold(3).split(*rows))
    expected = slow_scores(*rows, L2S, folds, weight[here])
    assert_allclose(model.scores_, expected, atol=1e-10)


def test_the_path():
    X, y = scaled(200)
    model = LeastSquaresAUCCV(30).fit(X, y)
    assert model.l2s_.shape == (30,)
    assert np.all(np.diff(model.l2s_) < 0.0)
    assert model.scores_.shape == (30, 5)
    assert model.coef_path_.shape == (30, X.shape[1])
    H, _ = quadratic(X, y)
    assert_allclose(model.scale_, np.sqrt(np.diag(H)))  # no value is zero
    for l2, w in zip(model.l2s_, model.coef_path_, strict=True):
        expected = LeastSquaresAUC(l2).fit(X / model.scale_, y).coef_[0]
        assert_allclose(w * model.scale_, expected, rtol=1e-5, atol=1e-8)
    path = model.path_
    assert_allclose(path["auc"], model.scores_.mean(axis=1))
    assert_allclose(path["error"], model.scores_.std(axis=1, ddof=1) / np.sqrt(5))
    assert np.all(np.diff(path["norm"]) > 0.0)  # less penalty, larger weights
    # Both ends of the range are beyond what matters.
    assert path["norm"][0] < 0.6 * path["norm"][-1]
    free = LeastSquaresAUC(0.0).fit(X, y)
    last = X @ model.coef_path_[-1]
    assert roc_auc_score(y, last) == pytest.approx(free.score(X, y), abs=1e-3)


def test_of_equal_scores_the_largest_penalty():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = LeastSquaresAUCCV(L2S, cv=2).fit(X, [0, 0, 1, 1])
    assert_array_equal(model.scores_, 1.0)
    assert model.l2_ == 10.0


def test_it_helps_where_features_are_many():
    X, y = gaussian(120, 90, seed=1)
    rest, more = gaussian(2000, 90, seed=2)
    tuned = LeastSquaresAUCCV().fit(X, y)
    assert tuned.score(rest, more) > LeastSquaresAUC(1e-8).fit(X, y).score(rest, more)


def test_no_more_folds_than_rows_of_a_class():
    X, y = gaussian(100, 3)
    few = np.flatnonzero(y == 1)[:3]
    kept = np.sort(np.append(few, np.flatnonzero(y == 0)))
    assert LeastSquaresAUCCV().fit(X[kept], y[kept]).scores_.shape[1] == 3


def test_many_features():
    X, y = wide()
    model = LeastSquaresAUCCV(8, cv=3).fit(X, y)
    assert model.scores_.shape == (8, 3)
    assert len(np.unique(model.scale_)) == 1  # as of texts
    exact = LeastSquaresAUC(model.l2_, tol=1e-10).fit(X / model.scale_[0], y).coef_[0]
    error = np.linalg.norm(model.coef_[0] * model.scale_ - exact)
    assert error < 1e-3 * np.linalg.norm(exact)


def test_saved(tmp_path):
    X, y = gaussian(80, 3)
    model = LeastSquaresAUCCV([0.1, 1.0]).fit(X, y)
    model.save(tmp_path / "model.aucmax")
    twin = aucmax.load(tmp_path / "model.aucmax")
    assert twin.l2_ == model.l2_
    assert isinstance(twin.l2_, float)
    for name in ("l2s_", "scale_", "scores_", "coef_path_", "coef_"):
        assert_array_equal(getattr(twin, name), getattr(model, name))
    assert_array_equal(twin.path_["auc"], model.path_["auc"])


def test_bad_input():
    X, y = gaussian(40, 3)
    for bad in ([-1.0], [np.nan], [np.inf], []):
        with pytest.raises(ValueError, match="at least one penalty, finite"):
            LeastSquaresAUCCV(bad).fit(X, y)
    with pytest.raises(ValueError, match="'l2s' parameter"):
        LeastSquaresAUCCV(0).fit(X, y)
    one_class = [(np.arange(20, 40), np.flatnonzero(y[:20] == 0))]
    with pytest.raises(ValueError, match="no positive row"):
        LeastSquaresAUCCV(cv=one_class).fit(X, y)


def test_too_few_steps_are_one_warning(monkeypatch):
    X, y = gaussian(200, 30)
    with warnings.catch_warnings(action="error"):
        LeastSquaresAUCCV(solver="cg").fit(X, y)
    monkeypatch.setattr(least_squares, "_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match=r"of l2s, or use .*moments") as found:
        LeastSquaresAUCCV(solver="cg").fit(X, y)
    assert len(found) == 1
