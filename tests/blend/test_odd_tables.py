"""Data frames with unusual types, names and values."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from aucmax import BAM, AUCClassifier

N = 200


def light(**parameters):
    return AUCClassifier([BAM()], cv=2, random_state=0, **parameters)


def rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=N), "z": rng.choice(["a", "b"], N)})
    return frame, frame.x + rng.normal(size=N) > 0.0


def check_single_rows(model, frame, count):
    """Check that single rows are encoded alike; BLAS may round their sums otherwise."""
    encoded, scores = model.encoder_.transform(frame), model.decision_function(frame)
    for i in range(count):
        row = frame.iloc[i : i + 1]
        assert_array_equal(model.encoder_.transform(row), encoded[i : i + 1])
        assert_allclose(model.decision_function(row), scores[i : i + 1], rtol=1e-12)


def test_a_row_has_the_same_score_alone_and_among_values_of_other_types():
    frame, y = rows()
    day = pd.Timestamp("2024-01-01")
    values = [8001, "x", 9000.0, True, 2.5, None, day, 2**70]
    frame["mixed"] = pd.Series([values[i % 8] for i in range(N)], dtype=object)
    model = light().fit(frame, y)
    check_single_rows(model, frame, 16)


def test_intervals_are_categories():
    frame, y = rows()
    frame["bin"] = pd.cut(frame.x, 4)
    model = light().fit(frame, y)
    assert {c.name: c.kind for c in model.columns_}["bin"] == "categorical"
    check_single_rows(model, frame, 1)


@pytest.mark.parametrize("kind", ["category", str])
def test_categories_that_are_equal_as_floats_are_told_apart(kind):
    frame, y = rows()
    frame["code"] = pd.Series(2**60 + y.astype(np.int64)).astype(kind)
    model = light().fit(frame, y)
    assert {c.name: c.kind for c in model.columns_}["code"] == "categorical"
    assert model.score(frame, y) == 1.0


def test_numbers_above_two_to_the_53_identify_rows():
    frame, y = rows()
    frame["id"] = 2**60 + np.arange(N)
    assert {c.name: c.kind for c in light().fit(frame, y).columns_}["id"] == (
        "identifier"
    )


@pytest.mark.parametrize("drop", ["odd", 2])
@pytest.mark.parametrize(
    "cell", [[1, 2], {"a": 1}, np.zeros(2), pd.Timedelta("1h")], ids=type
)
def test_columns_of_any_type_can_be_dropped(cell, drop):
    frame, y = rows()
    plain = light().fit(frame, y)
    frame["odd"] = [cell] * N
    model = light(drop=[drop]).fit(frame, y)
    assert_array_equal(model.decision_function(frame), plain.decision_function(frame))
    with pytest.raises(ValueError, match=r"drop=odd"):
        light().fit(frame, y)


def test_lists_are_no_categories():
    frame, y = rows()
    frame["odd"] = [[1, 2]] * N
    with pytest.raises(ValueError, match=r"'odd' has the type list.*drop=odd$"):
        light(categorical=["odd"]).fit(frame, y)


def test_complex_numbers_are_an_error_that_names_the_column():
    frame, y = rows()
    with pytest.raises(ValueError, match="'odd' has the type complex128"):
        light().fit(frame.assign(odd=1j), y)


@pytest.mark.filterwarnings("error")
def test_infinite_values_in_a_dropped_column_do_not_matter():
    frame, y = rows()
    light(drop=["odd"]).fit(frame.assign(odd=np.inf), y)


def test_a_name_that_is_a_number_is_no_position():
    frame, y = rows()
    frame = frame.assign(leak=y, group=np.arange(N) // 2)
    frame.columns = [1, 2, 3, 10]
    model = light(drop=[3], group=10, categorical=[2]).fit(frame, y)
    assert [c.name for c in model.columns_] == ["1", "2"]


def test_a_model_of_a_table_is_told_what_it_needs():
    frame, y = rows()
    model = light().fit(frame, y)
    with pytest.raises(ValueError, match="table of 2 columns: pass a data frame"):
        model.decision_function(frame.to_numpy())


@pytest.mark.filterwarnings("error")
def test_encoded_rows_need_no_names():
    frame, y = rows()
    model = light().fit(frame, y)
    encoded = model.encoder_.transform(frame)
    assert encoded.shape[1] == model.n_features_in_
    assert_array_equal(model.decision_function(encoded), model.decision_function(frame))


@pytest.mark.parametrize("missing", [None, np.nan])
def test_groups_are_lists_or_have_missing_values(missing):
    frame, y = rows()
    words = np.array([f"g{k}" for k in np.arange(N) // 4], object)
    expected = light().fit(frame, y, groups=words.astype(str)).out_of_fold_
    assert_array_equal(light().fit(frame, y, groups=words).out_of_fold_, expected)
    assert_array_equal(
        light().fit(frame, y, groups=words.tolist()).out_of_fold_, expected
    )
    words[:4] = missing
    found = light().fit(frame, y, groups=words).out_of_fold_
    words[:4] = ""  # one group, which comes first
    other = light().fit(frame, y, groups=words.astype(str)).out_of_fold_
    assert_array_equal(found, other)
