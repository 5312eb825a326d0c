"""The race: sums against the formulas, eliminations against their error rate."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from aucmax.stream.race import Race


def blocks(n, gaps, seed=0, rows=32, noise=0.05):
    """Return AUCs of blocks, one member per column: a common part, gaps and noise."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0.8, 0.1, (n, 1))
    areas = common - np.array(gaps) + rng.normal(0.0, noise, (n, len(gaps)))
    return areas, rng.uniform(5.0, 15.0, n), np.full(n, rows)


def raced(areas, weights, rows):
    race = Race.of(areas.shape[1])
    for aucs, weight, count in zip(areas, weights, rows, strict=True):
        race.add_block(aucs, weight, int(count))
    return race


def plain(areas, weights, rows):
    """Return means, errors and errors of differences by the formulas."""
    u = weights * np.cumsum(rows) ** 2.0
    k = u.sum() ** 2 / (u**2).sum()
    mean = u @ areas / u.sum()

    def error(column):
        middle = u @ column / u.sum()
        squares = (u**2) @ (column - middle) ** 2
        return np.sqrt(k / (k - 1) * squares) / u.sum()

    n = areas.shape[1]
    pairs = [[error(areas[:, i] - areas[:, j]) for j in range(n)] for i in range(n)]
    return mean, np.array([error(column) for column in areas.T]), np.array(pairs)


def test_means_errors_and_weights():
    data = blocks(50, [0.0, 0.01, 0.03])
    race = raced(*data)
    mean, error, pairs = plain(*data)
    assert_allclose(race.means(), mean, rtol=1e-12)
    assert_allclose(race.errors(), error, rtol=1e-9)
    assert_allclose(race.gaps(), mean.max() - mean, atol=1e-12)
    leader = mean.argmax()
    likely = np.ones(3)
    for k in {0, 1, 2} - {leader}:
        likely[k] = np.exp(-0.5 * ((mean[leader] - mean[k]) / pairs[leader, k]) ** 2)
    assert_allclose(race.weights(), likely / likely.sum(), rtol=1e-6)


def test_results_before_the_second_block():
    race = Race.of(3)
    assert_allclose(race.weights(), 1 / 3)
    assert_allclose(race.means(), 0.5)
    assert_allclose(race.errors(), 0.5)
    race.add_block(np.array([0.9, 0.1, 0.5]), 3.0, 32)  # one block has no variance
    assert_allclose(race.weights(), 1 / 3)
    race.add_block(np.full(3, 0.5), 0.0, 32)  # of one class: only rows are counted
    assert_allclose(race.means(), [0.9, 0.1, 0.5])
    assert race.rows_seen().tolist() == [64.0] * 3
    assert race.losers(0.0).size == 0


def test_equal_members_share_the_weight():
    areas = np.repeat(blocks(20, [0.0])[0], 2, axis=1)
    race = raced(areas, np.ones(20), np.full(20, 32))
    assert_allclose(race.weights(), 0.5)


def test_fading_multiplies_the_weights_of_the_past():
    areas, weights, rows = blocks(40, [0.0, 0.02])
    race = Race.of(2)
    for aucs, weight, count in zip(areas, weights, rows, strict=True):
        race.add_block(aucs, weight, int(count))
        race.fade(0.9)
    faded = weights * 0.9 ** np.arange(40, 0, -1)
    mean, error, _ = plain(areas, faded, rows)
    assert_allclose(race.means(), mean, rtol=1e-12)
    assert_allclose(race.errors(), error, rtol=1e-9)


def checks(gaps, tolerance, seed, n=400, rows=256):
    """Return the race after ``n`` blocks."""
    race = Race.of(len(gaps))
    for aucs, weight, count in zip(*blocks(n, gaps, seed, rows), strict=True):
        race.add_block(aucs, weight, int(count))
        for loser in race.losers(tolerance):
            race.eliminate(loser)
    return race


def test_a_worse_member_is_eliminated_and_keeps_its_results():
    race = checks([0.0, 0.1], 0.0, 0, rows=64)
    assert race.running.tolist() == [True, False]
    assert_allclose(race.weights(), [1.0, 0.0])
    assert race.rows_seen()[1] < race.rows_seen()[0]
    assert race.gaps()[1] == pytest.approx(0.1, abs=0.02)
    assert race.gaps()[0] == 0.0
    mean, error = race.means()[1], race.errors()[1]
    race.add_block(np.array([0.1, 0.0]), 1e3, 32)
    assert (race.means()[1], race.errors()[1]) == (mean, error)


def test_within_the_tolerance_the_cheaper_member_continues():
    assert checks([0.002, 0.0], 0.05, 0).running.tolist() == [True, False]
    assert checks([0.0, 0.002], 0.05, 0).running.tolist() == [True, False]
    assert checks([0.3, 0.2, 0.0], 0.05, 0).running.tolist() == [True, False, True]


def test_the_cheapest_member_is_never_eliminated():
    assert checks([0.3, 0.0], 0.0, 0).running.tolist() == [True, True]


def test_no_member_is_eliminated_before_the_first_check():
    race = raced(*blocks(63, [0.0, 0.3], rows=64))
    assert race.losers(0.0).size == 0
    race.add_block(np.array([0.8, 0.5]), 10.0, 64)
    assert race.losers(0.0).tolist() == [1]
    assert race.losers(0.0).size == 0  # the next check is when rows have doubled


def test_the_error_rate_of_eliminations():
    """With four equal members any elimination is an error; α is 0.05."""
    wrong = sum(
        not checks([0.0] * 4, 0.0, seed, n=260).running.all() for seed in range(200)
    )
    assert wrong <= 18  # 10 expected at the most; more than 18 has probability 0.006


def test_one_member_always_remains():
    for seed in range(20):
        assert checks([0.0] * 4, 1.0, seed, n=150).running.sum() == 1


def test_a_restored_race_continues():
    race = checks([0.0, 0.1], 0.0, 0)
    arrays = {name: array.copy() for name, array in race.arrays().items()}
    twin = Race.restored(2, {**arrays, "more": np.zeros(3)})
    for copy in (race, twin):
        copy.add_block(np.array([0.7, 0.0]), 3.0, 32)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(race.arrays().values(), twin.arrays().values(), strict=True)
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("runs", np.zeros(2)),
        ("runs", np.array([0.5, 1.0])),
        ("sums", np.zeros(3)),
        ("sums", np.array([np.nan, 0.0])),
        ("totals", np.array([-1.0, 1.0])),
        ("at", np.array([-1.0, 0.0])),
    ],
)
def test_invalid_arrays_are_refused(name, value):
    arrays = raced(*blocks(20, [0.0, 0.1])).arrays()
    with pytest.raises(ValueError, match="race: "):
        Race.restored(2, {**arrays, name: value})
