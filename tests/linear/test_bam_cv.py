"""The path against refitting by BAM, penalty by penalty and fold by fold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

import aucmax
from aucmax import BAM, BAMCV
from aucmax.linear import bam_cv
from helpers.data import gaussian, mixed, scaled, wide

L2S = [10.0, 1.0, 0.1, 1e-3]
LOSSES = ["squared_hinge", "logistic"]


def slow_scores(X, y, loss, folds, weight):
    """Refit for every fold and every penalty."""
    scores = np.empty((len(L2S), len(folds)))
    for f, (train, test) in enumerate(folds):
        for k, l2 in enumerate(L2S):
            model = BAM(l2, loss=loss, tol=1e-8)
            model.fit(X[train], y[train], sample_weight=weight[train])
            scores[k, f] = roc_auc_score(
                y[test], X[test] @ model.coef_[0], sample_weight=weight[test]
            )
    return scores


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, np.float32])
@pytest.mark.parametrize("cv", [4, ShuffleSplit(3, random_state=0)], ids=["4", "split"])
def test_scores_are_those_of_refitting(layout, cv):
    X, y = mixed(300)
    X = X.astype(np.float32).astype(float)
    weight = np.random.default_rng(0).random(300) + 0.5
    model = BAMCV(L2S, cv=cv, scale="none").fit(layout(X), y, sample_weight=weight)
    splitter = StratifiedKFold(4) if cv == 4 else cv
    folds = list(splitter.split(X, y))
    expected = np.array([slow_scores(X, y, loss, folds, weight) for loss in LOSSES])
    # Minima to 1e-3 of the gradient: near ties may go either way.
    assert np.mean(np.abs(model.loss_scores_ - expected)) < 1e-3
    assert_allclose(model.loss_scores_, expected, atol=0.01)
    mean = model.loss_scores_.mean(axis=2)
    assert model.loss_ == LOSSES[int(np.argmax(mean.max(axis=1)))]
    assert_array_equal(model.scores_, model.loss_scores_[LOSSES.index(model.loss_)])
    assert model.l2_ == L2S[int(np.argmax(model.scores_.mean(axis=1)))]


@pytest.mark.parametrize("scale", ["deviation", "none"])
def test_the_path_is_that_of_refitting(scale):
    X, y = scaled(200, 5, decades=1.0)
    model = BAMCV(L2S[::-1], loss="logistic", scale=scale, tol=1e-8).fit(X, y)
    assert_array_equal(model.l2s_, L2S)
    unit = np.ones(5) if scale == "none" else model.scale_
    assert_array_equal(model.scale_, unit)
    for l2, w in zip(L2S, model.coef_path_, strict=True):
        expected = BAM(l2, loss="logistic", tol=1e-8).fit(X / unit, y)
        assert_allclose(w * unit, expected.coef_[0], rtol=1e-4, atol=1e-7)
    best = L2S.index(model.l2_)
    assert_array_equal(model.coef_[0], model.coef_path_[best])
    assert_allclose(
        model.path_["norm"], np.linalg.norm(unit * model.coef_path_, axis=1)
    )
    assert_array_equal(model.path_["auc"], model.scores_.mean(axis=1))
    assert (np.diff(model.path_["norm"]) > 0.0).all()


@pytest.mark.parametrize("d", [4, 1100])
def test_the_scale_is_the_standard_deviation(d):
    X, y = scaled(60, d)
    X[:, 1] += 1e6 * X[:, 1].std()
    X[:, 2] = 7.0
    weight = np.random.default_rng(0).random(60) + 0.5
    model = BAMCV(2, cv=2, loss="squared_hinge", scale="deviation").fit(
        X, y, sample_weight=weight
    )
    variance = np.cov(X.T, aweights=weight, ddof=0).diagonal()
    assert_allclose(model.scale_, np.sqrt(variance), rtol=1e-3, atol=1e-12)
    assert model.scale_[2] == 0.0
    near = np.arange(d) > 2
    assert_allclose(model.scale_[near] ** 2, variance[near], rtol=1e-8)


def rare(seed, strength):
    """Return many rare features, of which some matter, and a few that are not rare."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.random((300, 40)) < 0.02, rng.standard_normal((300, 3))]) * 1.0
    score = strength * X[:, :10].sum(axis=1) + X[:, 40]
    return X, (score + rng.logistic(size=300) > 0.0).astype(int)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_the_size_is_that_of_differences_that_are_not_zero(layout):
    X, y = rare(0, 1.0)
    X[:, 1] = 0.0
    model = BAMCV(2, cv=2, loss="squared_hinge", scale="size").fit(layout(X), y)
    one, other = X[y == 1][:, None], X[y == 0]
    there = ((one != 0.0) | (other != 0.0)).mean(axis=(0, 1))
    square = ((one - other) ** 2).mean(axis=(0, 1))
    expected = np.sqrt(square / np.where(there > 0.0, there, 1.0))
    assert_allclose(model.scale_, expected, rtol=1e-10)


