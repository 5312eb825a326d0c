"""How often intervals of 95 % cover the true AUC, by simulation.

``python benchmarks/coverage.py scores --repeat 2000``: ``metrics.auc_interval`` of
scores whose AUC is known. "normal" has positives of mean a and standard deviation 1,
"wide" of 2 and "narrow" of 0.5, against negatives of mean 0 and 1; "exponential" has
exponential scores of another scale, "shifted" of another place. Columns are percent of
the draws: "wilson" is the default, "logit" plain DeLong on the logit scale.

A share p of R draws has a standard error of sqrt(p (1 - p) / R): 0.5 % for 2,000.
"""

import argparse
from collections.abc import Callable, Iterator
from math import hypot, log

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import ndtri

from aucmax.metrics import auc_interval

AREAS = (0.5, 0.7, 0.95, 0.98)
SIZES = ((5, 100), (10, 100), (10, 1000), (20, 200), (20, 2000), (50, 500), (50, 5000))
LEAST = 92.0  # percent; below, a number is marked

Draw = Callable[[np.random.Generator, int, int, float], np.ndarray]


def normal(deviation: float) -> Draw:
    """Return what draws scores, positives first, that have a given AUC."""

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


KINDS: dict[str, Draw] = {
    "normal": normal(1.0),
    "wide": normal(2.0),
    "narrow": normal(0.5),
    "exponential": exponential,
    "shifted": shifted,
}


def of_scores(repeat: int) -> Iterator[tuple[list[str], list[float]]]:
    """Yield the name of each cell, and what the methods cover."""
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["scores"])
    parser.add_argument("--repeat", type=int, default=500, help="draws of a cell")
    chosen = parser.parse_args()
    table = Table("scores", "AUC", "rows", "mean width", "wilson %", "logit %")
    for cell, covered in of_scores(chosen.repeat):
        marks = [f"{c:.1f}{'' if c >= LEAST else ' !'}" for c in covered]
        table.add_row(*cell, *marks)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
