"""auc_interval and auc_test: DeLong's formulas over all pairs, and simulations."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import brentq
from scipy.stats import binomtest, norm

from aucmax.metrics import auc, auc_interval, auc_test, cv_auc_interval

patient = settings(deadline=None)  # the first call compiles
METHODS = ("wilson", "logit", "wald")


def placements(y, score):
    """Return DeLong's V and W from the table of all pairs."""
    pos, neg = score[y == 1], score[y == 0]
    table = (pos[:, None] > neg) + 0.5 * (pos[:, None] == neg)
    return table.mean(axis=1), table.mean(axis=0)


def standard_error(V, W):
    return math.sqrt(V.var(ddof=1) / V.size + W.var(ddof=1) / W.size)


@st.composite
def rows(draw, n_scores, smallest_class=1):
    """Draw labels and ``n_scores`` columns of scores, most of them tied."""
    m, n = draw(st.integers(smallest_class, 25)), draw(st.integers(smallest_class, 25))
    y = np.array(draw(st.permutations([1] * m + [0] * n)))
    columns = hnp.arrays(np.float64, (n_scores, m + n), elements=st.integers(0, 5))
    return y, *draw(columns)


@patient
@given(rows(1, smallest_class=2))
def test_standard_error_is_delongs(data):
    y, score = data
    V, W = placements(y, score)
    result = auc_interval(y, score)
    assert result.value == auc(y, score)
    assert result.se == pytest.approx(standard_error(V, W), rel=1e-9, abs=1e-15)


