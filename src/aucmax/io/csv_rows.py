"""Blocks of CSV text to rows, and rows to Arrow record batches.

A quote counts only as the first byte of a field. Inside quotes, two quotes are one, and
delimiters and line ends are text. A row with malformed quoting, or with a quoted field
of megabytes, is malformed, and reading continues at the next line: a stray quote costs
a line, not the file.
"""

import csv
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from aucmax.core.jit import kernel
from aucmax.tables.column_kinds import one_batch
from aucmax.tables.missing_values import MISSING

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_NEWLINE, _RETURN, _QUOTE, _BLANK = b'\n\r" '
_PLAIN, _MALFORMED = 0, 1
_BLOCK = 1 << 20  # bytes that Arrow parses at a time


class Rows(NamedTuple):
    """Rows of a block: row i is ``data[starts[i]:stops[i]]``, without its line end."""

    data: Bytes
    starts: Ints
    stops: Ints
    lines: Ints  # line of the block, from 0, on which each row begins
    fields: Ints  # number of fields of each row
    malformed: NDArray[np.bool_]  # whether its quoting is malformed
    end: int  # where the next row begins
    n_lines: int  # lines up to there

    def text(self, row: int) -> bytes:
        """Return a row as it is in the file."""
        return self.data[self.starts[row] : self.stops[row]].tobytes()

    def take(self, chosen: Any) -> "Rows":
        """Return a subset of the rows."""
        return self._replace(
            starts=self.starts[chosen],
            stops=self.stops[chosen],
            lines=self.lines[chosen],
            fields=self.fields[chosen],
            malformed=self.malformed[chosen],
        )


def cut(data: Bytes, final: bool, delimiter: int, longest_quoted: int) -> Rows:
    """Return the rows of a block without empty lines.

    The last row may be left to the next block, unless the block is the ``final`` one.
    """
    if final and data.size and data[-1] != _NEWLINE:
        data = np.append(data, np.uint8(_NEWLINE))
    ends = np.flatnonzero(data == _NEWLINE)
    if (data == _QUOTE).any():
        table = np.empty((5, len(ends) + 1), np.int64)
        found = np.zeros(3, np.int64)
        _cut(data, final, delimiter, longest_quoted, table, found)
        n, end, n_lines = found.tolist()
        starts, stops, lines, state, fields = table[:, :n]
    else:
        starts, stops = np.append(0, ends[:-1] + 1)[: len(ends)], ends
        lines, state = np.arange(len(ends)), np.zeros(len(ends), np.int64)
        end, n_lines = (int(ends[-1]) + 1, len(ends)) if len(ends) else (0, 0)
        between = np.flatnonzero(data[:end] == delimiter)
        fields = np.diff(np.searchsorted(between, np.append(starts, end))) + 1
    returns = (stops > starts) & (data[np.maximum(stops - 1, 0)] == _RETURN)
    stops = stops - returns
    rows = Rows(data, starts, stops, lines, fields, state == _MALFORMED, end, n_lines)
    empty = stops == starts
    return rows.take(~empty) if empty.any() else rows


@kernel
def _cut(
    data: Bytes,
    final: bool,
    delimiter: int,
    longest_quoted: int,
    rows: Ints,
    found: Ints,
) -> None:
    """Write start, stop, line, state and fields of each row; then rows, end, lines."""
    n = at = line = 0
    size = len(data)
    while at < size:
        start, state, lines, fields = at, _PLAIN, 0, 0
        stop = -1
        while stop < 0:  # field by field
            fields += 1
            if data[at] == _QUOTE:
                i = at + 1
                passed = 0
                while i < size and i - at <= longest_quoted:
                    if data[i] == _QUOTE:
                        if i + 1 < size and data[i + 1] == _QUOTE:
                            i += 1
                        else:
                            break
                    elif data[i] == _NEWLINE:
                        passed += 1
                    i += 1
                if i >= size and not final:
                    found[0], found[1], found[2] = n, start, line
                    return
                after = i + 1
                if after + 1 < size and data[after] == _RETURN:
                    after += data[after + 1] == _NEWLINE
                closed = i < size and data[i] == _QUOTE and after < size
                if closed and (data[after] == delimiter or data[after] == _NEWLINE):
                    lines += passed
                    if data[after] == _NEWLINE:
                        stop = after
                    at = after + 1
                    continue
                state = _MALFORMED
                at = start
                lines = 0
                while data[at] != _NEWLINE:
                    at += 1
                stop = at
                at += 1
            else:
                while data[at] != delimiter and data[at] != _NEWLINE:
                    at += 1
                if data[at] == _NEWLINE:
                    stop = at
                at += 1
        rows[0, n], rows[1, n], rows[2, n], rows[3, n] = start, stop, line, state
        rows[4, n] = fields
        n += 1
        line += lines + 1
    found[0], found[1], found[2] = n, size, line


def fields_of(line: str, delimiter: str) -> list[str]:
    """Return the fields of one row, of any length."""
    before = csv.field_size_limit(len(line) + 1)
    try:
        text = io.StringIO(line, newline="")
        return next(csv.reader(text, delimiter=delimiter), [])
    finally:
        csv.field_size_limit(before)


def parse(
    rows: Rows,
    names: Sequence[str],
    delimiter: int,
    numbers: Sequence[str],
    words: Sequence[str],
    texts: Sequence[str],
    na: Sequence[str] = (),
) -> Any:
    """Return a record batch of rows that have the right number of fields.

    ``numbers`` are float64 if all cells are numbers, ``words`` dictionaries of bytes,
    ``texts`` bytes.
    """
    data = rows.data[: rows.end]
    dense = len(rows.starts) == rows.n_lines
    if not dense:  # some lines are left out, or line ends are quoted
        text = b"\n".join([rows.text(row) for row in range(len(rows.starts))])
        data = np.frombuffer(text, np.uint8)
    if (data == _RETURN).any():  # Arrow would end a line at one
        alone = (data == _RETURN) & (np.append(data[1:], 0) != _NEWLINE)
        data = np.where(alone, np.uint8(_BLANK), data)
    called = [f"{i}" for i in range(len(names))]  # names may be there twice
    place = {name: called[i] for i, name in enumerate(names)}
    wanted = {*numbers, *words, *texts}
    chosen = [name for name in names if name in wanted]
    coded = pa.dictionary(pa.int32(), pa.binary())
    kinds = {place[name]: coded for name in words}
    kinds |= {place[name]: pa.binary() for name in texts}

    longest = int((rows.stops - rows.starts).max(initial=0)) + 2
    block = max(_BLOCK, 2 * longest)  # Arrow is slower with larger ones

    def read(numeric: Any) -> Any:
        return pacsv.read_csv(
            pa.BufferReader(pa.py_buffer(data)),
            pacsv.ReadOptions(
                column_names=called,
                block_size=block,
            ),
            pacsv.ParseOptions(
                delimiter=chr(delimiter),
                newlines_in_values=not dense,
            ),
            pacsv.ConvertOptions(
                column_types=kinds | {place[name]: numeric for name in numbers},
                include_columns=[place[name] for name in chosen],
                null_values=[*MISSING, *na],
                check_utf8=False,
            ),
        )

    if not len(rows.starts):
        empty = {name: pa.array([], pa.binary()) for name in chosen}
        return pa.RecordBatch.from_pydict(empty)
    try:
        table = read(pa.float64())
    except pa.ArrowInvalid:  # a cell is not a number: find it later
        table = read(pa.binary())
    return one_batch(table.unify_dictionaries().rename_columns(chosen))
