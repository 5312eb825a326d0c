"""Kernels that count pairs, against loops over all pairs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aucmax.metrics._ranking import (
    _CHUNK,
    _TOGETHER,
    merge_counts,
    mid_ranks,
    score_counts,
    split,
    weighted_win_fraction,
    win_fraction,
    wins,
)

# Few distinct values, so that most scores are tied; -0.0 ties with 0.0.
levels = st.sampled_from([-np.inf, -2.5, -1.0, -0.0, 0.0, 1e-300, 1.0, 3.0, np.inf])
scores = hnp.arrays(np.float64, st.integers(1, 150), elements=levels)
patient = settings(deadline=None)  # the first call compiles


def below(scores, x):
    """Count the scores below x, those equal to it half."""
    return np.sum(scores < x) + 0.5 * np.sum(scores == x)


def pair_table(pos, neg):
    """Return, for all pairs, 1 if the positive is higher, ½ if tied, else 0."""
    return (pos[:, None] > neg) + 0.5 * (pos[:, None] == neg)


@patient
@given(scores, scores)
def test_mid_ranks_count_what_lies_below(among, queries):
    expected = [below(among, x) for x in queries]
    assert mid_ranks(*score_counts(among), queries).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 3, _TOGETHER - 1, _TOGETHER, _TOGETHER + 1, 1000])
@pytest.mark.parametrize("n_queries", [1, _TOGETHER, _TOGETHER + 1])
def test_mid_ranks_at_every_length_of_the_search(n, n_queries):
    among = np.arange(n) * 2.0
    queries = np.random.default_rng(n).permutation(2 * n + 1)[:n_queries] - 1.0
    assert mid_ranks(*score_counts(among), queries).tolist() == [
        below(among, x) for x in queries
    ]


@patient
@given(scores, st.randoms(use_true_random=False))
def test_a_ladder_of_weights_is_one_of_repeated_rows(values, random):
    repeats = np.array([random.randint(0, 3) for _ in values])
    repeats[0] += 1
    kept = repeats > 0
    weighted = score_counts(values[kept], repeats[kept].astype(float))
    repeated = score_counts(np.repeat(values, repeats))
    assert weighted.value.tolist() == repeated.value.tolist()
    assert weighted.below.tolist() == repeated.below.tolist()


@patient
@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=200))
def test_a_ladder_of_weights_adds_up_to_a_rounding(weight):
    steps = score_counts(np.arange(len(weight) * 1.0), np.array(weight))
    for k, found in enumerate(steps.below):
        assert found == pytest.approx(math.fsum(weight[:k]), rel=2.3e-16)


@patient
@given(scores, st.data())
def test_split_keeps_the_order_of_the_rows(column, data):
    positive = data.draw(hnp.arrays(np.bool_, column.size))
    pos, neg = split(column, positive)
    assert pos.tolist() == column[positive].tolist()
    assert neg.tolist() == column[~positive].tolist()


@patient
@given(scores, scores)
def test_staircase_counts_each_class_up_to_a_value(pos, neg):
    value, n_pos, n_neg = merge_counts(score_counts(pos), score_counts(neg))
    assert value.tolist() == np.unique(np.concatenate([pos, neg])).tolist()
    assert n_pos.tolist() == [np.sum(pos <= t) for t in value]
    assert n_neg.tolist() == [np.sum(neg <= t) for t in value]


@patient
@given(scores, scores)
def test_win_fraction_and_wins_are_means_over_all_pairs(pos, neg):
    table = pair_table(pos, neg)
    beaten, beats = wins(pos, neg)
    assert win_fraction(pos, neg) == table.mean()
    assert beaten.tolist() == table.sum(axis=1).tolist()
    assert beats.tolist() == table.sum(axis=0).tolist()


@pytest.mark.parametrize("n_pos", [7, 2 * _CHUNK + 5])
@pytest.mark.parametrize("n_neg", [9, 2 * _CHUNK + 3])
def test_win_fraction_over_several_chunks(n_pos, n_neg):
    rng = np.random.default_rng(0)
    pos, neg = rng.integers(1, 9, n_pos) * 1.0, rng.integers(0, 8, n_neg) * 1.0
    # All pairs, by value: each of ten values against each.
    at_pos, at_neg = (np.bincount(x.astype(int), minlength=10) for x in (pos, neg))
    table = pair_table(np.arange(10), np.arange(10))
    assert win_fraction(pos, neg) == at_pos @ table @ at_neg / (n_pos * n_neg)


@patient
@given(scores, scores, st.randoms(use_true_random=False))
def test_weights_multiply_pairs(pos, neg, random):
    w_pos = np.array([random.uniform(0.1, 3.0) for _ in pos])
    w_neg = np.array([random.uniform(0.1, 3.0) for _ in neg])
    expected = w_pos @ pair_table(pos, neg) @ w_neg / (w_pos.sum() * w_neg.sum())
    got = weighted_win_fraction(pos, neg, w_pos, w_neg)
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert 0.0 <= got <= 1.0


def test_counts_do_not_overflow():
    n = 100_000  # the number of pairs is past 32 bits
    pos, neg = np.arange(1.0, n + 1.0), np.arange(float(n))
    beaten, beats = wins(pos, neg)  # positive i beats i, ties with one
    assert win_fraction(pos, neg) == (n * (n + 1) // 2 + (n - 1) / 2) / n**2
    assert beaten.sum() == beats.sum() == n * (n + 1) // 2 + (n - 1) / 2
    assert beaten[-1] == n


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_is_python(dtype):
    rng = np.random.default_rng(1)
    column = rng.integers(-5, 5, 200).astype(dtype)
    positive = rng.random(200) < 0.3
    pos, neg = split(column, positive)
    steps, others = score_counts(pos), score_counts(neg)
    plain = getattr(mid_ranks, "py_func", mid_ranks)
    assert mid_ranks(*steps, neg).tolist() == plain(*steps, neg).tolist()
    plain = getattr(merge_counts, "py_func", merge_counts)
    for got, expected in zip(
        merge_counts(steps, others), plain(steps, others), strict=True
    ):
        assert got.tolist() == expected.tolist()
