"""Lines of CSV become columns: one pass over the bytes of a block.

Fields that are features and plain numbers, nearly all of most files, go from bytes to X
right there; of other fields the scan notes where they stand. No Python object is made
of a field, unless it is a label that is no number.

A quote counts only as the first byte of a field. Inside, two quotes are one, and
delimiters and line ends are text. Blanks around a field without quotes do not count.
Empty lines are passed over. A line whose quotes make no sense, or close only megabytes
later, is a bad line, and reading goes on at the next line: a quote too many costs a
line, not the file.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel
from aucmax.io.chunk import BadLine, Chunk, Lines, Position
from aucmax.io.digits import (
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
from aucmax.tables.bits import trailing_zeros, without_first
from aucmax.tables.masks import (
    Mask,
    count,
    look,
    mark_either,
    mark_range,
    mask_size,
)
from aucmax.tables.missing_values import as_bytes
from aucmax.tables.options import option
from aucmax.tables.schema import MISSING, Columns, Schema, find, remedy
from aucmax.tables.spans import Bytes, Float, Ints, Spans, decode, objects

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
_PLAIN, DOUBLED, BROKEN, _OPEN = range(4)

# What the scan tells: where it is, and how much it has found.
_AT, _LINE, _ROWS, _BAD, _ASKS, _SIDE = range(6)


class _Places(NamedTuple):
    """Use and target position of each column."""

    roles: Ints
    slots: Ints  # the column of ``numbers`` or of ``aside``
    kept: Ints  # the row of ``starts`` and ``stops``; -1 is none


class _Found(NamedTuple):
    """Output arrays of a scan."""

    numbers: NDArray[Any]
    aside: Float  # labels and weights that are numbers
    starts: Ints  # of the fields that are kept, a row for each column …
    stops: Ints  # … in the block, or after it if they had doubled quotes
    rows: Ints  # begin, end and line of each
    bad: Ints  # problem, column, line, begin, end; begin and end of the field
    asks: Ints  # numbers for Python: row, column, line, begin, end
    side: Bytes  # fields that had doubled quotes
    state: Ints


class Scan:
    """The scan of one file: columns by position, arrays to fill, and messages.

    ``body`` is where its rows begin; ``place`` has the columns of ``schema`` among
    ``names``, which are all columns of the file.
    """

    def __init__(
        self,
        file: str,
        names: list[str],
        delimiter: int,
        body: Position,
        schema: Schema,
        place: dict[str, int],
        dtype: Any,
        fill: Float | None = None,
        extra: Sequence[str] = (),
        keep_text: bool = False,
    ) -> None:
        self._file, self._names, self._delimiter = file, names, delimiter
        self._body, self._schema = body, schema
        self._dtype, self._keep_text = dtype, keep_text
        self._largest = float(np.finfo(dtype).max)
        self._refuse = fill is None
        self._words = as_bytes(schema.na)
        self._fill = np.zeros(len(schema.numbers)) if fill is None else fill
        n = len(names)
        roles, slots, kept = np.full(n, _SKIP), np.zeros(n, np.int64), np.full(n, -1)
        for slot, name in enumerate(schema.numbers):
            roles[place[name]] = _NUMBER
            slots[place[name]] = slot
        spelt = [*schema.notated, *schema.dates]  # what they are is for others to say
        for name in [*schema.categories, *spelt]:
            roles[place[name]] = _CATEGORY
        for name in schema.texts:
            roles[place[name]] = _KEEP
        self._label = None if schema.label is None else place.get(schema.label)
        if self._label is not None:
            roles[self._label] = _ASIDE if schema.label_is_number else _NAME
            slots[self._label] = _LABEL_SLOT
        self._weight = None if schema.weight is None else place.get(schema.weight)
        if self._weight is not None:
            roles[self._weight] = _WEIGHT
            slots[self._weight] = _WEIGHT_SLOT
        self._extra = {name: find(names, name) for name in extra}
        wanted = roles >= _CATEGORY
        wanted[list(self._extra.values())] = True
        kept[wanted] = np.arange(np.count_nonzero(wanted))
        self._categories = [int(kept[place[name]]) for name in schema.categories]
        self._texts = [int(kept[place[name]]) for name in schema.texts]
        self._others = [int(kept[place[name]]) for name in spelt]
        self._places = _Places(roles, slots, kept)

    def __call__(
        self, data: Bytes, final: bool, start: Position, longest_quoted: int
    ) -> Chunk:
        """Parse the rows of a block whose first byte is at ``start``.

        X is :class:`Columns`; the last rows may be left to the next block.
        """
        if final and data[-1] != _NEWLINE:
            data = np.append(data, np.uint8(_NEWLINE))
        roles, slots, kept = self._places
        found = self._room(data)
        state = found.state
        if start.offset < self._body.offset:
            state[_AT] = self._body.offset - start.offset
            state[_LINE] = self._body.line - start.line
        _scan(
            data,
            final,
            self._delimiter,
            longest_quoted,
            self._places,
            self._fill,
            self._refuse,
            self._largest,
            self._words,
            np.empty((3, mask_size(len(data))), np.uint8),
            found,
        )
        at, lines, n, n_bad, n_asks, n_side = state.tolist()
        entries = found.bad[:n_bad].tolist()
        gone = np.zeros(n, bool)
        for row, column, line, first, last in found.asks[:n_asks].tolist():
            value = float(data[first:last].tobytes())
            role = roles[column]
            problem = _judge(value, self._largest if role == _NUMBER else math.inf)
            if role == _WEIGHT and value < 0:
                problem = _NEGATIVE
            if not problem:
                target = found.numbers if role == _NUMBER else found.aside
                target[row, slots[column]] = value
            elif not gone[row]:
                gone[row] = True
                begin, end = found.rows[:2, row].tolist()
                entries.append([problem, column, line, begin, end, first, last])
        good: Any = ~gone if gone.any() else slice(0, n)
        block = np.concatenate([data, found.side[:n_side]]) if n_side else data

        def spans(k: int) -> Spans:
            return Spans(block, found.starts[k, :n][good], found.stops[k, :n][good])

        def aside(slot: int) -> Float:
            return found.aside[:n, slot][good].copy()

        label: Any = None
        if self._label is not None:
            is_number = self._schema.label_is_number
            k = int(kept[self._label])
            label = aside(_LABEL_SLOT) if is_number else objects(spans(k))
        entries.sort(key=lambda entry: entry[2])
        begin, end, line = found.rows[:, :n][:, good]
        return Chunk(
            X=Columns(
                found.numbers[:n][good],
                [spans(k) for k in self._categories],
                [spans(k) for k in self._texts],
                [spans(k) for k in self._others],
            ),
            y=label,
            weight=None if self._weight is None else aside(_WEIGHT_SLOT),
            bad=[self._bad_line(data, start.line, *entry) for entry in entries],
            raw=Lines(data.tobytes(), begin, end) if self._keep_text else None,
            extra={
                name: objects(_present(spans(int(kept[column]))))
                for name, column in self._extra.items()
            },
            after=Position(start.file, start.offset + at, start.line + lines),
            done=0,
            file=self._file,
            line=start.line + 1 + line,
        )

    def _room(self, data: Bytes) -> _Found:
        """Allocate arrays for the rows of a block; unused memory costs nothing."""
        roles, _, kept = self._places
        ends = count(data, _NEWLINE)
        # A row has as many bytes as fields, at least; one more that may turn out bad.
        bound = min(ends, len(data) // len(roles)) + 1
        n_kept = int(kept.max(initial=-1)) + 1
        return _Found(
            numbers=np.empty((bound, len(self._schema.numbers)), self._dtype),
            aside=np.empty((bound, 2)),
            starts=np.empty((n_kept, bound), np.int64),
            stops=np.empty((n_kept, bound), np.int64),
            rows=np.empty((3, bound), np.int64),
            bad=np.empty((min(ends, _MOST_BAD), 7), np.int64),
            asks=np.empty((_MOST_ASKS + len(roles), 5), np.int64),
            side=np.empty(len(data), np.uint8),
            state=np.zeros(6, np.int64),
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
        names = self._names
        name = names[column] if 0 <= column < len(names) else None
        value = repr(decode(data[start:stop].tobytes()[:80]))
        label = "the label" if column == self._label else "the value"
        if problem == _COUNT_WRONG:
            name = None
            what = f"{column} fields instead of {len(names)}"
        elif problem == _QUOTES_WRONG:
            what = (
                "malformed quoting: a quoted field ends with a quote, and quotes "
                "inside it are doubled"
            )
        elif problem == _ABSENT and column == self._weight:
            what = f"the weight is missing ({value})"
        elif problem == _ABSENT:
            category = bool(self._places.roles[column] == _CATEGORY)
            what = f"the value is missing ({value}): {remedy(category)}"
        elif problem == _NO_NUMBER and value == repr(name):
            what = (
                "the value is the name of the column: this looks like a repeated "
                "header. Remove the line"
            )
        elif problem == _NO_NUMBER:
            what = f"{label} {value} is not a number, unlike the first values"
            if column != self._weight:
                what += (
                    f"; in training, {option('categorical', name)} reads the column as "
                    "categorical, and na=WORD declares a missing-value marker"
                )
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
    """Return the text of missing values in the file."""
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
                return at, at, at, BROKEN if last < stop else _OPEN
            if data[end + 1] != _QUOTE:
                break
            shape = DOUBLED
            end += 2
        after = end + 1
        if data[after] == _RETURN and data[after + 1] == _NEWLINE:
            after += 1
        if data[after] != delimiter and data[after] != _NEWLINE:
            return at, at, at, BROKEN
        start = at + 1  # blanks within the quotes do not count, as in other formats
        while start < end and data[start] in _BLANKS:
            start += 1
        while start < end and data[end - 1] in _BLANKS:
            end -= 1
        return start, end, after + 1, shape
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
        plain = plain and byte_at(data, at + 1) not in _BLANKS
        plain = plain and byte_at(data, at + size - 1) not in _BLANKS
        return at + 1, at + size, at + size + 2 if plain else 0
    size = trailing_zeros(look(ends, at))
    if size == 0:
        return at, at, at + 1
    if size >= 57 or byte_at(data, at) in _BLANKS:
        return at, at, 0
    plain = byte_at(data, at + size - 1) not in _BLANKS
    return at, at + size, at + size + 1 if plain else 0


@kernel
def read_field(data: Bytes, at: int, stop: int, delimiter: int, place: Ints) -> None:
    """Write to ``place`` what :func:`_field` returns."""
    place[0], place[1], place[2], place[3] = _field(data, at, stop, delimiter, stop)


@kernel
def _number(data: Bytes, start: int, stop: int) -> Any:
    """Return the number that the field is, and a verdict; one copy for all callers."""
    return parse_number(data, start, stop)


@inlined
def _is_missing(data: Bytes, start: int, stop: int) -> bool:
    """Return whether a field is one of ``MISSING``."""
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


@inlined
def _is_among(data: Bytes, start: int, stop: int, words: Bytes) -> bool:
    """Return whether a field is one of the words, see :func:`as_bytes`."""
    at = 0
    while at < len(words):
        length = int(words[at])
        same = length == stop - start
        at += 1
        for i in range(length if same else 0):
            same &= data[start + i] == words[at + i]
        if same:
            return True
        at += length
    return False


@kernel
def read_numbers(
    data: Bytes, starts: Ints, stops: Ints, out: Float, verdicts: Ints
) -> None:
    """Write all values as numbers, and verdicts; NaN if it is not the verdict OK."""
    for i in range(len(starts)):
        out[i] = np.nan
        if stops[i] < starts[i] or _is_missing(data, starts[i], stops[i]):
            verdicts[i] = NAN
            continue
        value, verdicts[i] = _number(data, starts[i], stops[i])
        if verdicts[i] == OK:
            out[i] = value


@kernel
def tidy(data: Bytes, starts: Ints, stops: Ints, words: Bytes) -> None:
    """Take the blanks off values, and make what stands for a missing one missing.

    ``words`` are the user's own for it. Fields of CSV are read like this.
    """
    for i in range(len(starts)):
        while starts[i] < stops[i] and data[starts[i]] in _BLANKS:
            starts[i] += 1
        while starts[i] < stops[i] and data[stops[i] - 1] in _BLANKS:
            stops[i] -= 1
        if stops[i] >= starts[i] and (
            _is_missing(data, starts[i], stops[i])
            or _is_among(data, starts[i], stops[i], words)
        ):
            stops[i] = ~stops[i]


@kernel
def _scan(
    data: Bytes,
    final: bool,
    delimiter: int,
    limit: int,
    places: _Places,
    fill: Float,
    refuse: bool,
    largest: float,
    words: Bytes,
    masks: NDArray[np.uint8],
    found: _Found,
) -> None:
    """Read rows out of whole lines, and say in ``found.state`` how far it went."""
    roles, slots, kept = places
    X, aside, starts, stops, rows, bad, asks, side, state = found
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
            if shape >= BROKEN:
                break
            last = data[at - 1] == _NEWLINE
            fault = _FINE
            absent = False
            if role in (_SKIP, _KEEP):
                pass
            elif role == _CATEGORY:
                if _is_missing(data, start, end) or _is_among(data, start, end, words):
                    absent = True
                    if refuse:
                        fault = _ABSENT
            elif role == _NAME:
                if start == end:
                    fault = _NO_LABEL
            else:
                value, verdict = _number(data, start, end)
                if verdict == NAN or (
                    verdict == NONE
                    and (
                        _is_missing(data, start, end)
                        or _is_among(data, start, end, words)
                    )
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
                if shape == DOUBLED:
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
        if shape >= BROKEN:
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
