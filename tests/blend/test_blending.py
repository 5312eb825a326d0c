"""Blend weights against their objective; cross-fitting and time budgets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit

from aucmax import BAM
from aucmax.blend.boosting import BoostedTrees
from aucmax.blend.combine import blend_weights
from aucmax.blend.crossfit import (
    Member,
    TrainingRows,
    crossfit,
    score_with,
    split_rows,
)
from aucmax.blend.layout import FeatureView, TableRows
from helpers.data import gaussian


def standard(n=400, seed=0):
    """Return scores of three members: a good one, a noisy copy of it, and noise."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    good = y + rng.standard_normal(n)
    S = np.column_stack([good, good + rng.standard_normal(n), rng.standard_normal(n)])
    return (S - S.mean(axis=0)) / S.std(axis=0), np.where(y, 1.0, -1.0)


RIDGE = 5.0


def objective(Z, signed, w, b):
    margin = np.sign(signed) * (Z @ w + b)
    weight = np.abs(signed) / np.abs(signed).mean()
    return (weight * np.log1p(np.exp(-margin))).sum() + RIDGE * (w**2).sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_the_minimum_divided_by_their_sum(weighted):
    Z, signed = standard()
    if weighted:
        signed = signed * np.random.default_rng(1).uniform(0.5, 3.0, len(signed))
    found = blend_weights(Z, signed)
    assert_allclose(found.sum(), 1.0)

    def value(w):
        return minimize(lambda b: objective(Z, signed, w, b[0]), [0.0]).fun

    scale = minimize(lambda a: value(a[0] * found), [1.0]).x[0]
    for j in range(3):
        for step in (-0.02, 0.02):
            other = np.maximum(scale * found + step * np.eye(3)[j], 0.0)
            assert value(other) >= value(scale * found) - 1e-6


def test_without_bounds_it_is_ridge_logistic_regression():
    Z, signed = standard(600)
    Z = Z[:, :2]
    model = LogisticRegression(C=1.0 / (2.0 * RIDGE), tol=1e-8).fit(Z, signed)
    w = model.coef_[0]
    assert (w > 0.0).all()
    assert_allclose(blend_weights(Z, signed), w / w.sum(), rtol=1e-3)


def test_a_member_with_an_auc_below_half_gets_no_weight():
    Z, signed = standard()
    Z = np.column_stack([Z[:, 0], -Z[:, 0]])
    w = blend_weights(Z, signed)
    assert w[0] > 0.5
    assert w[1] == 0.0
    assert_allclose(blend_weights(-Z[:, :1], signed), [1.0])  # the only member


def rows(n=120, seed=0):
    X, y = gaussian(n, 4, seed)
    view = FeatureView.fit(X, np.zeros(X.shape[1], np.int64))
    return TrainingRows(TableRows(X, view, None), np.where(y == 1, 1.0, -1.0), False)


def test_each_row_is_scored_by_a_model_not_trained_on_it():
    data = rows()
    parts = split_rows(3, data.signed, None, 0)
    (fitted,) = crossfit([Member("linear", BAM())], data, [parts], 0)
    assert len(fitted.models) == 3
    for part, model in zip(parts, fitted.models, strict=True):
        assert not np.intersect1d(part.train, part.test).size
        alone = BAM().fit(data.X.features[part.train], data.signed[part.train] > 0)
        expected = alone.decision_function(data.X.features[part.test])
        assert_allclose(fitted.scores[part.test], expected)
        expected = alone.decision_function(data.X.features)
        assert_allclose(score_with(model, data.X), expected)


def test_time_series_splits_score_later_rows_and_refit():
    data = rows()
    parts = split_rows(TimeSeriesSplit(3), data.signed, None, 0)
    (fitted,) = crossfit([Member("linear", BAM())], data, [parts], 0)
    assert len(fitted.models) == 1
    assert np.isnan(fitted.scores[:30]).all()
    assert not np.isnan(fitted.scores[30:]).any()
    X = data.X.features
    every = BAM().fit(X, data.signed > 0).decision_function(X)
    assert_allclose(score_with(fitted.models[0], data.X), every)


def test_splits_number_rows_of_weight_zero_and_leave_them_out():
    signed = np.tile([1.0, -1.0, 0.0], 20)
    rows = np.arange(60)
    (first, second) = split_rows(
        [(rows[:30], rows[30:]), (rows[30:], rows[:30])], signed, None, 0
    )
    assert_allclose(first.train, np.arange(20))
    assert_allclose(first.test, np.arange(20, 40))
    assert_allclose(second.train, first.test)
    assert first.keep_model


def test_groups_stay_together():
    data = rows()
    groups = np.arange(120) // 5
    for part in split_rows(4, data.signed, groups, 0):
        assert not np.intersect1d(groups[part.train], groups[part.test]).size


def test_impossible_folds_are_refused():
    data = rows()
    with pytest.raises(ValueError, match="two groups of each class"):
        split_rows(4, data.signed, data.signed > 0, 0)
    order = np.argsort(data.signed, kind="stable")
    with pytest.raises(
        ValueError, match=r"Split 0 of cv has \w+ rows of one class only"
    ):
        split_rows([(order[:20], order[20:])], data.signed, None, 0)


def test_no_member_is_started_after_the_time_budget_except_the_first():
    data = rows()
    parts = split_rows(3, data.signed, None, 0)
    members = [Member("one", BAM()), Member("two", BAM())]
    (fitted,) = crossfit(members, data, [parts, parts], 0, budget=1e-9)
    assert fitted.name == "one"
    assert len(fitted.models) == 3  # a member that has been started is finished
    assert not np.isnan(fitted.scores).any()


def test_remaining_time_is_used_for_more_rounds():
    data = rows(400)
    members = [Member("trees", BoostedTrees(20))]
    rounds = [split_rows(2, data.signed, None, seed) for seed in range(3)]
    (fitted,) = crossfit(members, data, rounds, 0, budget=20.0)
    assert len(fitted.models) == 6
    first = crossfit(members, data, rounds[:1], 0)[0]
    assert_allclose(
        score_with(first.models[0], data.X), score_with(fitted.models[0], data.X)
    )
