"""partial_auc: the curve clipped segment by segment, scikit-learn, symmetries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

from aucmax.metrics import auc, partial_auc, roc_curve

patient = settings(deadline=None)  # the first call compiles
shares = st.floats(0.01, 1.0) | st.sampled_from([0.1, 0.25, 0.5, 1.0])


@st.composite
def rows(draw):
    n = draw(st.integers(2, 40))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 1)))
    y[:2] = draw(st.permutations([0, 1]))
    score = draw(hnp.arrays(np.float64, n, elements=st.integers(0, 12)))
    weight = draw(hnp.arrays(np.float64, n, elements=st.floats(0.01, 10.0)))
    return y, score, weight


def clipped(y, score, max_fpr, min_tpr, weight=None):
    """Add up the trapezoid of each segment of the curve that lies in the box."""
    fpr, tpr, _ = roc_curve(y, score, sample_weight=weight, drop_intermediate=False)
    area = 0.0
    for u, v, du, dv in zip(fpr, tpr, np.diff(fpr), np.diff(tpr), strict=False):
        begin = 0.0 if v >= min_tpr else (min_tpr - v) / dv if dv > 0 else 1.0
        end = 1.0 if u + du <= max_fpr else (max_fpr - u) / du if du > 0 else 0.0
        if begin < end:
            height = v + dv * (begin + end) / 2 - min_tpr
            area += (end - begin) * du * height
    return area


@patient
@given(rows(), shares, st.floats(0.0, 0.99) | st.sampled_from([0.0, 0.5]))
def test_is_what_lies_in_the_box(data, max_fpr, min_tpr):
    y, score, weight = data
    for w in (None, weight):
        options = {"max_fpr": max_fpr, "min_tpr": min_tpr, "sample_weight": w}
        got = partial_auc(y, score, **options)
        expected = clipped(y, score, max_fpr, min_tpr, w)
        assert got == pytest.approx(expected, rel=1e-11, abs=1e-14)
        assert 0.0 <= got <= max_fpr * (1.0 - min_tpr)


@patient
@given(rows(), shares)
def test_is_scikit_learns_if_standardised(data, max_fpr):
    y, score, weight = data
    for w in (None, weight):
        expected = roc_auc_score(y, score, max_fpr=max_fpr, sample_weight=w)
        got = partial_auc(y, score, max_fpr=max_fpr, standardise=True, sample_weight=w)
        assert got == pytest.approx(expected, rel=1e-11)


@patient
@given(rows(), shares)
def test_the_whole_is_the_auc_and_parts_can_be_mirrored(data, share):
    y, score, _ = data
    whole = auc(y, score)
    assert partial_auc(y, score) == pytest.approx(whole, abs=1e-14)
    assert partial_auc(y, score, standardise=True) == pytest.approx(whole, abs=1e-14)
    if share < 1.0:  # classes and scores turned round mirror the curve
        left = partial_auc(y, score, max_fpr=share)
        turned = partial_auc(1 - y, -score, min_tpr=1 - share)
        assert left == pytest.approx(turned, abs=1e-13)
        assert left <= whole + 1e-13


@patient
@given(rows(), st.integers(1, 4))
def test_weights_are_repetitions(data, seed):
    y, score, _ = data
    times = np.random.default_rng(seed).integers(1, 4, y.size)
    options = {"max_fpr": 0.3, "min_tpr": 0.2}
    repeated = partial_auc(np.repeat(y, times), np.repeat(score, times), **options)
    got = partial_auc(y, score, sample_weight=times, **options)
    assert got == pytest.approx(repeated, abs=1e-14)


@pytest.mark.parametrize("max_fpr", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("min_tpr", [0.0, 0.3, 0.9])
def test_perfect_is_one_and_chance_a_half(max_fpr, min_tpr):
    options = {"max_fpr": max_fpr, "min_tpr": min_tpr, "standardise": True}
    y = np.arange(20) % 2
    assert partial_auc(y, y, **options) == pytest.approx(1.0, abs=1e-15)
    assert partial_auc(y, np.zeros(20), **options) == pytest.approx(0.5, abs=1e-15)
    assert partial_auc(y, -y, max_fpr=max_fpr, min_tpr=min_tpr) == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_fpr": 0.0}, r"max_fpr=0.0: expected a number in \(0, 1\]"),
        ({"max_fpr": 1.1}, r"max_fpr=1.1: expected a number in \(0, 1\]"),
        ({"max_fpr": np.nan}, r"max_fpr=.*: expected a number in"),
        ({"max_fpr": "all"}, r"max_fpr='all': expected a number in \(0, 1\]"),
        ({"min_tpr": 1.0}, r"min_tpr=1.0: expected a number in \[0, 1\)"),
        ({"min_tpr": -0.1}, r"min_tpr=.*: expected a number in"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        partial_auc([0, 1], [1, 2], **options)
