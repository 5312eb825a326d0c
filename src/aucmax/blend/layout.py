"""Layout of rows: columns for trees, features for other members, codes in digits.

Trees see columns: numbers, NaN where they are missing, and codes of categories, NaN
likewise. Linear and kernel members see features: missing numbers are replaced by the
median and flagged, and each frequent category has a feature of its own.

A new category has the code that rare ones share. If no training row has that code, and
fewer than 5 have a rare category, the score is the mean over stand-ins, the rarest
known categories. A missing category is a new one if it was missing in fewer than 5
training rows; the out-of-fold scores of these, at most 4 for each column, are those of
missing values.

Numbers that are codes: whole numbers whose order says little about the label.

A column of identifiers (of a resource, a shop, a zip code) is a category written in
digits. It is recognised by its values one by one ranking rows clearly better than
ordered bins of them do. Such a column stays as it is, and its codes are added.

Layout of encoded rows: which values are numbers, codes of categories, words.
"""

from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.base.ranker import Ranker
from aucmax.blend.target_encoding import TargetEncoding
from aucmax.core.rows import Float
from aucmax.metrics import auc
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


_MIN_CODED_ROWS = 1500  # with a value; with fewer, chance decides
_FEWEST, _MOST_SHARE = 21, 0.9  # distinct values, and their share of the rows
_BINS = 32
_MARGIN, _NOISE = 0.01, 0.4  # of AUC: at least, and over the root of the rarer rows
_COMPARED_ROWS = 50_000
_MOST_VALUES = 50_000  # with more, values of a single row have no code of their own


class IntegerCodes(NamedTuple):
    """Columns of numbers that are codes as well, and their values."""

    columns: Ints
    values: Float  # of all these columns, increasing within a column
    ends: Ints  # of each column in ``values``

    @classmethod
    def fit(
        cls, X: Any, levels: Ints, positive: NDArray[np.bool_], seed: int
    ) -> "IntegerCodes":
        """Find such columns among the dense columns ``X``."""
        rng = np.random.RandomState(seed)
        chosen = np.arange(len(X))
        if len(X) > _COMPARED_ROWS:
            chosen = np.sort(rng.choice(len(X), _COMPARED_ROWS, replace=False))
        found: list[tuple[int, Float]] = []
        for j in np.flatnonzero(levels == 0).tolist():
            if _is_code(X[chosen, j], positive[chosen], rng):
                column = X[:, j]
                known = column[~np.isnan(column)]
                values, counts = np.unique(known, return_counts=True)
                often = counts > 1 if len(values) > _MOST_VALUES else counts > 0
                found.append((j, values[often]))
        return cls(
            np.array([j for j, _ in found], np.int64),
            np.concatenate([np.zeros(0), *(values for _, values in found)]),
            np.cumsum([len(values) for _, values in found], dtype=np.int64),
        )

    @property
    def levels(self) -> Ints:
        """Number of codes of each column; other values share the last one."""
        return np.diff(self.ends, prepend=0) + 1

    def transform(self, X: Any) -> Any:
        """Return the columns with the codes beside them."""
        if not len(self.columns):
            return X
        starts = [0, *self.ends[:-1].tolist()]
        coded = [
            _coded(X[:, j], self.values[start:end])
            for j, start, end in zip(
                self.columns.tolist(), starts, self.ends.tolist(), strict=True
            )
        ]
        return np.column_stack([X, *coded]).astype(X.dtype, copy=False)

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]], width: int) -> "IntegerCodes":
        """Return the codes of stored arrays; raise a ValueError if invalid."""
        values = np.asarray(arrays["values"], np.float64)
        columns = whole_numbers("columns", arrays["columns"], 0, width - 1)
        ends = whole_numbers("codes", arrays["ends"], 0, len(values))
        if (
            columns.ndim != 1
            or columns.shape != ends.shape
            or (np.diff(ends, prepend=0) < 0).any()
            or not np.isfinite(values).all()
        ):
            raise ValueError("the values of its integer codes are invalid.")
        return cls(columns, values, ends)


NO_CODES = IntegerCodes(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))


def _coded(column: Any, values: Float) -> Float:
    at = np.minimum(np.searchsorted(values, column), max(len(values) - 1, 0))
    hit = values[at] == column if len(values) else np.zeros(len(column), bool)
    code = np.where(hit, at, len(values)).astype(np.float64)
    code[np.isnan(column)] = np.nan
    return code


def _is_code(
    column: Any, positive: NDArray[np.bool_], rng: np.random.RandomState
) -> bool:
    known = ~np.isnan(column)
    x, y = column[known], positive[known]
    if len(x) < _MIN_CODED_ROWS or (x != np.floor(x)).any() or y.all() or not y.any():
        return False
    values, code = np.unique(x, return_inverse=True)
    if not _FEWEST <= len(values) <= _MOST_SHARE * len(x):
        return False
    edges = np.unique(np.quantile(x, np.linspace(0.0, 1.0, _BINS + 1)[1:-1]))
    both = np.column_stack([code, np.searchsorted(edges, x)])
    sizes = np.array([len(values), len(edges) + 1])
    _, own = TargetEncoding.fit(both, sizes, y, np.ones(len(x)), [[0], [1]], rng)
    margin = max(_MARGIN, _NOISE / np.sqrt(min(y.sum(), (~y).sum())))
    return bool(auc(y, own[:, 0]) > auc(y, own[:, 1]) + margin)


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


class TableModel(Ranker):
    """Base class of the models of a blend that see columns."""

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} is fitted by AUCClassifier.")

    def fit_table(
        self, rows: TableRows, positive: NDArray[np.bool_], weight: Float | None
    ) -> Self:
        """Fit the model to some rows of a table."""
        raise NotImplementedError

    def score_table(self, rows: TableRows) -> Float:
        """Return the scores of rows of a table."""
        raise NotImplementedError


def category_codes(X: Any, levels: Ints) -> Ints:
    """Return the codes of the categories among dense columns, "missing" included."""
    return np.column_stack([codes(X[:, j], levels[j]) for j in np.flatnonzero(levels)])


def category_sizes(levels: Ints) -> Ints:
    """Return the number of codes of each category, "missing" included."""
    return levels[levels > 0] + 1
