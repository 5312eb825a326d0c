"""Time the AUC against scikit-learn's.

Both see the same rows in the same run, in turn, so that whatever else the machine does
hits both; the smallest time of each counts. Usage: ``python benchmarks/bench_auc.py``.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from aucmax.metrics import auc

SIZES = (100_000, 1_000_000, 10_000_000)
POSITIVES = 0.1


def run(repeat: int) -> list[dict[str, float]]:
    """Return, for each number of rows, the seconds of both and their ratio."""
    auc([0, 1], [0.0, 1.0])  # compiles, or loads what was compiled
    results = []
    for n_rows in SIZES:
        rng = np.random.default_rng(0)
        y = (rng.random(n_rows) < POSITIVES).astype(np.int64)
        score = rng.standard_normal(n_rows) + y
        ours, theirs = [], []
        for _ in range(repeat):
            ours.append(_seconds(auc, y, score))
            theirs.append(_seconds(roc_auc_score, y, score))
        results.append(
            {
                "rows": n_rows,
                "positives": POSITIVES,
                "aucmax_s": min(ours),
                "sklearn_s": min(theirs),
                "ratio": min(theirs) / min(ours),
            }
        )
    return results


def _seconds(
    measure: Callable[..., float],
    y: np.ndarray,
    score: np.ndarray,
) -> float:
    start = perf_counter()
    measure(y, score)
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="auc against roc_auc_score")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results here")
    options = parser.parse_args()
    results = run(options.repeat)
    table = Table(title=f"AUC, {POSITIVES:.0%} positives, best of {options.repeat}")
    for heading in ("rows", "aucmax, ms", "scikit-learn, ms", "times faster"):
        table.add_column(heading, justify="right")
    for row in results:
        table.add_row(
            f"{row['rows']:,}",
            f"{1e3 * row['aucmax_s']:.2f}",
            f"{1e3 * row['sklearn_s']:.1f}",
            f"{row['ratio']:.1f}",
        )
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
