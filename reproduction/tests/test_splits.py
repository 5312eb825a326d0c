"""Rows of runs, scaling, and rules for class groups."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax_reproduction.groupings import plausible
from aucmax_reproduction.splits import (
    SCALERS,
    Folds,
    Given,
    Holdout,
    Validated,
    capped,
    scaled,
)

Y = np.arange(103) % 4 == 0


def test_folds_have_every_row_for_testing_once():
    split = Folds(5, 2)
    assert split.runs == 10
    runs = [split.parts(Y, None, run, 0) for run in range(10)]
    for repeat in (runs[:5], runs[5:]):
        tested = np.concatenate([parts.test for parts in repeat])
        assert_array_equal(np.sort(tested), np.arange(len(Y)))
    for train, test, _ in runs:
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(Y)))
        assert Y[test].sum() in (5, 6)
    assert not np.array_equal(runs[0].test, runs[5].test)
    assert_array_equal(runs[0].test, split.parts(Y, None, 0, 0).test)
    assert not np.array_equal(runs[0].test, split.parts(Y, None, 0, 1).test)


def test_a_holdout_is_drawn_anew_and_given_files_stay():
    split = Holdout(0.2, 3)
    drawn = [split.parts(Y, 50, run, 0) for run in range(3)]
    assert all(len(parts.test) == 21 for parts in drawn)
    assert not np.array_equal(drawn[0].test, drawn[1].test)
    train, test, valid = Given(0.2, 3).parts(Y, 50, 2, 0)
    assert (valid, list(train), list(test)) == (None, [*range(50)], [*range(50, 103)])
    assert_array_equal(Given(0.2, 3).parts(Y, None, 1, 0).test, drawn[1].test)


@pytest.mark.parametrize("given", [None, 43])
def test_validation_rows_are_neither_for_training_nor_for_testing(given):
    train, test, valid = Validated(5).parts(Y, given, 0, 0)
    everything = np.concatenate([train, test, valid])
    assert_array_equal(np.sort(everything), np.arange(len(Y)))
    assert abs(len(test) - len(valid)) <= 1
    assert len(train) == (given or 68)
    assert_array_equal(Validated(5).parts(Y, given, 4, 0).test, test)


def test_capped_rows_are_some_of_them_in_random_order():
    rows = np.arange(50, 100)
    few = capped(rows, 20, 1, 0)
    assert len(set(few)) == 20
    assert set(few) < set(rows)
    assert not np.array_equal(few, capped(rows, 20, 2, 0))
    assert_array_equal(np.sort(capped(rows, None, 1, 0)), rows)


def test_scaling_looks_at_training_rows_only():
    X = np.random.default_rng(0).standard_normal((20, 3)) * [1.0, 10.0, 0.1] + 4.0
    train, test = np.arange(12), np.arange(12, 20)
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    ranged = 2.0 * (X - low) / (high - low) - 1.0
    expected = {
        "none": X,
        "to [-1, 1]": ranged,
        "standardised": (X - mean) / spread,
        "rows of unit length": X / length,
        "to [-1, 1], rows of unit length": ranged
        / np.linalg.norm(ranged, axis=1, keepdims=True),
        "rows less their mean, by their length": (X - X.mean(axis=1, keepdims=True))
        / length,
    }
    assert set(expected) == set(SCALERS)
    for name, values in expected.items():
        found = scaled(X, name, train, test)
        assert_allclose(np.vstack(found), values)


def test_words_stay_sparse():
    X = sparse.random_array((30, 6000), density=0.01, format="csr", random_state=0)
    for name in SCALERS:
        train, test = scaled(X, name, np.arange(20), np.arange(20, 30))
        assert sparse.issparse(train)
        assert test.nnz == X[20:].nnz


def test_plausible_rules():
    counts = dict.fromkeys(map(float, range(10)), 100) | {3.0: 150}
    rules = {rule.name: set(rule.positive) for rule in plausible(counts)}
    assert rules["first half of the labels"] == {0, 1, 2, 3, 4}
    assert rules["odd labels"] == {1, 3, 5, 7, 9}
    assert rules["most frequent label"] == {3}
    assert rules["label 7"] == {7}
    assert rules["labels up to 6"] == {0, 1, 2, 3, 4, 5, 6}
    groups = [{frozenset(p), frozenset(counts) - frozenset(p)} for p in rules.values()]
    assert all(one not in groups[:k] for k, one in enumerate(groups))
    # 10 single labels, 9 thresholds, of which two are single labels, halves and odd.
    assert len(rules) == 10 + 9 - 2 + 1


def test_a_printed_ratio_leaves_few_rules():
    counts = {0.0: 100, 1.0: 100, 2.0: 200, 3.0: 400}
    found = [rule.positive for rule in plausible(counts, 3.0)]
    assert found == [(0.0, 1.0), (2.0,)]
    assert plausible(counts, 5.0) == []
    many = dict.fromkeys(map(float, range(100)), 7)
    assert len(plausible(many)) == 3


def test_a_rule_is_a_task():
    (rule,) = plausible({1.0: 3, 2.0: 5})
    assert_array_equal(rule.task.positives([1, 2, 1]), [True, False, True])
