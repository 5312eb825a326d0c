"""SPAM against a slow version of itself, written from its documentation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import approx_fprime

from aucmax import SPAM, LeastSquaresAUC
from helpers.data import (
    Coordinates,
    class_moments,
    gaussian,
    heavy,
    mixed,
    pairwise,
    quadratic,
    variable,
)
from helpers.layouts import datasets

SETTINGS = [
    {},
    {"l2": 0.5},
    {"l2": 0.0},
    {"average": False},
    {"power_t": 0.75},
    {"schedule": "inv", "l2": 0.1},
    {"schedule": "constant", "eta0": 0.3},
    {"step": "explicit", "eta0": 0.1},
    {"precondition": False},
    {"step": "explicit", "precondition": False, "average": False, "eta0": 0.2},
]


def step_length(schedule, eta0, norm, width, t, p, convexity, power=0.5):
    """Return the step size; p(1 - p) makes rows effective rows and l2 the paper's β."""
    effective = 4 * p * (1 - p) * t
    if schedule == "invsqrt":
        return eta0 / norm / (1 + effective / width) ** power
    if schedule == "inv":
        return 1 / (norm / eta0 + p * (1 - p) * convexity * t)
    return eta0 / norm


def residual(w, x, positive, p, m_pos, m_neg):
    """Return g such that SPAM's stochastic gradient at a row is g x."""
    if positive:
        return 2 * (1 - p) * (w @ x - w @ m_neg - 1)
    return 2 * p * (w @ x - w @ m_pos + 1)


def reference(X, y, weight, model, passes):
    """Return the weights after ``passes`` over the rows; None is one pass of a stream.

    Nothing is incremental here: each row's mean scores are taken from w itself.
    """
    hyper = model.get_params()
    table = Coordinates(X.shape[1], hyper["l2"], hyper["precondition"])
    here = [i for i in range(len(y)) if weight[i] > 0]
    if passes:
        for i in here:
            table.add(X[i], y[i] == 1, weight[i])
        table.known()
    w = np.zeros(X.shape[1])
    iterates = []
    due = since = 0

    def penalised(w):
        return w / (1 + due * table.ridge * table.D)

    for i in here * (passes or 1):
        positive = y[i] == 1
        if passes is None:
            table.add(X[i], positive, weight[i])
            if not table.n.all():
                continue
            w = table.meet(X[i], w, iterates)
            if table.rows >= table.renew_at:
                w = penalised(w)
                due = since = 0
                table.renew()
        x = X[i] - table.ref
        eta = step_length(
            hyper["schedule"],
            hyper["eta0"],
            table.norm,
            table.width,
            len(iterates) + 1,
            table.p,
            table.mildest,
            hyper["power_t"],
        )
        eta *= weight[i] * table.rows / table.n.sum()
        c = -eta * residual(w, x, positive, table.p, *table.means)
        if hyper["step"] == "implicit":
            share = 1 - table.p if positive else table.p
            c /= 1 + 2 * eta * share * x @ (table.D * x)
        w = w + c * table.D * x
        iterates.append(w)
        due += table.p * (1 - table.p) * eta
        since += 1
        if due * table.hardest > 0.5 or since >= max(256, len(w)):
            w = penalised(w)
            due = since = 0
    if hyper["average"]:
        return np.average(iterates, axis=0, weights=np.arange(len(iterates)) + 1)
    return penalised(w)


def weighted(n):
    weight = np.random.default_rng(3).random(n) + 0.5
    weight[::7] = 0.0
    return weight


@datasets
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_fit_is_the_algorithm(hyper, data, layout):
    X, y = data(200)
    weight = weighted(len(y))
    for passes in (1, 2):
        model = SPAM(**hyper, shuffle=False, max_iter=passes)
        model.fit(layout(X), y, sample_weight=weight)
        expected = reference(X, y, weight, model, passes)
        assert_allclose(
            model.coef_[0], expected, rtol=1e-8, atol=1e-10 * np.ptp(expected)
        )


@datasets
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_partial_fit_is_the_algorithm_with_running_moments(hyper, data, layout):
    X, y = data(400)
    weight = weighted(len(y))
    model = SPAM(**hyper).partial_fit(layout(X), y, sample_weight=weight)
    expected = reference(X, y, weight, model, None)
    assert_allclose(model.coef_[0], expected, rtol=1e-8, atol=1e-10 * np.ptp(expected))


