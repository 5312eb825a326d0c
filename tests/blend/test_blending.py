"""What members count, against what it minimises; and how long they may take."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit

from aucmax import BAM
from aucmax.blend.blending import RIDGE, weights
from aucmax.blend.crossfit import (
    Cost,
    Member,
    Rows,
    affordable,
    crossfit,
    deal,
    scores_of,
)
from aucmax.blend.trees import RandomizedTrees
from helpers.data import gaussian


def standard(n=400, seed=0):
    """Return scores of three members: a good one, its twin with noise, and noise."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    good = y + rng.standard_normal(n)
    S = np.column_stack([good, good + rng.standard_normal(n), rng.standard_normal(n)])
    return (S - S.mean(axis=0)) / S.std(axis=0), np.where(y, 1.0, -1.0)


def objective(Z, signed, w, b):
    margin = np.sign(signed) * (Z @ w + b)
    weight = np.abs(signed) / np.abs(signed).mean()
    return (weight * np.log1p(np.exp(-margin))).sum() + RIDGE * (w**2).sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_the_minimum(weighted):
    Z, signed = standard()
    if weighted:
        signed = signed * np.random.default_rng(1).uniform(0.5, 3.0, len(signed))
    w = weights(Z, signed)
    assert (w >= 0.0).all()
    value = minimize(lambda b: objective(Z, signed, w, b[0]), [0.0]).fun
    for j in range(3):
        for step in (-0.02, 0.02):
            other = np.maximum(w + step * np.eye(3)[j], 0.0)
            found = minimize(lambda b, w=other: objective(Z, signed, w, b[0]), [0.0])
            assert found.fun >= value - 1e-6


def test_without_bounds_it_is_ridge_logistic_regression():
    Z, signed = standard()
    Z = Z[:, :1]
    model = LogisticRegression(C=1.0 / (2.0 * RIDGE), tol=1e-8).fit(Z, signed)
    assert_allclose(weights(Z, signed), model.coef_[0], rtol=1e-3)


def test_who_ranks_the_wrong_way_round_does_not_count():
    Z, signed = standard()
    Z = np.column_stack([Z[:, 0], -Z[:, 0]])
    w = weights(Z, signed)
    assert w[0] > 0.5
    assert w[1] == 0.0
    assert_allclose(weights(-Z[:, :1], signed), [1.0])  # nobody else is there


def rows(n=120, seed=0):
    X, y = gaussian(n, 4, seed)
    return Rows(X, np.where(y == 1, 1.0, -1.0), False)


def test_each_row_is_scored_by_a_model_that_never_saw_it():
    data = rows()
    parts = deal(3, data.signed, None, 0)
    (fitted,) = crossfit([Member("linear", BAM())], data, [parts], 0)
    assert len(fitted.models) == 3
    for part, model in zip(parts, fitted.models, strict=True):
        assert not np.intersect1d(part.train, part.test).size
        alone = BAM().fit(data.X[part.train], data.signed[part.train] > 0)
        expected = alone.decision_function(data.X[part.test])
        assert_allclose(fitted.scores[part.test], expected)
        assert_allclose(scores_of(model, data.X), alone.decision_function(data.X))


def test_splits_along_time_are_judged_by_what_comes_later_and_refitted():
    data = rows()
    parts = deal(TimeSeriesSplit(3), data.signed, None, 0)
    (fitted,) = crossfit([Member("linear", BAM())], data, [parts], 0)
    assert len(fitted.models) == 1
    assert np.isnan(fitted.scores[:30]).all()
    assert not np.isnan(fitted.scores[30:]).any()
    every = BAM().fit(data.X, data.signed > 0).decision_function(data.X)
    assert_allclose(scores_of(fitted.models[0], data.X), every)


def test_splits_count_rows_of_weight_zero_and_leave_them_out():
    signed = np.tile([1.0, -1.0, 0.0], 20)
    rows = np.arange(60)
    (first, second) = deal(
        [(rows[:30], rows[30:]), (rows[30:], rows[:30])], signed, None, 0
    )
    assert_allclose(first.train, np.arange(20))
    assert_allclose(first.test, np.arange(20, 40))
    assert_allclose(second.train, first.test)
    assert first.kept


def test_groups_stay_together():
    data = rows()
    groups = np.arange(120) // 5
    for part in deal(4, data.signed, groups, 0):
        assert not np.intersect1d(groups[part.train], groups[part.test]).size


def test_folds_that_cannot_be():
    data = rows()
    with pytest.raises(ValueError, match="two groups of each class"):
        deal(4, data.signed, data.signed > 0, 0)
    order = np.argsort(data.signed, kind="stable")
    with pytest.raises(ValueError, match=r"Split 0 of cv has rows of one class to"):
        deal([(order[:20], order[20:])], data.signed, None, 0)


def test_who_is_cheap_leaves_time_to_others():
    def given(*seconds, time):  # for all of 1000 rows
        costs = [None if s is None else Cost(0.0, s / 1000.0) for s in seconds]
        return affordable(costs, 1000, time)

    assert given(1.0, 2.0, time=10.0) == [1000, 1000]
    # Four seconds, two each: the first takes one, and leaves three of the six.
    assert given(1.0, 6.0, time=4.0) == [1000, 500]
    assert given(6.0, 1.0, time=4.0) == [500, 1000]
    assert given(1.0, None, time=4.0) == [1000, 0]  # nobody knows
    assert given(1.0, 600.0, time=4.0) == [1000, 0]  # five rows are too few
    assert given(50.0, 60.0, time=1.0) == [300, 0]  # one must be there
    assert affordable([Cost(1.0, 0.002)], 1000, 2.0) == [500]  # half of it is fixed


def test_a_budget_is_kept_and_time_that_is_left_is_used():
    data = rows(400)
    team = [Member("trees", RandomizedTrees(20))]
    rounds = [deal(2, data.signed, None, seed) for seed in range(3)]
    (fitted,) = crossfit(team, data, rounds, 0, budget=20.0)
    assert len(fitted.models) == 6
    first = crossfit(team, data, rounds[:1], 0)[0]
    assert_allclose(
        scores_of(first.models[0], data.X), scores_of(fitted.models[0], data.X)
    )
