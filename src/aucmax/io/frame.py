"""The encoder of models that were fitted on a table: data frames to feature rows."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from aucmax.core.validation import DataWarning
from aucmax.io.arrow_source import FrameSource, check_numbers, to_arrow
from aucmax.io.table_source import warn_unknown
from aucmax.tables.encoder import TableEncoder
from aucmax.tables.schema import locate

_ROWS = 1 << 16  # encoded at a time
_SHOWN = 5  # columns that a warning names


class FrameEncoder:
    """Make feature rows of data frames.

    A malformed cell, such as "1.2o3" in a numeric column, counts as missing, with a
    warning. Files are stricter: see :class:`~aucmax.io.table_source.TableSource`.

    Parameters
    ----------
    recipe : dict
        How columns become features, as a source says and a model file stores it.
    """

    def __init__(self, recipe: dict[str, Any]) -> None:
        self.recipe = recipe

    @classmethod
    def fit(cls, frame: Any, **overrides: Any) -> "FrameEncoder":
        """Return the encoder for data frames like this one."""
        return cls(FrameSource(frame, labelled=False, **overrides).recipe())

    @property
    def column_of_feature(self) -> list[str]:
        """The column that each feature is made of."""
        return TableEncoder.from_json(self.recipe).column_of_feature

    def transform(self, frame: Any, report_unknown: bool = True) -> Any:
        """Return the feature rows of a data frame.

        ``report_unknown`` warns of categories that have no feature of their own.
        """
        encoder = TableEncoder.from_json(self.recipe, lenient=True)
        table = to_arrow(frame)
        locate(encoder.schema, table.column_names, "data frame")
        check_numbers("data frame", table.schema, encoder.schema)
        table = table.select(encoder.schema.needed())
        batches = table.combine_chunks().to_batches(max_chunksize=_ROWS)
        parts = [encoder.transform(batch).X for batch in batches]
        if report_unknown and encoder.unknown:
            warn_unknown(encoder)
        self._warn_malformed(encoder)
        if not parts:
            return np.zeros((0, encoder.n_features), encoder.dtype)
        if len(parts) == 1:
            return parts[0]
        return (sparse.vstack if sparse.issparse(parts[0]) else np.vstack)(parts)

    def _warn_malformed(self, encoder: TableEncoder) -> None:
        if not encoder.malformed:
            return
        counts = ", ".join(
            f"{count:,} in {name!r}"
            for name, count in encoder.malformed.most_common(_SHOWN)
        )
        warnings.warn(
            f"Malformed cells count as missing: {counts}. To keep them as categories, "
            "make the column categorical.",
            DataWarning,
            stacklevel=4,
        )
