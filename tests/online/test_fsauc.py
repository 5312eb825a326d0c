"""FSAUC against a slow version of itself, written from its documentation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax import FSAUC, SOLAM
from aucmax.online.fsauc import plan
from data import (
    Coordinates,
    closed_form,
    gaussian,
    mixed,
    pairwise,
    quadratic,
    rare,
    scaled,
    variable,
)

SETTINGS = [
    {},
    {"radius": 1},
    {"radius": 0.3},
    {"radius": 0.05},
    {"radius": None, "l2": 0.5},
    {"radius": 0.3, "l2": 0.1},
    {"n_expected": 300},
    {"n_expected": 30, "radius": 0.2},
    {"step": "implicit"},
    {"step": "explicit", "eta0": 0.1},
    {"precondition": False, "radius": 0.3},
]


def stages(n, balance):
    """Return the stages of ``n`` rows and the length of one: Algorithm 1, line 1."""
    n_eff = max(balance * n, 2)
    m = max(int(np.floor(np.log2(2 * n_eff / np.log2(n_eff)) / 2)) - 1, 1)
    return m, int(np.ceil(n / m))


def project(v, radius):
    """Return the nearest point of the l1 ball, by bisection."""
    if np.sum(np.abs(v)) <= radius:
        return v
    low, high = 0.0, np.abs(v).max()
    for _ in range(200):
        middle = (low + high) / 2
        above = np.sum(np.maximum(np.abs(v) - middle, 0)) > radius
        low, high = (middle, high) if above else (low, middle)
    return np.sign(v) * np.maximum(np.abs(v) - high, 0)


def damped(step, curvature, rule):
    if rule == "capped":
        return min(step, 1 / curvature) if curvature > 0 else step
    return step / (1 + step * curvature) if rule == "implicit" else step


def reference(X, y, weight, model, passes):
    """Return the weights, the dual variables and the stage; no passes: a stream."""
    hyper = model.get_params()
    l2, rule = hyper["l2"], hyper["step"]
    radius = np.inf if hyper["radius"] is None else hyper["radius"]
    table = Coordinates(X.shape[1], l2, hyper["precondition"])
    here = [i for i in range(len(y)) if weight[i] > 0]
    if passes:
        for i in here:
            table.add(X[i], y[i] == 1, weight[i])
        table.renew()
        planned, length = stages(len(here) * passes, 4 * table.p * (1 - table.p))
    w = w1 = np.zeros(X.shape[1])
    a = b = alpha = a1 = b1 = alpha1 = kappa = due = since = t = 0.0
    ball = 2 * np.sqrt(3) * radius
    dual, beta, fall, eta, stage, iterates = 2 * np.sqrt(2) * ball, 9.0, 1.0, 1.0, 1, []

    def unit():
        return np.sqrt(np.where(table.D > 0, table.D, 1.0))

    for i in here * (passes or 1):
        positive = y[i] == 1
        if passes is None:
            table.add(X[i], positive, weight[i])
            if not table.n.all():
                continue
            follow = table.meet(X[i], np.ones_like(w))
            w, w1 = w * follow, w1 * follow
            iterates = [v * follow for v in iterates]
        renew = passes is None and table.rows >= table.renew_at
        p = table.p
        balance = 4 * p * (1 - p)
        done = len(iterates)

        if done and (
            done >= length if stage <= planned else balance * (done + 0.5) >= length
        ):
            w1 = np.mean(iterates, axis=0)
            if renew:
                table.renew()
                renew = False
            w1 = w = unit() * project(w1 / unit(), radius)
            bound = radius * kappa if np.isfinite(radius) else np.inf
            a1, b1 = np.clip([w @ table.means[0], w @ table.means[1]], -bound, bound)
            alpha1 = np.clip(b1 - a1, -2 * bound, 2 * bound)
            a, b, alpha = a1, b1, alpha1
            # Lemma 1, guarded.
            error = 0.0
            if passes is None:
                error = np.sum((w / unit()) ** 2) / max(p * (1 - p) * table.rows, 0.5)
            if stage < planned:
                law = 1 / np.sqrt(1 + balance * t / table.width)
                falls = min(max(law, fall / 2), fall)
            else:
                falls = min(1 / np.sqrt(1 + balance * t / (16 * table.width)), fall)
                length = 2 * (balance * done if stage == planned else length)
            ball *= falls / fall
            beta_before, beta = beta, 9 + 2 * error / ball**2
            eta *= min(falls / fall * np.sqrt(beta / beta_before), 1)
            fall = falls
            dual = 2 * np.sqrt(2) * ball + 3 * np.sqrt(error)
            stage += 1
            iterates, due, since = [], 0.0, 0

        renew = renew and stage == 1
        ridge = p * (1 - p) * l2 * due
        if renew or since >= max(16, len(w)) or ridge * table.largest > 0.5:
            w = w / (1 + ridge * table.D)
            due, since = 0.0, 0
        if renew:
            ref = table.ref
            table.renew()
            a, b = a + w @ (ref - table.ref), b + w @ (ref - table.ref)
            planned, length = 0, 16
            if hyper["n_expected"]:
                prefix = table.rows - t
                planned, length = stages(max(hyper["n_expected"] - prefix, 1), balance)

        # The gradients of F, as in the paper.
        x = X[i] - table.ref
        x_x, s = x @ (table.D * x), w @ x
        if positive:
            g = 2 * (1 - p) * (s - a - (1 + alpha))
            g_alpha = -2 * (1 - p) * s - 2 * p * (1 - p) * alpha
        else:
            g = 2 * p * (s - b + (1 + alpha))
            g_alpha = 2 * p * s - 2 * p * (1 - p) * alpha
        share = 2 * (1 - p) if positive else 2 * p
        step = eta * hyper["eta0"] * weight[i] * table.rows / table.n.sum()
        w = w - damped(step / table.norm, share * x_x, rule) * g * table.D * x
        if positive:
            a += damped(step, share, rule) * share * (s - a)
        else:
            b += damped(step, share, rule) * share * (s - b)
        alpha += damped(step, 2 * p * (1 - p), rule) * g_alpha
        t, due, since = t + 1, due + step / table.norm, since + 1

        # The projections.
        if np.sum(np.abs(w / unit())) > 1.01 * radius:
            w = unit() * project(w / unit(), radius)
        kappa = max(kappa, np.sqrt(x_x))
        bound = radius * kappa if np.isfinite(radius) else np.inf
        a, b = np.clip([a, b], -bound, bound)
        alpha = np.clip(alpha, -2 * bound, 2 * bound)
        alpha = alpha1 + np.clip(alpha - alpha1, -1, 1) if False else alpha
        limit = dual * np.sqrt(table.norm)
        alpha = np.clip(alpha, alpha1 - limit, alpha1 + limit)
        distance = np.sqrt(
            np.sum(((w - w1) / unit()) ** 2)
            + ((a - a1) ** 2 + (b - b1) ** 2) / table.norm
        )
        if distance > ball:
            back = ball / distance
            w = w1 + back * (w - w1)
            a, b = a1 + back * (a - a1), b1 + back * (b - b1)
        iterates.append(w)
    done = len(iterates)
    share = 1.0
    if stage > 1:
        p = table.p
        steps = length if stage <= planned else length / (4 * p * (1 - p))
        share = min(2 * done / (steps + done), 1)
    mean = w1 + share * (np.mean(iterates, axis=0) - w1)
    return unit() * project(mean / unit(), radius), (a, b, alpha), stage


def weighted(n):
    weight = np.random.default_rng(3).random(n) + 0.5
    weight[::7] = 0.0
    return weight


def assert_matches(model, X, y, weight, passes):
    w, dual, stage = reference(X, y, weight, model, passes)
    assert variable(model, "STAGE") == stage > 1
    # A projection on the l1 ball finds zeros that a bisection finds to 1e-16.
    assert_allclose(model.coef_[0], w, rtol=1e-8, atol=1e-10 * np.ptp(w))
    found = [variable(model, name) for name in ("A", "B", "ALPHA")]
    assert_allclose(found, dual, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("data", [gaussian, mixed, scaled])
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_fit_is_the_algorithm(hyper, data, layout):
    X, y = data(200)
    weight = weighted(len(y))
    for passes in (2, 7):
        model = FSAUC(**hyper, shuffle=False, max_iter=passes)
        model.fit(layout(X), y, sample_weight=weight)
        assert_matches(model, X, y, weight, passes)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("data", [gaussian, mixed, scaled])
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_partial_fit_is_the_algorithm_with_running_moments(hyper, data, layout):
    X, y = data(400)
    for rows in (np.arange(400), np.argsort(y[:400] * (np.arange(400) < 90))):
        weight = weighted(len(y))  # once in this order, once after a one-class prefix
        model = FSAUC(**hyper).partial_fit(
            layout(X[rows]), y[rows], sample_weight=weight
        )
        assert_matches(model, X[rows], y[rows], weight, None)
