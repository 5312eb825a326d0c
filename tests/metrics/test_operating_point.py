"""operating_point: the best of all thresholds, tried one by one."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aucmax.metrics import operating_point

patient = settings(deadline=None)  # the first call compiles
shares = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])


@st.composite
def rows(draw):
    n = draw(st.integers(2, 30))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 1)))
    y[:2] = draw(st.permutations([0, 1]))
    return y, draw(hnp.arrays(np.float64, n, elements=st.integers(0, 9)))


def counts(y, score, threshold):
    called = score >= threshold
    tp, fp = np.sum(called & (y == 1)), np.sum(called & (y == 0))
    return tp, fp


def best(y, score, feasible, value):
    """Return the highest threshold of the greatest value, of all that are feasible."""
    thresholds = [np.inf, *np.unique(score)[::-1]]
    fit = [t for t in thresholds if feasible(*counts(y, score, t))]
    return max(fit, key=lambda t: value(*counts(y, score, t))) if fit else None


def check(y, score, point, threshold):
    """Compare with counting: the first of equals is the highest threshold."""
    assert point.threshold == threshold
    tp, fp = counts(y, score, threshold)
    assert point.tpr == tp / np.sum(y == 1)
    assert point.fpr == fp / np.sum(y == 0)
    assert point.rows == tp + fp
    if tp + fp:
        assert point.precision == tp / (tp + fp)
    else:
        assert math.isnan(point.precision)


@patient
@given(rows(), st.integers(0, 40))
def test_at_most_so_many_rows(data, wanted):
    y, score = data
    expected = best(y, score, lambda tp, fp: tp + fp <= wanted, lambda tp, fp: tp + fp)
    check(y, score, operating_point(y, score, rows=wanted), expected)


@patient
@given(rows(), shares)
def test_most_positives_at_a_false_positive_rate(data, wanted):
    y, score = data
    n = np.sum(y == 0)
    expected = best(y, score, lambda tp, fp: fp / n <= wanted, lambda tp, fp: tp)
    check(y, score, operating_point(y, score, fpr=wanted), expected)


@patient
@given(rows(), shares)
def test_fewest_negatives_at_a_true_positive_rate(data, wanted):
    y, score = data
    m = np.sum(y == 1)
    expected = best(y, score, lambda tp, fp: tp / m >= wanted, lambda tp, fp: -fp)
    check(y, score, operating_point(y, score, tpr=wanted), expected)


@patient
@given(rows(), st.floats(0.01, 1.0) | st.sampled_from([0.5, 0.75, 1.0]))
def test_most_positives_at_a_precision(data, wanted):
    y, score = data

    def feasible(tp, fp):
        return tp + fp > 0 and tp / (tp + fp) >= wanted

    expected = best(y, score, feasible, lambda tp, fp: tp)
    if expected is None:
        with pytest.raises(ValueError, match=r"no threshold has a precision of"):
            operating_point(y, score, precision=wanted)
    else:
        check(y, score, operating_point(y, score, precision=wanted), expected)


@patient
@given(rows(), st.sampled_from([0.125, 0.5, 1.0, 2.0, 8.0]))
def test_lowest_cost(data, ratio):
    y, score = data
    expected = best(y, score, lambda *_: True, lambda tp, fp: tp - ratio * fp)
    check(y, score, operating_point(y, score, cost_ratio=ratio), expected)


@patient
@given(rows(), st.sampled_from([-np.inf, -1.0, 0.0, 3.0, 3.5, 9.0, 10.0, np.inf]))
def test_any_threshold(data, threshold):
    y, score = data
    check(y, score, operating_point(y, score, threshold=threshold), threshold)


@patient
@given(rows(), st.integers(0, 9))
def test_weights_are_repetitions(data, seed):
    y, score = data
    times = np.random.default_rng(seed).integers(1, 4, y.size)
    for purpose in ({"fpr": 0.2}, {"tpr": 0.7}, {"cost_ratio": 0.5}, {"threshold": 4}):
        got = operating_point(y, score, sample_weight=times, **purpose)
        expected = operating_point(
            np.repeat(y, times), np.repeat(score, times), **purpose
        )
        assert got == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(40))
def test_tenths_are_tenths(seed):
    """Sums of 0.1 are off by rounding: thresholds are those of exact arithmetic."""
    rng = np.random.default_rng(seed)
    y, score = np.arange(40) % 2, rng.integers(0, 60, 40) * 1.0
    times = rng.integers(1, 2 + seed % 3, 40)
    for twentieths in range(21):
        check_tenths(y, score, times, twentieths)


def check_tenths(y, score, times, twentieths):
    wanted = Fraction(twentieths, 20)

    def exact(y, score, threshold):
        """Return the weight of either class from the threshold up, in tenths."""
        called = times * (score >= threshold)
        return (Fraction(int(called @ (y == side)), 10) for side in (1, 0))

    everything = [np.inf, *np.unique(score)[::-1]]
    counted = [(*exact(y, score, t), t) for t in everything]
    m, n, _ = counted[-1]
    purposes = {
        "fpr": (lambda tp, fp: fp / n <= wanted, lambda tp, fp: tp),
        "tpr": (lambda tp, fp: tp / m >= wanted, lambda tp, fp: -fp),
    }
    if wanted > 0:
        purposes |= {
            "precision": (
                lambda tp, fp: tp + fp > 0 and tp / (tp + fp) >= wanted,
                lambda tp, fp: tp,
            ),
            "cost_ratio": (lambda tp, fp: True, lambda tp, fp: tp - wanted * fp),
        }
    for purpose, (feasible, value) in purposes.items():
        fit = [(value(tp, fp), t) for tp, fp, t in counted if feasible(tp, fp)]
        if fit:
            best = next(t for v, t in fit if v == max(fit)[0])
            given = {purpose: twentieths / 20, "sample_weight": times * 0.1}
            assert operating_point(y, score, **given).threshold == best, purpose


def test_tenths_of_many_rows_are_tenths():
    y, score = np.arange(200_000) % 2, np.arange(200_000.0)
    weight = np.full(200_000, 0.1)
    for rate in (0.1, 0.3, 0.7):
        for purpose in ("fpr", "tpr"):
            point = operating_point(y, score, sample_weight=weight, **{purpose: rate})
            assert point.threshold == operating_point(y, score, **{purpose: rate})[0]
            assert getattr(point, purpose) == pytest.approx(rate, abs=1e-15)


def test_nothing_at_all_is_reachable_with_infinite_scores():
    y, score = np.array([1, 0, 0]), np.array([0.0, np.inf, 1.0])
    point = operating_point(y, score, fpr=0.0)
    assert point.tpr == point.fpr == point.rows == 0.0
    assert not np.any(score >= point.threshold)
    assert operating_point(y, score[[0, 2, 2]], fpr=0.0).threshold == np.inf


def test_float32_thresholds_call_the_same_rows():
    y, score = np.array([0, 1, 1]), np.array([0.1, 0.3, 0.3], np.float32)
    point = operating_point(y, score, tpr=1.0)
    assert np.count_nonzero(score >= point.threshold) == point.rows == 2


@pytest.mark.parametrize(
    ("purpose", "message"),
    [
        ({}, r"give one of fpr, tpr, .* not none of them"),
        ({"fpr": 0.1, "tpr": 0.9}, r"give one of .* not fpr, tpr"),
        ({"fpr": 1.5}, r"fpr=1.5: expected a number in \[0, 1\]"),
        ({"tpr": math.nan}, r"tpr=nan: expected a number in \[0, 1\]"),
        ({"precision": 0.0}, r"precision=0.0: expected a number in \(0, 1\]"),
        ({"cost_ratio": 0.0}, r"cost_ratio must be finite and above 0, not be 0.0"),
        ({"cost_ratio": math.inf}, r"cost_ratio must be finite"),
        ({"threshold": math.nan}, r"threshold is NaN"),
        ({"precision": 0.9}, r"precision of 0.9; the highest is 0.5"),
    ],
)
def test_errors(purpose, message):
    with pytest.raises(ValueError, match=message):
        operating_point([0, 1], [1, 1], **purpose)


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
def test_thresholds_are_compared_as_numpy_does(kind):
    score = np.array([0.7, 0.3, 0.7000001, 0.1], np.float32)
    y = [1, 0, 1, 0]
    for threshold in (0.7, 0.3, 0.1, 1e300 if kind is not np.float32 else 1e30):
        with np.errstate(over="ignore"):
            called = np.count_nonzero(score >= kind(threshold))
        got = operating_point(y, score, threshold=kind(threshold))
        assert got.rows == called
        assert type(got.threshold) is float
