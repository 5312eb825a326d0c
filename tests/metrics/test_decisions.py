"""Measures of thresholds against loops over all thresholds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from scipy.stats import ks_2samp, norm
from sklearn.metrics import confusion_matrix, fbeta_score

from aucmax.metrics import (
    auc,
    best_accuracy,
    best_f_score,
    confusion_at,
    cost_curve,
    f_score,
    ks_statistic,
    lift_area,
    net_benefit,
    operating_point,
    roc_curve,
    roc_hull,
)

small = settings(deadline=None, max_examples=15)
seeds = st.integers(0, 100_000)


def sample(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 15, 2)
    y = rng.permutation(np.repeat([1, 0], [m, n]))
    score = (rng.standard_normal(m + n) + y).round(rng.integers(0, 3))
    return y, score, rng.integers(1, 5, m + n) / 2.0


def counts(y, score, weight, threshold):
    called = score >= threshold
    return [
        weight[called & (y == 1)].sum(),
        weight[called & (y == 0)].sum(),
        weight[~called & (y == 1)].sum(),
        weight[~called & (y == 0)].sum(),
    ]


@small
@given(seeds)
def test_confusion(seed):
    y, score, weight = sample(seed)
    for threshold in (-np.inf, *np.unique(score), 0.123, np.inf):
        found = confusion_at(y, score, threshold, sample_weight=weight)
        tp, fp, fn, tn = counts(y, score, weight, threshold)
        assert found[:5] == (threshold, tp, fp, fn, tn)
        rates = {
            "recall": (tp, tp + fn),
            "fpr": (fp, fp + tn),
            "precision": (tp, tp + fp),
            "npv": (tn, tn + fn),
            "accuracy": (tp + tn, weight.sum()),
        }
        for name, (hits, rows) in rates.items():
            rate = getattr(found, name)
            if rows == 0.0:
                assert np.isnan(rate).all()
                continue
            assert rate.value == hits / rows
            assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
        expected = (tp + fp) / tp if tp else np.nan
        np.testing.assert_equal(found.rows_per_hit, expected)
        plain = confusion_matrix(y, score >= threshold, sample_weight=weight)
        assert plain.ravel().tolist() == [tn, fp, fn, tp]


@small
@given(seeds, st.sampled_from([0.5, 1.0, 2.0]))
def test_f_scores(seed, beta):
    y, score, weight = sample(seed)
    values = []
    for threshold in np.unique(score)[::-1]:
        expected = fbeta_score(y, score >= threshold, beta=beta, sample_weight=weight)
        found = f_score(y, score, threshold, beta=beta, sample_weight=weight)
        assert found == pytest.approx(expected)
        values.append(expected)
    best = best_f_score(y, score, beta=beta, sample_weight=weight)
    assert best.value == pytest.approx(max(values))
    again = f_score(y, score, best.threshold, beta=beta, sample_weight=weight)
    assert again == pytest.approx(best.value)


@small
@given(seeds)
def test_best_accuracy(seed):
    y, score, weight = sample(seed)
    thresholds = np.append(score, np.inf)
    accuracies = [weight[(score >= t) == (y == 1)].sum() for t in thresholds]
    best = best_accuracy(y, score, sample_weight=weight)
    assert best.value == pytest.approx(max(accuracies) / weight.sum())
    at = confusion_at(y, score, best.threshold, sample_weight=weight)
    assert at.accuracy.value == pytest.approx(best.value)
    point = operating_point(y, score, cost_ratio=1.0, sample_weight=weight)
    assert point.threshold == best.threshold


@small
@given(seeds)
def test_ks_and_lift_area(seed):
    y, score, weight = sample(seed)
    ks = ks_statistic(y, score)
    expected = ks_2samp(score[y == 1], score[y == 0], alternative="less").statistic
    assert ks.value == pytest.approx(expected)
    tp, fp, fn, tn = counts(y, score, np.ones(y.size), ks.threshold)
    assert tp / (tp + fn) - fp / (fp + tn) == pytest.approx(ks.value)
    rate = weight[y == 1].sum() / weight.sum()
    area = 0.5 * rate + (1.0 - rate) * auc(y, score, sample_weight=weight)
    assert lift_area(y, score, sample_weight=weight) == pytest.approx(area)


def test_net_benefit():
    rng = np.random.default_rng(0)
    p = rng.random(300).round(2)
    y = (rng.random(300) < p).astype(int)
    weight = rng.uniform(0.1, 2.0, 300)
    for w in (np.ones(300), weight):
        curve = net_benefit(y, p, sample_weight=w)
        assert curve.threshold.size == 99
        for k, t in enumerate(curve.threshold):
            gain = (p >= t) * np.where(y == 1, 1.0, -t / (1.0 - t))
            mean = np.average(gain, weights=w)
            error = np.sqrt(np.average((gain - mean) ** 2, weights=w))
            rows = w.sum() ** 2 / (w @ w)
            half = norm.ppf(0.975) * error / np.sqrt(rows)
            assert curve.net_benefit[k] == pytest.approx(mean, abs=1e-12)
            assert curve.high[k] - mean == pytest.approx(half, abs=1e-12)
            assert mean - curve.low[k] == pytest.approx(half, abs=1e-12)
            everything = np.average(np.where(y == 1, 1.0, -t / (1.0 - t)), weights=w)
            assert curve.treat_all[k] == pytest.approx(everything)


def upper_hull(x, y):
    """Return the corners above the diagonal, from SciPy's hull with (1, 0)."""
    points = np.append(np.column_stack([x, y]), [[1.0, 0.0]], axis=0)
    corners = points[ConvexHull(points).vertices]
    corners = corners[(corners != [1.0, 0.0]).any(axis=1)]
    return corners[np.lexsort([corners[:, 1], corners[:, 0]])]


