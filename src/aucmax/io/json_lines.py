"""Reader of JSON lines, one object per line: blocks of lines, parsed by Arrow.

Fields of nested objects are columns with dots in their names, such as ``user.age``. A
key that a line lacks is a missing value. A line that is not one JSON object, that is
nested deeply, or that has a list in a column of the model is malformed.
"""

import json
import re
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
from aucmax.tables.cells import TYPED
from aucmax.tables.column_kinds import LOOKED_AT, Sample, one_batch, samples_of
from aucmax.tables.frames import check_type, is_nested
from aucmax.tables.schema import Schema, find

_NEWLINE = ord("\n")
_DEEPEST = 64  # levels of nested objects and lists; parsers recurse
_STRING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
_A_LIST = "the value of {!r} is a list, not a number or a string"
_ESCAPE = b"\\u"


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
            if not len(batch) and self._recipe is None:
                row, problem = next(iter(problems.items()), (0, "there is no key"))
                line = 1 + int(_line_numbers(data, lines.starts)[row])
                raise ValueError(f"{file}, line {line}: {problem}")
            more = not final or len(batch) > LOOKED_AT or len(self.files) > 1
            return types, batch.slice(0, LOOKED_AT), more
        raise empty_input(self.files)

    def _sample(self) -> tuple[list[str], list[Sample], bool]:
        _, batch, more = self._first
        names, only = list(batch.schema.names), self._overrides.only
        if self._recipe is None:
            used = (
                {*range(len(names))} if only is None else {find(names, n) for n in only}
            )
            used -= {find(names, one, "column to drop") for one in self._overrides.drop}
            for place in sorted(used):
                check_type(self.files[0], names[place], batch.schema.types[place])
        return names, samples_of(batch, not more, self._na), True

    def _tables(self, schema: Schema, start: Position) -> Iterator[Batch]:
        types, first, _ = self._first
        names = first.schema.names
        if names:  # the first block has a row
            self._check_columns(schema, names)
        extra = {n: names[find(names, n)] if names else n for n in self._extra}
        wanted = [*schema.needed(), *extra.values()]
        if self._labelled:
            wanted += [name for name in (schema.label, schema.weight) if name]
        all_known = {*wanted} <= {*names}
        for block in self._text.blocks(start, self._prompt):
            lines = split(block.data)
            if not len(lines.starts):
                continue
            known = types if all_known else _merged(types, find_types(lines))
            batch, good, problems = parse(lines, known, [*dict.fromkeys(wanted)])
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
                f"{', '.join(map(repr, absent))}: where a line has none, the value "
                "counts as missing.",
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
    deep = _too_deep(lines)
    rows = np.flatnonzero(~deep)
    problem = f"lists and objects are nested more than {_DEEPEST} levels deep"
    problems = dict.fromkeys(np.flatnonzero(deep).tolist(), problem)
    table = None if types is None else _read(lines, types, deep)
    if table is not None:
        while any(map(pa.types.is_struct, table.schema.types)):
            table = table.flatten()
        place = {name: i for i, name in enumerate(table.column_names)}
        table = table.select([*place.values()])  # "a.b" may also be b in a
    else:
        found: dict[int, dict[str, Any]] = {}
        for row in rows.tolist():
            try:
                found[row] = _object(lines.line(row), wanted or ())
            except ValueError as error:
                problems[row] = str(error)
        rows = np.array([*found], np.intp)
        names = dict.fromkeys(name for one in found.values() for name in one)
        table = pa.table(
            {name: _column([one.get(name) for one in found.values()]) for name in names}
        )
    if wanted is not None:
        absent, known = pa.nulls(len(rows), pa.string()), table.column_names
        table = pa.table({n: table[n] if n in known else absent for n in wanted})
        good = np.ones(len(rows), bool)
        for name, kind in zip(table.column_names, table.schema.types, strict=True):
            if is_nested(kind):
                lists = table[name].is_valid().to_numpy()
                problems |= dict.fromkeys(rows[lists].tolist(), _A_LIST.format(name))
                good &= ~lists
        table, rows = table.filter(pa.array(good)), rows[good]
    return one_batch(table), rows, dict(sorted(problems.items()))


def find_types(lines: Lines) -> Any:
    """Return the types of columns as found by Arrow; None if it fails.

    Dates stay strings, and integers become floats: the next block may have other
    strings, and decimals.
    """
    table = _read(lines, None, _too_deep(lines))
    if table is None:
        return None
    return pa.schema([field.with_type(_plain(field.type)) for field in table.schema])


def _merged(types: Any, found: Any) -> Any:
    """Return the types of the first lines and of further keys; None if unknown."""
    if types is None or found is None:
        return None
    try:
        return pa.unify_schemas([types, found], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _too_deep(lines: Lines) -> NDArray[np.bool_]:
    """Return which lines are nested so deeply that a parser would fail."""
    data = np.frombuffer(lines.data, np.uint8)
    at = np.flatnonzero((data | 0x20) == ord("{"))  # "[" with this bit set
    opened = np.searchsorted(at, lines.stops) - np.searchsorted(at, lines.starts)
    deep = opened > _DEEPEST
    for row in np.flatnonzero(deep).tolist():
        signs = np.frombuffer(_STRING.sub(b"", lines.line(row)), np.uint8)
        opens, closes = np.isin(signs, [*b"[{"]), np.isin(signs, [*b"]}"])
        depth = np.cumsum(opens.astype(np.int64) - closes)
        deep[row] = depth.max(initial=0) > _DEEPEST
    return deep


def _read(lines: Lines, types: Any, deep: NDArray[np.bool_]) -> Any:
    """Return a table of the other lines, or None if Arrow cannot parse each alone."""
    text = lines.data
    if deep.any():
        text = b"\n".join(map(lines.line, np.flatnonzero(~deep).tolist()))
        lines = split(np.frombuffer(text, np.uint8))
    data = np.frombuffer(text, np.uint8)
    if np.any(data[lines.starts] != ord("{")) or np.any(
        data[lines.stops - 1] != ord("}")
    ):
        return None  # an object may go over two lines
    longest = int((lines.stops - lines.starts).max(initial=0))
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


def _object(line: bytes, wanted: Sequence[str]) -> dict[str, Any]:
    """Return the cells of a line; a ValueError if it is malformed."""
    try:
        found = _flat(json.loads(line))
        if _ESCAPE in line:  # half of a surrogate pair is not a character
            json.dumps(found, ensure_ascii=False).encode()
    except ValueError as error:
        raise ValueError(f"this is not a JSON object: {error}") from None
    for name in wanted:
        if isinstance(found.get(name), list):
            raise ValueError(_A_LIST.format(name))
    return found


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
    if kinds == {list}:
        return pa.nulls(len(values), pa.list_(pa.string()))
    if list in kinds:  # of a malformed line
        return _column([None if isinstance(one, list) else one for one in values])
    if kinds <= {int, float} or kinds == {bool} or kinds == {str}:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, OverflowError):
            # An integer above the largest float is infinite.
            return pa.array([one if one is None else float(str(one)) for one in values])
    texts = [
        one
        if one is None or isinstance(one, str)
        else json.dumps(one) + TYPED * isinstance(one, float)
        for one in values
    ]
    return pa.array(texts, pa.string())


def _line_numbers(data: Bytes, starts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the line, from 0, on which each row starts."""
    ends = np.flatnonzero(data == _NEWLINE)
    return np.searchsorted(ends, starts).astype(np.int64)
