"""Columns of the trees of a stream: codes of categories, stored trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax.stream import trees as tree_columns
from aucmax.stream.trees import (
    ColumnForest,
    Reservoir,
    TreeColumns,
    TreeScore,
    fit_forest,
)

# A number, a category of 60, a number, a category of 3, a category of 70.
CATEGORY = np.repeat([-1, 0, -1, 1, 2], [1, 60, 1, 3, 70])


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """Let few features be many."""
    monkeypatch.setattr(tree_columns, "MAX_FEATURES", 100)


def features(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, len(CATEGORY)))
    X[:, CATEGORY == -1] = rng.normal(size=(n, 2))
    for category in range(3):
        members = np.flatnonzero(category == CATEGORY)
        chosen = rng.choice(members, n)
        X[np.arange(n), chosen] = rng.choice([-1.0, 1.0], n)  # hashed ones have signs
        X[rng.random(n) < 0.1, members[0] : members[-1] + 1] = 0.0
    return X


def by_hand(row):
    """Return kept features, then the codes of large categories."""
    kept = [x for x, c in zip(row, CATEGORY, strict=True) if c in (-1, 1)]
    codes = []
    for category in (0, 2):
        (at,) = np.nonzero(row[category == CATEGORY])
        codes.append(float(at[0]) if len(at) else (category == CATEGORY).sum())
    return [*kept, *codes]


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_columns_equal_those_made_row_by_row(layout, monkeypatch):
    monkeypatch.setattr(tree_columns, "_MAX_VALUES", 100)
    X, columns = features(200), TreeColumns(CATEGORY)
    blocks = list(columns.blocks(layout(X)))
    assert len(blocks) > 10
    assert_array_equal(np.vstack([part for _, part in blocks]), list(map(by_hand, X)))
    assert columns.levels.tolist() == [0] * 5 + [61, 71]


def test_features_stay_without_large_categories():
    X = features(20)
    columns = TreeColumns(np.where(CATEGORY == 1, 1, -1))
    ((_, found),) = columns.blocks(X)
    assert found is X
    assert not columns.arrays()


def test_narrow_rows_have_no_codes(monkeypatch):
    monkeypatch.setattr(tree_columns, "MAX_FEATURES", len(CATEGORY))
    assert not TreeColumns(CATEGORY).has_codes


def fitted():
    X, columns = features(1500), TreeColumns(CATEGORY)
    rng = np.random.default_rng(1)
    effect = rng.normal(size=len(CATEGORY)) * (CATEGORY == 0)
    y = rng.random(1500) < 1.0 / (1.0 + np.exp(-2.0 * np.abs(X) @ effect))
    kept = Reservoir(columns.width, 5000, 0)
    for _, part in columns.blocks(X):
        kept.add(part, np.where(y, 1.0, -1.0), 0, 0.0)
    return X, y, columns, fit_forest(kept.sample(), columns.levels, 20, 0)


def test_codes_are_encoded_and_stored():
    X, y, columns, forest = fitted()
    assert forest.encoding is not None
    score = TreeScore(columns, forest).scores(X)
    assert score[y].mean() > score[~y].mean() + 0.5
    twin = ColumnForest.restored(forest.arrays(), columns.levels)
    again = TreeColumns.restored(columns.arrays(), len(CATEGORY))
    assert_allclose(TreeScore(again, twin).scores(X), score, rtol=1e-12)


def test_the_log_odds_are_those_of_the_kept_rows():
    X, y, columns, forest = fitted()
    codes = np.vstack([part for _, part in columns.blocks(X)])[:, -2]
    encoding = forest.encoding
    shares = [y[codes == k].mean() for k in encoding.keys[: encoding.key_ends[0]]]
    assert np.corrcoef(shares, encoding.odds[: encoding.key_ends[0]])[0, 1] > 0.9


def test_invalid_arrays_are_refused():
    _, _, columns, forest = fitted()
    stored = forest.arrays()
    cut = {**stored, "terms.odds": stored["terms.odds"][1:]}
    with pytest.raises(ValueError, match="target encoding"):
        ColumnForest.restored(cut, columns.levels)
    with pytest.raises(ValueError, match="'category' has shape"):
        TreeColumns.restored({"category": CATEGORY[1:]}, len(CATEGORY))
    with pytest.raises(ValueError, match="'category'"):
        TreeColumns.restored({"category": CATEGORY - 1}, len(CATEGORY))
