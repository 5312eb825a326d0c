"""CSV and its relatives, by blocks of bytes: RFC 4180, and what people do instead.

A block of some megabytes is scanned once. Fields that are features and plain numbers,
nearly all of most files, go from bytes to X right there; of other fields the scan notes
where they stand. No Python object is made of a field, unless it is a label that is no
number.

A quote counts only as the first byte of a field. Inside, two quotes are one, and
delimiters and line ends are text. Blanks around a field without quotes do not count.
Empty lines are passed over. A line whose quotes make no sense, or close only megabytes
later, is a bad line, and reading goes on at the next line: a quote too many costs a
line, not the file.
"""

import math
import re
import string
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.bits import trailing_zeros, without_first
from aucmax.core.jit import inlined, kernel
from aucmax.data import text
from aucmax.data.chunk import START, BadLine, Lines, Position
from aucmax.data.columns import (
    MISSING,
    Bytes,
    Float,
    Ints,
    Missing,
    Plan,
    Spans,
    Table,
    TableSource,
    Wishes,
    decode,
    dictionary,
    find,
    remedy,
)
from aucmax.data.digits import (
    ASK,
    INF,
    LOOK,
    NAN,
    NONE,
    OK,
    byte_at,
    parse_number,
    read_number,
    read_plain,
)
from aucmax.data.masks import (
    Mask,
    count,
    look,
    mark_either,
    mark_range,
    mask_size,
)
from aucmax.data.text import Text

DELIMITERS = ",;\t|"
_BOM = b"\xef\xbb\xbf"
_NO_DELIMITER = '"\r\n+-.' + string.ascii_letters + string.digits
_DATE = re.compile(
    rb"\s*(\d{4}([-/.])\d\d?\2\d\d?|\d\d?([-/.])\d\d?\3\d{4})"  # year first or last
    rb"([T ]\s*\d\d?:\d\d(:\d\d([.,]\d+)?)?\s*(Z|UTC|[+-]\d\d(:?\d\d)?)?)?\s*"
)
_WITH_COMMA = re.compile(rb"\s*[-+]?\d+,\d+\s*")

_NEWLINE, _RETURN, _QUOTE, _BLANK, _TAB, _ZERO, _NINE = b'\n\r" \t09'
_BLANKS = (_RETURN, _BLANK, _TAB)
_MOST_ASKS = 1 << 12  # numbers of a block that Python has to look at
_MOST_BAD = 1 << 14  # lines of a block that are none: each of them becomes an object

_LONGEST_MISSING = max(map(len, MISSING))
_MISSING_WORDS = tuple(
    int.from_bytes(bytes([len(word)]) + word.encode(), "big") for word in MISSING
)

# What becomes of a column; those from _CATEGORY on are kept as spans.
_SKIP, _NUMBER, _ASIDE, _WEIGHT, _CATEGORY, _NAME, _KEEP = range(7)
_LABEL_SLOT, _WEIGHT_SLOT = 0, 1  # in the array of numbers that are no features

# What can be wrong with a line.
_FINE = 0
_COUNT_WRONG, _QUOTES_WRONG, _ABSENT, _NO_NUMBER = 1, 2, 3, 4
_INFINITE, _NO_LABEL, _NEGATIVE = 5, 6, 7

# What a field can be: as it stands, with doubled quotes, nonsense, not at its end.
_PLAIN, _DOUBLED, _BROKEN, _OPEN = range(4)

# What the scan tells: where it is, and how much it has found.
_AT, _LINE, _ROWS, _BAD, _ASKS, _SIDE = range(6)


