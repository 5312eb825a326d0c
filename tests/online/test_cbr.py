"""CBR and CBR-diag against slow versions of themselves, and the step that they take."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import norm

from aucmax import CBR
from aucmax.online.cbr import confident_step
from helpers.buffers import Buffer, assert_reference, visits
from helpers.data import Coordinates, gaussian, mixed
from helpers.layouts import datasets

SETTINGS = [
    {},
    {"policy": "reservoir", "step": 0.5},
    {"C": 1.0, "confidence": 0.9, "buffer_size": 4},
    {"precondition": False},
]


def soft_step(m, v, phi, C):
    """Return α and √u as the paper has them."""
    psi, zeta = 1 + phi**2 / 2, 1 + phi**2
    root = np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)
    alpha = min(C, max(0, (-m * psi + root) / (v * zeta)))
    return alpha, (-alpha * v * phi + np.sqrt((alpha * v * phi) ** 2 + 4 * v)) / 2


def reference(X, y, weight, model, passes):
    """Return the weights after ``passes`` over the rows; None is a stream."""
    d = X.shape[1]
    full = model.covariance == "full"
    phi = norm.ppf(model.confidence)
    table = Coordinates(d, 0.0, model.precondition)
    if passes:
        for x, side, share in visits(X, y, weight, 1):
            table.add(x, side == 0, share)
        table.known()
    buffer = Buffer(model.buffer_size, model.policy)
    w, S, G = np.zeros(d), np.eye(d), np.ones(d)
    for visit, (x, side, share) in enumerate(visits(X, y, weight, passes)):
        if visit == np.count_nonzero(weight):  # the second pass
            buffer.again()
        if passes is None:
            table.add(x, side == 0, share)
            if table.n.all():
                w = w if full else table.meet(x, w)
                grown = model.precondition and np.any(table.spread() * table.D > 4)
                if table.rows >= table.renew_at or (full and grown):
                    old = table.D
                    table.renew()
                    if full:
                        growth = np.divide(table.D, old, out=np.ones(d), where=old > 0)
                        w, table.renew_at = w * growth, 2 * table.rows
        others = buffer.rows[1 - side]
        unit = np.sqrt(table.D)
        for other, its in others:
            z = unit * ((x - other) if side == 0 else (other - x))
            relative = table.rows / table.n.sum()
            C = model.C / np.sqrt(2 * table.norm) * share * relative * its * relative
            u = S @ z if full else z / G
            v = z @ u
            # w = unit · μ, and a feature without a scale has no weight either.
            mu = np.divide(w, unit, out=np.zeros(d), where=unit > 0)
            if v > 0 and phi * np.sqrt(v) > mu @ z:
                alpha, root = soft_step(mu @ z, v, phi, C)
                w = w + model.step * alpha * unit * u
                S = S - alpha * phi / (root + v * alpha * phi) * np.outer(u, u)
                G = G + alpha * phi / root * z**2
        buffer.offer(side, (x, share))
    return w


@datasets
@pytest.mark.parametrize("covariance", ["full", "diag"])
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_cbr_is_the_algorithm(hyper, covariance, data, layout):
    X, y = data(100)
    model = CBR(covariance=covariance, **{"buffer_size": 9, **hyper})
    assert_reference(model, X, y, layout, reference)


@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_a_stream_of_one_class_first(covariance):
    X, y = mixed(100)
    by_class = np.argsort(y, kind="stable")
    model = CBR(covariance=covariance, buffer_size=9)
    assert_reference(model, X[by_class], y[by_class], np.asarray, reference)


def covariance(model):
    """Return Σ as a matrix."""
    d = model.n_features_in_
    S = np.zeros((d, d))
    S[np.tril_indices(d)] = model.state_.S
    return S + np.tril(S, -1).T


def divergence(mu, S, mu_t, S_t):
    """Return the KL divergence of N(μ, S) from N(μ_t, S_t)."""
    inverse = np.linalg.inv(S_t)
    shift = mu - mu_t
    trace = np.trace(inverse @ S) + shift @ inverse @ shift - len(mu)
    return 0.5 * (trace - np.linalg.slogdet(inverse @ S)[1])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [0.05, 10.0])
def test_a_step_minimises_divergence_and_loss(seed, C):
    """The minimum over μ and the Cholesky factor of Σ, found numerically."""
    rng = np.random.default_rng(seed)
    d, phi = 3, norm.ppf(0.7 + 0.04 * seed)
    A = rng.standard_normal((d, d))
    S_t, mu_t, z = A @ A.T + 0.3 * np.eye(d), rng.standard_normal(d), A[0] + 0.5
    mu_t -= max(mu_t @ z, 0) * z / (z @ z)  # so that there is a loss
    lower = np.tril_indices(d)

    def loss(mu, S):
        return phi * np.sqrt(z @ S @ z) - mu @ z

    def factor(theta):
        L = np.zeros((d, d))
        L[lower] = theta[d:-1]
        return L @ L.T

    v = z @ S_t @ z
    alpha, root = confident_step(mu_t @ z, v, phi, C)
    assert_allclose([alpha, root], soft_step(mu_t @ z, v, phi, C))
    u = S_t @ z
    beta = alpha * phi / (root + v * alpha * phi)
    mu, S = mu_t + alpha * u, S_t - beta * np.outer(u, u)
    assert (alpha < C) == (C == 10.0)  # both cases are met
    # The loss has a kink at the minimum: a slack variable, the last, does without.
    start = np.concatenate([mu_t, np.linalg.cholesky(S_t)[lower], [loss(mu_t, S_t)]])
    best = minimize(
        lambda theta: divergence(theta[:d], factor(theta), mu_t, S_t) + C * theta[-1],
        start,
        method="SLSQP",
        bounds=[(None, None)] * (len(start) - 1) + [(0, None)],
        constraints={
            "type": "ineq",
            "fun": lambda theta: theta[-1] - loss(theta[:d], factor(theta)),
        },
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert_allclose(
        divergence(mu, S, mu_t, S_t) + C * max(0, loss(mu, S)), best.fun, rtol=1e-7
    )
    assert_allclose(mu, best.x[:d], rtol=1e-3, atol=1e-3)
    assert_allclose(S, factor(best.x), rtol=1e-3, atol=1e-3)


def test_what_does_not_fit_is_named():
    X = sparse.csr_array((4, 70_000))
    with pytest.raises(ValueError, match=r"70000 features .* 19\.6 GB.*'diag'"):
        CBR().fit(X, [0, 1, 0, 1])


def test_more_confidence_asks_for_more_steps():
    X, y = gaussian(200)
    models = [CBR(confidence=c, max_iter=1).fit(X, y) for c in (0.6, 0.8, 0.95, 1.0)]
    sure = [np.trace(covariance(m)) for m in models]
    assert sure == sorted(sure, reverse=True)
    assert sure[-1] > 0
