"""Reasons for the score of a row: the contribution of each column."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.rows import Float

_BLOCK = 1 << 22  # values that are scored at once
BACKGROUND = 30  # rows whose values replace those of a column
WIDEST = 1 << 18  # features of rows with a background


class Reason(NamedTuple):
    """The contribution of a column to the score of a row."""

    column: str
    contribution: float  # in log-odds; above zero for the positive class


def typical_rows(
    X: Any, columns: Mapping[str, NDArray[np.int64]], seed: int = 0
) -> Float | None:
    """Return evenly spaced rows of X, each column shuffled independently.

    None if there are very many features.
    """
    n, width = X.shape
    if width > WIDEST:
        return None
    some = X[np.linspace(0, n - 1, min(n, BACKGROUND)).astype(np.intp)]
    rows = np.array(some.toarray() if sparse.issparse(some) else some, np.float64)
    rng = np.random.RandomState(seed)
    for features in columns.values():
        rows[:, features] = rows[np.ix_(rng.permutation(len(rows)), features)]
    return rows


def contributions(
    X: Any,
    background: Float,
    columns: Mapping[str, NDArray[np.int64]],
    score: Callable[[Any], Float],
) -> Float:
    """Return the contribution of each column to each score, (rows, columns).

    It is the mean decrease of the score if the values of the column are replaced by
    those of a background row. ``columns`` maps a column to its features.
    """
    base = score(X)
    rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
    rebuilt = type(X) if sparse.issparse(X) else np.asarray
    found = np.zeros((rows.shape[0], len(columns)))
    at_once = max(_BLOCK // max(rows.size, 1), 1)
    for place, features in enumerate(columns.values()):
        if not (rows[:, features].any() or background[:, features].any()):
            continue  # words that these rows do not have
        total = np.zeros(rows.shape[0])
        for start in range(0, len(background), at_once):
            some = background[start : start + at_once]
            stack = np.tile(rows, (len(some), 1))
            stack[:, features] = np.repeat(some[:, features], len(rows), axis=0)
            total += score(rebuilt(stack)).reshape(len(some), -1).sum(axis=0)
        found[:, place] = base - total / len(background)
    return found


def largest(
    found: Float, columns: Mapping[str, NDArray[np.int64]], top: int
) -> list[list[Reason]]:
    """Return the columns with the largest contributions of each row."""
    names = list(columns)
    order = np.argsort(-np.abs(found), axis=1, kind="stable")[:, :top]
    return [
        [Reason(names[j], float(row[j])) for j in places if row[j] != 0.0]
        for row, places in zip(found, order.tolist(), strict=True)
    ]