@small
@given(seeds)
def test_hull(seed):
    y, score, weight = sample(seed)
    hull = roc_hull(y, score, sample_weight=weight)
    curve = roc_curve(y, score, sample_weight=weight, drop_intermediate=False)
    expected = upper_hull(curve.fpr, curve.tpr)
    np.testing.assert_allclose(np.column_stack(hull[:2]), expected, atol=1e-12)
    area = np.trapezoid(expected[:, 1], expected[:, 0])
    assert hull.area == pytest.approx(area)
    for fpr, tpr, threshold in zip(*hull[:3], strict=True):
        tp, fp, fn, tn = counts(y, score, weight, threshold)
        assert (fp / (fp + tn), tp / (tp + fn)) == pytest.approx((fpr, tpr))


@small
@given(seeds)
def test_cost_curve(seed):
    y, score, weight = sample(seed)
    found = cost_curve(y, score, sample_weight=weight)
    curve = roc_curve(y, score, sample_weight=weight, drop_intermediate=False)
    for c, cost, threshold in zip(*found, strict=True):
        costs = c * (1.0 - curve.tpr) + (1.0 - c) * curve.fpr
        assert cost == pytest.approx(costs.min(), abs=1e-12)
        assert cost <= min(c, 1.0 - c) + 1e-12
        tp, fp, fn, tn = counts(y, score, weight, threshold)
        at = c * fn / (tp + fn) + (1.0 - c) * fp / (fp + tn)
        assert at == pytest.approx(cost, abs=1e-12)


def test_errors():
    y, score = [0, 1], [0.2, 0.8]
    with pytest.raises(ValueError, match="threshold is NaN"):
        confusion_at(y, score, np.nan)
    with pytest.raises(ValueError, match="beta=0"):
        best_f_score(y, score, beta=0)
    with pytest.raises(ValueError, match="thresholds must be a list of numbers"):
        net_benefit(y, score, thresholds=[0.0, 0.5])
    with pytest.raises(ValueError, match=r"conditions=1\.5"):
        cost_curve(y, score, conditions=[0.5, 1.5])
