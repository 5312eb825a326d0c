"""Common base of the readers of tables, CSV or Arrow.

A reader gives chunks whose X is :class:`~aucmax.tables.schema.Columns`; here they
become features.
"""

import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from aucmax.core.validation import DataWarning
from aucmax.io.background import prefetch
from aucmax.io.chunk import START, BadLine, Chunk, Lines, Position
from aucmax.tables.column_kinds import Sample
from aucmax.tables.encode import encode
from aucmax.tables.hashed_names import Word, words_behind
from aucmax.tables.labels import Task
from aucmax.tables.missing_values import are_absent
from aucmax.tables.number_formats import read
from aucmax.tables.options import option
from aucmax.tables.schema import (
    Columns,
    Schema,
    Wishes,
    find,
    learn,
    locate,
    make_schema,
    remedy,
)
from aucmax.tables.spans import Float, Spans, decode

_ENOUGH = 100  # rows of a chunk, to tell that a column has changed


class TableSource:
    """Base class of table readers; the parameters are those of CsvSource."""

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
            raise ValueError(f"dtype must be float32 or float64, not {self.dtype}")
        self._wishes = wishes
        self._keep_text = keep_text
        self._extra = list(extra)
        self._recipe = recipe
        self._labelled = labelled
        self._noted: set[str] = set()  # columns that a warning was about
        self.unknown: Counter[str] = Counter()  # values that a model has never seen
        self._na: Sequence[str] = (recipe or {}).get("na") or wishes.na

    def _look(self) -> tuple[list[str], list[Sample], bool]:
        """Return the names of columns, their first rows, whether named at all."""
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
        """The schema of the columns; reads as many rows as needed."""
        if self._recipe is not None:
            return self._adopted(Schema.from_json(self._recipe))
        names, samples, header = self._look()
        schema = make_schema(names, samples, self._wishes, header)
        if not schema.learns:
            return schema
        if self.size is None:
            raise ValueError(
                "Imputation and one-hot encoding read all data twice, and standard "
                "input or another pipe can be read only once. Use a file, or "
                f"{option('missing', 'zero')} and "
                f"{option('encode', 'hash')}"
            )
        imputes = schema.missing == "impute"
        fill = np.full(len(schema.numbers), np.nan if imputes else 0.0)
        refuse = schema.missing == "error"
        chunks = self._read(schema, START, np.float64, None if refuse else fill)
        return learn(schema, (_blanked(schema, chunk, fill).X for chunk in chunks))

    def _adopted(self, schema: Schema) -> Schema:
        """Return a model's schema with the label and the weight of these data."""
        label, weight = self._wishes.label, self._wishes.weight
        if label in (None, schema.label) and weight in (None, schema.weight):
            return schema
        names, samples, _ = self._look()
        if label is not None:
            place = find(names, label, "label column")
            forced = [find(names, one) for one in self._wishes.categorical]
            is_number = not samples[place].others and place not in forced
            schema = replace(schema, label=names[place], label_is_number=is_number)
        if weight is not None:
            place = find(names, weight, "weight column")
            schema = replace(schema, weight=names[place])
        if feature := {schema.label, schema.weight} & {*schema.needed()}:
            raise ValueError(
                f"column {min(feature, key=str)!r} is a feature of the model and "
                "cannot be its label or weight"
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
            self._note_changes(chunk)
            chunk = _parsed(schema, _blanked(schema, chunk, fill), self.dtype)
            X = encode(schema, chunk.X, self.dtype, self.unknown)
            yield chunk._replace(X=X)
        if self._recipe is not None and self.unknown:
            self._note_unknown()

    def _note_changes(self, chunk: Chunk) -> None:
        """Warn once about each column that has changed since its kind was inferred."""
        if len(chunk.line) < _ENOUGH:
            return
        told = {role["name"]: role for role in self.schema.roles}
        for name, values in zip(self.schema.numbers, chunk.X.numbers.T, strict=True):
            role = told.get(name)
            if role is None or name in self._noted:
                continue
            here = values[~np.isnan(values)]
            low, high = role.get("low", 0.0), role.get("high", 0.0)
            far = (here < 2 * low - high) | (here > 2 * high - low)
            if not len(here) and 2 * role["missing"] < role["rows"]:
                problem = "all values are missing"
            elif low < high and 2 * np.count_nonzero(far) > len(here):
                problem = (
                    f"most values are far from the first ones, {low:.6g} to {high:.6g}"
                )
            else:
                continue
            self._noted.add(name)
            lines = f"rows {chunk.line[0]:,} to {chunk.line[-1]:,}"
            warnings.warn(
                f"{chunk.file}, {lines}: column {name!r}: {problem}. Check its source "
                "and its unit.",
                DataWarning,
                stacklevel=2,
            )

    def _note_unknown(self) -> None:
        """Warn about categories that are new or were rare in training."""
        some = ", ".join(
            f"{name!r} in {count:,} row" + ("s" if count > 1 else "")
            for name, count in sorted(self.unknown.items())
        )
        warnings.warn(
            "Categories without a feature of their own, because they are new or were "
            f"rare in training: {some}.",
            DataWarning,
            stacklevel=2,
        )

    def recipe(self) -> dict[str, Any]:
        """Return the reader options and the schema as JSON."""
        return {
            "format": self._format,
            "dtype": self.dtype.name,
            **self.schema.to_json(),
        }

    def words(self, features: Collection[int]) -> list[Word]:
        """Return hashed feature names that occur in the first rows."""
        schema = self.schema
        if not schema.hashed:
            return []
        names, samples, _ = self._look()
        cells = {
            name: sample.listed for name, sample in zip(names, samples, strict=True)
        }
        return words_behind(schema, cells, features)

    def feature_names(self) -> list[str]:
        """Return what each column of X is."""
        return self.schema.feature_names()


def _blanked(schema: Schema, chunk: Chunk, fill: Float | None) -> Chunk:
    """Return the chunk with numeric missing-value markers as missing.

    ``fill`` is put there; if there is none, their rows become bad lines.
    """
    if not schema.na:
        return chunk
    columns: Columns = chunk.X
    gone = are_absent(schema.na, columns.numbers)
    others = [
        one
        if isinstance(one, Spans)
        else np.where(are_absent(schema.na, one), np.nan, one)
        for one in columns.others
    ]
    chunk = chunk._replace(X=columns._replace(others=others))
    if not gone.any():
        return chunk
    if fill is None:
        faults = {
            row: (
                schema.numbers[column],
                f"the value {columns.numbers[row, column]:g} is a missing-value "
                f"marker: {remedy(False)}",
            )
            for row, column in reversed(np.argwhere(gone).tolist())
        }
        return _without(chunk, faults)
    numbers = np.where(gone, fill.astype(columns.numbers.dtype), columns.numbers)
    return chunk._replace(X=chunk.X._replace(numbers=numbers))


def _parsed(schema: Schema, chunk: Chunk, dtype: Any) -> Chunk:
    """Return the chunk with special number formats parsed.

    Rows where that is none become bad lines.
    """
    columns: Columns = chunk.X
    names = [*schema.notated, *schema.dates]
    others: list[Any] = []
    faults: dict[int, tuple[str, str]] = {}
    for name, column in zip(names, columns.others, strict=True):
        values, wrong = column, False
        if isinstance(column, Spans):
            values, wrong = read(schema.notation[name], column)
        large = np.abs(values) > np.finfo(dtype).max
        others.append(values)
        for row in np.flatnonzero(wrong | large).tolist():
            kind = "date" if name in schema.dates else "number"
            problem = f"the value is not finite, or too large for {dtype}"
            if not large[row]:
                problem = (
                    f"the value {_text(column, row)!r} is not a {kind}, unlike the "
                    f"first ones: {option('categorical', name)} reads the column "
                    "as categorical"
                )
            faults.setdefault(row, (name, problem))
    chunk = chunk._replace(X=columns._replace(others=others))
    return _without(chunk, faults) if faults else chunk


def _text(spans: Spans, row: int) -> str:
    return decode(spans.data[spans.starts[row] : spans.stops[row]].tobytes())


def _without(chunk: Chunk, faults: dict[int, tuple[str, str]]) -> Chunk:
    """Return the chunk with some rows marked as malformed lines."""
    good = np.ones(len(chunk.line), bool)
    good[list(faults)] = False
    bad = [
        BadLine(
            chunk.file,
            int(chunk.line[row]),
            name,
            problem,
            _line(chunk.raw, row),
            row=chunk.raw.slice(row, 1) if hasattr(chunk.raw, "slice") else None,
        )
        for row, (name, problem) in faults.items()
    ]

    def chosen(spans: Spans) -> Spans:
        return Spans(spans.data, spans.starts[good], spans.stops[good])

    columns: Columns = chunk.X
    raw = chunk.raw
    if isinstance(raw, Lines):
        raw = Lines(raw.data, raw.starts[good], raw.stops[good])
    elif raw is not None:
        raw = raw.filter(good)
    return chunk._replace(
        X=Columns(
            columns.numbers[good],
            [chosen(spans) for spans in columns.categories],
            [chosen(spans) for spans in columns.texts],
            [
                chosen(one) if isinstance(one, Spans) else one[good]
                for one in columns.others
            ],
        ),
        y=None if chunk.y is None else chunk.y[good],
        weight=None if chunk.weight is None else chunk.weight[good],
        bad=sorted([*chunk.bad, *bad], key=lambda line: line.line),
        raw=raw,
        extra={name: values[good] for name, values in chunk.extra.items()},
        line=chunk.line[good],
    )


def _line(raw: Any, row: int) -> bytes:
    """Return the stored text of a row."""
    if isinstance(raw, Lines):
        return raw.data[raw.starts[row] : raw.stops[row]]
    return b""
