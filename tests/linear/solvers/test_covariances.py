"""Second moments against NumPy, on data shuffled, chunked, merged and subtracted."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from aucmax import Moments
from aucmax.core import threads
from aucmax.core.rows import as_rows
from aucmax.core.threads import one_blas_thread
from aucmax.linear.solvers import covariances as module
from aucmax.linear.solvers.covariances import gather
from helpers.data import (
    class_moments,
    constant,
    gaussian,
    mixed,
    quadratic,
    scaled,
    scattered,
)

LAYOUTS = {
    "dense": np.asarray,
    "float32": np.float32,
    "CSR": sparse.csr_array,
    "CSR float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "Fortran": np.asfortranarray,
}


def by_numpy(X, y, weight=None):
    """Return the same in exact steps: NumPy's mean and a sum of outer products."""
    weight = np.ones(len(y)) if weight is None else weight
    X = np.asarray(X, dtype=np.longdouble)
    parts = []
    for side in (y == 1, y == 0):
        w, rows = weight[side], X[side]
        mean = (w @ rows) / max(w.sum(), 1e-300)
        centred = rows - mean
        scatter = (centred * w[:, None]).T @ centred
        parts.append((w.sum(), np.count_nonzero(w), mean, scatter, w @ (rows != 0)))
    fields = zip(*parts, strict=True)
    return Moments(*(np.array(field, dtype=float) for field in fields))


def assert_close(found, expected, rtol=1e-12):
    """Compare scatter matrices in units of the features' standard deviations."""
    assert_allclose(found.weight, expected.weight, rtol=rtol)
    assert_array_equal(found.rows, expected.rows)
    assert_allclose(found.nonzero, expected.nonzero, rtol=rtol, atol=rtol)
    for side in (0, 1):
        if not expected.rows[side]:
            continue
        spread = np.sqrt(np.diag(expected.scatter[side]) / expected.weight[side])
        spread = np.maximum(spread, 1e-150)
        size = np.maximum(np.abs(expected.mean[side]), spread)
        assert_allclose(
            found.mean[side] / size, expected.mean[side] / size, atol=rtol, rtol=0
        )
        units = expected.weight[side] * np.outer(spread, spread)
        error = np.abs(found.scatter[side] - expected.scatter[side]) / units
        varies = spread > 1e-10 * np.abs(expected.mean[side])
        assert error[np.ix_(varies, varies)].max(initial=0.0) < rtol


@pytest.fixture(params=[1, 64, None], ids=["rows", "small tasks", "one task"])
def tasks(request, monkeypatch):
    """Cut the rows into many blocks and tasks, or leave them whole."""
    if request.param:
        monkeypatch.setattr(module, "_TASK_BYTES", request.param * 64)
        monkeypatch.setattr(module, "_BLOCK_VALUES", 100)


@pytest.mark.parametrize("data", [gaussian, mixed, scaled, scattered, constant])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.usefixtures("tasks")
def test_against_numpy(layout, data):
    X, y = data(700)
    X = X.astype(np.float32).astype(float)  # a float32 holds it
    weight = np.random.default_rng(0).random(700)
    weight[::4] = 0.0
    for w in (None, weight):
        found = Moments.of(LAYOUTS[layout](X), y, w)
        assert_close(found, by_numpy(X, y, w))
        assert all(part.dtype == np.float64 for part in found)


@pytest.mark.parametrize("layout", ["dense", "CSR"])
@pytest.mark.parametrize("shift", [1e6, -1e8])
@pytest.mark.usefixtures("tasks")
def test_a_large_mean_loses_nothing(layout, shift):
    X, y = gaussian(3000, 4)
    X = (X + shift) - shift  # what is left of it at that distance
    expected = by_numpy(X, y)
    found = Moments.of(LAYOUTS[layout](X + shift), y)
    # A mean of 1e6 is a number with an error of 1e-10; a few of those are what is
    # left when every row is a task of its own. (Sums about zero lose it all.)
    assert_close(found._replace(mean=found.mean - shift), expected, 2e-15 * abs(shift))


def test_a_mean_that_drifts():
    X, y = gaussian(4000, 3)
    X = X + np.linspace(0.0, 1e6, 4000)[:, None]
    assert_close(Moments.of(X, y), by_numpy(X, y))


