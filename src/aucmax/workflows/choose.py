"""Choosing an algorithm from the size of the data, and building it."""

import os
from typing import Any

from scipy import sparse

from aucmax.io.batch import Batch, Source
from aucmax.io.table_source import TableSource
from aucmax.registry import named

_MEMORY_SHARE = 8  # of the memory: larger data are learnt as a stream
FAST = "fast"  # instead of an algorithm name: a good ranker in little time
AUTOMATIC = ("auto", FAST)
_FEW_ROWS = 300  # too few to compare several models
_WIDE = 2000  # features; beyond, a blend has linear members only
_MOST_BLENDED = 1e8  # values that a blend handles in minutes
_MANY_VALUES = 2e7  # beyond, Newton's method takes minutes
_FEW_FEATURES = 500  # up to here, class covariances cost next to nothing


def choose(source: Source, first: Batch, fast: bool = False) -> str:
    """Choose an algorithm from the size of the data.

    A blend for a table, unless ``fast``, or a race of stream learners if it is too
    large for that. Else cross-validated Newton if the data fit in memory, the square
    loss if they are large for that, and the race if they do not fit or come through a
    pipe.
    """
    if source.size is None:
        return "AUCStream"
    total = source.size / max(first.done, 1)
    X = first.rows
    stored = X.data.size if sparse.issparse(X) else X.size
    size = total * stored * (X.dtype.itemsize + 4 * sparse.issparse(X))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory / _MEMORY_SHARE:
        return "AUCStream"
    rows, width = total * X.shape[0], X.shape[1]
    is_table = isinstance(source, TableSource)
    narrow = width <= _WIDE or is_table  # for text, linear models are as good
    values = total * stored if is_table else rows * width
    if not fast and rows >= _FEW_ROWS and narrow and values <= _MOST_BLENDED:
        return "AUCClassifier"
    if not fast and is_table and rows >= _FEW_ROWS:
        return "AUCStream"
    if total * stored <= _MANY_VALUES:
        return "BAMCV"
    return "LeastSquaresAUCCV" if X.shape[1] <= _FEW_FEATURES else "AUCStream"


def build(name: str, params: dict[str, Any], seed: int) -> Any:
    """Return an estimator by name, with these parameters and this random seed."""
    estimator = named(name, **params)
    for key in estimator.get_params():
        if key.rpartition("__")[2] == "random_state" and "random_state" not in params:
            estimator.set_params(**{key: params.get(key, seed)})
    return estimator
