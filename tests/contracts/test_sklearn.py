"""Contract: estimators follow scikit-learn's conventions and work with its tools."""

import ast
import inspect
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucmax import Chain, KernelAUCCV
from aucmax.base.ranker import LinearRanker
from contracts.estimators import (
    EXACT,
    ITERATIVE,
    PLAIN,
    VARIANTS,
    assert_same_bits,
    auc_of,
    each_fit,
    each_fit_way,
    each_of,
    every,
    linear,
    plain,
    seeded,
    strict,
    trained,
)
from helpers.data import gaussian, scaled


def expected_failures(estimator):
    kind = type(estimator).__name__
    if kind in ("Chain", "KernelAUCCV"):
        why = "landmarks depend on the rows, not on their weights"
    elif kind == "AUCClassifier":
        why = "repeated rows change the folds"
    elif kind == "MBA":
        why = "random pairs depend on the order of rows"
    elif kind in ITERATIVE:
        why = "solved to tol with other random rows; only the minimum is the same"
    elif not hasattr(estimator, "partial_fit") or kind in EXACT:
        if not sklearn.__version__.startswith("1.6."):
            return {}
        why = "scikit-learn 1.6: the check names classes by the first row and shuffles"
    else:
        why = "online: one step instead of k; only the minimum is the same"
    return {
        "check_sample_weight_equivalence_on_dense_data": why,
        "check_sample_weight_equivalence_on_sparse_data": why,
    }


@pytest.mark.smoke
@parametrize_with_checks(
    [seeded(estimator) for estimator in PLAIN],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@linear
def test_linear_models_expose_their_weights(estimator):
    X, y = gaussian(80, 6)
    model = trained(estimator, X, y)
    assert model.coef_.shape == (1, 6)
    assert model.intercept_.shape == (1,)
    assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_)


@every
def test_attributes(estimator):
    X, y = gaussian(80, 6)
    model = trained(estimator, X, y)
    assert model.n_features_in_ == 6
    assert isinstance(model.n_iter_, int)
    assert 1 <= model.n_iter_ <= model.get_params().get("max_iter", np.inf)
    assert_array_equal(model.classes_, [0, 1])
    assert model.score(X, y) == pytest.approx(auc_of(model, X, y), abs=1e-12)


# Where there are probabilities, a score of zero means even odds instead.
@each_of([e for e in VARIANTS if not hasattr(e, "predict_proba")])
def test_zero_is_midway_between_the_mean_scores(estimator):
    X, y = scaled(150)
    score = trained(estimator, X, y).decision_function(X)
    middle = (score[y == 1].mean() + score[y == 0].mean()) / 2
    rounding = 1e-9 if isinstance(estimator, LinearRanker) else 1e-5  # float32
    assert abs(middle) < rounding * np.abs(score).max()


@pytest.mark.parametrize(
    "labels", [(0, 1), (-1, 1), (2.0, 7.0), ("no", "yes"), (False, True)], ids=str
)
@each_fit_way
def test_labels_of_any_kind(estimator, method, labels):
    X, y = gaussian(60)
    expected = trained(estimator, X, y, method)
    named = np.array(labels)[y]
    forms = [named, named.tolist(), pd.Series(named)]
    if isinstance(labels[0], str):
        forms.append(named.astype(object))
    for form in forms:
        model = trained(estimator, X, form, method)
        assert_same_bits(model, expected)
        assert_array_equal(model.predict(X), np.array(labels)[expected.predict(X)])


@plain
def test_pipeline_and_grid_search(estimator):
    X, y = scaled(200)
    pipeline = make_pipeline(StandardScaler(), seeded(estimator, max_iter=2))
    name = type(estimator).__name__.lower()
    tuned, values = next(
        (key, values)
        for key, values in {
            "max_iter": [1, 3],
            "l2": [1e-4, 1e-2],
            "cv": [2, 3],
            "learner__max_iter": [1, 3],
            "tolerance": [0.0, 0.01],
        }.items()
        if key in estimator.get_params()
    )
    grid = {f"{name}__{tuned}": values}
    search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=3)
    search.fit(X, y)
    assert_allclose(search.score(X, y), auc_of(search.best_estimator_, X, y))
    assert search.best_score_ > 0.7


