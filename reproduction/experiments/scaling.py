"""Find how a paper scaled its rows: test AUC by scaling, and the published value.

``python reproduction/experiments/scaling.py khalid2019-dissertation 7.4 sector --runs
3`` prints the mean test AUC over the runs of the protocol, for the exact minimum of the
square loss, for BAMCV and for the algorithms of the table with our defaults (``--form
tuned``: tuned).
"""

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from aucmax.metrics import auc
from aucmax_reproduction import papers
from aucmax_reproduction.fitting import (
    CEILINGS,
    Effort,
    Ready,
    choose,
    fit_model,
    prepared,
    scores,
)
from aucmax_reproduction.protocol import OURS, Plan, Recipe
from aucmax_reproduction.protocols import protocol

SCALINGS = ("none", "standardised", "rows of unit length")


def area(
    recipe: Recipe, form: str, ready: Ready, plan: Plan, effort: Effort, run: int
) -> float:
    """Return the test AUC of an algorithm on the rows of a run."""
    seed = effort.seed + run
    choice = choose(recipe, form, ready, plan.folds, effort, seed)
    model = fit_model(recipe, form, choice, ready.X, ready.y, seed)
    return float(auc(ready.y_test, scores(model, ready.X_test)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("source", "table", "dataset"):
        parser.add_argument(name)
    parser.add_argument(
        "--algorithms", default="", help="names, separated by commas (default: all)"
    )
    parser.add_argument("--form", default=OURS)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--grid", type=int, default=5)
    parser.add_argument("--tune-rows", type=int, default=3000)
    parser.add_argument("--rows", type=int, default=None)
    given = parser.parse_args()
    table, plan = protocol(given.source).plan(given.table)
    cells = [
        cell
        for cell in papers.cells(given.source, [given.table], [given.dataset])
        if cell.metric == papers.AUC
        and (not given.algorithms or cell.algorithm in given.algorithms.split(","))
    ]
    effort = Effort(given.grid, given.tune_rows, given.rows)
    tops = [(name, OURS, Recipe(name), "") for name in CEILINGS]
    mine = [
        (cell.algorithm, given.form, plan.recipes[cell.algorithm], f"{cell.mean:.4f}")
        for cell in cells
    ]
    print("| | " + " | ".join(SCALINGS) + " | published |", flush=True)
    for name, form, recipe, printed in tops + mine:
        means = []
        for scaling in SCALINGS:
            found = []
            for run in range(given.runs):
                place = given.source, table, given.dataset, "", run, effort
                ready = prepared(*place, scaling)
                with threadpool_limits(1):
                    found.append(area(recipe, form, ready, plan, effort, run))
            means.append(np.mean(found))
        boxes = " | ".join(f"{mean:.4f}" for mean in means)
        print(f"| {name} | {boxes} | {printed} |", flush=True)


if __name__ == "__main__":
    main()
