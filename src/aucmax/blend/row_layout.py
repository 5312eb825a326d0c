"""Layout of encoded rows: which values are numbers, codes of categories, words."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.blend.columns import FeatureView, TableRows
from aucmax.blend.integer_codes import NO_CODES, IntegerCodes
from aucmax.storage.state import whole_numbers

WIDE = 2000  # features; wider sparse rows have no columns, unless a table was encoded


class RowLayout(NamedTuple):
    """What an encoded row consists of: columns, and words of texts after them."""

    width: int  # of a row
    levels: NDArray[np.int64]  # codes of each column, 0 for numbers
    codes: IntegerCodes
    view: FeatureView | None  # None if there are no columns

    @classmethod
    def of(cls, X: Any, levels: list[int] | None) -> "RowLayout":
        """Return the layout before it is fitted.

        ``levels`` are those of an encoder; without one, all features are columns of
        numbers, unless rows are wide and sparse.
        """
        if levels is None:
            wide = sparse.issparse(X) and X.shape[1] > WIDE
            levels = [0] * (0 if wide else X.shape[1])
        return cls(X.shape[1], np.array(levels, np.int64), NO_CODES, None)

    def fit(
        self, X: Any, positive: NDArray[np.bool_], seed: int
    ) -> tuple["RowLayout", TableRows]:
        """Find how columns become features; return the rows as members see them."""
        if not len(self.levels):
            return self, self.rows(X)
        columns, words = self._split(X)
        codes = IntegerCodes.fit(columns, self.levels, positive, seed)
        columns = codes.transform(columns)
        view = FeatureView.fit(columns, np.concatenate([self.levels, codes.levels]))
        rows = TableRows(view.missing_as_new(columns), view, words)
        return self._replace(codes=codes, view=view), rows

    def rows(self, X: Any) -> TableRows:
        """Return encoded rows as members see them."""
        if self.view is None:
            return TableRows(None, None, X)
        columns, words = self._split(X)
        columns = self.view.missing_as_new(self.codes.transform(columns))
        return TableRows(columns, self.view, words)

    def _split(self, X: Any) -> tuple[Any, Any]:
        """Return the columns and the words, if there are any."""
        if not sparse.issparse(X):
            return X, None
        width = len(self.levels)
        words = X[:, width:] if X.shape[1] > width else None
        return X[:, :width].toarray(), words

    def may_lack(self, X: Any) -> bool:
        """Return whether values of such rows may be missing; not those of a matrix."""
        return not sparse.issparse(X) or len(self.levels) not in (0, self.width)

    @property
    def member_widths(self) -> set[int]:
        """The numbers of columns or features that members may have."""
        if self.view is None:
            return {self.width}
        words = self.width - len(self.levels)
        return {len(self.view.levels), self.view.width + words}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store."""
        view = {} if self.view is None else self.view._asdict()
        return {**view, **self.codes._asdict(), "encoded_levels": self.levels}

    @classmethod
    def restored(cls, width: Any, arrays: dict[str, NDArray[Any]]) -> "RowLayout":
        """Return the layout of stored arrays; raise a ValueError if invalid."""
        if type(width) is not int or not 0 < width < 1 << 31:
            raise ValueError(f"it claims {width!r} encoded features.")
        levels = whole_numbers("levels", arrays["encoded_levels"], 0, 1 << 31)
        if levels.ndim != 1 or len(levels) > width:
            raise ValueError(f"'encoded_levels' has shape {levels.shape}.")
        codes, view = IntegerCodes.restored(arrays, max(len(levels), 1)), None
        if len(levels):
            view = FeatureView.restored(arrays, len(levels) + len(codes.columns))
        return cls(width, levels, codes, view)
