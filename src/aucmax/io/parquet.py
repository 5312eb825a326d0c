"""Parquet, Arrow and Feather files, in record batches of bounded size.

The type of a column sets its kind: integers, floats, decimals and booleans are numbers
(false 0, true 1), strings and dictionaries of strings are categorical, dates and
timestamps are datetimes. Other types, such as nested ones, raise an error unless the
column is dropped or declared categorical. Nulls and NaN are missing values.

``Position.offset`` counts rows. Batches end where row groups do, and before that every
so many rows as follows from the number of columns: from any batch's end on, the same.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.io.chunk import BadLine, Chunk, Position
from aucmax.io.compression import STDIN, expand
from aucmax.io.csv_head import LOOKED_AT, listed, numbers_of, sample_of
from aucmax.io.csv_scan import tidy
from aucmax.io.digits import NAN, NONE
from aucmax.io.table_source import TableSource
from aucmax.tables.column_kinds import Sample
from aucmax.tables.missing_values import are_absent, as_bytes
from aucmax.tables.options import option
from aucmax.tables.schema import (
    Columns,
    Encode,
    Missing,
    Schema,
    Wishes,
    find,
    remedy,
)
from aucmax.tables.spans import Float, Spans, objects

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.ipc
    import pyarrow.parquet as pq
except ImportError:
    raise ImportError(
        "Reading Parquet and Arrow files needs pyarrow: pip install 'aucmax[data]'"
    ) from None

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
_BATCH = 1 << 22  # bytes that a batch may take when a value takes eight
# Seconds since 1970 of the years 1 to 9999; some databases have an infinity beyond.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800.0, 253_402_300_800.0
_FEWEST, _MOST = 1 << 8, 1 << 16  # rows of a batch
_MOST_LOOKED_AT = 4_000_000  # rows that some are taken from, to find out the same
_PARTS = 20  # of the data at least that are looked at, to find out what columns are


class ParquetSource(TableSource):
    """Rows of Parquet, Arrow or Feather files.

    Parameters
    ----------
    paths : sequence of str
        Files, patterns, directories (of which the files with such names are read).
    label, weight, drop, only, categorical, encode, text, numeric, date, hash_size, \
