"""Validation errors name the value and its place."""

import numpy as np
import pytest
from scipy import sparse

from aucmax import SPAM
from aucmax.core.rows import as_rows
from aucmax.core.validation import check_structure, check_values


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e200])
def test_the_place_is_right_wherever_it_is(layout, value):
    # Rows without values, with one and with several: the first, a middle, the last.
    whole = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 1, 0], [1, 0, 1]], float)
    for row, column in np.argwhere(whole):
        X = whole.copy()
        X[row, column] = value
        with pytest.raises(ValueError, match=f"at row {row}, column {column};"):
            check_values(layout(X))
        check_values(layout(X), present=np.arange(5) != row)


def test_several_are_counted_and_the_first_is_named():
    X = np.ones((4, 3))
    X[1:3, 2] = np.nan
    names = np.array(["age", "debt", "income"], dtype=object)
    text = r"NaN at row 1, column 2 \('income'\), and 1 more such values"
    with pytest.raises(ValueError, match=text):
        check_values(X, names)


def test_large_values_of_float32_are_fine():
    X = np.full((3, 2), 1e30, dtype=np.float32)  # their squares are not
    check_values(X)
    check_values(sparse.csr_array(X))


def matrix():
    data, indices = np.ones(4), np.array([0, 2, 1, 2], np.int32)
    return sparse.csr_array((data, indices, np.array([0, 2, 2, 4], np.int32)), (3, 3))


@pytest.mark.parametrize("wide", [np.int32, np.int64])
@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize(
    ("name", "at", "value", "text"),
    [
        ("indices", 2, 3, "{} index 3 in {} 2, but only 3 {}s"),
        ("indices", 3, 10**9, "{} index 1000000000 in {} 2, but only 3 {}s"),
        ("indices", 0, -1, "{} index -1 in {} 0, but only 3 {}s"),
        ("indptr", 0, 1, "{1} 0 goes from 1 to 2 of 4 stored values"),
        ("indptr", 0, -1, "{1} 0 goes from -1 to 2"),
        ("indptr", 1, 10**9, "{1} 1 goes from 1000000000 to 2"),
        ("indptr", 3, 5, "{1} 2 goes from 2 to 5 of 4 stored values"),
        ("indptr", 3, 1, "{1} 2 goes from 2 to 1"),
    ],
)
def test_a_sparse_matrix_with_indices_out_of_range(name, at, value, text, format, wide):
    X = matrix() if format == "csr" else matrix().T
    X.indices, X.indptr = X.indices.astype(wide), X.indptr.astype(wide)
    check_structure(X)
    getattr(X, name)[at] = value
    words = ("column", "row", "column") if format == "csr" else ("row", "column", "row")
    with pytest.raises(ValueError, match=text.format(*words)):
        check_structure(X)


def test_a_sparse_matrix_of_other_arrays():
    for name, value in (
        ("indptr", np.array([0, 4])),
        ("indices", np.zeros(4)),
        ("indices", np.zeros(2, np.int32)),
        ("data", np.ones(3)),
    ):
        X = matrix()
        setattr(X, name, value)
        with pytest.raises(ValueError, match="not a valid CSR matrix"):
            check_structure(X)
    X = sparse.bsr_array(np.ones((4, 4)), blocksize=(2, 2))
    check_structure(X)
    X.indices[0] = 7
    with pytest.raises(ValueError, match="index values must be < 2"):
        check_structure(X)


@pytest.mark.parametrize("value", [-1, 3, 10**9])
@pytest.mark.parametrize("line", ["row", "column"])
def test_a_coo_matrix_with_an_index_out_of_range(line, value):
    X = sparse.coo_array(matrix())
    check_structure(X)
    (X.row if line == "row" else X.col)[2] = value
    with pytest.raises(ValueError, match=f"{line} index {value} at its stored value 2"):
        check_structure(X)
    with pytest.raises(ValueError, match=f"{line} index {value}"):
        SPAM().fit(X, [0, 1, 1])


def test_a_coo_matrix_of_other_arrays():
    X = sparse.coo_array(matrix())
    X.data = X.data[:2]
    with pytest.raises(ValueError, match="4 row indices, 4 column indices and 2 val"):
        check_structure(X)


@pytest.mark.parametrize("format", ["lil", "dok", "dia"])
def test_other_formats_are_checked_as_csr(format):
    X = matrix().asformat(format)
    check_structure(X)
    if format == "lil":
        X.rows[0][0] = 10**6
        with pytest.raises(ValueError, match="column index 1000000 in row 0"):
            check_structure(X)


def test_what_a_matrix_remembers_is_not_believed():
    X = matrix()
    assert X.has_canonical_format  # and remembered
    X.indices[2] = 2
    rows = as_rows(X)
    assert rows.indices.tolist() == [0, 2, 2]
    assert rows.data.tolist() == [1.0, 1.0, 2.0]
    assert X.indices.tolist() == [0, 2, 2, 2]
