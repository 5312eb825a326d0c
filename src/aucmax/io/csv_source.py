"""Reader of CSV files: blocks of whole rows, parsed by Arrow.

:mod:`aucmax.io.csv_head` finds delimiter, names and kinds of columns;
:mod:`aucmax.io.csv_rows` cuts blocks of some megabytes into rows.
"""

import csv
import string
import warnings
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Any

import numpy as np

from aucmax.core.validation import DataWarning
from aucmax.io.batch import BadLine, Batch, Lines, Position
from aucmax.io.compression import is_packed
from aucmax.io.csv_head import Head, read_head
from aucmax.io.csv_rows import Bytes, Rows, cut, parse
from aucmax.io.table_source import TableSource
from aucmax.io.text import BLOCK, Text, empty_input
from aucmax.tables.column_kinds import EMPTY, Sample
from aucmax.tables.missing_values import MISSING
from aucmax.tables.schema import Schema

_NO_DELIMITER = '"\r\n+-.' + string.ascii_letters + string.digits
_QUOTES = (
    "malformed quoting: a quoted field ends with a quote, and quotes in it are doubled"
)


class CsvSource(TableSource):
    """Rows of CSV files.

    Parameters
    ----------
    paths : sequence of str or Text
        Files, patterns, folders; "-" is standard input.
    delimiter : str, default=None
        One character, or "tab"; by default guessed from file name and first line.
    header : bool, default=None
        Whether the first line has the names of the columns; by default guessed.
        Without a header, the columns are called "0", "1", …
    prompt : bool, default=False
        Whether to yield rows of a pipe as soon as they arrive.
    keep_text : bool, default=False
        Whether ``Batch.text`` has the text of the rows.
    extra : sequence of str, default=()
        Columns to read as text into ``Batch.extra``.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features.
    recipe : dict, default=None
        Result of ``recipe()`` of another source, to build the same features.
    labelled : bool, default=True
        Whether to read labels and weights.
    **overrides
        Fields of :class:`~aucmax.tables.schema.Overrides`.
    """

    _format = "csv"
    options = TableSource.options | {"delimiter", "header", "prompt"}
    _block = BLOCK
    _longest_quoted = 1 << 20

    def __init__(
        self,
        paths: Sequence[str] | Text,
        *,
        delimiter: str | None = None,
        header: bool | None = None,
        prompt: bool = False,
        recipe: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._text = paths if isinstance(paths, Text) else Text(paths)
        super().__init__(self._text.files, self._text.size, recipe=recipe, **options)
        if recipe is not None:
            delimiter = delimiter or recipe.get("delimiter")
        if delimiter in ("tab", r"\t"):  # as written in a shell
            delimiter = "\t"
        self._delimiter, self._header, self._prompt = delimiter, header, prompt
        self._warned_of_encoding = False
        if header not in (None, True, False):
            raise ValueError(f"header must be true or false, not {header!r}")
        if delimiter is not None and (
            len(delimiter) != 1 or not delimiter.isascii() or delimiter in _NO_DELIMITER
        ):
            raise ValueError(
                f"delimiter must be a single character such as ',' or ';', not "
                f"{delimiter!r}"
            )
        self._first: Head | None = None

    def recipe(self) -> dict[str, Any]:
        """Return the reader options and the schema as JSON."""
        # None if it was guessed: other files may have another one.
        return {**super().recipe(), "delimiter": self._delimiter}

    def header(self) -> bytes | None:
        """Return the header of the first file as it is, if there is one."""
        head = self._first_head()
        return head.text if head.header else None

    @property
    def delimiter(self) -> str:
        """The delimiter of the first file."""
        return chr(self._first_head().delimiter)

    def _sample(self) -> tuple[list[str], list[Sample], bool]:
        head = self._first_head()
        if self._recipe is None:
            self._refuse_names(head)
            if self._text.sizes[0] is not None and not is_packed(self.files[0]):
                head = head.with_rows_of(self.files[0])
        return head.names, head.samples, head.header

    def _refuse_names(self, head: Head) -> None:
        """Raise an error if a column is given by name and there is no header."""
        named = self._overrides.named()
        if not named or head.header or self._header is not None:
            return
        line = head.rows.text(0)[:60].decode("utf-8", "backslashreplace")
        raise ValueError(
            f"{self.files[0]}: no column {named[0]!r}: the first line seems to have no "
            f"names ({line}), so columns are called by position, 0 to "
            f"{len(head.names) - 1}; if it has names: header=true"
        )

    def _first_head(self) -> Head:
        """Return the beginning of the first file that is not empty."""
        if self._first is None:
            header = self._header
            if header is None and self._recipe is not None:
                header = bool(self._recipe["header"])
            heads = (self._head(i, header) for i in range(len(self.files)))
            self._first = next((head for head in heads if head is not None), None)
        if self._first is None:
            raise empty_input(self.files)
        return self._first

    def _head(self, number: int, header: bool | None) -> Head | None:
        with self._text.reader(number, self._block, prompt=self._prompt) as reader:
            return read_head(
                self.files[number],
                reader,
                self._delimiter,
                header,
                self._longest_quoted,
                self._overrides.named(),
                self._na,
                self._overrides.decimal,
            )

    def _tables(self, schema: Schema, start: Position) -> Iterator[Batch]:
        header = self._first_head().header
        for number in range(start.file, len(self.files)):
            file = self.files[number]
            here = start if number == start.file else Position(number)
            head = self._head(number, header)
            if head is None:
                continue
            called, extra = self._locate(schema, head.names, file)
            before = self._text.before(number)
            with self._text.reader(number, self._block, prompt=self._prompt) as reader:
                reader.skip(max(here.offset, head.body.offset))
                here = max(here, head.body._replace(file=number))
                for data, final in reader.blocks():
                    here = here._replace(offset=reader.offset)
                    self._warn_of_encoding(file, data, here.line)
                    self._warn_of_filled(schema, head, data, here.line)
                    rows = cut(data, final, head.delimiter, self._longest_quoted)
                    used = reader.use(rows.end)
                    lines = here.line + rows.n_lines
                    end = Position(number, here.offset + used, lines)
                    if len(rows.starts):
                        batch, good, malformed = self._parsed(
                            file, head, rows, here.line, called, extra, schema
                        )
                        text = rows.data.tobytes() if self._keep_text else rows.data
                        yield Batch(
                            rows=batch,
                            labels=None,
                            weights=None,
                            line_numbers=here.line + 1 + good.lines,
                            malformed=malformed,
                            end=end,
                            file=file,
                            done=before + reader.done,
                            text=Lines(text, good.starts, good.stops),
                            extra={k: batch.column(name) for k, name in extra.items()},
                        )
                    here = end

    def _parsed(
        self,
        file: str,
        head: Head,
        rows: Rows,
        before: int,
        called: list[str],
        extra: dict[str, str],
        schema: Schema,
    ) -> tuple[Any, Rows, list[BadLine]]:
        """Return a record batch, its rows, and the malformed lines."""
        needed = self._needed(schema, called)
        aside = {*extra.values()}
        label = schema.label if schema.label_is_number else None
        numeric = {*schema.numbers, schema.weight, label} - aside
        numbers = [name for name in needed if name in numeric]
        texts = {*schema.texts, *aside}
        others = [name for name in needed if name not in {*numeric, *texts}]
        right = ~rows.malformed & (rows.fields == len(called))
        bad = []
        for row in np.flatnonzero(~right).tolist():
            text = f"{rows.fields[row]} fields, but {len(called)} are expected"
            if rows.malformed[row]:
                text = _QUOTES
            line = before + int(rows.lines[row]) + 1
            bad.append(BadLine(file, line, None, text, rows.text(row)))
        good = rows if right.all() else rows.take(right)
        batch = parse(
            good, called, head.delimiter, numbers, others, [*texts], schema.na
        )
        return batch, good, bad

    def _warn_of_filled(
        self, schema: Schema, head: Head, data: Bytes, lines: int
    ) -> None:
        """Warn about a column that was left out as empty and has values in a block."""
        empty = {role["name"] for role in schema.roles if role["role"] == EMPTY}
        empty &= {*head.names} - self._noted
        if not empty:
            return
        start = data[: 1 << 14].tobytes().rpartition(b"\n")[0]
        text = start.decode("utf-8", "backslashreplace")
        rows = csv.DictReader(
            text.splitlines(), head.names, delimiter=chr(head.delimiter)
        )
        for row in rows:
            filled = {
                name
                for name in empty - self._noted
                if (value := (row[name] or "").strip()) not in MISSING and value != name
            }
            self._noted |= filled
            for name in sorted(filled):
                warnings.warn(
                    f"Column {name!r} was empty in the first rows, and is left out; "
                    f"after line {lines:,} it has values, such as {row[name]!r}. To "
                    f"use it, declare its kind: numeric={quote(name)}",
                    DataWarning,
                    stacklevel=2,
                )

    def _warn_of_encoding(self, file: str, data: Bytes, lines: int) -> None:
        """Warn about the first bytes that are not UTF-8."""
        if self._warned_of_encoding or not len(data) or data.max() < 128:
            return
        try:
            data.tobytes().decode()
        except UnicodeDecodeError as error:
            self._warned_of_encoding = True
            line = lines + 1 + int(np.count_nonzero(data[: error.start] == ord("\n")))
            warnings.warn(
                f"{file}, line {line}: this is not UTF-8. Words are compared byte by "
                "byte, and match only data in the same encoding. To convert Latin-1: "
                "iconv -f LATIN1 -t UTF-8",
                UnicodeWarning,
                stacklevel=2,
            )
