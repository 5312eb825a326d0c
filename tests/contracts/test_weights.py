"""Contract: ``sample_weight`` multiplies the weights of pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import spearmanr

from aucmax import AUCClassifier
from aucmax.base.ranker import LinearRanker
from contracts.estimators import (
    EXACT,
    VARIANTS,
    assert_finite,
    assert_same_bits,
    auc_of,
    each_fit_way,
    each_of,
    every,
    every_way,
    plain,
    plain_way,
    seeded,
    strict,
)
from helpers.data import gaussian, mixed


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@every_way
def test_a_row_of_weight_zero_is_ignored(estimator, method, layout):
    X, y = mixed(60)
    rng = np.random.default_rng(1)
    here = rng.random(90) < 0.6
    here[:3] = False  # the very first rows too
    n = int(here.sum())
    wild, labels = 1e6 * rng.standard_normal((90, X.shape[1])), rng.integers(0, 2, 90)
    wild[here], labels[here] = X[:n], y[:n]
    weight = here * (rng.random(90) + 0.5)

    def run(X, y, weight):
        model = seeded(estimator)
        fit = getattr(model, method)
        return fit(layout(X), y, sample_weight=weight)

    assert_same_bits(run(wild, labels, weight), run(X[:n], y[:n], weight[here]))


@every_way
def test_a_constant_factor_of_all_weights_changes_nothing(estimator, method):
    X, y = mixed(80)
    weight = np.random.default_rng(0).random(80) + 0.5
    # The default penalty counts a weight of k as k rows.
    given = {"l2": 1e-4} if "auto" in map(str, estimator.get_params().values()) else {}

    def scores(factor):
        model = seeded(estimator, **given)
        getattr(model, method)(X, y, sample_weight=factor * weight)
        return model.decision_function(X)

    expected = scores(1.0)
    rtol = 1e-9 if isinstance(estimator, LinearRanker) else 1e-6  # float32
    atol = rtol * np.abs(expected).max()
    for factor in (7.3, 1e-6, 1e6):
        assert_allclose(scores(factor), expected, rtol=rtol, atol=atol)


@each_of([e for e in VARIANTS if not isinstance(e, AUCClassifier)])  # other folds
def test_a_weight_of_k_is_k_rows(estimator):
    # Exact for class moments (tests/base/test_class_moments.py) and for the minimum
    # (test_convergence.py). An online learner takes one step instead of k, so its
    # scores are only close; how close depends on the order of rows: median of 5 seeds.
    X, y = gaussian(400)
    times = np.random.default_rng(0).integers(1, 4, 400)
    found = []
    for seed in range(5):
        repeated = seeded(estimator, max_iter=20, random_state=seed)
        repeated.fit(X.repeat(times, axis=0), y.repeat(times))
        weighted = seeded(estimator, max_iter=20, random_state=seed)
        weighted.fit(X, y, sample_weight=times)
        if type(estimator).__name__ in EXACT:
            assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
        a, b = weighted.decision_function(X), repeated.decision_function(X)
        found.append(spearmanr(a, b).statistic)
    assert np.median(found) > 0.97


@every
def test_weights_matter(estimator):
    """Weights change the ranking in favour of the rows that weigh more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    first = rng.random(400) < 0.5
    y = (np.where(first, X[:, 0], X[:, 1]) > 0.3).astype(int)
    for favoured, column in ((first, 0), (~first, 1)):
        weight = np.where(favoured, 1.0, 0.01)
        model = seeded(estimator).fit(X, y, sample_weight=weight)
        if isinstance(model, LinearRanker):
            w = model.coef_[0]
            assert w[column] > 3 * abs(w[1 - column])
        assert auc_of(model, X[favoured], y[favoured]) > 0.85


@plain
def test_fit_needs_positive_weight_in_both_classes(estimator):
    X, y = gaussian(20)
    for label in (0, 1):
        with pytest.raises(ValueError, match=rf"class.*{label}.* weight above zero"):
            seeded(estimator).fit(X, y, sample_weight=1.0 * (y != label))


@each_fit_way
def test_bad_weights(estimator, method):
    X, y = gaussian(10)
    model = seeded(estimator)
    call = getattr(model, method)
    for bad in (-1.0, np.nan, np.inf):
        weight = np.ones(10)
        weight[6] = bad
        with pytest.raises(ValueError, match=f"sample_weight.*{bad}.*row 6"):
            call(X, y, sample_weight=weight)
    for shape in (9, 11, (10, 1)):
        with pytest.raises(ValueError, match=r"sample_weight\.shape"):
            call(X, y, sample_weight=np.ones(shape))


@pytest.mark.parametrize("weight", [1e308, 1e-320])
@plain_way
@strict
def test_weights_out_of_range(estimator, method, weight):
    """Training gives a finite model or an error, never a model of NaNs."""
    X, y = gaussian(50)
    model = seeded(estimator)
    call = getattr(model, method)
    try:
        call(X, y, sample_weight=np.full(50, weight))
    except ValueError as error:
        assert "weight" in str(error)  # noqa: PT017
    else:
        assert_finite(model)
