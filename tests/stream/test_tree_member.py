"""Boosted trees of AUCStream: refits, timing, chunks, storage, elimination."""

import copy
import pickle
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import aucmax
from aucmax import AUCStream
from aucmax.blend.forest import Forest
from aucmax.stream import trees as tree_member
from aucmax.stream.trees import Reservoir, TreeMember, fit_forest, next_n_trees
from helpers.states import dump

CLASSES = [False, True]
NUMBERS = np.zeros(3, np.int64)  # three columns without codes


def rings(n, seed=0, d=3):
    """Return rows whose class depends on the distance from the origin, 1 in 5."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, rng.random(n) < 1.0 / (1.0 + np.exp(6.0 - 3.0 * np.abs(X[:, 0])))


def streamed(X, y, chunk=500, weight=None, **parameters):
    model = AUCStream(**{"random_state": 0, **parameters})
    for start in range(0, len(y), chunk):
        part = slice(start, start + chunk)
        weights = None if weight is None else weight[part]
        model.partial_fit(X[part], y[part], CLASSES, weights)
    return model


def assert_equal_states(one, other):
    left, right = dump(one)[1], dump(other)[1]
    assert left.keys() == right.keys()
    for key, array in left.items():
        assert_array_equal(array, right[key], err_msg=key)


@pytest.mark.parametrize("half_life", [None, 600.0])
def test_chunks_and_layout_do_not_matter(half_life):
    X, y = rings(5000)
    X[np.abs(X) < 0.3] = 0.0
    parameters = {"reservoir": 1000, "half_life": half_life}
    one = streamed(X, y, **parameters)
    assert one._trees.refits > 2
    assert one._trees.reservoir.full
    assert_equal_states(one, streamed(X, y, 5000, **parameters))
    assert_equal_states(one, streamed(X, y, 333, **parameters))
    rows = sparse.csr_array(X)
    other = streamed(rows, y, 777, **parameters)
    assert_array_equal(one._trees.forest.trees.number, other._trees.forest.trees.number)
    assert_allclose(one.decision_function(X), other.decision_function(rows), rtol=1e-9)


def test_the_result_does_not_depend_on_the_duration_of_refits(monkeypatch):
    X, y = rings(3000)
    quick = streamed(X, y)

    def slow(*arguments):
        time.sleep(0.3)
        return fit_forest(*arguments)

    monkeypatch.setattr(tree_member, "fit_forest", slow)
    assert_equal_states(quick, streamed(X, y))


@pytest.mark.parametrize("rows", [999, 1030, 1100, 2600])
def test_a_saved_stream_continues_bit_for_bit(rows, tmp_path):
    X, y = rings(3000)
    whole, model = streamed(X, y), streamed(X[:rows], y[:rows])
    model.save(tmp_path / "model")
    twin = aucmax.load(tmp_path / "model")
    assert_array_equal(twin.decision_function(X), model.decision_function(X))
    assert twin.leaderboard_ == model.leaderboard_
    for one in (model, twin, pickle.loads(pickle.dumps(twin)), copy.deepcopy(twin)):
        one.partial_fit(X[rows:], y[rows:])
        assert_equal_states(whole, one)


def test_a_refit_is_taken_over_one_block_later():
    X, y = rings(2000)
    model = streamed(X[:1024], y[:1024])
    assert model._trees._refit is not None
    assert model._trees.forest is None
    model.partial_fit(X[1024:1087], y[1024:1087])
    assert model._trees.forest is None
    model.partial_fit(X[1087:1088], y[1087:1088])
    assert model._trees.forest is not None
    rows = {line.member: line.rows for line in model.leaderboard_}
    assert rows["LightGBM"] == 0  # not evaluated yet
    assert hasattr(model, "coef_")
    model.partial_fit(X[1088:], y[1088:])
    assert not hasattr(model, "coef_")


def test_an_error_of_a_refit_is_raised(monkeypatch):
    def fail(*_):
        raise MemoryError("no memory for trees")

    monkeypatch.setattr(tree_member, "fit_forest", fail)
    X, y = rings(1200)
    with pytest.raises(MemoryError, match="no memory for trees"):
        streamed(X, y)


def test_rows_of_weight_zero_change_nothing():
    X, y = rings(2500)
    present = np.random.default_rng(1).random(2500) < 0.8
    one = streamed(X, y, weight=present.astype(float))
    assert_equal_states(one, streamed(X[present], y[present]))


def test_weights_matter():
    """Rows of a small weight hardly matter, even if their labels are wrong."""
    X, y = rings(4000)
    wrong = np.random.default_rng(1).random(4000) < 0.45
    weight = np.where(wrong, 1e-3, 1.0)
    test = rings(3000, seed=9)
    good = streamed(X, y ^ wrong, weight=weight).score(*test)
    assert good > streamed(X, y ^ wrong).score(*test) + 0.02
    assert good > streamed(X, y).score(*test) - 0.02


def test_fit_ends_with_a_refit():
    X, y = rings(3000)
    model = AUCStream(shuffle=False, random_state=0).fit(X, y)
    assert model._trees.last_refit == 3000
    stream = streamed(X, y)
    assert stream._trees.last_refit < 3000
    assert_equal_states(model, stream.finish())


def test_probabilities_are_calibrated_with_trees():
    X, y = rings(12_000)
    model = streamed(X, y)
    X, y = rings(20_000, seed=1)
    p = model.predict_proba(X)[:, 1]
    assert p.mean() == pytest.approx(y.mean(), rel=0.1)
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 1.0)):
        some = (p >= low) & (p < high)
        assert y[some].mean() == pytest.approx(p[some].mean(), abs=0.05)


def test_progressive_auc_includes_the_trees():
    X, y = rings(6000)
    right, pairs = streamed(X, y).progressive_auc
    linear, _ = streamed(X, y, nonlinear=False).progressive_auc
    assert right / pairs > linear / pairs + 0.2


def test_wide_rows_have_no_trees():
    rng = np.random.default_rng(0)
    X = sparse.random_array((1500, 2001), density=0.01, rng=rng, format="csr")
    y = rng.random(1500) < 0.5
    one, linear = streamed(X, y), streamed(X, y, nonlinear=False)
    assert one._trees.refits == 0
    assert one._trees.reservoir._n == 0
    assert_array_equal(one.coef_, linear.coef_)
    assert_array_equal(one.decision_function(X), linear.decision_function(X))


def test_the_linear_members_are_those_of_a_linear_stream():
    X, y = rings(3000)
    one, linear = streamed(X, y), streamed(X, y, nonlinear=False)
    assert one._trees.refits > 1
    for name, learner in linear.members_.items():
        assert_array_equal(one.members_[name].coef_, learner.coef_)


def test_growing_beyond_the_limit_of_features_stops_the_trees(tmp_path):
    X, y = rings(2000)
    model = streamed(X, y)
    assert model.expression() is None
    model.resize(5)
    wider = np.hstack([X, np.zeros((2000, 2))])
    model.partial_fit(wider, y)
    assert model._trees.active
    model.resize(tree_member.MAX_FEATURES + 1)
    assert not model._trees.active
    assert_allclose(model._served.weights.sum(), 1.0)
    assert model.coef_.shape == (1, tree_member.MAX_FEATURES + 1)
    model.save(tmp_path / "model")
    twin = aucmax.load(tmp_path / "model")
    assert twin.leaderboard_ == model.leaderboard_


def test_trees_that_do_not_help_are_stopped():
    rng = np.random.default_rng(0)
    y = rng.random(40_000) < 0.5
    X = rng.normal(size=(40_000, 8)) + 0.3 * y[:, np.newaxis]
    model = streamed(X, y, 5000, reservoir=1000)
    assert not model._trees.active
    line = next(line for line in model.leaderboard_ if line.member == "LightGBM")
    assert (line.running, line.weight) == (False, 0.0)
    assert line.behind > 0.005
    assert model.coef_.shape == (1, 8)


def test_a_half_life_follows_a_change():
    X, y = rings(12_000)
    test, label = rings(3000, seed=5)
    X[6000:, [0, 1]] = X[6000:, [1, 0]]  # another feature matters
    test[:, [0, 1]] = test[:, [1, 0]]
    recent = streamed(X, y, half_life=1000.0)
    assert recent.score(test, label) > streamed(X, y).score(test, label)
    sample = recent._trees.reservoir.sample()
    assert sample.weight[sample.number < 6000].sum() < 0.03 * sample.weight.sum()
    assert recent.score(test, label) > 0.75


def test_the_number_of_trees_is_that_of_the_best_on_later_rows():
    X, y = rings(2000)
    noise = np.random.default_rng(3).random(2000) < 0.5
    kept = Reservoir(3, 5000, 0)
    kept.add(X, np.where(noise, 1.0, -1.0), 0, 0.0)
    overfitted = fit_forest(kept.sample(), NUMBERS, 100, 0)
    kept.add(X, np.where(noise, 1.0, -1.0), 2000, 0.0)
    assert next_n_trees(overfitted, kept.sample(), 2000.0) == 200  # it knows these rows
    other = Reservoir(3, 5000, 0)
    other.add(*(rings(3000, 1)[0], np.where(y.repeat(2)[:3000], 1.0, -1.0), 0, 0.0))
    assert 10 <= next_n_trees(overfitted, other.sample(), 0.0) <= 200


def test_thresholds_of_trees_are_in_the_units_of_the_data():
    X, y = rings(2000)
    X = np.round(X, 1) + 1e6  # many rows equal the centre
    kept = Reservoir(3, 5000, 0)
    kept.add(X, np.where(y, 1.0, -1.0), 0, 0.0)
    sample = kept.sample()
    centred = Reservoir(3, 5000, 0)
    centred.add(X - X[0], np.where(y, 1.0, -1.0), 0, 0.0)
    expected = fit_forest(centred.sample(), NUMBERS, 30, 0)
    found = fit_forest(sample, NUMBERS, 30, 0)
    assert_array_equal(found.scores(X), expected.scores(X - X[0]))


def stored():
    return streamed(*rings(1500))._trees.arrays()


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("progress", np.zeros(2), "'progress' of the trees"),
        ("progress", np.array([1.0, -1.0, 0.0]), "'progress' of the trees"),
        ("mixtures.runs", np.zeros(5), "race: 'runs'"),
        ("forest.right", np.zeros(3), "of the trees has shape"),
        ("reservoir.rows", np.zeros((2, 3), np.float32), "reservoir"),
    ],
)
def test_invalid_arrays_are_refused(name, value, why):
    arrays = stored()
    assert name in arrays
    with pytest.raises(ValueError, match=why):
        TreeMember.restored({**arrays, name: value}, 3, None)


def test_a_forest_is_stored_exactly():
    arrays = stored()
    forest = {k.removeprefix("forest."): a for k, a in arrays.items() if "forest." in k}
    twin = Forest.restored(forest, 3)
    for name, array in twin.arrays().items():
        assert_array_equal(array, forest[name], err_msg=name)
