"""SVMPerf against the quadratic programme over all pairs written out."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.metrics import f1_score

from aucmax import BAM, SVMPerf, load
from aucmax.core.products import LocalMatrix
from aucmax.core.rows import as_rows
from aucmax.linear.solvers.newton import Objective
from aucmax.linear.svmperf import F1Hinge, Planes, PrecisionHinge, maximise, minimise
from aucmax.losses.pairwise import Hinge, shares
from helpers.data import constant, gaussian, mixed, scaled, scattered, wide


def all_pairs(X, y, weight=None):
    """Return the differences of all pairs, and their weights."""
    weight = np.ones(len(y)) if weight is None else weight
    Z = (X[y == 1][:, None] - X[y == 0]).reshape(-1, X.shape[1])
    pair = np.outer(weight[y == 1], weight[y == 0]).ravel()
    return Z, pair / pair.sum()


def hinge(w, X, y, l2, weight=None):
    Z, pair = all_pairs(X, y, weight)
    return pair @ np.maximum(1 - Z @ w, 0) + l2 / 2 * w @ w


def lowest(X, y, l2, weight=None):
    """Return the minimum of J: the dual over the box, one multiplier for each pair."""
    Z, pair = all_pairs(X, y, weight)
    Z, pair = Z[pair > 0], pair[pair > 0]

    def dual(part):  # α = pair · part
        v = Z.T @ (pair * part)
        return v @ v / (2 * l2) - pair @ part, pair * (Z @ v / l2 - 1)

    # Multipliers of the size of their bounds, or else it stops too early.
    found = minimize(
        lambda part: tuple(len(pair) * some for some in dual(part)),
        np.zeros(len(pair)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, 1)] * len(pair),
        options={"maxiter": 100_000, "maxfun": 10**6, "ftol": 0, "gtol": 1e-9},
    )
    D = -dual(found.x)[0]
    P = hinge(Z.T @ (pair * found.x) / l2, X, y, l2, weight)
    assert P - D < 5e-7 * D  # or this is no oracle
    return (P + D) / 2


def repeated():
    X, y = scattered(25, 4)  # ties
    times = np.random.default_rng(0).integers(1, 4, 25)
    return X.repeat(times, axis=0), y.repeat(times)


@pytest.mark.parametrize("l2", [0.01, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("data", [lambda: gaussian(30), repeated], ids=["plain", "tie"])
def test_the_minimum_of_the_pairs_written_out(data, l2):
    X, y = data()
    expected = lowest(X, y, l2)
    for layout in (np.asarray, sparse.csr_array):
        model = SVMPerf(l2, tol=1e-8).fit(layout(X), y)
        assert hinge(model.coef_[0], X, y, l2) == pytest.approx(expected, rel=1e-6)
        assert model.objective_ == pytest.approx(expected, rel=1e-6)
        assert model.gap_ <= 1e-8
        assert model.n_iter_ < 1000
    # With the default tolerance it is as near as it says.
    model = SVMPerf(l2).fit(X, y)
    assert expected * (1 - 1e-6) < model.objective_ < expected * (1 + 1e-3)


def test_weights():
    X, y = mixed(40)
    X = X / X.std(axis=0)
    weight = np.random.default_rng(0).random(40) + 0.1
    weight[::7] = 0.0
    model = SVMPerf(0.1, tol=1e-8).fit(X, y, sample_weight=weight)
    expected = lowest(X, y, 0.1, weight)
    assert hinge(model.coef_[0], X, y, 0.1, weight) == pytest.approx(expected, rel=1e-6)
    plain = SVMPerf(0.1, tol=1e-8).fit(X, y)
    assert np.abs(plain.coef_ - model.coef_).max() > 1e-3


def test_weight_k_is_k_rows():
    X, y = gaussian(100)
    times = np.random.default_rng(0).integers(0, 4, 100)
    weighted = SVMPerf(1e-2).fit(X, y, sample_weight=times)
    copied = SVMPerf(1e-2).fit(X.repeat(times, axis=0), y.repeat(times))
    assert_allclose(weighted.coef_, copied.coef_, rtol=1e-7)
    assert weighted.n_iter_ == copied.n_iter_


@pytest.mark.parametrize("l2", [1e-6, 1e-3, 1.0])
def test_best_value_and_bound_close_in(l2):
    X, y = mixed(200)
    X = X / X.std(axis=0)
    matrix = LocalMatrix(as_rows(X), X.shape[1])
    share = shares(np.where(y == 1, 1.0, -1.0))
    ridge = np.full(X.shape[1], l2)
    objective = Objective(matrix, share, Hinge, l2, X.mean(axis=0))
    found = minimise(objective, 1 / np.sqrt(ridge), 1e-6, 2000)
    assert found.history[0] == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(found.history) <= 0.0).all()
    assert (np.diff(found.bounds) >= 0.0).all()
    assert found.history[-1] == found.objective
    assert found.objective == pytest.approx(hinge(found.w, X, y, l2), abs=1e-12)
    J, bound = found.objective, found.bounds[-1]
    assert J - bound <= 1e-6 * min(J, 1 - bound)
    # What BAM finds on its own is not below the bound either.
    w = BAM(l2).fit(X, y).coef_[0]
    scales = (hinge(c * w, X, y, l2) for c in np.linspace(0.5, 3, 20))
    assert bound < J < min(scales)


def test_rounds_run_out():
    X, y = gaussian(200)
    rough = SVMPerf(1e-4, max_iter=3).fit(X, y)
    fine = SVMPerf(1e-4, tol=1e-6).fit(X, y)
    assert rough.n_iter_ == 3
    assert rough.gap_ > 1e-3
    above = rough.objective_ - fine.objective_
    assert 0.0 < above <= rough.gap_ * rough.objective_


def test_idle_planes_are_dropped(monkeypatch):
    X, y = scaled(300, 6, decades=0.5)
    kept = []
    solve = Planes.solve

    def counted(self):
        found = solve(self)
        kept.append(len(self.b))
        return found

    monkeypatch.setattr(Planes, "solve", counted)
    everything = SVMPerf(1e-6, tol=1e-8).fit(X, y)
    assert kept[-1] == everything.n_iter_ + 1
    kept.clear()
    monkeypatch.setattr("aucmax.linear.svmperf._IDLE", 3)
    some = SVMPerf(1e-6, tol=1e-8).fit(X, y)
    assert kept[-1] < some.n_iter_ / 2
    assert some.gap_ <= 1e-8
    assert some.objective_ == pytest.approx(everything.objective_, rel=2e-8)


def test_the_dual_against_a_general_solver():
    rng = np.random.default_rng(0)
    for k, d in ((1, 2), (5, 9), (30, 4), (40, 60)):
        A = rng.standard_normal((k, d))
        A[k // 2 :] = A[: k - k // 2]  # copies, one below the other
        G, b = A @ A.T, rng.random(k)
        alpha = maximise(G, b, np.eye(k)[0])
        assert alpha.min() >= 0.0
        assert alpha.sum() == pytest.approx(1.0)
        # Optimal: no plane is above those that have a part.
        gain = b - G @ alpha
        assert gain.max() <= gain[alpha > 0].min() + 1e-10
        assert_allclose(maximise(G, b, alpha), alpha, atol=1e-10)


def test_constant_features_have_no_weight():
    X, y = constant(100)
    for layout in (np.asarray, sparse.csr_array):
        assert_array_equal(SVMPerf(0.0).fit(layout(X), y).coef_[0, 4:], 0.0)


def test_without_a_penalty_units_drop_out():
    X, y = gaussian(300, 4)
    scale = np.array([1e-5, 1.0, 30.0, 1e6])
    plain, other = SVMPerf(0.0).fit(X, y), SVMPerf(0.0).fit(X * scale, y)
    assert_allclose(other.coef_ * scale, plain.coef_, rtol=1e-6)


def test_many_features():
    X, y = wide()
    model = SVMPerf().fit(X, y)
    assert model.score(X, y) > 0.99
    assert model.gap_ <= 1e-3


def test_rows_that_are_not_there_may_hold_anything():
    X, y = gaussian(60)
    weight = np.ones(60)
    X[3], X[4], weight[3:5] = np.nan, np.inf, 0.0
    here = weight > 0.0
    for layout in (np.asarray, sparse.csr_array):
        model = SVMPerf().fit(layout(X), y, sample_weight=weight)
        assert_array_equal(model.coef_, SVMPerf().fit(layout(X[here]), y[here]).coef_)


@pytest.mark.parametrize("loss", ["f1", "prbep", "precision_at_k"])
def test_other_measures_are_minimised(loss):
    X, y = mixed(60)
    k = 10 if loss == "precision_at_k" else None
    model = SVMPerf(0.1, loss=loss, k=k, tol=1e-6).fit(X, y)
    hinge = F1Hinge if loss == "f1" else partial(PrecisionHinge, k=k)
    share = shares(np.where(y == 1, 1.0, -1.0))
    middle = (X[y == 1].mean(axis=0) + X[y == 0].mean(axis=0)) / 2

    def objective(w, bias=0.0):
        light = 0.01 * 0.1 / np.max(pair_squares)
        penalty = 0.05 * w @ w + (light / 2 * bias**2 if loss == "f1" else 0.0)
        return hinge((X - middle) @ w + bias, share).value + penalty

    Z, pair = all_pairs(X, y)
    pair_squares = pair @ Z**2
    w = model.coef_[0]
    bias = model.intercept_[0] + w @ middle
    assert objective(w, bias) == pytest.approx(model.objective_, rel=1e-9)
    assert model.gap_ <= 1e-6
    # J is convex: no lower point near, in any direction.
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-2, 0.1):
        for _ in range(50):
            move = scale * rng.standard_normal(len(w) + 1) * np.append(np.abs(w), 1.0)
            tried = objective(w + move[:-1], bias + move[-1] * (loss == "f1"))
            assert tried > model.objective_ - 2e-6


def test_f1_learns_the_threshold(tmp_path):
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.1).astype(int)
    X = rng.standard_normal((2000, 3)) + y[:, None] * [3.0, 1.0, 0.0] + 20.0
    area, f1 = (SVMPerf(loss=loss).fit(X, y) for loss in ("auc", "f1"))
    assert f1_score(y, f1.predict(X)) > f1_score(y, area.predict(X)) + 0.05
    f1.save(tmp_path / "model.aucmax")
    loaded = load(tmp_path / "model.aucmax")
    assert loaded.loss == "f1"
    assert_array_equal(loaded.decision_function(X), f1.decision_function(X))


def test_other_measures_need_equal_weights_and_enough_rows():
    X, y = gaussian(30)
    weight = np.where(np.arange(30) % 3 == 0, 0.0, 2.0)
    model = SVMPerf(0.1, loss="prbep")
    expected = model.fit(X[weight > 0], y[weight > 0]).coef_
    assert_allclose(model.fit(X, y, sample_weight=weight).coef_, expected)
    with pytest.raises(ValueError, match="equal weights, not from 1 to 30"):
        model.fit(X, y, sample_weight=np.arange(30) + 1)
    with pytest.raises(ValueError, match="k=31 exceeds the number of rows, 30"):
        SVMPerf(loss="precision_at_k", k=31).fit(X, y)
