"""Columns that tell the label: a warning before anyone trusts the AUC."""

from collections.abc import Sequence
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.layout import TableRows
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning
from aucmax.metrics._ranking import area, classes

_LEAK = 0.99  # AUC of a single column
_FEW = 20  # rows of a class, or with a value, that are too few to tell
_LOG_CHANCE = -15.0  # log of the probability that values are in one class by chance


class Leak(NamedTuple):
    """A column that may be known only after the outcome."""

    column: str
    auc: float
    reason: str

    def __str__(self) -> str:
        remedy = f"drop={quote(self.column)}"
        return (
            f"Column {self.column!r} {self.reason} (AUC {self.auc:.4f} alone). If it "
            f"is known only after the outcome, leave it out: {remedy}."
        )


def find_leaks(
    columns: Any,
    levels: NDArray[np.int64],
    names: Sequence[str],
    positive: NDArray[np.bool_],
) -> list[Leak]:
    """Return the columns that predict the label nearly alone.

    ``levels`` has the number of codes of each column, 0 for numbers.
    """
    if min(np.count_nonzero(positive), np.count_nonzero(~positive)) < _FEW:
        return []
    found = []
    for values, count, name in zip(columns.T, levels, names, strict=True):
        known = ~np.isnan(values)
        alone = _alone(values, known, int(count), positive)
        if alone > _LEAK:
            found.append(Leak(name, alone, "predicts the label nearly alone"))
        elif side := _only_side(known, positive):
            found.append(Leak(name, alone, f"has a value for {side} rows only"))
    return found


def _only_side(known: NDArray[np.bool_], positive: NDArray[np.bool_]) -> str:
    """Return the only class that has values; "" if both have, or it may be chance."""
    count = int(np.count_nonzero(known))
    if count < _FEW:
        return ""
    for side, name in ((positive, "positive"), (~positive, "negative")):
        by_chance = float(np.log(side.mean())) * count
        if side[known].all() and by_chance < _LOG_CHANCE:
            return name
    return ""


def _alone(
    values: NDArray[Any], known: NDArray[np.bool_], count: int, positive: NDArray[Any]
) -> float:
    """Return the AUC of one column, in the better direction."""
    if count:
        return _by_category(np.where(known, values, count).astype(int), positive)
    if not known.any():
        return 0.5
    # Missing values may be at either end.
    below = np.where(known, values, values[known].min() - 1.0)
    above = np.where(known, values, values[known].max() + 1.0)
    areas = [area(classes(positive, score.astype(float))) for score in (below, above)]
    return max(max(a, 1.0 - a) for a in areas)


def _by_category(codes: NDArray[np.int64], positive: NDArray[np.bool_]) -> float:
    """Return the AUC of shares of positives, each half scored by the other."""
    scores = np.empty(codes.size)
    half = np.arange(codes.size) % 2 == 0
    for mine in (half, ~half):
        rows = np.bincount(codes[~mine], minlength=codes.max() + 1)
        hits = np.bincount(codes[~mine], positive[~mine], codes.max() + 1)
        rate = positive[~mine].mean()
        scores[mine] = ((hits + rate) / (rows + 1.0))[codes[mine]]
    return area(classes(positive, scores))


def table_leaks(
    rows: TableRows, names: Sequence[str], positive: NDArray[np.bool_]
) -> list[Leak]:
    """Return the leaks among encoded columns, one for each column at most.

    ``names`` has the column of each feature. Codes of integers come after these, words
    of texts are no columns.
    """
    if rows.view is None or rows.columns is None:
        return []
    words = 0 if rows.words is None else rows.words.shape[1]
    own = len(names) - words
    columns, levels = rows.columns[:, :own], rows.view.levels[:own]
    found: dict[str, Leak] = {}
    for leak in find_leaks(columns, levels, names[:own], positive):
        found.setdefault(leak.column, leak)
    return list(found.values())


def warn_of_leaks(
    rows: TableRows, names: Sequence[str], positive: NDArray[np.bool_]
) -> None:
    """Warn of columns that may be known only after the outcome."""
    for leak in table_leaks(rows, names, positive):
        warn_user(str(leak), DataWarning)
