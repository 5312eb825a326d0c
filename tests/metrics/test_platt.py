"""Calibration: against scikit-learn's logistic regression, and at its edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from aucmax.metrics.calibration import log_odds

RNG = np.random.default_rng(0)
POS, NEG = RNG.normal(1.5, 1.0, 200), RNG.normal(0.0, 2.0, 300)


def cross_entropy(parameters, pos, neg, n):
    """Return what is to be minimal, class by class as it is written in the paper."""
    a, b = parameters
    total = 0.0
    for scores, count, goal in (
        (pos, n[0], (n[0] + 1) / (n[0] + 2)),
        (neg, n[1], 1 / (n[1] + 2)),
    ):
        p = expit(a * scores + b)
        loss = -(goal * np.log(p) + (1 - goal) * np.log(1 - p))
        total += count / sum(n) * loss.mean()
    return total


@pytest.mark.parametrize("n", [[200.0, 300.0], [20.0, 3000.0], [5.0, 1e5]])
def test_the_minimum(n):
    n = np.array(n)
    found = minimize(cross_entropy, [1.0, 0.0], (POS, NEG, n), tol=1e-14).x
    assert_allclose(log_odds(POS, NEG, n), found, rtol=2e-4)
    best = cross_entropy(log_odds(POS, NEG, n), POS, NEG, n)
    assert best <= cross_entropy(found, POS, NEG, n) * (1 + 1e-12)


def test_mean_probability_is_the_share_of_the_positives():
    n = np.array([100.0, 9900.0])
    a, b = log_odds(POS, NEG, n)
    mean = (n[0] * expit(a * POS + b).mean() + n[1] * expit(a * NEG + b).mean()) / 1e4
    assert mean == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_units_and_offsets_do_not_matter(unit):
    n = np.array([200.0, 300.0])
    a, b = log_odds(POS, NEG, n)
    scaled = log_odds(unit * (POS + 7.0), unit * (NEG + 7.0), n)
    assert_allclose(scaled, [a / unit, b - 7.0 * a], rtol=1e-6)


def test_scores_that_part_the_classes_get_no_infinite_odds():
    a, b = log_odds(np.array([1.0, 2.0]), np.array([-1.0, -2.0]), np.array([2.0, 2.0]))
    assert 0.0 < a < 5.0
    assert b == pytest.approx(0.0, abs=1e-9)


def test_odds_never_fall_as_scores_rise():
    for pos, neg in (([0.0], [1.0, 2.0]), ([1.0], [1.0])):
        a, b = log_odds(np.array(pos), np.array(neg), np.array([1.0, 3.0]))
        assert a > 0.0
        assert expit(a * np.mean(pos + neg) + b) == pytest.approx(0.25, rel=0.05)


def test_scores_that_differ_by_rounding_are_equal():
    pos, neg = np.full(50, 0.1 + 0.2), np.full(100, 0.3)
    slope, offset = log_odds(pos, neg, np.array([50.0, 100.0]))
    assert abs(slope) < 1.0
    assert abs(slope * 0.3 + offset - np.log(0.5)) < 0.1
