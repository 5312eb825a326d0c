"""Base class of table readers: record batches of Arrow to rows of features."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aucmax.core.validation import DataWarning
from aucmax.io.background import prefetch
from aucmax.io.batch import START, BadLine, Batch, Lines, Position
from aucmax.tables.cells import Float, numbers, words
from aucmax.tables.column_kinds import Sample
from aucmax.tables.encoder import TableEncoder, warn_of_unknown
from aucmax.tables.faults import Faults
from aucmax.tables.labels import Task
from aucmax.tables.missing_values import MISSING
from aucmax.tables.schema import Overrides, Schema, find, locate, make_schema

_NO_LABEL = tuple(marker for marker in MISSING if marker != "None")  # may be a class
_ENOUGH = 100  # rows of a batch by which a change of a column is noticed


class TableSource:
    """Base class of CSV and Arrow sources."""

    _format: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset(  # that open_data passes on
        [one.name for one in fields(Overrides)]
        + ["dtype", "keep_text", "extra", "labelled"]
    )
    task: Task | None = None  # only the user knows which labels are positive

    def __init__(
        self,
        files: Sequence[str],
        size: int | None,
        *,
        dtype: Any = None,
        keep_text: bool = False,
        extra: Sequence[str] = (),
        recipe: Mapping[str, Any] | None = None,
        labelled: bool = True,
        **overrides: Any,
    ) -> None:
        self.files, self.size = list(files), size
        known = recipe["dtype"] if recipe is not None else np.float64
        self.dtype = np.dtype(known if dtype is None else dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype is float32 or float64, not {self.dtype}")
        self._overrides = Overrides(**overrides)
        self._keep_text, self._extra = keep_text, list(extra)
        self._recipe, self._labelled = recipe, labelled
        self._noted: set[str] = set()  # columns that a warning was about
        self._na: Sequence[str] = (recipe or {}).get("na") or self._overrides.na

    def _sample(self) -> tuple[list[str], list[Sample], bool]:
        """Return the names of the columns, samples of them, whether they have names."""
        raise NotImplementedError

    def _tables(self, schema: Schema, start: Position) -> Iterator[Batch]:
        """Read batches whose rows are record batches with the columns needed.

        They have their text, and the extra columns as Arrow arrays.
        """
        raise NotImplementedError

    @cached_property
    def encoder(self) -> TableEncoder:
        """How columns become features; reads as much as it takes to know."""
        if self._recipe is not None:
            schema = self._adopted(Schema.from_json(self._recipe))
            return TableEncoder(schema, self.dtype)
        names, samples, header = self._sample()
        schema = make_schema(names, samples, self._overrides, header)
        encoder = TableEncoder(schema, self.dtype)
        if not schema.learns:
            return encoder
        if self.size is None:
            raise ValueError(
                "To impute and to encode one-hot, all data are read once before the "
                "features are known, and a pipe can be read only once: give a file, or "
                "use missing=zero and encode=hash"
            )
        encoder.learn(batch.rows for batch in self._tables(schema, START))
        return encoder

    @property
    def schema(self) -> Schema:
        """How columns become features."""
        return self.encoder.schema

    def _adopted(self, schema: Schema) -> Schema:
        """Return a model's schema with the label and the weight of these data."""
        label, weight = self._overrides.label, self._overrides.weight
        if label in (None, schema.label) and weight in (None, schema.weight):
            return schema
        names, samples, _ = self._sample()
        if label is not None:
            place = find(names, label, "label column")
            forced = [find(names, one) for one in self._overrides.categorical]
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
    ) -> tuple[list[str], dict[str, str]]:
        """Return what the columns of a file are called here, and the extra ones."""
        called = locate(schema, names, file)
        return called, {name: called[find(names, name)] for name in self._extra}

    def _needed(self, schema: Schema, names: Sequence[str]) -> list[str]:
        """Return the columns to read: features, and the label and the weight if any."""
        aside = (schema.label, schema.weight) if self._labelled else ()
        return schema.needed() + [name for name in aside if name and name in names]

    @property
    def n_features(self) -> int:
        """Width of X."""
        return self.schema.n_features

    def batches(self, start: Position = START) -> Iterator[Batch]:
        """Read batches from ``start`` on."""
        encoder, unknown = self.encoder, Counter[str]()
        for batch in prefetch(self._tables(encoder.schema, start)):
            faults = Faults(batch.rows)
            yield self._encoded(encoder, batch, faults)
            unknown += faults.unknown
        if self._recipe is not None:
            warn_of_unknown(unknown)

    def _encoded(self, encoder: TableEncoder, batch: Batch, faults: Faults) -> Batch:
        """Return the features, labels and weights of a batch of columns."""
        table, schema, text = batch.rows, encoder.schema, batch.text
        present = {*table.schema.names} if self._labelled else set()
        labels = weights = None
        if schema.label is not None and schema.label in present:
            labels = _label(table, schema.label, schema.label_is_number, faults)
        if schema.weight is not None and schema.weight in present:
            weights = _weight(table, schema.weight, faults)
        X, plain = encoder.encode(table, faults)
        good = faults.good()
        chosen: Any = slice(None) if good is None else good
        malformed = list(batch.malformed)
        for row, fault in faults.by_row.items():
            if faults.unlabelled[row]:
                continue
            place = batch.file, int(batch.line_numbers[row]), fault.column
            line = text.line(row) if isinstance(text, Lines) else _row_text(text, row)
            copied = self._keep_text and not isinstance(text, Lines)
            whole = text.slice(row, 1) if copied else None
            malformed.append(BadLine(*place, fault.problem, line, whole))
        line_numbers = batch.line_numbers[chosen]
        self._warn_changes(batch.file, line_numbers, plain)
        if not self._keep_text:
            text = None
        elif good is not None:
            text = text.filter(good)
        return batch._replace(
            rows=X,
            labels=None if labels is None else labels[chosen],
            weights=None if weights is None else weights[chosen],
            line_numbers=line_numbers,
            malformed=sorted(malformed, key=lambda line: line.line),
            text=text,
            extra={
                name: words(column, markers=()).take(chosen).objects()
                for name, column in batch.extra.items()
            },
            unlabelled=int(faults.unlabelled.sum()),
        )

    def _warn_changes(self, file: str, lines: Any, plain: Float) -> None:
        """Warn once of each column that differs from the rows its kind was found by."""
        if len(lines) < _ENOUGH:
            return
        known = {role["name"]: role for role in self.schema.roles}
        for name, values in zip(self.schema.numbers, plain.T, strict=True):
            role = known.get(name)
            if role is None or name in self._noted:
                continue
            here = values[~np.isnan(values)]
            low, high = role.get("low", 0.0), role.get("high", 0.0)
            far = (here < 2 * low - high) | (here > 2 * high - low)
            if not len(here) and 2 * role["missing"] < role["rows"]:
                problem = "all values are missing"
            elif low < high and 2 * np.count_nonzero(far) > len(here):
                problem = (
                    f"most values are far from those of the first rows, {low:.6g} to "
                    f"{high:.6g}"
                )
            else:
                continue
            self._noted.add(name)
            warnings.warn(
                f"{file}, rows {lines[0]:,} to {lines[-1]:,}: column {name!r}: "
                f"{problem}. Check its source and its unit.",
                DataWarning,
                stacklevel=2,
            )

    def recipe(self) -> dict[str, Any]:
        """Return, for JSON, how columns become features."""
        return {"format": self._format, **self.encoder.to_json()}

    def feature_names(self) -> list[str]:
        """Return the name of each feature."""
        return self.encoder.get_feature_names_out()


