"""Steps of a group against steps one after the other, and against the definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax.core import groups
from aucmax.core.groups import (
    GROUP,
    PACE,
    PAST,
    SIGN,
    look_group,
    move_group,
    put_back,
    take_up,
    workplace,
)
from aucmax.core.jit import inlined
from aucmax.core.rows import as_rows
from aucmax.core.table import SUM, D, U, W

widths = pytest.mark.parametrize("d", [1, 7, 8, 9, 30, 64, 139])
types = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@inlined
def compiled_look(X, order, start, ahead, room, plan, first, seen):
    look_group(X, order, start, ahead, room, plan, first, seen)


@inlined
def compiled_move(room, seen, plan, first, a, b, implicit):
    return move_group(room, seen, plan, first, a, b, implicit)


def learner(d):
    """Return a feature table and the weights of the classes."""
    rng = np.random.default_rng(d)
    hot, cold = rng.standard_normal((4, d)), rng.standard_normal((4, d))
    hot[D] = rng.random(d)
    hot[D, d // 2] = 0.0  # a feature that has been constant
    return hot, cold, rng.standard_normal(d), np.array([3.0, 7.0])


def planned(plan, first, rng):
    """Plan steps for a group, of which the last but one is to be taken by no row."""
    here = slice(first, first + GROUP)
    plan[PACE, here] = rng.random(GROUP)
    plan[PACE, first + GROUP - 2] = 0.0
    plan[SIGN, here] = rng.choice([-1.0, 1.0], GROUP)
    plan[PAST, here] = 10.0 * rng.random(GROUP)


def one_by_one(x, hot, cold, ref, n, plan, implicit):
    """Return w and u after the steps along the rows of ``x``, taken in turn."""
    w, u = hot[W].copy(), cold[U].copy()
    m_pos, m_neg = hot[SUM:] / n[:, None] - ref
    for row, (pace, sign, past) in zip(x, plan.T, strict=True):
        z = hot[D] * (row - ref)
        gain = pace / (1 + pace * z @ (row - ref)) if implicit else pace
        goal = w @ m_neg + 1 if sign > 0 else w @ m_pos - 1
        c = gain * (goal - w @ (row - ref))
        w = w + c * z
        u = u + past * c * z
    return w, u


@widths
@types
@pytest.mark.parametrize("implicit", [True, False])
@pytest.mark.parametrize("start", [0, 2, 5])  # of six rows: the last is repeated
def test_a_group_is_its_rows_one_by_one(d, dtype, implicit, start):
    rng = np.random.default_rng(start)
    X = rng.standard_normal((9, d)).astype(dtype)
    before = X.copy()
    order = np.array([8, 3, 4, 5, 0, 7])
    hot, cold, ref, n = learner(d)
    plan, seen, room, _ = workplace(X, False, hot, cold, ref, n)
    first = 3
    planned(plan, first, rng)
    at = order[np.minimum(np.arange(start, start + GROUP), 5)]
    steps = plan[:, first : first + GROUP].copy()
    w, u = one_by_one(X[at].astype(float), hot, cold, ref, n, steps, implicit)
    m_pos, m_neg = hot[SUM:] / n[:, None] - ref
    a, b = hot[W] @ m_pos, hot[W] @ m_neg

    compiled_look(X, order, start, 4, room, plan, first, seen)
    d_a, d_b = compiled_move(room, seen, plan, first, a, b, implicit)
    put_back(room, hot, cold)
    scale = 1e-12 * max(np.abs(w).max(), np.abs(u).max())
    assert_allclose(hot[W], w, rtol=1e-11, atol=scale)
    assert_allclose(cold[U], u, rtol=1e-11, atol=scale)
    assert_allclose((a + d_a, b + d_b), (w @ m_pos, w @ m_neg), rtol=1e-10, atol=1e-11)
    assert_array_equal(X, before)


@widths
@types
def test_compiled_code_does_what_the_definition_says(d, dtype):
    X = np.random.default_rng(1).standard_normal((6, d)).astype(dtype)
    order = np.arange(6)
    results = []
    for look, move in ((look_group, move_group), (compiled_look, compiled_move)):
        hot, cold, ref, n = learner(d)
        plan, seen, room, _ = workplace(X, False, hot, cold, ref, n)
        planned(plan, 0, np.random.default_rng(2))
        look(X, order, 1, 8, room, plan, 0, seen)
        change = move(room, seen, plan, 0, 0.3, -0.2, True)
        results.append((seen[:14], room, change))
    for expected, found in zip(*results, strict=True):
        assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_take_up_is_the_way_back():
    hot, cold, ref, n = learner(11)
    room = workplace(np.zeros((5, 11)), False, hot, cold, ref, n).room
    hot[W], cold[U] = 2.0, 3.0
    before = hot.copy(), cold.copy()
    take_up(room, hot, cold)
    hot[W], cold[U] = 0.0, 0.0
    put_back(room, hot, cold)
    assert_array_equal(hot, before[0])
    assert_array_equal(cold, before[1])


def test_rows_are_grouped_where_it_pays():
    hot, cold, ref, n = learner(3)
    dense = np.ones((4, 3))
    csr = as_rows(sparse.csr_array(dense))
    grouped, single = (workplace(X, False, hot, cold, ref, n) for X in (dense, csr))
    assert grouped.room is not None
    assert grouped.single is None
    assert single.room is None
    assert single.single
    for rows in (dense, csr):  # each step changes what the next one is planned from
        plan, _, room, _ = workplace(rows, True, hot, cold, ref, n)
        assert room is None
        assert plan.shape[1] == 1


def test_vectors_begin_on_cache_lines():
    hot, cold, ref, n = learner(30)
    room = workplace(np.ones((4, 30)), False, hot, cold, ref, n).room
    assert room.ctypes.data % 64 == 0
    assert room.shape[1] % groups.LANES == 0
    assert room.shape[1] >= 30
