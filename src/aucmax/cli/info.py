"""``aucmax info``: what is in a model file."""

import json
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from aucmax.base.expression import ScoreExpression
from aucmax.cli.screen import (
    Screen,
    columns_table,
    judgement,
    leaderboard,
    table,
    worth,
)
from aucmax.io.feature_scales import Spreads
from aucmax.metrics.decimals import with_interval
from aucmax.storage.model_file import VERSION
from aucmax.tables.hashed_names import Word
from aucmax.workflows.score import Model

_MOST_WEIGHTS = 10


def run(model: Path, as_json: bool) -> None:
    """Print what a model file says."""
    found = describe(model)
    if as_json:
        print(json.dumps(_without_nan(found), indent=2, allow_nan=False))
    else:
        show(found, Screen())


def describe(path: Path) -> dict[str, Any]:
    """Return what a model file says, for JSON."""
    model = Model.load(path)
    estimator, recipe = model.estimator, model.recipe or {}
    formula = _formula(estimator)
    board = getattr(estimator, "leaderboard_", None)
    columns = getattr(estimator, "importances_", None)
    units, about = formula.units, path.stat()
    return {
        "model": str(path),
        "bytes": about.st_size,
        # Of the file: a date in it would make two files of one training.
        "written": datetime.fromtimestamp(about.st_mtime)
        .astimezone()
        .isoformat(timespec="seconds"),
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
        "nonzero": int(np.count_nonzero(formula.weights)),
        "units": None if units is None else [units.kind, len(units.amplitudes)],
        "n_iter": estimator.n_iter_,
        "goes_on": estimator.resumable,
        "leaderboard": [line._asdict() for line in board] if board else None,
        "importances": [line._asdict() for line in columns] if columns else None,
        "input": {
            name: value
            for name, value in recipe.get("input", {}).items()
            if isinstance(value, bool | int | float | str)
        },
        "chosen": _chosen(estimator),
        "auc": getattr(estimator, "auc_", None),
        "training": recipe.get("training"),
        "judged": recipe.get("judged"),
        "columns": recipe.get("input", {}).get("roles") or None,
        "intercept": formula.intercept,
        "largest_weights": _largest(formula, model),
    }


def _without_nan(value: Any) -> Any:
    """Return a value with None for each number that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _chosen(estimator: Any) -> dict[str, Any] | None:
    """Return what cross-validation has chosen, and its AUC on the folds left out."""
    learner = getattr(estimator, "learner_", estimator)
    try:
        scores = learner.scores_
        means = scores.mean(axis=1)
        best = int(means.argmax())
        folds, error = scores.shape[1], None
        if folds > 1:
            error = float(scores[best].std(ddof=1) / np.sqrt(folds))
        found = {
            "loss": getattr(learner, "loss_", None),
            "l2": float(learner.l2_),
            "auc": float(means[best]),
            "error": error,
        }
    # It has chosen nothing, or a file holds something else than what was found.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    numbers = [value for value in found.values() if isinstance(value, float)]
    return found if all(map(isfinite, numbers)) else None


def _largest(formula: ScoreExpression, model: Model) -> list[dict[str, Any]]:
    """Return the weights with the most say: by weight times spread, if it is known.

    The weight of a hashed feature is that of its most frequent word, if it is known.
    """
    (indices, weights), recipe = formula.slopes(), model.recipe or {}
    spread, words = Spreads.told(recipe).among(indices), Word.told(recipe)
    known = bool(spread.any())
    say = weights * spread if known else weights
    some = np.flatnonzero(say)
    largest = some[np.argsort(-np.abs(say[some]), kind="stable")[:_MOST_WEIGHTS]]
    entries = []
    names = model.names(indices[largest].tolist())
    for k, known_as in zip(largest, names, strict=True):
        index = int(indices[k])
        _, sign, name = words.get(index, Word(index, 1, known_as))
        entries.append(
            {
                "feature": name,
                "index": index,
                "weight": sign * float(weights[k]),
                "spread": float(spread[k]) if known else None,
                "standardised": sign * float(say[k]) if known else None,
            }
        )
    return entries


def _formula(estimator: Any) -> ScoreExpression:
    """Return the score as a formula, without weights if it is more than one."""
    expression: ScoreExpression | None = estimator.expression()
    return ScoreExpression(0.0, np.zeros(0)) if expression is None else expression


def show(found: dict[str, Any], screen: Screen) -> None:
    """Print it for people."""
    screen.print(f"{found['model']}", style="bold", wrap=False)
    given = ", ".join(f"{name}={value}" for name, value in found["parameters"].items())
    classes = " and ".join(map(str, found["classes"]))
    training = found["training"]
    lines = {
        "class": found["class"],
        "parameters": given,
        "chosen": found["chosen"] and _choice(**found["chosen"]),
        "AUC": found["auc"] and _area(*found["auc"]),
        "positive": found["task"] if training else f"{found['task']} ({classes})",
        "features": f"{found['features']:,}"
        + (f", {found['nonzero']:,} weights are not zero" if found["nonzero"] else ""),
        "trained": _list(training or {}) or "in Python: the file does not say on what",
        "judged": found["judged"] and judgement(found["judged"]),
        "input": _list(found["input"]),
        "file": f"{found['bytes']:,} bytes, format version {found['format_version']}",
        "written": found["written"].replace("T", " "),
    }
    if found["units"] is not None:
        kind, count = found["units"]
        lines["features"] = f"{found['features']:,}, then {count:,} of a {kind} map"
    if found["goes_on"]:
        lines["file"] += ", can be trained on"
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, text in lines.items():
        if text:
            grid.add_row(name, text)
    screen.show(grid)
    if found["columns"] and (columns := columns_table(found["columns"])):
        screen.show(columns)
    if found["leaderboard"]:
        screen.show(leaderboard(found["leaderboard"]))
    if found["importances"]:
        screen.show(worth(found["importances"]))
    if not found["largest_weights"]:
        return
    screen.show(_weights_table(found["largest_weights"]))


def _weights_table(entries: list[dict[str, Any]]) -> Table:
    if entries[0]["standardised"] is None:
        grid = table("largest weights: feature", "weight")
        for entry in entries:
            grid.add_row(entry["feature"], f"{entry['weight']:.6g}")
        return grid
    grid = table("most say in the score: feature", "weight × spread", "weight")
    for entry in entries:
        say, weight = f"{entry['standardised']:+.4g}", f"{entry['weight']:.6g}"
        grid.add_row(entry["feature"], say, weight)
    return grid


def _area(value: float, low: float, high: float, _: float) -> str:
    area, least, most = with_interval(value, low, high)
    return f"{area} ({least} to {most}) on rows that it had not seen"


def _choice(loss: str | None, l2: float, auc: float, error: float | None) -> str:
    words = "" if loss is None else f"{loss.replace('_', ' ')} loss, "
    sure = "" if error is None else f" ± {error:.4f}"
    return f"{words}l2 = {l2:.4g}: AUC {auc:.4f}{sure} on the folds left out"


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
