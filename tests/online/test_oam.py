"""OAM against a slow version of itself, and its buffer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import aucmax
from aucmax import OAM
from aucmax.core.jit import kernel
from aucmax.online.engine import buffer
from aucmax.online.engine import random_numbers as random
from aucmax.online.engine.buffer import SEED, widened
from aucmax.online.oam import SEEN
from helpers.buffers import Buffer, assert_reference, numbers, visits
from helpers.data import Coordinates, gaussian, mixed, scattered, variable
from helpers.layouts import datasets

SETTINGS = [
    {},
    {"update": "gra"},
    {"policy": "reservoir"},
    {"policy": "reservoir", "update": "gra", "schedule": "invsqrt", "average": False},
    {"schedule": "constant", "C": 0.01, "precondition": False, "average": False},
]
layouts = pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"]
)
uniform, find_slot = kernel(random.uniform), kernel(buffer.find_slot)


def reference(X, y, weight, model, passes):
    """Return the weights after ``passes`` over the rows; None is a stream."""
    table = Coordinates(X.shape[1], 0.0, model.precondition)
    if passes:
        for x, side, share in visits(X, y, weight, 1):
            table.add(x, side == 0, share)
        table.known()
    buffer = Buffer(model.buffer_size, model.policy)
    w, iterates = np.zeros(X.shape[1]), []
    for x, side, share in visits(X, y, weight, passes):
        if passes is None:
            table.add(x, side == 0, share)
            if table.n.all():
                w = table.meet(x, w, iterates)
                if table.rows >= table.renew_at:
                    table.renew()
        others = buffer.rows[1 - side]
        if others:
            size, seen = model.buffer_size, buffer.seen
            relative = table.rows / table.n.sum()
            C = model.C / (2 * table.norm) * max(1, seen[1 - side] / size)
            C *= share * relative
            effective = 4 * table.p * (1 - table.p) * (len(iterates) + 1)
            if model.schedule != "constant":
                C /= max(1, sum(seen) / (2 * size))
                power = 1 if model.schedule == "inv" else 0.5
                C /= (1 + effective / table.width) ** power
            before = w
            for other, its in others:
                z = (x - other) if side == 0 else (other - x)
                if model.update == "seq":
                    if not np.any(z):
                        continue
                    step = max(0, 1 - w @ z) / (z @ (table.D * z))
                    w = w + min(C * its * relative, step) * table.D * z
                elif before @ z <= 1:
                    w = w + C * its * relative / 2 * table.D * z
            iterates.append(w)
        buffer.offer(side, (x, share))
    if not model.average:
        return w
    return np.average(iterates, axis=0, weights=np.arange(len(iterates)) + 1)


@datasets
@pytest.mark.parametrize("hyper", SETTINGS, ids=str)
def test_oam_is_the_algorithm(hyper, data, layout):
    X, y = data(120)
    assert_reference(OAM(buffer_size=9, **hyper), X, y, layout, reference)


def test_a_stream_of_one_class_first():
    X, y = mixed(120)
    by_class = np.argsort(y, kind="stable")
    for policy in ("fifo", "reservoir"):
        model = OAM(buffer_size=9, policy=policy)
        assert_reference(model, X[by_class], y[by_class], np.asarray, reference)


def test_a_step_of_seq_by_hand():
    """The first pair is at a distance of one in every direction that it has."""
    X, y = np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([0, 1])
    model = OAM(1e9, precondition=False, average=False, schedule="constant")
    assert_allclose(model.partial_fit(X, y).coef_, [[0.5, 0.0]])
    model = OAM(0.1, precondition=False, average=False, schedule="constant")
    norm = (0.5 * 1 + 0.5 * 5) * 2  # of both rows, times two
    assert_allclose(model.partial_fit(X, y).coef_, [[0.1 / norm * 2, 0.0]])
    model = clone(model).set_params(update="gra")
    assert_allclose(model.partial_fit(X, y).coef_, [[0.1 / norm, 0.0]])


def test_more_passes_lower_the_hinge_loss():
    X, y = gaussian(300, 5)

    def loss(w):
        score = X @ w
        return np.maximum(0, 1 - score[y == 1][:, None] + score[y == 0]).mean()

    steps = [OAM(max_iter=k, random_state=0).fit(X, y).coef_[0] for k in (1, 30)]
    assert loss(steps[1]) < loss(steps[0]) < 1.0
    # No direction leads down from there by much.
    best = min(
        loss(steps[1] + h * e)
        for e in np.vstack([np.eye(5), steps[1]])
        for h in (-0.1, -0.03, 0.03, 0.1)
    )
    assert loss(steps[1]) < best + 0.003


# The buffer


def test_random_numbers_are_uniform():
    seed = np.array(SEED)
    found = np.array([uniform(seed) for _ in range(20_000)])
    expected = numbers()
    assert_array_equal(found, [next(expected) for _ in range(20_000)])
    assert found.min() > 0.0
    assert found.max() < 1.0
    counts = np.bincount((20 * found).astype(int), minlength=20)
    assert np.sum((counts - 1000.0) ** 2 / 1000.0) < 50.0  # chi-squared, 19 degrees


def test_a_reservoir_is_a_uniform_sample():
    kept = np.zeros(40)
    seed = np.array(SEED)
    for _ in range(4000):
        slots, seen = np.full(10, -1), np.zeros(2)
        for i in range(40):
            slot = find_slot(seen, 1, 5, True, seed)
            assert slot == -1 or 5 <= slot < 10
            if slot >= 0:
                slots[slot] = i
        kept[slots[5:]] += 1
    # A quarter of 4000, give or take √(4000 · 1/8 · 7/8) = 21: at most 4 of these.
    assert_allclose(kept, 500.0, atol=84.0)


def test_fifo_keeps_the_last_rows():
    X, y = gaussian(100, 3)
    model = OAM(buffer_size=7, policy="fifo").partial_fit(X, y)
    for side, label in ((0, 1), (1, 0)):
        found = model.state_.rows[0, 7 * side : 7 * side + 7]
        expected = X[y == label][-7:]
        assert_array_equal(np.sort(found, axis=0), np.sort(expected, axis=0))


@layouts
def test_the_buffer_takes_the_room_of_what_is_not_zero(layout):
    X, y = scattered(100, 12)
    X[60] = 1.0
    model = OAM(buffer_size=7).partial_fit(layout(X[:50]), y[:50], classes=[0, 1])
    most = np.count_nonzero(X[:50], axis=1).max()
    assert model.state_.rows.shape == (2, 14, most)
    model.partial_fit(layout(X[50:]), y[50:])
    assert model.state_.rows.shape == (2, 14, 12)
    assert widened(model.state_, X, np.zeros(100)) is model.state_


@pytest.mark.parametrize(
    ("field", "at", "value"),
    [
        ("rows", (1, 0, 0), 7.0),
        ("rows", (1, 0, 0), np.nan),
        ("slots", (0, 1), 7.0),
        ("slots", (0, 1), -1.0),
        ("z", SEEN, -1.0),
    ],
)
def test_a_buffer_out_of_range_is_not_loaded(field, at, value, tmp_path):
    X, y = gaussian(30, 6)
    model = OAM(buffer_size=3).partial_fit(X, y)
    assert variable(model, "SEEN") == np.sum(y == 1)
    getattr(model.state_, field)[at] = value
    model.save(tmp_path / "model.aucmax")
    with pytest.raises(ValueError, match=r"out of range|not finite"):
        aucmax.load(tmp_path / "model.aucmax")
