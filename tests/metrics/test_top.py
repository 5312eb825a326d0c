"""Precision and lift: all orders of tied rows and scikit-learn as oracles."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binomtest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import average_precision_score

from aucmax import metrics
from aucmax.metrics import (
    average_precision,
    breakeven,
    lift_at,
    lift_curve,
    precision_at,
    precision_interval,
)
from aucmax.metrics.top import wilson

patient = settings(deadline=None)  # the first call compiles


@st.composite
def rows(draw, max_size=60, levels=9):
    n = draw(st.integers(2, max_size))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 1)))
    y[:2] = draw(st.permutations([0, 1]))
    score = draw(hnp.arrays(np.float64, n, elements=st.integers(0, levels)))
    weight = draw(hnp.arrays(np.float64, n, elements=st.floats(0.01, 10.0)))
    return y, score, weight


@patient
@given(rows())
def test_average_precision_is_scikit_learns(data):
    y, score, weight = data
    for w in (None, weight):
        expected = average_precision_score(y, score, sample_weight=w)
        got = average_precision(y, score, sample_weight=w)
        assert got == pytest.approx(expected, rel=1e-11)


@patient
@given(rows(max_size=6, levels=2), st.data())
def test_precision_is_the_mean_over_all_orders_of_ties(data, more):
    y, score, _ = data
    k = more.draw(st.integers(1, y.size))
    ordered = [
        y[list(order)]
        for order in itertools.permutations(range(y.size))
        if np.all(np.diff(score[list(order)]) <= 0)
    ]
    expected = np.mean([labels[:k].mean() for labels in ordered])
    assert precision_at(y, score, k) == pytest.approx(expected, rel=1e-12)
    assert lift_at(y, score, k) == pytest.approx(expected / y.mean(), rel=1e-12)


@patient
@given(rows(), st.data())
def test_without_ties_it_is_a_count(data, more):
    y, score, _ = data
    score = score + np.linspace(0.0, 0.5, y.size)
    k = more.draw(st.integers(1, y.size))
    best = np.argsort(-score)[:k]
    assert precision_at(y, score, k) == y[best].mean()


@patient
@given(rows(), st.floats(0.001, 0.999))
def test_a_share_is_on_the_curve_of_gains(data, share):
    y, score, weight = data
    for w in (None, weight):
        curve = lift_curve(y, score, sample_weight=w)
        gain = np.interp(share, np.append(0, curve.share), np.append(0, curve.gain))
        lift = lift_at(y, score, share, sample_weight=w)
        assert lift == pytest.approx(gain / share, rel=1e-9)
        base = np.average(y, weights=w)
        precision = precision_at(y, score, share, sample_weight=w)
        assert precision == pytest.approx(lift * base, rel=1e-9)


@patient
@given(rows())
def test_the_lift_curve_is_counts(data):
    y, score, weight = data
    curve = lift_curve(y, score, sample_weight=weight)
    assert curve.thresholds.tolist() == np.unique(score)[::-1].tolist()
    for share, gain, lift, threshold in zip(*curve, strict=True):
        inside = score >= threshold
        assert share == pytest.approx(weight[inside].sum() / weight.sum(), rel=1e-11)
        expected = weight[inside & (y == 1)].sum() / weight[y == 1].sum()
        assert gain == pytest.approx(expected, rel=1e-11, abs=1e-15)
        assert lift == gain / share
    assert curve.share[-1] == curve.gain[-1] == curve.lift[-1] == 1.0


@patient
@given(rows())
def test_breakeven_is_where_precision_equals_recall(data):
    y, score, weight = data
    positives = int(y.sum())
    got = breakeven(y, score)
    assert got == pytest.approx(precision_at(y, score, positives), rel=1e-12)
    # Real weights: by bisection on the length of the list.
    got = breakeven(y, score, sample_weight=weight)
    low, high = 0.0, 1.0
    base = np.average(y, weights=weight)
    for _ in range(60):
        share = (low + high) / 2
        precision = precision_at(y, score, share, sample_weight=weight)
        recall = precision * share / base
        if precision == 0.0 or precision > recall:
            low = share
        else:
            high = share
    assert got == pytest.approx(precision, rel=1e-6, abs=1e-6)


@patient
@given(rows(), st.integers(0, 9))
def test_weights_are_repetitions(data, seed):
    y, score, _ = data
    times = np.random.default_rng(seed).integers(1, 4, y.size)
    again = np.repeat(y, times), np.repeat(score, times)
    k = 1 + seed % y.size
    for measure, more in (
        (precision_at, (k,)),
        (precision_at, (0.3,)),
        (lift_at, (k,)),
        (average_precision, ()),
        (breakeven, ()),
    ):
        got = measure(y, score, *more, sample_weight=times)
        assert got == pytest.approx(measure(*again, *more), rel=1e-12)


@pytest.mark.parametrize("hits", [0, 1, 7, 49, 50])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_interval_is_wilsons(hits, level):
    y = np.append(np.arange(50) < hits, [True, False])
    score = np.append(np.ones(50), [0, 0])
    expected = binomtest(hits, 50).proportion_ci(level, method="wilson")
    value, low, high = precision_interval(y, score, 50, level=level)
    assert value == hits / 50
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0.0 <= low <= value <= high <= 1.0


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (0, r"k=0: expected a number of rows, at least 1, or a share"),
        (-3, r"k=-3: expected"),
        (5, r"k=5, but there are only 4 rows"),
        (1.0, r"k=1.0: expected a number of rows, an integer, or a share"),
        (0.0, r"k=0.0: expected"),
        (100.0, r"k=100.0: expected"),
        (np.nan, r"k=nan: expected"),
        (True, r"k=True: expected"),
        ("10", r"k='10': expected"),
        (None, r"k=None: expected"),
    ],
)
@pytest.mark.parametrize("measure", [precision_at, lift_at, precision_interval])
def test_a_wrong_length_is_explained(measure, k, message):
    with pytest.raises(ValueError, match=message):
        measure([0, 1, 0, 1], [1, 2, 3, 4], k)


@pytest.mark.parametrize("n", [100, 1000, 100_000])
def test_tenths_add_up(n):
    """The list may be all of the rows: 0.1 times 100 is not below 10."""
    y, score, weight = np.arange(n) % 2, np.arange(float(n)), np.full(n, 0.1)
    for measure in (precision_at, lift_at):
        found = measure(y, score, n // 10, sample_weight=weight)
        assert found == pytest.approx(measure(y, score, n), rel=1e-14)
    with pytest.raises(ValueError, match=rf"but there are only {n // 10} rows"):
        precision_at(y, score, n // 10 + 1, sample_weight=weight)
    assert lift_curve(y, score, sample_weight=weight).gain.max() == 1.0


def test_types():
    y, score = [0, 1, 1], np.array([1, 2, 3], np.float32)
    for k in (np.int32(2), np.float32(0.5), 2, 0.5):
        assert type(precision_at(y, score, k)) is float
        assert type(lift_at(y, score, k)) is float
    assert type(average_precision(y, score)) is float
    assert type(breakeven(y, score)) is float
    assert {part.dtype for part in lift_curve(y, score)} == {np.dtype(np.float64)}


@pytest.mark.parametrize(
    "measure",
    ["partial_auc", "average_precision", "lift_curve", "breakeven"],
)
def test_what_is_wrong_with_the_rows_is_said(measure):
    measure = getattr(metrics, measure)
    with pytest.raises(ValueError, match="score is NaN at row 1"):
        measure([0, 1], [1, np.nan])
    if measure is metrics.lift_curve:
        with pytest.raises(ValueError, match="one class only"):
            measure([1, 1], [1, 2])
    else:
        with pytest.warns(UndefinedMetricWarning, match="one class only"):
            assert np.isnan(measure([1, 1], [1, 2]))
    with pytest.raises(ValueError, match="pos_label=3 does not occur"):
        measure([0, 1], [1, 2], pos_label=3)


@patient
@given(rows(), st.floats(0.05, 0.95))
def test_weighted_precision_is_worth_so_many_rows(data, share):
    y, score, weight = data
    value, low, high = precision_interval(y, score, share, sample_weight=weight)
    expected = precision_at(y, score, share, sample_weight=weight)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert 0.0 <= low <= value <= high <= 1.0
    equal = np.full(y.size, 3.7)
    got = precision_interval(y, score, share, sample_weight=equal)
    expected = precision_interval(y, score, share)
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)
    # Wilson's interval has the width of so many rows; by hand, over a list of whole
    # rows that are not tied.
    score = np.random.default_rng(0).permutation(y.size).astype(float)
    order = np.argsort(-score)
    k = max(1, int(share * y.size))
    mine = weight[order[:k]]
    count = mine.sum() ** 2 / (mine**2).sum()
    length = float(mine.sum() / weight.sum())
    if length < 1.0:
        got = precision_interval(y, score, length, sample_weight=weight)
        share = np.average(y[order[:k]], weights=mine)
        assert got == pytest.approx(wilson(share, count, 0.95), rel=1e-9, abs=1e-12)


def exact_average_precision(y, score, weight):
    """Return the sum over the distinct scores, in fractions."""
    w = [Fraction(float(one)) for one in weight]
    rows = range(len(y))
    total, area, before = sum(w[i] for i in rows if y[i]), Fraction(0), Fraction(0)
    for t in sorted(set(score), reverse=True):
        tp = sum((w[i] for i in rows if y[i] and score[i] >= t), Fraction(0))
        called = sum(w[i] for i in rows if score[i] >= t)
        area += (tp - before) / total * tp / called
        before = tp
    return float(area)


def test_weights_of_twenty_orders_of_magnitude():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = rng.integers(4, 12)
        y, score = rng.permutation(np.arange(n) % 2), rng.integers(0, 8, n)
        weight = 10.0 ** rng.uniform(-10, 10, n)
        got = average_precision(y, score, sample_weight=weight)
        expected = exact_average_precision(y, score, weight)
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-15)
