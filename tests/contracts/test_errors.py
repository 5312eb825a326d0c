"""Contract: invalid input raises an error that names the value and its place."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from aucmax import AUCStream
from contracts.estimators import (
    assert_same_bits,
    each_fit,
    each_fit_way,
    online,
    plain,
    plain_way,
    seeded,
    strict,
    trained,
)
from helpers.data import gaussian


@pytest.mark.parametrize("labels", [[0], [1], ["yes"]])
@each_fit
def test_fit_needs_two_classes(estimator, labels):
    with pytest.raises(ValueError, match=r"only one class: \["):
        seeded(estimator).fit([[0.0], [1.0], [2.0]], labels * 3)


@online
def test_first_partial_fit_needs_classes(estimator):
    with pytest.raises(ValueError, match="classes="):
        seeded(estimator).partial_fit([[0.0], [1.0]], [1, 1])


def rows_with(value):
    X, y = gaussian(30, 4)
    X[np.abs(X) < 0.3] = 0.0
    X[7, 2] = value
    return X, y


LAYOUTS = {
    "dense": np.asarray,
    "float32": np.float32,
    "Fortran": np.asfortranarray,
    "list": np.ndarray.tolist,
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "COO": sparse.coo_array,
    "LIL": sparse.lil_array,
    "DOK": sparse.dok_array,
    "frame": lambda X: pd.DataFrame(X, columns=list("abcd")),
    "mixed frame": lambda X: pd.DataFrame(X, columns=list("abcd")).assign(
        b=X[:, 1] > 0.0
    ),
}


def assert_error_locates(estimator, layout, value):
    """Check that every method that takes rows reports where this value is."""
    X, y = rows_with(value)
    kind = "NaN" if np.isnan(value) else "infinity"
    column = r"2 \('c'\)" if "frame" in layout else "2"
    text = rf"contains {kind} at row 7, column {column}"
    convert = LAYOUTS[layout]
    fitted = trained(estimator, convert(rows_with(0.5)[0]), y)
    calls = [seeded(estimator).fit]
    if hasattr(estimator, "partial_fit"):
        calls += [seeded(estimator).partial_fit, fitted.partial_fit]
    for call in calls:
        with pytest.raises(ValueError, match=text):
            call(convert(X), y)
    for call in (fitted.decision_function, fitted.predict):
        with pytest.raises(ValueError, match=text):
            call(convert(X))


def accepts_missing(estimator, layout, value):
    """Return True if the estimator treats this value as a missing value.

    AUCStream accepts missing values in data frames.
    """
    if isinstance(estimator, AUCStream) and "frame" in layout:
        return np.isnan(value)
    tags = estimator.__sklearn_tags__()
    return np.isnan(value) and tags.input_tags.allow_nan and layout != "CSR"


@pytest.mark.parametrize("layout", ["dense", "CSR"])
@plain
@strict
def test_non_finite_values_are_located(estimator, layout):
    for value in (np.nan, np.inf, -np.inf):
        if not accepts_missing(estimator, layout, value):
            assert_error_locates(estimator, layout, value)


@pytest.mark.parametrize(
    "layout", [key for key in LAYOUTS if key not in ("dense", "CSR")]
)
@each_fit
@strict
def test_non_finite_values_are_located_in_any_layout(estimator, layout):
    value = np.inf if accepts_missing(estimator, layout, np.nan) else np.nan
    assert_error_locates(estimator, layout, value)


@plain_way
@strict
def test_both_infinities_and_nan(estimator, method):
    X, y = rows_with(np.inf)
    X[8, 2], X[9, 3] = -np.inf, np.nan
    with pytest.raises(ValueError, match="infinity at row 7, column 2"):
        trained(estimator, X, y, method)


@each_fit_way
def test_sparse_matrix_with_invalid_indices(estimator, method):
    """Kernels do not check indices: an invalid one would crash the interpreter."""
    X, y = gaussian(60)
    model = trained(estimator, X, y, method)
    for name, value in (("indices", 10**8), ("indices", -1), ("indptr", 10**8)):
        rows = sparse.csr_array(X)
        getattr(rows, name)[1] = value
        with pytest.raises(ValueError, match=f"{value}"):
            getattr(seeded(estimator), method)(rows, y)
        with pytest.raises(ValueError, match=f"{value}"):
            model.decision_function(rows)


@each_fit_way
def test_invalid_input(estimator, method):
    model = seeded(estimator)
    call = getattr(model, method)
    X, y = gaussian(10, 2)
    with pytest.raises(ValueError, match=r"convert string to float: .*red"):
        call([["red", 1.0], [2.0, 3.0]], [0, 1])
    with pytest.raises(ValueError, match="0 sample"):
        call(np.empty((0, 3)), [])
    with pytest.raises(ValueError, match="0 feature"):
        call(np.empty((10, 0)), y)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        call(X[:, 0], y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[10, 9\]"):
        call(X, y[:9])
    with pytest.raises(ValueError, match="Complex data not supported"):
        call(X * 1j, y)
    with pytest.raises(ValueError, match=r"y contains NaN"):
        call(X, np.where(y == 1, np.nan, 0.0))
    with pytest.raises(ValueError, match="continuous"):
        call(X, X[:, 0])


@plain
def test_wrong_width(estimator):
    X, y = gaussian(30, 4)
    model = trained(estimator, X, y)
    text = f"X has 3 features, but {type(estimator).__name__} is expecting 4"
    for rows in (X[:, :3], sparse.csr_array(X[:, :3])):
        with pytest.raises(ValueError, match=text):
            model.predict(rows)
        if hasattr(model, "partial_fit"):
            with pytest.raises(ValueError, match=text):
                model.partial_fit(rows, y)


@online
def test_unseen_labels(estimator):
    X, y = gaussian(10)
    for labels, strange in (
        (y, 7),
        (y.astype(float), 0.5),
        (np.array(["n", "p"])[y], "maybe"),
    ):
        model = seeded(estimator).partial_fit(X, labels)
        later = labels.astype(object)
        later[4] = strange
        with pytest.raises(ValueError, match=rf"unseen.*{strange}.* row 4"):
            model.partial_fit(X, later.tolist())
    model = seeded(estimator)
    with pytest.raises(ValueError, match=r"unseen.* row "):
        model.partial_fit(X, y, classes=[0, 2])
    model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"\[0, 2\].*\[0, 1\]"):
        model.partial_fit(X, y, classes=[0, 2])


@online
def test_a_failed_call_changes_nothing(estimator):
    X, y = gaussian(40)
    model = trained(estimator, X, y, "partial_fit")
    expected = copy.deepcopy(model)
    bad = X.copy()
    bad[-1, 0] = np.nan
    for rows, labels, weight in (
        (bad, y, None),
        (X[:, :2], y, None),
        (X, y + 1, None),
        (X, y, -y),
    ):
        with pytest.raises(ValueError, match=r"NaN|features|unseen|weight"):
            model.partial_fit(rows, labels, sample_weight=weight)
        assert_same_bits(model, expected)
        assert model.n_features_in_ == 6
    assert_same_bits(model.partial_fit(X, y), expected.partial_fit(X, y))


@plain
def test_bad_parameters(estimator):
    X, y = gaussian(20)
    for bad in ({"max_iter": 0}, {"max_iter": 1.5}, {"eta0": -1.0}, {"shuffle": "no"}):
        if bad.keys() <= estimator.get_params().keys():
            with pytest.raises(ValueError, match=f"The '{next(iter(bad))}' parameter"):
                seeded(estimator, **bad).fit(X, y)


def calls_with_rows(estimator, X, y):
    """Return the methods that take rows, as functions of X, y and weights."""
    calls = [seeded(estimator).fit]
    if hasattr(estimator, "partial_fit"):
        calls += [seeded(estimator).partial_fit, trained(estimator, X, y).partial_fit]
    return calls


@each_fit
def test_masked_values_are_refused(estimator):
    X, y = rows_with(0.5)
    hidden = np.arange(len(y)) == 7
    masked = np.ma.array(X, mask=np.tile(hidden[:, None], X.shape[1]))
    fitted = trained(estimator, X, y)
    text = r"X is a masked array with 4 masked values, the first at row 7.*filled"
    for call in (fitted.decision_function, fitted.predict):
        with pytest.raises(ValueError, match=text):
            call(masked)
    for call in calls_with_rows(estimator, X, y):
        with pytest.raises(ValueError, match=text):
            call(masked, y)
        with pytest.raises(ValueError, match="y is a masked array"):
            call(X, np.ma.array(y, mask=hidden))
        with pytest.raises(ValueError, match="sample_weight is a masked array"):
            call(X, y, sample_weight=np.ma.array(np.ones(len(y)), mask=hidden))
    with pytest.raises(ValueError, match="y is a masked array"):
        fitted.score(X, np.ma.array(y, mask=hidden))


@plain
def test_masked_arrays_without_masked_values_are_arrays(estimator):
    X, y = rows_with(0.5)
    weight = np.ones(len(y))
    found = seeded(estimator).fit(*map(np.ma.array, (X, y, weight)))
    expected = seeded(estimator).fit(X, y, weight)
    np.testing.assert_array_equal(
        found.decision_function(np.ma.array(X)), expected.decision_function(X)
    )


@each_fit
@pytest.mark.parametrize("dtype", ["M8[s]", "m8[s]", "S8"])
def test_dates_and_bytes_are_no_numbers(estimator, dtype):
    X, y = rows_with(0.5)
    wrong = np.round(10 * X).astype(np.int64).astype(dtype)
    for call in calls_with_rows(estimator, X, y):
        with pytest.raises(ValueError, match=r"X has values of type .*numbers"):
            call(wrong, y)
    with pytest.raises(ValueError, match=r"X has values of type .*numbers"):
        trained(estimator, X, y).decision_function(wrong)
