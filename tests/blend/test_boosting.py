"""Boosted trees that grow in all folds and stop together."""

import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import StratifiedKFold

from aucmax.blend.boosting import BoostedTrees, Boosting
from aucmax.metrics import auc
from aucmax.storage.state import restore

N = 900


def table(seed=0, n=N):
    """Return columns of which the last two are categories, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 3], X[:, 4] = rng.integers(0, 60, n), rng.integers(0, 4, n)
    X[rng.random(n) < 0.1, 0] = np.nan
    effect = np.random.default_rng(9).normal(size=60)[X[:, 3].astype(int)]
    score = np.nan_to_num(X[:, 0]) * (X[:, 4] > 1) + effect + rng.normal(size=n)
    return X, np.array([0, 0, 0, 60, 4]), score > 0.0


FOLDS = list(StratifiedKFold(3).split(np.zeros(N), table()[2]))
SETTINGS = Boosting(learning_rate=0.1, most_rounds=60, patience=20)


def first_trees(model, count):
    """Return a copy of a model with its first trees."""
    forest = model.forest_
    end = [*forest.roots.tolist(), len(forest.feature)][count]
    some = BoostedTrees()
    some.forest_ = forest._replace(
        feature=forest.feature[:end],
        number=forest.number[:end],
        right=forest.right[:end],
        kind=forest.kind[:end],
        roots=forest.roots[:count],
    )
    some.offset_, some.levels_ = model.offset_, model.levels_
    some.encoding_ = model.encoding_
    return some


def test_trees_stop_where_the_mean_of_the_folds_is_best():
    X, levels, y = table()
    models, scores = SETTINGS.fit_folds(X, levels, y, None, FOLDS, 0)
    counts = {len(model.forest_.roots) for model in models}
    assert len(counts) == 1  # the same in all folds
    curves = []
    for k, (train, test) in enumerate(FOLDS):  # without test rows, all trees are kept
        (whole,), _ = SETTINGS.fit_folds(X, levels, y, None, [(train, test[:0])], k)
        parts = [first_trees(whole, count) for count in range(1, 61)]
        curves.append([auc(y[test], part.score_rows(X[test])) for part in parts])
    assert counts == {int(np.argmax(np.mean(curves, axis=0))) + 1}
    assert counts != {int(np.argmax(curves[0])) + 1}  # or the test shows little
    for model, score, (_, test) in zip(models, scores, FOLDS, strict=True):
        assert_array_equal(model.score_rows(X[test]), score)


def test_results_do_not_depend_on_threads():
    X, levels, y = table()
    one = SETTINGS.fit_folds(X, levels, y, None, FOLDS, 0, n_jobs=1)
    two = SETTINGS.fit_folds(X, levels, y, None, FOLDS, 0, n_jobs=2)
    for a, b in zip(one[1], two[1], strict=True):
        assert_array_equal(a, b)


def test_categories_and_pairs_are_learnt():
    X, levels, y = table(n=3000)
    new, _, y_new = table(1)
    every = [(np.arange(3000), np.arange(0))]

    def test_auc(kept=5, **settings):
        boosting = Boosting(learning_rate=0.1, most_rounds=60, **settings)
        rows = X[:, :kept], levels[:kept], y
        (model,), _ = boosting.fit_folds(*rows, None, every, 0)
        return auc(y_new, model.score_rows(new[:, :kept]))

    assert test_auc(kept=3) < 0.75
    assert test_auc() > 0.8
    assert test_auc(native_up_to=0, encode_above=2, pairs=3) > 0.8


def test_weights_count():
    X, levels, y = table()
    weight = np.where(np.arange(N) % 2, 1.0, 1e-6)
    every = [(np.arange(N), np.arange(0))]
    odd = np.arange(N) % 2 == 1
    settings = Boosting(
        row_share=1.0, feature_share=1.0, most_rounds=10, encode_above=99
    )
    (weighted,), _ = settings.fit_folds(X, levels, y, weight, every, 0)
    half = [(np.arange(odd.sum()), np.arange(0))]
    (fewer,), _ = settings.fit_folds(X[odd], levels, y[odd], None, half, 0)
    (all_rows,), _ = settings.fit_folds(X, levels, y, None, every, 0)
    scores = [model.score_rows(X) for model in (weighted, fewer, all_rows)]
    assert np.corrcoef(scores[0], scores[1])[0, 1] > np.corrcoef(*scores[1:])[0, 1]


def test_a_deadline_stops_growth():
    X, levels, y = table()
    settings = Boosting(most_rounds=10_000, patience=10_000)
    models, _ = settings.fit_folds(X, levels, y, None, FOLDS, 0, end=0.0)
    assert len(models[0].forest_.roots) <= 10


def test_the_state_gives_the_same_scores():
    X, levels, y = table()
    settings = Boosting(learning_rate=0.1, most_rounds=30, encode_above=2, pairs=3)
    models, _ = settings.fit_folds(X, levels, y, None, FOLDS, 0)
    again = restore(models[0].state())
    assert_array_equal(again.score_rows(X), models[0].score_rows(X))


def test_a_fit_without_stopping_is_that_of_lightgbm():
    X, _, y = table()
    X = np.nan_to_num(X)
    model = BoostedTrees(30, max_features=1.0, random_state=0).fit(X, y)
    assert len(model.forest_.roots) == 30
    reference = lightgbm.LGBMClassifier(
        n_estimators=30, learning_rate=0.05, verbosity=-1, random_state=0
    ).fit(X, y)
    expected = reference.predict_proba(X)[:, 1]
    assert np.corrcoef(model.decision_function(X), expected)[0, 1] > 0.95
    assert_allclose(auc(y, model.decision_function(X)), auc(y, expected), atol=0.03)


def test_lightgbm_says_nothing(capfd):
    X, levels, y = table()
    SETTINGS.fit_folds(X[:60], levels, y[:60], None, [(np.arange(60), np.arange(0))], 0)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("name", ["levels", "terms.keys"])
def test_an_invalid_state_is_refused(name):
    X, levels, y = table()
    models, _ = SETTINGS.fit_folds(X, levels, y, None, FOLDS, 0)
    state = models[0].state()
    state.arrays[f"own.{name}"] = np.array([-1.0])
    with pytest.raises(ValueError, match=r"out of range|shape|invalid"):
        restore(state)
