"""Reservoir: which rows are kept, balance, weights, chunks, bounds, storage."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax.stream import trees as reservoir
from aucmax.stream.trees import Reservoir


def signs(n, share, seed=0):
    return np.where(np.random.default_rng(seed).random(n) < share, 1.0, -1.0)


def filled(signed, capacity, seed=0, chunk=None, decay=0.0, X=None):
    """Return a reservoir of rows whose value is the row number."""
    X = np.arange(len(signed), dtype=float)[:, np.newaxis] if X is None else X
    found = Reservoir(X.shape[1], capacity, seed)
    for start in range(0, len(signed), chunk or len(signed)):
        part = slice(start, start + (chunk or len(signed)))
        found.add(X[part], signed[part], start, decay)
    return found


def brute_force(signed, capacity, seed, decay=0.0):
    """Return the numbers of the rows that have the highest priorities."""
    numbers = np.arange(len(signed))
    u = reservoir._uniform(seed, numbers)
    priority = np.log(np.abs(signed)) + decay * numbers - np.log(u)
    n_pos, kept = int((signed > 0).sum()), []
    for positive, other in ((True, len(signed) - n_pos), (False, n_pos)):
        rows = numbers[(signed > 0) == positive]
        most = capacity - min(other, capacity // 2)
        kept += rows[np.argsort(-priority[rows])][:most].tolist()
    return sorted(kept)


@pytest.mark.parametrize("share", [0.5, 0.2, 0.02, 0.97])
@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("chunk", [None, 7, 500])
def test_kept_rows_equal_brute_force_in_any_chunks(share, decay, chunk):
    signed = signs(3000, share) * np.random.default_rng(1).uniform(0.5, 2.0, 3000)
    found = filled(signed, 200, 5, chunk, decay).sample()
    assert found.number.tolist() == brute_force(signed, 200, 5, decay)
    assert_array_equal(found.rows[:, 0] + found.centre[0], found.number)
    assert_array_equal(found.positive, signed[found.number.astype(int)] > 0)


def test_state_does_not_depend_on_chunks_or_layout():
    rng = np.random.default_rng(0)
    X, signed = (
        rng.normal(size=(2000, 3)) * (rng.random((2000, 3)) < 0.5),
        signs(2000, 0.1),
    )
    one = filled(signed, 300, X=X).arrays()
    for other in (
        filled(signed, 300, chunk=77, X=X),
        filled(signed, 300, chunk=500, X=sparse.csr_array(X)),
    ):
        for name, array in other.arrays().items():
            assert_array_equal(array, one[name], err_msg=name)


def test_classes_are_balanced_as_far_as_there_are_rows():
    assert filled(signs(5000, 0.3), 400).sample().positive.sum() == 200
    few = signs(5000, 0.01)
    found = filled(few, 400).sample()
    assert found.positive.sum() == (few > 0).sum()
    assert len(found.positive) == 400


def test_rows_are_kept_uniformly():
    """Row 0 and the last row are as likely to be kept as any other."""
    signed, counts = signs(400, 0.5), np.zeros(400)
    for seed in range(600):
        counts[filled(signed, 100, seed).sample().number.astype(int)] += 1
    expected = np.where(signed > 0, 50 / (signed > 0).sum(), 50 / (signed < 0).sum())
    z = (counts / 600 - expected) / np.sqrt(expected * (1 - expected) / 600)
    assert np.abs(z).max() < 4.0
    assert z.std() == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("decay", [0.0, 0.02])
def test_weights_are_unbiased(decay):
    """The represented weight of any subset is right on average."""
    rng = np.random.default_rng(0)
    signed = signs(500, 0.2) * rng.uniform(0.2, 3.0, 500)
    true = np.abs(signed) * np.exp(decay * (np.arange(500) - 500))
    subset = rng.random(500) < 0.3
    sums = []
    for seed in range(400):
        found = filled(signed, 120, seed, decay=decay)
        _, log_weight, positive, number = found._table[:, : found._n]
        found.prune()
        _, log_weight, positive, number = found._table[:, : found._n]
        log_weight = np.maximum(log_weight, found.floor[positive.astype(int)])
        weight = np.exp(log_weight - 500 * decay)
        sums.append(weight[subset[number.astype(int)]].sum())
    error = np.std(sums) / np.sqrt(len(sums))
    assert np.mean(sums) == pytest.approx(true[subset].sum(), abs=4.0 * error)


def test_recent_rows_are_preferred():
    found = filled(signs(20_000, 0.5), 1000, decay=np.log(2.0) / 500).sample()
    assert found.number.min() > 10_000
    assert (found.number > 19_000).mean() > 0.5


def test_a_class_that_has_become_rare_keeps_its_weights():
    """Weights of rows from thousands of half-lives ago would underflow."""
    signed = np.where(np.arange(5000) < 100, 1.0, -1.0)
    found = filled(signed, 400, decay=np.log(2.0)).sample()
    assert found.positive.sum() == 100
    for side in (found.positive, ~found.positive):
        assert found.weight[side].mean() == pytest.approx(1.0)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(reservoir, "MAX_BYTES", 40_000)
    X = np.ones((5000, 100))
    found = filled(signs(5000, 0.5), 30_000, chunk=64, X=X)
    assert found._rows.nbytes < 1.5 * 40_000 + 64 * 400
    assert len(found.sample().rows) == 100
    large = filled(signs(5000, 0.5), 30_000, X=X)  # in one chunk
    assert large._rows.nbytes < 1.5 * 40_000 + 64 * 400


def test_large_offsets_keep_their_resolution():
    X = 1.7e9 + np.random.default_rng(0).normal(size=(100, 1))
    found = filled(signs(100, 0.5), 200, X=X).sample()
    assert_allclose(found.rows[:, 0] + found.centre[0], X[:, 0], rtol=0, atol=1e-6)


def test_extreme_values_are_finite():
    X = np.array([[1e300], [-1e300], [1e-300], [0.0]])
    found = filled(np.array([1.0, -1.0, 1.0, -1.0]), 10, X=X).sample()
    assert np.isfinite(found.rows).all()


def test_new_features_were_zero():
    found = filled(signs(50, 0.5), 100)
    found.resize(3)
    found.add(np.ones((5, 3)), np.ones(5), 50, 0.0)
    rows = found.sample().rows
    assert_array_equal(rows[:50, 1:], 0.0)
    assert_array_equal(rows[50:, 1:], 1.0)


def test_restored_reservoirs_continue():
    signed = signs(3000, 0.1)
    whole, part = filled(signed, 200), filled(signed[:1500], 200)
    twin = Reservoir.restored(part.arrays(), 1)
    twin.add(np.arange(1500.0, 3000.0)[:, np.newaxis], signed[1500:], 1500, 0.0)
    for name, array in whole.arrays().items():
        assert_array_equal(array, twin.arrays()[name], err_msg=name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", np.zeros((3, 1), np.float32)),
        ("rows", np.full((20, 1), np.nan, np.float32)),
        ("rows", np.zeros((20, 1))),
        ("table", np.zeros((3, 20))),
        ("table", np.full((4, 20), 0.5)),
        ("floor", np.zeros(3)),
        ("centre", np.zeros(2)),
        ("settings", np.array([-1.0, 0.0])),
    ],
)
def test_invalid_arrays_are_refused(name, value):
    arrays = filled(signs(100, 0.5), 20).arrays()
    with pytest.raises(ValueError, match="reservoir"):
        Reservoir.restored({**arrays, name: value}, 1)