def test_the_expected_step_is_the_gradient_of_the_pairwise_loss():
    X, y = gaussian(40, 4)
    weight = weighted(40)
    p, means, _ = class_moments(X, y, weight)
    for w in np.random.default_rng(0).standard_normal((3, 4)):
        rows = [
            residual(w, x, label == 1, p, *means) * x
            for x, label in zip(X, y, strict=True)
        ]
        expected = approx_fprime(
            w, lambda w: p * (1 - p) * pairwise(w, X, y, weight=weight), 1e-6
        )
        found = np.average(rows, axis=0, weights=weight)
        # One-sided differences of a quadratic are off by half the step times H.
        assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_the_average_is_the_weighted_mean_of_the_iterates(layout):
    X, y = mixed(300)
    hyper = {"l2": 0.0, "precondition": False}  # no penalty is ever due
    last, mean = SPAM(**hyper, average=False), SPAM(**hyper)
    iterates = []
    for i in range(len(y)):
        last.partial_fit(layout(X[i : i + 1]), y[i : i + 1], classes=[0, 1])
        if variable(last, "T") > len(iterates):
            iterates.append(last.coef_[0])
    mean.partial_fit(layout(X), y)
    expected = np.average(iterates, axis=0, weights=np.arange(1, len(iterates) + 1))
    assert_allclose(mean.coef_[0], expected, rtol=1e-9)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_mean_scores_are_followed_exactly(hyper, method, layout):
    X, y = mixed(300)
    model = SPAM(**hyper, random_state=0)
    for rows in (100, 173, 300):
        part = slice(0 if method == "fit" else rows - 100, rows)
        getattr(model, method)(layout(X[part]), y[part])
        state = model.state_
        w, ref = state.table.feat[0], state.table.ref
        a = w @ (state.table.feat[2] / state.table.n[0] - ref)
        b = w @ (state.table.feat[3] / state.table.n[1] - ref)
        found = variable(model, "A"), variable(model, "B")
        assert_allclose(found, (a, b), rtol=1e-9, atol=1e-11)


def elastic_net(X, y, l2, l1):
    """Return the minimiser of J by proximal gradient steps on the moments."""
    H, delta = quadratic(X, y)
    step = 1 / (2 * np.linalg.eigvalsh(H)[-1] + l2)
    w = np.zeros(len(delta))
    for _ in range(20_000):
        w = w - step * (2 * (H @ w - delta) + l2 * w)
        w = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0)
    return w


def with_noise(n, d, noisy):
    X, y = gaussian(n, d)
    noise = np.random.default_rng(1).standard_normal((n, noisy))
    return np.hstack([X, noise]), y


def leader(X, y, weight, model, passes):
    """Return the weights of SPAM-NET by the formula of its module, nothing put off."""
    hyper, d = model.get_params(), X.shape[1]
    l1 = hyper["l1"]
    table = Coordinates(d, hyper["l2"], hyper["precondition"])
    here = [i for i in range(len(y)) if weight[i] > 0]
    if passes:
        for i in here:
            table.add(X[i], y[i] == 1, weight[i])
        table.known()
    g, paid, eta, t, since, touched = np.zeros(d), 0.0, 0.0, 0, 0, 0

    def now():
        step = eta * table.D
        excess = np.maximum(np.abs(g) - paid * l1, 0)
        return np.sign(g) * excess * step / (1 + step * paid * table.ridge)

    kept = np.zeros(d)  # the weights that the mean scores know of
    for i in here * (passes or 1):
        positive = y[i] == 1
        renew = False
        if passes is None:
            table.add(X[i], positive, weight[i])
            if not table.n.all():
                continue
            kept = table.meet(X[i], kept)
            renew = table.rows >= table.renew_at
            if renew:
                table.renew()
        p = table.p
        if renew or t == 0 or (since >= 16 and touched >= d):
            kept = now()
            active = np.sum((table.D * table.spread())[kept != 0])
            share = min(max(active / table.norm, 1 / table.width), 1.0) if t else 1.0
            new = step_length(
                hyper["schedule"],
                hyper["eta0"],
                table.norm * share,
                table.width * share,
                t + 1,
                p,
                table.mildest,
                hyper["power_t"],
            )
            if t:
                scaled = np.divide(kept, table.D, out=np.zeros(d), where=table.D > 0)
                g = g + (1 / new - 1 / eta) * scaled
            eta, since, touched = new, 0, 0
        x = X[i] - table.ref
        moved = (X[i] != 0) | (table.ref != 0)
        kept = np.where(moved, now(), kept)
        m_pos, m_neg = table.means
        relative = weight[i] * table.rows / table.n.sum()
        pace = 2 * eta * relative * (1 - p if positive else p)
        goal = kept @ m_neg + 1 if positive else kept @ m_pos - 1
        c = (goal - kept @ x) * pace
        if hyper["step"] == "implicit":
            c /= 1 + pace * np.sum((table.D * x**2)[kept != 0])
        t += 1
        paid += p * (1 - p) * relative
        g = g + c / eta * x
        kept = np.where(moved, now(), kept)
        since, touched = since + 1, touched + moved.sum()
    return now()


@datasets
@pytest.mark.parametrize("passes", [1, 3, None])
@pytest.mark.parametrize(
    "hyper",
    [
        {"l1": 0.05},
        {"l1": 0.02, "l2": 0.1},
        {"l1": 0.05, "step": "explicit", "eta0": 0.1},
        {"l1": 0.05, "l2": 0.0, "precondition": False},
        {"l1": 0.05, "power_t": 0.75},
    ],
    ids=str,
)
def test_spam_net_follows_the_leader(hyper, passes, data, layout):
    X, y = data(200)
    weight = weighted(len(y))
    model = SPAM(**hyper, shuffle=False, max_iter=passes or 1)
    fit = model.fit if passes else model.partial_fit
    w = fit(layout(X), y, sample_weight=weight).coef_[0]
    expected = leader(X, y, weight, model, passes)
    assert_allclose(w, expected, rtol=1e-7, atol=1e-9 * np.ptp(expected))
    assert_array_equal(w == 0, expected == 0)


