"""Sums over all pairs against the pairs written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from aucmax.losses import pairwise as pairs
from aucmax.losses.pairwise import POINTS, shares

LOSSES = {  # value, first and second derivative by the margin
    "squared_hinge": lambda m: (
        np.maximum(1 - m, 0) ** 2,
        -2 * np.maximum(1 - m, 0),
        2.0 * (m < 1),
    ),
    "hinge": lambda m: (np.maximum(1 - m, 0), -1.0 * (m < 1), 0 * m),
    "square": lambda m: ((1 - m) ** 2, -2 * (1 - m), 2 + 0 * m),
    "logistic": lambda m: (np.logaddexp(0, -m), -expit(-m), expit(m) * expit(-m)),
    "sigmoid": lambda m: (
        expit(-m),
        -expit(m) * expit(-m),
        expit(m) * expit(-m) * (expit(m) - expit(-m)),
    ),
    "smoothed_hinge": lambda m: (
        np.where(m < 0, 0.5 - m, 0.5 * np.maximum(1 - m, 0) ** 2),
        -np.clip(1 - m, 0, 1),
        1.0 * ((m >= 0) & (m < 1)),
    ),
    "huber": lambda m: (
        np.where(abs(1 - m) <= 1, 0.5 * (1 - m) ** 2, abs(1 - m) - 0.5),
        -np.clip(1 - m, -1, 1),
        1.0 * ((m >= 0) & (m <= 2)),
    ),
    "exponential": lambda m: (np.exp(-m), -np.exp(-m), np.exp(-m)),
}
# The bound of the grid; the others are exact.
ERROR = {"logistic": 1e-10, "sigmoid": 1e-10}
ROUNDED = {"smoothed_hinge": 1e-15, "huber": 1e-15}  # differences of other losses
BENT = 5e-7  # of the second derivatives of one pair
every = pytest.mark.parametrize("name", LOSSES)
curved = pytest.mark.parametrize("name", [name for name in LOSSES if name != "hinge"])


def brute(name, score, y, v):
    """Return value, gradient, Hessian times v and its diagonal, over all pairs."""
    share = shares(y)
    pos, neg = share > 0, share < 0
    value, first, second = LOSSES[name](score[pos][:, None] - score[neg])
    weight = np.outer(share[pos], -share[neg])
    gradient, product, diagonal = np.zeros((3, len(y)))
    gradient[pos] = (weight * first).sum(1)
    gradient[neg] = -(weight * first).sum(0)
    curvature = weight * second
    diagonal[pos], diagonal[neg] = curvature.sum(1), curvature.sum(0)
    along = curvature * (v[pos][:, None] - v[neg])
    product[pos], product[neg] = along.sum(1), -along.sum(0)
    return (weight * value).sum(), gradient, product, diagonal


def cases():
    rng = np.random.default_rng(0)
    for n, spread in ((2, 1.0), (3, 0.0), (40, 0.1), (61, 1.0), (60, 20.0)):
        y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        yield spread * rng.standard_normal(n), y
        weighted = y * rng.integers(1, 5, n)
        # Quarters: many ties, within a class and at the margin.
        yield np.round(4 * spread * rng.standard_normal(n)) / 4, weighted
        yield spread * rng.standard_normal(n) + 1e3, weighted * 1e9


@every
def test_against_all_pairs(name):
    atol = ERROR.get(name, 0.0)
    for score, y in cases():
        v = np.random.default_rng(1).standard_normal(len(y))
        value, gradient, product, diagonal = brute(name, score, y, v)
        point = POINTS[name](score, shares(y))
        size = np.abs(shares(y)).max()
        # Scores about 1000 have lost three digits.
        assert_allclose(point.value, value, rtol=1e-11, atol=atol)
        assert_allclose(point.slope, gradient, rtol=1e-10, atol=(atol + 1e-13) * size)
        if name != "hinge":
            bent = size * BENT if name in ERROR else 0.0
            assert_allclose(
                point.diagonal(),
                diagonal,
                rtol=1e-10,
                atol=bent + 2 * atol + ROUNDED.get(name, 0.0) * size,
            )
            rounding = 20 * (atol + 1e-13 * diagonal.max())
            bent *= 2.0 * np.abs(v).max()
            assert_allclose(point.product(v), product, rtol=1e-9, atol=bent + rounding)


@curved
def test_finite_differences(name):
    rng = np.random.default_rng(3)
    y = np.where(rng.random(50) < 0.4, 1.0, -1.0) * rng.integers(1, 3, 50)
    share, score, v = shares(y), rng.standard_normal(50), rng.standard_normal(50)
    step = 1e-4
    ahead, behind = (POINTS[name](score + k * step * v, share) for k in (1, -1))
    here = POINTS[name](score, share)
    found = (ahead.value - behind.value) / (2 * step)
    assert_allclose(found, here.slope @ v, rtol=1e-5, atol=1e-6)
    if name != "squared_hinge":  # kinks: against all pairs, above
        found = (ahead.slope - behind.slope) / (2 * step)
        assert_allclose(found, here.product(v), rtol=1e-4, atol=1e-6)


@every
def test_a_weight_of_k_is_k_rows_and_order_does_not_matter(name):
    rng = np.random.default_rng(4)
    score = np.round(rng.standard_normal(40), 1)
    y = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    times = rng.integers(1, 4, 40)
    weighted = POINTS[name](score, shares(y * times))
    repeated = POINTS[name](score.repeat(times), shares(y.repeat(times)))
    assert_allclose(weighted.value, repeated.value, rtol=1e-12)
    each = np.add.reduceat(repeated.slope, np.append(0, np.cumsum(times)[:-1]))
    assert_allclose(weighted.slope, each, rtol=1e-10, atol=1e-15)
    mix = rng.permutation(40)
    mixed = POINTS[name](score[mix], shares((y * times)[mix]))
    assert_allclose(mixed.slope, weighted.slope[mix], rtol=1e-10, atol=1e-15)


@every
def test_a_billion_times_a_billion_pairs(name):
    y = np.array([1e9, -1e9, 1e9, -3e9])
    score = np.array([0.3, 0.1, -2.0, 0.7])
    expected = brute(name, score, y / 1e9, score)
    point = POINTS[name](score, shares(y))
    assert_allclose(point.value, expected[0], rtol=1e-9)
    assert_allclose(point.slope, expected[1], rtol=1e-8)
    huge = POINTS[name](score, shares(1e149 * y / 1e9))
    assert_allclose(huge.slope, point.slope, rtol=1e-12)


@pytest.mark.parametrize("name", ["logistic", "sigmoid"])
def test_the_grid_grows_with_the_range(name):
    rng = np.random.default_rng(5)
    y = np.where(np.arange(80) % 2 == 0, 1.0, -1.0)
    for spread in (0.01, 10.0, 3e2):
        score = spread * rng.standard_normal(80)
        v = rng.standard_normal(80)
        value, gradient, product, _ = brute(name, score, y, v)
        point = POINTS[name](score, shares(y))
        assert point.grid.spacing == 1 / 128
        assert_allclose(point.value, value, rtol=1e-12, atol=1e-10)
        assert_allclose(point.slope, gradient, rtol=0, atol=1e-10 / 40)
        bent = 2.0 * BENT * np.abs(v).max() / 40
        assert_allclose(point.product(v), product, rtol=0, atol=bent)


@pytest.mark.parametrize("name", ["logistic", "sigmoid"])
def test_outliers_take_no_points_of_the_grid(name):
    rng = np.random.default_rng(6)
    score = rng.standard_normal(60)
    score[:6] = [1e9, 1e9, -1e12, 3e7, 3e7 + 1.0, -5e4]
    y = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    v = rng.standard_normal(60)
    value, gradient, product, _ = brute(name, score, y, v)
    point = POINTS[name](score, shares(y))
    assert point.grid.points <= 1 << 17
    assert_allclose(point.value, value, rtol=1e-12)
    assert_allclose(point.slope, gradient, rtol=0, atol=1e-9)
    bent = 2.0 * BENT * np.abs(v).max() / 30
    assert_allclose(point.product(v), product, rtol=0, atol=bent)


def test_a_range_beyond_any_grid_is_finite(monkeypatch):
    monkeypatch.setattr(pairs, "MOST_POINTS", 1 << 12)
    score = np.linspace(0.0, 1e4, 2000)
    y = np.where(np.arange(2000) % 2 == 0, 1.0, -1.0)
    point = POINTS["logistic"](score, shares(y))
    value, gradient, *_ = brute("logistic", score, y, score)
    assert_allclose(point.value, value, rtol=1e-2)
    assert_allclose(point.slope, gradient, atol=1e-2 / 1000)


def test_exponentials_do_not_overflow():
    score = np.array([900.0, 905.0, 903.0, 902.0])
    point = POINTS["exponential"](score, shares(np.array([1.0, 1.0, -1.0, -1.0])))
    expected = np.mean(np.exp([[3.0, 2.0], [-2.0, -3.0]]))
    assert_allclose(point.value, expected, rtol=1e-12)
    score = np.array([-2000.0, 2000.0])
    point = POINTS["exponential"](score, shares(np.array([1.0, -1.0])))
    assert np.isfinite(point.value)
    assert np.isfinite(point.slope).all()


@pytest.mark.parametrize("name", ["squared_hinge", "hinge"])
def test_as_many_scores_as_there_are_buckets_for(name):
    rng = np.random.default_rng(9)
    y = np.where(rng.random(1500) < 0.3, 1.0, -2.0)
    score, v = rng.standard_normal(1500), rng.standard_normal(1500)
    value, gradient, product, _ = brute(name, score, y, v)
    point = POINTS[name](score, shares(y))
    assert_allclose(point.value, value, rtol=1e-12)
    assert_allclose(point.slope, gradient, rtol=1e-11, atol=1e-17)
    if name == "squared_hinge":
        assert_allclose(point.product(v), product, rtol=1e-9, atol=1e-15)


def test_equal_to_python():
    """The compiled kernels against themselves as Python."""
    rng = np.random.default_rng(7)
    share = shares(np.where(rng.random(30) < 0.5, 1.0, -1.0))
    t = np.round(rng.standard_normal(30), 1)
    order = np.argsort(t)
    t, share = t[order], share[order]
    for squared in (True, False):
        runs = []
        for run in (pairs._sweep, getattr(pairs._sweep, "py_func", pairs._sweep)):
            slope, mass, value = np.empty(30), np.empty(30), np.empty(1)
            run(t, order, share, squared, slope, mass, value)
            runs.append(np.concatenate([slope, mass, value]))
        assert_allclose(*runs, rtol=1e-14)
