"""SPDAM against a slow version of itself, and against the minimum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import approx_fprime

from aucmax import SPDAM
from aucmax.base.class_moments import measure
from aucmax.core.rows import as_rows
from aucmax.online import engine, spdam
from aucmax.online.engine.known_moments import fit_table_to_ridge
from aucmax.online.svrg import half_shares
from helpers.data import (
    Coordinates,
    closed_form,
    gaussian,
    mixed,
    pairwise,
    quadratic,
    rare,
    ridge_of,
    scaled,
    scattered,
)

layouts = pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"]
)


def weighted(n):
    weight = np.random.default_rng(3).random(n) + 0.5
    weight[::7] = 0.0
    return weight


class Problem:
    """The saddle point problem in full: x̄ is formed, systems are solved."""

    def __init__(self, X, y, weight, l2):
        table = Coordinates(X.shape[1], l2, True)
        for i in np.flatnonzero(weight):
            table.add(X[i], y[i] == 1, weight[i])
        table.renew()
        self.D, self.mildest = table.D, table.mildest
        m_pos, m_neg = table.means
        means = np.where((y == 1)[:, None], m_pos, m_neg)
        self.bar = np.where(weight[:, None] > 0, X - table.ref - means, 0.0)
        self.omega = weight / np.where(y == 1, table.n[0], table.n[1])
        self.delta, self.l2 = m_pos - m_neg, l2

    def covariance(self, batch):
        return self.bar[batch].T @ (self.omega[batch, None] * self.bar[batch])

    def lowest(self, u, w, tau):
        """Return argmin of u·w + g(w) + ‖w - w_old‖²/(2τ), where D is not zero."""
        here = self.D > 0
        delta = self.delta[here]
        ridge = np.diag(self.l2[here] / 2 + 1 / (tau * self.D[here]))
        target = w[here] / (tau * self.D[here]) + delta - u[here]
        new = np.zeros_like(w)
        new[here] = np.linalg.solve(ridge + np.outer(delta, delta), target)
        return new


def sharpest(problem, batches, rng):
    """Return κ² by the power iterations that are documented."""
    v = np.sqrt(problem.D) * rng.standard_normal(len(problem.D))
    found = []
    for k in rng.permutation(len(batches)):
        for _ in range(max(2, -(-8 // len(batches)))):
            image = problem.covariance(batches[k]) @ v
            size = np.sqrt(image @ (problem.D * image))
            v = problem.D * image / size
        found.append(len(batches) * size)
    return 1.1 * max(found)


def reference(X, y, weight, model):
    """Return the weights after the passes of ``model``."""
    hyper = model.get_params()
    l2, passes = ridge_of(hyper["l2"], X, y, weight), hyper["max_iter"]
    problem = Problem(X, y, weight, l2)
    rng = np.random.RandomState(hyper["random_state"])
    batches = spdam.partition(weight, hyper["batch_size"], rng)
    kappa2 = sharpest(problem, batches, rng)
    H, delta = quadratic(X, y, weight)
    H = 2 * H + np.diag(l2)
    point, moves = np.zeros(X.shape[1]), []
    for start in range(0, passes, 4):
        sigma, tau, theta = spdam.pace(len(batches), kappa2, problem.mildest / 2)
        w = ahead = point
        beta = problem.bar @ w
        for _ in range(min(3, max(passes - start - 1, 1))):
            for k in rng.permutation(len(batches)):
                u = problem.bar.T @ (problem.omega * beta)
                batch = batches[k]
                new = (beta[batch] + sigma * problem.bar[batch] @ ahead) / (1 + sigma)
                change = problem.omega[batch] * (new - beta[batch])
                beta[batch] = new
                u = u + len(batches) * problem.bar[batch].T @ change
                w, old = problem.lowest(u, w, tau), w
                ahead = w + theta * (w - old)
        if passes == 1:
            return w
        if (w - point) @ (H @ (w + point) / 2 - 2 * delta) > 0:  # J has risen
            kappa2 *= 2
            continue
        span = np.array([w - point, *moves]).T
        slope = H @ w - 2 * delta
        w = w - span @ np.linalg.lstsq(span.T @ H @ span, span.T @ slope)[0]
        moves = [w - point, *moves][:2]
        point = w
    return point


@layouts
@pytest.mark.parametrize("data", [gaussian, mixed, scattered])
@pytest.mark.parametrize(
    "hyper",
    [
        {},
        {"l2": 0.5},
        {"l2": 0.0},
        {"l2": 50.0},
        {"batch_size": 1.0},
        {"batch_size": 1},
    ],
    ids=str,
)
def test_fit_is_the_algorithm(hyper, data, layout):
    X, y = data(60)
    weight = weighted(len(y))
    for passes in (1, 2, 8, 11):
        model = SPDAM(**hyper, max_iter=passes, tol=0.0, random_state=5)
        model.fit(layout(X), y, sample_weight=weight)
        expected = reference(X, y, weight, model)
        atol = 1e-8 * np.ptp(expected)
        assert_allclose(model.coef_[0], expected, rtol=1e-6, atol=atol)
        assert model.n_iter_ == passes


def test_the_saddle_point_is_half_of_the_objective():
    X, y = mixed(40)
    X = X / X.std(axis=0)
    weight, l2 = weighted(40), 0.3
    problem = Problem(X, y, weight, l2)
    for w in np.random.default_rng(0).standard_normal((3, X.shape[1])):
        beta = problem.bar @ w  # maximises
        gradient = problem.bar.T @ (problem.omega * beta)
        gradient += problem.delta * (problem.delta @ w - 1) + l2 / 2 * w
        expected = approx_fprime(
            w, lambda w: pairwise(w, X, y, l2, 0, weight) / 2, 1e-6
        )
        assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batches", [1, 3, 10, 100])
@pytest.mark.parametrize("convexity", [0.5, 3.0, 100.0])
def test_the_primal_and_the_dual_part_have_the_same_rate(convexity, batches):
    kappa2 = 0.3
    sigma, _, theta = spdam.pace(batches, kappa2, convexity)
    primal = convexity / (convexity + 2 * sigma * kappa2)
    dual = 2 * sigma / (batches * (1 + 2 * sigma))
    assert_allclose(1 - theta, dual)
    # Unless the convexity is so small that a round is what sets the pace.
    if sigma > 0.25:
        assert_allclose(primal, dual)
    else:
        assert primal < dual


def test_small_convexity_does_not_stop_the_solver():
    sigma, tau, theta = spdam.pace(10, 2.0, 1e-12)
    assert (sigma, tau) == (0.25, 1.0)
    assert_allclose(1 - theta, 1 / 30)
    assert spdam.pace(10, 2.0, 0.0) == (sigma, tau, theta)


def plain(problem, batches, sigma, tau, theta, passes):
    """Return the weights after the thesis' algorithm alone, without rounds."""
    rng = np.random.RandomState(0)
    w = ahead = np.zeros(len(problem.D))
    beta = problem.bar @ w
    for _ in range(passes):
        for k in rng.permutation(len(batches)):
            batch = batches[k]
            u = problem.bar.T @ (problem.omega * beta)
            new = (beta[batch] + sigma * problem.bar[batch] @ ahead) / (1 + sigma)
            change = problem.omega[batch] * (new - beta[batch])
            beta[batch] = new
            u = u + len(batches) * problem.bar[batch].T @ change
            w, old = problem.lowest(u, w, tau), w
            ahead = w + theta * (w - old)
    return w