class CsvSource(TableSource):
    """Rows of CSV files.

    Parameters
    ----------
    paths : sequence of str
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
    categorical : sequence of str, default=()
        Columns that are categories though they look like numbers.
    encode : {"hash", "onehot"}, default="hash"
        What becomes of categories; "onehot" reads all data once more before.
    text : sequence of str, default=()
        Columns of text, as bags of hashed words.
    hash_size : int, default=2**18
        Number of features that categories and words are hashed to.
    missing : {"error", "impute", "zero"}, default="error"
        What becomes of an empty field (or NA, N/A, NaN, null, None, ?): its line is a
        bad one; or it is the mean of the column over all data, which are read once
        more for it; or zero. A missing category is no feature.
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
        See :class:`aucmax.data.text.Text`.
    """

    _format = "csv"
    _block = 1 << 22  # bytes
    _longest_quoted = 1 << 22

    def __init__(
        self,
        paths: Sequence[str],
        *,
        delimiter: str | None = None,
        header: bool | None = None,
        label: str | int | None = None,
        weight: str | int | None = None,
        drop: Sequence[str] = (),
        only: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
        encode: Literal["hash", "onehot"] = "hash",
        text: Sequence[str] = (),
        hash_size: int = 1 << 18,
        missing: Missing = "error",
        dtype: Any = None,
        keep_text: bool = False,
        extra: Sequence[str] = (),
        recipe: dict[str, Any] | None = None,
        labelled: bool = True,
        prompt: bool = False,
    ) -> None:
        text_files = Text(paths)
        super().__init__(
            files=text_files.files,
            size=text_files.size,
            wishes=Wishes(
                label, weight, drop, only, categorical, text, encode, hash_size, missing
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
            raise ValueError(f"header is true or false, not {header!r}")
        if delimiter is not None and (
            len(delimiter) != 1 or not delimiter.isascii() or delimiter in _NO_DELIMITER
        ):
            raise ValueError(f"delimiter {delimiter!r} is not one sign such as , or ;")
        self._sizes = text_files._sizes
        self._pipes: dict[int, _Reader] = {}
        self._first: _Head | None = None

    def recipe(self) -> dict[str, Any]:
        """Return, for JSON, how text becomes features."""
        # A delimiter that was guessed can be guessed again.
        return {**super().recipe(), "delimiter": self._delimiter}

    def header(self) -> bytes | None:
        """Return the first file's line of names as it is, without its end, if any."""
        head = self._first_head()
        return head.text if head.header else None

    @property
    def delimiter(self) -> str:
        """What is between the fields of the first file."""
        return chr(self._first_head().delimiter)

    def _look(self) -> tuple[list[str], list[bool], bool]:
        head = self._first_head()
        counts = head.kinds or _kinds(_all_spans(head))
        if self._recipe is None:
            self._refuse_puzzles(head, counts)
        return head.names, [not others for _, others in counts], head.header

    def _refuse_puzzles(self, head: "_Head", counts: list[tuple[int, int]]) -> None:
        """Raise an error if a feature has decimal commas, or dates.

        Both would become categories, nearly one a row.
        """
        if all(numbers for numbers, _ in counts):
            return
        wishes = self._wishes
        settled = {*map(str, (*wishes.categorical, *wishes.text, *wishes.drop))}
        settled |= {str(wishes.label), str(wishes.weight)}
        only = None if wishes.only is None else {*map(str, wishes.only)}
        for i, (name, column) in enumerate(
            zip(head.names, _all_spans(head), strict=True)
        ):
            called = {name, str(i), str(i - len(head.names))}
            if counts[i][0] or called & settled:
                continue
            values = _first_values(column)
            if not values or (only is not None and not called & only):
                continue
            if all(map(_WITH_COMMA.fullmatch, values)):
                raise ValueError(
                    f"{self.files[0]}: the numbers of column {name!r} have decimal "
                    f"commas ({decode(values[0])}): write them with points, or say "
                    f"that they are categories: --input categorical={name}"
                )
            if all(map(_DATE.fullmatch, values)):
                date = decode(values[0])
                raise ValueError(
                    f"{self.files[0]}: column {name!r} has dates ({date}), which "
                    f"are neither numbers nor categories: --input drop={name}, "
                    f"or --input categorical={name} if it has few values"
                )

    def _first_head(self) -> "_Head":
        """Return the beginning of the first file that has one."""
        if self._first is None:
            header = self._header
            if header is None and self._recipe is not None:
                header = bool(self._recipe["header"])
            for number, file in enumerate(self.files):
                with self._reader(number) as reader:
                    head = _head(
                        file, reader.peek(), self.dtype, self._delimiter, header
                    )
                if head is not None:
                    self._first = head
                    break
            else:
                raise ValueError(f"{', '.join(self.files)}: there are no lines in it")
        return self._first

    def _reader(self, number: int) -> "_Reader":
        if self._sizes[number] is not None:
            return _Reader(self.files[number], self._block)
        if number not in self._pipes:  # a pipe, which cannot be opened again
            self._pipes[number] = _Reader(
                self.files[number], self._block, pipe=True, prompt=self._prompt
            )
        elif self._pipes[number].begun:
            path = self._pipes[number].path
            raise ValueError(f"{path} is a pipe, which can be read only once")
        return self._pipes[number]

    def _tables(
        self, plan: Plan, start: Position, dtype: Any, fill: Float | None
    ) -> Iterator[Table]:
        header = self._first_head().header
        sizes = [size or 0 for size in self._sizes]
        for number in range(start.file, len(self.files)):
            file = self.files[number]
            here = start if number == start.file else Position(number)
            with self._reader(number) as reader:
                head = _head(file, reader.peek(), self.dtype, self._delimiter, header)
            if head is None:
                continue
            place = self._locate(plan, head.names, file)
            scan = _Scan(
                file, head, plan, place, dtype, fill, self._extra, self._keep_text
            )
            before = sum(sizes[:number])
            with self._reader(number) as reader:
                reader.skip(here.offset)
                for data, final in reader.blocks():
                    self._note_encoding(file, data, here.line)
                    table = scan(data, here, final, self._longest_quoted)
                    here = reader.use(here, table.after)
                    if table.bad or len(table.numbers):
                        yield table._replace(after=here, done=before + reader.done)

    def _note_encoding(self, file: str, data: Bytes, lines: int) -> None:
        """Warn of the first bytes that are no UTF-8: words are compared by bytes."""
        if self._odd_encoding or not len(data) or data.max() < 128:
            return
        try:
            data.tobytes().decode()
        except UnicodeDecodeError as error:
            self._odd_encoding = True
            line = lines + 1 + count(data[: error.start], _NEWLINE)
            warnings.warn(
                f"{file}, line {line}: this is not UTF-8. Words are taken byte for "
                "byte, and match those of other data in the same encoding only. To "
                "convert, if it is Latin-1: iconv -f LATIN1 -t UTF-8",
                UnicodeWarning,
                stacklevel=2,
            )


class _Reader:
    """A file, in blocks that overlap by what was not used of the one before."""

    def __init__(
        self, file: str, block: int, pipe: bool = False, prompt: bool = False
    ) -> None:
        self._stream = text._open(file)
        self._pipe = pipe  # stays open until the rows have been read
        self._prompt = prompt
        self._rest = np.empty(0, np.uint8)
        self._tried = 0  # bytes of it that have been given, and not used
        self._block = block
        self._offset = 0  # of the rest
        self._ended = False
        self.begun = False

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        if self.begun or not self._pipe:
            self._stream.close()

    @property
    def path(self) -> str:
        """What to call the file in messages."""
        return self._stream.path

    @property
    def done(self) -> int:
        """Bytes of the file that have been read."""
        return self._stream.done

    def peek(self) -> tuple[Bytes, bool]:
        """Return what ``blocks`` will give first, without using it."""
        size = self._size()
        while True:
            data, final = self._fill(size)
            lines = _whole_lines(data, final)
            if len(lines) or final:
                self._tried = 0
                return lines, final
            self._tried = len(data)
            size = self._larger(size)

    def skip(self, offset: int) -> None:
        """Go to ``offset``."""
        self.begun = True
        known = min(len(self._rest), offset)
        self._rest = self._rest[known:]
        if offset > known:
            self._stream.skip(offset - known)
        self._offset = offset

    def blocks(self) -> Iterator[tuple[Bytes, bool]]:
        """Yield lines, and whether they are the last; ``use`` is called in between."""
        size = self._size()
        while True:
            data, final = self._fill(size)
            if not len(data):
                return
            lines = _whole_lines(data, final)
            self._used = 0
            if len(lines):
                yield lines, final
            self._offset += self._used
            self._rest = self._rest[self._used :]
            self._tried = len(data) - self._used
            size = self._size() if self._used else self._larger(size)

    def use(self, start: Position, after: Position) -> Position:
        """Take in what need not come again; return where that ends in the file."""
        # The last line may have been given an end that the file does not have.
        self._used = min(after.offset - start.offset, len(self._rest))
        return after._replace(offset=start.offset + self._used)

    def _fill(self, size: int) -> tuple[Bytes, bool]:
        """Return the next ``size`` bytes, and whether the file ends before that."""
        known = len(self._rest)
        if known >= size:
            return self._rest[:size], False
        if self._prompt and known > self._tried:
            return self._rest, False
        buffer = np.empty(size, np.uint8)
        buffer[:known] = self._rest
        view = memoryview(buffer.data)[known:]
        more, self._ended = text.arriving(self._stream, view, self._prompt)
        self._rest = buffer[: known + more]
        return self._rest, self._ended

    def _size(self) -> int:
        return text.block_size(self._offset, self._block, self._pipe)

    def _larger(self, size: int) -> int:
        """Return how much to read if there was no row in ``size`` bytes."""
        if self._prompt and not self._ended and len(self._rest) < size:
            return size  # there may be one when more has come
        if 2 * size > text.LONGEST:
            raise ValueError(
                f"{self._stream.path}: the text has a line of more than {size} bytes: "
                "are these text data?"
            )
        return 2 * size


def _whole_lines(data: Bytes, final: bool) -> Bytes:
    """Return the lines that have an end, and the last one of a file given its end."""
    if final and len(data) and data[-1] != _NEWLINE:
        whole = np.empty(len(data) + 1, np.uint8)
        whole[:-1], whole[-1] = data, _NEWLINE
        return whole
    return data[: text._after_last_line(data, 0, len(data))]


class _Head(NamedTuple):
    """What the first block of a file tells."""

    data: Bytes
    final: bool  # whether this is all there is
    dtype: Any  # of X, so that the kernel need not be compiled for another
    names: list[str]  # of the columns
    header: bool
    delimiter: int
    text: bytes  # of the header
    body: int  # where the rows begin, in bytes and in lines
    body_line: int
    kinds: list[tuple[int, int]] | None = None  # of the columns, if they are known


def _head(
    file: str,
    beginning: tuple[Bytes, bool],
    dtype: Any,
    delimiter: str | None,
    header: bool | None,
) -> _Head | None:
    """Look at the beginning of a file; None if there is nothing."""
    data, final = beginning
    start = 3 if data[:3].tobytes() == _BOM else 0
    if data[:2].tobytes() in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(
            f"{file}: this text is UTF-16, which is not read; make it UTF-8, such as "
            "by: iconv -f UTF-16 -t UTF-8"
        )
    block = data.tobytes()
    first = len(block) - len(block[start:].lstrip(b"\r\n"))
    if first == len(block):
        return None
    sign = ord(delimiter or _guess_delimiter(file, block, first))
    fields, body = _record(file, block, first, sign)
    line = block[first:body].rstrip(b"\r\n")
    skipped = block.count(b"\n", 0, body)
    names = _names(fields)
    head = _Head(data, final, dtype, names, True, sign, line, body, skipped)
    if header is None:
        header, kinds = _guess_header(fields, head)
        head = head._replace(kinds=kinds)
    if header:
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"{file}: two columns are called {twice!r}: rename one of them, or say "
                "that there is no header: --input header=false"
            )
        return head
    return head._replace(
        names=[str(i) for i in range(len(names))],
        header=False,
        text=b"",
        body=start,
        body_line=0,
        kinds=None,
    )


def _names(fields: list[bytes]) -> list[str]:
    """Return the names in a header; a column without one is called by its position."""
    return [decode(field).strip() or str(i) for i, field in enumerate(fields)]


def _guess_delimiter(file: str, block: bytes, start: int) -> str:
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
    return chr(max(counts, key=lambda byte: counts[byte]))


def _guess_header(
    fields: list[bytes], head: _Head
) -> tuple[bool, list[tuple[int, int]] | None]:
    """Guess whether the first line has names; return the kinds of the columns, too.

    It has if a column of numbers has something else there. If there is no such column,
    it has if nothing in it is a number, no name is there twice and none is also a value
    of its column.
    """
    number = [_is_number(field) for field in fields]
    name = [
        not n and decode(f).strip() not in MISSING
        for n, f in zip(number, fields, strict=True)
    ]
    if not any(name):
        return False, None
    spans = _all_spans(head)
    counts = _kinds(spans)
    if any(
        is_name and numbers and not others
        for is_name, (numbers, others) in zip(name, counts, strict=True)
    ):
        return True, counts
    if any(number) or len(set(head.names)) < len(head.names):
        return False, None
    among_values = any(
        is_name and field in dictionary(column)[1]
        for is_name, field, column in zip(name, head.names, spans, strict=True)
    )
    return not among_values, counts


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
        _read_field(data, at, len(data), delimiter, place)
        start, stop, at, shape = place.tolist()
        if shape >= _BROKEN:
            raise ValueError(
                f"{file}: the quotes in the first line make no sense: a quoted field "
                "ends with a quote, and quotes in it are doubled"
            )
        field = block[start:stop]
        fields.append(field.replace(b'""', b'"') if shape == _DOUBLED else field)
        if block[at - 1] == _NEWLINE:
            return fields, at


def _all_spans(head: _Head) -> list[Spans]:
    """Return the values of all columns in the first block."""
    names = [str(i) for i in range(len(head.names))]
    plan = Plan(names, True, [], [], names, None, False, None, "hash", 1, "zero")
    place = {name: i for i, name in enumerate(names)}
    scan = _Scan("", head, plan, place, head.dtype, None, [], False)
    return scan(head.data, START, head.final, len(head.data)).texts


def _first_values(column: Spans, most: int = 100) -> list[bytes]:
    """Return values of the first rows, without those that are missing."""
    data, starts, stops = column
    rows = range(min(most, len(starts)))
    return [data[starts[i] : stops[i]].tobytes() for i in rows if stops[i] > starts[i]]


def _kinds(columns: list[Spans]) -> list[tuple[int, int]]:
    counts = np.zeros((len(columns), 2), np.int64)
    for spans, pair in zip(columns, counts, strict=True):
        _count_numbers(*spans, pair)
    return [(int(numbers), int(others)) for numbers, others in counts]


class _Scan:
    """The scan of one file: columns by position, arrays to fill, and messages."""

    def __init__(
        self,
        file: str,
        head: _Head,
        plan: Plan,
        place: dict[str, int],
        dtype: Any,
        fill: Float | None,
        extra: Sequence[str],
        keep_text: bool,
    ) -> None:
        self._file, self._head, self._plan = file, head, plan
        self._dtype, self._keep_text = dtype, keep_text
        self._largest = float(np.finfo(dtype).max)
        self._refuse = fill is None
        self._fill = np.zeros(len(plan.numbers)) if fill is None else fill
        n = len(head.names)
        self._roles = np.full(n, _SKIP)
        self._slots = np.zeros(n, np.int64)
        self._kept = np.full(n, -1)
        for slot, name in enumerate(plan.numbers):
            self._roles[place[name]] = _NUMBER
            self._slots[place[name]] = slot
        for name in plan.categories:
            self._roles[place[name]] = _CATEGORY
        for name in plan.texts:
            self._roles[place[name]] = _KEEP
        self._label = None if plan.label is None else place.get(plan.label)
        if self._label is not None:
            self._roles[self._label] = _ASIDE if plan.label_is_number else _NAME
            self._slots[self._label] = _LABEL_SLOT
        self._weight = None if plan.weight is None else place.get(plan.weight)
        if self._weight is not None:
            self._roles[self._weight] = _WEIGHT
            self._slots[self._weight] = _WEIGHT_SLOT
        self._extra = {name: find(head.names, name) for name in extra}
        wanted = self._roles >= _CATEGORY
        wanted[list(self._extra.values())] = True
        self._kept[wanted] = np.arange(np.count_nonzero(wanted))
        self._categories = [int(self._kept[place[name]]) for name in plan.categories]
        self._texts = [int(self._kept[place[name]]) for name in plan.texts]

    def __call__(self, data: Bytes, start: Position, final: bool, limit: int) -> Table:
        """Return the rows of a block."""
        ends = count(data, _NEWLINE)
        # A row has as many bytes as fields, at least; one more that may turn out bad.
        bound = min(ends, len(data) // len(self._roles)) + 1
        n_kept = int(self._kept.max(initial=-1)) + 1
        X = np.empty((bound, len(self._plan.numbers)), self._dtype)
        aside = np.empty((bound, 2))
        starts = np.empty((n_kept, bound), np.int64)
        stops = np.empty((n_kept, bound), np.int64)
        rows = np.empty((3, bound), np.int64)
        bad = np.empty((min(ends, _MOST_BAD), 7), np.int64)
        asks = np.empty((_MOST_ASKS + len(self._roles), 5), np.int64)
        side = np.empty(len(data), np.uint8)  # memory that is not used costs nothing
        masks = np.empty((3, mask_size(len(data))), np.uint8)
        state = np.zeros(6, np.int64)
        if start.offset < self._head.body:
            state[_AT] = self._head.body - start.offset
            state[_LINE] = self._head.body_line - start.line
        _scan(
            data,
            final,
            self._head.delimiter,
            limit,
            self._roles,
            self._slots,
            self._kept,
            self._fill,
            self._refuse,
            self._largest,
            X,
            aside,
            starts,
            stops,
            rows,
            bad,
            asks,
            side,
            masks,
            state,
        )
        at, lines, n, n_bad, n_asks, n_side = state.tolist()
        entries = bad[:n_bad].tolist()
        gone = np.zeros(n, bool)
        for row, column, line, first, last in asks[:n_asks].tolist():
            value = float(data[first:last].tobytes())
            role = self._roles[column]
            problem = _judge(value, self._largest if role == _NUMBER else math.inf)
            if role == _WEIGHT and value < 0:
                problem = _NEGATIVE
            if not problem:
                (X if role == _NUMBER else aside)[row, self._slots[column]] = value
            elif not gone[row]:
                gone[row] = True
                entries.append(
                    [problem, column, line, *rows[:2, row].tolist(), first, last]
                )
        good: Any = ~gone if gone.any() else slice(0, n)
        block = np.concatenate([data, side[:n_side]]) if n_side else data

        def spans(k: int) -> Spans:
            return Spans(block, starts[k, :n][good], stops[k, :n][good])

        label = None
        if self._label is not None:
            k = int(self._kept[self._label])
            is_number = self._plan.label_is_number
            label = aside[:n, _LABEL_SLOT][good].copy() if is_number else spans(k)
        entries.sort(key=lambda entry: entry[2])
        return Table(
            numbers=X[:n][good],
            categories=[spans(k) for k in self._categories],
            texts=[spans(k) for k in self._texts],
            label=label,
            weight=(
                None if self._weight is None else aside[:n, _WEIGHT_SLOT][good].copy()
            ),
            extra={
                name: _present(spans(int(self._kept[column])))
                for name, column in self._extra.items()
            },
            bad=[self._bad_line(data, start.line, *entry) for entry in entries],
            raw=(
                Lines(data.tobytes(), rows[0, :n][good], rows[1, :n][good])
                if self._keep_text
                else None
            ),
            after=Position(start.file, start.offset + at, start.line + lines),
            done=0,
            file=self._file,
            line=start.line + 1 + rows[2, :n][good],
        )

    def _bad_line(
        self,
        data: Bytes,
        lines: int,
        problem: int,
        column: int,
        line: int,
        begin: int,
        end: int,
        start: int,
        stop: int,
    ) -> BadLine:
        names = self._head.names
        name = names[column] if 0 <= column < len(names) else None
        value = repr(decode(data[start:stop].tobytes()[:80]))
        label = "the label" if column == self._label else "the value"
        if problem == _COUNT_WRONG:
            name = None
            what = f"there are {column} fields where {len(names)} are expected"
        elif problem == _QUOTES_WRONG:
            what = (
                "the quotes make no sense: a quoted field ends with a quote, and "
                "quotes in it are doubled"
            )
        elif problem == _ABSENT and column == self._weight:
            what = f"the weight is missing ({value})"
        elif problem == _ABSENT:
            category = bool(self._roles[column] == _CATEGORY)
            what = f"the value is missing ({value}): {remedy(category)}"
        elif problem == _NO_NUMBER:
            what = f"{label} {value} is not a number, as those at the beginning were"
            if column != self._weight:
                what += f": --input categorical={name} makes categories of them"
        elif problem == _INFINITE:
            what = f"{label} {value} is not finite, or too large for {self._dtype}"
        elif problem == _NO_LABEL:
            what = f"the label is missing ({value})"
        else:
            what = f"the weight {value} is negative"
        row = data[begin:end].tobytes()
        return BadLine(self._file, lines + line + 1, name, what, row)


def _judge(value: float, largest: float) -> int:
    return _INFINITE if not math.isfinite(value) or abs(value) > largest else _FINE


def _present(spans: Spans) -> Spans:
    """Return missing values as they stand in the file."""
    return spans._replace(stops=np.where(spans.stops < 0, ~spans.stops, spans.stops))


@inlined
def _field(data: Bytes, at: int, stop: int, delimiter: int, limit: int) -> Any:
    """Return start and stop of the field at ``at``, what comes next, and its shape.

    The last byte before ``stop`` is the end of a line.
    """
    if data[at] == _QUOTE:
        shape = _PLAIN
        last = min(stop, at + 1 + limit)
        end = at + 1
        while True:
            while end < last and data[end] != _QUOTE:
                end += 1
            if end >= last:
                return at, at, at, _BROKEN if last < stop else _OPEN
            if data[end + 1] != _QUOTE:
                break
            shape = _DOUBLED
            end += 2
        after = end + 1
        if data[after] == _RETURN and data[after + 1] == _NEWLINE:
            after += 1
        if data[after] != delimiter and data[after] != _NEWLINE:
            return at, at, at, _BROKEN
        return at + 1, end, after + 1, shape
    after = at
    while data[after] != delimiter and data[after] != _NEWLINE:
        after += 1
    start, end = at, after
    if data[after] == _NEWLINE and end > start and data[end - 1] == _RETURN:
        end -= 1
    while start < end and (data[start] == _BLANK or data[start] == _TAB):
        start += 1
    while start < end and (data[end - 1] == _BLANK or data[end - 1] == _TAB):
        end -= 1
    return start, end, after + 1, _PLAIN


@inlined
def _short_field(
    data: Bytes, at: int, delimiter: int, limit: int, ends: Mask, quotes: Mask
) -> tuple[int, int, int]:
    """Return as :func:`_field` does where nothing is special; else the last is 0."""
    if byte_at(data, at) == _QUOTE:
        size = trailing_zeros(without_first(look(quotes, at)))
        after = byte_at(data, at + size + 1)
        plain = size < 57 and size <= limit
        plain = plain and after in (delimiter, _NEWLINE)
        return at + 1, at + size, at + size + 2 if plain else 0
    size = trailing_zeros(look(ends, at))
    if size == 0:
        return at, at, at + 1
    if size >= 57 or byte_at(data, at) in _BLANKS:
        return at, at, 0
    plain = byte_at(data, at + size - 1) not in _BLANKS
    return at, at + size, at + size + 1 if plain else 0


@kernel
def _read_field(data: Bytes, at: int, stop: int, delimiter: int, place: Ints) -> None:
    place[0], place[1], place[2], place[3] = _field(data, at, stop, delimiter, stop)


@kernel
def _number(data: Bytes, start: int, stop: int) -> Any:
    """Return the number that the field is, and a verdict; one copy for all callers."""
    return parse_number(data, start, stop)


@inlined
def _is_missing(data: Bytes, start: int, stop: int) -> bool:
    """Tell whether a field is one of ``MISSING``."""
    length = stop - start
    if length > _LONGEST_MISSING:
        return False
    word = length
    for i in range(start, stop):
        word = word << 8 | int(data[i])
    for missing in _MISSING_WORDS:  # noqa: SIM110
        if word == missing:
            return True
    return False


@kernel
def _count_numbers(data: Bytes, starts: Ints, stops: Ints, counts: Ints) -> None:
    """Count the numbers, and what is neither a number nor missing."""
    for i in range(len(starts)):
        if not _is_missing(data, starts[i], stops[i]):
            _, verdict = _number(data, starts[i], stops[i])
            if verdict == NONE:
                counts[1] += 1
            elif verdict != NAN:
                counts[0] += 1


@kernel
def _scan(
    data: Bytes,
    final: bool,
    delimiter: int,
    limit: int,
    roles: Ints,
    slots: Ints,
    kept: Ints,
    fill: Float,
    refuse: bool,
    largest: float,
    X: NDArray[Any],
    aside: Float,
    starts: Ints,
    stops: Ints,
    rows: Ints,
    bad: Ints,
    asks: Ints,
    side: Bytes,
    masks: NDArray[np.uint8],
    state: Ints,
) -> None:
    """Read rows out of whole lines, and say in ``state`` how far it went."""
    n_columns = len(roles)
    stop = len(data)
    ends, digits, quotes = masks[0], masks[1], masks[2]
    mark_either(data, delimiter, _NEWLINE, ends)
    mark_range(data, _ZERO, _NINE, digits)
    mark_range(data, _QUOTE, _QUOTE, quotes)
    far = stop - LOOK
    at, line = state[_AT], state[_LINE]
    row, n_bad, n_asks, n_side = 0, 0, 0, 0
    while at < stop:
        if data[at] == _NEWLINE:
            at += 1
            line += 1
            continue
        if data[at] == _RETURN and data[at + 1] == _NEWLINE:
            at += 2
            line += 1
            continue
        if n_asks + n_columns > len(asks) or n_bad == len(bad):
            break  # the rest is for the next block
        begin = at
        column = 0
        problem, at_fault, start_fault, stop_fault = _FINE, 0, 0, 0
        new_asks, new_side = n_asks, n_side
        quoted = False
        shape = _PLAIN
        while True:
            role = roles[column] if column < n_columns else _SKIP
            if role == _NUMBER:  # nearly always the field is nothing else
                plain = False
                if at < far:
                    end = at + trailing_zeros(look(ends, at))
                    value, plain = read_plain(data, at, end - at, ~look(digits, at))
                if not plain:
                    value, verdict, end = read_number(data, at, stop)
                    plain = verdict == OK and abs(value) <= largest
                after = data[end]
                if plain and after in (delimiter, _NEWLINE):
                    X[row, slots[column]] = value
                    if kept[column] >= 0:
                        starts[kept[column], row] = at
                        stops[kept[column], row] = end
                    column += 1
                    at = end + 1
                    if after == _NEWLINE:
                        break
                    continue
            quoted |= data[at] == _QUOTE
            start, end, after_field = at, at, 0
            if at < far:
                start, end, after_field = _short_field(
                    data, at, delimiter, limit, ends, quotes
                )
            if after_field:
                at, shape = after_field, _PLAIN
            else:
                start, end, at, shape = _field(data, at, stop, delimiter, limit)
            if shape >= _BROKEN:
                break
            last = data[at - 1] == _NEWLINE
            fault = _FINE
            absent = False
            if role in (_SKIP, _KEEP):
                pass
            elif role == _CATEGORY:
                if _is_missing(data, start, end):
                    absent = True
                    if refuse:
                        fault = _ABSENT
            elif role == _NAME:
                if start == end:
                    fault = _NO_LABEL
            else:
                value, verdict = _number(data, start, end)
                if verdict == NAN or (
                    verdict == NONE and _is_missing(data, start, end)
                ):
                    if role == _NUMBER and not refuse:
                        X[row, slots[column]] = fill[slots[column]]
                    else:
                        fault = _NO_LABEL if role == _ASIDE else _ABSENT
                elif verdict == NONE:
                    fault = _NO_NUMBER
                elif verdict == ASK:
                    asks[new_asks, 0] = row
                    asks[new_asks, 1] = column
                    asks[new_asks, 2] = line
                    asks[new_asks, 3] = start
                    asks[new_asks, 4] = end
                    new_asks += 1
                elif verdict == INF:
                    fault = _INFINITE
                elif role == _NUMBER:
                    if abs(value) > largest:
                        fault = _INFINITE
                    else:
                        X[row, slots[column]] = value
                else:
                    aside[row, slots[column]] = value
                    if role == _WEIGHT and value < 0.0:
                        fault = _NEGATIVE
            if problem == _FINE and fault != _FINE:
                problem, at_fault = fault, column
                start_fault, stop_fault = start, end
            if column < n_columns and kept[column] >= 0:
                k = kept[column]
                if shape == _DOUBLED:
                    starts[k, row] = stop + new_side
                    i = start
                    while i < end:
                        side[new_side] = data[i]
                        new_side += 1
                        i += 2 if data[i] == _QUOTE else 1
                    stops[k, row] = stop + new_side
                else:
                    starts[k, row] = start
                    stops[k, row] = ~end if absent else end
            column += 1
            if last:
                break
        if shape == _OPEN and not final:
            at = begin  # the next block will have more of it
            break
        first_line = line
        if shape >= _BROKEN:
            problem, at_fault = _QUOTES_WRONG, -1
            at = begin
            while data[at] != _NEWLINE:
                at += 1
            at += 1
            line += 1
        else:
            if column != n_columns:
                problem, at_fault = _COUNT_WRONG, column
            line += 1
            if quoted:
                for i in range(begin, at - 1):
                    line += data[i] == _NEWLINE
        end = at - 1
        if end > begin and data[end - 1] == _RETURN:
            end -= 1
        if problem == _FINE:
            rows[0, row] = begin
            rows[1, row] = end
            rows[2, row] = first_line
            row += 1
            n_asks, n_side = new_asks, new_side
        else:
            bad[n_bad, 0] = problem
            bad[n_bad, 1] = at_fault
            bad[n_bad, 2] = first_line
            bad[n_bad, 3] = begin
            bad[n_bad, 4] = end
            bad[n_bad, 5] = start_fault
            bad[n_bad, 6] = stop_fault
            n_bad += 1
    state[_AT], state[_LINE] = at, line
    state[_ROWS], state[_BAD] = row, n_bad
    state[_ASKS], state[_SIDE] = n_asks, n_side