def _label(batch: Any, name: str, is_number: bool, faults: Faults) -> NDArray[Any]:
    column = batch.column(name)
    if not is_number:
        found = words(column, markers=_NO_LABEL)
        faults.unlabelled |= found.codes < 0
        return found.objects()
    values, missing, malformed = numbers(column)
    faults.add(malformed, name, "the label {value} is not a number, as the first were")
    faults.unlabelled |= missing
    faults.add(np.isinf(values), name, "the label {value} is not finite")
    return values


def _weight(batch: Any, name: str, faults: Faults) -> Float:
    values, missing, malformed = numbers(batch.column(name))
    faults.add(malformed, name, "the weight {value} is not a number")
    faults.add(missing, name, "the weight is missing")
    faults.add(values < 0.0, name, "the weight {value} is negative")
    faults.add(np.isinf(values), name, "the weight {value} is not finite")
    return values


def _row_text(table: Any, row: int) -> bytes:
    """Return a row of an Arrow file as text."""
    columns = zip(table.schema.names, table.columns, strict=True)
    found = {name: _shown(column[row]) for name, column in columns}
    return repr(found).encode("utf-8", "replace")


def _shown(value: Any) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):  # a date that Python does not have
        short = pa.types.is_date32(value.type)
        return value.cast(pa.int32() if short else pa.int64()).as_py()