@pytest.mark.parametrize("l1", [0.05, 0.3])
def test_lasso_finds_the_minimum(l1):
    X, y = with_noise(400, 4, 6)
    expected = elastic_net(X, y, 0.01, l1)
    model = SPAM(0.01, l1, max_iter=500, random_state=0).fit(X, y)
    best = pairwise(expected, X, y, 0.01, l1)
    excess = pairwise(model.coef_[0], X, y, 0.01, l1) - best
    assert 0 <= excess < 0.002 * (1 - best)  # J(0) = 1


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("n", [1024, 1025, 1100, 1200])
def test_lasso_drops_noise_exactly(n, method):
    """However many steps there were since all weights were visited."""
    X, y = with_noise(n, 4, 20)
    model = SPAM(0.0, 0.3, random_state=0)
    w = getattr(model, method)(X, y).coef_[0]
    expected = elastic_net(X, y, 0.0, 0.3)
    assert np.all(expected[4:] == 0)
    assert np.mean(w[4:] == 0) >= 0.9
    assert np.all(w[np.abs(expected) > 0.05] != 0)


def objective(w, X, y, l2, l1):
    """Return J from the moments: there are too many pairs."""
    H, delta = quadratic(X, y)
    return 1 - 2 * delta @ w + w @ H @ w + l2 / 2 * w @ w + l1 * np.abs(w).sum()


@pytest.mark.parametrize(
    ("n", "d", "within"),
    [(1000, 30, 0.01), (1000, 200, 0.01), (1000, 600, 0.03), (1000, 3000, 0.08)],
)
@pytest.mark.parametrize("l1", [0.1, 0.2, 0.5])
def test_spam_net_comes_near_the_minimum_in_its_default_passes(n, d, within, l1):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    score = X[:, :10].sum(axis=1)
    y = score + score.std() * rng.standard_normal(n) > np.quantile(score, 0.7)
    exact = LeastSquaresAUC(1e-4, l1=l1).fit(X, y).coef_[0]
    w = SPAM(1e-4, l1, random_state=0).fit(X, y).coef_[0]
    best = objective(exact, X, y, 1e-4, l1)
    assert best <= objective(w, X, y, 1e-4, l1) < (1 + within) * best
    assert np.count_nonzero(w) <= 1.5 * np.count_nonzero(exact)


def test_the_penalty_is_the_one_of_the_closed_form_whatever_the_class_ratio():
    """The paper's β is p(1 - p) l2: l2 itself means the same for any p."""
    for positives in (0.05, 0.5, 0.9):
        X, y = gaussian(600, 3, positives=positives)
        H, delta = quadratic(X, y)
        expected = np.linalg.solve(H + 0.5 * np.eye(3), delta)
        w = SPAM(1.0, max_iter=1000, random_state=0).fit(X, y).coef_[0]
        assert np.linalg.norm(w - expected) < 0.02 * np.linalg.norm(expected)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "steps",
    [
        {"schedule": "constant", "precondition": False, "eta0": 50.0},
        {"schedule": "constant", "eta0": 500.0},
        {"schedule": "inv", "eta0": 500.0},
    ],
    ids=str,
)
def test_implicit_steps_that_diverge_are_an_error(steps, method):
    """The weights may be finite still, and rank by accident."""
    X, y = heavy()
    for factor in (1.0, 1e-6, 1e6):  # a penalty would be in units of the features
        with pytest.raises(ValueError, match=r"SPAM has diverged: .* smaller steps"):
            getattr(SPAM(0.0, **steps, random_state=0), method)(factor * X, y)
    for default in (SPAM(), SPAM(precondition=False), SPAM(schedule="constant")):
        getattr(default.set_params(random_state=0), method)(X, y)


def test_without_a_penalty_inverse_steps_are_constant():
    X, y = gaussian(200)
    one, other = (
        SPAM(0.0, schedule=schedule, random_state=0).fit(X, y)
        for schedule in ("inv", "constant")
    )
    assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_weights_that_are_not_finite_are_an_error(method):
    """Explicit steps can diverge, and a score of nan would rank by accident."""
    X, y = gaussian(400)
    model = SPAM(eta0=1e6, step="explicit", schedule="constant", average=False)
    with pytest.raises(ValueError, match=r"SPAM has diverged: .* smaller steps"):
        getattr(model, method)(X, y)


def test_weights_without_a_state_are_not_continued():
    X, y = gaussian(50)
    model = SPAM().fit(X, y)
    del model.state_
    with pytest.raises(ValueError, match="no state to continue from"):
        model.partial_fit(X, y)
