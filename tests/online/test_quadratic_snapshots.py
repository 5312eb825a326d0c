"""Points against the objective by brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import approx_fprime

from aucmax.core.rows import as_rows, as_table
from aucmax.online import engine
from aucmax.online.engine import feature_table as slots
from aucmax.online.svrg import half_shares, lowest, residual, rise, take
from helpers.data import closed_form, mixed, pairwise, quadratic

N, L2, L1 = 60, 0.3, 0.05


def setting(layout=np.asarray):
    X, y = mixed(N)
    X = X / X.std(axis=0)
    weight = np.random.default_rng(1).random(N) + 0.5
    weight[::7] = 0.0
    signed = np.where(y == 1, weight, -weight)
    rows = as_rows(layout(X))
    table = engine.empty(X.shape[1], precondition=True)
    n = np.array([weight[y == 1].sum(), weight[y == 0].sum()])
    sums = weight[y == 1] @ X[y == 1], weight[y == 0] @ X[y == 0]
    table.feat[slots.SUM : slots.SUM + 2] = sums
    table.ref[::2] = X.mean(axis=0)[::2]
    table.stats[[slots.TO_POS, slots.TO_NEG]] = 1.0 / n
    table = table._replace(feat=as_table(table.feat, rows))
    share, how = half_shares(signed, n), engine.visit(rows, table, False, True)

    def at(w):
        table.feat[slots.W] = w
        return take(rows, share, table, how)

    return X, y, weight, table.ref, at


def test_shares_are_balanced():
    share = half_shares(np.array([2.0, -1.0, 0.0, 6.0, -3.0]), np.array([8.0, 4.0]))
    assert_allclose(share, [0.125, -0.125, 0.0, 0.375, -0.375])


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_a_point_is_weights_gradient_and_scores(layout):
    X, y, weight, ref, at = setting(layout)
    d = X.shape[1]
    for w in np.random.default_rng(0).standard_normal((3, d)):
        point = at(w)
        assert_allclose(point[:d], w)
        expected = approx_fprime(w, lambda w: pairwise(w, X, y, weight=weight), 1e-6)
        assert_allclose(point[d : 2 * d], expected, rtol=1e-4, atol=1e-4)
        here = weight > 0
        assert_allclose(point[2 * d :][here], ((X - ref) @ w)[here], atol=1e-12)


def test_points_are_affine():
    X, _, _, _, at = setting()
    u, v = np.random.default_rng(0).standard_normal((2, X.shape[1]))
    assert_allclose(0.3 * at(u) + 0.7 * at(v), at(0.3 * u + 0.7 * v), atol=1e-12)


@pytest.mark.parametrize("l1", [0.0, L1])
def test_rise_is_the_difference_of_objectives(l1):
    X, y, weight, _, at = setting()
    d = X.shape[1]
    u, v = np.random.default_rng(0).standard_normal((2, d))
    expected = pairwise(v, X, y, L2, l1, weight) - pairwise(u, X, y, L2, l1, weight)
    assert_allclose(rise(at(u), at(v), d, L2, l1), expected, rtol=1e-9)


def test_rise_is_right_where_the_objective_is_flat():
    """At the minimum J is the same to all its digits; which is lower is known still."""
    X, y, weight, _, at = setting()
    d = X.shape[1]
    H, _ = quadratic(X, y, weight)
    best = closed_form(X, y, L2, weight)
    v = 1e-10 * np.random.default_rng(0).standard_normal(d)
    expected = v @ H @ v + L2 / 2 * v @ v
    assert expected < 1e-16
    assert_allclose(rise(at(best), at(best + v), d, L2, 0.0), expected, rtol=1e-3)


def test_lowest_is_the_minimum_over_the_span():
    X, y, weight, _, at = setting()
    d = X.shape[1]
    steps = np.random.default_rng(0).standard_normal((d + 1, d))
    points = [at(w) for w in steps]
    moves = [b - points[0] for b in points[1:]]
    few = lowest(points[0], moves[:2], d, L2)
    H, delta = quadratic(X, y, weight)
    gradient = 2 * (H @ few[:d] - delta) + L2 * few[:d]
    assert_allclose([gradient @ move[:d] for move in moves[:2]], 0.0, atol=1e-10)
    assert_allclose(few, at(few[:d]), atol=1e-10)
    # The same move twice, or none at all, is no harm.
    again = lowest(points[0], [*moves[:2], moves[1], 0.0 * moves[0]], d, L2)
    assert_allclose(again, few, rtol=1e-6, atol=1e-8)
    # Over everything, it is the minimum.
    everything = lowest(points[0], moves, d, L2)[:d]
    assert_allclose(everything, closed_form(X, y, L2, weight), rtol=1e-6, atol=1e-9)


def test_residual_is_a_proximal_step():
    X, _, _, _, at = setting()
    d = X.shape[1]
    scale = np.random.default_rng(0).random(d) + 0.5
    w = np.random.default_rng(1).standard_normal(d) * (np.arange(d) % 2)
    point = at(w)
    gradient = point[d : 2 * d] + L2 * w
    size = np.linalg.norm(np.sqrt(scale) * gradient) / 2
    assert_allclose(residual(point, scale, L2, 0.0), size)
    step = scale / 4
    ahead = w - step * gradient
    soft = np.sign(ahead) * np.maximum(np.abs(ahead) - L1 * step, 0)
    assert_allclose(
        residual(point, scale, L2, L1), np.linalg.norm((w - soft) / np.sqrt(step))
    )
    scale[3] = 0.0  # a feature that never moves
    assert np.isfinite(residual(point, scale, L2, L1))
