"""Coverage of 95 % confidence intervals of the AUC, by simulation.

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

The constants of both intervals were chosen by simulations of the same kinds with other
seeds, except "mixed", which was only evaluated afterwards.

The standard error of a share p of R draws is sqrt(p (1 - p) / R): 0.5 % for 2,000.
"""

import argparse
from collections.abc import Callable, Iterator
from math import hypot, log
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import ndtri

from aucmax import BAM, AUCClassifier
from aucmax.blend import uncertainty
from aucmax.blend.trees import BoostedTrees, RandomizedTrees
from aucmax.metrics import auc, auc_interval, cv_auc_interval

AREAS = (0.5, 0.7, 0.95, 0.98)
SIZES = ((5, 100), (10, 100), (10, 1000), (20, 200), (20, 2000), (50, 500), (50, 5000))
LEAST = 92.0  # percent; lower coverage is marked

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
TEAM = [*LINE, ("trees", RandomizedTrees(15)), ("boosted", BoostedTrees(20))]
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["scores", "classifier"])
    parser.add_argument("--repeat", type=int, default=500, help="draws per cell")
    chosen = parser.parse_args()
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
