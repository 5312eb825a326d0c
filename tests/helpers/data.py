"""Small data sets, generated or real, and slow reference solutions."""

import lzma
import os
import sys
from csv import DictReader
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from aucmax.online.engine import feature_table as engine

SHARED = Path(__file__).parents[3] / "shared" / "data"


def registry_line(name, part="all", **facts):
    """Return a line of the registry of data sets."""
    line = {"name": name, "part": part, "bytes": 0, "source": "the moon"}
    line |= dict.fromkeys(("task", "url_labels", "url", "note"), "")
    return {key: str(value) for key, value in (line | facts).items()}


def _labels(score, positives):
    """Label the rows with the highest scores positive; at least one of each class."""
    n = len(score)
    k = min(max(round(positives * n), 1), n - 1)
    y = np.zeros(n, dtype=int)
    y[np.argsort(score, kind="stable")[n - k :]] = 1
    return y


def gaussian(n=200, d=6, seed=0, positives=0.3):
    """Return dense, well scaled rows; the first half of the features is informative."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    score = X[:, : max(d // 2, 1)].sum(axis=1)
    noise = score.std() * rng.standard_normal(n)
    return X, _labels(score + noise, positives)


def scattered(n=200, d=12, seed=0, positives=0.3, density=0.3):
    """Return mostly zero rows as a dense array, with ties and empty rows."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)), 1) * (rng.random((n, d)) < density)
    X[rng.random(n) < 0.05] = 0.0
    score = X[:, : d // 2].sum(axis=1)
    return X, _labels(score + 0.5 * rng.standard_normal(n), positives)


def scaled(n=200, d=6, seed=0, positives=0.3, decades=3.0):
    """Return features from 10^-decades to 10^decades, some far from zero."""
    X, y = gaussian(n, d, seed, positives)
    X = X * 10.0 ** np.linspace(-decades, decades, d)
    X[:, ::2] += 7.0 * X[:, ::2].std(axis=0)
    return X, y


def mixed(n=200, seed=0, positives=0.3):
    """Return sparse, scaled and count features in one matrix, with repeated rows.

    Learners centre some of the columns and not others.
    """
    rng = np.random.default_rng(seed)
    A, y = scattered(n, 5, seed, positives)
    B, z = scaled(n, 3, seed + 1, positives, decades=2.0)
    B = B[np.lexsort((rng.random(n), z))][np.argsort(np.argsort(y, kind="stable"))]
    X = np.hstack([A, B, rng.poisson(0.5, (n, 1))])
    repeated = rng.integers(0, n, n // 10)
    X[rng.integers(0, n, n // 10)] = X[repeated]
    return X, y


def constant(n=200, seed=0, positives=0.3):
    """Return gaussian rows with constant columns: ones, 3.3, zeros."""
    X, y = gaussian(n, 4, seed, positives)
    return np.column_stack([X, np.ones(n), np.full(n, 3.3), np.zeros(n)]), y


def heavy(n=2000, d=3, seed=0, sigma=1.0):
    """Return lognormal features: some rows are far longer than others."""
    rng = np.random.default_rng(seed)
    X = np.exp(sigma * rng.standard_normal((n, d)))
    return X, (np.log(X[:, 0]) + rng.standard_normal(n) > 1.0).astype(int)


def rare(n=100_000, d=3, seed=0, positives=1):
    """Return rows with very few positives."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.zeros(n, dtype=int)
    y[rng.choice(n, positives, replace=False)] = 1
    X[y == 1, 0] += 4.0
    return X, y


def informative(n, seed, d=3):
    """Return rows of which only the first feature is informative."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + 1.3 * rng.standard_normal(n) > 0.6).astype(int)


def wide(n=300, d=70_000, seed=0, nnz=20):
    """Return CSR rows with more features than 16 bits can count."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(int)
    columns = rng.integers(0, d - 2, (n, nnz - 1))
    marked = np.where(y == 1, d - 1, d - 2)  # the last two features are informative
    indices = np.column_stack([columns, marked]).ravel()
    values = rng.random(n * nnz) + 0.5
    X = sparse.csr_array((values, indices, np.arange(0, n * nnz + 1, nnz)), (n, d))
    X.sum_duplicates()
    return X, y


def shared(name):
    """Return a real data set as CSR and labels; skip the test if it is missing."""
    folder = Path(os.environ.get("AUCMAX_DATA", SHARED))
    if not (folder / "MANIFEST.csv").exists():
        pytest.skip(f"no data sets in {folder}; set AUCMAX_DATA")
    return _read(folder, name)


@cache
def _read(folder, name):
    with open(folder / "MANIFEST.csv", newline="") as lines:
        entry = next(row for row in DictReader(lines) if row["name"] == name)
    with lzma.open(folder / entry["file"]) as file:
        X, y = load_svmlight_file(file, n_features=int(entry["features"]))
    return sparse.csr_array(X), y


def class_moments(X, y, weight=None):
    """Return p, the class means and the class covariances (divided by n)."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    weight = np.ones(len(y)) if weight is None else weight
    positive = y == np.max(y)
    means, covariances = [], []
    for side in (positive, ~positive):
        share = weight[side] / weight[side].sum()
        means.append(share @ X[side])
        Z = X[side] - means[-1]
        covariances.append(Z.T @ (share[:, None] * Z))
    return weight[positive].sum() / weight.sum(), means, covariances


def quadratic(X, y, weight=None):
    """Return H and g such that the pairwise square loss is 1 - 2 g·w + w·H·w."""
    _, (m_pos, m_neg), (S_pos, S_neg) = class_moments(X, y, weight)
    delta = m_pos - m_neg
    return S_pos + S_neg + np.outer(delta, delta), delta


def closed_form(X, y, l2=0.0, weight=None):
    """Return w*: (S₊ + S₋ + ΔΔᵀ + (l2/2) I) w* = Δ."""
    H, delta = quadratic(X, y, weight)
    return np.linalg.solve(H + l2 / 2 * np.eye(len(delta)), delta)


def pairwise(w, X, y, l2=0.0, l1=0.0, weight=None):
    """Return J(w) by brute force over all pairs."""
    weight = np.ones(len(y)) if weight is None else weight
    positive = y == np.max(y)
    score = X @ w
    margins = score[positive][:, None] - score[~positive]
    weights = np.outer(weight[positive], weight[~positive])
    loss = np.sum(weights * (1.0 - margins) ** 2) / weights.sum()
    return loss + np.sum(l2 * w**2) / 2 + l1 * np.abs(w).sum()


def variable(model, name):
    """Return a number of a learner's state by the name of its constant."""
    if hasattr(engine, name):
        return float(model.state_.table.stats[getattr(engine, name)])
    place = getattr(sys.modules[type(model).__module__], name)
    return float(model.state_.z[place])


KINDS = ["dense 64", "dense 32", "CSR 64", "CSR 32"]


def awkward_rows(kind):
    """Return five rows: scattered, full, empty, one value, one stored zero."""
    d = 139  # more than 64, and no multiple of a SIMD width
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, d)) * (rng.random((5, d)) < 0.4) + 0.0
    X[1] = rng.standard_normal(d) + 1.0
    X[2:] = 0.0
    X[3, 4] = X[4, 4] = 2.5
    X = X.astype(np.float32 if "32" in kind else np.float64)
    if "CSR" not in kind:
        return X
    X = sparse.csr_array(X)
    X.data[-1] = 0.0  # an explicitly stored zero
    return X


def dense_row(X, i):
    """Return row i as a dense float array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)[i].astype(float)


def auto_ridge(X, y, weight=None):
    """Return the penalties of exact solvers with ``l2="auto"``, by brute force.

    Over all pairs: the mean of the nonzero z², times 1/n₊ + 1/n₋, times 1 + d²/4n,
    where d is the mean number of nonzero features of a pair.
    """
    weight = np.ones(len(y)) if weight is None else weight
    sides = [(y == label) & (weight > 0) for label in (np.max(y), np.min(y))]
    pos, neg = (X[side] for side in sides)
    pairs = np.outer(*(weight[side] / weight[side].sum() for side in sides))
    z = pos[:, None] - neg
    there = (pos[:, None] != 0) | (neg != 0)
    square, often = (np.tensordot(pairs, part, 2) for part in (z**2, there))
    rows = sum(1 / weight[side].sum() for side in sides)
    crowd = 1 + often.sum() ** 2 / (4 * weight.sum())
    return rows * crowd * square / np.where(often > 0, often, 1)


def ridge_of(l2, X, y, weight=None):
    """Return the penalties of an exact solver with this ``l2``."""
    if isinstance(l2, str):
        return auto_ridge(X, y, weight)
    return np.full(X.shape[1], float(l2))


class Coordinates:
    """Slow reference of the centring and scaling of ``online.engine.feature_table``.

    ``l2`` is a number, "auto", or a number for each feature.
    """

    def __init__(self, d, l2, precondition):
        self.l2, self.precondition = l2, precondition
        self.rows = self.renew_at = 0
        self.n = np.zeros(2)
        # Extended precision: squares about a reference point are differences.
        self.sums, self.squares = np.zeros((2, 2, d), dtype=np.longdouble)
        self.nonzero = np.zeros(d)
        self.ref = np.zeros(d)
        self.D = np.zeros(d) if precondition else np.ones(d)
        self.mark = np.zeros(d)

    def add(self, x, positive, weight):
        side = 0 if positive else 1
        self.rows += 1
        self.n[side] += weight
        self.own = weight / self.n[side] / 2
        self.sums[side] += weight * x
        self.squares[side] += weight * x.astype(np.longdouble) ** 2
        self.nonzero += weight * (x != 0)

    def known(self, prior=2.0):
        """Use the rows added so far as known statistics, as ``fit`` does.

        Each feature is assumed to occur in ``prior`` more rows of either class, with
        its mean square.
        """
        self.renew()
        if self.precondition:
            more = prior * self.n.sum() / self.rows
            self.squares += more * self.size()
            self.nonzero += 2 * more * (self.nonzero > 0)
            self.renew()
        self.mark = self.D.copy()

    def size(self):
        """Return the mean square of a feature about its reference, without zeros."""
        n = self.n[:, None]
        about = self.squares - self.ref * (2 * self.sums - n * self.ref)
        often = np.where(self.nonzero > 0, self.nonzero, 1)
        return np.maximum(about.sum(axis=0).astype(float) / often, 0.0)

    @property
    def p(self):
        return self.n[0] / self.n.sum()

    @property
    def means(self):
        return tuple((self.sums / self.n[:, None] - self.ref).astype(float))

    def spread(self):
        """Return the class-balanced mean of (x - ref)²; zero if it is rounding."""
        mean = (self.sums / self.n[:, None]).mean(axis=0)
        second = (self.squares / self.n[:, None]).mean(axis=0)
        second = second - self.ref * (2 * mean - self.ref)
        return np.where(second > 1e-15 * mean**2, second, 0.0).astype(float)

    @property
    def ridge(self):
        """The penalty of each weight."""
        if isinstance(self.l2, str):
            return 1e-3 * self.size()
        return self.l2 + np.zeros(len(self.ref))

    def scales(self):
        spread = self.spread()
        fit = np.where(spread > 0, spread + self.ridge / 4, 1.0)
        return np.where(spread > 0, 1.0 / fit, 0)

    def renew(self):
        """Update reference points and scales of all features."""
        self.renew_at = 4 * self.rows
        if self.precondition:
            mean = (self.sums / self.n[:, None]).mean(axis=0).astype(float)
            self.ref = mean
            variance = self.spread()
            self.ref = np.where(np.abs(mean) > 0.9 * np.sqrt(variance), mean, 0.0)
            self.D = self.scales()
        shares = self.spread() * self.D
        self.norm = float(np.sum(shares))
        self.width = self.norm / shares.max()
        convex = (self.ridge * self.D)[self.spread() > 0.0]
        self.mildest, self.hardest = convex.min(), convex.max()

    def meet(self, x, w, past=()):
        """Update the scales of the features of x, and return w in the new scales.

        The weights in ``past`` follow if a feature becomes active.
        """
        if not self.precondition:
            return w
        old, target, spread = self.D, self.scales(), self.spread()
        off = np.abs(old * (spread + self.ridge / 4) - 1) > 0.25
        stale = (x != 0.0) & np.where(target > 0.0, off, old > 0)
        self.D = np.where(stale, target, old)
        alone = self.own * (x - self.ref) ** 2 >= spread / 2
        woken = stale & (256 * target < self.mark) & (target < old) & ~alone
        late = np.sqrt(np.where(woken, target / np.where(woken, self.mark, 1.0), 1.0))
        self.mark = np.where(woken, target, self.mark)
        self.mark = np.where(stale, np.maximum(self.mark, target), self.mark)
        for k in range(len(past)):
            past[k] = past[k] * late
        follow = np.where(old > 0.0, target / np.where(old > 0.0, old, 1.0), 1.0)
        return np.where(stale, w * follow, w)