missing, na, decimal, dtype, extra, recipe, labelled
        See :class:`~aucmax.io.csv_source.CsvSource`.
    keep_text : bool, default=False
        Whether ``Chunk.raw`` is a ``RecordBatch`` of the rows with all their columns.
    """

    _format = "parquet"

    def __init__(
        self,
        paths: Sequence[str],
        *,
        label: str | int | None = None,
        weight: str | int | None = None,
        drop: Sequence[str] = (),
        only: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
        encode: Encode = "auto",
        text: Sequence[str] = (),
        numeric: Sequence[str] = (),
        date: Sequence[str] = (),
        hash_size: int | None = None,
        missing: Missing = "auto",
        na: Sequence[str] = (),
        decimal: str | None = None,
        dtype: Any = None,
        keep_text: bool = False,
        extra: Sequence[str] = (),
        recipe: dict[str, Any] | None = None,
        labelled: bool = True,
    ) -> None:
        files = _files(paths)
        self._sizes = [os.path.getsize(file) for file in files]
        super().__init__(
            files=files,
            size=sum(self._sizes),
            wishes=Wishes(
                label,
                weight,
                drop,
                only,
                categorical,
                text,
                numeric,
                date,
                encode,
                hash_size,
                missing,
                na,
                decimal,
            ),
            dtype=dtype,
            keep_text=keep_text,
            extra=extra,
            recipe=recipe,
            labelled=labelled,
        )

    def _opened(self, file: str) -> "Batches":
        return Batches(file)

    def _look(self) -> tuple[list[str], list[Sample], bool]:
        with self._opened(self.files[0]) as batches:
            arrow = batches.schema
            names = list(arrow.names)
            first, more = _some_rows(batches, arrow)
        wishes = self._wishes
        aside = [wishes.label, wishes.weight]
        spared = [*wishes.drop, *wishes.categorical, *wishes.text]
        used = set(range(len(names))) if wishes.only is None else set()
        used |= {find(names, name) for name in wishes.only or ()}
        used |= {find(names, name) for name in aside if name is not None}
        used -= {find(names, name) for name in spared}
        for i in sorted(used) if self._recipe is None else ():
            _check_type(self.files[0], names[i], arrow.types[i])
        for name in aside:
            if name is not None and _is_date(arrow.types[find(names, name)]):
                raise ValueError(
                    f"{self.files[0]}: column {name!r} has dates, which cannot be "
                    "labels or weights. Use another column, or convert it to numbers "
                    "or strings"
                )
        whole = not more and len(self.files) == 1
        samples = [_sample(column, whole, self._na) for column in first.columns]
        return names, samples, True

    def _read(
        self, schema: Schema, start: Position, dtype: Any, fill: Float | None
    ) -> Iterator[Chunk]:
        for number in range(start.file, len(self.files)):
            file = self.files[number]
            done = sum(self._sizes[:number])
            at = start.offset if number == start.file else 0
            with self._opened(file) as batches:
                names = list(batches.schema.names)
                place = self._locate(schema, names, file)
                wanted = schema.needed() + [
                    name for name in (schema.label, schema.weight) if name in place
                ]
                extra = {name: names[find(names, name)] for name in self._extra}
                needed = {*wanted, *extra.values()}
                columns = [name for name in names if name in needed]
                read = names if self._keep_text else columns
                size = min(max(_BATCH // 8 // max(len(read), 1), _FEWEST), _MOST)
                for batch, part in batches.read(read, at, size):
                    after = Position(number, at + len(batch), at + len(batch))
                    yield _chunk(
                        file,
                        schema,
                        batch,
                        place,
                        extra,
                        dtype,
                        fill,
                        after,
                        done + int(part * self._sizes[number]),
                        self._keep_text,
                    )
                    at = after.offset


def _files(paths: Sequence[str]) -> list[str]:
    files = []
    for path in [paths] if isinstance(paths, str) else paths:
        found = expand([path])
        if os.path.isdir(path):
            found = [name for name in found if name.endswith((*PARQUET, *ARROW))]
            if not found:
                raise FileNotFoundError(
                    f"{path}: the folder has no file that ends in "
                    f"{', '.join((*PARQUET, *ARROW))}"
                )
        files += found
    if STDIN in files:
        raise ValueError(
            "Parquet and Arrow data cannot be read from standard input: use a file"
        )
    return files


class Batches:
    """An open file of any of the formats."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._parquet: Any = None
        self._arrow: Any = None
        with open(file, "rb") as stream:
            magic = stream.read(6)
        try:
            if magic.startswith((b"PAR1", b"PARE")):
                self._parquet = self._handle = pq.ParquetFile(file, buffer_size=1 << 20)
                self.schema = self._parquet.schema_arrow
            elif magic == b"ARROW1" or magic.startswith(b"\xff\xff\xff\xff"):
                self._handle = pa.memory_map(file)
                is_file = magic == b"ARROW1"
                opened = pa.ipc.open_file if is_file else pa.ipc.open_stream
                self._arrow = opened(self._handle)
                self.schema = self._arrow.schema
            else:
                raise ValueError(
                    f"{file}: not a Parquet or Arrow file: it begins with {magic!r}"
                )
        except (pa.ArrowException, OSError) as error:
            raise self._broken(error) from error

    def __enter__(self) -> "Batches":
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()

    def _broken(self, error: Exception) -> OSError:
        return OSError(
            f"{self._file}: the file is corrupted or incomplete ({error}). Copy or "
            "write it again"
        )

    def group_sizes(self) -> list[int] | None:
        """Return the rows of each row group, if the file says so at its end."""
        if self._parquet is None:
            return None
        about = self._parquet.metadata
        return [about.row_group(i).num_rows for i in range(about.num_row_groups)]

    def read(
        self, columns: list[str], start: int, size: int
    ) -> Iterator[tuple[Any, float]]:
        """Yield at most ``size`` rows at a time, and how much of the file is done."""
        left = start
        try:
            for n_rows, batches, done in self._groups(columns, size):
                if left >= n_rows:
                    left -= n_rows
                    continue
                for batch in batches:
                    if left >= len(batch):
                        left -= len(batch)
                        continue
                    yield batch.slice(left), done
                    left = 0
        except (pa.ArrowException, OSError) as error:
            raise self._broken(error) from error
        if left:
            raise ValueError(
                f"{self._file}: cannot resume at row {start}: there are only "
                f"{start - left} rows, so this is not the file that was read before"
            )

    def _groups(
        self, columns: list[str], size: int
    ) -> Iterator[tuple[int, Any, float]]:
        """Yield the rows of each group, their number, and how much is done then."""
        if self._parquet is not None:
            n_groups = self._parquet.num_row_groups
            for i in range(n_groups):
                rows = self._parquet.iter_batches(
                    size, row_groups=[i], columns=columns, use_threads=False
                )
                n_rows = self._parquet.metadata.row_group(i).num_rows
                yield n_rows, rows, (i + 1) / n_groups
        elif isinstance(self._arrow, pa.ipc.RecordBatchFileReader):
            n_batches = self._arrow.num_record_batches
            for i in range(n_batches):
                batch = self._arrow.get_batch(i)
                yield len(batch), _slices(batch, columns, size), (i + 1) / n_batches
        else:
            for batch in self._arrow:
                done = self._handle.tell() / max(self._handle.size(), 1)
                yield len(batch), _slices(batch, columns, size), done


