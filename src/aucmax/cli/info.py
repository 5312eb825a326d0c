"""``aucmax info``: what is in a model file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from aucmax.cli.screen import Screen, columns_table, leaderboard, table
from aucmax.core.formula import Formula
from aucmax.front.stream import Standing
from aucmax.scoring import Model
from aucmax.tensors import VERSION

_MOST_WEIGHTS = 10


def run(model: Path, as_json: bool) -> None:
    """Print what a model file says."""
    found = describe(model)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        show(found, Screen())


def describe(path: Path) -> dict[str, Any]:
    """Return what a model file says, for JSON."""
    model = Model.load(path)
    estimator, recipe = model.estimator, model.recipe or {}
    formula, names = _formula(estimator), model.names()
    board = getattr(estimator, "leaderboard_", None)
    weights, units, indices = formula.weights, formula.units, formula.indices()
    largest = np.argsort(-np.abs(weights), kind="stable")[:_MOST_WEIGHTS]
    return {
        "model": str(path),
        "bytes": path.stat().st_size,
        "format_version": VERSION,  # the only one that can be loaded
        "class": type(estimator).__name__,
        "parameters": {
            name: value
            if isinstance(value, bool | int | float | str | None)
            else str(value)
            for name, value in estimator.get_params(deep=False).items()
        },
        "task": str(model.task()),
        "classes": estimator.classes_.tolist(),
        "features": model.width,
        "nonzero": int(np.count_nonzero(weights)),
        "units": None if units is None else [units.kind, len(units.amplitudes)],
        "n_iter": estimator.n_iter_,
        "goes_on": estimator._goes_on,
        "leaderboard": [line._asdict() for line in board] if board else None,
        "input": {
            name: value
            for name, value in recipe.get("input", {}).items()
            if isinstance(value, bool | int | float | str)
        },
        "training": recipe.get("training"),
        "columns": recipe.get("input", {}).get("roles") or None,
        "intercept": formula.intercept,
        "largest_weights": [
            {
                "feature": names[indices[k]],
                "index": int(indices[k]),
                "weight": float(weights[k]),
            }
            for k in largest
            if weights[k] != 0.0
        ],
    }


def _formula(estimator: Any) -> Formula:
    """Return the score as a formula, without weights if it is more than one."""
    try:
        formula: Formula = estimator._formula()
    except TypeError:
        return Formula(float(estimator.intercept_[0]), np.zeros(0))
    return formula


def show(found: dict[str, Any], screen: Screen) -> None:
    """Print it for people."""
    screen.print(f"{found['model']}", style="bold", wrap=False)
    given = ", ".join(f"{name}={value}" for name, value in found["parameters"].items())
    classes = " and ".join(map(str, found["classes"]))
    training = found["training"]
    lines = {
        "class": found["class"],
        "parameters": given,
        "positive": found["task"] if training else f"{found['task']} ({classes})",
        "features": f"{found['features']:,}, {found['nonzero']:,} weights are not zero",
        "trained": "in Python: the file does not say on what",
        "file": f"{found['bytes']:,} bytes, format version {found['format_version']}",
    }
    if found["units"] is not None:
        kind, count = found["units"]
        lines["features"] = f"{found['features']:,}, then {count:,} of a {kind} map"
    if training is not None:
        lines["trained"] = _list(training)
    if found["input"]:
        lines["input"] = _list(found["input"])
    if found["goes_on"]:
        lines["file"] += ", can be trained on"
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, text in lines.items():
        grid.add_row(name, text)
    screen.show(grid)
    if found["columns"] and (columns := columns_table(found["columns"])):
        screen.show(columns)
    if found["leaderboard"]:
        screen.show(leaderboard([Standing(**line) for line in found["leaderboard"]]))
    if not found["largest_weights"]:
        return
    heads = table("largest weights: feature", "weight")
    for entry in found["largest_weights"]:
        heads.add_row(entry["feature"], f"{entry['weight']:.6g}")
    screen.show(heads)


def _list(values: dict[str, Any]) -> str:
    """Return what a recipe says, whatever that is."""
    return ", ".join(
        f"{name.replace('_', ' ')}: {_word(value)}"
        for name, value in values.items()
        if value is not None
    )


def _word(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
