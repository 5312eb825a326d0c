"""SVRG-AUC against a slow version of itself, and against the minimum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import approx_fprime

from aucmax import SPDAM, SVRGAUC
from aucmax.online.svrg import draw
from helpers.data import (
    Coordinates,
    class_moments,
    closed_form,
    gaussian,
    mixed,
    pairwise,
    quadratic,
    ridge_of,
    scaled,
    scattered,
)

layouts = pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"]
)
SETTINGS = [
    {},
    {"l2": 0.5},
    {"l2": 0.0},
    {"l1": 0.05},
    {"l1": 0.02, "l2": 0.1},
    {"eta0": 0.05},
    {"eta0": 40.0},  # taken back, halved
    {"eta0": 40.0, "l1": 0.05},
]


def weighted(n):
    weight = np.random.default_rng(3).random(n) + 0.5
    weight[::7] = 0.0
    return weight


class Problem:
    """The rows in the coordinates of the solver, and what is drawn, slowly."""

    def __init__(self, X, y, weight, l2):
        here = weight > 0
        table = Coordinates(X.shape[1], l2, True)
        for x, label, share in zip(X[here], y[here], weight[here], strict=True):
            table.add(x, label == 1, share)
        table.renew()
        self.positive, self.D, self.means = y == 1, table.D, table.means
        self.X = np.where(here[:, None], X - table.ref, 0.0)
        side = np.where(self.positive, table.n[0], table.n[1])
        self.share = weight / side / 2
        norms = np.sum(self.D * self.X**2, axis=1)
        excess = (1 + norms / (self.share @ norms)) / 2
        self.chance, self.step = self.share * excess, 1 / excess
        self.here = (X != 0) | (table.ref != 0)
        self.P = self.chance @ self.here
        self.curvature = np.max(4 * self.step * norms)

    def gradient(self, w, i):
        """Return the gradient of the loss at a row of balanced classes."""
        x, (m_pos, m_neg) = self.X[i], self.means
        if self.positive[i]:
            return 4 * (w @ x - w @ m_neg - 1) * x
        return 4 * (w @ x - w @ m_pos + 1) * x

    def mean_gradient(self, w):
        return sum(self.share[i] * self.gradient(w, i) for i in range(len(self.share)))

    def direction(self, w, snapshot, mu, i):
        """Return what a step goes along, before the penalty."""
        change = self.gradient(w, i) - self.gradient(snapshot, i)
        over = np.where(self.here[i], 1 / np.where(self.P > 0, self.P, 1), 0)
        return self.step[i] * change + over * mu, over


def reference(X, y, weight, model):
    """Return the weights after the passes of ``model``."""
    hyper = model.get_params()
    l2, l1 = ridge_of(hyper["l2"], X, y, weight), hyper["l1"]
    problem = Problem(X, y, weight, l2)
    rng = np.random.RandomState(hyper["random_state"])
    eta = hyper["eta0"] / problem.curvature
    H, delta = quadratic(X, y, weight)
    H = 2 * H + np.diag(l2)
    snapshot, moves = np.zeros(X.shape[1]), []

    def objective(w):
        return pairwise(w, X, y, l2, l1, weight)

    for epoch in range((hyper["max_iter"] + 1) // 2):
        w, mu = snapshot, problem.mean_gradient(snapshot)
        for i in draw(problem.chance, np.count_nonzero(problem.chance), rng):
            direction, over = problem.direction(w, snapshot, mu, i)
            ahead = w - eta * problem.D * direction
            share = eta * problem.D * over
            w = np.sign(ahead) * np.maximum(np.abs(ahead) - l1 * share, 0)
            w = w / (1 + l2 * share)
        if 2 * epoch + 1 == hyper["max_iter"]:
            return w
        if not objective(w) <= objective(snapshot):
            eta /= 2
            continue
        if l1 == 0:
            span = np.array([w - snapshot, *moves]).T
            slope = H @ w - 2 * delta
            w = w - span @ np.linalg.lstsq(span.T @ H @ span, span.T @ slope)[0]
        moves = [w - snapshot, *moves][:2]
        snapshot = w
    return snapshot


@layouts
@pytest.mark.parametrize("data", [gaussian, mixed, scattered])
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_fit_is_the_algorithm(hyper, data, layout):
    X, y = data(60)
    weight = weighted(len(y))
    for passes in (1, 2, 8) if hyper.get("eta0", 0) < 1 else (16,):
        model = SVRGAUC(**hyper, max_iter=passes, tol=0.0, random_state=5)
        model.fit(layout(X), y, sample_weight=weight)
        expected = reference(X, y, weight, model)
        atol = 1e-8 * np.ptp(expected)
        assert_allclose(model.coef_[0], expected, rtol=1e-7, atol=atol)
        assert model.n_iter_ == passes


@pytest.mark.parametrize("data", [gaussian, mixed, scattered])
def test_the_expected_step_is_the_gradient_of_the_pairwise_loss(data):
    X, y = data(40)
    X = X / X.std(axis=0)
    weight = weighted(40)
    problem = Problem(X, y, weight, 0.0)
    assert_allclose(problem.chance.sum(), 1.0)
    for w, snapshot in np.random.default_rng(0).standard_normal((3, 2, X.shape[1])):
        mu = problem.mean_gradient(snapshot)
        found = sum(
            problem.chance[i] * problem.direction(w, snapshot, mu, i)[0]
            for i in range(40)
        )
        expected = approx_fprime(w, lambda w: pairwise(w, X, y, weight=weight), 1e-6)
        # One-sided differences of a quadratic are off by half the step times H.
        assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_rows_are_drawn_as_often_as_they_should():
    chance = np.random.default_rng(0).random(50) ** 4
    chance[::7] = 0.0
    expected = chance / chance.sum() * np.count_nonzero(chance)
    rng = np.random.RandomState(0)
    counts = [
        np.bincount(draw(chance, np.count_nonzero(chance), rng), minlength=50)
        for _ in range(4000)
    ]
    assert np.all(np.abs(np.array(counts) - expected) < 2)
    assert_allclose(np.mean(counts, axis=0), expected, atol=0.05)
    assert np.all(np.array(counts)[:, ::7] == 0)


def gap(w, best, X, y, l2, l1=0.0, weight=None):
    """Return by how much J(w) is above J(best), against what there was to gain."""
    low = pairwise(best, X, y, l2, l1, weight)
    return (pairwise(w, X, y, l2, l1, weight) - low) / (1 - low)


@layouts
@pytest.mark.parametrize("heavy", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("l2", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("data", [gaussian, scaled, mixed])
def test_it_reaches_the_closed_form(data, l2, heavy, layout):
    X, y = data(200) if data is mixed else data(200, 6)
    X = X / X.std(axis=0) if data is mixed else X
    weight = weighted(len(y)) if heavy else None
    model = SVRGAUC(l2, max_iter=200, tol=1e-10, random_state=0)
    model.fit(layout(X), y, sample_weight=weight)
    expected = closed_form(X, y, l2, weight)
    assert model.residual_ <= 1e-10
    assert abs(gap(model.coef_[0], expected, X, y, l2, weight=weight)) < 1e-13
    error = (model.coef_[0] - expected) * X.std(axis=0)
    assert np.linalg.norm(error) < 1e-8 * np.linalg.norm(expected * X.std(axis=0))


@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_the_error_falls_linearly(l1):
    X, y = gaussian(500, 8)
    left = [
        SVRGAUC(1e-3, l1=l1, max_iter=passes, tol=0.0, random_state=0)
        .fit(X, y)
        .residual_
        for passes in (20, 40, 60)
    ]
    # A solver with steps falling like 1/t would need ten times the passes a digit.
    assert left[1] < 1e-2 * left[0]
    assert left[2] < max(1e-2 * left[1], 1e-13)


def elastic_net(X, y, l2, l1, weight):
    """Return the minimiser of J by proximal gradient steps on the moments."""
    H, delta = quadratic(X, y, weight)
    step = 1 / (2 * np.linalg.eigvalsh(H)[-1] + l2)
    w = np.zeros(len(delta))
    for _ in range(20_000):
        last = w
        w = w - step * (2 * (H @ w - delta) + l2 * w)
        w = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0)
        if np.array_equal(w, last):
            break
    return w


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("l1", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("data", [gaussian, mixed, scattered])
def test_lasso_finds_the_minimum(data, l1, l2):
    X, y = data(300)
    X = X / X.std(axis=0)
    weight = weighted(len(y))
    expected = elastic_net(X, y, l2, l1, weight)
    for layout in (np.asarray, sparse.csr_array):
        model = SVRGAUC(l2, l1=l1, max_iter=400, tol=1e-10, random_state=0)
        model.fit(layout(X), y, sample_weight=weight)
        assert abs(gap(model.coef_[0], expected, X, y, l2, l1, weight)) < 1e-12
        assert_allclose(model.coef_[0], expected, rtol=1e-6, atol=1e-8)
        assert_allclose(model.coef_[0] == 0, expected == 0)


def test_a_lasso_that_leaves_nothing():
    X, y = gaussian(100)
    _, (m_pos, m_neg), _ = class_moments(X, y)
    enough = 2 * np.abs(m_pos - m_neg).max()  # the gradient at zero
    model = SVRGAUC(l1=1.001 * enough).fit(X, y)
    assert np.all(model.coef_ == 0)
    assert (model.n_iter_, model.residual_) == (1, 0.0)
    assert np.any(SVRGAUC(l1=0.98 * enough, random_state=0).fit(X, y).coef_ != 0)


def test_weights_are_repeated_rows():
    X, y = gaussian(200)
    times = np.random.default_rng(0).integers(0, 4, 200)
    hyper = {"max_iter": 300, "tol": 1e-11, "random_state": 0}
    one = SVRGAUC(**hyper).fit(X, y, sample_weight=times)
    other = SVRGAUC(**hyper).fit(X.repeat(times, axis=0), y.repeat(times))
    assert_allclose(one.coef_, other.coef_, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("l1", [0.0, 0.05])
@pytest.mark.parametrize("eta0", [1.0, 10.0, 1e4])
def test_no_step_size_diverges(eta0, l1):
    X, y = mixed(200)
    model = SVRGAUC(l1=l1, eta0=eta0, max_iter=300, random_state=0).fit(X, y)
    assert model.residual_ <= 1e-4


def test_a_heavy_row_does_not_slow_down_the_others():
    X, y = gaussian(500, 8)
    hyper = {"tol": 1e-6, "max_iter": 1000, "random_state": 0}
    even = SVRGAUC(**hyper).fit(X, y)
    X[7] *= 100.0  # its squared norm is beyond that of all other rows together
    heavy = SVRGAUC(**hyper).fit(X, y)
    assert heavy.residual_ <= 1e-6
    assert heavy.n_iter_ <= 4 * even.n_iter_


def test_tol_is_when_it_stops():
    X, y = gaussian(300)
    passes = []
    for tol in (1e-1, 1e-3, 1e-6):
        model = SVRGAUC(1e-4, tol=tol, random_state=0).fit(X, y)
        assert model.residual_ <= tol
        w = model.coef_[0]
        H, delta = quadratic(X, y)
        scales = Problem(X, y, np.ones(300), 1e-4).D
        gradient = 2 * (H @ w - delta) + 1e-4 * w
        size = np.linalg.norm(np.sqrt(scales) * gradient)
        first = np.linalg.norm(np.sqrt(scales) * 2 * delta)
        assert_allclose(model.residual_, size / first, rtol=1e-6)
        passes.append(model.n_iter_)
    assert passes[0] < passes[1] < passes[2] < 100


@pytest.mark.parametrize("solver", [SVRGAUC, SPDAM])
def test_with_more_features_than_rows_it_stops_at_the_noise(solver):
    X, y = gaussian(60, 200)
    early = solver(1e-8, random_state=0).fit(X, y)
    assert 1e-4 < early.residual_ < 0.5
    assert early.n_iter_ < solver(1e-8, tol=1e-4, random_state=0).fit(X, y).n_iter_
    # Otherwise it does not.
    assert solver(random_state=0).fit(*gaussian(300, 5)).residual_ <= 1e-4


@pytest.mark.parametrize("m", [40, 1000])
def test_the_minimum_is_reached_with_any_number_of_steps_per_epoch(m):
    X, y = gaussian(200, 5)
    model = SVRGAUC(0.1, update_frequency=m, max_iter=400, tol=1e-8, random_state=0)
    assert_allclose(model.fit(X, y).coef_[0], closed_form(X, y, 0.1), rtol=1e-6)
    model.set_params(max_iter=7, tol=0.0).fit(X, y)
    assert model.n_iter_ == 7
