"""Duplicate rows: detection, distinction from separate observations, and folds."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.model_selection import StratifiedKFold

from aucmax import BAMCV, KernelAUCCV, LeastSquaresAUCCV
from aucmax.base.folds import Repeats, _label_difference, dealt, folds, row_hashes


def noise(n=400, d=6, rate=0.1, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.random(n) < rate


def oversampled(X, y, times=10):
    """Return the rows with each positive so many times."""
    order = np.append(np.arange(len(y)), np.repeat(np.flatnonzero(y), times - 1))
    return X[order], y[order]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_equal_rows_have_equal_numbers(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (300, 4)).astype(kind)
    X[X == 0] *= -1  # minus zero is zero
    slow = list(map(tuple, X))
    got = row_hashes(X)
    for i in range(0, 300, 7):
        assert_array_equal(got == got[i], [row == slow[i] for row in slow])
    assert_array_equal(row_hashes(sparse.csr_array(X)), got)
    assert_array_equal(row_hashes(np.asfortranarray(X)), got)


def test_blocks_do_not_matter(monkeypatch):
    X, _ = noise()
    whole = row_hashes(X)
    monkeypatch.setattr("aucmax.core.row_hashes._BLOCK", 100)
    assert_array_equal(row_hashes(X), whole)


def test_labels_that_differ_over_all_pairs():
    rng = np.random.default_rng(1)
    of, y = rng.integers(0, 40, 100), rng.random(100) < 0.3
    shares, labels = [], []
    for i in range(100):
        others = (of == of[i]) & (np.arange(100) != i)
        if others.any():
            shares.append(np.mean(y[others] != y[i]))
            labels.append(y[i])
    chance = 2 * np.mean(labels) * (1 - np.mean(labels))
    assert _label_difference(of, y) == pytest.approx(np.mean(shares) / chance)


def test_copies_and_observations():
    X, y = noise()
    assert Repeats.among(X, y)[1:] == (0, False)
    assert Repeats.among(*oversampled(X, y))[1:] == (9 * y.sum(), True)
    twice = Repeats.among(np.append(X, X, axis=0), np.append(y, y))
    assert twice[1:] == (400, True)
    few_values = np.rint(np.abs(X[:, :2]))  # a dozen distinct rows
    found = Repeats.among(few_values, y)
    assert found.repeated > 380
    assert not found.copies


def test_folds_keep_equal_rows_together():
    rng = np.random.default_rng(2)
    of = rng.integers(0, 60, 240)
    of = np.unique(of, return_inverse=True)[1]
    y = np.isin(of, rng.choice(60, 20, replace=False))
    found = dealt(5, y, of, seed=3)
    assert_array_equal(np.sort(np.concatenate([b for _, b in found])), np.arange(240))
    for train, test in found:
        assert not np.isin(of[train], of[test]).any()
        assert len(train) + len(test) == 240
        assert 0 < y[test].sum() < len(test)
    sizes = [len(test) for _, test in found]
    assert max(sizes) < 2 * min(sizes)


def test_too_few_distinct_rows():
    y = np.repeat([True, False], [20, 40])
    assert len(dealt(5, y, np.append(np.arange(20) % 3, np.arange(3, 43)), 0)) == 3
    assert dealt(5, y, np.append(np.zeros(20, int), np.arange(1, 41)), 0) is None


def test_rows_that_differ_are_dealt_as_before():
    X, y = noise()
    signed = np.where(y, 1.0, -1.0)
    plain = StratifiedKFold(5).split(X, y)
    for got, expected in zip(folds(5, X, signed, "BAM"), plain, strict=True):
        assert_array_equal(got[0], expected[0])
        assert_array_equal(got[1], expected[1])


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_folds_of_copies_and_of_weight_zero(layout):
    X, y = oversampled(*noise())
    signed = np.where(y, 1.0, -1.0)
    signed[::5] = 0.0
    found = folds(4, layout(X), signed, "BAM")
    tested = np.concatenate([test for _, test in found])
    assert_array_equal(np.sort(tested), np.flatnonzero(signed))
    for train, test in found:
        assert not np.isin(row_hashes(X[train]), row_hashes(X[test])).any()


def test_folds_are_those_of_the_distinct_rows():
    X, y = noise()
    times = np.random.default_rng(5).integers(1, 4, len(y))
    several = Repeats.among(X.repeat(times, axis=0), y.repeat(times))
    rows = np.arange(len(y)).repeat(times)
    assert_array_equal(several.of, rows)
    shuffled = StratifiedKFold(5, shuffle=True, random_state=1).split(X, y)
    found = dealt(5, y.repeat(times), several.of, seed=1)
    for (_, got), (_, expected) in zip(found, shuffled, strict=True):
        assert_array_equal(np.unique(rows[got]), expected)


def test_penalties_are_not_chosen_by_copies():
    # Many features: without a penalty each row is remembered.
    X, y = noise(150, 120, 0.2)
    X, y = oversampled(X, y)
    for model in (
        BAMCV(),
        LeastSquaresAUCCV(),
        KernelAUCCV(random_state=0),
    ):
        model.fit(X, y)
        scores = getattr(model, "scores_", None)
        if scores is None:
            scores = model.kernel_scores_[None]
        assert scores.mean(axis=1).max() < 0.75
