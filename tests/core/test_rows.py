"""The loops over rows against NumPy; layouts of matrices."""

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax.core import rows
from aucmax.core.rows import as_rows, as_table, n_rows, row_bytes, take_rows
from helpers.data import KINDS, awkward_rows, dense_row

each_kind = pytest.mark.parametrize("kind", KINDS)


def packed(x):
    return np.flatnonzero(x), x[x != 0.0]


# What each function makes of its arrays, and returns: by NumPy.
def raw_dot_row(x, w):
    return w @ x


def raw_add_row(x, c, out):
    out += c * x


def copy_row(x, factor, ref, out):
    out[:] = factor * (x - ref)


def mark_row(x, c, table, slot):
    table[slot] += c * (x != 0.0)


def count_row(x):
    return np.count_nonzero(x)


def pack_row(x, out, at):
    features, values = packed(x)
    out[: len(values)], at[: len(values)] = values, features
    return len(values)


ORACLES = [raw_dot_row, raw_add_row, copy_row, mark_row, count_row, pack_row]


def arguments(oracle, d):
    rng = np.random.default_rng(1)
    values = {
        "w": rng.standard_normal(d),
        "c": -0.4,
        "out": rng.standard_normal(d),
        "factor": 1.3,
        "ref": rng.standard_normal(d),
        "table": rng.standard_normal((2, d)),
        "slot": 1,
        "at": np.zeros(d, np.uint32),
    }
    code = oracle.__code__
    return [values[name] for name in code.co_varnames[1 : code.co_argcount]]


def compiled(function, count):
    """Return ``function(X, i, …)`` as kernels see it, ``count`` arguments after i."""
    names = ", ".join(f"a{k}" for k in range(count))
    space = {"function": function}
    exec(f"def call(X, i, {names}): return function(X, i, {names})", space)
    return njit(space["call"])


@each_kind
@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.__name__)
def test_loops_against_numpy(oracle, kind):
    original = awkward_rows(kind)
    X, d = as_rows(original), original.shape[1]
    function = getattr(rows, oracle.__name__)
    loop = compiled(function, len(arguments(oracle, d)))
    for i in range(n_rows(X)):
        right = arguments(oracle, d)
        expected = oracle(dense_row(original, i), *right)
        for run in (loop, function):  # Python takes it as it is
            left = arguments(oracle, d)
            found = run(X, i, *left)
            assert (found is None) == (expected is None)
            if expected is not None:
                assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            for mine, its in zip(left, right, strict=True):
                assert_allclose(mine, its, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_can_stay_is_not_copied(dtype):
    X = np.ones((4, 3), dtype)
    fixed = X.copy()
    fixed.flags.writeable = False
    for array in (X, fixed):
        found = as_rows(array)
        assert np.shares_memory(found, array)
        assert not found.flags.writeable
    assert X.flags.writeable  # the caller's array stays as it was
    csr = sparse.csr_array(X)
    found = as_rows(csr)
    assert np.shares_memory(found.data, csr.data)
    assert np.shares_memory(found.indices, csr.indices)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_see_one_kind_of_dense_and_one_of_csr(dtype):
    X = np.arange(12.0, dtype=dtype).reshape(4, 3)
    for form in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X[::-1][::-1]):
        found = as_rows(form)
        assert_array_equal(found, X)
        assert found.flags.c_contiguous
        assert not found.flags.writeable
        assert found.dtype == dtype
    long = sparse.csr_array(X)
    long.indices, long.indptr = long.indices.astype("i8"), long.indptr.astype("i8")
    twice = sparse.csr_array(
        (
            np.r_[X.ravel(), X.ravel()].astype(dtype) / 2,
            [*range(3)] * 8,
            range(0, 25, 6),
        ),
        (4, 3),
    )
    # The same row entries in two halves: rows of ``twice`` are not those of X.
    for form in (sparse.csr_array(X), long, sparse.csr_matrix(X), twice):
        before = form.copy()
        found = as_rows(form)
        kinds = found.data.dtype, found.indices.dtype, found.indptr.dtype
        assert kinds == (dtype, np.uint32, np.uint64)
        back = sparse.csr_array((found.data, found.indices, found.indptr), (4, 3))
        assert_array_equal(back.toarray(), before.toarray())
        for part in ("data", "indices", "indptr"):  # the caller's stays as it was
            assert_array_equal(getattr(form, part), getattr(before, part))


@each_kind
def test_take_rows(kind):
    X = awkward_rows(kind)
    d = X.shape[1]
    found = take_rows(as_rows(X), 1, 4)
    assert n_rows(found) == 3
    for i in range(3):
        out = np.zeros(d)
        rows.raw_add_row(found, i, 1.0, out)
        assert_array_equal(out, dense_row(X, 1 + i))


def test_row_bytes():
    assert row_bytes(np.ones((5, 3))) == 24.0
    assert row_bytes(np.ones((5, 3), np.float32)) == 12.0
    assert row_bytes(as_rows(sparse.csr_array(np.eye(5)))) == 12.0


@pytest.mark.parametrize("d", [1, 2, 7, 1000])
def test_as_table_keeps_the_numbers(d):
    table = np.random.default_rng(0).standard_normal((8, d))
    csr, dense = as_rows(sparse.csr_array(np.eye(2))), np.eye(2)
    by_feature = as_table(table, csr)
    assert_array_equal(by_feature, table)
    assert by_feature.T.flags.c_contiguous
    assert as_table(by_feature, csr) is by_feature
    back = as_table(by_feature, dense)
    assert_array_equal(back, table)
    assert back.flags.c_contiguous
    assert as_table(back, dense) is back
