"""Columns that the trees of a stream see, and trees on such columns.

Linear members take a categorical column as one-hot features, and so do trees, up to
``MAX_FEATURES`` features. In wider rows, a column with more than ``_MAX_ONE_HOT``
categories becomes one column of codes for the trees. A refit encodes the codes by the
log-odds of the positive class, cross-fitted on the kept rows
(:mod:`aucmax.blend.target_encoding`).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.blend.boosting import with_terms
from aucmax.blend.forest import Forest
from aucmax.blend.table_model import category_sizes
from aucmax.blend.target_encoding import TargetEncoding
from aucmax.core.rows import Float
from aucmax.storage.state import below, whole_numbers

Ints = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

NUMBER = -1  # in place of the category of a feature that is a number
MAX_FEATURES = 2000  # columns; trees are not grown on wider rows
_MAX_ONE_HOT = 50  # categories of a column without codes, in wide rows
_MAX_VALUES = 1 << 22  # of the rows that are converted at a time


class TreeColumns:
    """Conversion of features to columns: the other features, then codes.

    The code of a row without a feature of the column (a missing value or an unknown
    category) is the number of its features.

    Parameters
    ----------
    category : ndarray of shape (n_features,)
        For each feature, the number of the categorical column that it is a one-hot
        feature of; -1 for other features.
    """

    def __init__(self, category: Ints) -> None:
        self.category = category
        sizes = np.bincount(category + 1, minlength=1)
        large = (category != NUMBER) & (sizes[category + 1] > _MAX_ONE_HOT)
        self._coded = large & (len(category) > MAX_FEATURES)
        found = category[self._coded]
        columns, owner = np.unique(found, return_inverse=True)
        levels = sizes[columns + 1]
        order = np.argsort(owner, kind="stable")
        self._code = np.zeros(len(category), np.int64)
        first = np.repeat(np.cumsum(levels) - levels, levels)
        self._code[np.flatnonzero(self._coded)[order]] = np.arange(len(found)) - first
        n_kept = len(category) - len(found)
        self._place = np.cumsum(~self._coded) - 1
        self._place[self._coded] = n_kept + owner
        # Number of codes of each column; 0 for numbers.
        self.levels = np.append(np.zeros(n_kept, np.int64), levels + 1)

    @classmethod
    def numbers(cls, n_features: int) -> Self:
        """Return the columns of rows without categories: all features."""
        return cls(np.full(n_features, NUMBER))

    @classmethod
    def restored(cls, arrays: Arrays, n_features: int) -> Self:
        """Return the columns of stored arrays; raise a ValueError if invalid."""
        if "category" not in arrays:
            return cls.numbers(n_features)
        category = whole_numbers("category", arrays["category"], NUMBER, n_features)
        if category.shape != (n_features,):
            raise ValueError(
                f"'category' has shape {category.shape}, expected ({n_features},)."
            )
        return cls(category)

    def arrays(self) -> Arrays:
        """Return the arrays that a model file stores; none without codes."""
        return {"category": self.category} if self.has_codes else {}

    @property
    def has_codes(self) -> bool:
        """Whether any column has codes."""
        return bool(self._coded.any())

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.levels)

    def blocks(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows, and their columns; bounded in memory."""
        n = X.shape[0]
        step = max(_MAX_VALUES // self.width, 1) if self.has_codes else max(n, 1)
        for start in range(0, n, step):
            some = slice(start, min(start + step, n))
            yield some, self._transform(X[some]) if self.has_codes else X

    def _transform(self, X: Any) -> Float:
        rows = sparse.coo_array(X)
        i, j = rows.coords
        out = np.zeros((X.shape[0], self.width))
        out[:, self.levels > 0] = self.levels[self.levels > 0] - 1
        used = rows.data != 0.0
        i, j, values = i[used], j[used], rows.data[used]
        out[i, self._place[j]] = np.where(self._coded[j], self._code[j], values)
        return out

    def code_matrix(self) -> tuple[Float, Float]:
        """Return a matrix M and offsets c, for |X| M + c, the columns with codes."""
        width = np.count_nonzero(self.levels)
        place = self._place[self._coded] - (self.width - width)
        offset = self.levels[self.levels > 0] - 1.0
        matrix = np.zeros((len(self.category), width))
        matrix[self._coded, place] = self._code[self._coded] - offset[place]
        return matrix, offset

    def kept(self) -> Ints:
        """Return the features that are columns as they are."""
        return np.flatnonzero(~self._coded)


class ColumnForest(NamedTuple):
    """Trees on columns and on target-encoded codes."""

    trees: Forest
    levels: Ints  # codes of each column, 0 for numbers
    encoding: TargetEncoding | None = None

    def scores(self, columns: Any) -> Float:
        """Return the sum of the trees' values for each row of columns."""
        return self.trees.scores(with_terms(columns, self.levels, self.encoding))

    def arrays(self) -> Arrays:
        """Return the arrays to store."""
        terms = {} if self.encoding is None else self.encoding.arrays()
        named = {f"terms.{name}": array for name, array in terms.items()}
        return {**self.trees.arrays(), **named}

    @classmethod
    def restored(cls, arrays: Arrays, levels: Ints) -> Self:
        """Return the trees of stored arrays; raise a ValueError if invalid."""
        encoding, width = None, len(levels)
        if terms := below("terms", arrays):
            encoding = TargetEncoding.restored(terms, category_sizes(levels))
            width += 2 * len(encoding.ends)
        return cls(Forest.restored(arrays, width), levels, encoding)


class TreeScore(NamedTuple):
    """The score of trees as a function of features."""

    columns: TreeColumns
    forest: ColumnForest

    def scores(self, X: Any) -> Float:
        """Return the scores of rows."""
        found = (self.forest.scores(part) for _, part in self.columns.blocks(X))
        return np.concatenate([np.zeros(0), *found])
