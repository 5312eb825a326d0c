"""SAM, ASAM and PSAM against slow versions of themselves, and against the minimum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone

from aucmax import ASAM, PSAM, SAM
from aucmax.online.psam import T, pair_order
from helpers.data import Coordinates, gaussian
from helpers.layouts import datasets

SETTINGS = [
    PSAM(),
    PSAM(l2=0.3, eta0=3.0),
    PSAM(l2=0.0, rskip=3, askip=5),
    PSAM(l2=0.05, precondition=False, eta0=0.5),
    ASAM(l2=0.05, rskip=1, askip=1),
    ASAM(eta0=0.3, precondition=False),
    SAM(l2=0.05, rskip=7),
    PSAM(l1=0.02, rskip=3),
    SAM(l2=0.05, l1=0.1, precondition=False, eta0=0.5),
]
every = pytest.mark.parametrize("model", SETTINGS, ids=lambda m: str(m).split("\n")[0])
layouts = pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"]
)


def soft(w, threshold):
    return np.sign(w) * np.maximum(np.abs(w) - threshold, 0.0)


def weighted(n):
    weight = np.random.default_rng(3).random(n) + 0.5
    weight[::7] = 0.0
    return weight


class Slow:
    """The weights and their mean, one step at a time and nothing lazy."""

    def __init__(self, table, model, kind):
        self.table, self.kind, self.hyper = table, kind, model.get_params()
        self.w = np.zeros(len(table.D))
        self.sum, self.count = np.zeros_like(self.w), 0
        self.t = self.due = self.since = 0
        self.capacity = max(self.hyper["rskip"], len(self.w) // 16)

    def renew(self):
        self.table.renew()
        m_pos, m_neg = self.table.means
        product = np.minimum(m_pos * m_neg, self.table.spread())
        self.length = 2 * np.sum(self.table.D * (self.table.spread() - product))

    def shrink(self):
        self.w = soft(self.w, self.due * self.hyper["l1"] * self.table.D)
        self.w = self.w / (1 + self.due * self.table.ridge * self.table.D)
        self.due = self.since = 0

    def step(self, z, weight=1.0):
        self.t += 1
        eta = weight / (self.length / self.hyper["eta0"] + self.table.mildest * self.t)
        loss = max(0.0, 1 - self.w @ z)
        c = eta if loss > 0 else 0.0
        if self.kind is PSAM and z.any():
            c = min(eta, loss / (z @ (self.table.D * z)))
        self.w = self.w + c * self.table.D * z
        self.due += eta
        self.since += 1
        if self.since >= self.capacity or self.due * self.table.hardest > 0.5:
            self.shrink()
        if self.kind is not SAM and self.t % self.hyper["askip"] == 0:
            self.sum, self.count = self.sum + self.w, self.count + 1

    def rescale(self, x):
        """Let the weights and their mean follow the scales."""
        past = [self.sum]
        self.w = self.table.meet(x, self.w, past)
        self.sum = past[0]

    @property
    def result(self):
        return self.sum / self.count if self.count else self.w


def assert_equal_weights(model, expected):
    assert_allclose(model.coef_[0], expected, rtol=1e-8, atol=1e-10 * np.ptp(expected))


@datasets
@every
def test_fit_is_the_algorithm(model, data, layout):
    X, y = data(200)
    weight = weighted(len(y))
    model = clone(model).set_params(random_state=0, max_iter=3)
    model.fit(layout(X), y, sample_weight=weight)
    slow = Slow(
        Coordinates(X.shape[1], model.l2, model.precondition), model, type(model)
    )
    for i in np.flatnonzero(weight):
        slow.table.add(X[i], y[i] == 1, weight[i])
    slow.table.known()
    slow.renew()
    pairs = pair_order(np.where(y == 1, weight, -weight), np.random.RandomState(0))
    steps = 3 * np.count_nonzero(weight)
    for i, j in zip(*(order.take(steps) for order in pairs), strict=True):
        slow.step(X[i] - X[j])
    assert model.state_.z[T] == steps
    assert_equal_weights(model, slow.result)


class Chance:
    """L'Ecuyer's generator of 1988, as published."""

    def __init__(self, seed):
        self.one, self.two = (int(s) for s in seed)

    def uniform(self):
        self.one = self.one * 40014 % 2147483563
        self.two = self.two * 40692 % 2147483399
        mixed = self.one - self.two
        return (mixed if mixed >= 1 else mixed + 2147483562) / 2147483563


@datasets
@every
def test_a_stream_is_the_algorithm(model, data, layout):
    X, y = data(900, positives=0.45)  # the reservoirs fill up
    weight = weighted(len(y))
    model = clone(model).set_params(random_state=0)
    chance = Chance(model._start(X.shape[1]).pool.seed)
    model.partial_fit(layout(X), y, sample_weight=weight)
    slow = Slow(
        Coordinates(X.shape[1], model.l2, model.precondition), model, type(model)
    )
    table, kept, rows = slow.table, ([], []), np.zeros(2)
    for i in np.flatnonzero(weight):
        side = 1 - y[i]  # positives first
        table.add(X[i], y[i] == 1, weight[i])
        rows[side] += 1
        if table.n.all():
            slow.rescale(X[i])
            if table.rows >= table.renew_at:
                slow.shrink()
                slow.renew()
            partners = kept[1 - side]
            for _ in range(2):
                other = partners[int(chance.uniform() * len(partners))]
                z = X[i] - other if y[i] == 1 else other - X[i]
                slow.step(z, weight[i] * rows[side] / table.n[side])
        mine = kept[side]
        if len(mine) == 256:
            if chance.uniform() >= 256 * weight[i] / table.n[side]:
                continue
            mine.pop(int(chance.uniform() * 256))
        mine.append(X[i])
    assert rows.min() > 300
    assert_equal_weights(model, slow.result)
    pool = model.state_.pool
    for side in (0, 1):
        assert pool.kept[side] == 256
        for r, row in enumerate(kept[side]):
            lo, hi = pool.starts[side, r : r + 2].astype(int)
            assert_array_equal(pool.where[side, lo:hi], np.flatnonzero(row))
            assert_array_equal(pool.value[side, lo:hi], row[row != 0.0])


@pytest.mark.parametrize("seed", range(3))
def test_a_step_is_the_proximal_map(seed):
    """Two rows are one pair, and one fit of two steps is two maps."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2, 3))
    eta0 = 10.0 ** rng.uniform(-1, 1)
    model = PSAM(l2=0.0, eta0=eta0, precondition=False, max_iter=1, random_state=0)
    w = model.fit(X, [0, 1]).coef_[0]
    z = X[1] - X[0]
    eta = eta0 / (z @ z)
    expected = np.zeros(3)
    for _ in range(2):
        # With a bound variable for the loss, the map is a smooth problem.
        found = minimize(
            lambda v, w=expected: eta * v[3] + 0.5 * np.sum((v[:3] - w) ** 2),
            np.r_[expected, 1.0],
            jac=lambda v, w=expected: np.r_[v[:3] - w, eta],
            bounds=[(None, None)] * 3 + [(0.0, None)],
            constraints={
                "type": "ineq",
                "fun": lambda v: v[3] - 1.0 + v[:3] @ z,
                "jac": lambda v: np.r_[z, 1.0],
            },
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        expected = found.x[:3]
    assert_allclose(w, expected, rtol=1e-5)


def hinge(w, Z, l2, share, l1=0.0):
    loss = share @ np.maximum(0.0, 1.0 - Z @ w)
    return loss + l2 / 2 * w @ w + l1 * np.abs(w).sum()


def hinge_minimum(Z, l2, share, l1=0.0):
    """Return the minimum by ascent in the coordinates of the dual, and a lower bound.

    J(w) ≥ Σ α - l2 ‖w‖²/2 for all 0 ≤ α ≤ share, with w = soft(Σ α z, l1) / l2.
    """
    alpha, w, total = np.zeros(len(Z)), np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    squares = np.sum(Z**2, axis=1) / l2
    rng = np.random.default_rng(0)
    for _ in range(400):
        for k in rng.permutation(len(Z)):
            change = (1.0 - Z[k] @ w) / squares[k]
            change = min(max(alpha[k] + change, 0.0), share[k]) - alpha[k]
            alpha[k] += change
            total += change * Z[k]
            w = soft(total, l1) / l2
        bound = alpha.sum() - l2 / 2 * w @ w
        if hinge(w, Z, l2, share, l1) - bound < 1e-6:
            break
    return hinge(w, Z, l2, share, l1), bound


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "weighted"])
def problem(request):
    X, y = gaussian(40, 4)
    X = X * [1.0, 3.0, 0.3, 1.0] + [0.0, 9.0, 0.0, 0.0]
    weight = np.where(X[:, 0] > 0.0, 3.0, 0.5) if request.param else np.ones(40)
    Z = (X[y == 1][:, None] - X[y == 0]).reshape(-1, 4)
    share = np.outer(weight[y == 1], weight[y == 0]).ravel()
    share /= share.sum()
    least, bound = hinge_minimum(Z, 0.02, share)
    assert least - bound < 1e-5
    return X, y, weight, Z, share, least


