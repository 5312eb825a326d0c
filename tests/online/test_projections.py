"""Projections against brute force."""

from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

from aucmax.core.jit import kernel
from aucmax.online import solam as project
from aucmax.online.solam import l1_threshold

patient = settings(deadline=None)  # the first call compiles
magnitudes = hnp.arrays(
    np.float64,
    st.integers(1, 40),
    elements=st.one_of(st.floats(0, 10), st.sampled_from([0.0, 1.0, 1.0, 2.0])),
)
radii = st.floats(1e-3, 50)
clip = kernel(project.clip)


stuck = []


def threshold(magnitudes, radius):
    """Return ``l1_threshold``, or fail if it does not come to an end.

    Kernels release the lock of the interpreter, so that this thread can watch.
    """
    results = []
    call = Thread(
        target=lambda: results.append(l1_threshold(magnitudes, radius)), daemon=True
    )
    if not stuck:  # one thread that spins is enough
        call.start()
        call.join(20)
        if results:
            return results[0]
        stuck.append((magnitudes.tolist(), radius))
    pytest.fail(f"l1_threshold{stuck[0]} does not return")


def by_bisection(magnitudes, radius):
    """Return the smallest threshold above which no more than ``radius`` is left."""
    if magnitudes.sum() <= radius:
        return 0.0
    low, high = 0.0, magnitudes.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(magnitudes - middle, 0).sum() > radius:
            low = middle
        else:
            high = middle
    return high


@patient
@given(magnitudes, radii)
def test_threshold_leaves_the_radius(magnitudes, radius):
    before = magnitudes.copy()
    found = threshold(magnitudes, radius)
    np.testing.assert_array_equal(magnitudes, before)
    assert_allclose(found, by_bisection(magnitudes, radius), rtol=1e-10, atol=1e-12)
    left = np.maximum(magnitudes - found, 0).sum()
    atol = 1e-13 * magnitudes.sum()  # a small difference of large numbers
    assert_allclose(left, min(magnitudes.sum(), radius), rtol=1e-10, atol=atol)


@patient
@given(magnitudes, radii, st.integers(0, 2**32 - 1))
def test_no_other_point_of_the_ball_is_nearer(magnitudes, radius, seed):
    rng = np.random.default_rng(seed)
    v = magnitudes * rng.choice([-1.0, 1.0], len(magnitudes))
    tau = threshold(magnitudes, radius)
    nearest = np.sign(v) * np.maximum(np.abs(v) - tau, 0)
    distance = np.linalg.norm(v - nearest)
    others = rng.standard_normal((50, len(v))) + nearest
    others *= np.minimum(1, radius / np.abs(others).sum(axis=1))[:, None]
    assert np.all(np.linalg.norm(v - others, axis=1) >= distance - 1e-9)


@pytest.mark.parametrize("values", [[0.1, 0.2, 0.7], [1 / 3, 0.05, 0.7]])
def test_a_threshold_that_is_one_of_the_numbers(values):
    """Rounding decides whether such a number is above the threshold or not."""
    values = np.array(values)
    for tau in values:
        radius = np.maximum(values - tau, 0).sum()
        if radius > 0:
            assert_allclose(threshold(values, radius), tau, rtol=1e-12)


@patient
@given(
    st.lists(st.sampled_from([0.05, 0.1, 0.15, 0.2, 0.3, 1 / 3, 0.6, 0.7]), min_size=2),
    st.integers(0, 100),
)
def test_any_threshold_that_is_one_of_the_numbers(values, k):
    values = np.array(values)
    tau = values[k % len(values)]
    radius = np.maximum(values - tau, 0).sum()
    if radius > 1e-3:
        assert_allclose(threshold(values, radius), tau, rtol=1e-10)


@patient
@given(st.floats(-1e6, 1e6), st.floats(0, 1e3))
def test_clip(value, bound):
    assert clip(value, bound) == np.clip(value, -bound, bound)
