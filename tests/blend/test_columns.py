"""Columns and features of a table; numbers that are codes."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from aucmax.blend.default_members import default_team
from aucmax.blend.layout import FeatureView, IntegerCodes, RowLayout, TableRows

RNG = np.random.default_rng(0)
N = 300


def columns(levels=4):
    X = np.column_stack(
        [RNG.normal(size=N), RNG.integers(0, levels, N), RNG.normal(size=N)]
    )
    X[::10, 0], X[::7, 1] = np.nan, np.nan
    return X.astype(float), np.array([0, levels, 0])


@pytest.mark.parametrize("levels", [4, 700])
def test_features_are_numbers_flags_and_frequent_categories(levels):
    X, sizes = columns(levels)
    view = FeatureView.fit(X, sizes)
    features = view.transform(X)
    dense = features.toarray() if sparse.issparse(features) else features
    assert dense.shape == (N, view.width)
    median = np.nanmedian(X[:, 0])
    assert_array_equal(dense[:, 0], np.where(np.isnan(X[:, 0]), median, X[:, 0]))
    assert_array_equal(dense[:, 1], X[:, 2])
    assert_array_equal(dense[:, 2], np.isnan(X[:, 0]))
    expected = []
    for code in [*range(levels), np.nan]:
        is_code = np.isnan(X[:, 1]) if np.isnan(code) else X[:, 1] == code
        if is_code.sum() >= 5:
            expected.append(is_code)
    assert_array_equal(dense[:, 3:], np.array(expected).T)


def test_a_wide_view_is_sparse():
    X = np.column_stack([np.repeat(np.arange(600.0), 5), np.ones(3000)])
    features = FeatureView.fit(X, np.array([600, 0])).transform(X)
    assert sparse.issparse(features)
    assert features.shape == (3000, 601)
    assert_array_equal(features.toarray()[:, 1:].argmax(axis=1), X[:, 0])


def test_unknown_codes_have_no_feature():
    X, sizes = columns()
    view = FeatureView.fit(X, sizes)
    other = X[:1].copy()
    other[0, 1] = 3.0
    known = view.transform(other)[0, 3:]
    assert known.sum() == 1.0
    other[0, 1] = 9.0  # beyond: as missing
    assert_array_equal(view.transform(other)[0, 3:].nonzero()[0], [4])


def test_stored_arrays_give_the_same_view():
    X, sizes = columns()
    view = FeatureView.fit(X, sizes)
    again = FeatureView.restored(view._asdict(), 3)
    assert_array_equal(again.transform(X), view.transform(X))
    with pytest.raises(ValueError, match="out of range"):
        FeatureView.restored({**view._asdict(), "onehot": np.array([5.0])}, 3)
    with pytest.raises(ValueError, match="levels"):
        FeatureView.restored({**view._asdict(), "levels": np.zeros(2)}, 3)


def test_rows_have_words_beside_features():
    X, sizes = columns()
    words = sparse.csr_array(np.eye(N)[:, :5])
    rows = TableRows(X, FeatureView.fit(X, sizes), words)
    features = rows.features
    assert features.shape == (N, rows.view.width + 5)
    some = rows.take(np.arange(10))
    assert len(some) == 10
    assert_array_equal(some.features.toarray(), features.toarray()[:10])


def identifiers(n=2000):
    """Return columns of which the second has codes, and labels."""
    rng = np.random.default_rng(1)
    ids = rng.choice(10_000, 60, replace=False)
    effect = rng.normal(size=60)
    which = rng.integers(0, 60, n)
    age = rng.integers(18, 80, n).astype(float)
    positive = effect[which] + age / 40 + rng.normal(size=n) > 1.2
    return np.column_stack([age, ids[which], rng.normal(size=n)]), positive


def test_numbers_that_are_codes_are_recognised():
    X, positive = identifiers()
    codes = IntegerCodes.fit(X, np.zeros(3, int), positive, 0)
    assert codes.columns.tolist() == [1]
    values = np.unique(X[:, 1])
    assert codes.levels.tolist() == [len(values) + 1]
    found = codes.transform(X)
    assert_array_equal(found[:, :3], X)
    assert_array_equal(values[found[:, 3].astype(int)], X[:, 1])
    other = np.array([[30.0, -1.0, 0.0], [30.0, np.nan, 0.0]])
    assert_array_equal(codes.transform(other)[:, 3], [len(values), np.nan])
    again = IntegerCodes.restored(codes._asdict(), 3)
    assert_array_equal(again.transform(X), found)
    with pytest.raises(ValueError, match="out of range"):
        IntegerCodes.restored({**codes._asdict(), "columns": np.array([3.0])}, 3)


def test_declared_categories_are_not_looked_at():
    X, positive = identifiers()
    codes = IntegerCodes.fit(X, np.array([0, 9, 0]), positive, 0)
    assert_array_equal(codes.transform(X), X)


def team(n_rows, n_words=0, levels=(0, 30)):
    layout = RowLayout.of(np.zeros((1, len(levels) + n_words)), list(levels))
    layout = layout._replace(
        view=FeatureView.fit(np.zeros((9, len(levels))), np.array(levels)),
        width=len(levels) + n_words,
    )
    return [member.name.split(",")[0] for member in default_team(layout, n_rows)]


def test_members_by_rows_and_columns():
    trees = ["boosted trees"] * 3
    assert team(400) == [*trees, "kernel", "linear"]
    assert team(2000) == [*trees, "kernel"]
    assert team(5000) == trees
    assert team(5000, n_words=9) == team(400, n_words=9) == [*trees, "linear"]
    assert team(200_000) == ["boosted trees", "linear"]
    assert team(400, levels=(0, 0)) == ["boosted trees", "linear", "kernel"]
