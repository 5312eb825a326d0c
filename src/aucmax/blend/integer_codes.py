"""Numbers that are codes: whole numbers whose order says little about the label.

A column of identifiers (of a resource, a shop, a zip code) is a category written in
digits. It is recognised by its values one by one ranking rows clearly better than
ordered bins of them do. Such a column stays as it is, and its codes are added.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.target_encoding import TargetEncoding
from aucmax.core.rows import Float
from aucmax.metrics import auc
from aucmax.storage.state import whole_numbers

Ints = NDArray[np.int64]

_MIN_ROWS = 1500  # with a value; with fewer, chance decides
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
    if len(x) < _MIN_ROWS or (x != np.floor(x)).any() or y.all() or not y.any():
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
