"""BAM against the pairs written out and a general-purpose minimiser."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from aucmax import BAM, LeastSquaresAUC
from aucmax.core.products import LocalMatrix
from aucmax.core.rows import as_rows
from aucmax.core.threads import in_threads, one_blas_thread
from aucmax.linear import bam
from aucmax.linear.solvers.covariances import gather
from aucmax.linear.solvers.newton import (
    Coordinates,
    FullCoordinates,
    Objective,
    descend,
)
from aucmax.losses.pairwise import POINTS, shares
from helpers.data import constant, gaussian, mixed, scaled, scattered, wide

LOSSES = {
    "squared_hinge": lambda m: (np.maximum(1 - m, 0) ** 2, -2 * np.maximum(1 - m, 0)),
    "logistic": lambda m: (np.logaddexp(0, -m), -expit(-m)),
    "sigmoid": lambda m: (expit(-m), -expit(m) * expit(-m)),
    "exponential": lambda m: (np.exp(-m), -np.exp(-m)),
    "smoothed_hinge": lambda m: (
        np.where(m < 0, 0.5 - m, 0.5 * np.maximum(1 - m, 0) ** 2),
        -np.clip(1 - m, 0, 1),
    ),
    "huber": lambda m: (
        np.where(abs(1 - m) <= 1, 0.5 * (1 - m) ** 2, abs(1 - m) - 0.5),
        -np.clip(1 - m, -1, 1),
    ),
}
every = pytest.mark.parametrize("loss", LOSSES)


def brute(X, y, l2, loss, weight=None):
    """Return J and its gradient as a function, over all pairs."""
    weight = np.ones(len(y)) if weight is None else weight
    Z = (X[y == 1][:, None] - X[y == 0]).reshape(-1, X.shape[1])
    pair = np.outer(weight[y == 1], weight[y == 0]).ravel()
    pair = pair / pair.sum()

    def objective(w):
        value, slope = LOSSES[loss](Z @ w)
        return pair @ value + l2 / 2 * w @ w, Z.T @ (pair * slope) + l2 * w

    return objective


def lowest(J, d):
    options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-10}
    return minimize(J, np.zeros(d), jac=True, method="L-BFGS-B", options=options).fun


def repeated():
    X, y = scattered(60, 5)  # ties
    times = np.random.default_rng(0).integers(1, 4, 60)
    return X.repeat(times, axis=0), y.repeat(times)


@pytest.mark.parametrize("l2", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("data", [lambda: gaussian(80), repeated], ids=["plain", "tie"])
@every
def test_the_minimum_of_the_pairs_written_out(loss, data, l2):
    X, y = data()
    J = brute(X, y, l2, loss)
    expected = lowest(J, X.shape[1])
    model = BAM(l2, loss=loss, tol=1e-8).fit(X, y)
    assert abs(J(model.coef_[0])[0] - expected) < 1e-8
    assert model.objective_ == pytest.approx(J(model.coef_[0])[0], abs=1e-10)
    assert model.gradient_norm_ <= 1e-8
    # With the default tolerance it is near.
    assert J(BAM(l2, loss=loss).fit(X, y).coef_[0])[0] < expected + 2e-5


@every
def test_weights(loss):
    X, y = mixed(80)
    X = X / X.std(axis=0)
    weight = np.random.default_rng(0).random(80) + 0.1
    weight[::7] = 0.0
    J = brute(X, y, 0.1, loss, weight)
    model = BAM(0.1, loss=loss, tol=1e-8).fit(X, y, sample_weight=weight)
    assert abs(J(model.coef_[0])[0] - lowest(J, X.shape[1])) < 1e-8
    plain = BAM(0.1, loss=loss, tol=1e-8).fit(X, y)
    assert np.abs(plain.coef_ - model.coef_).max() > 1e-3


@every
def test_weight_k_is_k_rows(loss):
    X, y = gaussian(100)
    times = np.random.default_rng(0).integers(0, 4, 100)
    weighted = BAM(loss=loss).fit(X, y, sample_weight=times)
    copied = BAM(loss=loss).fit(X.repeat(times, axis=0), y.repeat(times))
    assert_allclose(weighted.coef_, copied.coef_, rtol=1e-7)
    assert weighted.n_iter_ == copied.n_iter_


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, np.float32])
@pytest.mark.parametrize("full", [True, False], ids=["full", "diagonal"])
@every
def test_both_preconditioners_lead_to_the_minimum(loss, full, layout, monkeypatch):
    X, y = scaled(150, 5, decades=1.0)
    X = X.astype(np.float32).astype(float)
    monkeypatch.setattr(bam, "_WIDEST", 1024 if full else 1)
    model = BAM(1e-3, loss=loss, tol=1e-8).fit(layout(X), y)
    gradient = brute(X, y, 1e-3, loss)(model.coef_[0])[1]
    size = brute(X, y, 1e-3, loss)(np.zeros(5))[1]
    assert np.linalg.norm(gradient / X.std(0)) < 1e-6 * np.linalg.norm(size / X.std(0))


@pytest.mark.parametrize("full", [True, False], ids=["full", "diagonal"])
@every
def test_the_objective_never_rises(loss, full):
    X, y = mixed(200)
    moments = gather(as_rows(X), np.where(y == 1, 1.0, -1.0), X.shape[1])
    H, _, varies = moments.quadratic()
    at = (
        FullCoordinates(H, varies, 1e-4)
        if full
        else Coordinates(np.diag(H), varies, 1e-4)
    )
    share = shares(np.where(y == 1, 1.0, -1.0))
    matrix = LocalMatrix(as_rows(X), X.shape[1])
    objective = Objective(matrix, share, POINTS[loss], 1e-4, X.mean(axis=0))

    def run(tol, start=None):
        iterate = None if start is None else objective.iterate(start)
        return descend(objective, at, tol, 100, iterate)

    cold = run(1e-8)
    assert len(cold.history) > 3
    assert (np.diff(cold.history) <= 0.0).all()
    assert cold.history[0] == pytest.approx(POINTS[loss](0 * share, share).value)
    # A start that is near saves most of the way, and ends at the same place.
    warm = run(1e-6, cold.w * 1.001)
    assert warm.n_iter < cold.n_iter
    assert warm.objective == pytest.approx(cold.objective, abs=1e-9)
    # A start that is far off is not taken.
    far = run(1e-6, -1e3 * cold.w)
    assert far.history[0] == cold.history[0]


def test_solvers_in_threads_find_what_each_finds_alone():
    X, y = mixed(200)
    model = BAM()
    X, rows, signed = model._check(X, y, None, reset=True)
    stats = bam.feature_statistics(model, X, rows, signed)

    def solve(problem):
        loss, fold = problem
        train = np.where(np.arange(200) % 3 == fold, 0.0, signed)
        objective = stats.objective(shares(train), loss).with_ridge(1e-3)
        return bam.minimise(objective, stats.coordinates(1e-3), 1e-6, 50)

    problems = [(loss, fold) for loss in LOSSES for fold in range(2)]
    with one_blas_thread():
        together = list(in_threads(solve, problems))
        for one, problem in zip(together, problems, strict=True):
            alone = solve(problem)
            assert_array_equal(one.w, alone.w)
            assert one.history == alone.history
            # Scores are summed up from those of the steps.
            assert_allclose(one.iterate.scores, X @ one.w, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@every
def test_the_default_penalty(loss, layout):
    X, y = mixed(80)
    X[:, 3] = 0.0
    weight = np.random.default_rng(0).random(80)
    weight[::9] = 0.0
    Z = (X[y == 1][:, None] - X[y == 0]).reshape(-1, X.shape[1])
    there = ((X[y == 1][:, None] != 0) | (X[y == 0] != 0)).reshape(Z.shape)
    pair = np.outer(weight[y == 1], weight[y == 0]).ravel()
    spread = pair @ Z**2 / np.maximum(pair @ there, 1e-300)
    rows = sum(1 / weight[y == k].sum() for k in (0, 1))
    # Features for which it is the same for all: those give the model, units do not.
    crowd = 1 + (pair @ there).sum() ** 2 / pair.sum() ** 2 / (4 * weight.sum())
    ridge = 0.5 * bam.CURVATURE[loss] * spread * rows * crowd
    scale = np.where(ridge > 0, np.sqrt(np.where(ridge > 0, ridge, 1.0) / 0.1), 1.0)
    model = BAM(loss=loss, tol=1e-8).fit(layout(X), y, sample_weight=weight)
    expected = BAM(0.1, loss=loss, tol=1e-8).fit(X / scale, y, sample_weight=weight)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert_allclose(model.coef_ * scale, expected.coef_, atol=1e-6)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_the_default_penalty_of_texts(layout):
    X, y = wide(60, 500, nnz=12)
    X = X.toarray()
    Z = (X[y == 1][:, None] - X[y == 0]).reshape(-1, 500)
    rows = 1 / np.sum(y == 1) + 1 / np.sum(y == 0)
    expected = BAM(0.1 * np.mean(np.sum(Z**2, axis=1)) * rows, tol=1e-8).fit(X, y)
    model = BAM(tol=1e-8).fit(layout(X), y)
    assert_allclose(model.coef_, expected.coef_, atol=1e-6)


def test_the_default_penalty_falls_with_the_rows():
    X, y = gaussian(60)
    norms = [
        np.linalg.norm(BAM().fit(X.repeat(k, axis=0), y.repeat(k)).coef_)
        for k in (1, 3, 30)
    ]
    assert norms == sorted(norms)
    free = np.linalg.norm(BAM(0.0).fit(X, y).coef_)
    assert norms[0] < 0.9 * free
    assert norms[2] > 0.98 * free


def test_the_default_penalty_keeps_many_features_from_fitting_noise(monkeypatch):
    y = np.arange(400) % 2

    def area(seed):
        X = np.random.default_rng(seed).normal(size=(400, 100))
        X[:, :5] += 0.6 * y[:, None]
        return BAM().fit(X[:120], y[:120]).score(X[120:], y[120:])

    found = np.mean([area(seed) for seed in range(4)])
    monkeypatch.setattr("aucmax.base.penalty._CROWD", 0.0)
    assert found > np.mean([area(seed) for seed in range(4)]) + 0.01


def test_one_step_is_least_squares():
    """At zero every pair is within the margin: the squared hinge is the square."""
    X, y = gaussian(300)
    model = BAM(0.1, max_iter=1).fit(X, y)
    assert_allclose(model.coef_, LeastSquaresAUC(0.1).fit(X, y).coef_, rtol=1e-5)
    assert model.n_iter_ == 1
    assert model.gradient_norm_ > 1e-3


def test_the_sigmoid_is_not_convex():
    """Outliers on the wrong side change a convex loss much, the sigmoid little."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = (X[:, 0] + 0.3 * rng.standard_normal(400) > 0).astype(int)
    X[:12], y[:12] = [-5.0, 5.0], 1
    found = {loss: BAM(1e-3, loss=loss).fit(X, y) for loss in LOSSES}
    area = {loss: model.score(X[12:], y[12:]) for loss, model in found.items()}
    assert area["logistic"] < 0.92
    assert area["squared_hinge"] < 0.92
    assert area["sigmoid"] > 0.97


def test_constant_features_have_no_weight():
    X, y = constant(100)
    for layout in (np.asarray, sparse.csr_array):
        assert_array_equal(BAM(0.0).fit(layout(X), y).coef_[0, 4:], 0.0)


def test_many_features():
    X, y = wide()
    for loss in LOSSES:
        model = BAM(loss=loss).fit(X, y)
        assert model.score(X, y) > 0.99
        assert model.gradient_norm_ <= 1e-3


def test_perfectly_separable_without_a_penalty():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    for loss in LOSSES:
        model = BAM(0.0, loss=loss).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert model.score(X, y) == 1.0


def test_rows_that_are_not_there_may_hold_anything():
    X, y = gaussian(60)
    weight = np.ones(60)
    X[3], X[4], weight[3:5] = np.nan, np.inf, 0.0
    here = weight > 0.0
    for layout in (np.asarray, sparse.csr_array):
        model = BAM().fit(layout(X), y, sample_weight=weight)
        assert_array_equal(model.coef_, BAM().fit(layout(X[here]), y[here]).coef_)