@each_fit
def test_calibration(estimator):
    X, y = gaussian(300)
    model = CalibratedClassifierCV(seeded(estimator), cv=3).fit(X, y)
    chance = model.predict_proba(X)[:, 1]
    assert_allclose(chance.mean(), y.mean(), atol=0.05)
    assert roc_auc_score(y, chance) > 0.7


@plain
def test_predict_proba_or_a_hint_at_calibration(estimator):
    X, y = gaussian(80, 6)
    model = trained(estimator, X, y)
    if hasattr(model, "predict_proba"):
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    else:
        with pytest.raises(AttributeError) as raised:
            _ = model.predict_proba
        assert "CalibratedClassifierCV" in str(raised.value.__cause__)


@each_fit
def test_tuned_threshold(estimator):
    X, y = gaussian(300, positives=0.1)
    model = TunedThresholdClassifierCV(
        seeded(estimator), scoring="balanced_accuracy", thresholds=20, cv=3
    ).fit(X, y)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    found = model.predict(X)[y == 1].mean() + (1 - model.predict(X)[y == 0]).mean()
    assert found / 2 > 0.65


@each_fit
def test_one_vs_rest(estimator):
    X, _ = gaussian(300)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        seeded(estimator).fit(X, y)
    model = OneVsRestClassifier(seeded(estimator)).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (300, 3)
    assert roc_auc_score(y == 2, scores[:, 2]) > 0.9
    assert roc_auc_score(y == 0, scores[:, 0]) > 0.9


@plain
@strict
def test_feature_names(estimator):
    X, y = gaussian(80, 3)
    frame = pd.DataFrame(X, columns=["age", "debt", "income"])
    model = trained(estimator, frame, pd.Series(y))
    assert_same_bits(model, trained(estimator, X, y))
    assert_array_equal(model.feature_names_in_, frame.columns)
    scores = trained(estimator, X, y).decision_function(X)
    # Frames are stored by column, so sums run in another order.
    atol = 1e-14 * np.abs(scores).max()
    assert_allclose(model.decision_function(frame), scores, rtol=0, atol=atol)
    with pytest.raises(ValueError, match="should match those that were passed"):
        model.predict(frame[["debt", "age", "income"]])


@plain
def test_documentation(estimator):
    text = inspect.getdoc(type(estimator))
    ours = isinstance(estimator, Chain | KernelAUCCV)
    assert ours or "References\n----------" in text, "add a section References"
    for parameter in inspect.signature(type(estimator)).parameters.values():
        entry = re.search(rf"^{parameter.name} : (.+)$", text, re.MULTILINE)
        assert entry, f"{parameter.name} is not documented"
        if parameter.default is inspect.Parameter.empty:
            continue
        default = ast.literal_eval(entry[1].rpartition("default=")[2])
        assert default == parameter.default, f"{parameter.name} : {entry[1]}"


def test_shared_parameters_are_documented_alike():
    texts = {}
    for estimator in PLAIN:
        body = inspect.getdoc(type(estimator))
        if not {"shuffle", "max_iter"} <= estimator.get_params().keys():
            continue  # AUCStream has one pass, and its seed draws features as well
        for parameter in ("max_iter", "shuffle", "random_state"):
            if parameter in estimator.get_params():
                words = re.search(rf"^{parameter} : .*\n((?:    .*\n)+)", body, re.M)[1]
                texts.setdefault(parameter, set()).add(words)
    assert {parameter: len(words) for parameter, words in texts.items()} == {
        parameter: 1 for parameter in texts
    }
