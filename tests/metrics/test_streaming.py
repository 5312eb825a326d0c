"""Bounds of a streaming AUC hold the exact AUC, whatever the scores and the parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucmax.metrics import StreamingAUC, auc

nasty = st.one_of(
    st.sampled_from(
        [-np.inf, np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0, 1e308, -1e308]
    ),
    st.sampled_from([1.0 + k * 2.0**-52 for k in range(4)]),
    st.sampled_from([-1.0 - k * 2.0**-14 for k in range(9)]),
    st.floats(allow_nan=False),
)
rows = st.lists(st.tuples(st.booleans(), nasty), min_size=2, max_size=40)


@settings(deadline=None, max_examples=200)
@given(rows, st.sampled_from([1, 5, 12, 52]), st.randoms(use_true_random=False))
def test_bounds_hold_the_auc(data, bits, random):
    y, score = (np.array(column) for column in zip(*data, strict=True))
    stream = StreamingAUC(bits).update(y, score)
    found = stream.bounds()
    if y.all() or not y.any():
        assert np.isnan(found).all()
        return
    exact = auc(y, score)
    assert 0.0 <= found.low <= exact <= found.high <= 1.0
    assert found.low <= found.value <= found.high
    if bits == 52:  # only equal scores share a bucket
        assert found.value == pytest.approx(exact, abs=1e-15)
    # Parts in any order are the same.
    parts = [[] for _ in range(4)]
    for row in data:
        random.choice(parts).append(row)
    random.shuffle(parts)
    merged = StreamingAUC(bits)
    for part in parts:
        labels, scores = [row[0] for row in part], [row[1] for row in part]
        other = StreamingAUC(bits)
        if part:
            other.update(labels, scores)
        merged.merge(other)
    assert merged.bounds() == found


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_error_is_small(scale):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    score = scale * (rng.standard_normal(20_000) + y)
    found = StreamingAUC().update(y, score).bounds()
    exact = auc(y, score)
    assert found.low <= exact <= found.high
    assert found.high - found.low < 2e-4
    assert found.value == pytest.approx(exact, abs=2e-6)


def test_buckets_have_the_stated_width():
    stream = StreamingAUC(12).update([0, 1], [0.9000, 0.9002])
    assert stream.bounds() == (1.0, 1.0, 1.0)
    same = StreamingAUC(12).update([0, 1], [1.0, 1.0 + 2.0**-13])
    assert same.bounds() == (0.5, 0.0, 1.0)


def test_weights_count_as_rows():
    rng = np.random.default_rng(1)
    y, score, k = rng.integers(0, 2, 80), rng.random(80), rng.integers(0, 4, 80)
    weighted = StreamingAUC(6).update(y, score, sample_weight=k)
    copies = StreamingAUC(6).update(np.repeat(y, k), np.repeat(score, k))
    assert weighted.bounds() == copies.bounds()


def test_empty_parts_and_signed_labels():
    stream = StreamingAUC().update([], []).update([-1.0, 1.0], [0.1, 0.2])
    assert stream.bounds().value == 1.0
    assert stream.merge(StreamingAUC()).bounds().value == 1.0


def test_errors():
    stream = StreamingAUC()
    with pytest.raises(ValueError, match="bits=0"):
        StreamingAUC(0)
    with pytest.raises(ValueError, match="y is 2 at row 1: expected 0, -1 or 1"):
        stream.update([0, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="y must be a list of numbers"):
        stream.update(["a", "b"], [0.1, 0.2])
    with pytest.raises(ValueError, match="score is NaN at row 1"):
        stream.update([0, 1], [0.1, np.nan])
    with pytest.raises(ValueError, match="sample_weight has 1 rows, but y has 2"):
        stream.update([0, 1], [0.1, 0.2], sample_weight=[1.0])
    with pytest.raises(ValueError, match="the parts have 12 and 8 bits"):
        stream.merge(StreamingAUC(8))
    assert np.isnan(stream.bounds()).all()  # nothing was added
