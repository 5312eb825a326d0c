"""Partitioned rows for tests of clusters."""

from itertools import pairwise

import numpy as np


def blocks(X, y, cuts, weight=None):
    """Split X, y and optional weights before the rows ``cuts``."""
    ends = [0, *cuts, X.shape[0]]
    pairs = list(pairwise(ends))
    parts = [X[a:b] for a, b in pairs], [y[a:b] for a, b in pairs]
    return parts if weight is None else (*parts, [weight[a:b] for a, b in pairs])


def apart(a, b):
    """Return the largest difference of weights, relative to the largest weight."""
    return float(np.abs(a - b).max() / np.abs(b).max())


def table(n=400, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, d) + 3.0
    z = (X - 3.0) / X.std(axis=0)
    y = (z[:, 0] - z[:, 1] + rng.standard_normal(n) > 1.0).astype(int)
    return X, y
