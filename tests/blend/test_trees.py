"""Trees as plain arrays, compared with scikit-learn's trees."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from aucmax.blend.forest import LEAF, Forest, _cart
from aucmax.blend.trees import BoostedTrees, RandomizedTrees
from helpers.data import gaussian, mixed


def walk(forest, row):
    """Return the sum of leaf values, computed node by node."""
    total = 0.0
    for root in forest.roots:
        at = root
        while forest.feature[at] != LEAF:
            left = row[forest.feature[at]] <= forest.number[at]
            at = at + 1 if left else forest.right[at]
        total += forest.number[at]
    return total


def grown(X, y, n_trees=4):
    model = HistGradientBoostingClassifier(max_iter=n_trees, min_samples_leaf=5)
    return model.fit(X, y), Forest.of_boosting(model)


def test_boosted_trees_score_as_in_scikit_learn():
    X, y = mixed(300)
    model, forest = grown(X, y)
    new = np.vstack([X, mixed(200, seed=1)[0]])
    expected = model.decision_function(new) - model._baseline_prediction.item()
    assert_allclose(forest.scores(new), expected, rtol=1e-12, atol=1e-12)
    assert_allclose(forest.scores(new)[:20], [walk(forest, x) for x in new[:20]])


def test_randomised_trees_score_as_in_scikit_learn():
    X, y = gaussian(300)
    X = X.astype(np.float32)
    model = RandomizedTrees(7, random_state=3).fit(X, y)
    seed = np.random.RandomState(3).randint(np.iinfo(np.int32).max)
    reference = ExtraTreesClassifier(7, min_samples_leaf=2, random_state=seed).fit(X, y)
    p = np.clip(reference.predict_proba(X)[:, 1], 1e-3, 1 - 1e-3)
    assert_allclose(model.decision_function(X), np.log(p / (1 - p)), rtol=1e-4)


def test_sparse_rows_score_as_dense_ones():
    X, y = mixed(200)
    for model in (BoostedTrees(3, random_state=0), RandomizedTrees(3, random_state=0)):
        dense = model.fit(X, y).decision_function(X)
        rows = sparse.csr_array(X)
        assert_array_equal(model.decision_function(rows), dense)
        assert_array_equal(model.fit(rows, y).decision_function(rows), dense)


@pytest.mark.parametrize(("shift", "factor"), [(1.7e9, 1.0), (0.0, 1e60), (0.0, 1e-60)])
def test_columns_that_float32_cannot_represent(shift, factor):
    X, y = gaussian(400)
    model = RandomizedTrees(20, random_state=0)
    expected = model.fit(X, y).decision_function(X)
    other = X * factor + shift
    assert (
        np.corrcoef(model.fit(other, y).decision_function(other), expected)[0, 1] > 0.99
    )


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
    X, y = gaussian(300)
    boosted = grown(X, y)[1]
    randomised = RandomizedTrees(3, random_state=0).fit(X, y).forest_
    assert randomised.arrays()["number"].dtype == np.float32
    for forest in (boosted, randomised):
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
    ],
)
def test_invalid_arrays_are_refused(name, place, value):
    X, y = gaussian(300)
    arrays = {key: np.array(a, float) for key, a in grown(X, y)[1].arrays().items()}
    arrays[name][place] = value
    with pytest.raises(ValueError, match=r"out of range|invalid right|not finite"):
        Forest.restored(arrays, 6)


@pytest.mark.parametrize("roots", [[], [1], [0, 5, 3], [0, 0]])
def test_unordered_roots_are_refused(roots):
    X, y = gaussian(300)
    arrays = {**grown(X, y)[1].arrays(), "roots": np.array(roots, float)}
    with pytest.raises(ValueError, match="must start at 0 and increase"):
        Forest.restored(arrays, 6)


def test_an_unsupported_order_of_nodes_is_an_error():
    tree = SimpleNamespace(children_left=np.array([2, -1, -1]))
    with pytest.raises(RuntimeError, match=r"scikit-learn .* does not support"):
        _cart(tree, np.zeros(1), np.ones(1))


def test_the_last_node_must_be_a_leaf():
    arrays = {"feature": [0.0], "number": [0.0], "right": [0.0], "roots": [0.0]}
    with pytest.raises(ValueError, match="invalid right child"):
        Forest.restored({k: np.array(v) for k, v in arrays.items()}, 1)
