"""OPAUC, AdaOAM and OPAUCr against slow versions of themselves.

Nothing is incremental in these: the gradient at a row is that of its pairs, and
covariances, or sketches of them, are taken from the rows seen so far.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import brentq

from aucmax import OPAUC, AdaOAM
from aucmax.core.jit import kernel
from aucmax.online import opaucr as sketch
from aucmax.online.opaucr import RHO, F, Q
from aucmax.storage.state import arrays
from helpers.data import (
    Coordinates,
    class_moments,
    closed_form,
    gaussian,
    mixed,
    pairwise,
    scaled,
    scattered,
)
from helpers.layouts import datasets

SETTINGS = [
    {},
    {"l2": 0.5},
    {"l2": 0.0, "average": False},
    {"precondition": False},
    {"step": "explicit", "precondition": False, "average": False, "eta0": 0.1},
]
ADAPTIVE = [{}, {"l2": 0.5}, {"l2": 0.0}, {"eta0": 5.0, "l2": 200.0, "delta": 1e-3}]
layouts = pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"]
)
draw = kernel(sketch.draw)


def triangle(S, d):
    """Return a symmetric matrix from its lower triangle."""
    full = np.zeros((d, d))
    full[np.tril_indices(d)] = S
    return full + np.tril(full, -1).T


def weighted(n):
    weight = np.random.default_rng(3).random(n) + 0.5
    weight[::7] = 0.0
    return weight


def balanced(X, y, weight):
    """Return the mean and the variance about it of each feature, classes balanced."""
    sides = [y == 1, y == 0]
    mean = np.mean([np.average(X[s], 0, weight[s]) for s in sides], axis=0)
    square = [np.average((X[s] - mean) ** 2, 0, weight[s]) for s in sides]
    return mean, np.mean(square, axis=0)


def gradient_of_pairs(w, x, positive, others, weight):
    """Return half the gradient of the loss of x paired with the ``others``."""
    z = (x - others) if positive else (others - x)
    return np.average(-(1 - z @ w)[:, None] * z, axis=0, weights=weight)


def step_of_opauc(model, table, w, g, x, mean, covariance, t):
    eta = model.eta0 / max(table["norm"], np.sum(table["D"] * np.diag(covariance)) / 2)
    eta *= table["relative"] / np.sqrt(1 + table["balance"] * t / table["width"])
    if model.step == "implicit":
        eta /= 1 + eta * np.sum(table["D"] * (x - mean) ** 2)
    return (w - eta * table["D"] * g) / (1 + eta * table["ridge"] / 2 * table["D"])


def step_of_adaoam(model, table, w, g, x, mean, covariance, t):
    unit = np.sqrt(table["D"])
    g = table["relative"] * unit * (g + table["ridge"] / 2 * w)
    table["h"] = table.get("h", 0) + g**2
    eta = model.eta0 / np.sqrt(table["norm"])
    metric = model.delta + np.sqrt(table["h"])
    w = w - eta * unit * g / metric
    ridge = table["ridge"]

    def size(v):
        return np.sqrt(ridge @ v**2 / 2)

    if size(w) <= 1:
        return w

    def pulled(mu):  # what is nearest in Σ metric/D (v - w)², for some multiplier
        return w * (metric / (metric + mu * table["D"] * ridge))

    top = 1.0
    while size(pulled(top)) > 1:
        top *= 2
    found = brentq(lambda mu: size(pulled(mu)) - 1, 0.0, top, xtol=1e-300, rtol=1e-14)
    return pulled(found)


def reference(X, y, weight, model, passes, step):
    """Return the weights after ``passes`` over the rows; None is one pass of a stream.

    The first pass pairs a row with those before it, the others with all.
    """
    here = weight > 0
    X, y, weight = X[here], y[here], weight[here]
    precondition = model.get_params().get("precondition", True)
    d = X.shape[1]
    table = {"D": np.zeros(d) if precondition else np.ones(d)}
    w = np.zeros(d)
    iterates = []

    def ridge(seen, ref):
        """Return the penalty of each weight: from values that are not zero."""
        if not isinstance(model.l2, str):
            return model.l2 + np.zeros(d)
        square = weight[seen] @ (X[seen] - ref) ** 2
        often = weight[seen] @ (X[seen] != 0)
        return 1e-3 * square / np.where(often > 0, often, 1)

    def measure(seen, chosen):
        nonlocal w
        _, v = balanced(X[seen], y[seen], weight[seen])
        v = np.where(v > 1e-13, v, 0.0)
        if precondition:
            old = table["D"]
            fit = v + ridge(seen, ref) / 4
            new = np.where(v > 0, 1 / np.where(v > 0, fit, 1), 0)
            stale = chosen & (np.abs(old - new) > 0.25 * new)
            follow = np.where(stale & (old > 0), new / np.where(old > 0, old, 1), 1.0)
            w = w * follow
            table["D"] = np.where(stale, new, old)
            mark = table.get("mark", np.zeros(d))
            if passes is None:  # the past follows if a feature wakes up
                i = seen.stop - 1
                own = weight[i] / weight[seen][y[seen] == y[i]].sum() / 2
                alone = own * (X[i] - ref) ** 2 >= v / 2
                woken = stale & (256 * new < mark) & (new < old) & ~alone
                late = np.sqrt(np.where(woken, new / np.where(woken, mark, 1), 1.0))
                iterates[:] = [one * late for one in iterates]
                mark = np.where(woken, new, mark)
            table["mark"] = np.where(stale, np.maximum(mark, new), mark)
        share = v * table["D"]
        table["norm"] = share.sum() or 1.0
        table["width"] = table["norm"] / share.max() if share.any() else 1.0

    ref = X[0]
    if passes:
        mean, v = balanced(X, y, weight)
        ref = np.where(np.abs(mean) > 0.9 * np.sqrt(v), mean, 0.0)
        measure(slice(None), np.ones(d, bool))
    for k in range(len(y) * (passes or 1)):
        i = k % len(y)
        seen = slice(0, i + 1) if k < len(y) else slice(None)
        if len(np.unique(y[seen])) < 2:
            continue
        if passes is None:
            measure(seen, X[i] != X[0])
        total = weight[seen]
        table["ridge"] = ridge(seen, ref)
        p = total[y[seen] == 1].sum() / total.sum()
        table["balance"] = 4 * p * (1 - p)
        table["relative"] = weight[i] * len(total) / total.sum()
        opposite = y[seen] != y[i]
        others, share = X[seen][opposite], total[opposite]
        mean = np.average(others, 0, share)
        covariance = np.cov(others.T, bias=True, aweights=share).reshape(d, d)
        g = gradient_of_pairs(w, X[i], y[i] == 1, others, share)
        t = len(iterates) + 1
        w = step(model, table, w, g, X[i], mean, covariance, t)
        iterates.append(w)
    if not model.get_params().get("average", True):
        return w
    return np.average(iterates, axis=0, weights=np.arange(len(iterates)) + 1)


def assert_reference(model, X, y, layout, step):
    weight = weighted(len(y))
    for passes in (None, 1, 2):
        if passes:
            model.set_params(max_iter=passes, shuffle=False)
            model.fit(layout(X), y, sample_weight=weight)
        else:
            model.partial_fit(layout(X), y, sample_weight=weight)
        expected = reference(X, y, weight, model, passes, step)
        atol = 1e-9 * np.ptp(expected)
        assert_allclose(model.coef_[0], expected, rtol=1e-7, atol=atol)


@datasets
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_opauc_is_the_algorithm(hyper, data, layout):
    assert_reference(OPAUC(**hyper), *data(150), layout, step_of_opauc)


@datasets
@pytest.mark.parametrize("hyper", ADAPTIVE, ids=str)
def test_adaoam_is_the_algorithm(hyper, data, layout):
    assert_reference(AdaOAM(**hyper), *data(150), layout, step_of_adaoam)


def test_the_ball_of_adaoam_is_met():
    """The last of the settings above is there to be projected."""
    X, y = gaussian(150)
    model = AdaOAM(**ADAPTIVE[-1]).partial_fit(X, y)
    radius = np.sqrt(2 / model.l2)
    assert np.linalg.norm(model.state_.V[0]) > 0.5 * radius
    assert np.linalg.norm(model.coef_) <= radius


def test_a_positive_and_a_negative_row_teach_the_same_on_average():
    X, y = gaussian(60, 4)
    w = np.random.default_rng(0).standard_normal(4)
    h = 1e-6
    expected = [
        (pairwise(w + h * e, X, y) - pairwise(w - h * e, X, y)) / (2 * h)
        for e in np.eye(4)
    ]
    for side in (True, False):
        own, others = X[(y == 1) == side], X[(y == 1) != side]
        rows = [gradient_of_pairs(w, x, side, others, None) for x in own]
        assert_allclose(2 * np.mean(rows, axis=0), expected, rtol=1e-6)


@layouts
@pytest.mark.parametrize("estimator", [OPAUC, AdaOAM])
def test_covariances_are_those_of_the_classes(estimator, layout):
    X, y = scaled(200)
    weight = weighted(200)
    _, means, covariances = class_moments(X, y, weight)
    fitted = estimator(max_iter=2).fit(layout(X), y, sample_weight=weight)
    streamed = estimator().partial_fit(layout(X), y, sample_weight=weight)
    for model in (fitted, streamed):
        V, S, n, _ = model.state_
        for side in (0, 1):
            c = V[4 + side] / n[side]
            found = triangle(S[side], X.shape[1]) / n[side] - np.outer(c, c)
            unit = X.std(axis=0)
            assert_allclose(c + V[3], means[side], rtol=1e-10)
            assert_allclose(
                found / np.outer(unit, unit),
                covariances[side] / np.outer(unit, unit),
                atol=1e-11,
            )


@pytest.mark.parametrize("estimator", [OPAUC, AdaOAM])
@pytest.mark.parametrize("l2", [1e-3, 0.1])
def test_the_closed_form_to_a_thousandth(estimator, l2):
    X, y = gaussian(300, 5)
    expected = closed_form(X, y, l2)
    model = estimator(l2, max_iter=3000, random_state=0).fit(X, y)
    error = np.linalg.norm(model.coef_[0] - expected)
    assert error < 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("rank", [None, 20])
def test_an_outlier_that_comes_early_does_no_harm(rank):
    """The covariance so far is then far above that of all rows, and so are steps."""
    X, y = gaussian(3000, 5)
    X[3, 0] = 300.0
    model = OPAUC(rank=rank, max_iter=1, shuffle=False).fit(X, y)
    usual = np.arange(len(y)) != 3
    assert model.score(X[usual], y[usual]) > 0.7


def test_what_does_not_fit_is_named():
    X = sparse.csr_array((4, 70_000))
    for estimator in (OPAUC, AdaOAM):
        with pytest.raises(ValueError, match=r"70000 features .* 39\.2 GB.*rank=50"):
            estimator().fit(X, [0, 1, 0, 1])


# OPAUCr


def numbers(rank):
    """Yield the random vectors of the sketches."""
    seed, e = np.array([12345.0, 67890.0]), np.empty(rank + 1)
    while True:
        draw(seed, 1.0, e)
        yield e[:-1].copy()


def reference_of_sketches(X, y, weight, model, passes):
    """As above, with Ŝ for S by its formula; the penalty falls due as in SPAM."""
    here = weight > 0
    X, y, weight = X[here], y[here], weight[here]
    d = X.shape[1]
    table = Coordinates(d, model.l2, model.precondition)
    for i in range(len(y) if passes else 0):
        table.add(X[i], y[i] == 1, weight[i])
    if passes:
        table.known()
    random = numbers(model.rank)
    R = np.array([next(random) for _ in y])
    w = np.zeros(d)
    iterates = []
    due = since = 0.0
    for k in range(len(y) * (passes or 1)):
        i = k % len(y)
        seen = slice(0, i + 1) if k < len(y) else slice(None)
        if not passes:
            table.add(X[i], y[i] == 1, weight[i])
        if len(np.unique(y[seen])) < 2:
            continue
        renew = not passes and table.rows >= table.renew_at
        if renew or since >= 256 or due / 2 * table.hardest > 0.5:
            w = w / (1 + due / 2 * table.ridge * table.D)
            due = since = 0.0
        if renew:
            table.renew()
        total = weight[seen]
        p = total[y[seen] == 1].sum() / total.sum()
        opposite = y[seen] != y[i]
        others, share = X[seen][opposite], total[opposite]
        mean = np.average(others, 0, share)
        Y = ((others - mean) * np.sqrt(share)[:, None]).T @ R[seen][opposite]
        S = Y @ Y.T / share.sum()
        sign = 1 if y[i] == 1 else -1
        g = S @ w + (x := X[i] - mean) * (x @ w - sign)
        t = len(iterates) + 1
        eta = model.eta0 / max(table.norm, np.sum(table.D * np.diag(S)) / 2)
        eta *= weight[i] * len(total) / total.sum()
        eta /= np.sqrt(1 + 4 * p * (1 - p) * t / table.width)
        if model.step == "implicit":
            eta /= 1 + eta * np.sum(table.D * x * x)
        w = w - eta * table.D * g
        iterates.append(w)
        due += eta
        since += 1
    if not model.average:
        return w / (1 + due / 2 * table.ridge * table.D)
    return np.average(iterates, axis=0, weights=np.arange(len(iterates)) + 1)


@layouts
@pytest.mark.parametrize("data", [gaussian, mixed, scattered])
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_opaucr_is_the_algorithm(hyper, data, layout):
    X, y = data(200)
    weight = weighted(len(y))
    model = OPAUC(rank=3, **hyper)
    for passes in (None, 1, 2):
        if passes:
            model.set_params(max_iter=passes, shuffle=False)
            model.fit(layout(X), y, sample_weight=weight)
        elif model.precondition:
            continue  # scales are followed loosely; see the next test
        else:
            model.partial_fit(layout(X), y, sample_weight=weight)
        expected = reference_of_sketches(X, y, weight, model, passes)
        atol = 1e-9 * np.ptp(expected)
        assert_allclose(model.coef_[0], expected, rtol=1e-7, atol=atol)


@layouts
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("data", [gaussian, mixed, scaled, scattered])
def test_inner_products_are_followed_exactly(data, method, layout):
    X, y = data(700)
    weight = weighted(len(y))
    model = OPAUC(rank=3)
    for stop in (100, 450, 700):
        part = slice(0 if method == "fit" else stop - 100, stop)
        call = getattr(model, method)
        call(layout(X[part]), y[part], sample_weight=weight[part])
        (feat, ref, _, n, _), B, M, k, _ = model.state_
        w = feat[0] + feat[1] * (B @ k[Q])
        product = B.T * feat[1] @ B
        assert_allclose(M, product, atol=1e-11 * np.abs(product).max())
        assert_allclose(k[F], B.T @ w, atol=1e-10 * np.abs(B.T @ w).max())
        assert_allclose(k[RHO, [3, 7]], n)
        sums = feat[2:4] - n[:, None] * ref
        scale = np.abs(feat[2:4]).max(axis=0) + 1e-300
        assert_allclose(B[:, [3, 7]].T / scale, sums / scale, atol=1e-11)


def test_sketches_estimate_the_identity():
    random = numbers(3)
    R = np.array([next(random) for _ in range(20_000)])
    assert_allclose(3 * R.T @ R / len(R), np.eye(3), atol=0.05)
    assert_allclose(R.mean(axis=0), 0, atol=0.02)
    # Rows are independent: R Rᵀ is the identity on average.
    assert abs(np.mean(np.sum(R[1:] * R[:-1], axis=1))) < 0.02


def test_opaucr_finds_the_minimum_of_its_sketches():
    X, y = gaussian(300, 5)
    model = OPAUC(0.01, rank=8, max_iter=3000, random_state=0).fit(X, y)
    p, (m_pos, m_neg), (S_pos, S_neg) = class_moments(X, y)
    table, B, _, k, _ = model.state_
    n = table.n
    sketches = []
    for side, start in ((0, 0), (1, 9)):
        c = B[:, start + 8] / n[side]
        Y = B[:, start : start + 8] - np.outer(c, k[RHO, start : start + 8])
        sketches.append(Y @ Y.T / n[side])
    delta = m_pos - m_neg
    H = p * (S_pos + sketches[1]) + (1 - p) * (S_neg + sketches[0])
    H += np.outer(delta, delta) + 0.005 * np.eye(5)
    expected = np.linalg.solve(H, delta)
    error = np.linalg.norm(model.coef_[0] - expected)
    assert error < 1e-2 * np.linalg.norm(expected)
    assert np.linalg.norm(closed_form(X, y, 0.01) - expected) > 3 * error


def test_larger_sketches_come_nearer_to_the_covariances():
    X, y = gaussian(1000, 6)
    expected = closed_form(X, y, 1e-3)
    errors = []
    for rank in (3, 30, 200):
        model = OPAUC(1e-3, rank=rank, max_iter=30, random_state=0).fit(X, y)
        errors.append(np.linalg.norm(model.coef_[0] - expected))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.1 * np.linalg.norm(expected)


def test_opaucr_is_small():
    state = OPAUC(rank=50)._start(62_061)
    assert sum(part.nbytes for part in arrays(state).values()) < 60e6
