"""Tests of partial, weighted, clustered and unpaired differences."""

import numpy as np
import pytest
from scipy.stats import norm, t

from aucmax.metrics import auc, auc_interval, auc_test, auc_test_unpaired, partial_auc


def sample(seed, m, n):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1, 0], [m, n]))
    common, one, two = rng.standard_normal((3, m + n))
    return y, common + one + 1.5 * y, common + two + y


@pytest.mark.parametrize(("max_fpr", "min_tpr"), [(0.3, 0.0), (1.0, 0.6), (0.5, 0.3)])
def test_partial_difference(max_fpr, min_tpr):
    y, a, b = sample(0, 120, 180)
    part = {"max_fpr": max_fpr, "min_tpr": min_tpr}

    def difference(rows):
        return partial_auc(y[rows], a[rows], **part) - partial_auc(
            y[rows], b[rows], **part
        )

    found = auc_test(y, a, b, **part)
    everything = np.arange(y.size)
    assert found.difference == pytest.approx(difference(everything), abs=1e-15)
    assert found.statistic == pytest.approx(found.difference / found.se)
    assert found.pvalue == pytest.approx(2.0 * norm.sf(abs(found.statistic)))
    pos, neg = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    jackknife = 0.0
    for rows in (pos, neg):
        without = np.array([difference(np.delete(everything, row)) for row in rows])
        jackknife += (
            (rows.size - 1) / rows.size * np.sum((without - without.mean()) ** 2)
        )
    assert found.se == pytest.approx(np.sqrt(jackknife), rel=0.05)
    rng = np.random.default_rng(1)
    draws = [
        difference(np.append(rng.choice(pos, pos.size), rng.choice(neg, neg.size)))
        for _ in range(300)
    ]
    assert found.se == pytest.approx(np.std(draws), rel=0.2)


def test_all_paths_agree():
    y, a, b = sample(2, 30, 40)
    plain = auc_test(y, a, b)
    weighted = auc_test(y, a, b, sample_weight=np.full(70, 0.4))
    clustered = auc_test(y, a, b, groups=np.arange(70))
    assert weighted == pytest.approx(plain, rel=1e-9)
    assert clustered == pytest.approx(plain, rel=1e-9)


def test_clusters_of_copies():
    y, a, b = sample(3, 30, 40)
    plain = auc_test(y, a, b, groups=np.arange(70))
    rows = np.tile(np.arange(70), 3)
    assert auc_test(y[rows], a[rows], b[rows], groups=rows) == pytest.approx(plain)


def test_margin_is_one_sided():
    y, a, b = sample(4, 40, 50)
    found = auc_test(y, a, b, margin=0.04)
    assert found.statistic == pytest.approx((found.difference + 0.04) / found.se)
    assert found.pvalue == pytest.approx(norm.sf(found.statistic))
    superior = auc_test(y, a, b, margin=0.0)
    two_sided = auc_test(y, a, b)
    assert superior.pvalue == pytest.approx(0.5 * two_sided.pvalue)
    reverse = auc_test(y, b, a, margin=0.0)
    assert reverse.pvalue == pytest.approx(1.0 - superior.pvalue)


def test_margin_of_constant_differences():
    y = np.repeat([1, 0], 6)
    perfect, constant = np.arange(12.0)[::-1], np.zeros(12)
    found = auc_test(y, perfect, constant, margin=0.1)
    assert found.difference == 0.5
    assert found.se == 0.0
    assert found.pvalue == pytest.approx((0.9 / 1.5) ** 6)
    # The p-value is the one-sided level at which the interval reaches the margin.
    at = auc_test(y, perfect, constant, level=1.0 - 2.0 * found.pvalue)
    assert at.low == pytest.approx(-0.1)
    assert auc_test(y, constant, perfect, margin=0.1).pvalue == 1.0


def test_constant_differences_of_parts_are_on_their_scale():
    y = np.repeat([1, 0], [6, 40])
    perfect, wrong = np.arange(46.0)[::-1], np.arange(46.0)
    whole = auc_test(y, perfect, wrong)
    part = auc_test(y, perfect, wrong, max_fpr=0.25)
    assert part.difference == pytest.approx(0.25)
    # Six pairs decide in both cases.
    assert part.pvalue == pytest.approx(whole.pvalue)
    assert [part.low, part.high] == pytest.approx([0.25 * whole.low, 0.25 * whole.high])
    assert part.high <= 0.25 + 1e-12


def test_intervals_of_parts_stay_in_range():
    y, a, b = sample(5, 4, 6)
    found = auc_test(y, a, b, max_fpr=0.05)
    assert -0.05 <= found.low <= found.difference <= found.high <= 0.05


@pytest.mark.parametrize(
    "options", [{}, {"max_fpr": 0.4}, {"sample_weight": [1.0] * 9}]
)
def test_single_positive(options):
    y, a, b = np.array([1] + [0] * 8), np.arange(9) % 4, np.arange(9) % 5
    found = auc_test(y, a, b, **options)
    largest = options.get("max_fpr", 1.0)
    share = found.difference / largest
    assert found.se == pytest.approx(largest * np.sqrt(1.0 - share**2))
    assert found.pvalue == 1.0
    assert found.low <= found.difference <= found.high


def test_positives_of_one_cluster():
    y, a, b = sample(6, 5, 20)
    groups = np.where(y == 1, -1, np.arange(25))
    found = auc_test(y, a, b, groups=groups)
    assert np.isfinite(found).all()
    assert found.pvalue > 0.5


def test_unpaired():
    y_a, a, _ = sample(7, 20, 35)
    y_b, _, b = sample(8, 25, 30)
    found = auc_test_unpaired(y_a, a, y_b, b)
    one, two = auc_interval(y_a, a), auc_interval(y_b, b)
    variances = np.array([one.se, two.se]) ** 2
    assert found.difference == auc(y_a, a) - auc(y_b, b)
    assert found.se == pytest.approx(np.sqrt(variances.sum()))
    welch = variances.sum() ** 2 / (variances**2 / np.array([54, 54])).sum()
    assert found.pvalue == pytest.approx(2.0 * t.sf(abs(found.statistic), welch))
    low = found.difference - np.hypot(one.value - one.low, two.high - two.value)
    assert found.low == pytest.approx(low)
    one_sided = auc_test_unpaired(y_a, a, y_b, b, margin=0.1)
    statistic = (found.difference + 0.1) / found.se
    assert one_sided.pvalue == pytest.approx(t.sf(statistic, welch))


def test_unpaired_perfect_rankings():
    y, score = np.repeat([0, 1], 5), np.arange(10)
    found = auc_test_unpaired(y, score, y, score)
    assert (found.difference, found.pvalue) == (0.0, 1.0)
    assert found.low == -found.high < 0.0
    opposite = auc_test_unpaired(y, score, y, -score)
    assert opposite.pvalue == pytest.approx(2.0 * 2.0**-5)


@pytest.mark.parametrize("margin", [-0.1, 1.0, np.nan])
def test_bad_margins(margin):
    y, a, b = sample(9, 5, 5)
    with pytest.raises(ValueError, match="expected a number from 0 to below 1"):
        auc_test(y, a, b, margin=margin)
    with pytest.raises(ValueError, match="expected a number from 0 to below 1"):
        auc_test_unpaired(y, a, y, b, margin=margin)


def test_margins_of_parts_are_on_their_scale():
    y, a, b = sample(9, 5, 5)
    with pytest.raises(ValueError, match=r"margin=0\.3: expected .* below 0\.25"):
        auc_test(y, a, b, max_fpr=0.5, min_tpr=0.5, margin=0.3)
