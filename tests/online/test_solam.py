"""SOLAM against a slow version of itself, written from its documentation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from aucmax import SOLAM
from aucmax.online import solam
from helpers.data import (
    Coordinates,
    closed_form,
    gaussian,
    mixed,
    quadratic,
    scaled,
    variable,
)
from helpers.layouts import datasets

SETTINGS = [
    {},
    {"radius": 0.5},
    {"radius": 0.05},
    {"radius": 0.001},
    {"radius": None},
    {"radius": None, "l2": 0.5},
    {"l2": 0.01, "radius": None, "precondition": False},
    {"norm": "l1", "radius": 0.3},
    {"norm": "l1", "radius": 1, "l2": 0.1},
    {"step": "explicit", "eta0": 0.1},
    {"precondition": False, "radius": 0.3},
    {"precondition": False, "norm": "l1", "radius": 0.3},
]
NORMS = {"l2": np.linalg.norm, "l1": lambda v: np.sum(np.abs(v))}


def project(v, radius, norm):
    """Return the nearest point of the ball; for the l1 ball by bisection."""
    if NORMS[norm](v) <= radius:
        return v
    if norm == "l2":
        return v * (radius / np.linalg.norm(v))
    low, high = 0.0, np.abs(v).max()
    for _ in range(200):
        middle = (low + high) / 2
        above = np.sum(np.maximum(np.abs(v) - middle, 0)) > radius
        low, high = (middle, high) if above else (low, middle)
    return np.sign(v) * np.maximum(np.abs(v) - high, 0)


def reference(X, y, weight, model, passes):
    """Return the weights and the dual variables after ``passes``; None is a stream."""
    hyper = model.get_params()
    l2, norm, radius = hyper["l2"], hyper["norm"], hyper["radius"]
    if radius is None:
        raw = l2 > 0 and norm == "l2" and not hyper["precondition"]
        radius = np.sqrt(2 / l2) if raw else np.inf
    slack = 1.01 if norm == "l1" else 1.0
    table = Coordinates(X.shape[1], l2, hyper["precondition"])
    here = [i for i in range(len(y)) if weight[i] > 0]
    if passes:
        for i in here:
            table.add(X[i], y[i] == 1, weight[i])
        table.known()
    w = np.zeros(X.shape[1])
    iterates, shares = [], []
    a = b = alpha = kappa = due = since = 0.0
    for i in here * (passes or 1):
        positive = y[i] == 1
        if passes is None:
            table.add(X[i], positive, weight[i])
            if not table.n.all():
                continue
            w = table.meet(X[i], w, iterates)
        p = table.p
        if passes is None and table.rows >= table.renew_at:
            w = w / (1 + due * table.ridge * table.D)
            due = since = 0.0
            ref = table.ref
            table.renew()
            a, b = a + w @ (ref - table.ref), b + w @ (ref - table.ref)
        x = X[i] - table.ref
        x_x = x @ (table.D * x)
        t = len(iterates) + 1
        relative = weight[i] * table.rows / table.n.sum()
        effective = 4 * p * (1 - p) * t
        gamma = (
            relative * hyper["eta0"] / table.norm / np.sqrt(1 + effective / table.width)
        )
        pace = relative / np.sqrt(1 + effective)

        # The gradients of F, as in the paper.
        s = w @ x
        if positive:
            g = 2 * (1 - p) * (s - a - (1 + alpha))
            g_a, g_b = -2 * (1 - p) * (s - a), 0.0
            g_alpha = -2 * (1 - p) * s - 2 * p * (1 - p) * alpha
        else:
            g = 2 * p * (s - b + (1 + alpha))
            g_a, g_b = 0.0, -2 * p * (s - b)
            g_alpha = 2 * p * s - 2 * p * (1 - p) * alpha
        share = 2 * (1 - p) if positive else 2 * p
        if hyper["step"] == "implicit":  # each at its own new value
            w = w - gamma * g / (1 + gamma * share * x_x) * table.D * x
            a -= pace * g_a / (1 + pace * share)
            b -= pace * g_b / (1 + pace * share)
            alpha += pace * g_alpha / (1 + pace * 2 * p * (1 - p))
        else:
            w = w - gamma * g * table.D * x
            a -= pace * g_a
            b -= pace * g_b
            alpha += pace * g_alpha

        unit = np.sqrt(np.where(table.D > 0, table.D, 1.0))
        if NORMS[norm](w / unit) > slack * radius:
            w = unit * project(w / unit, radius, norm)
        kappa = max(kappa, np.sqrt(x_x))
        bound = radius * kappa if np.isfinite(radius) else np.inf
        a, b = np.clip([a, b], -bound, bound)
        alpha = np.clip(alpha, -2 * bound, 2 * bound)
        iterates.append(w)
        shares.append(len(iterates) * relative)
        due += p * (1 - p) * gamma
        since += 1
        if since >= max(256, len(w)) or due * table.hardest > 0.5:
            w = w / (1 + due * table.ridge * table.D)
            due = since = 0.0
    mean = np.average(iterates, axis=0, weights=shares)
    if norm == "l1":
        unit = np.sqrt(np.where(table.D > 0, table.D, 1.0))
        mean = unit * project(mean / unit, radius, norm)
    return mean, (a, b, alpha)


def weighted(n):
    weight = np.random.default_rng(3).random(n) + 0.5
    weight[::7] = 0.0
    return weight


def assert_matches(model, X, y, weight, passes):
    w, dual = reference(X, y, weight, model, passes)
    # A projection on the l1 ball finds zeros that a bisection finds to 1e-16.
    assert_allclose(model.coef_[0], w, rtol=1e-8, atol=1e-10 * np.ptp(w))
    found = [variable(model, name) for name in ("A", "B", "ALPHA")]
    assert_allclose(found, dual, rtol=1e-8, atol=1e-10)


@datasets
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_fit_is_the_algorithm(hyper, data, layout):
    X, y = data(200)
    weight = weighted(len(y))
    for passes in (1, 2):
        model = SOLAM(**hyper, shuffle=False, max_iter=passes)
        model.fit(layout(X), y, sample_weight=weight)
        assert_matches(model, X, y, weight, passes)


@datasets
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_partial_fit_is_the_algorithm_with_running_moments(hyper, data, layout):
    X, y = data(400)
    weight = weighted(len(y))
    model = SOLAM(**hyper).partial_fit(layout(X), y, sample_weight=weight)
    assert_matches(model, X, y, weight, None)


def unit_weights(state, w):
    """Return the weights of unit-scale features: what the ball holds."""
    return w / np.sqrt(np.where(state.table.feat[1] > 0, state.table.feat[1], 1.0))


def iterate(model):
    return variable(model, "SCALE") * model.state_.table.feat[0]


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_iterates_stay_in_the_ball_and_its_size_is_known(hyper, method, layout):
    X, y = mixed(400)
    X[200:] *= 3.0  # scales change under way
    norm = hyper.get("norm", "l2")
    # As documented: up to 1 % out of the l1 ball between projections.
    slack = 1.01 if norm == "l1" else 1.0
    model = SOLAM(**hyper, random_state=0)
    for rows in range(20, 400, 20):
        part = slice(rows - 20, rows) if method == "partial_fit" else slice(rows)
        getattr(model, method)(layout(X[part]), y[part])
        size = NORMS[norm](unit_weights(model.state_, iterate(model)))
        radius = solam.ball_radius(model.state_.table, model._radius())
        assert size <= slack * radius * (1 + 1e-9)
        tracked = variable(model, "SIZE")
        assert_allclose(tracked if norm == "l1" else np.sqrt(tracked), size, rtol=1e-8)
        bound = radius * variable(model, "KAPPA") * (1 + 1e-12)
        a, b, alpha = (abs(variable(model, name)) for name in ("A", "B", "ALPHA"))
        assert max(a, b, alpha / 2) <= bound


@pytest.mark.parametrize("precondition", [True, False])
@pytest.mark.parametrize("l2", [1e-3, 1.0, 30.0])
def test_the_ball_of_regsolam_is_finite_and_holds_the_minimum(l2, precondition):
    X, y = mixed(400)
    model = SOLAM(None, l2=l2, precondition=precondition).fit(X, y)
    table = model.state_.table
    radius = solam.ball_radius(table, model._radius())
    scale = table.feat[1] if precondition else np.ones(X.shape[1])
    varies = table.feat[1] > 0.0
    assert_allclose(radius, np.sqrt(2.0 / (l2 * scale[varies].min())))
    least = closed_form(X, y, l2)
    assert NORMS["l2"](unit_weights(model.state_, least)) <= radius


@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_the_average_is_the_weighted_mean_of_the_iterates(hyper):
    if hyper.get("norm") == "l1":
        pytest.skip("what is returned is projected once more")
    X, y = mixed(300)
    model = SOLAM(**{**hyper, "precondition": False})  # else the past follows scales
    total, weighted_sum, before = 0.0, 0.0, 0.0
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        gamma = variable(model, "SUM_WEIGHT") - before
        before = variable(model, "SUM_WEIGHT")
        total += gamma
        weighted_sum = weighted_sum + gamma * iterate(model)
    expected = weighted_sum / total
    atol = 1e-10 * np.abs(expected).max()
    assert_allclose(model.coef_[0], expected, rtol=1e-9, atol=atol)


def constrained(X, y, radius, norm, D, l2=0.0):
    """Return the minimum of J over the ball of unit-scale weights, by SLSQP."""
    H, delta = quadratic(X, y)
    unit = np.sqrt(D)
    H = unit[:, None] * H * unit + l2 / 2 * np.diag(D)
    delta = unit * delta
    d = len(delta)
    if norm == "l2":
        result = minimize(
            lambda v: v @ H @ v - 2 * v @ delta,
            np.zeros(d),
            jac=lambda v: 2 * (H @ v - delta),
            constraints={"type": "ineq", "fun": lambda v: radius**2 - v @ v},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        v = result.x
    else:  # v = plus - minus, both above zero
        signs = np.hstack([np.eye(d), -np.eye(d)])
        result = minimize(
            lambda u: (signs @ u) @ H @ (signs @ u) - 2 * (signs @ u) @ delta,
            np.zeros(2 * d),
            jac=lambda u: 2 * signs.T @ (H @ (signs @ u) - delta),
            bounds=[(0, None)] * (2 * d),
            constraints={"type": "ineq", "fun": lambda u: radius - u.sum()},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        v = signs @ result.x
    assert result.success
    return unit * v


@pytest.mark.parametrize(
    ("norm", "radius", "tolerance", "l2"),
    # Near a corner of the l1 ball, noise is all on one side and does not average out:
    # only smaller steps help.
    [
        ("l2", 0.05, 0.07, 0.0),
        ("l2", 0.3, 0.04, 0.1),
        ("l1", 0.1, 0.2, 0.1),
        ("l1", 0.3, 0.05, 0.0),
    ],
)
def test_a_small_ball_holds_the_constrained_minimum(norm, radius, tolerance, l2):
    X, y = scaled(300, 5, decades=1.0)
    model = SOLAM(radius, norm=norm, l2=l2, max_iter=3000, random_state=0).fit(X, y)
    D = model.state_.table.feat[1]
    expected = constrained(X, y, radius, norm, D, l2)
    # The ball is what stops it.
    assert_allclose(NORMS[norm](expected / np.sqrt(D)), radius, rtol=1e-6)
    error = np.linalg.norm((model.coef_[0] - expected) / np.sqrt(D))
    assert error < tolerance * np.linalg.norm(expected / np.sqrt(D))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("precondition", [True, False])
@pytest.mark.parametrize("d", [1, 20])
def test_weights_are_inside_the_l1_ball(d, precondition, method):
    # With one feature nearly all iterates are on the surface, so outside by the slack.
    X, y = gaussian(3000, d)
    model = SOLAM(0.01, norm="l1", precondition=precondition, random_state=0)
    getattr(model, method)(X, y)
    v = unit_weights(model.state_, model.coef_[0])
    assert 0 < np.sum(np.abs(v)) <= 0.01 * (1 + 1e-12)


def test_a_small_l1_ball_holds_few_features():
    X, y = gaussian(1000, 4)
    X = np.hstack([X, np.random.default_rng(0).standard_normal((1000, 30))])
    shares = {}
    for norm in ("l1", "l2"):
        model = SOLAM(0.2, norm=norm, max_iter=50, random_state=0).fit(X, y)
        v = np.abs(unit_weights(model.state_, model.coef_[0]))
        shares[norm] = v[4:].sum() / v.sum()
    assert shares["l1"] < 0.5 * shares["l2"]


def test_without_a_ball_nothing_is_cut():
    X, y = gaussian(200)
    free = SOLAM(None, random_state=0).fit(X, y)
    large = SOLAM(1e6, random_state=0).fit(X, y)
    assert_allclose(free.coef_, large.coef_, rtol=1e-12)


def test_a_feature_that_wakes_up_after_half_of_a_stream():
    rng, w = np.random.default_rng(0), np.r_[0.7, 0.2, 0.2, 0.2, np.zeros(6)]
    X = rng.standard_normal((25_000, 10))
    y = X @ w + rng.standard_normal(25_000) > 1.0
    X[:10_000, 0] = 0.0
    train, test = slice(0, 20_000), slice(20_000, None)
    stream = SOLAM().partial_fit(X[train], y[train])
    awake = SOLAM(random_state=0).fit(X[10_000:20_000], y[10_000:20_000])
    assert stream.score(X[test], y[test]) > awake.score(X[test], y[test]) - 0.01