@patient
@given(rows(1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_interval_holds_the_value_has_width_and_stays_inside(data, level):
    y, score = data
    for method in METHODS:
        value, low, high, se = auc_interval(y, score, level=level, method=method)
        assert 0.0 <= low <= value <= high <= 1.0
        assert low < high
        assert 0.0 <= se <= 1.0


def test_interval_formulas():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    score = rng.standard_normal(60) + y
    V, W = placements(y, score)
    A, z = V.mean(), norm.ppf(0.95)
    half = z * standard_error(V, W)
    wald = auc_interval(y, score, level=0.9, method="wald")
    assert wald[1:3] == pytest.approx((A - half, A + half), rel=1e-12)
    logit = auc_interval(y, score, level=0.9, method="logit")
    ends = [math.log(A / (1 - A)) + sign * half / (A * (1 - A)) for sign in (-1, 1)]
    assert logit[1:3] == pytest.approx([1 / (1 + math.exp(-x)) for x in ends])


def wilson_ends(A, variance, m, n, z):
    """Find where (A - θ)² = z² θ (1 - θ) / N, by bisection."""
    known = 4 * A * (1 - A) * min(m, n)
    guess = A * (1 - A) * (1 / m + 1 / n) / 2  # half of van Dantzig's bound, if n >> m
    blended = (known * variance + 3 * guess) / (known + 3)
    N = A * (1 - A) / blended

    def outside(theta):
        return (A - theta) ** 2 - z**2 * theta * (1 - theta) / N

    return brentq(outside, 0.0, A), brentq(outside, A, 1.0)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_holds_what_wilsons_test_does_not_reject(level):
    rng = np.random.default_rng(2)
    for m, n, shift in ((5, 40, 1.5), (30, 20, 0.0), (12, 300, 2.0)):
        y = np.repeat([1, 0], [m, n])
        score = rng.standard_normal(m + n) + shift * y
        V, W = placements(y, score)
        variance, z = standard_error(V, W) ** 2, norm.ppf(0.5 + level / 2)
        ends = wilson_ends(V.mean(), variance, m, n, z)
        assert auc_interval(y, score, level=level)[1:3] == pytest.approx(ends, rel=1e-9)


def test_methods_agree_for_large_classes():
    rng = np.random.default_rng(3)
    y = np.repeat([1, 0], [20_000, 100_000])
    score = rng.standard_normal(y.size) + y
    wilson, logit, wald = (auc_interval(y, score, method=one) for one in METHODS)
    for other in (logit, wald):
        assert np.abs(np.subtract(wilson, other)).max() < 0.02 * wilson.se


@pytest.mark.parametrize(
    ("m", "n", "area", "deviation"),
    [
        (10, 100, 0.5, 1.0),
        (10, 1000, 0.95, 1.0),
        (10, 1000, 0.98, 2.0),
        (20, 200, 0.98, 2.0),
        (50, 500, 0.95, 2.0),
    ],
)
def test_coverage_with_few_positives(m, n, area, deviation):
    # Five cells of benchmarks/intervals.py; the logit interval covers 64 % to 94 %
    # in them. The bound is 92 %, less two standard deviations of 600 draws.
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [m, n])
    shift = math.hypot(1.0, deviation) * norm.ppf(area)
    draws, covered = 600, 0
    for _ in range(draws):
        score = rng.standard_normal(m + n)
        score[:m] = deviation * score[:m] + shift
        _, low, high, _ = auc_interval(y, score)
        covered += low <= area <= high
    assert covered / draws > 0.92 - 2 * math.sqrt(0.92 * 0.08 / draws)


def test_other_label_mirrors_the_interval():
    y, score = np.array([0, 0, 0, 1, 1, 0, 1]), np.array([1, 2, 2, 2, 3, 3, 4])
    one, other = auc_interval(y, score), auc_interval(y, score, pos_label=0)
    assert other == pytest.approx((1 - one.value, 1 - one.high, 1 - one.low, one.se))


@pytest.mark.parametrize("k", [1, 2, 10, 300])
def test_a_perfect_ranking_gives_the_exact_interval(k):
    y = np.repeat([0, 1], [k + 3, k])
    score = np.arange(y.size)
    exact = binomtest(k, k).proportion_ci(0.95)
    assert auc_interval(y, score) == pytest.approx((1.0, exact.low, 1.0, 0.0))
    worst = auc_interval(y, -score)
    assert worst == pytest.approx((0.0, 0.0, 1.0 - exact.low, 0.0))


def test_equal_scores_give_the_interval_of_a_coin():
    exact = binomtest(10, 20).proportion_ci(0.95)
    got = auc_interval(np.repeat([0, 1], [20, 30]), np.ones(50))
    assert got == pytest.approx((0.5, exact.low, exact.high, 0.0))


def test_a_single_positive_says_next_to_nothing():
    value, low, high, se = auc_interval(np.arange(1000) == 800, np.arange(1000))
    assert value == 800 / 999
    assert low < 0.1
    assert high > 0.99
    assert se == pytest.approx(math.sqrt(value * (1 - value)))


@pytest.mark.parametrize(
    ("method", "shift", "m", "n"),
    [
        ("wilson", 1.0, 30, 70),
        ("logit", 1.0, 30, 70),
        ("wald", 1.0, 60, 60),
        ("logit", 2.0, 40, 200),
        ("wilson", 6.0, 10, 10),  # nearly always perfect: the exact interval
        ("wilson", 1.0, 1, 50),
    ],
)
def test_coverage(method, shift, m, n):
    rng = np.random.default_rng(7)
    y = np.repeat([1, 0], [m, n])
    truth = norm.cdf(shift / math.sqrt(2))
    runs = 1000
    covered = 0
    for _ in range(runs):
        score = rng.standard_normal(m + n) + shift * y
        _, low, high, _ = auc_interval(y, score, level=0.9, method=method)
        covered += low <= truth <= high
    # Three standard deviations of the simulation, and a point for asymptotics. Exact
    # intervals may cover more often than asked for.
    assert covered / runs > 0.9 - 3 * math.sqrt(0.09 / runs) - 0.01
    if shift < 6.0 and m > 1:
        assert covered / runs < 0.9 + 3 * math.sqrt(0.09 / runs) + 0.01


def test_large_classes_do_not_overflow():
    n = 100_000
    y = np.repeat([1, 0], n)
    score = np.concatenate([np.arange(n) + 0.5, np.arange(n)])
    value, low, high, se = auc_interval(y, score)
    assert value == (n + 1) / (2 * n)
    # Placements are (i + 1)/n and so uniform: variance 1/12 each.
    assert se == pytest.approx(math.sqrt(2 / 12 / n), rel=1e-4)
    assert low < 0.5 < high
    difference, _, _, _, _, pvalue = auc_test(y, score, -score)
    assert difference == pytest.approx(1 / n)
    assert 0.9 < pvalue < 1.0


@patient
@given(rows(2, smallest_class=2))
def test_paired_test_is_delongs(data):
    y, a, b = data
    (V_a, W_a), (V_b, W_b) = placements(y, a), placements(y, b)
    # By the covariance of the two AUCs, as in the paper.
    S = np.cov(V_a, V_b) / V_a.size + np.cov(W_a, W_b) / W_a.size
    variance = S[0, 0] + S[1, 1] - 2 * S[0, 1]
    result = auc_test(y, a, b)
    assert result.difference == pytest.approx(auc(y, a) - auc(y, b), abs=1e-15)
    assert result.se**2 == pytest.approx(variance, rel=1e-9, abs=1e-15)
    if result.se > 0.0:
        z = result.difference / result.se
        assert result.statistic == z
        assert result.pvalue == pytest.approx(2 * norm.sf(abs(z)), rel=1e-9)
        half = norm.ppf(0.975) * result.se
        ends = (result.difference - half, result.difference + half)
        assert (result.low, result.high) == pytest.approx(np.clip(ends, -1, 1))


@patient
@given(rows(2), st.sampled_from([0.5, 0.95, 0.999]))
def test_paired_test_is_sane_everywhere(data, level):
    y, a, b = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        difference, low, high, se, z, pvalue = auc_test(y, a, b, level=level)
        swapped = auc_test(y, b, a, level=level)
    assert -1.0 <= low <= difference <= high <= 1.0
    assert se >= 0.0
    assert 0.0 <= pvalue <= 1.0
    assert (swapped.difference, swapped.statistic) == (-difference, -z)
    assert (swapped.low, swapped.high) == pytest.approx((-high, -low), abs=1e-15)
    assert swapped.pvalue == pvalue
    # The interval leaves out "no difference" just when the test rejects it.
    if abs(pvalue - (1.0 - level)) > 1e-9:
        assert (pvalue < 1.0 - level) == (not low <= 0.0 <= high)


@patient
@given(rows(1))
def test_equal_rankings_do_not_differ(data):
    y, score = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = auc_test(y, score, np.exp(score))
    assert result.difference == result.statistic == 0.0
    assert result.pvalue == 1.0
    assert result.low <= 0.0 <= result.high


def test_a_perfect_ranking_against_a_constant():
    y = np.repeat([0, 1], [12, 9])
    difference, low, high, se, z, pvalue = auc_test(y, y, np.zeros(21))
    assert (difference, se) == (0.5, 0.0)
    assert pvalue == pytest.approx(2 * 1.5**-9)
    assert z == pytest.approx(norm.isf(pvalue / 2))
    q = 0.025 ** (1 / 9)
    assert (low, high) == pytest.approx((0.5 * q - (1 - q), 0.5 * q + (1 - q)))


def test_a_constant_difference_that_is_no_binary_fraction():
    # Each row wins two of three pairs more by b than by a: rounding must not make a
    # variance, and so a certainty, of it.
    y = [1, 1, 1, 0, 0, 0]
    result = auc_test(y, [2, 4, 0, 5, 3, 5], [2, 5, 2, 2, 0, 2])
    assert result.difference == -2 / 3
    assert result.se == 0.0
    assert result.pvalue == pytest.approx(2.0 * (5 / 3) ** -3)


def test_far_too_many_rows_for_chance():
    y = np.repeat([0, 1], 5000)
    *_, z, pvalue = auc_test(y, -y, y)
    assert pvalue == 0.0
    assert z == -math.inf


def test_rejections_under_no_difference():
    rng = np.random.default_rng(11)
    y = np.repeat([1, 0], [40, 80])
    runs = 1000
    rejected = 0
    for _ in range(runs):
        signal = rng.standard_normal(120) + y
        a, b = (signal + 0.7 * rng.standard_normal(120) for _ in range(2))
        rejected += auc_test(y, a, b).pvalue < 0.1
    assert abs(rejected / runs - 0.1) < 3 * math.sqrt(0.09 / runs) + 0.01


def test_pairing_makes_the_test_stronger():
    rng = np.random.default_rng(5)
    y = np.repeat([1, 0], 200)
    signal = rng.standard_normal(400) + y
    a = signal + 0.2 * rng.standard_normal(400)
    b = signal + 0.6 * rng.standard_normal(400)
    alone = math.hypot(auc_interval(y, a).se, auc_interval(y, b).se)
    assert auc_test(y, a, b).se < 0.7 * alone


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, math.nan])
def test_levels_that_are_none(level):
    with pytest.raises(ValueError, match="expected a number between 0 and 1"):
        auc_interval([0, 1], [0, 1], level=level)
    with pytest.raises(ValueError, match="expected a number between 0 and 1"):
        auc_test([0, 1], [0, 1], [0, 1], level=level)


