"""Models to save and to load, and how to make rows for them.

A model file names a class out of the registry, its parameters, labels and feature
names, and has the weights and the state of the learner, so that training can go on. A
model that was trained from files has a recipe as well: how to read such files, and
which labels are positive. Loading reads numbers and never runs anything.
"""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import aucmax
from aucmax.storage import model_file as tensors
from aucmax.storage.estimator_state import dump, restore

_MOST_FEATURES = 1 << 27  # as svmlight data have by default
_WRONG = (
    *(AttributeError, LookupError, OverflowError, TypeError, ValueError),
    MemoryError,  # of sizes that nobody has
    RecursionError,  # of what is nested without end
)


def save(estimator: Any, path: str | Path, recipe: dict[str, Any]) -> None:
    """Write a fitted estimator to ``path``, atomically.

    ``recipe``, out of what JSON knows, says how rows were made of data.
    """
    header, arrays = dump(estimator)
    tensors.write(path, header | {"recipe": recipe}, arrays)


def load(path: str | Path) -> Any:
    """Read an estimator from ``path``.

    Parameters
    ----------
    path : str or Path
        A file written by ``estimator.save``.

    Returns
    -------
    estimator
        It scores as the saved one did, and goes on training from where that stopped.
        One that ``aucmax train`` made from a table takes data frames with its columns.

    Examples
    --------
    >>> import numpy as np, tempfile, aucmax
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     aucmax.SPAM(random_state=0).fit(X, y).save(f"{folder}/model.aucmax")
    ...     model = aucmax.load(f"{folder}/model.aucmax")
    >>> model.predict(X)
    array([0, 0, 1, 1])
    """
    estimator, recipe = load_with_recipe(path)
    if recipe is not None and recipe["input"].get("format") in ("csv", "parquet"):
        estimator._encode = partial(_encoded, recipe=recipe["input"])
        if hasattr(estimator, "_recipe"):  # it saves its own
            estimator._recipe = recipe
    if recipe is not None:
        estimator.classes_ = _labels(recipe["task"], estimator.classes_)
    return estimator


def _labels(task: dict[str, Any], classes: Any) -> Any:
    """Return the labels of the training data, if each class had one."""
    positive, negative = task.get("positive", []), task.get("negative", [])
    if not len(positive) == len(negative) == 1 or classes.dtype != bool:
        return classes
    labels = np.array([negative[0], positive[0]])
    if {str(label).lower() for label in labels} == {"false", "true"}:
        return classes
    whole = labels.dtype.kind == "f" and (labels == np.floor(labels)).all()
    return labels.astype(np.int64) if whole else labels


def _encoded(frame: Any, recipe: dict[str, Any]) -> Any:
    """Return the rows of a data frame as the model wants them."""
    from aucmax.io.frame import encoded  # which needs pyarrow

    return encoded(frame, recipe)


def load_with_recipe(path: str | Path) -> tuple[Any, dict[str, Any] | None]:
    """Read an estimator, and how to make rows for it, if the file says so."""
    header, arrays = tensors.read(path)
    try:
        recipe = header.get("recipe")
        if recipe is not None:
            _check_recipe(recipe)
        kind = _registered(header["class"])
        if kind.__name__ not in aucmax.ESTIMATORS:
            raise TypeError("it is no estimator, but a part of one.")
        estimator = restore(kind, header, arrays, _registered)
        _check_width(estimator.n_features_in_, arrays)
        return estimator, recipe
    except _WRONG as error:
        raise ValueError(f"{path} is a damaged aucmax model file: {error}") from error


def _check_width(width: int, arrays: dict[str, Any]) -> None:
    """Raise an error if a small file claims more features than rows may have.

    A model that stores selected columns or trees has no array of its width.
    """
    largest = max((array.size for array in arrays.values()), default=0)
    if width > max(_MOST_FEATURES, largest):
        raise ValueError(
            f"it claims {width:,} features and has arrays of {largest:,} values; "
            f"more than {_MOST_FEATURES:,} features need an array of that size."
        )


def _check_recipe(recipe: Any) -> None:
    from aucmax.io.recipe import (
        check_recipe,
    )  # who trains in Python has no use for it

    check_recipe(recipe)


def _registered(name: str) -> Any:
    known = aucmax.ESTIMATORS | aucmax.MAPS | aucmax.PARTS
    if name not in known:
        raise ValueError(f"there is no estimator {name!r}.")
    return getattr(import_module(known[name]), name)