@pytest.mark.parametrize("seed", range(5))
def test_any_partition_merged_in_any_order(seed):
    rng = np.random.default_rng(seed)
    X, y = mixed(500)
    weight = rng.random(500)
    whole = by_numpy(X, y, weight)
    order = rng.permutation(500)
    cuts = np.sort(rng.integers(0, 501, 9))
    parts = [Moments.of(X[p], y[p], weight[p]) for p in np.split(order, cuts) if len(p)]
    while len(parts) > 1:  # like the machines of a cluster, as they get ready
        a, b = rng.choice(len(parts), 2, replace=False)
        both = parts[a] + parts[b]
        parts = [part for k, part in enumerate(parts) if k not in (a, b)] + [both]
    assert_close(parts[0], whole)
    assert_close(parts[0], Moments.of(X, y, weight))


def test_merging_commutes():
    X, y = scaled(300)
    a, b, c = (Moments.of(X[k::3], y[k::3]) for k in range(3))
    for other in (b + a + c, c + (b + a), a + (c + b)):
        assert_close(other, a + b + c, 1e-12)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_what_was_added_can_be_taken_away(share):
    X, y = scaled(1000)
    X = X + 100.0
    part = np.random.default_rng(0).random(1000) < share
    whole = Moments.of(X, y)
    rest = whole - Moments.of(X[part], y[part])
    assert_close(rest, by_numpy(X[~part], y[~part]), 1e-9)
    assert_close(rest + Moments.of(X[part], y[part]), whole, 1e-9)


def test_all_of_it_can_be_taken_away():
    X, y = gaussian(50, 3)
    nothing = Moments.of(X, y) - Moments.of(X, y)
    for found, expected in zip(nothing, Moments.empty(3), strict=True):
        assert_array_equal(found, expected)
    one_class = Moments.of(X, y) - Moments.of(X[y == 1], y[y == 1])
    assert_close(one_class + Moments.of(X[y == 1], y[y == 1]), Moments.of(X, y))


def test_one_class_and_no_rows():
    X, y = gaussian(30, 2)
    only = Moments.of(X, np.ones(30))
    assert_array_equal(only.rows, [30, 0])
    assert_array_equal(only.mean[1], 0.0)
    for negative in (0, -1, False):
        assert_array_equal(Moments.of(X, np.full(30, negative)).rows, [0, 30])
    assert_close(Moments.empty(2) + only, only)
    assert_close(only + Moments.empty(2), only)
    assert_close(only - Moments.empty(2), only)
    none = Moments.of(X, y, np.zeros(30))
    assert_array_equal(none.rows, 0.0)
    assert none.finite


def test_labels():
    X, y = gaussian(40, 2)
    expected = Moments.of(X, y)
    for labels in (y == 1, np.where(y == 1, 1, -1), y.astype(float), y.tolist()):
        for found, other in zip(Moments.of(X, labels), expected, strict=True):
            assert_array_equal(found, other)


@pytest.mark.parametrize("layout", ["dense", "CSR"])
def test_some_rows_only(layout):
    X, y = mixed(200)
    order = np.random.default_rng(0).permutation(200)[:90].astype(np.int64)
    signed = np.where(y == 1, 1.0, -1.0)
    signed[::5] = 0.0
    found = gather(as_rows(LAYOUTS[layout](X)), signed, X.shape[1], order)
    kept = order[signed[order] != 0.0]
    assert_close(found, by_numpy(X[kept], y[kept]))


def test_a_weight_is_a_repetition():
    X, y = gaussian(100, 3)
    times = np.random.default_rng(0).integers(0, 4, 100)
    repeated = Moments.of(X.repeat(times, axis=0), y.repeat(times))
    weighted = Moments.of(X, y, times)
    assert_allclose(weighted.scatter, repeated.scatter, rtol=1e-12)
    assert_allclose(weighted.weight, repeated.weight)