def _slices(batch: Any, columns: list[str], size: int) -> Iterator[Any]:
    batch = batch.select(columns)
    for at in range(0, len(batch), size):
        yield batch.slice(at, size)


def _some_rows(batches: Batches, arrow: Any) -> tuple[Any, bool]:
    """Return rows sampled from all data as one batch, and whether there are more."""
    found: list[Any] = []
    size, kept = LOOKED_AT // _PARTS, 1
    for count, (batch, _) in enumerate(batches.read(list(arrow.names), 0, size)):
        if count % kept == 0:
            found.append(batch)
            if len(found) > 2 * _PARTS:  # too many: from now on every other one
                found, kept = found[::2], 2 * kept
        if count * size > _MOST_LOOKED_AT:
            break
    more = kept > 1
    table = pa.Table.from_batches(found, arrow).combine_chunks()
    columns = [
        column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow), more


def _sample(column: Any, whole: bool, na: Sequence[str]) -> Sample:
    """Return a sample of the first values of a column."""
    kind = _value_type(column.type)
    declared = pa.types.is_dictionary(column.type)
    if _is_text(kind):
        sample = sample_of(_words(column, na), whole, na)
        # Whole numbers that were stored as strings are codes, if nothing else is there.
        clean = not sample.others and sample.missing == column.null_count
        declared |= clean and _all_digits(sample.listed()[0])
        return sample._replace(declared=declared)
    rows = len(column)

    @cache
    def values() -> tuple[list[str], NDArray[Any]]:
        if pa.types.is_nested(kind):  # for who drops it
            return [], np.zeros(0, np.int64)
        return listed(_spans(column))

    if not (_is_number(kind) or _is_date(kind)):  # or knows better
        return Sample(rows, None, rows, column.null_count, values, whole)
    numbers = _seconds(column) if _is_date(kind) else _numbers("", "", column)
    numbers = np.where(are_absent(na, numbers), np.nan, numbers)
    missing = int(np.count_nonzero(np.isnan(numbers)))
    types = _is_date(kind), bool(pa.types.is_boolean(kind)), declared
    return Sample(rows, numbers, 0, missing, values, whole, *types)


def _all_digits(values: Sequence[str]) -> bool:
    return bool(values) and all(re.fullmatch(r"\s*[+-]?\d+\s*", one) for one in values)


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: Any) -> bool:
    types = pa.types
    known = (types.is_string, types.is_large_string, types.is_string_view)
    return any(is_one(kind) for is_one in (*known, types.is_binary))


