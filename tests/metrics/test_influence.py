"""Influence of rows against the change of the estimate, and variances against loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucmax.metrics import (
    auc,
    auc_interval,
    average_precision,
    average_precision_interval,
    cv_auc_interval,
    partial_auc,
    partial_auc_interval,
)
from aucmax.metrics._ranking import classes
from aucmax.metrics._variance import influence_on_area, jackknife_errors, variance
from aucmax.metrics.top import _influence as influence_on_precision

# Borders of parts that no point of these small curves meets: areas are differentiable.
PARTS = [(1.0, 0.0), (0.333, 0.0), (0.0871, 0.0), (1.0, 0.617), (0.713, 0.219)]


def sample(seed, m=9, n=13, weighted=False, ties=True):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1, 0], [m, n]))
    score = rng.standard_normal(m + n) + 0.8 * y
    if ties:
        score = score.round(0 if seed % 2 else 1)
    return y, score, rng.uniform(0.5, 2.0, m + n) if weighted else np.ones(m + n)


def derivatives(estimate, y, score, weight, step=1e-6):
    """Return the influences by central differences of the weights of single rows."""
    total = np.array([weight[y == label].sum() for label in (0, 1)])[y]
    found = []
    for row in range(y.size):
        more, less = weight.copy(), weight.copy()
        more[row] += step
        less[row] -= step
        slope = (estimate(y, score, more) - estimate(y, score, less)) / (2.0 * step)
        # A weight's effect is that on its share, h, of (V - mean) / total.
        found.append(slope * total[row] * (weight[row] / total[row]))
    return np.array(found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("max_fpr", "min_tpr"), PARTS)
def test_influence_on_area_is_its_derivative(max_fpr, min_tpr, weighted):
    def estimate(y, score, w):
        return partial_auc(y, score, max_fpr=max_fpr, min_tpr=min_tpr, sample_weight=w)

    for seed in range(6):
        y, score, weight = sample(seed, weighted=weighted)
        given_weight = weight if weighted else None
        found = influence_on_area(classes(y, score, given_weight), max_fpr, min_tpr)
        expected = derivatives(estimate, y, score, weight)
        np.testing.assert_allclose(found.pos, expected[y == 1], atol=1e-8)
        np.testing.assert_allclose(found.neg, expected[y == 0], atol=1e-8)
        assert found.pos.sum() == pytest.approx(0.0, abs=1e-14)
        assert found.neg.sum() == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_influence_on_average_precision_is_its_derivative(weighted):
    for seed in range(6):
        y, score, weight = sample(seed, weighted=weighted)
        rate = weight[y == 1].sum() / weight.sum()

        def estimate(y, score, w, rate=rate):
            # The share of positives is fixed: classes are weighed to it.
            fixed = np.where(y == 1, rate, 1.0 - rate)
            for label in (0, 1):
                fixed[y == label] *= w[y == label] / w[y == label].sum()
            return average_precision(y, score, sample_weight=fixed)

        found = influence_on_precision(classes(y, score, weight if weighted else None))
        expected = derivatives(estimate, y, score, weight)
        np.testing.assert_allclose(found.pos, expected[y == 1], atol=1e-8)
        np.testing.assert_allclose(found.neg, expected[y == 0], atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_the_jackknifes(weighted):
    y, score, weight = sample(3, weighted=weighted)
    whole = auc(y, score, sample_weight=weight)
    found = jackknife_errors(influence_on_area(classes(y, score, weight)))
    total = 0.0
    for label, errors in ((1, found[0]), (0, found[1])):
        n = errors.size
        for row, error in zip(np.flatnonzero(y == label), errors, strict=True):
            rest = np.arange(y.size) != row
            without = auc(y[rest], score[rest], sample_weight=weight[rest])
            change = np.sqrt((n - 1) / n) * (whole - without)
            assert error == pytest.approx(change, abs=1e-14)
            total += change**2
    assert auc_interval(y, score, sample_weight=weight).se ** 2 == pytest.approx(total)


@pytest.mark.parametrize(("max_fpr", "min_tpr"), PARTS)
def test_variance_of_parts_is_near_the_jackknifes(max_fpr, min_tpr):
    y, score, _ = sample(4, 150, 200, ties=False)

    def estimate(rows):
        return partial_auc(y[rows], score[rows], max_fpr=max_fpr, min_tpr=min_tpr)

    expected = jackknife(estimate, y)
    found = variance(influence_on_area(classes(y, score), max_fpr, min_tpr))
    assert found == pytest.approx(expected, rel=0.1)


def jackknife(estimate, y):
    """Return the variance from leaving out each row."""
    everything, total = np.arange(y.size), 0.0
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        without = np.array([estimate(everything[everything != row]) for row in rows])
        total += (rows.size - 1) / rows.size * ((without - without.mean()) ** 2).sum()
    return total


def test_variance_of_average_precision_is_near_the_bootstraps():
    y, score, _ = sample(5, 200, 600, ties=False)
    rng = np.random.default_rng(0)
    pos, neg = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    draws = []
    for _ in range(400):
        rows = np.append(rng.choice(pos, pos.size), rng.choice(neg, neg.size))
        draws.append(average_precision(y[rows], score[rows]))
    found = variance(influence_on_precision(classes(y, score)))
    assert np.sqrt(found) == pytest.approx(np.std(draws), rel=0.15)


def obuchowski(y, score, cluster):
    """Return the variance of Obuchowski (1997), with her letters, over all pairs."""
    X, Y = score[y == 1], score[y == 0]
    psi = (X[:, None] > Y) + 0.5 * (X[:, None] == Y)
    theta, M, N = psi.mean(), X.size, Y.size
    V10, V01 = psi.mean(axis=1), psi.mean(axis=0)
    in_pos, in_neg = cluster[y == 1], cluster[y == 0]
    units = np.unique(cluster)
    I10, I01, I = np.unique(in_pos).size, np.unique(in_neg).size, units.size  # noqa: E741
    S10 = S01 = S11 = 0.0
    for i in units:
        m_i, n_i = (in_pos == i).sum(), (in_neg == i).sum()
        pos = V10[in_pos == i].sum() - m_i * theta
        neg = V01[in_neg == i].sum() - n_i * theta
        S10 += pos**2
        S01 += neg**2
        S11 += pos * neg
    S10 *= I10 / ((I10 - 1) * M)
    S01 *= I01 / ((I01 - 1) * N)
    S11 *= I / (I - 1)
    return S10 / M + S01 / N + 2.0 * S11 / (M * N)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(3, 8))
def test_clustered_variance_is_obuchowskis(seed, n_clusters):
    y, score, _ = sample(seed)
    cluster = np.random.default_rng(seed).integers(0, n_clusters, y.size)
    if min(np.unique(cluster[y == label]).size for label in (0, 1)) < 2:
        return
    expected = obuchowski(y, score, cluster)
    value = auc(y, score)
    found = auc_interval(y, score, groups=np.array(list("abcdefgh"))[cluster])
    assert found.value == value
    expected = min(max(expected, 0.0), value * (1.0 - value))
    assert found.se**2 == pytest.approx(expected, rel=1e-9, abs=1e-16)
    assert 0.0 <= found.low <= value <= found.high <= 1.0


def test_clusters_of_one_row_are_independent_rows():
    y, score, _ = sample(6)
    single = auc_interval(y, score, groups=np.arange(y.size), method="wald")
    plain = auc_interval(y, score, method="wald")
    assert single == pytest.approx(plain, rel=1e-12)
    whole = partial_auc_interval(y, score, groups=np.arange(y.size))
    assert whole == pytest.approx(auc_interval(y, score)[:3], rel=1e-12)


def test_copies_in_a_cluster_add_nothing():
    y, score, _ = sample(7)
    plain = auc_interval(y, score, groups=np.arange(y.size))
    twice = [np.tile(x, 2) for x in (y, score, np.arange(y.size))]
    copies = auc_interval(twice[0], twice[1], groups=twice[2])
    assert copies == pytest.approx(plain, rel=1e-12)


def test_rows_of_weight_zero_are_not_in_clusters():
    y, score, _ = sample(8)
    cluster = np.arange(y.size) // 3
    weight = np.where(cluster == 2, 0.0, 1.5)
    kept = weight > 0.0
    found = auc_interval(y, score, groups=cluster, sample_weight=weight)
    expected = auc_interval(y[kept], score[kept], groups=cluster[kept])
    assert found == pytest.approx(expected, rel=1e-12)


def test_positives_of_one_cluster_say_little():
    y, score = np.repeat([1, 0], [5, 20]), np.arange(25.0) % 7
    found = auc_interval(y, score, groups=np.append(np.zeros(5), np.arange(20)))
    value = auc(y, score)
    assert found.se == pytest.approx(np.sqrt(value * (1.0 - value)))
    assert found.high - found.low > 0.9


def test_opposite_influences_in_each_cluster_cancel():
    # Each cluster has a positive and a negative whose influences add up to zero.
    y = np.tile([1, 0], 4)
    score = np.array([1, 1, 2, 2, 3, 3, 4, 4], float)
    found = auc_interval(y, score, groups=np.repeat(np.arange(4), 2))
    assert found.value == 0.5
    assert found.se == 0.0
    assert found.low < 0.5 < found.high


def test_bad_groups():
    y, score, _ = sample(9)
    with pytest.raises(ValueError, match=r"groups has shape \(3,\), but y has 22 rows"):
        auc_interval(y, score, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="one group only, 'a'"):
        auc_interval(y, score, groups=["a"] * 22)
    with pytest.raises(ValueError, match="groups holds values that cannot be sorted"):
        auc_interval(y, score, groups=np.array(["a", None] * 11, object))


@pytest.mark.parametrize("score", [np.zeros(10), np.repeat([1.0, 0.0], 5)])
@pytest.mark.parametrize("weight", [None, np.full(10, 0.3)])
def test_variances_of_rounding_do_not_make_intervals_narrow(score, weight):
    y = np.repeat([1, 0], 5)
    expected = auc_interval(y, score)
    found = partial_auc_interval(y, score, sample_weight=weight)
    assert found == pytest.approx(expected[:3], rel=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from(PARTS), st.booleans())
def test_intervals_hold_their_values(seed, part, standardise):
    y, score, weight = sample(seed, weighted=bool(seed % 3))
    options = {"max_fpr": part[0], "min_tpr": part[1], "standardise": standardise}
    value, low, high = partial_auc_interval(y, score, sample_weight=weight, **options)
    assert value == partial_auc(y, score, sample_weight=weight, **options)
    assert low <= value <= high
    assert high <= (1.0 if standardise else part[0] * (1.0 - part[1]))
    value, low, high = average_precision_interval(y, score, sample_weight=weight)
    assert value == average_precision(y, score, sample_weight=weight)
    assert 0.0 <= low <= value <= high <= 1.0


def test_repeated_cross_validation():
    rng = np.random.default_rng(1)
    y = np.tile([0, 1, 0, 1, 0], 12)
    score = rng.standard_normal((3, 60)) + y
    folds = np.array([rng.permutation(60) % 3 for _ in range(3)])
    value, _, _, se = cv_auc_interval(y, score, folds)
    # The mean over repeats and folds, and its jackknife: a row is left out of its fold
    # in every repetition.
    areas, errors = [], np.zeros(60)
    for s, f in zip(score, folds, strict=True):
        for k in range(3):
            here = f == k
            area = auc(y[here], s[here])
            areas.append(area)
            for row in np.flatnonzero(here):
                rest = here & (np.arange(60) != row)
                n = np.count_nonzero(y[here] == y[row])
                change = area - auc(y[rest], s[rest])
                errors[row] += np.sqrt((n - 1) / n) * change / 9.0
    assert value == pytest.approx(np.mean(areas))
    assert se == pytest.approx(np.sqrt(errors @ errors))


def test_the_same_cross_validation_twice_adds_nothing():
    rng = np.random.default_rng(2)
    y = np.append(np.tile([0, 1, 0], 8), [0, 0, 1])
    score, folds = rng.standard_normal(27) + y, np.append(np.arange(24) // 6, [4, 4, 4])
    once = cv_auc_interval(y, score, folds, dependence=0.3)
    twice = cv_auc_interval(y, [score] * 2, [folds] * 2, dependence=0.3)
    assert twice == pytest.approx(once)  # also of a fold with a single positive


def test_average_precision_of_a_single_row():
    for m, n in ((1, 9), (9, 1)):
        y, score = np.repeat([1, 0], [m, n]), np.arange(10.0) % 4
        value, low, high = average_precision_interval(y, score)
        assert low <= value <= high
        assert high - low > 0.8
