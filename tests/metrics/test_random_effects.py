"""Prediction intervals from blocks: formula and coverage."""

import numpy as np
import pytest
from scipy import stats

from aucmax.metrics.groups import BlockAUC, prediction_interval


def test_equal_blocks_leave_the_sampling_error():
    blocks = [BlockAUC(0.8, 0.02, 50.0)] * 4
    value, low, high, se = prediction_interval(blocks, 2)
    assert value == 0.8
    assert se == pytest.approx(0.02 / np.sqrt(2))
    half = stats.t(3).ppf(0.975) * 0.02 / 0.16 / np.sqrt(2)
    limits = 1 / (1 + np.exp(-np.log(4) - np.array([-half, half])))
    assert (low, high) == pytest.approx(tuple(limits))


def test_perfect_blocks_have_an_interval():
    value, low, high, _ = prediction_interval([BlockAUC(1.0, 0.0, 20.0)] * 5, 2)
    assert (value, high) == (1.0, 1.0)
    assert 0.7 < low < 0.99
    value, low, high, _ = prediction_interval([BlockAUC(0.0, 0.0, 1.0)] * 2, 2)
    assert (value, low) == (0.0, 0.0)
    assert 0.5 < high <= 1.0


@pytest.mark.parametrize("between", [0.05, 0.3])
def test_the_next_block_is_covered(between):
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(1000):
        logits = 1.0 + between * rng.normal(size=6)
        truth = 1 / (1 + np.exp(-logits))
        se = 0.15 * truth * (1 - truth)
        seen = np.clip(truth + se * rng.normal(size=6), 0.01, 0.99)
        blocks = [BlockAUC(a, s, 100.0) for a, s in zip(seen, se, strict=True)]
        _, low, high, _ = prediction_interval(blocks[:5], 2)
        inside.append(low <= truth[5] <= high)
    assert np.mean(inside) > 0.93
