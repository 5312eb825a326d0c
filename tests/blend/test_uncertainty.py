"""Confidence intervals of cross-fitted AUCs: formulas and coverage."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, TimeSeriesSplit

from aucmax import BAM, AUCClassifier
from aucmax.blend.combine import (
    _calibrate,
    crossfit_interval,
    folds_depend,
    merge_duplicates,
    training_variance_share,
)
from aucmax.blend.crossfit import split_rows
from aucmax.metrics import cv_auc_interval


def test_the_variance_share_is_the_jackknife_over_the_within_class_variance():
    rng = np.random.default_rng(0)
    positive = rng.random(40) < 0.4
    out_of_fold, scores = (
        rng.standard_normal(40) + positive,
        rng.standard_normal((5, 7)),
    )
    jackknife = [
        4 / 5 * sum((s - column.mean()) ** 2 for s in column) for column in scores.T
    ]
    # The jackknife estimates the variance for all K folds; a model is trained on K - 1,
    # hence the factor K / (K - 1).
    between = np.mean(jackknife) * 5 / 4
    within = np.mean(
        [
            (out_of_fold[i] - out_of_fold[positive == positive[i]].mean()) ** 2
            for i in range(40)
        ]
    )
    assert training_variance_share(scores, out_of_fold, positive) == pytest.approx(
        between / within
    )


def test_the_variance_share_of_a_linear_model_on_noise_is_one():
    # w is the difference of class means of four folds out of five: pure noise.
    rng = np.random.default_rng(1)
    between, within = 0.0, 0.0
    for _ in range(300):
        X, y = rng.standard_normal((100, 10)), np.tile([1.0, -1.0], 50)
        fold = np.arange(100) // 20
        models = np.array([y[fold != k] @ X[fold != k] for k in range(5)])
        new = rng.standard_normal((100, 10))
        out_of_fold = np.sum(new * models[fold], axis=1)
        share = training_variance_share(models @ new.T, out_of_fold, y > 0)
        within += np.var(out_of_fold)
        between += share * np.var(out_of_fold)
    assert between / within == pytest.approx(1.0, abs=0.1)


def test_the_interval_is_widened_and_its_upper_end_raised():
    rng = np.random.default_rng(2)
    positive, fold = rng.random(200) < 0.3, np.arange(200) % 5
    out_of_fold = rng.standard_normal(200) + positive
    plain = cv_auc_interval(positive, out_of_fold, fold)
    assert crossfit_interval(positive, out_of_fold, fold, None, 0.0, 0.0) == plain
    wide = crossfit_interval(positive, out_of_fold, fold, None, 0.2, 0.0)
    assert wide == cv_auc_interval(positive, out_of_fold, fold, dependence=0.4)
    assert wide.se == pytest.approx(plain.se * math.sqrt(1.4))
    most = crossfit_interval(positive, out_of_fold, fold, None, 3.0, 0.0)
    assert most.se == pytest.approx(plain.se * math.sqrt(2.0))
    raised = crossfit_interval(positive, out_of_fold, fold, None, 0.2, 0.19)
    assert (raised.value, raised.low, raised.se) == (wide.value, wide.low, wide.se)
    gain = norm.cdf(norm.ppf(plain.value) / 0.9) - plain.value
    assert raised.high == pytest.approx(wide.high + gain)


def test_copies_count_once():
    rng = np.random.default_rng(4)
    y, fold = rng.random(60) < 0.4, np.arange(60) % 3
    score, times = rng.standard_normal(60) + y, rng.integers(1, 4, 60)
    of = np.repeat(np.arange(60), times)
    once, weight = merge_duplicates(of, y[of], fold[of], None)
    some = of[once]
    got = cv_auc_interval(y[some], score[some], fold[some], sample_weight=weight)
    assert got == pytest.approx(cv_auc_interval(y, score, fold, sample_weight=times))
    assert got.value == pytest.approx(cv_auc_interval(y[of], score[of], fold[of]).value)
    _, heavier = merge_duplicates(of, y[of], fold[of], np.full(len(of), 0.5))
    assert_allclose(np.sort(heavier), np.sort(0.5 * times))


def test_invalid_dependence_is_refused():
    with pytest.raises(ValueError, match=r"dependence=1\.5: expected a number from"):
        cv_auc_interval([0, 1], [0, 1], [0, 0], dependence=1.5)


def test_folds_depend_if_models_are_trained_on_rows_the_others_score():
    signed = np.tile([1.0, -1.0], 30)
    assert folds_depend(split_rows(3, signed, None, 0))
    assert not folds_depend(split_rows(TimeSeriesSplit(3), signed, None, 0))
    assert not folds_depend(
        split_rows(ShuffleSplit(1, random_state=0), signed, None, 0)
    )
    assert folds_depend(split_rows(ShuffleSplit(3, random_state=0), signed, None, 0))


@pytest.mark.parametrize(("n", "rate"), [(200, 0.5), (300, 0.06)])
def test_the_interval_covers_on_noise(n, rate):
    # Any model trained on noise has an AUC of 0.5. Intervals for independent folds
    # cover it in 84 % and 80 % of the draws. The bound is 92 % minus two standard
    # deviations.
    draws, hits = 100, 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((n, 6)), np.arange(n) < rate * n
        model = AUCClassifier([BAM()], random_state=seed).fit(X, y)
        hits += model.auc_.low <= 0.5 <= model.auc_.high
    assert hits >= 0.92 * draws - 2 * math.sqrt(draws * 0.92 * 0.08)


def test_the_interval_covers_the_auc_of_the_fitted_model():
    # Class means differ by the first unit vector, so the AUC of a linear score w·x is
    # that of two normal distributions, Φ(w₁ / (√2 |w|)).
    draws, hits = 100, 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((150, 10)), np.arange(150) < 50
        X[y, 0] += 1.0
        model = AUCClassifier([BAM()], random_state=seed).fit(X, y)
        w = model.decision_function(np.eye(10)) - model.decision_function(
            np.zeros((1, 10))
        )
        truth = norm.cdf(w[0] / (math.sqrt(2) * np.linalg.norm(w)))
        hits += model.auc_.low <= truth <= model.auc_.high
    assert hits >= 0.92 * draws - 2 * math.sqrt(draws * 0.92 * 0.08)


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
def test_the_mean_of_the_models_is_calibrated(noise):
    rng = np.random.default_rng(0)
    n, n_models = 40_000, 5
    positive = rng.random(n) < 0.2
    same = 1.5 * positive + rng.standard_normal(n)  # what all models agree on
    models = same + noise * rng.standard_normal((n_models, n))
    signed = np.where(positive, 1.0, -1.0)
    removed = noise**2 * (1.0 - 1.0 / n_models) / (1.0 + noise**2)
    slope, offset = _calibrate(models[0], signed, removed)
    served = slope * models.mean(axis=0) + offset
    exact = LogisticRegression(C=np.inf).fit(served[:, np.newaxis], positive)
    assert_allclose(exact.coef_[0, 0], 1.0, atol=0.04)
    assert_allclose(exact.intercept_[0], 0.0, atol=0.06)
