"""Models that see the columns of a table: numbers, missing values, categories."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aucmax.base.ranker import Ranker
from aucmax.blend.columns import TableRows, codes
from aucmax.core.rows import Float

Ints = NDArray[np.int64]


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
