"""UniExp against a slow version of itself, and against the minimum of its loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import lambertw, logsumexp

from aucmax import BAM, UniExp
from aucmax.core.jit import kernel
from aucmax.online import uniexp
from aucmax.online.engine.feature_table import NORM, WIDTH, D
from helpers.data import Coordinates, gaussian, mixed, scaled, variable

layouts = pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"]
)
solve = kernel(uniexp.solve)


def weighted(n):
    weight = np.random.default_rng(3).random(n) + 0.5
    weight[::7] = 0.0
    return weight


def follow_the_curvature(table, X, y, weight, w, bias):
    """Scale steps by the second derivative of the loss at the weights so far."""
    sign, off = np.where(y == 1, 1, -1), X - table.ref
    bent = weight * np.minimum(np.exp(-sign * (off @ w + bias)), 1.0)
    second = sum(
        0.5 * bent[side] @ off[side] ** 2 / weight[side].sum()
        for side in (y == 1, y == 0)
    )
    varies = table.D > 0
    if np.count_nonzero(weight) < 10 * varies.sum():
        return
    usual = table.spread()
    table.D = np.where(varies, 1 / np.maximum(second, usual / 1000 + 1e-300), 0.0)
    table.norm = np.sum(second * table.D)
    table.width = table.norm / np.max(second * table.D)


def reference(X, y, weight, eta0, passes):
    """Return the weights after ``passes`` over the rows; None is one pass of a stream.

    The bias is that of centred rows: it follows when their reference points move.
    """
    table = Coordinates(X.shape[1], 0.0, precondition=True)
    here = [i for i in range(len(y)) if weight[i] > 0]
    if passes:
        for i in here:
            table.add(X[i], y[i] == 1, weight[i])
        table.known()
    w, bias, iterates, first = np.zeros(X.shape[1]), 0.0, [], here[0]
    for i in here * (passes or 1):
        if passes and i == first and iterates:
            follow_the_curvature(table, X, y, weight, w, bias)
        if passes is None:
            table.add(X[i], y[i] == 1, weight[i])
            if not table.n.all():
                continue
            w = table.meet(X[i], w, iterates)
            if table.rows >= table.renew_at:
                old = table.ref
                table.renew()
                bias += w @ (table.ref - old)
        x, p, sign = X[i] - table.ref, table.p, 1 if y[i] == 1 else -1
        t = len(iterates) + 1
        eta = eta0 / (table.norm + 1) / np.sqrt(1 + 4 * p * (1 - p) * t / table.width)
        eta *= weight[i] * table.rows / table.n.sum() * 2 * (1 - p if sign == 1 else p)
        q = x @ (table.D * x) + 1
        c = lambertw(eta * q * np.exp(-sign * (w @ x + bias))).real / q
        # The gradient after the step is what the step is made of.
        after = sign * ((w + sign * c * table.D * x) @ x + bias + sign * c)
        assert_allclose(c, eta * np.exp(-after), rtol=1e-6)
        w, bias = w + sign * c * table.D * x, bias + sign * c
        iterates.append(w)
    return np.average(iterates, axis=0, weights=np.arange(len(iterates)) + 1)


@layouts
@pytest.mark.parametrize("data", [gaussian, mixed, scaled])
@pytest.mark.parametrize("eta0", [0.5, 5.0])
def test_it_is_the_algorithm(eta0, data, layout):
    X, y = data(200)
    weight = weighted(len(y))
    for passes in (1, 2, None):
        model = UniExp(eta0, shuffle=False, max_iter=passes or 1)
        fit = model.fit if passes else model.partial_fit
        w = fit(layout(X), y, sample_weight=weight).coef_[0]
        expected = reference(X, y, weight, eta0, passes)
        assert_allclose(w, expected, rtol=1e-7, atol=1e-9 * np.ptp(expected))


@pytest.mark.parametrize("level", [-700, -30, -1, 0, 0.5, 1, 1.0001, 3, 30, 700, 1e6])
def test_lambert(level):
    u = solve(float(level))
    assert_allclose(u + np.log(u), level, rtol=1e-12, atol=1e-12)


@layouts
@pytest.mark.parametrize("heavy", [False, True])
def test_the_minimum_of_the_pairwise_exponential_loss_is_reached(heavy, layout):
    X, y = gaussian(200, 4)
    X = X * [1.0, 30.0, 0.1, 1.0] + [0.0, 70.0, 0.0, 0.0]
    weight = np.where(X[:, 0] > 0.0, 3.0, 0.5) if heavy else np.ones(200)
    Z = (X[y == 1][:, None] - X[y == 0]).reshape(-1, 4)
    share = np.outer(weight[y == 1], weight[y == 0]).ravel()
    unit = X.std(axis=0)

    def loss(v):
        return logsumexp(-Z @ (v / unit), b=share / share.sum())

    best = minimize(loss, np.zeros(4))
    gaps = []
    for passes in (2, 2000):
        model = UniExp(max_iter=passes, random_state=0)
        w = model.fit(layout(X), y, sample_weight=weight).coef_[0]
        gaps.append((loss(w * unit) - best.fun) / -best.fun)
    assert best.fun < -0.3
    assert gaps[1] < 0.2 * gaps[0]
    assert gaps[1] < 1e-3


def laboratory(n=7200, d=6):
    """Return lab values: heavy tails, 7 % positives, one of them mostly far above."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.07).astype(int)
    X = np.exp(0.6 * rng.standard_normal((n, d)))
    k = np.count_nonzero(y)
    X[y == 1, 0] = np.exp(2.7 + 1.3 * rng.standard_normal(k))
    X[y == 1, 2] *= np.exp(0.4 * rng.standard_normal(k) - 0.6)
    X[y == 1, 4] *= 0.6
    return X, y


@layouts
def test_large_values_that_are_right_do_not_make_steps_small(layout):
    X, y = laboratory()
    exact = BAM(1e-6, loss="exponential").fit(X[::2], y[::2])
    model = UniExp(random_state=0).fit(layout(X[::2]), y[::2])
    found = model.score(layout(X[1::2]), y[1::2])
    assert found > exact.score(X[1::2], y[1::2]) - 0.015
    # A stream goes on with the scales of the features alone.
    table = model.state_.table
    usual = UniExp(max_iter=1).fit(X[::2], y[::2]).state_.table
    assert_allclose(table.feat[D], usual.feat[D])
    assert_allclose(table.stats[[NORM, WIDTH]], usual.stats[[NORM, WIDTH]])
    before = model.score(X, y)
    assert model.partial_fit(layout(X[1::2]), y[1::2]).score(X, y) > before - 0.01


def test_a_row_far_on_the_wrong_side_does_no_harm():
    """An explicit step would be e^1000 long."""
    X, y = gaussian(300, 3)
    model = UniExp(random_state=0).fit(X, y)
    score = model.score(X, y)
    far = -1e3 * model.coef_ / np.linalg.norm(model.coef_)
    model.partial_fit(far, [1])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.state_.z).all()
    assert abs(variable(model, "BIAS")) < 1e3
    assert model.partial_fit(X, y).score(X, y) > score - 0.1
