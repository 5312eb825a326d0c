"""Contract: units and offsets of features do not change the ranking."""

import numpy as np
from scipy import sparse

from aucmax import SAM, KernelBAM
from aucmax.base.ranker import LinearRanker
from contracts.estimators import (
    assert_finite,
    auc_of,
    every_way,
    plain_way,
    strict,
    trained,
)
from helpers.data import gaussian, informative


@every_way
@strict
def test_units_do_not_matter(estimator, method):
    parameters = estimator.get_params()
    changes = [(1e3, 0.0), (1e-3, 0.0), (1.0, 1e6)]
    if not parameters.get("precondition", True):
        del changes[2]  # rows are not centred then
    # A penalty is in units of the weights, so units cancel without it. Kernel rankers
    # keep theirs: it has no units, and without it they take many steps of O(n²).
    is_linear = isinstance(estimator, LinearRanker)
    free = {key: 0.0 for key in ("l1", "l2") if key in parameters and is_linear}
    X, y = gaussian(1500 if is_linear else 500, 5)
    expected = auc_of(trained(estimator, X, y, method, **free), X, y)
    for factor, shift in changes:
        changed = factor * X + shift
        model = trained(estimator, changed, y, method, **free)
        assert_finite(model)
        assert abs(auc_of(model, changed, y) - expected) < 0.01, (factor, shift)
        # The default penalty must not break either.
        model = trained(estimator, changed, y, method)
        assert_finite(model)
        if not parameters.get("l1"):  # the lasso drops small features
            assert auc_of(model, changed, y) > 0.7, (factor, shift)


def training_rows(estimator):
    return 800 if isinstance(estimator, KernelBAM) else 3000  # it takes O(n³)


@plain_way
def test_units_of_one_feature_do_not_matter(estimator, method):
    X, y = informative(training_rows(estimator), 0)
    X_test, y_test = informative(4000, 1)
    expected = auc_of(trained(estimator, X, y, method), X_test, y_test)
    assert expected > 0.75
    for column, factor in ((0, 1e-6), (0, 1e4), (1, 1e-4), (1, 1e6)):
        unit = np.ones(3)
        unit[column] = factor
        model = trained(estimator, X * unit, y, method)
        found = auc_of(model, X_test * unit, y_test)
        assert abs(found - expected) < 0.002, (column, factor)


@plain_way
def test_a_large_offset_does_not_matter(estimator, method):
    """For example a date in seconds: millions of standard deviations from zero."""
    X, y = informative(training_rows(estimator), 0)
    X_test, y_test = informative(4000, 1)
    expected = auc_of(trained(estimator, X, y, method), X_test, y_test)
    for layout, offset in ((np.asarray, 1e6), (sparse.csr_array, 4e6)):
        away = np.array([offset, 0.0, -offset])
        model = trained(estimator, layout(X + away), y, method)
        # Rounding decides which pairs have a loss, and SAM does not average weights.
        within = 0.01 if type(estimator) is SAM else 0.002
        assert abs(auc_of(model, X_test + away, y_test) - expected) < within, offset
