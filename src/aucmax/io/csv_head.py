"""The beginning of a CSV file: delimiter, names and a sample of the columns."""

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from aucmax.io.batch import Position
from aucmax.io.csv_rows import Rows, cut, fields_of, parse
from aucmax.io.text import Reader
from aucmax.tables.column_kinds import LOOKED_AT, Sample, samples_of
from aucmax.tables.missing_values import MISSING

DELIMITERS = ",;\t|"
_PARTS = 16  # parts of a file from which rows are sampled


@dataclass(frozen=True)
class Head:
    """First block of a file."""

    names: list[str]  # of the columns
    header: bool  # whether the file has the names
    delimiter: int
    text: bytes  # the header
    body: Position  # where the rows begin
    rows: Rows  # the first rows
    final: bool  # whether these are all rows
    na: Sequence[str] = ()  # missing-value markers

    def with_rows_of(self, path: str) -> "Head":
        """Return the head with rows sampled from the whole file.

        Half of the rows are the first ones. A part in which a quoted field may extend
        over several lines is left out.
        """
        block = self.rows.data.tobytes()
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
        data = np.frombuffer(b"\n".join([*lines, b""]), np.uint8)
        rows = cut(data, True, self.delimiter, len(data))
        return replace(self, rows=rows.take(slice(int(self.header), None)))

    @cached_property
    def samples(self) -> list[Sample]:
        """A sample of each column.

        Lines that repeat the header, as in concatenated files, are malformed lines: the
        names in them are not values of a numeric column.
        """
        rows = self.rows.take(slice(0, LOOKED_AT))
        names = [str(i) for i in range(len(self.names))]
        good = ~rows.malformed & (rows.fields == len(names))
        batch = parse(rows.take(good), names, self.delimiter, [], [], names)
        whole = self.final and len(self.rows.starts) <= LOOKED_AT
        samples = samples_of(batch, whole, self.na)
        again = self._repeated()
        return [
            sample._replace(others=max(sample.others - again * _is_name(name), 0))
            for name, sample in zip(self.names, samples, strict=True)
        ]

    def _repeated(self) -> int:
        """Return how many lines repeat the header."""
        if not self.header:
            return 0
        line = rb"(?:\A|\n)" + re.escape(self.text) + rb"(?=\r?\n|\Z)"
        start = int(self.rows.starts[0]) if len(self.rows.starts) else 0
        return len(re.findall(line, self.rows.data[start:].tobytes()))


def read_head(
    file: str,
    reader: Reader,
    delimiter: str | None,
    header: bool | None,
    longest_quoted: int,
    named: Collection[str] = (),
    na: Sequence[str] = (),
    decimal: str | None = None,
) -> Head | None:
    """Return the beginning of a file; None if it is empty.

    If ``header`` is None, it is guessed: there is one if the first line has a column
    that the user has ``named``.
    """
    data, final = reader.peek()
    block = data.tobytes()
    if not block.strip(b"\r\n"):
        return None
    sign = ord(delimiter or _guess_delimiter(file, block, decimal))
    rows = cut(data, final, sign, longest_quoted)
    if not len(rows.starts) or rows.malformed[0]:
        raise ValueError(
            f"{file}: malformed quoting in the first line: a quoted field ends with a "
            "quote, and quotes in it are doubled"
        )
    text = rows.text(0)
    fields = _fields(text, chr(sign))
    names = [field.strip() or str(i) for i, field in enumerate(fields)]
    start = Position(offset=reader.offset)
    after = rows.starts[1] if len(rows.starts) > 1 else rows.end
    lines = rows.lines[1] if len(rows.starts) > 1 else rows.n_lines
    if final and b"\r" in text and b"\n" not in block:
        raise ValueError(
            f"{file}: the lines end in CR, as on old Macs, and not in LF. Convert the "
            "file: tr '\\r' '\\n'"
        )
    # The last line may have no line end.
    body = Position(0, start.offset + min(int(after), len(data)), int(lines))
    rest = rows.take(slice(1, None))
    head = Head(names, True, sign, text, body, rest, final, na)
    guessed = header is None
    if header is None:
        plain = [field.replace(",", ".") for field in fields]
        first_line = plain if decimal == "," else fields
        header = not set(named).isdisjoint(names) or _has_names(first_line, head)
    if not header:
        names = [str(i) for i in range(len(fields))]
        return Head(names, False, sign, b"", start, rows, final, na)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        otherwise = ", or say that there is no header: header=false"
        raise ValueError(
            f"{file}: duplicate column name {twice!r}: rename one of the columns"
            + (otherwise if guessed else "")
        )
    return head


def _fields(line: bytes, delimiter: str) -> list[str]:
    return fields_of(line.decode("utf-8", "backslashreplace"), delimiter)


def _guess_delimiter(file: str, block: bytes, decimal: str | None = None) -> str:
    """Return the most frequent delimiter outside of quotes in the first line."""
    if re.search(r"\.(tsv|tab)(\.\w+)?$", file, re.IGNORECASE):
        return "\t"
    parts = block.lstrip(b"\r\n")[: 1 << 16].split(b'"')
    line = b""
    for k, part in enumerate(parts):
        if k % 2 == 0:
            line += part.partition(b"\n")[0]
            if b"\n" in part:
                break
    counts = {sign: line.count(sign.encode()) for sign in DELIMITERS}
    likely = {sign: n for sign, n in counts.items() if sign != decimal}
    counts = likely if any(likely.values()) else counts
    return max(counts, key=lambda sign: counts[sign])


def _has_names(fields: list[str], head: Head) -> bool:
    """Guess whether the first line has names.

    It has if a column of numbers has no number there. Otherwise it has if it has no
    numbers and no duplicates, and no field that is also a value of its column.
    """
    name = [_is_name(field) for field in fields]
    if not any(name):
        return False
    samples = head.samples
    if any(
        is_name and not sample.others and sample.missing < sample.rows
        for is_name, sample in zip(name, samples, strict=True)
    ):
        return True
    if any(map(_is_number, fields)) or len(set(head.names)) < len(head.names):
        return False
    return not any(
        is_name and field in sample.listed()[0]
        for is_name, field, sample in zip(name, head.names, samples, strict=True)
    )


def _is_name(field: str) -> bool:
    return not _is_number(field) and field.strip() not in MISSING


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return field.strip().lower().lstrip("+-") != "nan"
