"""CSV and its relatives, by blocks of bytes: RFC 4180, and what people do instead.

:mod:`aucmax.io.csv_head` looks at the beginning of a file, and finds out what its
columns are; :mod:`aucmax.io.csv_scan` takes rows out of a block of some megabytes.
"""

import csv
import string
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from aucmax.core.validation import DataWarning
from aucmax.io.chunk import Chunk, Position
from aucmax.io.compression import is_packed
from aucmax.io.csv_head import Head, read_head
from aucmax.io.csv_scan import Scan
from aucmax.io.table_source import TableSource
from aucmax.io.text import Text
from aucmax.tables.column_kinds import EMPTY, Sample
from aucmax.tables.masks import count
from aucmax.tables.options import option
from aucmax.tables.schema import MISSING, Encode, Missing, Schema, Wishes
from aucmax.tables.spans import Bytes, Float, decode

_NO_DELIMITER = '"\r\n+-.' + string.ascii_letters + string.digits
_NEWLINE = ord("\n")


class CsvSource(TableSource):
    """Rows of CSV files.

    Parameters
    ----------
    paths : sequence of str or Text
        Files, patterns, directories; "-" is standard input.
    delimiter : str, default=None
        One character, or "tab"; guessed from the name and the first line.
    header : bool, default=None
        Whether the first line has the names of the columns; guessed. Without a header
        the columns are called "0", "1", …
    label, weight : str or int, default=None
        The columns of the labels and of the weights of rows, by name or position;
        negative positions count from the end.
    drop : sequence of str, default=()
        Columns that are no features.
    only : sequence of str, default=None
        The columns that are features; all others are none.
    categorical, text, numeric, date : sequence of str, default=()
        What columns are, where it is not what they look like: see
        :mod:`aucmax.tables.column_kinds`. Text becomes a bag of hashed words.
    encode : {"auto", "hash", "onehot"}, default="auto"
        What becomes of categories. "auto": a feature for each value that is frequent in
        the first rows, and some for all others. "onehot": one for each value; all data
        are read once more before. "hash": all are hashed.
    hash_size : int or None, default=None
        Number of features that words, and categories if told to, are hashed to; by the
        number of words, 2**18 at most.
    missing : {"auto", "error", "impute", "zero"}, default="auto"
        What becomes of an empty field (or NA, N/A, NaN, null, None, ?): the median of
        the first rows, and a feature that says so if values are missing there; or its
        line is a bad one; or it is the mean of the column over all data, which are read
        once more for it; or zero. A missing category is one of its values with "auto",
        else no feature.
    na : sequence of str, default=()
        More words for a missing value; one that is a number stands for all that are
        equal to it, so that -999 means -999.0 too.
    decimal : {",", "."}, default=None
        The sign of decimals, where a number has a comma: of 1,234 nobody can tell. By
        default what most values of a column suggest.
    dtype : type, default=None
        The float type of X; that of the recipe, else float64.
    keep_text : bool, default=False
        Whether ``Chunk.raw`` has the text of the rows.
    extra : sequence of str, default=()
        Columns to give out as they are.
    recipe : dict, default=None
        What ``recipe()`` of another source has said: the features will be the same.
        Columns are found by name, in any order; label and weight may be absent.
    labelled : bool, default=True
        Whether labels and weights are read; if not, nothing can be wrong with them.
    prompt : bool, default=False
        See :meth:`aucmax.io.text.Text.blocks`.
    """

    _format = "csv"
    _block = 1 << 22  # bytes
    _longest_quoted = 1 << 22

    def __init__(
        self,
        paths: Sequence[str] | Text,
        *,
        delimiter: str | None = None,
        header: bool | None = None,
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
        prompt: bool = False,
    ) -> None:
        self._text = paths if isinstance(paths, Text) else Text(paths)
        super().__init__(
            files=self._text.files,
            size=self._text.size,
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
        if recipe is not None:
            delimiter = delimiter or recipe.get("delimiter")
        if delimiter in ("tab", r"\t"):  # what people write in a shell
            delimiter = "\t"
        self._prompt = prompt
        self._odd_encoding = False  # and it has been said
        self._delimiter = delimiter
        self._header = header
        if header not in (None, True, False):
            raise ValueError(f"header must be true or false, not {header!r}")
        if delimiter is not None and (
            len(delimiter) != 1 or not delimiter.isascii() or delimiter in _NO_DELIMITER
        ):
            raise ValueError(
                f"delimiter must be a single character such as ',' or ';', "
                f"not {delimiter!r}"
            )
        self._first: Head | None = None

    def recipe(self) -> dict[str, Any]:
        """Return the reader options and the schema as JSON."""
        # A delimiter that was guessed can be guessed again.
        return {**super().recipe(), "delimiter": self._delimiter}

    def header(self) -> bytes | None:
        """Return the header line of the first file without its line end, if any."""
        head = self._first_head()
        return head.text if head.header else None

    @property
    def delimiter(self) -> str:
        """Delimiter of the first file."""
        return chr(self._first_head().delimiter)

    def _look(self) -> tuple[list[str], list[Sample], bool]:
        head = self._first_head()
        if self._recipe is None:
            self._refuse_names(head)
            if self._text.sizes[0] is not None and not is_packed(self.files[0]):
                head = head.with_rows_of(self.files[0])
        return head.names, head.samples, head.header

    def _refuse_names(self, head: Head) -> None:
        """Raise an error if a column is given by name and there is no header."""
        named = self._wishes.named()
        if not named or head.header or self._header is not None:
            return
        line = head.data.tobytes().lstrip(b"\r\n").partition(b"\n")[0]
        raise ValueError(
            f"{self.files[0]}: no column {named[0]!r}. The first line does not look "
            f"like a header ({decode(line[:60].rstrip())}), so columns are numbered "
            f"0 to {len(head.names) - 1}. If it is a header: {option('header', True)}"
        )

    def _first_head(self) -> Head:
        """Return the head of the first non-empty file."""
        if self._first is None:
            header = self._header
            if header is None and self._recipe is not None:
                header = bool(self._recipe["header"])
            heads = (self._head(i, header) for i in range(len(self.files)))
            self._first = next((head for head in heads if head is not None), None)
        if self._first is None:
            raise ValueError(f"{', '.join(self.files)}: the file is empty")
        return self._first

    def _head(self, number: int, header: bool | None) -> Head | None:
        with self._text.reader(number, self._block, prompt=self._prompt) as reader:
            file = self.files[number]
            named = self._wishes.named()
            return read_head(
                *(file, reader, self.dtype, self._delimiter, header, named),
                *(self._na, self._wishes.decimal),
            )

    def _read(
        self, schema: Schema, start: Position, dtype: Any, fill: Float | None
    ) -> Iterator[Chunk]:
        header = self._first_head().header
        for number in range(start.file, len(self.files)):
            file = self.files[number]
            here = start if number == start.file else Position(number)
            head = self._head(number, header)
            if head is None:
                continue
            scan = Scan(
                file,
                head.names,
                head.delimiter,
                head.body,
                schema,
                self._locate(schema, head.names, file),
                dtype,
                fill,
                self._extra,
                self._keep_text,
            )
            before = self._text.before(number)
            with self._text.reader(number, self._block, prompt=self._prompt) as reader:
                reader.skip(here.offset)
                for data, final in reader.blocks():
                    here = here._replace(offset=reader.offset)
                    self._note_encoding(file, data, here.line)
                    self._note_filled(schema, head, data, here.line)
                    chunk = scan(data, final, here, self._longest_quoted)
                    used = reader.use(chunk.after.offset - here.offset)
                    # The last line may have been given an end that the file lacks.
                    here = chunk.after._replace(offset=here.offset + used)
                    if chunk.bad or len(chunk.line):
                        yield chunk._replace(after=here, done=before + reader.done)

    def _note_filled(self, schema: Schema, head: Head, data: Bytes, lines: int) -> None:
        """Warn about a column that was empty and has values now."""
        empty = {role["name"] for role in schema.roles if role["role"] == EMPTY}
        empty &= {*head.names} - self._noted
        if not empty:
            return
        text = decode(data[: 1 << 14].tobytes().rpartition(b"\n")[0])
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
                    f"Column {name!r} was empty in the inspected rows and is not "
                    f"used; after line {lines:,} it has values, such as "
                    f"{row[name]!r}. To use it, set its kind, for example "
                    f"{option('numeric', name)}",
                    DataWarning,
                    stacklevel=2,
                )

    def _note_encoding(self, file: str, data: Bytes, lines: int) -> None:
        """Warn about the first bytes that are not UTF-8."""
        if self._odd_encoding or not len(data) or data.max() < 128:
            return
        try:
            data.tobytes().decode()
        except UnicodeDecodeError as error:
            self._odd_encoding = True
            line = lines + 1 + count(data[: error.start], _NEWLINE)
            warnings.warn(
                f"{file}, line {line}: this is not UTF-8. Text is compared byte by "
                "byte, so it matches only data in the same encoding. To convert from "
                "Latin-1: iconv -f LATIN1 -t UTF-8",
                UnicodeWarning,
                stacklevel=2,
            )
