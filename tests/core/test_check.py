"""What is wrong with a value is said with its place."""

import numpy as np
import pytest
from scipy import sparse

from aucmax.core.check import check_values


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
