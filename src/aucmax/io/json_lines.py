"""Reader of JSON lines, one object per line: blocks of lines, parsed by Arrow.

Fields of nested objects are columns with dots in their names, such as ``user.age``. A
key that a line lacks is a missing value.
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pajson
from numpy.typing import NDArray

from aucmax.core.validation import DataWarning
from aucmax.io.batch import BadLine, Batch, Lines, Position
from aucmax.io.table_source import TableSource
from aucmax.io.text import BLOCK, Bytes, Text, empty_input
from aucmax.tables.column_kinds import Sample
from aucmax.tables.samples import LOOKED_AT, one_batch, samples_of
from aucmax.tables.schema import Schema, find

_NEWLINE = ord("\n")


class JsonLinesSource(TableSource):
    """Rows of files with one JSON object per line.

    Parameters
    ----------
    paths : sequence of str or Text
        Files, patterns, folders; "-" is standard input.
    prompt : bool, default=False
        Whether to yield rows of a pipe as soon as they arrive.
    keep_text : bool, default=False
        Whether ``Batch.text`` has the text of the rows.
    **options
        As for :class:`~aucmax.io.csv_source.CsvSource`, except those of CSV text.
    """

    _format = "jsonl"
    options = TableSource.options | {"prompt"}

    def __init__(
        self, paths: Sequence[str] | Text, *, prompt: bool = False, **options: Any
    ) -> None:
        self._text = paths if isinstance(paths, Text) else Text(paths)
        self._prompt = prompt
        super().__init__(self._text.files, self._text.size, **options)

    @cached_property
    def _first(self) -> tuple[Any, Any, bool]:
        """Types of the columns, the first rows, and whether there are more."""
        for number, file in enumerate(self.files):
            with self._text.reader(number, BLOCK, prompt=self._prompt) as reader:
                data, final = reader.peek()
            lines = split(data)
            if not len(lines.starts):
                continue
            types = find_types(lines)
            batch, _, problems = parse(lines, types)
            if not len(batch):
                raise ValueError(f"{file}, line 1: {problems[0]}")
            more = not final or len(batch) > LOOKED_AT or len(self.files) > 1
            return types, batch.slice(0, LOOKED_AT), more
        raise empty_input(self.files)

    def _sample(self) -> tuple[list[str], list[Sample], bool]:
        _, batch, more = self._first
        return list(batch.schema.names), samples_of(batch, not more, self._na), True

    def _tables(self, schema: Schema, start: Position) -> Iterator[Batch]:
        types, first, _ = self._first
        names = first.schema.names
        self._check_columns(schema, names)
        extra = {name: names[find(names, name)] for name in self._extra}
        wanted = [*schema.needed(), *extra.values()]
        if self._labelled:
            wanted += [name for name in (schema.label, schema.weight) if name]
        for block in self._text.blocks(start, self._prompt):
            lines = split(block.data)
            if not len(lines.starts):
                continue
            batch, good, problems = parse(lines, types, [*dict.fromkeys(wanted)])
            numbers = block.start.line + 1 + _line_numbers(block.data, lines.starts)
            yield Batch(
                rows=batch,
                labels=None,
                weights=None,
                line_numbers=numbers[good],
                malformed=[
                    BadLine(block.file, int(numbers[row]), None, text, lines.line(row))
                    for row, text in problems.items()
                ],
                end=block.end,
                file=block.file,
                done=block.done,
                text=lines.filter(good),
                extra={key: batch.column(name) for key, name in extra.items()},
            )

    def _check_columns(self, schema: Schema, names: Sequence[str]) -> None:
        """Raise an error if all columns of the model are missing; warn about some."""
        absent = [name for name in schema.needed() if name not in names]
        if absent and len(absent) == len(schema.needed()):
            raise ValueError(
                f"{self.files[0]} has none of the columns that the model needs, such "
                f"as {absent[0]!r}; it has {', '.join(map(repr, names[:12]))}"
            )
        if absent and not self._prompt:
            warnings.warn(
                f"{self.files[0]}: the first lines have no key "
                f"{', '.join(map(repr, absent))}: its values count as missing.",
                DataWarning,
                stacklevel=2,
            )


def split(data: Bytes) -> Lines:
    """Return the lines that are not blank, without surrounding blanks."""
    text = data.tobytes()
    ends = np.append(np.flatnonzero(data == _NEWLINE), len(data))
    starts = np.append(0, ends[:-1] + 1)
    for k, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        line = text[start:end]
        starts[k] = start + len(line) - len(line.lstrip())
        ends[k] = start + len(line.rstrip())
    present = starts < ends
    return Lines(text, starts[present], ends[present])


def parse(
    lines: Lines, types: Any, wanted: Sequence[str] | None = None
) -> tuple[Any, NDArray[np.intp], dict[int, str]]:
    """Return a record batch, the lines that it has, and the problems of other lines.

    ``types`` is the result of :func:`find_types`; ``wanted`` are the columns to return.
    """
    rows = np.arange(len(lines.starts))
    table = None if types is None else _read(lines, types)
    problems: dict[int, str] = {}
    if table is not None:
        while any(map(pa.types.is_struct, table.schema.types)):
            table = table.flatten()
    else:
        found: dict[int, dict[str, Any]] = {}
        for row in rows.tolist():
            try:
                found[row] = _flat(json.loads(lines.line(row)))
            except (ValueError, RecursionError) as error:
                problems[row] = f"this is not a JSON object: {error}"
        rows = np.array([*found], np.intp)
        names = dict.fromkeys(name for one in found.values() for name in one)
        table = pa.table(
            {name: _column([one.get(name) for one in found.values()]) for name in names}
        )
    if wanted is not None:
        absent = [name for name in wanted if name not in table.column_names]
        for name in absent:
            table = table.append_column(name, pa.nulls(len(rows), pa.string()))
        table = table.select(list(wanted))
    return one_batch(table), rows, problems


def find_types(lines: Lines) -> Any:
    """Return the types of columns as found by Arrow; None if it fails.

    Dates stay strings, and integers become floats: the next block may have other
    strings, and decimals.
    """
    table = _read(lines, None)
    if table is None:
        return None
    return pa.schema([field.with_type(_plain(field.type)) for field in table.schema])


def _read(lines: Lines, types: Any) -> Any:
    """Return a table, or None if Arrow cannot parse the lines one by one."""
    text, longest = lines.data, int((lines.stops - lines.starts).max(initial=0))
    if not text.endswith(b"\n"):
        text += b"\n"
    try:
        table = pajson.read_json(
            pa.BufferReader(text),
            pajson.ReadOptions(block_size=max(1 << 20, 2 * longest + 2)),
            pajson.ParseOptions(
                explicit_schema=types,
                unexpected_field_behavior="infer" if types is None else "ignore",
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table if len(table) == len(lines.starts) else None


def _plain(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([field.with_type(_plain(field.type)) for field in fields])
    if pa.types.is_timestamp(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_integer(kind):
        return pa.float64()
    return kind


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{type(value).__name__} in place of an object")
    flat: dict[str, Any] = {}
    for name, one in value.items():
        if isinstance(one, dict):
            flat |= _flat(one, f"{prefix}{name}.")
        else:
            flat[prefix + name] = one
    return flat


def _column(values: list[Any]) -> Any:
    """Return a column; values of several types are converted to text."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float} or kinds == {bool} or kinds == {str}:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, OverflowError):
            return pa.array([None if one is None else float(one) for one in values])
    texts = [
        one if one is None or isinstance(one, str) else json.dumps(one)
        for one in values
    ]
    return pa.array(texts, pa.string())


def _line_numbers(data: Bytes, starts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the line, from 0, on which each row starts."""
    ends = np.flatnonzero(data == _NEWLINE)
    return np.searchsorted(ends, starts).astype(np.int64)