def test_the_step_sizes_are_those_with_the_corrected_factor():
    """With the σ that the thesis prints, the proven rate is lost; so is the speed."""
    l2, n, m = 0.1, 300, 30
    X, y = gaussian(n, 5)
    problem = Problem(X, y, np.ones(n), np.full(5, l2))
    problem.D = np.ones(5)  # as in the thesis
    batches = spdam.partition(np.ones(n), m, np.random.RandomState(0))
    kappa2 = np.max(n * problem.omega * np.sum(problem.bar**2, axis=1))
    lam = l2 / 2
    root = (n - m) + np.sqrt((n - m) ** 2 + 4 * n * m * kappa2 / lam)
    best = closed_form(X, y, l2)
    low = pairwise(best, X, y, l2)
    excess = []
    for sigma in (lam * root / (4 * m * kappa2), root / (8 * m * kappa2)):
        tau, theta = 1 / (4 * sigma * kappa2), 1 - lam / (lam + 2 * sigma * kappa2)
        w = plain(problem, batches, sigma, tau, theta, 150)
        excess.append(pairwise(w, X, y, l2) - low)
    assert excess[0] < 1e-6
    assert excess[1] > 10 * excess[0]


@layouts
@pytest.mark.parametrize("heavy", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("l2", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("data", [gaussian, scaled, mixed])
def test_it_reaches_the_closed_form(data, l2, heavy, layout):
    X, y = data(200) if data is mixed else data(200, 6)
    X = X / X.std(axis=0) if data is mixed else X
    weight = weighted(len(y)) if heavy else None
    model = SPDAM(l2, max_iter=400, tol=1e-10, random_state=0)
    model.fit(layout(X), y, sample_weight=weight)
    expected = closed_form(X, y, l2, weight)
    assert model.residual_ <= 1e-10
    excess = pairwise(model.coef_[0], X, y, l2, weight=weight)
    excess -= pairwise(expected, X, y, l2, weight=weight)
    assert abs(excess) < 1e-13
    error = (model.coef_[0] - expected) * X.std(axis=0)
    assert np.linalg.norm(error) < 1e-8 * np.linalg.norm(expected * X.std(axis=0))


@pytest.mark.parametrize("batch_size", [0.03, 0.1, 0.5, 1.0, 40])
def test_any_batch_size_does(batch_size):
    X, y = mixed(300)
    X = X / X.std(axis=0)
    model = SPDAM(1e-4, batch_size=batch_size, max_iter=200, tol=1e-8, random_state=0)
    assert model.fit(X, y).residual_ <= 1e-8
    assert_allclose(model.coef_[0], closed_form(X, y, 1e-4), rtol=1e-5, atol=1e-7)


def test_the_error_falls_linearly():
    X, y = gaussian(500, 8)
    left = [
        SPDAM(1e-3, max_iter=passes, tol=0.0, random_state=0).fit(X, y).residual_
        for passes in (20, 40, 60)
    ]
    assert left[1] < 1e-2 * left[0]
    assert left[2] < 1e-2 * left[1]


@pytest.mark.parametrize("batch_size", [1, 7, 60, 1000, 0.001, 0.1, 0.34, 1.0])
def test_batches_are_a_partition_of_the_rows_that_count(batch_size):
    y = np.random.default_rng(0).choice([-2.0, 0.0, 1.0], 61)
    batches = spdam.partition(y, batch_size, np.random.RandomState(0))
    n = np.count_nonzero(y)
    size = batch_size if isinstance(batch_size, int) else int(np.ceil(batch_size * n))
    assert max(len(batch) for batch in batches) <= size
    assert len(batches) == -(-n // min(size, n))
    assert_array_equal(np.sort(np.concatenate(batches)), np.flatnonzero(y))


@pytest.mark.parametrize("size", [0, 0.0, -1, 1.5, "all"])
def test_bad_batch_sizes(size):
    with pytest.raises(ValueError, match="The 'batch_size' parameter"):
        SPDAM(batch_size=size).fit(*gaussian(20))


def test_weights_are_repeated_rows():
    X, y = gaussian(200)
    times = np.random.default_rng(0).integers(0, 4, 200)
    hyper = {"max_iter": 300, "tol": 1e-11, "random_state": 0}
    one = SPDAM(**hyper).fit(X, y, sample_weight=times)
    other = SPDAM(**hyper).fit(X.repeat(times, axis=0), y.repeat(times))
    assert_allclose(one.coef_, other.coef_, rtol=1e-7, atol=1e-10)


def test_neither_a_heavy_row_nor_a_rare_class_slows_it_down():
    X, y = gaussian(500, 8)
    hyper = {"tol": 1e-6, "max_iter": 1000, "random_state": 0}
    even = SPDAM(**hyper).fit(X, y)
    X[7] *= 100.0
    for rows, labels in ((X, y), rare(5000, 8, positives=4)):
        model = SPDAM(**hyper).fit(rows, labels)
        assert model.residual_ <= 1e-6
        assert model.n_iter_ <= 4 * even.n_iter_


@layouts
@pytest.mark.parametrize("batch_size", [0.1, 0.5, 1.0])
def test_kappa_is_the_largest_eigenvalue_of_a_batch(batch_size, layout):
    X, y = mixed(200)
    weight = weighted(200)
    l2 = np.full(X.shape[1], 1e-4)
    problem = Problem(X, y, weight, l2)
    unit = np.sqrt(problem.D)
    batches = spdam.partition(weight, batch_size, np.random.RandomState(0))
    expected = len(batches) * max(
        np.linalg.eigvalsh(unit[:, None] * problem.covariance(batch) * unit)[-1]
        for batch in batches
    )
    signed = np.where(y == 1, weight, -weight)
    rows = as_rows(layout(X))
    tally = measure(rows, signed, X.shape[1])
    state = spdam.init(rows, 200, X.shape[1])
    fit_table_to_ridge(state.table, tally, l2)
    how = engine.visit(rows, state.table, False, True)
    share = half_shares(signed, tally.weight)
    found = spdam.widest(
        rows, share, batches, *state[:2], how, np.random.RandomState(1)
    )
    assert 0.75 * expected < found <= 1.1 * (1 + 1e-12) * expected


def test_steps_that_are_too_long_are_taken_back(monkeypatch):
    X, y = mixed(200)
    monkeypatch.setattr(spdam, "_SAFETY", 1e-4)  # κ² is far too small
    model = SPDAM(max_iter=300, random_state=0).fit(X, y)
    assert model.residual_ <= 1e-4


@pytest.mark.parametrize("m", [1, 7, 50])
def test_batches_as_published_are_uniform_and_without_replacement(m):
    y = np.where(np.arange(60) % 3 == 0, 1.0, -1.0)
    y[::6] = 0.0  # 50 rows with weight
    rng, counts = np.random.RandomState(0), np.zeros(60)
    for _ in range(400):
        order, ends = spdam.draw(y, m, rng)
        batches = order.reshape(-1, m)
        assert_array_equal(ends, m * np.arange(1, len(batches) + 1))
        assert len(batches) == -(-50 // m)
        assert (np.diff(batches, axis=1) > 0).all()  # sorted, no row twice
        counts += np.bincount(order, minlength=60)
    assert (counts[y == 0.0] == 0).all()
    expected = counts.sum() / 50
    assert_allclose(counts[y != 0.0], expected, atol=4 * np.sqrt(expected))