@layouts
@pytest.mark.parametrize("kind", [SAM, ASAM, PSAM])
def test_the_minimum_of_the_hinge_loss_is_reached(kind, layout, problem):
    X, y, weight, Z, share, least = problem
    gaps = []
    for passes in (20, 10_000):
        model = kind(0.02, max_iter=passes, random_state=0)
        w = model.fit(layout(X), y, sample_weight=weight).coef_[0]
        gaps.append((hinge(w, Z, 0.02, share) - least) / (1.0 - least))
    assert gaps[1] < 0.3 * gaps[0]
    assert gaps[1] < 1e-3


@pytest.mark.parametrize("kind", [ASAM, PSAM])
def test_the_minimum_with_an_l1_penalty_is_reached(kind, problem):
    X, y, weight, Z, share, _ = problem
    l2, l1 = 0.02, 0.05
    least, bound = hinge_minimum(Z, l2, share, l1)
    assert least - bound < 1e-4
    model = kind(l2, l1=l1, max_iter=10_000, random_state=0)
    w = model.fit(X, y, sample_weight=weight).coef_[0]
    assert hinge(w, Z, l2, share, l1) - least < 1e-3 * (1.0 - least)


def test_weights_change_that_minimum():
    X, y = gaussian(40, 4)
    heavy = np.where(X[:, 0] > 0.0, 3.0, 0.5)
    w = [
        PSAM(0.02, max_iter=500, random_state=0).fit(X, y, sample_weight=weight).coef_
        for weight in (np.ones(40), heavy)
    ]
    assert np.linalg.norm(w[0] - w[1]) > 0.1 * np.linalg.norm(w[0])