def _is_date(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_number(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    )


def _check_type(file: str, name: str, kind: Any) -> None:
    """Raise an error if the type of a column is not supported."""
    value = _value_type(kind)
    if _is_number(value) or _is_text(value) or _is_date(value):
        return
    raise ValueError(
        f"{file}: column {name!r} has the unsupported type {kind}. Use "
        f"{option('drop', name)}, or {option('categorical', name)} if it has few "
        "values"
    )


def _chunk(
    file: str,
    schema: Schema,
    batch: Any,
    place: dict[str, int],
    extra: dict[str, str],
    dtype: Any,
    fill: Float | None,
    after: Position,
    done: int,
    keep: bool,
) -> Chunk:
    """Return the valid rows of a batch, and the errors of the others."""
    n = len(batch)
    before = after.offset - n
    faults: dict[int, tuple[int, str, str]] = {}  # by row: the first column at fault
    order = {name: i for i, name in enumerate(batch.schema.names)}

    def blame(rows: NDArray[np.bool_], name: str, problem: str) -> None:
        # Of several faults in a row the first column's counts, as in text.
        for row in np.flatnonzero(rows).tolist():
            fault = (order[name], name, problem)
            faults[row] = min(faults.get(row, fault), fault)

    largest = np.finfo(dtype).max
    X = np.empty((n, len(schema.numbers)), dtype)
    for j, name in enumerate(schema.numbers):
        column = batch.column(name)
        if _is_text(_value_type(column.type)):
            values, missing, wrong = _written_numbers(_words(column, schema.na))
            blame(wrong, name, "the value is not a number, unlike the first values")
        else:
            values = _numbers(file, name, column)
            missing = np.isnan(values)
        if missing.any():
            if fill is None:
                blame(missing, name, f"the value is missing (null): {remedy(False)}")
            else:
                values = np.where(missing, fill[j], values)
        with np.errstate(invalid="ignore"):
            large = np.abs(values) > largest
        large |= np.isinf(values)
        if large.any():
            blame(large, name, f"the value is not finite, or too large for {dtype}")
            values = np.where(large, 0.0, values)
        X[:, j] = values
    categories = []
    for name in schema.categories:
        spans = _words(batch.column(name), schema.na)
        if fill is None and (missing := spans.stops < spans.starts).any():
            blame(missing, name, f"the value is missing (null): {remedy(True)}")
        categories.append(spans)
    others: list[Any] = []
    for name in [*schema.notated, *schema.dates]:
        column = batch.column(name)
        kind = _value_type(column.type)
        if name in schema.dates and _is_date(kind):
            seconds = _seconds(column)
            beyond = (seconds < _FIRST_SECOND) | (seconds > _LAST_SECOND)
            blame(beyond, name, "the date is outside the years 1 to 9999")
            others.append(np.where(beyond, 0.0, seconds))
        elif _is_number(kind):  # of other data than those the notation was found in
            others.append(_numbers(file, name, column))
        else:
            others.append(_words(column, schema.na))
        one = others[-1]
        known = one.stops >= one.starts if isinstance(one, Spans) else ~np.isnan(one)
        if fill is None and not known.all():
            blame(~known, name, f"the value is missing (null): {remedy(True)}")
    texts = [_spans(batch.column(name)) for name in schema.texts]
    label: Any = None
    if schema.label is not None and schema.label in place:
        column = batch.column(schema.label)
        if schema.label_is_number:
            label = _numbers(file, schema.label, column)
            missing = np.isnan(label)
            blame(np.isinf(label), schema.label, "the label is not finite")
        else:
            label = _words(column, ())
            missing = label.stops <= label.starts
        blame(missing, schema.label, "the label is missing")
    weight = None
    if schema.weight is not None and schema.weight in place:
        weight = _numbers(file, schema.weight, batch.column(schema.weight))
        blame(np.isnan(weight), schema.weight, "the weight is missing")
        blame(weight < 0, schema.weight, "the weight is negative")
        blame(np.isinf(weight), schema.weight, "the weight is not finite")
    aside = {key: _spans(batch.column(name)) for key, name in extra.items()}
    good: Any = slice(None)
    if faults:
        good = np.ones(n, bool)
        good[list(faults)] = False

    def chosen(spans: Spans) -> Spans:
        return Spans(spans.data, spans.starts[good], spans.stops[good])

    raw = None
    if keep:
        raw = batch.filter(pa.array(good)) if faults else batch
    return Chunk(
        X=Columns(
            X[good],
            [chosen(spans) for spans in categories],
            [chosen(spans) for spans in texts],
            [
                chosen(one) if isinstance(one, Spans) else _take(one, good)
                for one in others
            ],
        ),
        y=objects(chosen(label)) if isinstance(label, Spans) else _take(label, good),
        weight=_take(weight, good),
        extra={key: objects(chosen(spans)) for key, spans in aside.items()},
        bad=[
            BadLine(
                *(file, before + row + 1, name, problem, _text(batch, row)),
                row=batch.slice(row, 1) if keep else None,
            )
            for row, (_, name, problem) in sorted(faults.items())
        ],
        raw=raw,
        after=after,
        done=done,
        file=file,
        line=np.arange(before + 1, before + n + 1)[good],
    )


def _take(values: Float | None, good: Any) -> Float | None:
    return None if values is None else values[good]


def _text(batch: Any, row: int) -> bytes:
    """Return a row as text, for a message or the quarantine file."""
    names, values = batch.schema.names, [column[row] for column in batch.columns]
    found = dict(zip(names, map(_shown, values), strict=True))
    return repr(found).encode("utf-8", "replace")


def _shown(value: Any) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):  # a date that Python does not have
        short = pa.types.is_date32(value.type)
        return value.cast(pa.int32() if short else pa.int64()).as_py()


