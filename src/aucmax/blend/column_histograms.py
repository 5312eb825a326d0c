"""Histograms of the training columns, with which columns of new rows are compared.

A model file keeps at most 20 bins of each column: tenths of the training rows for
numbers, the most frequent categories, and missing values.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.columns import TableRows
from aucmax.metrics.calibration import quantile_edges, stability_of_counts

_MOST_BINS = 20  # of categories, with those of other categories and of missing values
_MOST_ROWS = 100_000  # that are counted

Bins = NDArray[np.uint8]


class ColumnHistogram(NamedTuple):
    """Bins of a column, and the number of training rows in each of them."""

    column: str
    feature: int  # of an encoded row
    categories: bool  # False for a column of numbers
    edges: list[float]  # largest number of each bin, or codes of categories
    counts: list[int]  # of these bins, of all other values, and of missing ones

    def bins(self, values: NDArray[Any]) -> Bins:
        """Return the bin of each value."""
        edges = np.array(self.edges)
        if self.categories:
            order = np.argsort(edges)
            at = np.append(order, edges.size)[np.searchsorted(edges[order], values)]
            known = np.append(edges, np.nan)[at] == values
            place = np.where(known, at, edges.size)
        else:
            place = np.searchsorted(edges, values)
        return np.where(np.isnan(values), edges.size + 1, place).astype(np.uint8)

    def stability(self, bins: Bins) -> float:
        """Return the population stability index of rows in these bins."""
        counts = np.bincount(bins, minlength=len(self.counts))
        return stability_of_counts(np.array(self.counts), counts)


def column_histograms(rows: TableRows, names: Sequence[str]) -> list[ColumnHistogram]:
    """Return the histograms of columns that have one feature, not of dates and texts.

    ``names`` has the column of each feature of an encoded row.
    """
    if rows.view is None or rows.columns is None:
        return []
    words = 0 if rows.words is None else rows.words.shape[1]
    own = names[: len(names) - words]
    times = Counter(names)
    some = rows.columns[:: max(len(rows) // _MOST_ROWS, 1)]
    return [
        _histogram(name, j, some[:, j], int(rows.view.levels[j]))
        for j, name in enumerate(own)
        if times[name] == 1
    ]


def _histogram(
    name: str, feature: int, values: NDArray[Any], levels: int
) -> ColumnHistogram:
    if levels:
        rows = np.bincount(values[~np.isnan(values)].astype(np.int64))
        common = np.argsort(-rows, kind="stable")[: _MOST_BINS - 2]
        edges = common[rows[common] > 0].astype(float)
    else:
        edges = quantile_edges(values)
    empty = ColumnHistogram(name, feature, levels > 0, edges.tolist(), [])
    counts = np.bincount(empty.bins(values), minlength=edges.size + 2)
    return empty._replace(counts=counts.tolist())
