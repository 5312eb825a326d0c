"""Hinges of contingency-table losses against all labellings written out."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from aucmax.linear.svmperf import F1Hinge, PrecisionHinge
from aucmax.losses.pairwise import shares

LOSSES = {
    "f1": F1Hinge,
    "prbep": PrecisionHinge,
    "precision at 2": partial(PrecisionHinge, k=2),
    "precision at 6": partial(PrecisionHinge, k=6),
}
every = pytest.mark.parametrize("name", LOSSES)


def brute(name, score, y):
    """Return the largest Δ + (y' - y)·s / 2n₊ over all labellings y'."""
    k = np.sum(y > 0) if name in ("f1", "prbep") else int(name[-1])
    best = 0.0
    for labels in product([-1, 1], repeat=len(y)):
        found = np.array(labels)
        a, b = np.sum((found > 0) & (y > 0)), np.sum((found > 0) & (y < 0))
        c = np.sum((found < 0) & (y > 0))
        if name == "f1":
            delta = 1 - 2 * a / max(2 * a + b + c, 1)
        elif a + b == k:
            delta = 1 - a / k
        else:
            continue
        best = max(best, delta + (found - y) @ score / (2 * np.sum(y > 0)))
    return best


def cases():
    rng = np.random.default_rng(0)
    for n_pos, n_neg in ((2, 4), (4, 4), (5, 3), (1, 7)):
        y = rng.permutation(np.repeat([1, -1], [n_pos, n_neg]))
        for scale in (0.0, 0.2, 1.0, 5.0):
            yield scale * rng.standard_normal(len(y)), y
            yield scale * (y + 0.3 * rng.standard_normal(len(y))), y
        yield np.round(rng.standard_normal(len(y))), y  # ties


@every
def test_the_value_is_the_largest_of_all_labellings(name):
    for score, y in cases():
        point = LOSSES[name](score, shares(y.astype(float)))
        assert_allclose(point.value, brute(name, score, y), atol=1e-12)


@every
def test_the_slopes_are_subgradients(name):
    rng = np.random.default_rng(1)
    for score, y in cases():
        share = shares(y.astype(float))
        here = LOSSES[name](score, share)
        for scale in (1e-3, 0.3, 3.0):
            move = scale * rng.standard_normal(len(y))
            there = LOSSES[name](score + move, share)
            assert there.value >= here.value + here.slope @ move - 1e-12
