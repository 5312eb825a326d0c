"""Calibration against scikit-learn, SciPy and loops."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from aucmax.metrics import (
    brier_score,
    calibration_curve,
    calibration_error,
    calibration_line,
)


def sample(seed=0, n=400, digits=2):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 1.5, n).round(digits)
    y = rng.random(n) < expit(0.4 + 0.7 * logit(np.clip(p, 1e-3, 1.0 - 1e-3)))
    return y.astype(int), p, rng.uniform(0.2, 2.0, n)


@pytest.mark.parametrize("digits", [1, 2, 9])
def test_line_is_a_logistic_regression(digits):
    y, p, _ = sample(digits, digits=digits)
    p = np.clip(p, 0.001, 0.999)
    line = calibration_line(y, p)
    x = logit(p)[:, None]
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, y)
    assert line.slope.value == pytest.approx(model.coef_[0, 0], abs=1e-5)
    # Standard errors from the inverse of the Hessian.
    q = model.predict_proba(x)[:, 1]
    design = np.column_stack([np.ones(len(x)), x])
    covariance = np.linalg.inv(design.T @ (design * (q * (1 - q))[:, None]))
    half = norm.ppf(0.975) * np.sqrt(covariance[1, 1])
    assert line.slope.high - line.slope.value == pytest.approx(half, rel=1e-4)
    assert line.slope.value - line.slope.low == pytest.approx(half, rel=1e-4)


def test_intercept_is_that_of_slope_one():
    y, p, weight = sample()
    p = np.clip(p, 0.001, 0.999)

    def loss(a, w):
        t = a[0] + logit(p)
        return float(w @ (np.logaddexp(0.0, t) - y * t))

    for w in (np.ones(400), weight):
        expected = minimize(loss, [0.0], (w,), tol=1e-12).x[0]
        line = calibration_line(y, p, sample_weight=w)
        assert line.intercept.value == pytest.approx(expected, abs=1e-5)


def test_weights_have_no_unit():
    y, p, weight = sample(1)
    plain = calibration_line(y, p)
    equal = calibration_line(y, p, sample_weight=np.full(400, 20.0))
    assert np.ravel(equal) == pytest.approx(np.ravel(plain), rel=1e-6)
    one, ten = (calibration_line(y, p, sample_weight=k * weight) for k in (1.0, 10.0))
    assert np.ravel(ten) == pytest.approx(np.ravel(one), rel=1e-6)


def test_line_of_extreme_probabilities():
    rng = np.random.default_rng(2)
    p = rng.beta(0.02, 0.02, 1000)
    p[:4] = [0.0, 1.0, 1e-300, 1.0 - 1e-16]
    y = rng.random(1000) < 0.5  # the probabilities mean nothing
    line = calibration_line(y, p)
    assert np.isfinite(np.ravel(line)).all()
    assert line.slope.low < 0.05
    x = logit(np.clip(p, 1e-12, 1.0 - 1e-12))
    # The gradient of the likelihood is zero at the slope, for the best intercept.
    fits = minimize(
        lambda a: (
            np.logaddexp(0, a[0] + line.slope.value * x).sum()
            - y @ (a[0] + line.slope.value * x)
        ),
        [0.0],
        tol=1e-10,
    )
    q = expit(fits.x[0] + line.slope.value * x)
    assert x @ (y - q) == pytest.approx(0.0, abs=1e-2)


@pytest.mark.parametrize(
    ("p", "slope"),
    [
        ([0.1, 0.2, 0.7, 0.9], np.inf),
        ([0.1, 0.4, 0.4, 0.9], np.inf),
        ([0.9, 0.8, 0.2, 0.1], -np.inf),
        ([0.0, 0.0, 1.0, 1.0], np.inf),
        ([0.3, 0.3, 0.3, 0.3], np.nan),
    ],
)
def test_slopes_that_are_not_finite(p, slope):
    line = calibration_line([0, 0, 1, 1], p)
    np.testing.assert_equal(line.slope, (slope, -np.inf, np.inf))
    assert line.intercept.low <= line.intercept.value <= line.intercept.high


@pytest.mark.parametrize("weighted", [False, True])
def test_brier_score_and_its_parts(weighted):
    y, p, weight = sample(3)
    w = weight if weighted else None
    found = brier_score(y, p, sample_weight=w)
    assert found.value == pytest.approx(brier_score_loss(y, p, sample_weight=w))
    parts = found.miscalibration - found.discrimination + found.uncertainty
    assert found.value == pytest.approx(parts, abs=1e-15)
    rate = np.average(y, weights=w)
    fitted = IsotonicRegression().fit_transform(p, y, sample_weight=w)
    best = np.average((y - fitted) ** 2, weights=w)
    assert found.uncertainty == pytest.approx(rate * (1.0 - rate))
    assert found.miscalibration == pytest.approx(found.value - best, abs=1e-12)
    assert found.discrimination == pytest.approx(rate * (1.0 - rate) - best, abs=1e-12)


def bins_by_loop(y, p, w, bins, strategy):
    """Return (mean probability, share of positives, weight) of each bin."""
    place = {}
    for value in np.unique(p):
        middle = w[p < value].sum() + 0.5 * w[p == value].sum()
        share = value if strategy == "uniform" else middle / w.sum()
        place[value] = min(int(share * bins), bins - 1)
    places = np.array([place[value] for value in p])
    found = []
    for k in range(bins):
        here = places == k
        if here.any():
            mean = np.average(p[here], weights=w[here])
            found.append((mean, np.average(y[here], weights=w[here]), w[here].sum()))
    return np.array(found).T


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bins", [1, 7, 20])
def test_bins_and_error_by_a_loop(strategy, weighted, bins):
    y, p, weight = sample(4)
    w = weight if weighted else np.ones(400)
    options = {"bins": bins, "strategy": strategy}
    curve = calibration_curve(y, p, sample_weight=w, **options)
    mean, observed, rows = bins_by_loop(y, p, w, bins, strategy)
    np.testing.assert_allclose(curve.probability, mean)
    np.testing.assert_allclose(curve.observed, observed)
    np.testing.assert_allclose(curve.rows, rows)
    error = calibration_error(y, p, sample_weight=w, **options)
    assert error == pytest.approx(np.average(np.abs(mean - observed), weights=rows))


def test_intervals_of_bins_are_wilsons():
    y, p, weight = sample(5)
    z2 = norm.ppf(0.95) ** 2
    for w in (np.ones(400), weight):
        curve = calibration_curve(
            y, p, bins=3, strategy="uniform", level=0.9, sample_weight=w
        )
        for k in range(3):
            here = np.minimum((p * 3).astype(int), 2) == k
            n, a = w[here].sum() ** 2 / (w[here] ** 2).sum(), curve.observed[k]
            for end in (curve.low[k], curve.high[k]):
                assert (a - end) ** 2 == pytest.approx(z2 * end * (1.0 - end) / n)


def test_isotonic_curve():
    y, p, _ = sample(6)
    curve = calibration_curve(y, p, strategy="isotonic")
    fitted = IsotonicRegression().fit_transform(p, y)
    levels, rows = np.unique(fitted.round(12), return_counts=True)
    np.testing.assert_allclose(curve.observed, levels, atol=1e-11)
    np.testing.assert_allclose(curve.rows, rows)
    # Recalibrating to this curve removes the miscalibration.
    assert brier_score(y, fitted).miscalibration == pytest.approx(0.0, abs=1e-12)


def test_errors():
    y, p, _ = sample(7)
    with pytest.raises(ValueError, match=r"probability is 1\.5 at row 1"):
        brier_score([0, 1], [0.5, 1.5])
    with pytest.raises(ValueError, match="probability is nan at row 0"):
        calibration_line([0, 1], [np.nan, 0.5])
    with pytest.raises(ValueError, match=r"probability has shape \(400, 2\)"):
        calibration_line(y, np.column_stack([1 - p, p]))
    with pytest.raises(ValueError, match="bins=0"):
        calibration_curve(y, p, bins=0)
    with pytest.raises(ValueError, match="strategy='equal'"):
        calibration_curve(y, p, strategy="equal")
