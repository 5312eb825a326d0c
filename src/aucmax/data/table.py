"""What readers of tables, CSV or Arrow, have in common.

A reader gives chunks whose X is :class:`~aucmax.data.schema.Columns`; here they become
features.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from aucmax.data.chunk import START, Chunk, Position
from aucmax.data.encode import encode
from aucmax.data.prefetch import prefetch
from aucmax.data.schema import Schema, Wishes, find, learn, locate, make_schema
from aucmax.data.spans import Float
from aucmax.data.task import Task


class TableSource:
    """What readers of tables have in common; the parameters are those of CsvSource."""

    _format: ClassVar[str]
    task: Task | None = None  # nobody but the user knows which labels are positive

    def __init__(
        self,
        files: Sequence[str],
        size: int | None,
        wishes: Wishes,
        dtype: Any,
        keep_text: bool,
        extra: Sequence[str],
        recipe: Mapping[str, Any] | None,
        labelled: bool,
    ) -> None:
        self.files = list(files)
        self.size = size
        known = recipe["dtype"] if recipe is not None else np.float64
        self.dtype = np.dtype(known if dtype is None else dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype is float32 or float64, not {self.dtype}")
        self._wishes = wishes
        self._keep_text = keep_text
        self._extra = list(extra)
        self._recipe = recipe
        self._labelled = labelled

    def _look(self) -> tuple[list[str], list[bool], bool]:
        """Return the names of columns, which ones are numbers, whether named at all."""
        raise NotImplementedError

    def _read(
        self, schema: Schema, start: Position, dtype: Any, fill: Float | None
    ) -> Iterator[Chunk]:
        """Read on from ``start``, chunks whose X is :class:`Columns`.

        ``fill`` is put for missing numbers, unless None.
        """
        raise NotImplementedError

    @cached_property
    def schema(self) -> Schema:
        """How columns become features; reads as much as it takes to know."""
        if self._recipe is not None:
            return self._adopted(Schema.from_json(self._recipe))
        names, number, header = self._look()
        schema = make_schema(names, number, self._wishes, header)
        if not schema.learns:
            return schema
        if self.size is None:
            raise ValueError(
                "To impute and to encode one-hot, all data are read once before the "
                "features are known, and standard input or another pipe can be read "
                "only once: give a file, or choose --missing zero and encode by hash"
            )
        imputes = schema.missing == "impute"
        fill = np.full(len(schema.numbers), np.nan if imputes else 0.0)
        refuse = schema.missing == "error"
        chunks = self._read(schema, START, np.float64, None if refuse else fill)
        return learn(schema, (chunk.X for chunk in chunks))

    def _adopted(self, schema: Schema) -> Schema:
        """Return a model's schema with the label and the weight of these data."""
        label, weight = self._wishes.label, self._wishes.weight
        if label in (None, schema.label) and weight in (None, schema.weight):
            return schema
        names, number, _ = self._look()
        if label is not None:
            place = find(names, label, "label column")
            forced = [find(names, one) for one in self._wishes.categorical]
            is_number = number[place] and place not in forced
            schema = replace(schema, label=names[place], label_is_number=is_number)
        if weight is not None:
            place = find(names, weight, "weight column")
            schema = replace(schema, weight=names[place])
        if feature := {schema.label, schema.weight} & {*schema.needed()}:
            raise ValueError(
                f"column {min(feature, key=str)!r} is a feature of the model, and "
                "cannot be its label or weight as well"
            )
        return schema

    def _locate(
        self, schema: Schema, names: Sequence[str], file: str
    ) -> dict[str, int]:
        """Return where the columns are that are read, and maybe others."""
        place = locate(schema, names, file)
        if not self._labelled:
            aside = (schema.label, schema.weight)
            place = {name: i for name, i in place.items() if name not in aside}
        return place

    @property
    def n_features(self) -> int:
        """Width of X."""
        return self.schema.n_features

    def chunks(self, start: Position = START) -> Iterator[Chunk]:
        """Read on from ``start``."""
        schema = self.schema
        fill = None if schema.missing == "error" else schema.fill
        chunks = self._read(schema, start, self.dtype, fill)
        if schema.categories or schema.texts:  # the next ones are cut while we hash
            chunks = prefetch(chunks)
        for chunk in chunks:
            yield chunk._replace(X=encode(schema, chunk.X, self.dtype))

    def recipe(self) -> dict[str, Any]:
        """Return, for JSON, how columns become features."""
        return {
            "format": self._format,
            "dtype": self.dtype.name,
            **self.schema.to_json(),
        }

    def feature_names(self) -> list[str]:
        """Return what each column of X is."""
        return self.schema.feature_names()