def test_sizes_are_chosen_if_they_are_better_by_a_standard_error():
    chosen = []
    for seed in range(6):
        X, y = rare(seed, 3.0 * (seed % 2))
        options = {"l2s": 6, "cv": 4, "loss": "squared_hinge"}
        auto = BAMCV(**options).fit(X, y)
        plain = BAMCV(**options, scale="deviation").fit(X, y)
        sizes = BAMCV(**options, scale="size").fit(X, y)
        best = [one.scores_[np.argmax(one.path_["auc"])] for one in (plain, sizes)]
        gain = best[1] - best[0]
        better = gain.mean() > gain.std(ddof=1) / 2.0
        chosen.append(better)
        for key in ("scale_", "l2s_", "loss_scores_", "coef_path_"):
            expected = getattr(sizes if better else plain, key)
            assert_array_equal(getattr(auto, key), expected)
    assert 0 < sum(chosen) < 6


def test_scales_that_are_alike_are_one(monkeypatch):
    X, y = gaussian(200)
    plain = BAMCV(3, cv=3, scale="deviation").fit(X, y)
    monkeypatch.setattr(bam_cv, "is_better", None)  # must not be called
    assert_array_equal(BAMCV(3, cv=3).fit(X, y).coef_, plain.coef_)


@pytest.mark.parametrize("shape", [(200, 6), (40, 1100)])
def test_units_do_not_matter(shape):
    rng = np.random.default_rng(0)
    y = np.arange(shape[0]) % 2
    X = rng.standard_normal(shape)
    X[:, :2] += 0.7 * y[:, np.newaxis]
    units = 2.0 ** rng.integers(-10, 10, shape[1])
    one = BAMCV(5, cv=2).fit(X, y)
    other = BAMCV(5, cv=2).fit(X * units, y)
    assert_allclose(other.l2s_, one.l2s_, rtol=1e-8)
    assert_allclose(other.scores_, one.scores_, atol=1e-3)
    assert other.l2_ == pytest.approx(one.l2_)
    assert_allclose(other.coef_ * units, one.coef_, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("scale", ["deviation", "none"])
def test_the_range_of_penalties_is_relative_to_the_data(factor, scale):
    X, y = gaussian(200)
    model = BAMCV(cv=3, scale=scale).fit(factor * X, y)
    expected = BAMCV(cv=3, scale=scale).fit(X, y)
    relative = factor**2 if scale == "none" else 1.0
    assert_allclose(model.l2s_, expected.l2s_ * relative, rtol=1e-8)
    assert_allclose(model.scores_, expected.scores_, atol=1e-3)
    # The first leaves next to nothing, the last next to everything.
    size = np.abs(expected.coef_path_ @ X.T).max(axis=1)
    assert size[0] < 0.7 * size[-1]
    free = BAM(0.0, loss=expected.loss_).fit(X, y).coef_[0]
    assert_allclose(expected.coef_path_[-1], free, rtol=0.02, atol=0.02)


def test_more_features_than_rows():
    X, y = wide()
    model = BAMCV(4, cv=3).fit(X, y)
    assert model.l2s_.shape == (4,)
    assert model.scores_.mean(axis=1).max() > 0.95


def test_saved_with_its_path(tmp_path):
    X, y = gaussian(100)
    model = BAMCV(5, cv=2, loss=["sigmoid", "exponential"]).fit(X, y)
    model.save(tmp_path / "model.aucmax")
    twin = aucmax.load(tmp_path / "model.aucmax")
    assert twin.loss_ == model.loss_
    assert twin.l2_ == model.l2_
    for key in ("l2s_", "scale_", "scores_", "loss_scores_", "coef_path_"):
        assert_array_equal(getattr(twin, key), getattr(model, key))


def test_errors():
    X, y = gaussian(30)
    with pytest.raises(ValueError, match="'spam' must be one of squared_hinge"):
        BAMCV(loss=["logistic", "spam"]).fit(X, y)
    with pytest.raises(ValueError, match="empty"):
        BAMCV(loss=[]).fit(X, y)
    with pytest.raises(ValueError, match="at least one penalty, finite"):
        BAMCV([1.0, -1.0]).fit(X, y)
    with pytest.raises(ValueError, match="no positive row"):
        BAMCV(cv=[(np.arange(30), np.flatnonzero(y == 0))]).fit(X, y)


def test_the_scale_is_known_far_from_zero():
    X, y = gaussian(300)
    far = np.round(X * 64) / 64 + 2.0**30  # of which no bit is lost
    assert_allclose(BAMCV().fit(far, y).scale_, far.std(axis=0), rtol=1e-6)
