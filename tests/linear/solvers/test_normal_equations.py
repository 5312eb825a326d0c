"""The normal equations against NumPy, a slow lasso and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from aucmax.linear.solvers.normal_equations import (
    solve,
    solve_krylov_path,
    solve_lasso,
    solve_path,
)
from helpers.data import gaussian, quadratic, scaled

L2S = np.geomspace(10.0, 1e-6, 13)


def ridge(H, l2):
    return H + l2 / 2 * np.eye(len(H))


@pytest.mark.parametrize("l2", [0.0, 1e-6, 1.0, 1e3])
def test_solve(l2):
    H, delta = quadratic(*gaussian(200, 8))
    assert_allclose(ridge(H, l2) @ solve(H, delta, l2), delta, rtol=1e-10, atol=1e-13)


def exact(H, delta):
    """Solve by elimination in fractions: no rounding at all."""
    rows = [[Fraction(float(x)) for x in (*row, b)] for row, b in zip(H, delta)]  # noqa: B905
    for k in range(len(rows)):
        for i in range(len(rows)):
            if i != k:
                share = rows[i][k] / rows[k][k]
                rows[i] = [a - share * b for a, b in zip(rows[i], rows[k])]  # noqa: B905
    return np.array([float(row[-1] / row[k]) for k, row in enumerate(rows)])


def test_units_do_not_ruin_the_solution():
    """Variances twenty-four decades apart; an unscaled solver loses every digit."""
    X, y = scaled(300, 6, decades=12.0)
    H, delta = quadratic(X, y)
    expected = exact(H, delta)
    spread = np.sqrt(np.diag(H))
    found = solve(H, delta, 0.0)
    assert_allclose(found * spread, expected * spread, rtol=1e-9)
    path = solve_path(H, delta, np.array([1.0, 0.0]))
    assert_allclose(path[:, 1] * spread, expected * spread, rtol=1e-9)


@pytest.mark.parametrize("l2", [0.0, 1e-20])
def test_copies_of_a_feature(l2):
    """Without a unique minimum, any minimum of moderate size is accepted."""
    X, y = gaussian(200, 4)
    X = np.column_stack([X, X[:, :2], X[:, 0] - X[:, 1]])
    H, delta = quadratic(X, y)
    w = solve(H, delta, l2)
    assert_allclose(H @ w, delta, atol=1e-6 * np.abs(delta).max())
    assert np.linalg.norm(w) < 10 * np.linalg.norm(solve(H[:4, :4], delta[:4], 0.0))
    path = solve_path(H, delta, np.array([1.0, l2]))[:, 1]
    assert_allclose(H @ path, delta, atol=1e-9 * np.abs(delta).max())


def test_path_is_one_solution_after_the_other():
    H, delta = quadratic(*scaled(200, 7))
    path = solve_path(H, delta, L2S)
    assert path.shape == (7, len(L2S))
    for l2, w in zip(L2S, path.T, strict=True):
        expected = solve(H, delta, l2)
        spread = np.sqrt(np.diag(H))
        assert_allclose(w * spread, expected * spread, rtol=1e-6, atol=1e-9)


def test_krylov_path_is_the_path():
    H, delta = quadratic(*gaussian(300, 20))
    found = solve_krylov_path(lambda v: H @ v, delta, L2S, 1e-13, 100).w
    assert_allclose(found, solve_path(H, delta, L2S), rtol=1e-8, atol=1e-10)
    few = solve_krylov_path(lambda v: H @ v, delta, L2S, 1e-13, 3)
    assert np.abs(few.w - found).max() > 1e-6  # it does stop
    rough = solve_krylov_path(lambda v: H @ v, delta, L2S, 0.5, 100)
    for path in (few, rough):
        left = [ridge(H, l2) @ w - delta for l2, w in zip(L2S, path.w.T, strict=True)]
        residual = np.linalg.norm(left, axis=1).max() / np.linalg.norm(delta)
        assert path.left == pytest.approx(residual, rel=1e-6)  # and says how far it is
    assert residual <= 0.5


def test_krylov_path_without_anything_to_learn():
    for delta in (np.zeros(3), np.array([1.0, 0.0, 0.0])):
        path = solve_krylov_path(lambda v: 2.0 * v, delta, np.array([2.0]), 1e-12, 10)
        assert_allclose(path.w[:, 0], delta / 3.0)
        assert path.left <= path.tol


def slow_lasso(H, delta, l2, l1, steps=200_000):
    """Plain proximal gradient descent."""
    A = ridge(H, l2)
    rate = 1.0 / np.linalg.eigvalsh(A)[-1]
    w = np.zeros(len(delta))
    for _ in range(steps):
        v = w - rate * (A @ w - delta)
        new = np.sign(v) * np.maximum(np.abs(v) - rate * l1 / 2, 0.0)
        if np.array_equal(new, w):
            break
        w = new
    return w


@pytest.mark.parametrize("l1", [0.0, 1e-3, 0.05, 0.5])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_lasso(l1, l2):
    H, delta = quadratic(*gaussian(100, 6))
    found, n_iter, left, tol = solve_lasso(H, delta, l2, l1, 10_000)
    assert left <= tol
    assert_allclose(found, slow_lasso(H, delta, l2, l1), rtol=1e-7, atol=1e-9)
    assert 1 <= n_iter < 10_000
    # The conditions of a minimum.
    slope = 2 * (delta - ridge(H, l2) @ found)
    assert np.abs(slope).max() <= l1 + 1e-9
    assert_allclose(slope[found != 0], l1 * np.sign(found[found != 0]), atol=1e-8)


def test_lasso_selects_and_copes_with_copies():
    X, y = gaussian(200, 4)
    H, delta = quadratic(np.column_stack([X, X]), y)
    w, n_iter, *_ = solve_lasso(H, delta, 0.0, 0.05, 10_000)
    single = solve_lasso(H[:4, :4], delta[:4], 0.0, 0.05, 10_000)[0]
    assert_allclose(w[:4] + w[4:], single, atol=1e-9)
    assert n_iter < 1000
    assert not solve_lasso(H, delta, 0.0, 1e3, 100)[0].any()


def test_no_features():
    empty = np.zeros((0, 0)), np.zeros(0)
    assert solve(*empty, 1.0).shape == (0,)
    assert solve_path(*empty, L2S).shape == (0, len(L2S))
