"""Find the highest AUC of a cell with parameters chosen by the test rows.

``python reproduction/experiments/oracle.py gao2013-opauc 2 ijcnn1 LS-SVM --runs 5``
prints the mean test AUC over the runs of the protocol for each choice of the grid, for
one form (``--form printed``, ``tuned``), and the best of them. Tuning without the
test rows cannot do better. If this is below the published value too, tuning does not
explain the difference. ``--all-rows`` removes the paper's limit on the rows of an
algorithm. ``--exact`` replaces the algorithm by the exact minimum of the square loss,
with the penalties of its grid.
"""

import argparse
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from aucmax.metrics import auc
from aucmax_reproduction import papers
from aucmax_reproduction.fitting import EXACT_BY, Effort, fit_model, prepared, scores
from aucmax_reproduction.protocol import PRINTED, Recipe
from aucmax_reproduction.protocols import protocol


def areas(
    place: tuple[str, str, str], recipe: Recipe, form: str, runs: int, effort: Effort
) -> dict[str, float]:
    """Return the mean test AUC of every choice; -inf if it diverges."""
    found: dict[str, list[float]] = {}
    for run in range(runs):
        ready = prepared(*place, "", run, effort)
        X, y = ready.X[: recipe.most_rows], ready.y[: recipe.most_rows]
        for k, choice in enumerate(ParameterGrid(recipe.choices(form, y, effort.grid))):
            name = ", ".join(f"{key} {_short(choice[key])}" for key in choice)
            name = f"no. {k}: {name}"
            try:
                model = fit_model(recipe, form, choice, X, y, effort.seed + run)
                area = float(auc(ready.y_test, scores(model, ready.X_test)))
            except (ArithmeticError, ValueError):
                area = -np.inf
            # A value may depend on the rows of the run, its index does not.
            found.setdefault(name if run == 0 else list(found)[k], []).append(area)
    return {name: float(np.mean(mine)) for name, mine in found.items()}


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("source", "table", "dataset", "algorithm"):
        parser.add_argument(name)
    parser.add_argument("--form", default=PRINTED)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--grid", type=int, default=None)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--all-rows", action="store_true")
    parser.add_argument("--exact", action="store_true")
    given = parser.parse_args()
    table, plan = protocol(given.source).plan(given.table)
    recipe = plan.recipes[given.algorithm]
    if given.all_rows:
        recipe = recipe._replace(most_rows=None)
    if given.exact:
        recipe = Recipe(EXACT_BY, {"l2": recipe.grid["l2"]})
    place, effort = (
        (given.source, table, given.dataset),
        Effort(given.grid, 0, given.rows),
    )
    found = areas(place, recipe, given.form, given.runs, effort)
    for name, area in found.items():
        print(f"{area:.4f}  {name}")
    best = max(found, key=lambda name: found[name])
    ((cell),) = [
        cell
        for cell in papers.cells(
            given.source, [given.table], [given.dataset], [given.algorithm]
        )
        if cell.metric == papers.AUC
    ]
    print(f"best by the test rows: {found[best]:.4f} ({best}); published {cell.mean}")


if __name__ == "__main__":
    main()
