"""Trees as plain arrays, compared with those of LightGBM."""

import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax.blend.boosting import BoostedTrees
from aucmax.blend.forest import CATEGORICAL, LEAF, MISSING_LEFT, Forest
from helpers.data import gaussian, mixed


def walk(forest, row):
    """Return the sum of leaf values, computed node by node."""
    total = 0.0
    for root in forest.roots:
        at = root
        while forest.feature[at] != LEAF:
            x, number = row[forest.feature[at]], forest.number[at]
            if forest.kind[at] == CATEGORICAL:
                words = forest.sets[slice(*forest.bounds[int(number) :][:2])]
                bits = [(w >> k) & 1 for w in words.tolist() for k in range(32)]
                left = 0 <= x < len(bits) and bits[int(x)] == 1
            elif np.isnan(x):
                left = forest.kind[at] == MISSING_LEFT
            else:
                left = x <= number
            at = at + 1 if left else forest.right[at]
        total += forest.number[at]
    return total


def with_categories(n=600, seed=0):
    """Return rows with missing values and two categories, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 4], X[:, 5] = rng.integers(0, 70, n), rng.integers(0, 5, n)
    X[rng.random(n) < 0.1, 4] = np.nan
    effect = np.nan_to_num(X[:, 0]) + (X[:, 4] % 3 == 1) + (X[:, 5] % 2)
    return X, effect + rng.normal(size=n) > 1.0


def grown(X, y, n_trees=4, categories=()):
    settings = {"objective": "binary", "verbosity": -1, "min_data_in_leaf": 5}
    settings |= {"cat_smooth": 1.0, "deterministic": True}
    data = lightgbm.Dataset(X, y, categorical_feature=list(categories))
    booster = lightgbm.train(settings, data, n_trees)
    return booster, Forest.of_lightgbm(booster, n_trees, np.zeros(X.shape[1]))


@pytest.mark.parametrize("categories", [(), (4, 5)])
def test_boosted_trees_score_as_in_lightgbm(categories):
    X, y = with_categories()
    booster, forest = grown(X, y, 9, categories)
    assert (forest.kind == CATEGORICAL).any() == bool(categories)
    new = with_categories(300, 1)[0]
    new[:9, 4], new[9:20, 1:3] = 99.0, np.nan
    assert_allclose(forest.scores(new), booster.predict(new, raw_score=True))
    assert_allclose(forest.scores(new[:30]), [walk(forest, x) for x in new[:30]])
    fewer = Forest.of_lightgbm(booster, 3, np.zeros(6))
    expected = booster.predict(new, raw_score=True, num_iteration=3)
    assert_allclose(fewer.scores(new), expected)


def test_a_number_that_is_first_missing_in_new_rows_is_scored_as_the_median():
    X, y = gaussian(300)
    X = X + 5.0  # zero is not a typical value
    booster, _ = grown(X, y, 9)
    median = np.median(X, axis=0)
    forest = Forest.of_lightgbm(booster, 9, median)
    for j in range(X.shape[1]):
        lacking, filled = X[:20].copy(), X[:20].copy()
        lacking[:, j], filled[:, j] = np.nan, median[j]
        assert_array_equal(forest.scores(lacking), forest.scores(filled))


def test_sparse_rows_score_as_dense_ones():
    X, y = mixed(200)
    model = BoostedTrees(3, random_state=0)
    dense = model.fit(X, y).decision_function(X)
    rows = sparse.csr_array(X)
    assert_array_equal(model.decision_function(rows), dense)
    assert_array_equal(model.fit(rows, y).decision_function(rows), dense)


def test_scores_do_not_depend_on_blocks(monkeypatch):
    X, y = gaussian(200)
    _, forest = grown(X, y)
    whole = forest.scores(X)
    monkeypatch.setattr("aucmax.blend.forest._BLOCK", 50)
    assert_array_equal(forest.scores(X), whole)
    assert forest.scores(X[:0]).shape == (0,)


def test_a_tree_that_is_one_leaf():
    X, y = gaussian(60)
    model = BoostedTrees(2, min_leaf=60, random_state=0).fit(X, y)
    assert (model.forest_.feature == LEAF).all()
    assert np.ptp(model.decision_function(X)) == 0.0


def test_stored_arrays_are_small_and_restored():
    X, y = with_categories()
    forest = grown(X, y, 5, [4, 5])[1]
    arrays = forest.arrays()
    assert arrays["feature"].dtype == np.int16
    again = Forest.restored(arrays, X.shape[1])
    assert_array_equal(again.scores(X), forest.scores(X))


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("feature", 0, 6),  # of six
        ("feature", 0, -2),
        ("right", 0, 0),  # an endless loop
        ("right", 0, 1),  # the left child
        ("right", 0, 10**9),
        ("roots", 0, -1),
        ("roots", 0, 10**9),
        ("number", 0, np.nan),
        ("kind", 0, 3),
        ("sets", 0, 1e10),
        ("bounds", 0, 1e9),
        ("bounds", 1, 0.5),
    ],
)
def test_invalid_arrays_are_refused(name, place, value):
    X, y = with_categories()
    forest = grown(X, y, 4, [4, 5])[1]
    arrays = {key: np.array(a, float) for key, a in forest.arrays().items()}
    arrays[name][place] = value
    with pytest.raises(ValueError, match=r"out of range|invalid right|not finite"):
        Forest.restored(arrays, 6)


def test_sets_that_do_not_exist_are_refused():
    X, y = with_categories()
    arrays = grown(X, y, 4, [4, 5])[1].arrays()
    number = arrays["number"].copy()
    number[arrays["kind"] == CATEGORICAL] = 1e6
    with pytest.raises(ValueError, match="sets of categories"):
        Forest.restored({**arrays, "number": number}, 6)


@pytest.mark.parametrize("roots", [[], [1], [0, 5, 3], [0, 0]])
def test_unordered_roots_are_refused(roots):
    X, y = gaussian(300)
    arrays = {**grown(X, y)[1].arrays(), "roots": np.array(roots, float)}
    with pytest.raises(ValueError, match="must start at 0 and increase"):
        Forest.restored(arrays, 6)


def test_the_last_node_must_be_a_leaf():
    arrays = {"feature": [0.0], "number": [0.0], "right": [0.0], "roots": [0.0]}
    with pytest.raises(ValueError, match="invalid right child"):
        Forest.restored({k: np.array(v) for k, v in arrays.items()}, 1)
