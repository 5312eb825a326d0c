"""Coverage of 95 % confidence intervals, by simulation.

``python benchmarks/intervals.py scores --repeat 2000``: ``metrics.auc_interval`` of
scores with a known AUC. Negatives are standard normal. Positives of "normal" have the
standard deviation 1, of "wide" 2, of "narrow" 0.5. "exponential" has exponential scores
of different scale, "shifted" of different location. "mixed" is "normal", with a share
1 - AUC of the positives distributed like the negatives. Columns are percent of the
draws: "wilson" is the default, "logit" plain DeLong on the logit scale.

``python benchmarks/intervals.py classifier --repeat 400``: ``AUCClassifier.auc_`` on
tables of noise and of signal. The true value is the AUC of the fitted model: 0.5 on
noise, else measured on 20,000 new rows. "folds" treats folds as independent (the
default of ``cv_auc_interval``). "line" has one column whose mean differs by class,
"xor" two columns whose product does.

``python benchmarks/intervals.py statistics --repeat 2000``: the other intervals and
tests of ``aucmax.metrics`` on normal scores, whose true values are known. Columns are
the AUC and the numbers of positives and negatives. Probabilities are the true ones.
Rows of tests show how often a true hypothesis is not rejected at the level of 5 %.

The constants of the first two intervals were chosen by simulations of the same kinds
with other seeds, except "mixed", which was only evaluated afterwards.

The standard error of a share p of R draws is sqrt(p (1 - p) / R): 0.5 % for 2,000.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import product
from math import hypot, log
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import quad
from scipy.special import expit, ndtr, ndtri
from sklearn.ensemble import ExtraTreesClassifier

from aucmax import BAM, AUCClassifier, metrics
from aucmax.blend import combine as uncertainty
from aucmax.blend.boosting import BoostedTrees
from aucmax.metrics import auc, auc_interval, cv_auc_interval

AREAS = (0.5, 0.7, 0.95, 0.98)
SIZES = ((5, 100), (10, 100), (10, 1000), (20, 200), (20, 2000), (50, 500), (50, 5000))
LEAST = 92.0  # percent; lower coverage is marked
GOOD = (93.0, 97.0)  # percent; other coverage of statistics is marked

Draw = Callable[[np.random.Generator, int, int, float], np.ndarray]


def normal(deviation: float) -> Draw:
    """Return a function that draws scores of a given AUC, positives first."""

    def draw(rng: np.random.Generator, m: int, n: int, area: float) -> np.ndarray:
        scores = rng.standard_normal(m + n)
        scores[:m] = deviation * scores[:m] + hypot(1.0, deviation) * ndtri(area)
        return scores

    return draw


def exponential(rng: np.random.Generator, m: int, n: int, area: float) -> np.ndarray:
    """P(r E > E') is r / (1 + r)."""
    scores = rng.exponential(size=m + n)
    scores[:m] *= area / (1.0 - area)
    return scores


def shifted(rng: np.random.Generator, m: int, n: int, area: float) -> np.ndarray:
    """P(E + s > E') is 1 - exp(-s) / 2, if s is not negative."""
    scores = rng.exponential(size=m + n)
    scores[:m] -= log(2.0 * (1.0 - area))
    return scores


def mixed(rng: np.random.Generator, m: int, n: int, area: float) -> np.ndarray:
    """Give a share q = 1 - A of positives an AUC of 1/2, the others (A - q/2) / A."""
    scores = rng.standard_normal(m + n)
    shift = hypot(1.0, 1.0) * ndtri((1.5 * area - 0.5) / area)
    scores[:m] += shift * (rng.random(m) < area)
    return scores


KINDS: dict[str, Draw] = {
    "normal": normal(1.0),
    "wide": normal(2.0),
    "narrow": normal(0.5),
    "exponential": exponential,
    "shifted": shifted,
    "mixed": mixed,
}


def cover_scores(repeat: int) -> Iterator[tuple[list[str], list[float]]]:
    """Yield the name of each cell and the coverage of each method in percent."""
    methods = ("wilson", "logit")
    for kind, draw in KINDS.items():
        for area in AREAS:
            for m, n in SIZES:
                rng, y = np.random.default_rng(0), np.repeat([1, 0], [m, n])
                hits, width = np.zeros(len(methods)), 0.0
                for _ in range(repeat):
                    scores = draw(rng, m, n, area)
                    for j, method in enumerate(methods):
                        found = auc_interval(y, scores, method=method)
                        hits[j] += found.low <= area <= found.high
                        width += (found.high - found.low) * (j == 0)
                cell = [kind, f"{area:.2f}", f"{m} + {n}", f"{width / repeat:.3f}"]
                yield cell, list(100.0 * hits / repeat)


class Task(NamedTuple):
    """A distribution of tables, and the members to fit to it."""

    name: str
    n: int
    d: int
    rate: float  # of positives
    members: list[Any]
    shift: float = 0.0

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ``n`` rows and their labels."""
        X, y = rng.standard_normal((n, self.d)), rng.random(n) < self.rate
        if self.name == "line":
            X[:, 0] += self.shift * y
        elif self.name == "xor":
            side = rng.choice([-1.0, 1.0], n)
            X[:, 0] += self.shift * side
            X[:, 1] += self.shift * np.where(y, side, -side)
        return X, y


LINE = [("linear", BAM())]
TREES = ExtraTreesClassifier(15, min_samples_leaf=2)
TEAM = [*LINE, ("trees", TREES), ("boosted", BoostedTrees(20))]
TASKS = (
    Task("noise", 400, 6, 0.5, LINE),
    Task("noise", 300, 6, 0.05, LINE),
    Task("noise", 150, 8, 0.3, TEAM),
    Task("line", 300, 8, 0.05, LINE, 1.5),
    Task("line", 200, 20, 0.5, LINE, 0.5),
    Task("line", 200, 20, 0.5, LINE, 1.5),
    Task("line", 100, 80, 0.5, LINE, 1.0),
    Task("line", 300, 8, 0.05, TEAM, 1.5),
    Task("xor", 400, 6, 0.3, TEAM, 1.2),
)
STEP = 0.05  # difference of two compared AUCs
FEWEST, NEW = 6, 20_000  # positives of a table; rows to measure the true AUC


def cover_classifier(repeat: int) -> Iterator[tuple[list[str], list[float]]]:
    """Yield the name of each task and the coverage of ``auc_`` in percent."""
    plain: list[Any] = []  # intervals that treat folds as independent

    def recorded(*args: Any, **more: Any) -> Any:
        plain.append(cv_auc_interval(*args, **more | {"dependence": 0.0}))
        return cv_auc_interval(*args, **more)

    uncertainty.cv_auc_interval = recorded
    for task in TASKS:
        hits, width, draws = np.zeros(2), 0.0, 0
        for seed in range(repeat):
            rng = np.random.default_rng(seed)
            X, y = task.draw(rng, task.n)
            if y.sum() < FEWEST:
                continue
            plain.clear()
            model = AUCClassifier(task.members, random_state=seed).fit(X, y)
            truth = 0.5
            if task.shift:
                X, y = task.draw(rng, NEW)
                truth = auc(y, model.decision_function(X))
            for j, found in enumerate((model.auc_, plain[0])):
                hits[j] += found.low <= truth <= found.high
            width += model.auc_.high - model.auc_.low
            draws += 1
        members = "linear" if task.members is LINE else "linear, trees"
        what = f"{task.name} {task.shift or ''}, {members}"
        rows = f"{task.n} x {task.d}, {task.rate:.0%}"
        yield (
            [what, f"{draws}", rows, f"{width / draws:.3f}"],
            list(100.0 * hits / draws),
        )


class Setting:
    """Normal scores with a given AUC, and the true values of the statistics."""

    def __init__(self, area: float, m: int, n: int) -> None:
        self.area, self.m, self.n = area, m, n
        self.shift = self.shift_of(area)
        self.rate = m / (m + n)
        self.y = np.repeat([1, 0], [m, n])

    @staticmethod
    def shift_of(area: float) -> float:
        """Return the distance of the class means."""
        return float(hypot(1.0, 1.0) * ndtri(area))

    def roc(self, fpr: Any, area: float | None = None) -> Any:
        """Return the true ROC curve."""
        shift = self.shift if area is None else self.shift_of(area)
        return ndtr(shift + ndtri(fpr))

    @cached_property
    def true_fpr(self) -> float:
        """Return the false positive rate at a true positive rate of 0.8."""
        return float(ndtr(ndtri(0.8) - self.shift))

    @cached_property
    def partial(self) -> float:
        """Return the area up to a false positive rate of 0.1."""
        return float(quad(self.roc, 0.0, 0.1)[0])

    @cached_property
    def two_way(self) -> float:
        """Return the area up to FPR 0.3 and from TPR 0.5."""
        start = float(ndtr(-self.shift))
        return float(quad(lambda u: self.roc(u) - 0.5, start, 0.3)[0])

    @cached_property
    def partial_difference(self) -> float:
        """Return the difference of areas up to FPR 0.2 of this AUC and a lower one."""
        lower = quad(self.roc, 0.0, 0.2, args=(self.area - STEP,))[0]
        return float(quad(self.roc, 0.0, 0.2)[0] - lower)

    @cached_property
    def average_precision(self) -> float:
        """Return the mean precision at the score of a positive."""
        x = np.linspace(-8.0, 8.0, 100_001) + self.shift
        tp, fp = self.rate * ndtr(self.shift - x), (1.0 - self.rate) * ndtr(-x)
        density = np.exp(-0.5 * (x - self.shift) ** 2)
        return float(density @ (tp / (tp + fp)) / density.sum())

    @cached_property
    def net_benefit(self) -> float:
        """Return the net benefit if the threshold is the share of positives."""
        tpr, fpr = ndtr(0.5 * self.shift), ndtr(-0.5 * self.shift)
        return float(self.rate * (tpr - fpr))

    @cached_property
    def clustered(self) -> float:
        """Return the AUC of all pairs, of which 2 / m are within a cluster."""
        within = float(ndtr(self.shift))
        return self.area + 2.0 / self.m * (within - self.area)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return scores of both classes, positives first."""
        return rng.standard_normal(self.y.size) + self.shift * self.y

    def pair(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return scores of this AUC, and correlated ones of a lower AUC."""
        common, one, two = np.sqrt(0.5) * rng.standard_normal((3, self.y.size))
        lower = self.shift_of(self.area - STEP)
        return common + one + self.shift * self.y, common + two + lower * self.y

    def probabilities(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return labels and true probabilities of rows drawn from both classes."""
        y = rng.random(self.y.size) < self.rate
        score = rng.standard_normal(y.size) + self.shift * y
        prior = log(self.rate / (1.0 - self.rate))
        return y, expit(prior + self.shift * (score - 0.5 * self.shift))

    def clusters(
        self, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return labels, scores and clusters with 2 positives each."""
        rows = np.concatenate([np.arange(self.m), np.arange(self.n)])
        cluster = rows % (self.m // 2)
        effect = rng.standard_normal(self.m // 2)[cluster]
        noise = rng.standard_normal(self.y.size)
        return self.y, self.shift * self.y + np.sqrt(0.5) * (effect + noise), cluster


def curve_hits(at: Setting, rng: np.random.Generator) -> Iterator[tuple[str, bool]]:
    """Yield which intervals of one sample of scores cover."""
    y, s = at.y, at.draw(rng)

    def within(found: Any, truth: float) -> bool:
        return bool(found.low <= truth <= found.high)

    yield "tpr_at 0.1", within(metrics.tpr_at(y, s, 0.1), at.roc(0.1))
    yield "tpr_at 0.5", within(metrics.tpr_at(y, s, 0.5), at.roc(0.5))
    yield "fpr_at 0.8", within(metrics.fpr_at(y, s, 0.8), at.true_fpr)
    found: Any = metrics.threshold_interval(y, s, fpr=0.1)
    yield "threshold, fpr 0.1", within(found, -ndtri(0.1))
    found = metrics.threshold_interval(y, s, tpr=0.8)
    yield "threshold, tpr 0.8", within(found, at.shift - ndtri(0.8))
    found = metrics.partial_auc_interval(y, s, max_fpr=0.1)
    yield "partial, fpr 0.1", within(found, at.partial)
    found = metrics.partial_auc_interval(y, s, max_fpr=0.3, min_tpr=0.5)
    yield "two-way, fpr 0.3, tpr 0.5", within(found, at.two_way)
    found = metrics.average_precision_interval(y, s)
    yield "average precision", within(found, at.average_precision)
    grid = np.linspace(0.01, 0.99, 99)
    band = metrics.roc_band(y, s, kind="simultaneous", fpr=grid)
    truth = at.roc(grid)
    yield "simultaneous band", bool(((band.low <= truth) & (truth <= band.high)).all())


def other_hits(at: Setting, rng: np.random.Generator) -> Iterator[tuple[str, bool]]:
    """Yield which intervals of other designs cover, and which tests do not reject."""

    def within(found: Any, truth: float) -> bool:
        return bool(found.low <= truth <= found.high)

    y, s, cluster = at.clusters(rng)
    yield "clusters", within(auc_interval(y, s, groups=cluster), at.clustered)
    a, b = at.pair(rng)
    found: Any = metrics.auc_test_unpaired(at.y, at.draw(rng), at.y, b)
    yield "unpaired difference", within(found, STEP)
    found = metrics.auc_test(at.y, a, b, max_fpr=0.2)
    yield "paired partial difference", within(found, at.partial_difference)
    found = metrics.auc_test(at.y, b, a, margin=STEP)
    yield "test of non-inferiority", found.pvalue > 0.05
    group = np.concatenate([np.arange(at.m) % 2, np.arange(at.n) % 2])
    # NaN, if both groups are ranked perfectly, does not reject.
    rejected = metrics.auc_by_group(at.y, a, group).pvalue <= 0.05
    yield "test of 2 groups", not rejected
    sizes = (at.m, at.m, at.n)
    y = np.repeat([0, 1, 2], sizes)
    scores = rng.standard_normal((y.size, 3)) + at.shift * np.eye(3)[y]
    for average in ("hand_till", "ovr"):
        found = metrics.multiclass_auc(y, scores, average=average)
        yield f"three classes, {average}", within(found, at.area)
    y, p = at.probabilities(rng)
    benefit = metrics.net_benefit(y, p, thresholds=[at.rate])
    covered = benefit.low <= at.net_benefit, at.net_benefit <= benefit.high
    yield "net benefit", bool(np.all(covered))
    line = metrics.calibration_line(y, p)
    yield "calibration slope", within(line.slope, 1.0)
    yield "calibration intercept", within(line.intercept, 0.0)
    yield "expected AUC", within(metrics.expected_auc(p), auc(y, p))


def cover_statistics(repeat: int) -> Table:
    """Return the table of the coverage of each statistic in percent."""
    settings = [
        Setting(area, m, m * ratio)
        for area, m, ratio in product((0.7, 0.95), (20, 200), (1, 10))
    ]
    hits: dict[str, list[int]] = {}
    for j, at in enumerate(settings):
        rng = np.random.default_rng(0)
        for _ in range(repeat):
            for name, hit in (*curve_hits(at, rng), *other_hits(at, rng)):
                hits.setdefault(name, [0] * len(settings))[j] += hit
    heads = [f"{at.area:.2f}\n{at.m} +\n{at.n}" for at in settings]
    table = Table("statistic", *heads)
    for name, counts in hits.items():
        covered = [100.0 * count / repeat for count in counts]
        marks = ["" if GOOD[0] <= c <= GOOD[1] else " !" for c in covered]
        cells = [f"{c:.1f}{mark}" for c, mark in zip(covered, marks, strict=True)]
        table.add_row(name, *cells)
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["scores", "classifier", "statistics"])
    parser.add_argument("--repeat", type=int, default=500, help="draws per cell")
    chosen = parser.parse_args()
    if chosen.what == "statistics":
        warnings.filterwarnings("ignore", message="expected_auc trusts")
        Console(width=110).print(cover_statistics(chosen.repeat))
        return
    if chosen.what == "scores":
        table = Table("scores", "AUC", "rows", "mean width", "wilson %", "logit %")
        lines = cover_scores(chosen.repeat)
    else:
        table = Table("table", "draws", "rows", "mean width", "auc_ %", "folds %")
        lines = cover_classifier(chosen.repeat)
    for cell, covered in lines:
        marks = [f"{c:.1f}{'' if c >= LEAST else ' !'}" for c in covered]
        table.add_row(*cell, *marks)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
