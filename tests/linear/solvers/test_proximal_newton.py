"""BAM with an l1 penalty, against the pairs written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from aucmax import BAM
from aucmax.linear import bam
from helpers.data import gaussian, mixed, wide

LOSSES = {  # value and derivative by the margin
    "squared_hinge": lambda m: (np.maximum(1 - m, 0) ** 2, -2 * np.maximum(1 - m, 0)),
    "logistic": lambda m: (np.logaddexp(0, -m), -expit(-m)),
    "exponential": lambda m: (np.exp(-m), -np.exp(-m)),
    "smoothed_hinge": lambda m: (
        np.where(m < 0, 0.5 - m, 0.5 * np.maximum(1 - m, 0) ** 2),
        -np.clip(1 - m, 0, 1),
    ),
}


def pairs(X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    Z = (X[y == 1][:, None] - X[y == 0]).reshape(-1, X.shape[1])
    share = np.outer(weight[y == 1], weight[y == 0]).ravel()
    return Z, share / share.sum()


def gradient(w, Z, share, l2, loss):
    return Z.T @ (share * LOSSES[loss](Z @ w)[1]) + l2 * w


def value(w, Z, share, l2, l1, loss):
    ridge = 0.5 * np.sum(l2 * w**2) + l1 * np.abs(w).sum()
    return share @ LOSSES[loss](Z @ w)[0] + ridge


def minimum(Z, share, l2, l1, loss):
    """Return the minimum of J over positive and negative parts of the weights."""
    d = Z.shape[1]

    def parts(v):
        w = v[:d] - v[d:]
        g = gradient(w, Z, share, l2, loss)
        smooth = value(w, Z, share, l2, 0.0, loss)
        return smooth + l1 * v.sum(), np.r_[g, -g] + l1

    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10}
    bounds = [(0, None)] * (2 * d)
    return minimize(
        parts, np.zeros(2 * d), jac=True, bounds=bounds, options=options
    ).fun


@pytest.mark.parametrize("full", [True, False], ids=["full", "diagonal"])
@pytest.mark.parametrize("l1", [1e-3, 0.03, 0.2])
@pytest.mark.parametrize("loss", LOSSES)
def test_optimality_conditions(loss, l1, full, monkeypatch):
    if not full:
        monkeypatch.setattr(bam, "_WIDEST", 0)
    X, y = mixed(80)
    weight = np.random.default_rng(0).integers(0, 4, 80).astype(float)
    model = BAM(0.01, l1=l1, loss=loss, tol=1e-8).fit(X, y, sample_weight=weight)
    w, (Z, share) = model.coef_[0], pairs(X, y, weight)
    g, zero = gradient(w, Z, share, 0.01, loss), w == 0.0
    varies = np.ptp(Z, axis=0) > 0.0
    size = np.sqrt(share @ Z**2)  # the solver measures at unit scale
    assert_allclose(g[~zero], -l1 * np.sign(w[~zero]), atol=1e-6 * size.max())
    assert (np.abs(g[zero & varies]) <= l1 * (1 + 1e-9)).all()
    assert model.objective_ == pytest.approx(value(w, Z, share, 0.01, l1, loss))
    assert model.objective_ <= minimum(Z, share, 0.01, l1, loss) + 1e-8
    assert model.gradient_norm_ <= 1e-8


def test_zeros_grow_with_the_penalty_up_to_all():
    X, y = gaussian(200, 8)
    zeros = [
        np.count_nonzero(BAM(1e-3, l1=l1).fit(X, y).coef_[0] == 0.0)
        for l1 in (0.0, 0.05, 0.3, 10.0)
    ]
    assert zeros == sorted(zeros)
    assert zeros[0] == 0
    assert zeros[-1] == 8
    model = BAM(l1=10.0).fit(X, y)
    assert model.objective_ == pytest.approx(1.0)
    assert model.n_iter_ == 1


def test_a_small_l1_is_near_the_ridge():
    X, y = mixed(120)
    ridge = BAM(0.01, tol=1e-8).fit(X, y)
    found = BAM(0.01, l1=1e-9, tol=1e-8).fit(X, y)
    assert found.objective_ == pytest.approx(ridge.objective_, abs=1e-6)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_more_features_than_rows(layout):
    X, y = wide(60, 2000, nnz=12)
    X = X.toarray()
    model = BAM(0.0, l1=0.01, tol=1e-7).fit(layout(X), y)
    w, (Z, share) = model.coef_[0], pairs(X, y)
    g = gradient(w, Z, share, 0.0, "squared_hinge")
    assert 0 < np.count_nonzero(w) < 120
    assert np.abs(g).max() <= 0.01 * (1 + 1e-4)
    assert_allclose(g[w != 0.0], -0.01 * np.sign(w[w != 0.0]), rtol=1e-4)


def test_the_sigmoid_ends_at_a_stationary_point():
    X, y = mixed(80)
    model = BAM(0.01, l1=0.01, loss="sigmoid", tol=1e-8).fit(X, y)
    assert model.gradient_norm_ <= 1e-8
    w, (Z, share) = model.coef_[0], pairs(X, y)
    m = Z @ w
    g = Z.T @ (share * -expit(m) * expit(-m)) + 0.01 * w
    size = np.sqrt(share @ Z**2).max()
    assert_allclose(g[w != 0], -0.01 * np.sign(w[w != 0]), atol=1e-6 * size)
