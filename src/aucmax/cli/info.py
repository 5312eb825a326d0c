"""``aucmax info``: describe a model file."""

import json
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from aucmax.base.interfaces import ScoreExpression
from aucmax.blend.blended_model import BlendedModel
from aucmax.cli.terminal import (
    Screen,
    columns_table,
    cross_validated,
    held_out_auc,
    importance_table,
    leaderboard,
    table,
)
from aucmax.metrics._ranking import exact
from aucmax.storage.model_file import VERSION
from aucmax.workflows.kept_promise import training_goal
from aucmax.workflows.score import Model

_MAX_WEIGHTS = 10
_SCALAR = bool | int | float | str


def run(model: Path, as_json: bool) -> None:
    """Print the contents of a model file."""
    found = describe(model)
    if as_json:
        print(json.dumps(_without_nan(found), indent=2, allow_nan=False))
    else:
        _show(found, Screen())


def describe(path: Path) -> dict[str, Any]:
    """Return the contents of a model file, for JSON."""
    model = Model.load(path)
    estimator, recipe = model.estimator, model.recipe or {}
    reader = recipe.get("input", {})
    formula, goal = _expression(estimator), training_goal(estimator)
    board = getattr(estimator, "leaderboard_", None)
    importances = getattr(estimator, "importances_", None)
    units, about = formula.units, path.stat()
    # The file's time: a date inside would make training irreproducible.
    written = datetime.fromtimestamp(about.st_mtime).astimezone()
    return {
        "model": str(path),
        "bytes": about.st_size,
        "written": written.isoformat(timespec="seconds"),
        "format_version": VERSION,  # the only one that can be loaded
        "class": type(estimator).__name__,
        "parameters": {
            name: value if isinstance(value, _SCALAR | None) else str(value)
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
        "importances": [one._asdict() for one in importances] if importances else None,
        "input": {
            name: value for name, value in reader.items() if isinstance(value, _SCALAR)
        },
        "chosen": _chosen(estimator),
        "auc": getattr(estimator, "auc_", None),
        "estimate": _estimate(estimator),
        "goal": goal.to_json() if goal is not None else None,
        "training": recipe.get("training"),
        "judged": recipe.get("judged"),
        "columns": reader.get("roles") or None,
        "intercept": formula.intercept,
        "largest_weights": _largest_weights(formula, model),
    }


def _without_nan(value: Any) -> Any:
    """Replace numbers that JSON cannot represent by None."""
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _chosen(estimator: Any) -> dict[str, Any] | None:
    """Return the parameters chosen by cross-validation, with their AUC."""
    learner = getattr(estimator, "learner_", estimator)
    try:
        scores = learner.scores_
        means = scores.mean(axis=1)
        best, folds = int(means.argmax()), scores.shape[1]
        error = float(scores[best].std(ddof=1) / np.sqrt(folds)) if folds > 1 else None
        found = {
            "loss": getattr(learner, "loss_", None),
            "l2": float(learner.l2_),
            "auc": float(means[best]),
            "error": error,
        }
    # Nothing was chosen, or the arrays of the file have unexpected shapes.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    numbers = [value for value in found.values() if isinstance(value, float)]
    return found if all(map(isfinite, numbers)) else None


def _largest_weights(formula: ScoreExpression, model: Model) -> list[dict[str, Any]]:
    """Return the largest weights, in units of the features."""
    indices, weights = formula.slopes()
    used = np.flatnonzero(weights)
    order = np.argsort(-np.abs(weights[used]), kind="stable")
    largest = used[order[:_MAX_WEIGHTS]]
    names = model.names(indices[largest].tolist())
    return [
        {"feature": name, "index": int(indices[k]), "weight": float(weights[k])}
        for k, name in zip(largest, names, strict=True)
    ]


def _expression(estimator: Any) -> ScoreExpression:
    """Return the score expression; one without weights if there is none."""
    expression: ScoreExpression | None = estimator.expression()
    return ScoreExpression(0.0, np.zeros(0)) if expression is None else expression


def _show(found: dict[str, Any], screen: Screen) -> None:
    """Print the contents for people."""
    screen.print(found["model"], style="bold", wrap=False)
    training, trainable = found["training"], found["goes_on"]
    goal = found["goal"] or {}
    features = f"{found['features']:,}"
    if found["units"] is not None:
        kind, count = found["units"]
        features += f", mapped to {count:,} {kind} features"
    elif found["nonzero"]:
        features += f", {found['nonzero']:,} nonzero weights"
    classes = " and ".join(map(str, found["classes"]))
    lines = {
        "class": found["class"],
        "parameters": ", ".join(f"{k}={v}" for k, v in found["parameters"].items()),
        "chosen": found["chosen"] and _choice(**found["chosen"]),
        "AUC": found["estimate"],
        "goal": goal and f"{goal['goal']}: {cross_validated(*goal['value'])}",
        "threshold": _threshold(goal) if "threshold" in goal else None,
        "positive": found["task"] if training else f"{found['task']} ({classes})",
        "features": features,
        "training": _listed(training or {}) or "in Python; training data not recorded",
        "evaluation": found["judged"] and held_out_auc(found["judged"]),
        "input": _listed(found["input"]),
        "file": f"{found['bytes']:,} bytes, format version {found['format_version']}"
        + (", training can be continued" if trainable else ""),
        "written": found["written"].replace("T", " "),
    }
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
        screen.show(importance_table(found["importances"]))
    if found["largest_weights"]:
        screen.show(_weights_table(found["largest_weights"]))


def _weights_table(entries: list[dict[str, Any]]) -> Table:
    grid = table("feature", "weight")
    for entry in entries:
        grid.add_row(entry["feature"], f"{entry['weight']:.6g}")
    return grid


def _estimate(estimator: Any) -> str | None:
    """Return the AUC of a blend in training, and what its interval promises."""
    if not isinstance(estimator, BlendedModel):
        return None
    return estimator.estimate().removeprefix("AUC ")


def _threshold(goal: dict[str, Any]) -> str:
    confidence = f"with confidence {100.0 * goal['confidence']:g} %"
    return f"score >= {exact(goal['threshold'])}: {goal['promise']} {confidence}"


def _choice(loss: str | None, l2: float, auc: float, error: float | None) -> str:
    name = "" if loss is None else f"{loss.replace('_', ' ')} loss, "
    uncertainty = "" if error is None else f" ± {error:.4f}"
    return f"{name}l2 = {l2:.4g}: AUC {auc:.4f}{uncertainty} on held-out folds"


def _listed(values: dict[str, Any]) -> str:
    """Return "name: value, name: value"."""
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
