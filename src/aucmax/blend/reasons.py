"""Reasons for the score of a row: the contribution of each column."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.rows import Float

_BLOCK = 1 << 22  # values that are scored at once
BACKGROUND = 30  # rows whose values replace those of a column


class Reason(NamedTuple):
    """The contribution of a column to the score of a row."""

    column: str
    contribution: float  # in log-odds; above zero for the positive class


def spaced(n: int) -> NDArray[np.intp]:
    """Return row numbers of a background: evenly spaced, so that none is drawn."""
    return np.linspace(0, n - 1, min(n, BACKGROUND)).astype(np.intp)


def contributions(
    X: Any,
    background: Any,
    columns: Mapping[str, NDArray[np.int64]],
    score: Callable[[Any], Float],
) -> Float:
    """Return the contribution of each column to each score, (rows, columns).

    It is the mean decrease of the score if the values of the column are replaced by
    those of a background row. ``columns`` maps a column to its features.
    """
    base = score(X)
    rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
    others = background.toarray() if sparse.issparse(background) else background
    rebuilt = type(X) if sparse.issparse(X) else np.asarray
    found = np.zeros((rows.shape[0], len(columns)))
    at_once = max(_BLOCK // max(rows.size, 1), 1)
    for place, features in enumerate(columns.values()):
        total = np.zeros(rows.shape[0])
        for start in range(0, len(others), at_once):
            some = others[start : start + at_once]
            stack = np.tile(rows, (len(some), 1))
            stack[:, features] = np.repeat(some[:, features], len(rows), axis=0)
            total += score(rebuilt(stack)).reshape(len(some), -1).sum(axis=0)
        found[:, place] = base - total / len(others)
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
