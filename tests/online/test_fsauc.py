"""FSAUC against a slow version of itself, written from its documentation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax import FSAUC, SOLAM
from aucmax.online import fsauc
from aucmax.online.fsauc import plan
from helpers.data import (
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
from helpers.layouts import datasets

SETTINGS = [
    {},
    {"radius": 1},
    {"radius": 0.3},
    {"radius": 0.05},
    {"radius": None, "l2": 0.5},
    {"radius": 0.3, "l2": 0.1},
    {"n_expected": 450},
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


def law(effective, width):
    return 1 / np.sqrt(1 + effective / (4 * width))


def project(v, radius):
    """Return the nearest point of the l1 ball, by a sort."""
    sizes = np.sort(np.abs(v))[::-1]
    if sizes.sum() <= radius:
        return v
    thresholds = (np.cumsum(sizes) - radius) / np.arange(1, len(v) + 1)
    tau = thresholds[np.flatnonzero(sizes > thresholds)[-1]]
    return np.sign(v) * np.maximum(np.abs(v) - tau, 0)


def damped(step, curvature, rule):
    if rule == "capped":
        return min(step, 1 / curvature) if curvature > 0 else step
    return step / (1 + step * curvature) if rule == "implicit" else step


def reference(X, y, weight, model, passes, tighter=1.0):
    """Return the weights, the dual variables and the stage; no passes: a stream."""
    hyper = model.get_params()
    l2, rule = hyper["l2"], hyper["step"]
    radius = np.inf if hyper["radius"] is None else hyper["radius"]
    table = Coordinates(X.shape[1], l2, hyper["precondition"])
    here = [i for i in range(len(y)) if weight[i] > 0]
    if passes:
        for i in here:
            table.add(X[i], y[i] == 1, weight[i])
        table.known()
        balance = 4 * table.p * (1 - table.p)
        planned, length = stages(len(here) * passes, balance)
    else:
        planned, length, balance = 0, 16, 1.0
    w = w1 = np.zeros(X.shape[1])
    a = b = alpha = a1 = b1 = alpha1 = kappa = due = since = t = 0.0
    ball = 2 * np.sqrt(3) * radius * tighter
    dual, beta, fall, eta, stage, iterates = 2 * np.sqrt(2) * ball, 9.0, 1.0, 1.0, 1, []
    if passes:
        eta = law(balance * length, table.width)

    def unit():
        return np.sqrt(np.where(table.D > 0, table.D, 1.0))

    def plan_stages(t):
        nonlocal planned, length, eta
        planned, length = 0, 16
        if hyper["n_expected"]:
            prefix = table.rows - t
            planned, length = stages(max(hyper["n_expected"] - prefix, 1), balance)
            eta = law(balance * length, table.width)

    for i in here * (passes or 1):
        positive = y[i] == 1
        done = len(iterates)
        if done and (
            done >= length if stage <= planned else balance * (done + 0.5) >= length
        ):
            w1 = np.mean(iterates, axis=0)
            if passes is None and table.rows >= table.renew_at:
                table.renew()
            w1 = w = unit() * project(w1 / unit(), radius)
            bound = radius * kappa if np.isfinite(radius) else np.inf
            a1, b1 = np.clip([w @ table.means[0], w @ table.means[1]], -bound, bound)
            alpha1 = np.clip(b1 - a1, -2 * bound, 2 * bound)
            a, b, alpha = a1, b1, alpha1
            # Lemma 1, guarded.
            error = 0.0
            if passes is None:
                pairs = table.p * (1 - table.p) * table.rows
                error = np.sum((w / unit()) ** 2) / max(pairs, 0.5)
            if stage < planned:
                slowest = 1 / np.sqrt(1 + balance * t / table.width)
                falls = min(max(slowest, fall / 2), fall)
            else:
                falls = min(law(balance * t, table.width), fall)
                length = 2 * (balance * done if stage == planned else length)
            ball *= falls / fall
            beta_before, beta = beta, 9 + 2 * error / ball**2
            eta *= min(falls / fall * np.sqrt(beta / beta_before), 1)
            fall = falls
            dual = 2 * np.sqrt(2) * ball + 3 * np.sqrt(error)
            stage += 1
            iterates, due, since = [], 0.0, 0

        if passes is None:
            table.add(X[i], positive, weight[i])
            if not table.n.all():
                continue
            follow = table.meet(X[i], np.ones_like(w))
            if np.any(follow != 1.0):
                w, w1 = w * follow, w1 * follow
                iterates = [v * follow for v in iterates]
        renew = passes is None and table.rows >= table.renew_at and stage == 1
        p = table.p
        balance = 4 * p * (1 - p)
        if renew:
            w = w / (1 + due * table.ridge * table.D)
            due, since = 0.0, 0
            ref = table.ref
            table.renew()
            a, b = a + w @ (ref - table.ref), b + w @ (ref - table.ref)
            plan_stages(t + 1)

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
        pace = step if rule == "explicit" else min(step, 0.25)
        w = w - damped(step / table.norm, share * x_x, rule) * g * table.D * x
        if positive:
            a += damped(pace, share, rule) * share * (s - a)
        else:
            b += damped(pace, share, rule) * share * (s - b)
        alpha += damped(pace, 2 * p * (1 - p), rule) * g_alpha
        t, due, since = t + 1, due + p * (1 - p) * step / table.norm, since + 1

        # The projections.
        if np.sum(np.abs(w / unit())) > 1.01 * radius:
            w = unit() * project(w / unit(), radius)
        kappa = max(kappa, np.sqrt(x_x))
        bound = radius * kappa if np.isfinite(radius) else np.inf
        a, b = np.clip([a, b], -bound, bound)
        alpha = np.clip(alpha, -2 * bound, 2 * bound)
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
        if since >= max(16, len(w)) or due * table.hardest > 0.5:
            w = w / (1 + due * table.ridge * table.D)
            due, since = 0.0, 0
            if passes is None and stage == 1:
                plan_stages(t)
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


def assert_matches(model, X, y, weight, passes, tighter=1.0):
    w, dual, stage = reference(X, y, weight, model, passes, tighter)
    assert variable(model, "STAGE") == stage > 1
    assert_allclose(model.coef_[0], w, rtol=1e-8, atol=1e-10 * np.ptp(w))
    found = [variable(model, name) for name in ("A", "B", "ALPHA")]
    assert_allclose(found, dual, rtol=1e-8, atol=1e-10)


@datasets
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_fit_is_the_algorithm(hyper, data, layout):
    X, y = data(120)
    weight = weighted(len(y))
    model = FSAUC(**hyper, shuffle=False, max_iter=7)
    model.fit(layout(X), y, sample_weight=weight)
    assert_matches(model, X, y, weight, 7)


@datasets
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_partial_fit_is_the_algorithm_with_running_moments(hyper, data, layout):
    X, y = data(400)
    for rows in (np.arange(400), np.argsort(y * (np.arange(400) < 90), kind="stable")):
        weight = weighted(len(y))  # once in this order, once after a one-class prefix
        model = FSAUC(**hyper).partial_fit(
            layout(X[rows]), y[rows], sample_weight=weight
        )
        assert_matches(model, X[rows], y[rows], weight, None)


def unit_weights(state, w):
    """Return the weights of unit-scale features: what the balls hold."""
    return w / np.sqrt(np.where(state.table.feat[1] > 0, state.table.feat[1], 1.0))


def places(model):
    """Return where the stage started and where it is, in unit-scale features."""
    state = model.state_
    start = state.start * state.table.feat[1]
    here = start + variable(model, "SCALE") * state.table.feat[0]
    return unit_weights(state, start), unit_weights(state, here)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_iterates_stay_in_both_balls_and_distances_are_known(hyper, layout):
    X, y = mixed(600)
    X[300:] *= 3.0  # scales change under way
    radius = FSAUC(**hyper)._radius()
    model = FSAUC(**hyper)
    for row in range(0, 600, 5):
        part = slice(row, row + 5)
        model.partial_fit(layout(X[part]), y[part], classes=[0, 1])
        if variable(model, "DONE") == 0.0:
            continue
        get = {key: variable(model, key) for key in ("SIZE", "REACH", "BALL", "DUAL")}
        start, here = places(model)
        norm = variable(model, "NORM")
        assert np.sum(np.abs(here)) <= 1.01 * radius * (1 + 1e-9)
        assert_allclose(
            np.sum((here - start) ** 2), get["REACH"], rtol=1e-8, atol=1e-15
        )
        moved = [variable(model, k) - variable(model, k + "1") for k in "AB"]
        distance = np.sqrt(get["REACH"] + np.sum(np.square(moved)) / norm)
        assert distance <= get["BALL"] * (1 + 1e-9)
        change = variable(model, "ALPHA") - variable(model, "ALPHA1")
        assert abs(change) <= get["DUAL"] * np.sqrt(norm) * (1 + 1e-9)
        if variable(model, "NEAR"):
            assert np.sum(np.abs(here)) <= get["SIZE"] * (1 + 1e-9)


@pytest.fixture
def tighter(monkeypatch):
    """Make the balls around the start, r and D, so small that they are met."""

    def init(*arguments):
        state = fsauc_init(*arguments)
        state.z[[fsauc.BALL, fsauc.DUAL]] *= 1e-4
        return state

    fsauc_init = fsauc.init
    monkeypatch.setattr(fsauc, "init", init)
    return 1e-4


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("hyper", [{}, {"l2": 0.1}, {"radius": 1}], ids=str)
def test_the_balls_around_the_start_are_met(hyper, layout, tighter):
    X, y = mixed(150)
    weight = weighted(len(y))
    model = FSAUC(**hyper, max_iter=5, shuffle=False)
    model.fit(layout(X), y, sample_weight=weight)
    assert_matches(model, X, y, weight, 5, tighter)
    model = FSAUC(**hyper).partial_fit(layout(X), y, sample_weight=weight)
    assert_matches(model, X, y, weight, None, tighter)
    pulled = 0
    model = FSAUC(**hyper)
    for row in range(150):
        model.partial_fit(layout(X[row : row + 1]), y[row : row + 1], classes=[0, 1])
        moved = [variable(model, k) - variable(model, k + "1") for k in "AB"]
        norm = variable(model, "NORM") or 1.0  # none before both classes are there
        square = variable(model, "REACH") + np.sum(np.square(moved)) / norm
        pulled += np.sqrt(square) > 0.999 * variable(model, "BALL") > 0.0
    assert pulled > 30


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000, 10**5, 10**9])
@pytest.mark.parametrize("balance", [1.0, 0.36, 1e-5, 1e-300])
def test_plans(n, balance):
    m, length, eta = plan(float(n), balance, 7.0)
    assert (m, length) == stages(n, balance)
    assert m >= 1
    assert_allclose(eta, law(balance * length, 7))
    assert (m - 1) * length < n <= m * length


def test_the_number_of_stages_is_that_of_the_paper():
    # n = 100 000 rows of balanced classes: ½ log₂(200 000 / 16.6) - 1 = 5.78.
    assert plan(1e5, 1.0, 1.0)[0] == 5
    X, y = gaussian(1000, positives=0.5)
    model = FSAUC(max_iter=100, random_state=0).fit(X, y)
    assert variable(model, "STAGE") == variable(model, "PLANNED") == 5
    assert variable(model, "DONE") == variable(model, "LENGTH") == 20_000
    assert_allclose(variable(model, "ETA"), law(20_000, variable(model, "WIDTH")) / 16)
    assert_allclose(variable(model, "BALL"), 2 * np.sqrt(3) * 100 / 16)
    # The next row begins another.
    model.partial_fit(X[:1], y[:1])
    assert (variable(model, "STAGE"), variable(model, "DONE")) == (6, 1)


def test_an_expected_length_gives_the_stages_of_fit():
    X, y = gaussian(3000, positives=0.5)
    prefix = max(np.argmax(y == 0), np.argmax(y == 1))  # rows of one class
    m, length = stages(3000 - prefix, 1.0)
    assert m > 1
    model = FSAUC(n_expected=3000).partial_fit(X, y)
    assert variable(model, "PLANNED") == variable(model, "STAGE") == m
    assert variable(model, "DONE") == 3000 - prefix - (m - 1) * length
    # However long, they are not there to be divided.
    model = FSAUC(n_expected=3000).partial_fit(
        X[y == 0][:1000], y[y == 0][:1000], [0, 1]
    )
    model.partial_fit(X[:2000], y[:2000])
    left = 3000 - 1000 - np.argmax(y)
    p = y[:2000].sum() / 3000
    m, length = stages(left, 4 * p * (1 - p))
    assert variable(model, "PLANNED") == variable(model, "STAGE") == m
    # More rows than expected are fine, and so are fewer.
    for n in (10, 100_000):
        longer = FSAUC(n_expected=n).partial_fit(X, y)
        assert longer.score(X, y) > 0.8


def test_an_unknown_length_gives_stages_that_double():
    X, y = gaussian(5000, 3, positives=0.5)
    model = FSAUC()
    lengths, etas = [], [1.0]
    for row in range(0, 5000, 4):
        done, stage = (
            (variable(model, "DONE"), variable(model, "STAGE")) if row else (0, 1)
        )
        model.partial_fit(X[row : row + 4], y[row : row + 4], classes=[0, 1])
        if variable(model, "STAGE") > stage:
            lengths.append(done)
            etas.append(variable(model, "ETA"))
    assert len(lengths) >= 7
    ratios = np.array(lengths[1:]) / lengths[:-1]
    assert np.all(np.abs(ratios[2:] - 2) < 0.2)
    assert np.all(np.diff(etas) <= 0)
    # In the end, like 1/√t.
    assert_allclose(etas[-1] / etas[-2], np.sqrt(0.5), rtol=0.1)


@pytest.mark.parametrize("n", [2, 5, 20, 200, 20_000])
@pytest.mark.parametrize("expected", [None, "n"])
def test_constants_do_not_collapse(n, expected):
    """Few rows or rare positives, where the paper's Lemma 1 divides by less than zero.

    Its min(p, 1 - p) T - √(2 T log(12 / δ)) at δ = 0.1 is negative in all of these.
    """
    X, y = rare(n)
    assert y.mean() * n - np.sqrt(2 * n * np.log(120)) < 0
    models = [FSAUC(random_state=0).fit(X, y)]
    for order in (np.arange(n), np.argsort(-y, kind="stable")):
        model = FSAUC(n_expected=n if expected else None)
        models.append(model.partial_fit(X[order], y[order], classes=[0, 1]))
    for model in models:
        if variable(model, "DONE") == 0.0:  # the positive was the last row
            continue
        assert 0.1 < variable(model, "ETA") <= 1.0
        for name in ("BETA", "BALL", "DUAL"):
            assert 0.0 < variable(model, name) < 1e4
        assert_array_equal(model.classes_, [0, 1])
    assert models[0].score(X, y) > 0.95


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_minimum_is_reached_to_a_thousandth(l2):
    X, y = gaussian(300, 5)
    model = FSAUC(l2=l2, max_iter=30_000, random_state=0).fit(X, y)
    expected = closed_form(X, y, l2)
    error = np.linalg.norm(model.coef_[0] - expected)
    assert error < 1e-3 * np.linalg.norm(expected)
    # And so says the sum over all pairs: its slope is next to nothing there.
    h = 1e-4 * np.eye(5)

    def slope(w):
        ups = [pairwise(w + e, X, y, l2) - pairwise(w - e, X, y, l2) for e in h]
        return np.linalg.norm(ups) / 2e-4

    assert slope(model.coef_[0]) < 2e-3 * slope(np.zeros(5))


def test_stages_get_nearer_than_no_stages():
    """The point of the paper: after the same rows, less is left to gain.

    SOLAM has its published steps and average; its defaults are nearer than FSAUC.
    """
    ratios = []
    for data in (gaussian, mixed, scaled):
        for seed in (0, 1):
            X, y = data(3000, seed=seed)
            best = pairwise(closed_form(X, y), X, y)
            left = []
            published = SOLAM(None, schedule="printed", step="explicit")
            for learner in (published, FSAUC()):
                model = learner.set_params(max_iter=10, random_state=0).fit(X, y)
                left.append(pairwise(model.coef_[0], X, y) - best)
            ratios.append(left[1] / left[0])
    assert max(ratios) < 1.2
    assert np.exp(np.mean(np.log(ratios))) < 0.4


@pytest.mark.parametrize(
    ("radius", "tolerance"), [(0.1, 0.1), (0.3, 0.03), (0.6, 0.03)]
)
def test_a_small_ball_holds_the_constrained_minimum(radius, tolerance):
    X, y = scaled(300, 5, decades=1.0)
    model = FSAUC(radius, max_iter=3000, random_state=0).fit(X, y)
    unit = np.sqrt(model.state_.table.feat[1])
    H, delta = quadratic(X, y)
    H, delta = unit[:, None] * H * unit, unit * delta
    v = np.zeros(5)
    for _ in range(20_000):  # projected gradient
        v = project(v - (H @ v - delta) / np.linalg.norm(H, 2), radius)
    assert_allclose(np.abs(v).sum(), radius)  # the ball is what stops it
    error = np.linalg.norm(unit_weights(model.state_, model.coef_[0]) - v)
    assert error < tolerance * np.linalg.norm(v)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("precondition", [True, False])
@pytest.mark.parametrize("d", [1, 20])
def test_weights_are_inside_the_l1_ball(d, precondition, method):
    X, y = gaussian(3000, d)
    model = FSAUC(0.01, precondition=precondition, random_state=0)
    getattr(model, method)(X, y)
    v = unit_weights(model.state_, model.coef_[0])
    assert 0 < np.sum(np.abs(v)) <= 0.01 * (1 + 1e-12)


def test_a_large_ball_cuts_nothing():
    X, y = gaussian(200)
    free = FSAUC(None, random_state=0).fit(X, y)
    large = FSAUC(1e6, random_state=0).fit(X, y)
    assert_allclose(free.coef_, large.coef_, rtol=1e-12)


@pytest.mark.parametrize("positives", [0.5, 0.3, 0.02])
@pytest.mark.parametrize("step", ["capped", "implicit"])
def test_large_steps_do_not_diverge(step, positives):
    X, y = gaussian(500, positives=positives)
    X[::50] *= 30.0
    for eta0 in (1.0, 10.0, 1e6):
        model = FSAUC(None, step=step, eta0=eta0, max_iter=20, random_state=0).fit(X, y)
        assert np.abs(model.coef_).max() < 100


def test_the_mean_of_a_stage_follows_the_scales():
    """A feature that begins small leaves no large weight behind in the mean."""
    X, y = gaussian(400, 3)
    X[:40, 2] *= 1e-4
    model = FSAUC().partial_fit(X, y)
    assert abs(model.coef_[0, 2]) < 3 * np.abs(model.coef_[0, :2]).max()
