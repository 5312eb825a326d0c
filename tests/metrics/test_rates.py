"""Intervals of rates and thresholds, and bands, against plain versions."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, binom, kstwo, norm

from aucmax.metrics import fpr_at, roc_band, roc_curve, threshold_interval, tpr_at


def mixture(y, score, fpr, level=0.95):
    """Return the interval in the notes of ``tpr_at``, for scores without ties."""
    pos, neg = score[y == 1], -np.sort(-score[y == 0])
    m, n = pos.size, neg.size
    borders = np.concatenate([[np.inf], neg, [-np.inf]])
    chance = binom.pmf(np.arange(n + 1), n, fpr)  # i negatives above the threshold
    above = np.array([(pos > border).sum() for border in borders])
    h = (above[:-1] + above[1:]) / 2.0  # half of the positives between two negatives

    def cdf(x, tail):
        return chance @ beta.cdf(x, h + 0.5, m - h + 0.5) - tail

    tail = 0.5 * (1.0 - level)
    return [brentq(cdf, 0.0, 1.0, args=(q,)) for q in (tail, 1.0 - tail)]


def sample(seed, m, n):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1, 0], [m, n]))
    return y, rng.standard_normal(m + n) + 1.2 * y


@pytest.mark.parametrize(("m", "n"), [(1, 1), (7, 4), (20, 30), (60, 25)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_tpr_at_is_the_mixture(m, n, level):
    y, score = sample(m, m, n)
    grid = np.array([0.0, 0.03, 0.1, 0.37, 0.5, 0.98])
    band = roc_band(y, score, fpr=grid, level=level)
    for k, fpr in enumerate(grid):
        value, low, high = tpr_at(y, score, fpr, level=level)
        expected = mixture(y, score, fpr, level)
        assert [low, high] == pytest.approx(
            [min(expected[0], value), max(expected[1], value)], abs=1e-9
        )
        assert (band.tpr[k], band.low[k], band.high[k]) == (value, low, high)


def test_many_parts_of_the_mixture_are_merged():
    y, score = sample(0, 3000, 4000)
    for fpr in (0.05, 0.5):
        found = tpr_at(y, score, fpr)
        assert found[1:] == pytest.approx(mixture(y, score, fpr), abs=2e-4)


def test_value_is_on_the_curve():
    rng = np.random.default_rng(1)
    y, score = rng.integers(0, 2, 60), rng.integers(0, 6, 60)
    curve = roc_curve(y, score)
    for fpr in (0.0, 0.13, 0.5, 1.0):
        found = tpr_at(y, score, fpr)
        assert found.value == pytest.approx(np.interp(fpr, curve.fpr, curve.tpr))
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0


def test_fpr_at_exchanges_the_classes():
    y, score = sample(2, 15, 22)
    for tpr in (0.0, 0.2, 0.85, 1.0):
        value, low, high = fpr_at(y, score, tpr)
        other = tpr_at(1 - y, -score, 1.0 - tpr)
        assert (value, low, high) == (1 - other.value, 1 - other.high, 1 - other.low)


def test_equal_weights_do_not_matter():
    y, score = sample(3, 15, 22)
    plain = tpr_at(y, score, 0.2)
    found = tpr_at(y, score, 0.2, sample_weight=np.full(37, 0.7))
    assert found == pytest.approx(plain, abs=1e-9)


def test_unequal_weights_widen():
    y, score = sample(4, 40, 60)
    weight = np.tile([0.1, 1.9], 50)
    value, low, high = tpr_at(y, score, 0.2, sample_weight=weight)
    plain = tpr_at(y, score, 0.2)
    assert low <= value <= high
    assert high - low > plain.high - plain.low


@pytest.mark.parametrize("n", [5, 40, 333])
@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9, 0.999])
def test_coverage_of_thresholds_is_binomial(n, rate):
    # Of falling scores n, …, 1 the interval shows its ranks.
    falling = np.arange(n, 0, -1.0)
    y, score = np.repeat([0, 1], [n, 1]), np.append(falling, 0.5)
    value, low, high = threshold_interval(y, score, fpr=rate)
    above_high = 0 if high == np.inf else n - high  # rows above the upper end
    above_low = n if low == -np.inf else n - low
    # Covered if the rows at or above the threshold are more than above the upper end,
    # and at most those above the lower end.
    cover = binom.cdf(above_low, n, rate)
    cover -= 0.0 if high == np.inf else binom.cdf(above_high, n, rate)
    assert cover >= 0.95 - 1e-12
    assert low <= value <= high
    # One rank less on either side is not enough.
    if high < np.inf:
        assert binom.cdf(above_high + 1, n, rate) > 0.025
    if low > -np.inf:
        assert binom.sf(above_low - 1, n, rate) > 0.025


def test_threshold_of_a_true_positive_rate():
    y, score = sample(5, 50, 40)
    found = threshold_interval(y, score, tpr=0.8)
    assert found == threshold_interval(1 - y, score, fpr=0.8)
    assert np.mean(score[y == 1] >= found.value) == 0.8


def test_simultaneous_band():
    y, score = sample(6, 70, 90)
    band = roc_band(y, score, kind="simultaneous", level=0.9)
    up, right = (kstwo.ppf(np.sqrt(0.9), n) for n in (70, 90))
    pos, neg = score[y == 1], score[y == 0]
    thresholds = np.concatenate([[np.inf], score, [-np.inf]])
    fpr = np.array([(neg >= t).mean() for t in thresholds])
    tpr = np.array([(pos >= t).mean() for t in thresholds])
    for u, low, high in zip(band.fpr, band.low, band.high, strict=True):
        # All thresholds whose true rate can be u, and their true positive rates.
        inside = np.abs(fpr - u) <= right
        assert low <= max(tpr[inside].min() - up, 0.0) <= low + 2 / 70 + 1e-12
        assert high >= min(tpr[inside].max() + up, 1.0) >= high - 2 / 70 - 1e-12


def test_simultaneous_band_covers_the_whole_curve():
    grid, hits = np.linspace(0.01, 0.99, 50), 0
    truth = norm.cdf(1.2 + norm.ppf(grid))
    for seed in range(60):
        band = roc_band(*sample(seed, 30, 30), kind="simultaneous", fpr=grid)
        hits += bool(((band.low <= truth) & (truth <= band.high)).all())
    assert hits >= 57


def test_errors():
    y, score = sample(7, 5, 5)
    with pytest.raises(ValueError, match=r"fpr=1.5: expected a number in \[0, 1\]"):
        tpr_at(y, score, 1.5)
    with pytest.raises(ValueError, match="give one of fpr and tpr"):
        threshold_interval(y, score)
    with pytest.raises(ValueError, match=r"tpr=1.0: expected a number in \(0, 1\)"):
        threshold_interval(y, score, tpr=1.0)
    with pytest.raises(ValueError, match="kind='both'"):
        roc_band(y, score, kind="both")
    with pytest.raises(ValueError, match="fpr must be a list of rates"):
        roc_band(y, score, fpr=[0.1, np.nan])
    with pytest.raises(ValueError, match="a simultaneous band has no weights"):
        roc_band(y, score, kind="simultaneous", sample_weight=np.ones(10))
