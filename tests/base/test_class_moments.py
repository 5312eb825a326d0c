"""Class moments against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax.base import class_moments as tally
from aucmax.base.class_moments import NEG, POS, ClassMoments, measure, noise
from aucmax.core import threads
from aucmax.core.rows import as_rows
from helpers.data import gaussian, mixed, scattered, wide

LAYOUTS = {
    "dense": np.asarray,
    "float32": np.float32,
    "CSR": sparse.csr_array,
    "CSR float32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


def signed(y, weight=None):
    return np.where(y == 1, 1.0, -1.0) * (1.0 if weight is None else weight)


def by_numpy(X, y):
    sides = [y > 0, y < 0]
    assert (POS, NEG) == (0, 1)
    shares = [np.abs(y[side]) / np.abs(y[side]).sum() for side in sides]
    mean = np.array([w @ X[side] for w, side in zip(shares, sides, strict=True)])
    both = list(zip(shares, sides, mean, strict=True))
    return ClassMoments(
        np.array([np.abs(y[side]).sum() for side in sides]),
        np.array([side.sum() for side in sides], dtype=float),
        mean,
        np.array([w @ (X[side] - m) ** 2 for w, side, m in both]),
        np.array([w @ (X[side] != 0) for w, side, _ in both]),
    )


def assert_same(found, expected, rtol=1e-12, sides=(POS, NEG)):
    for name in ClassMoments._fields:
        a, b = (getattr(some, name)[list(sides)] for some in (found, expected))
        scale = np.abs(b).max(initial=1e-300)
        assert_allclose(a, b, rtol=rtol, atol=rtol * scale, err_msg=name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_against_numpy(layout):
    X, y = mixed(300)
    X = X.astype(np.float32).astype(float)  # a float32 holds it
    weight = np.random.default_rng(0).random(300)
    weight[::4] = 0.0
    for w in (None, weight):
        y_w = signed(y, w)
        found = measure(as_rows(LAYOUTS[layout](X)), y_w, X.shape[1])
        assert_same(found, by_numpy(X, y_w))
        assert all(part.dtype == np.float64 for part in found)


def test_one_class_only():
    X, _ = gaussian(20, 3)
    found = measure(X, np.ones(20), 3)
    both = measure(np.vstack([X, X]), np.repeat([1.0, -1.0], 20), 3)
    assert_same(found._replace(rows=both.rows), both, sides=[POS])
    assert found.rows[NEG] == found.weight[NEG] == 0.0


def test_rows_of_weight_zero_are_not_there():
    X, y = gaussian(50, 3)
    X[::3] = np.nan
    weight = np.ones(50)
    weight[::3] = 0.0
    found = measure(X, signed(y, weight), 3)
    here = weight > 0
    expected = measure(np.ascontiguousarray(X[here]), signed(y[here]), 3)
    for a, b in zip(found, expected, strict=True):
        assert_array_equal(a, b)


def test_a_weight_of_k_is_k_rows():
    """Exactly so: with whole numbers, sums have no rounding error."""
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, (60, 4)).astype(float)
    y = rng.integers(0, 2, 60)
    times = rng.integers(0, 5, 60)
    weighted = measure(X, signed(y, times), 4)
    repeated = measure(X.repeat(times, axis=0), signed(y.repeat(times)), 4)
    for name in ("weight", "mean", "variance", "nonzero_share"):
        assert_array_equal(getattr(weighted, name), getattr(repeated, name))


@pytest.mark.parametrize("layout", ["dense", "CSR"])
def test_a_spread_is_known_however_far_from_zero(layout):
    """Means of four million standard deviations, as of dates, and exact constants."""
    X, y = gaussian(500, 4)
    offset = np.array([0.0, 4e6, -4e6, 0.0])
    far = X + offset
    far[:, 3] = 0.1
    found = measure(as_rows(LAYOUTS[layout](far)), signed(y), 4)
    expected = by_numpy(far - offset, signed(y))
    assert_allclose(found.variance[:, :3], expected.variance[:, :3], rtol=1e-6)
    assert found.variance[:, 3].max() < 1e-30


@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_are_summed_whatever_their_size(layout, monkeypatch):
    X, y = scattered(3000)
    rows, y = as_rows(LAYOUTS[layout](X)), signed(y)
    whole = measure(rows, y, X.shape[1])
    seen = []
    take = tally.take_rows
    monkeypatch.setattr(tally, "take_rows", lambda *a: seen.append(a[1:]) or take(*a))
    for size in (1, 1 << 12, 1 << 14):
        seen.clear()
        monkeypatch.setattr(tally, "_BLOCK_BYTES", size)
        assert_same(measure(rows, y, X.shape[1]), whole)
        assert len(seen) > 1
        # Each row is in one block.
        covered = np.concatenate([np.arange(*span) for span in seen])
        assert_array_equal(np.sort(covered), np.arange(3000))


def test_threads_do_not_matter(monkeypatch):
    X, y = mixed(3000)
    y = signed(y)
    monkeypatch.setattr(tally, "_BLOCK_BYTES", 1 << 13)
    results = []
    for cpus in (1, 2, 5, 32, None):
        monkeypatch.setattr(threads, "cpu_count", lambda cpus=cpus: cpus)
        results.append(measure(X, y, X.shape[1]))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert_array_equal(a, b)


def test_many_features():
    X, y = wide()
    found = measure(as_rows(X), signed(y), X.shape[1])
    expected = [X[y == 1].mean(axis=0), X[y == 0].mean(axis=0)]
    assert_allclose(found.mean, expected, rtol=1e-12)


@pytest.mark.parametrize("pairs", [np.inf, 40])
def test_noise_is_the_sampling_error_of_the_difference_of_means(pairs):
    """Compare with the variation of the difference over repeated draws of the data."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4 == 0
    size = np.array([1.0, 10.0, 0.1])
    truth = np.array([0.3, 0.0, -0.02])
    diagonal = 2 * size**2 + truth**2
    errors, estimates = [], []
    for _ in range(1500):
        X = rng.standard_normal((200, 3)) * size + np.outer(y, truth)
        tally = measure(as_rows(X), signed(y), 3)
        if pairs < np.inf:
            drawn = rng.choice(X[y], pairs) - rng.choice(X[~y], pairs)
            delta = drawn.mean(axis=0)
        else:
            delta = X[y].mean(axis=0) - X[~y].mean(axis=0)
        errors.append(np.sum((delta - truth) ** 2 / diagonal))
        whole = X[y].mean(axis=0) - X[~y].mean(axis=0)
        estimates.append(noise(tally, pairs) ** 2 * np.sum(whole**2 / diagonal))
    assert np.mean(estimates) == pytest.approx(np.mean(errors), rel=0.1)


def test_noise_without_a_signal_is_all():
    X = np.ones((10, 2))
    assert noise(measure(as_rows(X), signed(np.arange(10) % 2), 2)) == 1.0
