"""MBA against least squares on the very pairs it draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from aucmax import MBA, LeastSquaresAUC
from aucmax.core.rows import as_rows
from aucmax.linear import mba
from aucmax.linear.mba import draw, statistics
from aucmax.linear.solvers.normal_equations import solve_lasso
from helpers.data import closed_form, gaussian, mixed, rare, scaled, wide


def drawn(X, y, seed, batch_size, n_batches, weight=None):
    """Return the pairs' differences, by the same draw."""
    signed = np.where(y == 1, 1.0, -1.0) * (1.0 if weight is None else weight)
    pos, neg = draw(signed, batch_size, n_batches, np.random.RandomState(seed))
    return X[pos] - X[neg]


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, np.float32])
def test_the_minimum_over_the_pairs_drawn(layout):
    X, y = mixed(200)
    X = X.astype(np.float32).astype(float)
    Z = drawn(X, y, 3, 40, 20)
    H, delta = Z.T @ Z / len(Z), Z.mean(axis=0)
    model = MBA(0.1, batch_size=40, n_batches=20, random_state=3).fit(layout(X), y)
    expected = np.linalg.solve(H + 0.05 * np.eye(len(H)), delta)
    assert_allclose(model.coef_[0], expected, rtol=1e-9, atol=1e-12)
    lasso = MBA(0.1, l1=0.05, batch_size=40, n_batches=20, random_state=3)
    expected = solve_lasso(H, delta, 0.1, 0.05, 10_000)[0]
    assert_allclose(lasso.fit(layout(X), y).coef_[0], expected, rtol=1e-7, atol=1e-10)


def test_statistics_in_blocks(monkeypatch):
    X, y = scaled(100)
    signed = np.where(y == 1, 1.0, -1.0)
    pos, neg = draw(signed, 1000, 2, np.random.RandomState(0))
    whole = statistics(as_rows(X), pos, neg, X.shape[1])
    monkeypatch.setattr(mba, "_BLOCK_VALUES", 1)
    for found, expected in zip(
        statistics(as_rows(X), pos, neg, X.shape[1]), whole, strict=True
    ):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14 * expected.max())


def test_rows_are_drawn_by_weight():
    signed = np.array([1.0, -2.0, 0.0, 3.0, -6.0, -0.0])
    pos, neg = draw(signed, 1000, 80, np.random.RandomState(0))
    assert set(pos) == {0, 3}
    assert set(neg) == {1, 4}
    # Three standard deviations of 80 000 draws.
    assert np.mean(pos == 3) == pytest.approx(0.75, abs=3 * 0.433 / 80_000**0.5)
    assert np.mean(neg == 4) == pytest.approx(0.75, abs=3 * 0.433 / 80_000**0.5)
    # One class does not follow from the other.
    assert np.corrcoef(pos, neg)[0, 1] == pytest.approx(0.0, abs=3 / 80_000**0.5)


@pytest.mark.parametrize("data", [gaussian, rare])
def test_near_the_closed_form_by_the_sampling_error(data):
    X, y = data(2000, 5)
    expected = closed_form(X, y, 0.01)
    errors = []
    for n_batches in (4, 400):
        runs = [
            MBA(0.01, batch_size=500, n_batches=n_batches, random_state=seed)
            .fit(X, y)
            .coef_[0]
            for seed in range(10)
        ]
        errors.append(np.sqrt(np.mean((np.array(runs) - expected) ** 2)))
    # A hundred times the pairs: a tenth of the error, give or take.
    assert 5.0 < errors[0] / errors[1] < 20.0
    assert errors[1] < 0.02 * np.abs(expected).max()


def test_many_features_by_conjugate_gradients(monkeypatch):
    X, y = wide()
    model = MBA(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99
    X, y = gaussian(300, 6)
    direct = MBA(0.1, random_state=0).fit(X, y)
    monkeypatch.setattr(mba, "_WIDEST", 1)
    for layout in (np.asarray, sparse.csr_array):
        implicit = MBA(0.1, random_state=0).fit(layout(X), y)
        assert_allclose(implicit.coef_, direct.coef_, rtol=0.05, atol=0.02)
        assert not np.array_equal(implicit.coef_, direct.coef_)
    assert_allclose(direct.coef_, LeastSquaresAUC(0.1).fit(X, y).coef_, atol=0.02)


def test_the_cost_does_not_depend_on_the_rows_drawn_twice():
    X = np.array([[0.0], [1.0]])
    model = MBA(0.0, batch_size=10, n_batches=1, random_state=0).fit(X, [0, 1])
    assert_array_equal(model.coef_, [[1.0]])  # every pair is the same


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_too_few_rounds_are_a_warning(l1, monkeypatch):
    monkeypatch.setattr(mba, "_WIDEST", 5)
    monkeypatch.setattr(mba, "_MAX_ITER", 2)
    with pytest.warns(ConvergenceWarning, match=r"MBA has not converged: .* Raise l2"):
        MBA(l1=l1, random_state=0).fit(*gaussian(200, 30))
