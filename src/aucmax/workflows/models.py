"""Loading models, with the encoder of those that were fitted on a table.

A model file names a class out of the registry, its parameters, labels and feature
names, and has the weights and the state of the learner, so that training can continue.
A model that was trained from files has a recipe as well: how to read such files, and
which labels are positive. Loading reads numbers and never runs any code.
"""

from pathlib import Path
from typing import Any

import numpy as np

import aucmax
from aucmax.storage.model_file import read
from aucmax.storage.state import State, flatten, restore, unflatten

_MOST_FEATURES = 1 << 27  # as svmlight data have by default
_INVALID = (
    *(AttributeError, LookupError, OverflowError, TypeError, ValueError),
    MemoryError,  # sizes that no machine has
    RecursionError,  # endless nesting
)


def load(path: str | Path) -> Any:
    """Read an estimator from ``path``.

    Parameters
    ----------
    path : str or Path
        A file written by ``estimator.save``.

    Returns
    -------
    estimator
        It scores as the saved one did, and continues training where that one stopped.
        A model that ``aucmax train`` made from a table accepts data frames with its
        columns.

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
    if recipe is not None:
        estimator.recipe_ = recipe
        estimator.classes_ = _labels(recipe["task"], estimator.classes_)
        if recipe["input"]["format"] != "svmlight":
            from aucmax.tables.encoder import TableEncoder  # imports pyarrow

            estimator.encoder_ = TableEncoder.from_json(recipe["input"])
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


def load_with_recipe(path: str | Path) -> tuple[Any, dict[str, Any] | None]:
    """Return an estimator, and the recipe of its data, if the file has one."""
    header, arrays = read(path)
    try:
        state = unflatten(header, arrays)
        recipe = state.header.get("recipe")
        if recipe is not None:
            _check_recipe(recipe)
        if state.header["class"] not in aucmax.ESTIMATORS:
            raise TypeError(f"{state.header['class']!r} is not an estimator.")
        estimator = restore(state)
        _check_width(estimator.row_width, state)
        return estimator, recipe
    except _INVALID as error:
        raise ValueError(f"{path} is a damaged aucmax model file: {error}") from error


def _check_width(width: int, state: State) -> None:
    """Raise an error if a small file claims more features than rows may have.

    A model that stores selected columns or trees has no array of its width.
    """
    arrays = flatten(state)[1].values()
    largest = max((array.size for array in arrays), default=0)
    if width > max(_MOST_FEATURES, largest):
        raise ValueError(
            f"it claims {width:,} features and has arrays of {largest:,} values; "
            f"more than {_MOST_FEATURES:,} features need an array of that size."
        )


def _check_recipe(recipe: Any) -> None:
    from aucmax.io.recipe import check_recipe  # models of arrays do not need it

    check_recipe(recipe)
