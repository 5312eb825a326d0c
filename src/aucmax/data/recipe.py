"""What a model file says of how its rows were made, before anybody acts on it."""

from typing import Any

from aucmax.data.schema import Schema
from aucmax.data.task import Task

_FORMATS = ("svmlight", "csv", "parquet")


def check_recipe(recipe: Any) -> None:
    """Raise a ValueError if a recipe out of a file is none that we have written."""
    if not isinstance(recipe, dict):
        raise ValueError(f"its recipe is {recipe!r}.")
    reading, training = recipe.get("input"), recipe.get("training", {})
    if not isinstance(reading, dict) or reading.get("format") not in _FORMATS:
        raise ValueError("its recipe does not say which format of data it is for.")
    if not isinstance(training, dict):
        raise ValueError(f"its recipe was made by {training!r}.")
    if reading.get("dtype") not in ("float32", "float64"):
        raise ValueError(f"its recipe is for numbers of type {reading.get('dtype')!r}.")
    Task.from_json(recipe.get("task"))
    if reading["format"] == "svmlight":
        _check_svmlight(reading)
    else:
        Schema.from_json(reading)
        delimiter = reading.get("delimiter")
        one = isinstance(delimiter, str) and len(delimiter) == 1
        if delimiter is not None and not (one and delimiter.isascii()):
            raise ValueError(f"its recipe has fields end with {delimiter!r}.")


def _check_svmlight(reading: dict[str, Any]) -> None:
    if not isinstance(reading.get("zero_based"), bool):
        raise ValueError("its recipe does not say where indices begin: zero_based.")
    if reading.get("missing") not in ("error", "zero"):
        raise ValueError(f"its recipe has missing={reading.get('missing')!r}.")
    most = reading.get("max_features", 1)
    if type(most) is not int or not 0 < most < 1 << 31:
        raise ValueError(f"its recipe has max_features={most!r}.")
