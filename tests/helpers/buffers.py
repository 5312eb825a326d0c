"""Slow reference buffer for tests of learners with buffers."""

import numpy as np
from numpy.testing import assert_allclose

from aucmax.online.engine.buffer import SEED


def numbers():
    """Yield the uniform random numbers of the reservoir."""
    one, two = (int(seed) for seed in SEED)
    while True:
        one, two = one * 40014 % 2147483563, two * 40692 % 2147483399
        yield ((one - two - 1) % 2147483562 + 1) / 2147483563


class Buffer:
    """Rows of either class as lists, with fifo or reservoir replacement."""

    def __init__(self, size, policy):
        self.size, self.policy = size, policy
        self.rows, self.seen, self.random = ([], []), [0, 0], numbers()

    def again(self):
        """Restart the sampling, as each pass of ``fit`` does."""
        if self.policy == "reservoir":
            self.seen = [min(seen, self.size) for seen in self.seen]

    def offer(self, side, row):
        self.seen[side] += 1
        seen, rows = self.seen[side], self.rows[side]
        if len(rows) < self.size:
            rows.append(row)
        elif self.policy == "fifo":
            rows[(seen - 1) % self.size] = row
        else:
            slot = int(next(self.random) * seen)
            if slot < self.size:
                rows[slot] = row


def visits(X, y, weight, passes):
    here = np.flatnonzero(weight > 0)
    return [(X[i], int(y[i] != 1), weight[i]) for i in np.tile(here, passes or 1)]


def weighted(n):
    weight = np.random.default_rng(3).random(n) + 0.5
    weight[::7] = 0.0
    return weight


def assert_reference(model, X, y, layout, reference):
    weight = weighted(len(y))
    for passes in (None, 1, 2):
        if passes:
            model.set_params(max_iter=passes, shuffle=False)
            model.fit(layout(X), y, sample_weight=weight)
        else:
            model.partial_fit(layout(X), y, sample_weight=weight)
        expected = reference(X, y, weight, model, passes)
        atol = 1e-9 * np.ptp(expected)
        assert_allclose(model.coef_[0], expected, rtol=1e-7, atol=atol)
