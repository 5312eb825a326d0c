"""Two views of the rows of a table: columns and features.

Trees see columns: numbers, NaN where they are missing, and codes of categories, NaN
likewise. Linear and kernel members see features: missing numbers are replaced by the
median and flagged, and each frequent category has a feature of its own.

A new category has the code that rare ones share. If no training row has that code, and
fewer than 5 have a rare category, the score is the mean over stand-ins, the rarest
known categories. A missing category is a new one if it was missing in fewer than 5
training rows; the out-of-fold scores of these, at most 4 for each column, are those of
missing values.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.rows import Float
from aucmax.storage.state import whole_numbers

Ints = NDArray[np.int64]

_MIN_ROWS = 5  # of a category that has a feature of its own, or is learnt as rare
_STAND_INS = 6  # for a new category
_MEDIAN_ROWS = 100_000  # by which medians are found
_MOST_KEPT = 50_000_000  # values of features
_MOST_DENSE = 500  # features; with more, rows are sparse


class FeatureView(NamedTuple):
    """How columns become features."""

    median: Float  # (columns,) of numbers
    flagged: Ints  # columns of numbers with a feature for missing values
    levels: Ints  # (columns,) codes of a category; 0 for numbers
    onehot: Ints  # categories with a feature, counted over all codes and "missing"
    lacking: Ints  # columns of categories whose missing values count as new
    stand_ins: Ints  # (columns, 6) codes that a new category stands for; -1: none

    @classmethod
    def fit(cls, X: Any, levels: Ints) -> "FeatureView":
        """Return the view of dense columns."""
        is_number = levels == 0
        flagged = np.array(
            [j for j in np.flatnonzero(is_number) if np.isnan(X[:, j]).any()], np.int64
        )
        median = np.where(is_number, medians(X), 0.0)
        counts = {
            j: np.bincount(codes(X[:, j], size), minlength=size + 1)
            for j, size in enumerate(levels)
            if size
        }
        onehot = np.concatenate([[0], *counts.values()])[1:] >= _MIN_ROWS
        lacking = [j for j, count in counts.items() if count[-1] < _MIN_ROWS]
        stand_ins = np.full((X.shape[1], _STAND_INS), -1)
        for j, count in counts.items():
            *known, new = count[:-1].tolist()
            rare = sum(times for times in known if times < _MIN_ROWS)
            if not new and rare < _MIN_ROWS and any(known):
                order = np.argsort(known, kind="stable")
                stand_ins[j] = np.resize(order[np.sort(known) > 0], _STAND_INS)
        return cls(
            median,
            flagged,
            levels,
            np.flatnonzero(onehot),
            np.array(lacking, np.int64),
            stand_ins,
        )

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]], width: int) -> "FeatureView":
        """Return the view of stored arrays; raise a ValueError if invalid."""
        median = np.asarray(arrays["median"], np.float64)
        flagged = whole_numbers("columns", arrays["flagged"], 0, width - 1)
        if median.shape != (width,) or flagged.ndim != 1:
            raise ValueError(
                f"'median' has shape {median.shape} and 'flagged' {flagged.shape}; "
                f"expected one median for each of {width} columns."
            )
        if not np.isfinite(median).all():
            raise ValueError("'median' is not finite.")
        levels = whole_numbers("levels", arrays["levels"], 0, 1 << 31)
        if levels.shape != (width,):
            raise ValueError(f"'levels' has shape {levels.shape}, expected ({width},).")
        most = max(int((levels + 1)[levels > 0].sum()) - 1, 0)
        onehot = whole_numbers("categories", arrays["onehot"], 0, most)
        if onehot.ndim != 1 or (len(onehot) and not levels.any()):
            raise ValueError(f"'onehot' has shape {onehot.shape}.")
        lacking = whole_numbers("columns", arrays["lacking"], 0, width - 1)
        stand_ins = whole_numbers("codes", arrays["stand_ins"], -1, 1 << 31)
        if (
            stand_ins.ndim != 2
            or len(stand_ins) != width
            or (stand_ins >= np.maximum(levels, 1)[:, np.newaxis]).any()
            or lacking.ndim != 1
            or not levels[lacking].all()
        ):
            raise ValueError("the codes that stand for new categories are invalid.")
        return cls(median, flagged, levels, onehot, lacking, stand_ins)

    @property
    def width(self) -> int:
        """Number of features."""
        numbers = int(np.count_nonzero(self.levels == 0))
        return numbers + len(self.flagged) + len(self.onehot)

    def missing_as_new(self, X: Any) -> Any:
        """Return the columns; categories that were rarely missing count as new."""
        if not len(self.lacking) or not np.isnan(X[:, self.lacking]).any():
            return X
        X = X.copy()
        for j in self.lacking:
            X[np.isnan(X[:, j]), j] = self.levels[j] - 1
        return X

    def replacing_new(self, X: Any) -> tuple[Ints, list[Any]]:
        """Return the rows with new categories, and these rows with each stand-in."""
        columns = np.flatnonzero((self.stand_ins >= 0).any(axis=1))
        new = X[:, columns] == self.levels[columns] - 1
        rows = np.flatnonzero(new.any(axis=1))
        found = []
        for codes_of_columns in self.stand_ins[columns].T if len(rows) else ():
            some = X[rows]
            some[:, columns] = np.where(new[rows], codes_of_columns, some[:, columns])
            found.append(some)
        return rows, found

    def transform(self, X: Any) -> Any:
        """Return the features of dense columns, dense unless there are many."""
        is_number = self.levels == 0
        numbers = X if is_number.all() else X[:, is_number]
        missing = np.isnan(numbers)
        if missing.any():
            median = self.median.astype(X.dtype)[is_number]
            numbers = np.where(missing, median, numbers)
        if len(self.flagged):
            flags = np.isnan(X[:, self.flagged]).astype(X.dtype)
            numbers = np.hstack([numbers, flags])
        if is_number.all():
            return numbers
        places = self._places(X)
        rows, columns = np.nonzero(places >= 0)
        at = numbers.shape[1] + places[rows, columns]
        if self.width <= _MOST_DENSE:
            dense = np.zeros((len(X), self.width), X.dtype)
            dense[:, : numbers.shape[1]] = numbers
            dense[rows, at] = 1.0
            return dense
        shape = len(X), self.width - numbers.shape[1]
        ones = np.ones(len(rows), X.dtype)
        flags = sparse.csr_array((ones, (rows, at - numbers.shape[1])), shape)
        return sparse.csr_array(sparse.hstack([sparse.csr_array(numbers), flags]))

    def _places(self, X: Any) -> Ints:
        """Return the one-hot feature of each category, -1 if it has none."""
        categories = np.flatnonzero(self.levels)
        starts = np.cumsum([0, *(self.levels[categories] + 1)])
        place = np.full(starts[-1], -1)
        place[self.onehot] = np.arange(len(self.onehot))
        return np.column_stack(
            [
                place[start + codes(X[:, j], self.levels[j])]
                for start, j in zip(starts[:-1], categories, strict=True)
            ]
        )


def medians(X: Any) -> Float:
    """Return the median of each column, of the known values of many rows."""
    some, found = X[:: max(len(X) // _MEDIAN_ROWS, 1)], np.zeros(X.shape[1])
    for j, column in enumerate(some.T):
        known = column[~np.isnan(column)]
        found[j] = np.median(known) if len(known) else 0.0
    return found


def codes(column: Any, size: int) -> Ints:
    """Return the codes of a column as integers; missing ones are ``size``."""
    missing = ~((column >= 0.0) & (column < size))
    return np.where(missing, size, column).astype(np.int64)


class TableRows:
    """Rows, as columns and as features.

    Parameters
    ----------
    columns : ndarray of shape (n, columns) or None
        The columns; None for wide sparse rows.
    view : FeatureView or None
        How columns become features.
    words : sparse matrix or None
        Further features, which have no columns.
    """

    def __init__(self, columns: Any, view: FeatureView | None, words: Any) -> None:
        self.columns, self.view, self.words = columns, view, words

    @cached_property
    def features(self) -> Any:
        """The features."""
        if self.view is None:
            return self.words
        found = self.view.transform(self.columns)
        if self.words is None:
            return found
        return sparse.csr_array(sparse.hstack([sparse.csr_array(found), self.words]))

    def __len__(self) -> int:
        return int((self.words if self.columns is None else self.columns).shape[0])

    def take(self, rows: Any) -> "TableRows":
        """Return some of the rows; features that are known are not made again."""
        some = TableRows(
            None if self.columns is None else self.columns[rows],
            self.view,
            None if self.words is None else self.words[rows],
        )
        if "features" in vars(self):
            some.features = self.features[rows]
        return some

    def replacing_new(self) -> tuple[Ints, list["TableRows"]]:
        """Return the rows with new categories, and these rows with each stand-in."""
        if self.view is None:
            return np.zeros(0, np.int64), []
        rows, versions = self.view.replacing_new(self.columns)
        words = None if self.words is None else self.words[rows]
        return rows, [TableRows(some, self.view, words) for some in versions]

    def make_features(self) -> None:
        """Make the features once, unless they would take much memory."""
        width = 0 if self.view is None else self.view.width
        if len(self) * width <= _MOST_KEPT:
            self.features  # noqa: B018
