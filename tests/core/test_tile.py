"""Sums of products, compiled, against their definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from aucmax.core.engine.tile import HALF, TALL, add_products
from aucmax.core.jit import kernel


@kernel
def compiled(K, at, length, rows, c, first, V, r, start, stop):
    add_products(K, at, length, rows, c, first, V, r, start, stop)


@pytest.mark.parametrize("rows", [TALL, HALF, 1])
@pytest.mark.parametrize("r", [0, 1, 5])
def test_products_are_added_where_they_belong(rows, r):
    rng = np.random.default_rng(r)
    K, c, V = rng.random(400), rng.random((6, 20)), rng.random((6, 48))
    expected, left, weighed = K.copy(), c.copy(), V.copy()
    for start, stop in ((8, 40), (3, 11), (16, 16)):
        for to in (expected, K):
            add = add_products if to is expected else compiled
            add(to, 5, 41, rows, c, 2, V, r, start, stop)
    assert_allclose(K, expected, rtol=1e-14)
    assert (c == left).all()
    assert (weighed == V).all()
