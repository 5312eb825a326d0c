"""Layout of encoded rows: which values are numbers, codes of categories, words."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.base.folds import Repeats
from aucmax.blend.columns import FeatureView, TableRows
from aucmax.blend.identifiers import identifiers_help
from aucmax.blend.integer_codes import NO_CODES, IntegerCodes
from aucmax.storage.state import whole_numbers

WIDE = 2000  # features; wider sparse rows have no columns, unless a table was encoded


class RowLayout(NamedTuple):
    """What an encoded row consists of: columns, and words of texts after them."""

    width: int  # of a row
    levels: NDArray[np.int64]  # codes of each column, 0 for numbers, -1: left out
    codes: IntegerCodes
    view: FeatureView | None  # None if there are no columns

    @classmethod
    def of(cls, X: Any, levels: list[int] | None) -> "RowLayout":
        """Return the layout before it is fitted.

        ``levels`` are those of an encoder, -1 for identifiers; without one, all
        features are columns of numbers, unless rows are wide and sparse.
        """
        if levels is None:
            wide = sparse.issparse(X) and X.shape[1] > WIDE
            levels = [0] * (0 if wide else X.shape[1])
        return cls(X.shape[1], np.array(levels, np.int64), NO_CODES, None)

    def fit(
        self, X: Any, positive: NDArray[np.bool_], seed: int, exchangeable: bool = True
    ) -> tuple["RowLayout", TableRows]:
        """Find how columns become features; return the rows as members see them.

        Identifiers are left out if rows are not ``exchangeable``: new ones are unlike
        those of training.
        """
        if not len(self.levels):
            return self, self.rows(X)
        own, known = self.levels.copy(), np.maximum(self.levels, 0)
        identifiers = np.flatnonzero(own < 0)
        if len(identifiers) and exchangeable:
            columns, _ = self._split(X)
            if identifiers_help(columns, known, identifiers, positive, seed):
                own = known
        fitted = self._replace(levels=own)
        columns, words = fitted._split(fitted.without_identifiers(X))
        codes = IntegerCodes.fit(columns, known, positive, seed)
        columns = codes.transform(columns)
        view = FeatureView.fit(columns, np.concatenate([known, codes.levels]))
        rows = TableRows(view.missing_as_new(columns), view, words)
        return fitted._replace(codes=codes, view=view), rows

    def rows(self, X: Any) -> TableRows:
        """Return encoded rows as members see them."""
        if self.view is None:
            return TableRows(None, None, X)
        columns, words = self._split(self.without_identifiers(X))
        columns = self.view.missing_as_new(self.codes.transform(columns))
        return TableRows(columns, self.view, words)

    def without_identifiers(self, X: Any) -> Any:
        """Return the rows with zeros in the columns that are left out."""
        left_out = np.flatnonzero(self.levels < 0)
        if not len(left_out):
            return X
        rows = X.copy()
        if sparse.issparse(rows):
            rows.data[np.isin(rows.indices, left_out)] = 0.0
            rows.eliminate_zeros()  # changes the structure in place
        else:
            rows[:, left_out] = 0.0
        return rows

    def _split(self, X: Any) -> tuple[Any, Any]:
        """Return the columns and the words, if there are any."""
        if not sparse.issparse(X):
            return X, None
        width = len(self.levels)
        words = X[:, width:] if X.shape[1] > width else None
        return X[:, :width].toarray(), words

    def repeats(self, X: Any, positive: NDArray[np.bool_]) -> Repeats:
        """Return the equal rows, identifiers aside."""
        return Repeats.among(self.without_identifiers(X), positive)

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
        if not arrays.keys() & {"encoded_levels", *IntegerCodes._fields}:
            # Files of version 0.1.0 have no categories, and no columns of wide rows.
            none = np.zeros(width if width <= WIDE else 0)
            old = {"encoded_levels": none, "levels": none, "onehot": np.zeros(0)}
            new = {"lacking": np.zeros(0), "stand_ins": np.full((len(none), 0), -1)}
            arrays = {**arrays, **NO_CODES._asdict(), **old, **new}
        levels = whole_numbers("levels", arrays["encoded_levels"], -1, 1 << 31)
        if levels.ndim != 1 or len(levels) > width:
            raise ValueError(f"'encoded_levels' has shape {levels.shape}.")
        codes, view = IntegerCodes.restored(arrays, max(len(levels), 1)), None
        if len(levels):
            view = FeatureView.restored(arrays, len(levels) + len(codes.columns))
        return cls(width, levels, codes, view)
