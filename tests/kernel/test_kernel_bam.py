"""RankSVM with a Gaussian kernel, against a general minimiser and against chains."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons

from aucmax import BAM, Chain, KernelBAM, KMeansNystroem
from aucmax.kernel import kernel_bam

PAIRS = {
    "squared_hinge": lambda m: np.maximum(1 - m, 0) ** 2,
    "logistic": lambda m: np.logaddexp(0, -m),
}


def moons(n=60):
    return make_moons(n, noise=0.3, random_state=0)


def kernel_matrix(X, sigma):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.exp(-cdist(Z, Z, "sqeuclidean") / (2 * sigma**2))


@pytest.mark.parametrize("loss", PAIRS)
def test_the_minimum_over_all_functions_of_the_space(loss):
    X, y = moons(30)
    K, l2 = kernel_matrix(X, 0.7 * np.sqrt(2)), 0.05

    def objective(beta):
        f = K @ beta
        pairs = PAIRS[loss](f[y == 1][:, None] - f[y == 0])
        return pairs.mean() + l2 / 2 * beta @ K @ beta

    model = KernelBAM(l2, loss=loss, width=0.7, tol=1e-8).fit(X, y)
    assert model.sigma_ == pytest.approx(0.7 * np.sqrt(2))
    assert objective(model.dual_coef_) == pytest.approx(model.objective_, rel=1e-6)
    best = minimize(
        objective, np.zeros(30), method="L-BFGS-B", options={"maxfun": 10**6}
    )
    assert model.objective_ <= best.fun + 1e-7
    assert_allclose(
        model.decision_function(X) - model.intercept_,
        K @ model.dual_coef_,
        rtol=1e-6,
        atol=1e-6,
    )


def test_a_chain_with_all_rows_as_landmarks_is_the_same():
    X, y = moons(300)
    exact = KernelBAM(1e-2, tol=1e-8).fit(X, y).decision_function(X)
    near = Chain(KMeansNystroem(None, tol=1e-12), BAM(1e-2, tol=1e-8)).fit(X, y)
    assert_allclose(near.decision_function(X), exact, atol=5e-3)


def test_a_weight_of_k_is_k_rows():
    X, y = moons(80)
    times = np.random.default_rng(0).integers(0, 4, 80)
    weighted = KernelBAM(tol=1e-8).fit(X, y, sample_weight=times)
    repeated = KernelBAM(tol=1e-8).fit(X.repeat(times, axis=0), y.repeat(times))
    assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-4
    )


def test_a_subsample_has_its_share_of_each_class():
    X, y = moons(200)
    y[:150] = 0
    model = KernelBAM(subsample=0.2, random_state=0).fit(X, y)
    n_pos = int(y.sum())
    assert len(model.dual_coef_) == round(0.2 * n_pos) + round(0.2 * (200 - n_pos))
    other = KernelBAM(subsample=0.2, random_state=1).fit(X, y)
    assert np.any(other.decision_function(X) != model.decision_function(X))


def test_a_matrix_that_does_not_fit(monkeypatch):
    monkeypatch.setattr(kernel_bam, "_MOST_BYTES", 1e4)
    with pytest.raises(ValueError, match=r"60 rows would take .* GB.*subsample="):
        KernelBAM().fit(*moons())
    KernelBAM(subsample=0.5).fit(*moons())
