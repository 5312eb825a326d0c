"""Inspection of the first block of a CSV file: delimiter, names, column kinds."""

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.io.chunk import Position
from aucmax.io.csv_scan import BROKEN, DOUBLED, Scan, read_field, read_numbers
from aucmax.io.digits import ASK, NAN, NONE
from aucmax.io.text import Reader
from aucmax.tables.column_kinds import Sample
from aucmax.tables.missing_values import are_absent
from aucmax.tables.options import option
from aucmax.tables.schema import MISSING, Schema
from aucmax.tables.spans import Bytes, Float, Ints, Spans, decode, dictionary

DELIMITERS = ",;\t|"
LOOKED_AT = 20_000  # rows, to find out what columns are
_PARTS = 16  # of a file that some of them are from

_NEWLINE, _QUOTE = b'\n"'


@dataclass(frozen=True)
class Head:
    """First block of a file."""

    names: list[str]  # of the columns
    header: bool  # whether they are those of the file
    delimiter: int
    text: bytes  # of the header
    body: Position  # where the rows begin
    data: Bytes  # the first block
    start: Position  # … where it begins …
    final: bool  # … and whether it is all there is
    dtype: Any  # of X, so that the kernel need not be compiled for another
    na: Sequence[str] = ()  # words for a missing value

    def with_rows_of(self, path: str) -> "Head":
        """Return the head with rows sampled from the whole file.

        Half of the rows that are looked at are the first ones. A part in which a quoted
        field may go on over several lines is left out.
        """
        block = self.data.tobytes()
        lines = block.split(b"\n", LOOKED_AT // 2)
        first = len(block) - len(lines.pop())
        rest = os.path.getsize(path) - first
        each = first // _PARTS
        if rest < 2 * first or not first:
            return self
        with open(path, "rb") as file:
            for k in range(1, _PARTS + 1):
                file.seek(first + (rest - each) * k // _PARTS)
                part = file.read(each).split(b"\n")[1:-1]
                if all(line.count(b'"') % 2 == 0 for line in part):
                    lines += part
        text = b"\n".join([*lines, b""])
        return replace(self, data=np.frombuffer(bytearray(text), np.uint8))

    @cached_property
    def samples(self) -> list[Sample]:
        """The first rows of each column.

        Names in lines that repeat the header, as in files that were put together, are
        no values: they will be bad lines, if a column has numbers.
        """
        columns, again = self.columns, self._repeats()
        rows = len(columns[0].starts) if columns else 0
        whole = self.final and rows <= LOOKED_AT
        found = [sample_of(spans, whole, self.na) for spans in columns]
        return [
            sample._replace(
                others=max(sample.others - again * _is_name(name.encode()), 0)
            )
            for name, sample in zip(self.names, found, strict=True)
        ]

    def _repeats(self) -> int:
        """Return the number of repeated header lines in the block."""
        if not self.header:
            return 0
        line = rb"\n" + re.escape(self.text) + rb"(?=\r?\n|\Z)"
        body = self.body.offset - self.start.offset
        return len(re.findall(line, self.data[max(body - 1, 0) :].tobytes()))

    @cached_property
    def columns(self) -> list[Spans]:
        """The values of all columns in the first block."""
        names = [str(i) for i in range(len(self.names))]
        all_text = Schema(
            columns=names,
            header=True,
            numbers=[],
            categories=names,
            texts=[],
            label=None,
            label_is_number=False,
            weight=None,
            encode="hash",
            hash_size=1,
            missing="zero",
            na=list(self.na),
        )
        place = {name: i for i, name in enumerate(names)}
        scan = Scan(
            *("", names, self.delimiter, self.body, all_text, place, self.dtype),
            fill=np.zeros(0),  # lines with missing values are lines
        )
        rows = scan(self.data, self.final, self.start, len(self.data))
        found: list[Spans] = rows.X.categories
        return found


def sample_of(spans: Spans, whole: bool, na: Sequence[str] = ()) -> Sample:
    """Return a sample of the first values of a column."""
    spans = Spans(spans.data, spans.starts[:LOOKED_AT], spans.stops[:LOOKED_AT])
    numbers, verdicts = numbers_of(spans)
    absent = are_absent(na, numbers)
    numbers[absent], verdicts[absent] = np.nan, NAN
    return Sample(
        rows=len(numbers),
        numbers=numbers,
        others=int(np.count_nonzero(verdicts == NONE)),
        missing=int(np.count_nonzero(verdicts == NAN)),
        listed=cache(lambda: listed(spans)),  # of numbers, hardly ever needed
        whole=whole,
    )


def numbers_of(spans: Spans) -> tuple[Float, Ints]:
    """Return values as numbers, and verdicts; NaN if not finite."""
    rows = len(spans.starts)
    numbers, verdicts = np.empty(rows), np.empty(rows, np.int64)
    read_numbers(*spans, numbers, verdicts)
    for i in np.flatnonzero(verdicts == ASK).tolist():
        value = float(spans.data[spans.starts[i] : spans.stops[i]].tobytes())
        numbers[i] = value if np.isfinite(value) else np.nan
    return numbers, verdicts


def listed(spans: Spans) -> tuple[list[str], NDArray[Any]]:
    """Return the distinct values of a column and their counts."""
    codes, values = dictionary(spans)
    return values, np.bincount(codes[codes >= 0], minlength=len(values))


def read_head(
    file: str,
    reader: Reader,
    dtype: Any,
    delimiter: str | None,
    header: bool | None,
    named: Collection[str] = (),
    na: Sequence[str] = (),
    decimal: str | None = None,
) -> Head | None:
    """Inspect the beginning of a file; return None if it is empty.

    If nobody knows whether there is a header, a column that is ``named`` by the user
    and is in the first line says so, whatever else is there.
    """
    data, final = reader.peek()
    block = data.tobytes()
    if final and not block.endswith(b"\n"):
        block += b"\n"
    first = len(block) - len(block.lstrip(b"\r\n"))
    if first == len(block):
        return None
    sign = ord(delimiter or _guess_delimiter(file, block, first, decimal))
    fields, body = _record(file, block, first, sign)
    start = Position(offset=reader.offset)
    head = Head(
        names=_names(fields),
        header=True,
        delimiter=sign,
        text=block[first:body].rstrip(b"\r\n"),
        body=Position(0, start.offset + body, block.count(b"\n", 0, body)),
        data=data,
        start=start,
        final=final,
        dtype=dtype,
        na=na,
    )
    guessed = header is None
    if header is None:
        plain = [field.replace(b",", b".") for field in fields]
        first_line = plain if decimal == "," else fields
        header = not set(named).isdisjoint(head.names) or _has_names(first_line, head)
    if not header:
        names = [str(i) for i in range(len(fields))]
        return replace(head, names=names, header=False, text=b"", body=start)
    if len(set(head.names)) < len(head.names):
        twice = next(name for name in head.names if head.names.count(name) > 1)
        otherwise = f", or use {option('header', False)} if there is no header"
        raise ValueError(
            f"{file}: duplicate column name {twice!r}: rename one of the columns"
            + (otherwise if guessed else "")
        )
    return head


def _names(fields: list[bytes]) -> list[str]:
    """Return the names in a header; a column without a name gets its position."""
    return [decode(field).strip() or str(i) for i, field in enumerate(fields)]


def _guess_delimiter(
    file: str, block: bytes, start: int, decimal: str | None = None
) -> str:
    if re.search(r"\.(tsv|tab)(\.\w+)?$", file, re.IGNORECASE):
        return "\t"
    inside = False
    counts = dict.fromkeys(DELIMITERS.encode(), 0)
    for byte in block[start : start + (1 << 16)]:
        if byte == _QUOTE:
            inside = not inside
        elif byte == _NEWLINE and not inside:
            break
        elif byte in counts and not inside:
            counts[byte] += 1
    likely = {byte: found for byte, found in counts.items() if chr(byte) != decimal}
    counts = likely if any(likely.values()) else counts
    return chr(max(counts, key=lambda byte: counts[byte]))


def _has_names(fields: list[bytes], head: Head) -> bool:
    """Guess whether the first line has names.

    It has if a column of numbers has something else there. If there is no such column,
    it has if nothing in it is a number, no name is there twice and none is also a value
    of its column.
    """
    name = [_is_name(field) for field in fields]
    if not any(name):
        return False
    if any(
        is_name and not sample.others and sample.missing < sample.rows
        for is_name, sample in zip(name, head.samples, strict=True)
    ):
        return True
    if any(map(_is_number, fields)) or len(set(head.names)) < len(head.names):
        return False
    return not any(
        is_name and field in dictionary(column)[1]
        for is_name, field, column in zip(name, head.names, head.columns, strict=True)
    )


def _is_name(field: bytes) -> bool:
    return not _is_number(field) and decode(field).strip() not in MISSING


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return field.strip().lower().lstrip(b"+-") != b"nan"


def _record(
    file: str, block: bytes, at: int, delimiter: int
) -> tuple[list[bytes], int]:
    """Return the fields of one line, and where the next one begins."""
    data = np.frombuffer(bytearray(block), np.uint8)
    fields = []
    place = np.zeros(4, np.int64)
    while True:
        read_field(data, at, len(data), delimiter, place)
        start, stop, at, shape = place.tolist()
        if shape >= BROKEN:
            raise ValueError(
                f"{file}: malformed quoting in the first line: a quoted field ends "
                "with a quote, and quotes inside it are doubled"
            )
        field = block[start:stop]
        fields.append(field.replace(b'""', b'"') if shape == DOUBLED else field)
        if block[at - 1] == _NEWLINE:
            return fields, at
