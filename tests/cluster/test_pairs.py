"""The mergeable sums over pairs, against those of one machine."""

from itertools import pairwise

import numpy as np
import pytest

from aucmax.losses.pairwise import POINTS, shares

pytest.importorskip("dask", reason="Dask is not installed: pip install aucmax[cluster]")

from aucmax.cluster.pairs import LOSSES, Sight


def rows(n, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0) * rng.integers(1, 4, n)
    score = 0.7 * np.sign(y) + 2.0 * rng.standard_normal(n)
    return np.round(score, 1) if ties else score, shares(y)


def look(loss, score, share, level, size=64):
    sight = Sight(loss, level)
    for start in range(0, len(score), size):  # rows come in pieces
        sight.add(score[start : start + size], share[start : start + size])
    return sight.seen()


def slopes(loss, field, score, share):
    out = np.empty_like(score)
    loss.slope(field, score, share, out)
    return out


def along(loss, field, score, share, v, cut=100):
    sums, out = loss.nothing(field), np.empty_like(score)
    for part in (slice(0, cut), slice(cut, None)):
        loss.weigh(field, score[part], share[part], v[part], sums)
    loss.product(field, loss.across(field, sums), score, share, v, out)
    return out


def merged(loss, score, share, level, cuts):
    ends = [0, *cuts, len(score)]
    pairs = list(pairwise(ends))
    seen = [look(loss, score[a:b], share[a:b], level) for a, b in pairs]
    total = seen[0]
    for other in seen[1:]:
        total = total + other
    return loss.field(total, level)


def derivatives(name, level, score, share, v, cuts=(3, 3, 700)):
    loss = LOSSES[name]
    field = merged(loss, score, share, level, cuts)
    slope = slopes(loss, field, score, share)
    return field, slope, along(loss, field, score, share, v)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_sums_of_parts_are_those_of_one_machine(name, ties):
    score, share = rows(2000, ties=ties)
    v = np.random.default_rng(1).standard_normal(len(score))
    level = LOSSES[name].first_level(len(score))
    field, slope, product = derivatives(name, level, score, share, v)
    exact = POINTS[name](score, share)
    assert field.value == pytest.approx(exact.value, abs=1e-10, rel=1e-12)
    np.testing.assert_allclose(slope, exact.slope, atol=1e-10 * np.abs(share).max())
    limit = 1e-6 * np.abs(share).max() * np.abs(v).max()
    np.testing.assert_allclose(product, exact.product(v), atol=limit)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("level", [0, 3])
def test_cells_of_the_squared_hinge_keep_their_bound(level, ties):
    score, share = rows(2000, ties=ties)
    v = np.random.default_rng(1).standard_normal(len(score))
    field, slope, product = derivatives("squared_hinge", level, score, share, v)
    exact = POINTS["squared_hinge"](score, share)
    h = 2.0**level / 4096
    assert 0.0 < field.within < 0.5
    # Rounding apart, where pairs are an exact distance of one unit from each other.
    assert abs(field.value - exact.value) <= 0.5 * h**2 * field.within + 1e-14
    t = np.floor((score + (share < 0.0)) / h)
    same = (t[:, None] == t) & (share[:, None] * share < 0.0)
    crowd = np.abs(share) * (same @ np.abs(share))
    assert np.all(np.abs(slope - exact.slope) <= h * crowd + 1e-14)
    other = np.abs(share) * (same @ np.abs(share * v))
    off = np.abs(product - exact.product(v))
    assert np.all(off <= 1.0001 * (crowd * np.abs(v) + other) + 1e-14)


def test_gradients_are_derivatives_within_cells():
    # The value that is known is of a function whose slopes are the ones that are given.
    score, share = rows(300)
    loss = LOSSES["squared_hinge"]
    field = merged(loss, score, share, 6, ())
    slope = slopes(loss, field, score, share)
    h = 2.0**6 / 4096
    off = (score + (share < 0.0)) / h % 1.0
    step = 1e-4 * h
    for i in np.flatnonzero((off > 0.01) & (off < 0.99))[:20]:
        near = []
        for sign in (1.0, -1.0):
            moved = score.copy()
            moved[i] += sign * step
            near.append(merged(loss, moved, share, 6, ()).value)
        assert (near[0] - near[1]) / (2.0 * step) == pytest.approx(slope[i], abs=1e-8)


@pytest.mark.parametrize("name", LOSSES)
def test_rows_that_are_not_there_do_not_count(name):
    score, share = rows(500)
    some = np.random.default_rng(2).random(500) < 0.3
    here = share.copy()
    here[some] = 0.0
    loss, v = LOSSES[name], np.ones(500)
    for level in {0, loss.first_level(500)}:
        few = merged(loss, score[~some], share[~some], level, (100,))
        field = merged(loss, np.where(some, 1e3, score), here, level, (100,))
        assert field.value == pytest.approx(few.value, rel=1e-12)
        slope = slopes(loss, few, score, here)
        assert not slope[some].any()
        np.testing.assert_allclose(
            slope[~some], slopes(loss, few, score[~some], share[~some])
        )
        assert not along(loss, few, score, here, v)[some].any()


@pytest.mark.parametrize("name", ["squared_hinge", "logistic"])
def test_a_wide_range_makes_the_grid_coarser(name):
    score, share = rows(2000)
    score[5] = 3e5
    loss = LOSSES[name]
    seen = look(loss, score, share, 0)
    assert seen.sums is None
    level = loss.level(seen)
    assert level > 0
    value = merged(loss, score, share, level, (10,)).value
    exact = POINTS[name](score, share).value
    assert value == pytest.approx(exact, rel=1e-3)
    assert loss.level(look(loss, np.array([np.nan, 1.0]), share[:2], 0)) == -1


def test_a_part_of_one_class_or_of_no_rows():
    for name, loss in LOSSES.items():
        score, share = rows(200)
        order = np.argsort(share)
        score, share = score[order], share[order]
        cut = int(np.searchsorted(share, 0.0))
        level = loss.first_level(200)
        whole = merged(loss, score, share, level, ())
        parts = merged(loss, score, share, level, (0, cut, cut))
        assert parts.value == pytest.approx(whole.value, rel=1e-12), name
