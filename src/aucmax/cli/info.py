"""``aucmax info``: what is in a model file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from aucmax.cli.screen import Screen, table
from aucmax.model import VERSION
from aucmax.scoring import Model

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
    weights, names = estimator.coef_[0], model.names()
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
        "passes": estimator.n_iter_,
        "goes_on": hasattr(estimator, "state_"),
        "input": {
            name: value
            for name, value in recipe.get("input", {}).items()
            if isinstance(value, bool | int | float | str)
        },
        "training": recipe.get("training"),
        "intercept": float(estimator.intercept_[0]),
        "largest_weights": [
            {
                "feature": names[index],
                "index": int(index),
                "weight": float(weights[index]),
            }
            for index in largest
            if weights[index] != 0.0
        ],
    }


def show(found: dict[str, Any], screen: Screen) -> None:
    """Print it for people."""
    screen.print(f"{found['model']}", style="bold", wrap=False)
    given = ", ".join(f"{name}={value}" for name, value in found["parameters"].items())
    weights = f"{found['features']:,}, {found['nonzero']:,} of them with a weight"
    classes = " and ".join(map(str, found["classes"]))
    task = found["task"] if found["training"] else f"{found['task']} ({classes})"
    passes = f"{found['passes']}" + (", can go on" if found["goes_on"] else "")
    size = f"{found['bytes']:,} bytes, format {found['format_version']}"
    lines = {
        "class": found["class"],
        "parameters": given,
        "positive": task,
        "features": weights,
        "passes": passes,
        "file": size,
    }
    if found["input"]:
        lines["input"] = ", ".join(
            f"{key}={value}" for key, value in found["input"].items()
        )
    if found["training"] is None:
        lines["trained"] = "in Python: the file does not say on what"
    else:
        lines |= _training(found["training"])
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, text in lines.items():
        grid.add_row(name, text)
    screen.show(grid)
    heads = table("largest weights: feature", "weight")
    for entry in found["largest_weights"]:
        heads.add_row(entry["feature"], f"{entry['weight']:.6g}")
    screen.show(heads)


def _training(training: dict[str, Any]) -> dict[str, str]:
    """Return what ``train`` has said about itself, a line for each thing."""
    lines = {}
    for name, value in training.items():
        if value is None:
            continue
        if isinstance(value, list):
            text = ", ".join(map(str, value))
        elif isinstance(value, bool) or not isinstance(value, int | float):
            text = str(value)
        else:
            text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
        lines[f"trained: {name.replace('_', ' ')}"] = text
    return lines
