"""Contract: degenerate, rare, wide or extreme data give a finite model or an error."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

from aucmax import BAM, CBR, AUCClassifier, Chain, KernelBAM, LeastSquaresAUC
from aucmax.base.ranker import LinearRanker
from aucmax.online.base import WIDEST
from contracts.estimators import (
    NARROW,
    ONLINE,
    PLAIN,
    VARIANTS,
    as_id,
    assert_finite,
    auc_of,
    each_way_of,
    every_way,
    plain_linear,
    plain_way,
    refuses_folds,
    strict,
    trained,
    with_methods,
)
from helpers.data import (
    closed_form,
    constant,
    gaussian,
    mixed,
    rare,
    scaled,
    scattered,
    shared,
    wide,
)


def no_signal():
    X, y = gaussian(100, 3)
    return np.zeros_like(X), y


AWKWARD = {
    "constant columns": (constant, 0.75),
    "constant columns, one pass of few rows": (lambda: constant(12), 0.5),
    "rows of zeros": (lambda: scattered(100, 4), 0.65),  # most rows tie
    "nothing but zeros": (no_signal, 0.5),
    "one feature": (lambda: gaussian(200, 1), 0.7),
    "one feature, upside down": (
        lambda: (-gaussian(200, 1)[0], gaussian(200, 1)[1]),
        0.7,
    ),
    "two rows": (lambda: (np.array([[0.0, 3.0], [1.0, 3.0]]), np.array([0, 1])), 1.0),
    "two equal rows": (lambda: (np.ones((2, 3)), np.array([0, 1])), 0.5),
    "duplicates": (lambda: [a.repeat(20, axis=0) for a in gaussian(10, 2)], 0.7),
    "the same feature three times": (
        lambda: (gaussian(200, 2)[0][:, [0, 0, 0, 1]], gaussian(200, 2)[1]),
        0.7,
    ),
    "scales from 1e-6 to 1e6": (lambda: scaled(400, 7, decades=6.0), 0.7),
    "more features than rows": (lambda: gaussian(30, 100), 0.9),
    "one positive": (lambda: rare(2000), 0.9),
    "one negative": (lambda: (rare(2000)[0], 1 - rare(2000)[1]), 0.9),
}
# Variants differ by a step, a penalty or a buffer: the cases that could break those.
AWKWARD_FOR_VARIANTS = [
    "constant columns",
    "rows of zeros",
    "two rows",
    "the same feature three times",
    "scales from 1e-6 to 1e6",
    "one positive",
]


@pytest.mark.parametrize(
    ("estimator", "method", "case"),
    [(*way, case) for way in with_methods(PLAIN) for case in AWKWARD]
    + [
        (*way, case)
        for way in with_methods(VARIANTS[len(PLAIN) :])
        for case in AWKWARD_FOR_VARIANTS
    ],
    ids=as_id,
)
@pytest.mark.filterwarnings("ignore:190 of 200 rows equal another row:UserWarning")
@strict
@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_awkward_data(estimator, method, case):
    data, at_least = AWKWARD[case]
    X, y = data()
    if refuses_folds(estimator, X, y):
        return
    # One feature in CSR needs one more compilation: see test_compiled.py.
    both = estimator in PLAIN and X.shape[1] > 1
    layouts = (np.asarray, sparse.csr_array)[: 1 + both]
    for rows in (layout(X) for layout in layouts):
        model = trained(estimator, rows, y, method)
        assert_finite(model)
        assert auc_of(model, rows, y) >= at_least


@plain_way
@strict
def test_more_features_than_16_bits_count(estimator, method):
    X, y = wide()
    if isinstance(estimator, AUCClassifier):  # trees need dense rows
        estimator = AUCClassifier([BAM(), LeastSquaresAUC()], cv=2)
    try:
        model = trained(estimator, X, y, method)
    except ValueError as error:
        assert type(estimator).__name__ in NARROW
        assert re.search("70000 features .* (GB|MB)", str(error))  # noqa: PT017
        return
    assert_finite(model)
    if isinstance(model, LinearRanker):
        assert model.coef_[0, -1] > 0.0 > model.coef_[0, -2]
    assert auc_of(model, X, y) > 0.8


@plain_way
def test_features_that_never_occur_do_not_matter(estimator, method):
    """As in a small table with hashed categories and different units."""
    X, y = scaled(300, 5)
    X[:, 3:] *= np.random.default_rng(0).random((300, 2)) < 0.3  # rare ones
    rows = sparse.csr_array(X)
    where = np.array([1, 17, 40, 199, 399])
    parts = rows.data, where[rows.indices], rows.indptr
    wide = sparse.csr_array(parts, shape=(300, 400))
    expected = auc_of(trained(estimator, rows, y, method), rows, y)
    found = auc_of(trained(estimator, wide, y, method), wide, y)
    assert found == pytest.approx(expected, abs=0.01)


@plain_way
@strict
def test_one_positive_in_a_hundred_thousand_rows(estimator, method):
    # Two for estimators with folds, which need two rows of each class.
    X, y = rare(positives=2 if "cv" in estimator.get_params() else 1)
    if isinstance(estimator, KernelBAM):
        with pytest.raises(ValueError, match="matrix of 100000 rows would take 80 GB"):
            trained(estimator, X, y, method)
        return
    model = trained(estimator, X, y, method)
    assert_finite(model)
    assert auc_of(model, X, y) > 0.95


@pytest.mark.parametrize("huge", [1e100, 1e153])
@every_way
@strict
def test_extreme_but_finite_values(estimator, method, huge):
    """Training gives a finite model or an error, never a model of NaNs."""
    X, y = gaussian(100, 3)
    for factor in (huge, 1 / huge, [huge, 1.0, 1 / huge]):
        try:
            model = trained(estimator, X * factor, y, method)
        except ValueError as error:
            assert "exceed the range" in str(error)  # noqa: PT017
        else:
            assert_finite(model)


@pytest.mark.parametrize("values", [1e160, 1e200, 1e-160, 1e-170, 1e-200, 1e-310])
@plain_way
@strict
def test_squares_out_of_range(estimator, method, values):
    X, y = gaussian(100, 3)
    X[:, 1] *= values
    try:
        model = trained(estimator, X, y, method)
    except ValueError as error:
        assert "exceed the range" in str(error)  # noqa: PT017
    else:
        assert_finite(model)


@pytest.mark.parametrize("name", ["diabetes", "german", "svmguide3.train", "thyroid"])
@plain_linear
def test_raw_real_data(estimator, name):
    X, y = shared(name)
    X = X.toarray()
    best = roc_auc_score(y, X @ closed_form(X, y, 1e-8))
    # A few passes over a thousand rows, or over a hundred positives.
    assert auc_of(trained(estimator, X, y), X, y) > best - 0.03


@each_way_of(ONLINE)
def test_ordinary_scores_are_far_from_divergence(estimator, method):
    for data in (gaussian, scattered, scaled, mixed, constant, lambda: rare(2000)):
        X, y = data()
        model = trained(estimator, X, y, method)
        if isinstance(estimator, CBR) and not estimator.precondition:
            assert model._widest == np.inf  # scores in units of the data
            continue
        if isinstance(estimator, Chain):
            X, model = model.map_.transform(X), model.learner_
        # The standard deviation of scores if features were uncorrelated.
        spread = np.linalg.norm(model.coef_[0] * X.std(axis=0))
        assert spread < WIDEST / 100, data
