"""TableEncoder: columns of a table to rows of features.

The features are, in this order: numbers, parsed numbers, dates, flags of missing
values, one-hot features, hashed features. The matrix is dense if all features are
numbers, else CSR.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning
from aucmax.tables.cells import (
    END_SECOND,
    FIRST_SECOND,
    Float,
    Words,
    is_date,
    is_number,
    numbers,
    seconds,
    shown,
    typed_numbers,
    words,
)
from aucmax.tables.column_kinds import MISSING_VALUE, PART, samples_of, spread_rows
from aucmax.tables.faults import Faults
from aucmax.tables.frames import check_numbers, check_type, is_nested, to_arrow
from aucmax.tables.hashing import Hashed, bag_of_words, hashed
from aucmax.tables.number_formats import NO, YES, read
from aucmax.tables.schema import (
    MOST_VALUES,
    Overrides,
    Schema,
    find,
    locate,
    make_schema,
    missing_value,
)

_DAY = 86_400.0  # seconds
_THURSDAY = 3  # the first of January 1970, Monday being 0
_ROWS = 1 << 16  # of a data frame that are encoded at a time
_SHOWN = 5  # columns that a warning names
_FEW_VALUES = 64  # of a category: with no more of them, new ones are unusual
_MOST_CODES = 50_000


class TableEncoder:
    """Encoder of the columns of a table as rows of features.

    Parameters
    ----------
    schema : Schema
        How columns become features, as found by :meth:`fit`.
    dtype : dtype, default=float64
        Type of the features.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from aucmax.tables.encoder import TableEncoder
    >>> table = pa.table({"age": [31, 47, 52], "town": ["Bath", "York", "Bath"]})
    >>> encoder = TableEncoder.fit(table)
    >>> encoder.column_of_feature
    ['age', 'town', 'town', 'town']
    >>> encoder.transform(table).toarray()
    array([[31.,  1.,  0.,  0.],
           [47.,  0.,  1.,  0.],
           [52.,  1.,  0.,  0.]])
    """

    def __init__(self, schema: Schema, dtype: Any = np.float64) -> None:
        self.schema, self.dtype = schema, np.dtype(dtype)

    @classmethod
    def fit(
        cls, frame: Any, overrides: Overrides | None = None, dtype: Any = np.float64
    ) -> "TableEncoder":
        """Return the encoder of data frames like this one.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, Table or RecordBatch of pyarrow
            The rows.
        overrides : Overrides, default=None
            Kinds of columns and options set by the user.
        dtype : dtype, default=float64
            Type of the features.
        """
        overrides, table = overrides or Overrides(), to_arrow(frame)
        names = table.column_names
        dropped = {find(names, one, "column to drop") for one in overrides.drop}
        spared = {find(names, one, "text column") for one in overrides.text}
        spared |= {
            find(names, one, "categorical column") for one in overrides.categorical
        }
        for place, field in enumerate(table.schema):
            if place in dropped or (place in spared and not is_nested(field.type)):
                continue
            check_type("data frame", field.name, field.type)
        batch, more = spread_rows(table.to_batches(PART), table.schema)
        samples = samples_of(batch, not more, overrides.na)
        encoder = cls(make_schema(table.column_names, samples, overrides), dtype)
        if encoder.schema.learns:
            encoder.learn(table.to_batches(_ROWS))
        return encoder

    def transform(self, frame: Any, warn_unknown: bool = True) -> Any:
        """Return the feature rows of a data frame.

        A malformed cell, such as "1.2o3" in a numeric column, counts as missing, with a
        warning. Files are stricter: see :mod:`aucmax.io.table_source`.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, Table or RecordBatch of pyarrow
            The rows.
        warn_unknown : bool, default=True
            Whether to warn about categories without a feature of their own.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features)
        """
        table = to_arrow(frame)
        locate(self.schema, table.column_names, "data frame")
        check_numbers("data frame", table.schema, self.schema)
        table = table.select(self.schema.needed()).combine_chunks()
        for field in table.schema:
            check_type("data frame", field.name, field.type)
        parts, malformed, unknown = [], Counter[str](), Counter[str]()
        for k, batch in enumerate(table.to_batches(max_chunksize=_ROWS)):
            faults = Faults(batch, lenient=True)
            parts.append(self.encode(batch, faults)[0])
            if faults.by_row:
                row, fault = min(faults.by_row.items())
                place = f"row {k * _ROWS + row + 1}, column {fault.column}"
                raise ValueError(f"{place}: {fault.problem}")
            malformed += faults.malformed
            unknown += faults.unknown
        if warn_unknown:
            warn_of_unknown(unknown, counted=False)
        _warn_of_malformed(malformed)
        if not parts:
            return np.zeros((0, self.n_features), self.dtype)
        if len(parts) == 1:
            return parts[0]
        return (sparse.vstack if sparse.issparse(parts[0]) else np.vstack)(parts)

    def learn(self, batches: Iterable[Any]) -> None:
        """Learn means and one-hot values in a pass over all data."""
        schema = self.schema
        imputes = schema.missing == "impute"
        listed = schema.encode in ("onehot", "codes")
        count, mean = np.zeros(len(schema.numbers)), np.zeros(len(schema.numbers))
        values: list[Counter[str]] = []
        if listed:
            values = [Counter() for _ in schema.categories]
        for batch in batches:
            faults = Faults(batch)
            table, _ = self._numbers(batch, faults)
            categories = self._categories(batch, faults)
            good = faults.good()
            chosen: Any = slice(None) if good is None else good
            if imputes:
                table = table[chosen]
                known = ~np.isnan(table)
                count += known.sum(axis=0)
                # The mean of numbers near the largest exists where the sum does not.
                part = np.where(known, table - mean, 0.0) / np.maximum(count, 1.0)
                mean += part.sum(axis=0)
            for seen, column in zip(values, categories, strict=False):
                times = column.take(chosen).counts().tolist()
                for value, often in zip(column.values, times, strict=True):
                    if often:
                        seen[shown(value)] += often
            if schema.encode == "onehot" and sum(map(len, values)) > MOST_VALUES:
                raise ValueError(
                    f"one-hot encoding would make more than {MOST_VALUES} features: "
                    "drop the columns with the most values, or use "
                    f"encode=hash"
                )
        self.schema = replace(
            schema,
            means=mean.tolist() if imputes else [],
            values=[
                sorted(_most_frequent(seen) if schema.encode == "codes" else seen)
                for seen in values
            ],
        )

    def encode(self, batch: Any, faults: Faults) -> tuple[Any, Float]:
        """Return the features and the numeric columns (NaN: missing) of a record batch.

        Rows with malformed cells are added to ``faults`` and left out.
        """
        plain, table = self._numbers(batch, faults)
        schema = self.schema
        categories = self._categories(batch, faults)
        good = faults.good()
        texts = [batch.column(name) for name in schema.texts]
        if good is not None:
            plain, table = plain[good], table[good]
            categories = [column.take(good) for column in categories]
            texts = [column.filter(good) for column in texts]
        if schema.encode == "codes":
            codes = [
                self._coded(j, column, faults) for j, column in enumerate(categories)
            ]
            table = np.column_stack([table, *codes]) if codes else table
            categories = []
        if not categories and not texts:
            return table, plain
        return self._sparse(table, categories, texts, faults), plain

    def to_json(self) -> dict[str, Any]:
        """Return the encoder as JSON values."""
        return {"dtype": self.dtype.name, **self.schema.to_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TableEncoder":
        """Return the encoder from the result of :meth:`to_json`."""
        return cls(Schema.from_json(content), content["dtype"])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.schema.n_features

    def get_feature_names_out(self, features: Sequence[int] | None = None) -> list[str]:
        """Return the names of features, by default of all."""
        return self.schema.feature_names(features)

    @property
    def column_of_feature(self) -> list[str]:
        """Source column of each feature."""
        return self.schema.feature_columns()

    @property
    def category_of_feature(self) -> NDArray[np.int64]:
        """Number of the category of each one-hot feature; -1 for other features."""
        return self.schema.feature_categories()

    def _categories(self, batch: Any, faults: Faults) -> list[Words]:
        schema = self.schema
        found = [words(batch.column(name), schema.na) for name in schema.categories]
        if schema.missing == "error":
            for name, column in zip(schema.categories, found, strict=True):
                faults.add(column.codes < 0, name, missing_value(category=True))
        return found

    def _check_size(self, values: Float, name: str, faults: Faults) -> None:
        with np.errstate(invalid="ignore"):
            large = np.abs(values) > np.finfo(self.dtype).max
        if large.any():
            problem = f"{{value}} is not finite, or too large for {self.dtype}"
            faults.add(large, name, problem)

    def _numbers(self, batch: Any, faults: Faults) -> tuple[Float, NDArray[Any]]:
        """Return the numeric columns (NaN: missing) and all numeric features."""
        schema = self.schema
        plain = np.empty((len(batch), len(schema.numbers)))
        for j, name in enumerate(schema.numbers):
            values, absent, malformed = numbers(batch.column(name), schema.na)
            faults.add_malformed(malformed, name, "number")
            if schema.missing == "error":
                faults.add(absent, name, missing_value())
            self._check_size(values, name, faults)
            plain[:, j] = values
        gaps = np.isnan(plain)
        filled = np.where(gaps, schema.fill, plain) if gaps.any() else plain
        if schema.n_numbers == len(schema.numbers):
            return plain, self._typed(filled)
        parts = [filled]
        missing = dict(zip(schema.numbers, gaps.T, strict=True))
        for name in [*schema.notated, *schema.dates]:
            values = self._parsed(batch.column(name), name, faults)
            missing[name] = np.isnan(values)
            if schema.missing != "keep":
                values = np.where(missing[name], schema.fills.get(name, 0.0), values)
            if name not in schema.dates:
                parts.append(values[:, None])
            elif schema.encode == "codes":
                parts.append(_coded_date(values))
            else:
                parts.append(_date(values, missing[name]))
        parts += [missing[name][:, None] for name in schema.flagged]
        return plain, np.hstack([self._typed(part) for part in parts])

    def _typed(self, values: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(over="ignore"):  # values too large are faults
            return values.astype(self.dtype, copy=False)

    def _parsed(self, column: Any, name: str, faults: Faults) -> Float:
        """Return the numbers of a column with a number format, or seconds of dates."""
        schema, dated = self.schema, name in self.schema.dates
        if dated and is_date(column.type):
            values = seconds(column)
            beyond = (values < FIRST_SECOND) | (values >= END_SECOND)
            faults.add(beyond, name, "the date is outside the years 1 to 9999")
            values = np.where(beyond, np.nan, values)
        elif is_number(column.type):  # other data than those the format was found in
            values = numbers(column, schema.na).values
            if dated:  # seconds, milliseconds and 20240101 look alike
                faults.add_malformed(~np.isnan(values), name, "date")
                values = np.full(len(column), np.nan)
        else:
            found = words(column, schema.na)
            values, malformed = read(schema.notation[name], found)
            if not dated and (typed := typed_numbers(column)).any():
                values = np.where(typed, numbers(column, schema.na).values, values)
                malformed &= ~typed
            kind = "date" if dated else "number"
            faults.add_malformed(malformed, name, kind)
        if schema.missing == "error":
            faults.add(np.isnan(values), name, missing_value(category=True))
        self._check_size(values, name, faults)
        return values

    def _sparse(
        self,
        table: NDArray[Any],
        categories: list[Words],
        texts: list[Any],
        faults: Faults,
    ) -> Any:
        """Return X as CSR: numbers, then categories, then hashed features."""
        schema, (n, width) = self.schema, table.shape
        # The features of a row, one per number and category; -1: no feature.
        places = np.empty((n, width + len(categories)), np.int32)
        values = np.empty(places.shape, self.dtype)
        places[:, :width], values[:, :width] = np.arange(width), table
        places[:, :width][table == 0.0] = -1
        first, is_sorted = schema.n_numbers, schema.encode != "hash"
        for j, column in enumerate(categories):
            tail = schema.tails[j] if schema.tails else 0
            if schema.encode == "hash":
                feature, sign = self._hashed(j, column, first)
            else:
                feature, sign = self._onehot(j, column, first, tail, faults)
                first += len(schema.values[j]) + tail
            places[:, width + j] = feature[column.codes]
            values[:, width + j] = sign[column.codes]
        known = places >= 0
        ends = np.append(0, np.cumsum(known.sum(axis=1)))
        shape = (n, schema.n_features)
        parts = values[known], places[known], ends.astype(np.int32)
        X = sparse.csr_array(parts, shape=shape)
        X.has_sorted_indices = X.has_canonical_format = is_sorted
        X.sum_duplicates()
        for name, column in zip(schema.texts, texts, strict=True):
            rows, (codes, vocabulary) = bag_of_words(column)
            feature, sign = hashed(name, vocabulary, schema.hash_size)
            at = rows.astype(np.int32), (first + feature[codes]).astype(np.int32)
            X = X + sparse.csr_array((sign[codes].astype(self.dtype), at), shape=shape)
            X.sum_duplicates()
        return X

    def _coded(self, j: int, column: Words, faults: Faults) -> NDArray[Any]:
        """Return the code of each row: NaN if missing, the last one if unknown."""
        name, known = self.schema.categories[j], self.schema.values[j]
        place = {value: i for i, value in enumerate(known)}
        other = float(len(known))
        found = [float(place.get(shown(value), other)) for value in column.values]
        codes = np.array([*found, np.nan], self.dtype)[column.codes]
        if len(known) <= _FEW_VALUES and (count := int((codes == other).sum())):
            faults.unknown[name] += count
        return codes

    def _hashed(self, j: int, column: Words, first: int) -> Hashed:
        """Return feature and sign of each value; the last item is for missing ones."""
        name = self.schema.categories[j]
        feature, sign = hashed(name, column.values, self.schema.hash_size)
        return Hashed(np.append(first + feature, -1), np.append(sign, 1))

    def _onehot(
        self, j: int, column: Words, first: int, tail: int, faults: Faults
    ) -> Hashed:
        """Return feature and sign of each value; the last item is for missing ones.

        Known values have features of their own; others share ``tail`` features.
        """
        schema = self.schema
        name, known = schema.categories[j], schema.values[j]
        place = {value: first + i for i, value in enumerate(known)}
        values = [shown(value) for value in column.values]
        if name in schema.spelt:
            place |= dict.fromkeys(YES, first) | dict.fromkeys(NO, -1)
            values = [value.lower() for value in values]
        found = np.array([place.get(value, -2) for value in values], np.int64)
        signs = np.ones(len(values), np.int64)
        new = found == -2
        if new.any() and tail <= 1:
            found[new] = first + len(known) if tail else -1
            count = int(np.isin(column.codes, np.flatnonzero(new)).sum())
            if count:
                faults.unknown[name] += count
        elif new.any():
            rest = [column.values[i] for i in np.flatnonzero(new)]
            feature, sign = hashed(name, rest, tail)
            found[new], signs[new] = first + len(known) + feature, sign
        missing = place.get(MISSING_VALUE, -1)
        return Hashed(np.append(found, missing), np.append(signs, 1))


def warn_of_unknown(unknown: Counter[str], counted: bool = True) -> None:
    """Warn about unknown categories; ``unknown`` counts rows by column.

    Without the counts, Python shows the warning of many chunks once.
    """
    if not unknown:
        return
    counts = ", ".join(
        f"{name!r}" + (f" in {count:,} row{'s' * (count > 1)}" if counted else "")
        for name, count in sorted(unknown.items())
    )
    warn_user(
        "Categories without a feature of their own, because they were rare in "
        f"training or are new: {counts}.",
        DataWarning,
    )


def _warn_of_malformed(malformed: Counter[str]) -> None:
    if not malformed:
        return
    columns = ", ".join(map(repr, sorted(malformed)[:_SHOWN]))
    warn_user(
        f"Malformed cells in {columns} count as missing. To keep them as categories, "
        "make the column categorical.",
        DataWarning,
    )


def _most_frequent(counts: Counter[str]) -> list[str]:
    """Return the values that get a code: all, unless there are very many."""
    order = sorted(((count, value) for value, count in counts.items()), reverse=True)
    return [value for _, value in order[:_MOST_CODES]]


def _coded_date(values: Float) -> Float:
    """Return days since 1970, month, weekday (Monday is 0) and hour."""
    missing = np.isnan(values)
    days = np.floor(np.where(missing, 0.0, values) / _DAY)
    month = days.astype("M8[D]").astype("M8[M]").astype(np.int64) % 12 + 1
    weekday = (days.astype(np.int64) + _THURSDAY) % 7
    hour = np.where(missing, 0.0, values) % _DAY / 3600.0
    parts = np.column_stack([values / _DAY, month, weekday, hour])
    parts[missing] = np.nan
    return parts


def _date(values: Float, missing: NDArray[np.bool_]) -> Float:
    """Return days since 1970, a feature for each day of the week, and the hour."""
    days = values / _DAY
    weekday = (np.floor(days).astype(np.int64) + _THURSDAY) % 7
    week = (weekday[:, np.newaxis] == np.arange(7)) & ~missing[:, np.newaxis]
    hour = np.where(missing, 0.0, (values % _DAY) / 3600.0)
    return np.column_stack([days, week, hour])
