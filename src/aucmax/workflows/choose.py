"""TODO."""

import os
from typing import Any

import numpy as np
from scipy import sparse

from aucmax.io.chunk import Chunk, Source
from aucmax.io.table_source import TableSource
from aucmax.registry import named

_MEMORY_SHARE = 8  # data that would take more than this part of the memory are a stream


FAST = "fast"  # in place of a name: what ranks well in little time


AUTOMATIC = ("auto", FAST)


_FEW_ROWS = 300  # too few to tell several models apart


_WIDE = 2000  # features, beyond which a blend is of linear models only


_BLENDED = 1e6  # values that several models take no longer than a minute or two for;


_BUDGET = 60.0  # seconds, beyond that …


_MOST_BLENDED = 1e8  # … up to here


_MANY_VALUES = 2e7  # beyond, Newton's method takes minutes


_FEW_FEATURES = 500  # up to here, class covariances cost next to nothing


def choose(source: Source, first: Chunk, fast: bool = False) -> str:
    """Return the algorithm for who names none, by the size of the data.

    A blend for a table (not if it is to be ``fast``), with a time budget if it is
    large; else cross-validated Newton if the data fit in memory, the square loss if
    they are many for that, a race of streams if they do not fit or come through a pipe.
    """
    if source.size is None:
        return "AUCStream"
    total = source.size / max(first.done, 1)
    X = first.X
    stored = X.data.size if sparse.issparse(X) else X.size
    size = total * stored * (X.dtype.itemsize + 4 * sparse.issparse(X))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory / _MEMORY_SHARE:
        return "AUCStream"
    rows, width = total * X.shape[0], X.shape[1]
    is_table = isinstance(source, TableSource)
    narrow = width <= _WIDE or is_table  # of texts, linear models do as well
    values = total * stored if is_table else rows * width
    if not fast and rows >= _FEW_ROWS and narrow and values <= _MOST_BLENDED:
        return "AUCClassifier"
    if total * stored <= _MANY_VALUES:
        return "BAMCV"
    return "LeastSquaresAUCCV" if X.shape[1] <= _FEW_FEATURES else "AUCStream"


def default_budget(source: Source, first: Chunk) -> dict[str, float]:
    """Return the time budget of a blend that nobody asked for, if it needs one."""
    values = (source.size or 0) / max(first.done, 1) * np.prod(first.X.shape)
    return {"time_budget": _BUDGET} if values > _BLENDED else {}


def build(name: str, params: dict[str, Any], seed: int) -> Any:
    """Return an estimator by name, with parameters as given."""
    estimator = named(name, **params)
    for key in estimator.get_params():
        if key.rpartition("__")[2] == "random_state" and "random_state" not in params:
            estimator.set_params(**{key: params.get(key, seed)})
    return estimator
