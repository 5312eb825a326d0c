"""Contract: solvers reach the minimum of their objective, or warn."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError

from contracts.estimators import PLAIN, linear, plain, seeded
from helpers.data import closed_form, constant, gaussian, mixed, scaled, scattered
from helpers.data import pairwise as pairwise_loss


def convergence_warnings(model, X, y):
    """Return the convergence warnings of ``fit``."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, y)
    return [str(w.message) for w in caught if w.category is ConvergenceWarning]


@linear
def test_reaching_max_iter_warns(estimator):
    X, y = gaussian(300, 30)
    parameters = estimator.get_params()
    model = seeded(estimator, max_iter=1)
    if not {"tol", "max_iter"} <= parameters.keys() or has_direct_solver(model):
        assert convergence_warnings(model, X, y) == []
        return
    (text,) = convergence_warnings(model, X, y)  # one, even with inner fits
    name = type(estimator).__name__
    found = re.match(
        rf"{name} has not converged within max_iter=1: .* is (\S+), "
        r"above tol=(\S+)\. Raise max_iter",
        text,
    )
    assert found, text
    left, asked = map(float, found.groups())
    assert left > asked
    if parameters["tol"] is not None and not parameters.get("l1"):
        assert asked == parameters["tol"]


def has_direct_solver(model):
    """Return True if the solver is direct and ignores ``max_iter``."""
    parameters = model.get_params()
    return parameters.get("solver") == "auto" and not parameters["l1"]


@pytest.mark.parametrize("data", [gaussian, scattered, scaled, mixed, constant])
@plain
def test_converged_solvers_do_not_warn(estimator, data):
    assert convergence_warnings(seeded(estimator), *data(200)) == []


@plain
def test_zero_tolerance_runs_all_passes(estimator):
    if "tol" in estimator.get_params():
        model = seeded(estimator, tol=0.0, max_iter=3)
        try:
            assert convergence_warnings(model, *gaussian(300, 30)) == []
        except InvalidParameterError:
            assert model._parameter_constraints["tol"][0].closed == "neither"


# Estimators that minimise the square loss, and settings with which they converge.
SQUARE_LOSS = {
    "SPAM": {"max_iter": 3000},
    "SOLAM": {"radius": None, "max_iter": 3000},
    "LeastSquaresAUC": {},
    "SVRGAUC": {"max_iter": 400, "tol": 1e-10},
    "SPDAM": {"max_iter": 400, "tol": 1e-10},
    "OPAUC": {"max_iter": 1000},
    "AdaOAM": {"max_iter": 1000},
    "FSAUC": {"max_iter": 3000},
}
square = pytest.mark.parametrize(
    "estimator",
    [e for e in PLAIN if type(e).__name__ in SQUARE_LOSS],
    ids=lambda e: type(e).__name__,
)


def assert_minimum(estimator, X, y, l2, tolerance, weight=None, layout=np.asarray):
    model = seeded(estimator, l2=l2, **SQUARE_LOSS[type(estimator).__name__])
    model.fit(layout(X), y, sample_weight=weight)
    expected = closed_form(X, y, l2, weight)
    # Weights in units of the score.
    error, size = (model.coef_[0] - expected) * X.std(axis=0), expected * X.std(axis=0)
    assert np.linalg.norm(error) < tolerance * np.linalg.norm(size)
    # The remaining gap of the objective, relative to the largest possible gain.
    least = pairwise_loss(expected, X, y, l2, weight=weight)
    gap = pairwise_loss(model.coef_[0], X, y, l2, weight=weight) - least
    assert gap < 1e-3 * (1.0 - least)


# One layout each: test_dense_equals_csr compares layouts.
@pytest.mark.parametrize(
    ("l2", "layout"),
    [(1e-3, np.asarray), (0.1, sparse.csr_array), (1.0, np.asarray)],
    ids=["0.001-dense", "0.1-CSR", "1-dense"],
)
@square
def test_square_loss_reaches_the_closed_form(estimator, l2, layout):
    # Steps fall like 1/√t: after a million rows, the error is below one percent.
    assert_minimum(estimator, *gaussian(300, 5), l2, 1e-2, layout=layout)


@pytest.mark.parametrize("l2", [1e-3, 0.1])
@square
def test_weighted_square_loss_reaches_the_closed_form(estimator, l2):
    X, y = gaussian(300, 5)
    weight = np.where(X[:, 1] > 0.0, 3.0, 0.3)
    assert_minimum(estimator, X, y, l2, 2e-2, weight)
    # The weights change the minimum by far more than the tolerance.
    plain, weighted = closed_form(X, y, l2), closed_form(X, y, l2, weight)
    assert np.linalg.norm(plain - weighted) > 0.1 * np.linalg.norm(plain)


@pytest.mark.parametrize(
    ("l2", "layout"),
    [(0.0, np.asarray), (1e-3, sparse.csr_array)],
    ids=["0-dense", "0.001-CSR"],
)
@square
def test_unscaled_square_loss_reaches_the_closed_form(estimator, l2, layout):
    X, y = scaled(300, 5, decades=1.0)
    assert_minimum(estimator, X, y, l2, 2e-2, layout=layout)
