"""roc_curve: counting at each threshold and scikit-learn as oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_curve as sklearn_roc_curve

from aucmax.metrics import auc, roc_curve

patient = settings(deadline=None)  # the first call compiles


@st.composite
def rows(draw):
    n = draw(st.integers(2, 60))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 1)))
    y[:2] = draw(st.permutations([0, 1]))
    levels = st.integers(-6, 6) if draw(st.booleans()) else st.floats(-1e3, 1e3)
    return y, np.array(draw(st.lists(levels, min_size=n, max_size=n)), dtype=float)


@patient
@given(rows())
def test_every_point_is_a_count(data):
    y, score = data
    fpr, tpr, thresholds = roc_curve(y, score, drop_intermediate=False)
    assert thresholds.tolist() == [np.inf, *np.unique(score)[::-1]]
    assert tpr.tolist() == [np.mean(score[y == 1] >= t) for t in thresholds]
    assert fpr.tolist() == [np.mean(score[y == 0] >= t) for t in thresholds]


@patient
@given(rows(), st.booleans(), st.booleans(), st.data())
def test_is_scikit_learns(data, drop, weighted, more):
    y, score = data
    weight = None
    if weighted:  # integers, for which "on a line" is not a matter of rounding
        weight = more.draw(hnp.arrays(np.int64, y.size, elements=st.integers(0, 3)))
        weight[:2] += 1
    expected = sklearn_roc_curve(y, score, sample_weight=weight, drop_intermediate=drop)
    got = roc_curve(y, score, sample_weight=weight, drop_intermediate=drop)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_real_weights():
    rng = np.random.default_rng(0)
    y, score, weight = (
        rng.integers(0, 2, 999),
        rng.integers(0, 99, 999),
        rng.random(999),
    )
    options = {"sample_weight": weight, "drop_intermediate": False}
    expected = sklearn_roc_curve(y, score, **options)
    for ours, theirs in zip(roc_curve(y, score, **options), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)


@patient
@given(rows())
def test_its_area_is_the_auc(data):
    y, score = data
    for drop in (False, True):
        fpr, tpr, _ = roc_curve(y, score, drop_intermediate=drop)
        area = np.diff(fpr) @ (tpr[1:] + tpr[:-1]) / 2
        assert area == pytest.approx(auc(y, score), abs=1e-14)


def test_the_positive_label_may_be_chosen():
    y, score = ["bad", "good", "good"], [0.2, 0.1, 0.4]
    good = roc_curve(y, score)
    bad = roc_curve(y, score, pos_label="bad")
    assert good.tpr.tolist() == bad.fpr.tolist() == [0.0, 0.5, 0.5, 1.0]
    assert good.fpr.tolist() == bad.tpr.tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_scores_and_types(dtype):
    score = np.array([-np.inf, 0.1, np.inf], dtype=dtype)
    fpr, tpr, thresholds = roc_curve([0, 1, 1], score)
    assert thresholds.tolist() == [np.inf, np.inf, float(dtype(0.1)), -np.inf]
    assert tpr.tolist() == [0.0, 0.5, 1.0, 1.0]
    assert fpr.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert {a.dtype for a in (fpr, tpr, thresholds)} == {np.dtype(np.float64)}