@pytest.mark.parametrize("n", [1, 3, 500, 40_000])
@pytest.mark.parametrize("heavy", [False, True])
def test_rows_are_drawn_by_weight(n, heavy):
    rng = np.random.default_rng(0)
    weight = rng.choice([0.5, 1.0, 4.0], n) if heavy else np.ones(n)
    y = np.r_[np.zeros(5), weight, -1.0]
    order, _ = pair_order(y, np.random.RandomState(0))
    times = 40
    rows = np.concatenate([order.take(size) for size in [n * times - 7, 7] if size > 0])
    assert len(rows) >= n * times
    counts = np.bincount(rows[: n * times], minlength=n + 6)
    assert counts[:5].sum() == counts[-1] == 0
    expected = times * weight * n / weight.sum()
    # A pass deals a row as often as it should, rounded up or down.
    assert np.all(np.abs(counts[5:-1] - expected) <= times)
    assert_allclose(counts[5:-1].mean(), times)
    if heavy and n > 1:
        error = (counts[5:-1] - expected) / np.sqrt(times)
        assert np.abs(error.mean()) < 0.1
        assert error.std() < 1.0
    else:
        assert_array_equal(counts[5:-1], times)


def test_pairs_are_uniform():
    """All pairs of 4 positives and 6 negatives come up, equally often."""
    y = np.r_[np.ones(4), -np.ones(6)]
    pos, neg = (order.take(24_000) for order in pair_order(y, np.random.RandomState(0)))
    counts = np.zeros((4, 6))
    np.add.at(counts, (pos, neg - 4), 1)
    assert_allclose(counts, 1000, atol=150)


def test_rows_of_a_large_class_are_shuffled():
    y = np.r_[np.ones(30_000), -np.ones(30_000)]
    pos, neg = (order.take(30_000) for order in pair_order(y, np.random.RandomState(0)))
    assert np.median(np.abs(np.diff(pos))) > 3000
    assert abs(np.corrcoef(pos, neg)[0, 1]) < 0.02  # three standard deviations


def test_long_rows_share_the_reservoir():
    """Rows of 240 000 values: two of them fit, and the stream goes on."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 240_000)), np.arange(12) % 2
    whole = PSAM(random_state=0).partial_fit(X, y)
    assert_array_equal(whole.state_.pool.kept, 2)
    parts = PSAM(random_state=0)
    for i in range(12):
        parts.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    assert_array_equal(parts.coef_, whole.coef_)


def test_a_stream_goes_on_from_a_fit():
    X, y = gaussian(2000, 5)
    model = PSAM(random_state=0).fit(X[:1000], y[:1000])
    assert_array_equal(model.state_.pool.kept, [256, 256])
    kept = model.state_.pool.value[:, : 256 * 5].reshape(2, 256, 5)
    for side, label in enumerate((1, 0)):
        known = {row.tobytes() for row in X[:1000][y[:1000] == label]}
        assert len({row.tobytes() for row in kept[side]} & known) == 256
    before = model.score(X, y)
    assert model.partial_fit(X[1000:], y[1000:]).score(X, y) > before - 0.005