def test_methods_that_are_none():
    with pytest.raises(ValueError, match="'bootstrap'"):
        auc_interval([0, 1], [0, 1], method="bootstrap")


def test_results_are_plain_numbers():
    for result in (
        auc_interval([0, 1, 1], [0, 1, 2]),
        auc_test([0, 1], [0, 1], [1, 0]),
    ):
        assert {type(x) for x in result} == {float}


def jackknife(y, score, weight):
    """Return the standard error from leaving out each row in turn."""
    total, whole = 0.0, auc(y, score, sample_weight=weight)
    for label in (0, 1):
        mine = np.flatnonzero((y == label) & (weight > 0))
        for row in mine:
            rest = np.arange(y.size) != row
            change = auc(y[rest], score[rest], sample_weight=weight[rest]) - whole
            total += change**2 * (mine.size - 1) / mine.size
    return math.sqrt(total)


@patient
@given(rows(1, smallest_class=3), st.integers(0, 2**32 - 1), st.booleans())
def test_weighted_standard_error_is_the_jackknife(data, seed, with_zeros):
    y, score = data
    weight = np.random.default_rng(seed).exponential(size=y.size) + 0.1
    if with_zeros:  # of each class two rows stay
        weight[np.flatnonzero(y == 1)[2:]] = weight[np.flatnonzero(y == 0)[2:]] = 0.0
    value, low, high, se = auc_interval(y, score, sample_weight=weight)
    assert value == auc(y, score, sample_weight=weight)
    largest = math.sqrt(value * (1.0 - value))
    expected = min(jackknife(y, score, weight), largest)
    assert se == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert 0.0 <= low <= value <= high <= 1.0
    assert low < high