def test_it_can_be_sent_around():
    X, y = gaussian(60, 3)
    there = pickle.loads(pickle.dumps(Moments.of(X, y)))
    assert isinstance(there, Moments)
    for found, expected in zip(there, Moments.of(X, y), strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("data", [gaussian, scaled, mixed])
def test_the_quadratic_is_the_pairwise_loss(data):
    X, y = data(80)
    H, delta, varies = Moments.of(X, y).quadratic()
    assert varies.all()
    expected_H, expected_delta = quadratic(X, y)
    assert_allclose(H, expected_H, rtol=1e-10, atol=1e-12 * np.abs(H).max())
    assert_allclose(delta, expected_delta, rtol=1e-10)
    # Brute force over all pairs.
    pairs = (X[y == 1][:, None] - X[y == 0]).reshape(-1, X.shape[1])
    assert_allclose(H, pairs.T @ pairs / len(pairs), rtol=1e-9, atol=1e-12 * H.max())
    assert_allclose(delta, pairs.mean(axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1, 1e-9])
def test_constant_features_do_not_vary(value):
    X, y = gaussian(1000, 3)
    X[:, 1] = value
    parts = [Moments.of(X[k::7], y[k::7]) for k in range(7)]
    total = sum(parts[1:], parts[0])
    for found in (Moments.of(X, y), total, total - parts[0]):
        assert_array_equal(found.quadratic()[2], [True, False, True])


def test_threads_do_not_matter(monkeypatch):
    X, y = gaussian(3000, 5)
    monkeypatch.setattr(module, "_TASK_BYTES", 1 << 12)
    monkeypatch.setattr(threads, "cpu_count", lambda: 1)
    alone = Moments.of(X, y)
    for cpus in (2, 5):
        monkeypatch.setattr(threads, "cpu_count", lambda cpus=cpus: cpus)
        for found, expected in zip(Moments.of(X, y), alone, strict=True):
            assert_array_equal(found, expected)


def test_errors():
    X, y = gaussian(20, 3)
    with pytest.raises(ValueError, match="3 and of 2 features"):
        Moments.of(X, y) + Moments.of(X[:, :2], y)
    with pytest.raises(ValueError, match="not a subset"):
        Moments.of(X[:5], y[:5]) - Moments.of(X, y)
    with pytest.raises(ValueError, match=r"NaN at row 4, column 1"):
        Moments.of(np.where(np.arange(60).reshape(20, 3) == 13, np.nan, X), y)
    with pytest.raises(ValueError, match="20 rows"):
        Moments.of(X, y[:19])
    with pytest.raises(ValueError, match=r"sample_weight is -1.0 at row 0"):
        Moments.of(X, y, -np.ones(20))
    for labels, named in (
        (y + 1, r"1, 2;"),
        (y - 1, r"-1, 0;"),
        (2 * y, r"0, 2;"),
        (np.full(20, 2), r"2;"),
        (np.arange(20) % 3 - 1, r"-1, 0, 1;"),
        (np.where(y == 1, np.nan, 0.0), r"0.0, nan;"),
        (np.arange(20), r"0, 1, 2, 3, 4, …;"),
        (np.array(["no", "yes"])[y], r"'no', 'yes';"),
        (np.array(["no", 1], dtype=object)[y], r"'no'"),
    ):
        with pytest.raises(ValueError, match=rf"labels {named}.*Pass y == label"):
            Moments.of(X, labels)
    with pytest.raises(ValueError, match=r"100000 features would take 160\.0 GB"):
        Moments.empty(100_000)
    with pytest.raises(TypeError):
        _ = Moments.of(X, y) + (1, 2)  # noqa: RUF005


def test_class_moments_of_the_tests_agree():
    X, y = scaled(200)
    _, means, covariances = class_moments(X, y)
    found = Moments.of(X, y)
    assert_allclose(found.mean, means, rtol=1e-12)
    for side in (0, 1):
        assert_allclose(
            found.scatter[side] / found.weight[side],
            covariances[side],
            rtol=1e-9,
            atol=1e-12 * np.abs(covariances[side]).max(),
        )


def test_blas_has_its_threads_back_when_the_last_one_leaves():
    def threads():
        return [lib["num_threads"] for lib in threadpool_info()]

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # as another thread would
        assert 1 in threads()
        second.__exit__(None, None, None)
        assert threads() == before
