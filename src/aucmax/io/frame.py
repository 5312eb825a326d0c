"""Readers of pandas and polars data frames and Arrow tables."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from aucmax.io.chunk import START
from aucmax.io.parquet import Batches, ParquetSource


class FrameSource(ParquetSource):
    """Rows of a data frame.

    Parameters
    ----------
    frame : DataFrame of pandas or polars, or Table of pyarrow
        The rows; an index of pandas is no column.
    **options
        Those of :class:`~aucmax.io.parquet.ParquetSource`.
    """

    def __init__(self, frame: Any, **options: Any) -> None:
        self._table = to_arrow(frame)
        super().__init__([], **options)
        self.files, self._sizes = ["data frame"], [int(self._table.nbytes)]
        self.size = self._sizes[0]

    def _opened(self, file: str) -> Batches:
        return _Table(self._table)


class _Table(Batches):
    """A table in memory, in place of a file."""

    def __init__(self, table: Any) -> None:
        self._table, self.schema = table, table.schema

    def __enter__(self) -> "_Table":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(
        self, columns: list[str], start: int, size: int
    ) -> Iterator[tuple[Any, float]]:
        """Yield at most ``size`` rows at a time, and how much is done."""
        rows = self._table.select(columns).slice(start)
        done = start
        for batch in rows.to_batches(max_chunksize=size):
            done += len(batch)
            yield batch, done / max(len(self._table), 1)


class FrameEncoder:
    """The encoder of a model that was fitted on a table: data frames to feature rows.

    Parameters
    ----------
    recipe : dict
        How columns become features, as a source says and a model file stores it.
    """

    def __init__(self, recipe: dict[str, Any]) -> None:
        self.recipe = recipe

    def transform(self, frame: Any) -> Any:
        """Return the feature rows of a data frame; raise an error for a bad cell."""
        source = FrameSource(frame, recipe=self.recipe, labelled=False)
        parts = []
        for chunk in source.chunks(START):
            if chunk.bad:
                raise ValueError(str(chunk.bad[0]))
            parts.append(chunk.X)
        if not parts:
            return np.zeros((0, source.n_features), source.dtype)
        stack = sparse.vstack if sparse.issparse(parts[0]) else np.vstack
        return stack(parts)


def to_arrow(frame: Any) -> Any:
    """Convert a data frame to an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "to_arrow"):  # polars
        return frame.to_arrow()
    names = [str(name) for name in frame.columns]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(
            f"duplicate column name {min(twice)!r}: rename one of the columns"
        )
    return pa.table(
        {name: _array(frame.iloc[:, place]) for place, name in enumerate(names)}
    )


def _array(series: Any) -> Any:
    """Return a pandas column; mixed types are converted to text."""
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        missing = series.isna()
        texts = [
            None if none else str(value)
            for value, none in zip(series, missing, strict=True)
        ]
        return pa.array(texts, pa.string())