@patient
@given(rows(1), st.floats(1e-100, 1e100), st.floats(0.01, 100.0))
def test_equal_weights_are_none(data, factor, ratio):
    y, score = data
    weight = factor * np.where(y == 1, ratio, 1.0)  # of each class its own
    for method in METHODS:
        got = auc_interval(y, score, method=method, sample_weight=weight)
        expected = auc_interval(y, score, method=method)
        assert got == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_a_row_that_has_nearly_all_the_weight_leaves_all_open():
    y, score = np.array([0, 0, 0, 1, 1, 1]), np.array([1.0, 4, 2, 3, 5, 2])
    weight = np.array([1.0, 1e20, 1, 1, 1e20, 1])
    value, low, high, _ = auc_interval(y, score, sample_weight=weight)
    assert value == 1.0
    assert low == pytest.approx(0.025)  # as of a single pair
    assert high == 1.0


@pytest.mark.parametrize("design", ["independent", "inverse probability"])
def test_weighted_intervals_cover(design):
    """Negatives are left out by their score, and weights undo it; or are just noise."""
    rng = np.random.default_rng(3)
    truth, hits, n_trials = norm.cdf(1 / math.sqrt(2)), 0, 1000
    for _ in range(n_trials):
        pos, neg = rng.normal(1, 1, 80), rng.normal(0, 1, 500)
        kept = np.clip(1 / (1 + np.exp(-2 * neg)), 0.1, 1.0)
        chosen = rng.random(neg.size) < kept
        if design == "independent":
            weight = rng.lognormal(0, 0.7, 80 + chosen.size)
            chosen[:] = True
        else:
            weight = np.append(np.ones(80), 1 / kept[chosen])
        y = np.append(np.ones(80), np.zeros(chosen.sum()))
        score = np.append(pos, neg[chosen])
        _, low, high, _ = auc_interval(y, score, sample_weight=weight)
        hits += low <= truth <= high
    assert 0.93 < hits / n_trials < 0.97
    # The same rows without their weights: the interval is about another number.
    if design != "independent":
        low, high = auc_interval(y, score)[1:3]
        assert not low <= truth <= high


def test_cross_validated_auc():
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.3
    score, fold = y + rng.standard_normal(300), np.arange(300) % 3
    parts = [auc_interval(y[fold == k], score[fold == k]) for k in range(3)]
    found = cv_auc_interval(y, score + 100.0 * fold, fold)  # folds have their own scale
    assert found.value == pytest.approx(np.mean([part.value for part in parts]))
    assert found.se == pytest.approx(np.sqrt(sum(part.se**2 for part in parts)) / 3)
    assert found.low < found.value < found.high
    assert cv_auc_interval(y, score, np.zeros(300)) == auc_interval(y, score)
    heavier = cv_auc_interval(y, score, fold, sample_weight=np.full(300, 2.0))
    assert heavier.value == pytest.approx(cv_auc_interval(y, score, fold).value)


def test_cross_validated_auc_covers_the_truth():
    # Scores of the classes are N(1, 1) and N(0, 1): AUC is Φ(1/√2) = 0.76025.
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        y = np.arange(120) % 3 == 0
        score = y + rng.standard_normal(120)
        interval = cv_auc_interval(y, score, np.arange(120) // 24)
        hits += interval.low < 0.76025 < interval.high
    assert 182 <= hits <= 198  # 190 expected, three standard deviations


def test_cross_validation_that_cannot_be():
    with pytest.raises(ValueError, match="Fold 1 has rows of one class only"):
        cv_auc_interval([0, 1, 1, 1], [1, 2, 3, 4], [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"folds have shape \(3,\), scores \(4,\)"):
        cv_auc_interval([0, 1, 0, 1], [1, 2, 3, 4], [0, 0, 1])
