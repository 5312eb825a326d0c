"""Two views of the rows of a table: columns and features.

Trees see columns: numbers, NaN where they are missing, and codes of categories, NaN
likewise. Linear and kernel members see features: missing numbers are replaced by the
median and flagged, and each frequent category has a feature of its own.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.rows import Float
from aucmax.storage.storable import whole_numbers

Ints = NDArray[np.int64]

_MIN_ROWS = 5  # of a category that has a feature of its own
_MEDIAN_ROWS = 100_000  # by which medians are found
_MOST_KEPT = 50_000_000  # values of features
_MOST_DENSE = 500  # features; with more, rows are sparse


class FeatureView(NamedTuple):
    """How columns become features."""

    median: Float  # (columns,) of numbers; (0,) in files of version 0.1.0
    flagged: Ints  # columns of numbers with a feature for missing values
    levels: Ints  # (columns,) codes of a category; 0 for numbers
    onehot: Ints  # categories with a feature, counted over all codes and "missing"

    @classmethod
    def fit(cls, X: Any, levels: Ints) -> "FeatureView":
        """Return the view of dense columns."""
        is_number = levels == 0
        flagged = np.array(
            [j for j in np.flatnonzero(is_number) if np.isnan(X[:, j]).any()], np.int64
        )
        some = X[:: max(len(X) // _MEDIAN_ROWS, 1)]
        median = np.zeros(X.shape[1])
        for j in np.flatnonzero(is_number):
            known = some[~np.isnan(some[:, j]), j]
            median[j] = np.median(known) if len(known) else 0.0
        counts = [
            np.bincount(codes(X[:, j], size), minlength=size + 1)
            for j, size in enumerate(levels)
            if size
        ]
        onehot = np.flatnonzero(np.concatenate([[0], *counts])[1:] >= _MIN_ROWS)
        return cls(median, flagged, levels, onehot)

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]], width: int) -> "FeatureView":
        """Return the view of stored arrays; raise a ValueError if invalid."""
        median = np.asarray(arrays["median"], np.float64)
        flagged = whole_numbers("columns", arrays["flagged"], 0, width - 1)
        if median.shape not in ((0,), (width,)) or flagged.ndim != 1:
            raise ValueError(
                f"'median' has shape {median.shape} and 'flagged' {flagged.shape}; "
                f"expected one median for each of {width} columns."
            )
        if not np.isfinite(median).all() or (len(flagged) and not len(median)):
            raise ValueError("'median' is missing or not finite.")
        levels = whole_numbers("levels", arrays["levels"], 0, 1 << 31)
        if levels.shape != (width,):
            raise ValueError(f"'levels' has shape {levels.shape}, expected ({width},).")
        most = max(int((levels + 1)[levels > 0].sum()) - 1, 0)
        onehot = whole_numbers("categories", arrays["onehot"], 0, most)
        if onehot.ndim != 1 or (len(onehot) and not levels.any()):
            raise ValueError(f"'onehot' has shape {onehot.shape}.")
        return cls(median, flagged, levels, onehot)

    @property
    def width(self) -> int:
        """Number of features."""
        numbers = int(np.count_nonzero(self.levels == 0))
        return numbers + len(self.flagged) + len(self.onehot)

    def transform(self, X: Any) -> Any:
        """Return the features of dense columns, dense unless there are many."""
        is_number = self.levels == 0
        numbers = X if is_number.all() else X[:, is_number]
        missing = np.isnan(numbers)
        if len(self.median) and missing.any():
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

    def make_features(self) -> None:
        """Make the features once, unless they would take much memory."""
        width = 0 if self.view is None else self.view.width
        if len(self) * width <= _MOST_KEPT:
            self.features  # noqa: B018
