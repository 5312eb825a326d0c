"""The loops over rows against their Python definitions; layouts of matrices."""

import inspect

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax.core import rows, table
from aucmax.core.rows import (
    CSR,
    as_hot,
    as_rows,
    n_rows,
    row_bytes,
    side_by_side,
    take_rows,
)

FUNCTIONS = {
    name: function
    for name, function in inspect.getmembers(rows, inspect.isfunction)
    if name.endswith("_row") and not name.startswith("_")
}
D = 139  # more than a word has bits, and no multiple of what SIMD takes


def matrix(kind):
    """Return five rows: scattered, full, empty, one value, one stored zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, D)) * (rng.random((5, D)) < 0.4) + 0.0
    X[1] = rng.standard_normal(D) + 1.0
    X[2:] = 0.0
    X[3, 4] = X[4, 4] = 2.5
    X = X.astype(np.float32 if "32" in kind else np.float64)
    if "CSR" not in kind:
        return X
    X = sparse.csr_array(X)
    X.data[-1] = 0.0  # stored all the same
    return X


KINDS = ["dense 64", "dense 32", "CSR 64", "CSR 32"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def arguments(X, i, references, new=False):
    """Return a value for every parameter that a ``*_row`` function may have.

    Some features have a reference point, or none has; one has no scale yet if ``new``.
    """
    rng = np.random.default_rng(1)
    n_pos, n_neg, l2 = 30.0, 90.0, table.L2(0.01, 0.0)
    hot, cold = np.zeros((4, D)), np.zeros((4, D))
    hot[table.W] = rng.standard_normal(D)
    hot[table.SUM] = n_pos * rng.standard_normal(D)
    hot[table.SUM + 1] = n_neg * rng.standard_normal(D)
    cold[table.U] = rng.standard_normal(D)
    cold[table.SQ :] = (rng.random((2, D)) + 1.0) * [[n_pos], [n_neg]]
    cold[table.NZ] = (rng.random(D) + 0.1) * (n_pos + n_neg)
    ref = np.zeros(D)
    if references:
        ref[::2] = rng.standard_normal(D)[::2]
    second = cold[table.SQ :] / [[n_pos], [n_neg]]
    # Some scales are right, some off by less than is worth a change, some by more.
    off = rng.choice([1.0, 1.005, 0.995, 1.5, 0.2], D)
    hot[table.D] = off / (second.mean(axis=0) + l2.plain / 4.0)
    if new:
        hot[[table.W, table.D], 4] = 0.0
    return {
        "X": X,
        "i": i,
        "hot": as_hot(hot, X),
        "cold": cold,
        "listed": rows.listed(X, ref),
        "to_pos": 1.0 / n_pos,
        "to_neg": 1.0 / n_neg,
        "l2": l2,
        "weight": 1.7,
        "past": 3.3,
        "c": -0.4,
        "eta": 0.3,
        "l1": 0.05,
        "pull": rng.random((2, D)),
        "table": rng.standard_normal((2, D)),
        "origin": rng.standard_normal(D),
        "scale": 0.7,
        "sums": rng.standard_normal((8, D)),
        "factor": 1.3,
        "w": rng.standard_normal(D),
        "ref": ref,
        "ridge": rng.random(D),
        "mark": 10.0 * rng.random(D),
        "own": 0.01,
        "side": 1,
        "out": rng.standard_normal(D),
        "at": np.zeros(D, np.uint32),
        "B": rng.standard_normal((D, 5)),
        "u": rng.standard_normal(5),
        "M": rng.standard_normal((5, 5)),
        "k": rng.standard_normal((4, 5)),
        "e": rng.standard_normal(3),
        "start": 2,
        "stop": 6,
        "index": np.array([0.0, 1.0, 0.0, 4.0, 5.0, 9.0] + [0.0] * D),
        "value": rng.standard_normal(D + 6),
        "other": 0,
        "room": np.zeros(D),
        "slot": 1,
        "to": 0,
    }


def compiled(function, names):
    """Return ``function`` as kernels see it."""
    space = {"function": function}
    exec(f"def call({', '.join(names)}): return function({', '.join(names)})", space)
    return njit(space["call"])


def test_there_are_row_functions():
    assert len(FUNCTIONS) >= 5


@each_kind
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_do_what_the_definition_says(name, kind):
    function = FUNCTIONS[name]
    names = list(inspect.signature(function).parameters)
    loop = compiled(function, names)
    X = as_rows(matrix(kind))
    for references in (False, True):
        for i in range(n_rows(X)):
            new = name in ("meet_row", "resize_row", "spread_row")  # care about it
            values = arguments(X, i, references, new)
            left = {key: values[key] for key in names}
            values = arguments(X, i, references, new)
            right = {key: values[key] for key in names}
            before = {
                key: np.copy(value)
                for key, value in right.items()
                if key != "X" and value is not None
            }
            expected = function(*right.values())
            found = loop(*left.values())
            if expected is None:
                assert found is None
            else:
                assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            changed = 0
            for key in before:
                assert_allclose(
                    left[key], right[key], rtol=1e-12, atol=1e-12, err_msg=key
                )
                changed += np.any(right[key] != before[key])
            # A full row leaves its mark, if the definition returns nothing.
            if i == 1 and expected is None and not name.startswith("fetch"):
                assert changed
    original = matrix(kind)
    parts = [(X, original)]
    if isinstance(X, CSR):
        parts = [(part, getattr(original, key)) for key, part in X._asdict().items()]
    for part, untouched in parts:
        assert_array_equal(part, untouched)


@each_kind
def test_dense_and_csr_are_the_same_rows(kind):
    """The definitions, too, must not depend on the layout."""
    X = matrix(kind)
    dense = as_rows(X.toarray() if sparse.issparse(X) else X)
    csr = as_rows(sparse.csr_array(X))
    for function in FUNCTIONS.values():
        names = inspect.signature(function).parameters
        for i in range(5):
            results = []
            for layout in (dense, csr):
                values = arguments(layout, i, True)
                result = function(*(values[key] for key in names))
                keys = (
                    "hot",
                    "cold",
                    "table",
                    "sums",
                    "out",
                    "index",
                )
                keys = (*keys, "value", "at", *"BuMk")
                arrays = [values[k] for k in keys]
                results.append((result, arrays))
            (a, left), (b, right) = results
            assert (a is None) == (b is None)
            if a is not None:
                assert_allclose(a, b, rtol=1e-12, atol=1e-12)
            for one, other in zip(left, right, strict=True):
                assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_to_ask_for_a_number_changes_nothing():
    numbers = np.arange(5.0)
    ask = compiled(rows.fetch_number, ["numbers", "i"])
    for function in (ask, rows.fetch_number):
        assert function(numbers, 4) is None
    assert_array_equal(numbers, np.arange(5.0))


@each_kind
def test_listed(kind):
    X = as_rows(matrix(kind))
    for references in (False, True):
        ref = arguments(X, 0, references)["ref"]
        expected = rows.listed(X, ref)
        found = compiled(rows.listed, ["X", "ref"])(X, ref)
        if "CSR" not in kind:
            assert expected is found is None
            continue
        assert expected.dtype == np.uint32
        assert_array_equal(expected, np.arange(0, D, 2) if references else [])
        assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_can_stay_is_not_copied(dtype):
    X = np.ones((4, 3), dtype)
    assert as_rows(X) is X
    fixed = X.copy()
    fixed.flags.writeable = False
    found = as_rows(fixed)
    assert np.shares_memory(found, fixed)
    assert found.flags.writeable
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
        assert found.flags.writeable
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
    X = matrix(kind)
    whole = X.toarray() if sparse.issparse(X) else X
    found = take_rows(as_rows(X), 1, 4)
    assert n_rows(found) == 3
    for i in range(3):
        assert_array_equal(rows._dense_row(found, i, D), whole[1 + i])


def test_row_bytes():
    assert row_bytes(np.ones((5, 3))) == 24.0
    assert row_bytes(np.ones((5, 3), np.float32)) == 12.0
    assert row_bytes(as_rows(sparse.csr_array(np.eye(5)))) == 12.0


@pytest.mark.parametrize("d", [1, 2, 7, 1000])
def test_as_hot_keeps_the_numbers(d):
    hot = np.random.default_rng(0).standard_normal((4, d))
    csr, dense = as_rows(sparse.csr_array(np.eye(2))), np.eye(2)
    by_feature = as_hot(hot, csr)
    assert_array_equal(by_feature, hot)
    assert by_feature.ctypes.data % 64 == 0  # half a cache line a feature
    assert by_feature.T.flags.c_contiguous
    assert as_hot(by_feature, csr) is by_feature
    back = as_hot(by_feature, dense)
    assert_array_equal(back, hot)
    assert back.flags.c_contiguous
    assert as_hot(back, dense) is back


@pytest.mark.parametrize("d", [1, 2, 7, 1000])
def test_side_by_side_keeps_the_numbers(d):
    rng = np.random.default_rng(0)
    hot, cold = rng.standard_normal((2, 4, d))
    csr, dense = as_rows(sparse.csr_array(np.eye(2))), np.eye(2)
    left, right = side_by_side(hot, cold, csr)
    assert_array_equal(left, hot)
    assert_array_equal(right, cold)
    for j in range(d):  # a cache line a feature
        assert left[:, j].ctypes.data % 64 == 0
        assert right[:, j].ctypes.data == left[:, j].ctypes.data + 32
    again = side_by_side(left, right, csr)
    assert again[0] is left
    assert again[1] is right
    # What is not laid out like this is, even if half of it is.
    left, right = side_by_side(left, cold, csr)
    assert right[:, 0].ctypes.data == left[:, 0].ctypes.data + 32
    for back, expected in zip(
        side_by_side(left, right, dense), (hot, cold), strict=True
    ):
        assert_array_equal(back, expected)
        assert back.flags.c_contiguous


@each_kind
def test_the_past_of_an_average_follows_the_scales(kind):
    """Without ``past``, all that an average is made of changes by the same factor."""
    X = as_rows(matrix(kind))
    names = list(inspect.signature(rows.meet_row).parameters)
    loop = compiled(rows.meet_row, names)
    for function in (rows.meet_row, loop):
        values = arguments(X, 1, True) | {"past": None}
        hot, cold = values["hot"].copy(), values["cold"].copy()
        function(*(values[key] for key in names))
        factor = values["hot"][table.D] / hot[table.D]
        assert np.any(np.abs(factor - 1.0) > 0.02)
        for slot, new, old in (
            (table.W, values["hot"], hot),
            (table.U, values["cold"], cold),
        ):
            assert_allclose(new[slot], factor * old[slot], rtol=1e-12)
