"""The balanced logistic loss against its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression

from aucmax import BAM
from aucmax.linear.bam import BalancedLogistic
from aucmax.losses.pairwise import shares
from helpers.data import gaussian


def loss(score, share):
    """Return the least mean loss over all thresholds."""
    weight, sign = np.abs(share) / 2, np.sign(share)

    def at(b):
        return np.sum(weight * np.logaddexp(0, -sign * (score + b)))

    found = minimize_scalar(at, bracket=(-1, 1), tol=1e-14)
    return found.fun


def case(seed=0, n=60, spread=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0) * rng.integers(1, 4, n)
    return spread * rng.standard_normal(n), shares(y)


@pytest.mark.parametrize("spread", [1e-3, 1.0, 30.0])
def test_value_slope_and_curvature(spread):
    score, share = case(spread=spread)
    point = BalancedLogistic(score, share)
    assert point.value == pytest.approx(loss(score, share), rel=1e-9)
    assert abs(point.slope.sum()) < 1e-13
    step, rng = 1e-6 * spread, np.random.default_rng(1)
    for _ in range(3):
        v = rng.standard_normal(len(score))
        ahead, behind = (BalancedLogistic(score + k * step * v, share) for k in (1, -1))
        rise = (ahead.value - behind.value) / (2 * step)
        assert point.slope @ v == pytest.approx(rise, rel=1e-4, abs=1e-9)
        bend = (ahead.slope - behind.slope) / (2 * step)
        assert_allclose(point.product(v), bend, rtol=1e-4, atol=1e-7)
    matrix = np.array([point.product(row) for row in np.eye(len(score))])
    assert_allclose(point.diagonal(), np.diag(matrix), rtol=1e-10, atol=1e-15)


def test_a_shift_of_all_scores_does_nothing():
    score, share = case()
    here, there = BalancedLogistic(score, share), BalancedLogistic(score + 7, share)
    assert there.value == pytest.approx(here.value, rel=1e-12)
    assert_allclose(there.slope, here.slope, rtol=1e-9)


@pytest.mark.parametrize("score", [[0.0, 0.0], [1e4, -1e4], [-1e4, 1e4], [1e300, 0.0]])
def test_extreme_scores(score):
    point = BalancedLogistic(np.array(score), np.array([1.0, -1.0]))
    assert np.isfinite(point.value)
    assert np.isfinite(point.slope).all()
    assert np.isfinite(point.product(np.ones(2))).all()


def test_bam_is_balanced_logistic_regression():
    X, y = gaussian(400, 5, positives=0.1)
    l2 = 1e-3
    model = BAM(l2, loss="balanced_logistic", tol=1e-8).fit(X, y)
    rival = LogisticRegression(
        C=1 / (400 * l2), class_weight="balanced", tol=1e-12, max_iter=10_000
    ).fit(X, y)
    assert_allclose(model.coef_, rival.coef_, rtol=1e-5)
