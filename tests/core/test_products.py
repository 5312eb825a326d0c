"""Products with X against NumPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax.core import products, threads
from aucmax.core.products import times, transposed_times
from aucmax.core.rows import as_rows
from helpers.data import mixed

LAYOUTS = {
    "dense": np.asarray,
    "float32": np.float32,
    "CSR": sparse.csr_array,
    "CSR float32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


@pytest.mark.parametrize("task", [1 << 22, 1000, 1])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_against_numpy(layout, task, monkeypatch):
    monkeypatch.setattr(products, "_TASK_BYTES", task)
    X, _ = mixed(300)
    X = X.astype(np.float32).astype(float)
    rng = np.random.default_rng(0)
    w, u = rng.standard_normal(X.shape[1]), rng.standard_normal(300)
    rows = as_rows(LAYOUTS[layout](X))
    assert_allclose(times(rows, w), X @ w, rtol=1e-12, atol=1e-12)
    assert_allclose(transposed_times(rows, u, X.shape[1]), X.T @ u, rtol=1e-11)


def test_rows_that_do_not_count_are_not_looked_at():
    X, _ = mixed(20)
    X[3] = np.nan
    u = np.ones(20)
    u[3] = 0.0
    expected = X[u > 0.0].sum(axis=0)
    for layout in (np.asarray, sparse.csr_array):
        found = transposed_times(as_rows(layout(X)), u, X.shape[1])
        assert_allclose(found, expected, rtol=1e-12)


def test_threads_do_not_matter(monkeypatch):
    X, _ = mixed(3000)
    u = np.random.default_rng(0).standard_normal(3000)
    monkeypatch.setattr(products, "_TASK_BYTES", 1 << 12)
    found = []
    for cpus in (1, 2, 5):
        monkeypatch.setattr(threads, "cpu_count", lambda cpus=cpus: cpus)
        found.append(transposed_times(as_rows(X), u, X.shape[1]))
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])