def _words(column: Any, na: Sequence[str]) -> Spans:
    """Return a column of strings with missing-value markers as null."""
    spans = _spans(column)
    tidy(*spans, as_bytes(na))
    return spans


def _written_numbers(spans: Spans) -> tuple[Float, Any, Any]:
    """Parse strings as numbers; return values, missing ones and malformed ones."""
    values, verdicts = numbers_of(spans)
    missing, wrong = verdicts == NAN, verdicts == NONE
    values[np.isnan(values) & ~missing & ~wrong] = np.inf  # or too large to be told
    return np.where(wrong, 0.0, values), missing, wrong


def _seconds(column: Any) -> Float:
    """Return times as seconds since 1970, NaN for missing."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_date32(kind):
        return _integers(column.cast(pa.int32())) * 86_400.0
    unit = "ms" if pa.types.is_date64(kind) else kind.unit
    whole = column.cast(pa.int64())
    if unit == "ns":  # as a float, it would lose the last digits
        missing = np.isnan(_integers(whole))
        micro = pc.fill_null(whole, 0).to_numpy(zero_copy_only=False) // 1000
        return np.where(missing, np.nan, micro / 1e6)
    return _integers(whole) / {"s": 1.0, "ms": 1e3, "us": 1e6}[unit]


def _numbers(file: str, name: str, column: Any) -> Float:
    """Return a column as floats, NaN for missing."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        if pa.types.is_boolean(column.type):  # Arrow casts integers to floats only
            column = column.cast(pa.uint8())
        elif pa.types.is_integer(column.type):
            return _integers(column)
        column = column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"{file}: column {name!r} must be numeric, as in the training data, but "
            f"its type is {column.type}: {error}"
        ) from error
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _integers(column: Any) -> Float:
    """Return the nearest floats; Arrow's cast rejects inexact integers."""
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    if column.null_count:
        values[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
    return values


def _spans(column: Any) -> Spans:
    """Return a column of strings, or of what becomes one, as slices of its bytes."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        values = _spans(column.dictionary)
        known = pc.is_valid(column).to_numpy(zero_copy_only=False)
        codes = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
        if not len(values.starts):
            nothing = np.zeros(len(column), np.int64)
            return Spans(values.data, nothing, nothing - 1)
        starts, stops = values.starts[codes], values.stops[codes]
        return Spans(values.data, starts, np.where(known, stops, -1))
    if not pa.types.is_large_binary(kind):
        column = column.cast(pa.large_string()) if _is_plain(kind) else column
        column = column.cast(pa.large_binary())
    _, offsets, data = column.buffers()
    at = np.frombuffer(offsets, np.int64)[
        column.offset : column.offset + len(column) + 1
    ]
    text = np.zeros(0, np.uint8)
    if data is not None:
        text = np.frombuffer(data, np.uint8).copy()  # read-only would compile again
    starts, stops = at[:-1].copy(), at[1:].copy()
    if column.null_count:
        stops[pc.is_null(column).to_numpy(zero_copy_only=False)] = -1
    return Spans(text, starts, stops)


def _is_plain(kind: Any) -> bool:
    """Return whether values of this type are converted to strings first."""
    return not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
