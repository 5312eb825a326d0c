"""Monitoring without labels, against loops and simulated labels."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from aucmax.metrics import auc, expected_auc, stability_index


@pytest.fixture
def calm():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="expected_auc trusts")
        yield


def test_stability_index_by_a_loop():
    rng = np.random.default_rng(0)
    old, new = (
        rng.standard_normal(500).round(1),
        rng.standard_normal(300).round(1) + 0.2,
    )
    old[:20], new[:5] = np.nan, np.nan
    found = stability_index(old, new, bins=6)
    total, borders = 0.0, [-np.inf, *found.edges, np.inf]
    for k, (low, high) in enumerate(pairwise(borders)):
        p, q = (((low < x) & (x <= high)).sum() + 0.5 for x in (old, new))
        bins = len(borders)  # with that of NaN
        p, q = p / (500 + 0.5 * bins), q / (300 + 0.5 * bins)
        assert (found.reference[k], found.current[k]) == pytest.approx((p, q))
        total += (q - p) * np.log(q / p)
    p, q = 20.5 / (500 + 0.5 * bins), 5.5 / (300 + 0.5 * bins)
    assert found.value == pytest.approx(total + (q - p) * np.log(q / p))
    # About as many rows of the reference in each bin.
    assert found.reference[:-1] == pytest.approx(np.full(6, 0.16), abs=0.02)


def test_stability_of_the_same_population():
    rng = np.random.default_rng(1)
    found = [
        stability_index(rng.random(400), rng.random(600)).value for _ in range(100)
    ]
    assert np.mean(found) == pytest.approx(9 * (1 / 400 + 1 / 600), rel=0.15)


def test_stability_of_flags_does_not_depend_on_their_sign():
    old, new = np.arange(1000) < 950, np.arange(1000) < 500
    found = stability_index(old, new)
    assert found.edges.tolist() == [0.0]
    assert found.value > 1.0
    assert found.value == pytest.approx(stability_index(~old, ~new).value)


@pytest.mark.parametrize("old", [[1.0] * 9, [np.nan] * 9, [-np.inf, 0.0, np.inf] * 3])
def test_stability_of_odd_columns(old):
    assert stability_index(old, old).value == 0.0
    assert np.isfinite(stability_index(old, [1.0, 2.0, np.nan]).value)


@pytest.mark.parametrize("digits", [1, 9])
def test_expected_auc_over_all_pairs(calm, digits):
    p = np.random.default_rng(2).random(25).round(digits)
    pairs = wins = 0.0
    for i in range(25):
        for j in range(25):
            if i != j:
                chance = p[i] * (1.0 - p[j])
                pairs += chance
                wins += chance * ((p[i] > p[j]) + 0.5 * (p[i] == p[j]))
    assert expected_auc(p).value == pytest.approx(wins / pairs)


@pytest.mark.parametrize("digits", [1, 9])
def test_expected_auc_of_simulated_labels(calm, digits):
    rng = np.random.default_rng(3)
    p = rng.beta(0.6, 1.6, 250).round(digits)
    found = expected_auc(p, level=0.6826894921)  # one standard deviation
    areas = [auc(rng.random(250) < p, p) for _ in range(2000)]
    assert found.value == pytest.approx(np.mean(areas), abs=0.003)
    half = 0.5 * (found.high - found.low)
    assert half == pytest.approx(np.std(areas), rel=0.08)


def test_expected_auc_warns():
    rng = np.random.default_rng(4)
    p = rng.beta(0.6, 1.6, 2000)
    y = rng.random(2000) < p
    with pytest.warns(UserWarning, match="trusts the probabilities"):
        trusted = expected_auc(p)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert expected_auc(p, reference=(y, p)) == trusted
    with pytest.warns(UserWarning, match="the odds are off by a factor of 0"):
        expected_auc(p, reference=(y, np.sqrt(p)))
    with pytest.warns(UserWarning, match=r"slope -?0\.0"):
        expected_auc(p, reference=(rng.random(2000) < p.mean(), p))
    with pytest.warns(UserWarning, match="cannot test the calibration: y holds one"):
        expected_auc(p, reference=([0, 0], [0.1, 0.2]))


@pytest.mark.parametrize("p", [[], [0.4], [0.0, 0.0], [1.0, 1.0, 1.0]])
def test_expected_auc_of_one_class(calm, p):
    with pytest.warns(UndefinedMetricWarning, match="expected_auc is NaN"):
        assert np.isnan(expected_auc(p)).all()


def test_errors(calm):
    with pytest.raises(ValueError, match=r"probability has shape \(2, 2\)"):
        expected_auc([[0.1, 0.9], [0.2, 0.8]])
    with pytest.raises(ValueError, match=r"probability is -0\.1 at row 1"):
        expected_auc([0.1, -0.1])
    with pytest.raises(ValueError, match="current is empty"):
        stability_index([1.0], [])
    with pytest.raises(ValueError, match="bins=1"):
        stability_index([1.0], [1.0], bins=1)
