"""Kernels that read blocks of svmlight text into CSR arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel
from aucmax.io.bits import trailing_zeros
from aucmax.io.digits import (
    ASK,
    LOOK,
    NONE,
    OK,
    byte_at,
    known_digits,
    read_integer,
    read_number,
    read_plain,
)
from aucmax.io.masks import (
    Mask,
    look,
    mark_either,
    mark_range,
)

_NEWLINE, _RETURN, _TAB, _SPACE, _HASH, COLON, _ZERO, NINE = b"\n\r\t #:09"


# Places in ``found``: how many rows, entries, bad lines and numbers for Python there
# are; how many features; whether the entries of some row have to be sorted; how many
# rows have features that are left out, and how many features there would be with them.
_ROWS, _ENTRIES, _BAD, ASKED, WIDTH, _UNSORTED, _CUT, _WIDER = range(8)


# Places in ``asked`` that are no entry's.
LABEL, _LEFT_OUT = -1, -2


@inlined
def _is_space(byte: Any) -> bool:
    """Tell whether ``bytes.split`` would split here."""
    return byte == _SPACE or _TAB <= byte <= _RETURN


@inlined
def _is_end(buf: Any, at: int) -> bool:
    """Tell whether a token ends here."""
    return at == buf.size or _is_space(byte_at(buf, at)) or byte_at(buf, at) == _HASH


@kernel
def _read_label(buf: Any, at: int) -> tuple[float, int, int]:
    return read_number(buf, at, buf.size)


@kernel
def _read_query(buf: Any, at: int) -> tuple[bool, int]:
    """Skip "qid:n"; return whether it is one."""
    for byte in b"qid:":
        if at == buf.size or byte_at(buf, at) != byte:
            return False, at
        at += 1
    _, verdict, at = read_integer(buf, at, buf.size)
    return verdict == OK, at


@kernel
def _read_entries(
    buf: Any,
    at: int,
    base: int,
    limit: int,
    ends: Mask,
    digits: Mask,
    indices: NDArray[np.int32],
    values: NDArray[Any],
    k: int,
    last_column: Any,
) -> Any:
    """Read entries in the common form ``digits:digits.digits`` and one blank.

    Return where another one begins or the line ends; how many entries there are now,
    the largest column, and whether these entries are in order.
    """
    in_order: Any = True
    far = buf.size - LOOK
    while at < far:
        size = trailing_zeros(look(ends, at))
        other = ~look(digits, at)
        colon = trailing_zeros(other)
        if (colon - 1) & ~7:  # first of all: further on, we might look beyond the end
            break
        value, good = read_plain(
            buf, at + colon + 1, size - colon - 1, other >> np.uint64(colon + 1)
        )
        if not good or byte_at(buf, at + colon) != COLON:
            break
        column = np.int64(known_digits(buf, at, colon)) - base
        if column < 0 or column >= limit:
            break
        indices[np.uint64(k)] = column
        values[np.uint64(k)] = value
        k += 1
        in_order &= column > last_column
        last_column = max(column, last_column)
        at += size
        if byte_at(buf, at) != _SPACE:
            break
        at += 1
    return at, k, last_column, in_order


@kernel
def read_block(
    buf: NDArray[np.uint8],
    base: int,
    limit: int,
    leave_out: bool,
    zero: bool,
    labelled: bool,
    y: NDArray[np.float64],
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    values: NDArray[Any],
    lines: NDArray[np.int32],
    bad: NDArray[np.int32],
    asked: NDArray[np.int64],
    found: NDArray[np.int64],
    ends: Mask,
    digits: Mask,
) -> None:
    """Read whole lines of text into CSR arrays.

    Entries of features from ``limit`` on are left out, or make the line bad. What is no
    label may be an entry, unless all lines are ``labelled``. Of each
    row and of each bad line ``lines`` and ``bad`` get the number, from 1, and the place
    in ``buf``; of each number for Python ``asked`` gets the row, the entry and the
    place, but only as far as there is room.
    """
    stop = buf.size
    mark_either(buf, _SPACE, _NEWLINE, ends)
    mark_range(buf, _ZERO, NINE, digits)
    at = line = row = n_bad = n_asked = 0
    k: Any = np.int64(0)  # a literal would have _read_entries compiled once more
    n_cut: Any = 0
    wider: Any = 0
    width, unsorted = found[WIDTH], False
    while at < stop:
        first, first_k, first_asked = at, k, n_asked
        line += 1
        last_column, in_order, largest = np.int64(-1), True, np.int64(-1)
        while (
            at < stop and byte_at(buf, at) != _NEWLINE and _is_space(byte_at(buf, at))
        ):
            at += 1
        blank = at == stop or byte_at(buf, at) == _NEWLINE or byte_at(buf, at) == _HASH
        good = not blank
        if good:
            token = at
            label, verdict, at = _read_label(buf, at)
            good = verdict in (OK, ASK) and _is_end(buf, at)
            if good:
                y[row] = label
            if verdict == ASK:
                _ask(asked, n_asked, row, LABEL, token, at)
                n_asked += 1
            if not good and not labelled:
                good, at, n_asked = True, token, first_asked
        while good:
            while (
                at < stop
                and byte_at(buf, at) != _NEWLINE
                and _is_space(byte_at(buf, at))
            ):
                at += 1
            if at == stop or byte_at(buf, at) == _NEWLINE or byte_at(buf, at) == _HASH:
                break
            at, k, last_column, ascending = _read_entries(
                buf, at, base, limit, ends, digits, indices, values, k, last_column
            )
            in_order &= ascending
            if _is_end(buf, at):
                continue
            index, verdict, colon = read_integer(buf, at, stop)
            if verdict == NONE:
                good, at = _read_query(buf, at)
                good = good and _is_end(buf, at)
                continue
            column = index - base
            token = colon + 1
            if (
                verdict == ASK
                or column < 0
                or token >= stop
                or byte_at(buf, colon) != COLON
            ):
                good = False
                break
            indices[k] = column
            at = token + 1
            digit = byte_at(buf, token) - _ZERO
            if at < stop and byte_at(buf, at) == _SPACE and 0 <= digit <= 9:
                values[k] = digit  # many a file has no other values
                verdict = OK
            else:
                number, verdict, at = read_number(buf, token, stop)
                values[k] = number
            kept = column < limit
            if verdict != OK:
                if verdict == ASK:
                    _ask(asked, n_asked, row, k if kept else _LEFT_OUT, token, at)
                    n_asked += 1
                elif verdict != NONE and zero and byte_at(buf, at - 1) > NINE:
                    values[k] = 0.0
                else:
                    good = False
            # The last test is for float32, in which a finite value may be infinite.
            good = good and _is_end(buf, at) and abs(values[k]) < np.inf
            if kept:
                k += 1
                in_order = in_order and column > last_column
                last_column = max(column, last_column)
            elif not leave_out:
                good = False
            elif values[k] != 0.0:
                largest = max(column, largest)
        while at < stop and byte_at(buf, at) != _NEWLINE:
            at += 1
        end = at
        at += 1
        if end > first and byte_at(buf, end - 1) == _RETURN:
            end -= 1
        if good:
            lines[row, 0], lines[row, 1], lines[row, 2] = line, first, end
            row += 1
            indptr[row] = k
            width = max(width, last_column + 1)
            unsorted = unsorted or not in_order
            n_cut += largest >= 0
            wider = max(wider, largest + 1)
        elif not blank:
            bad[n_bad, 0], bad[n_bad, 1], bad[n_bad, 2] = line, first, end
            n_bad += 1
            k, n_asked = first_k, first_asked
    found[_ROWS], found[_ENTRIES], found[_BAD] = row, k, n_bad
    found[ASKED], found[WIDTH], found[_UNSORTED] = n_asked, width, unsorted
    found[_CUT], found[_WIDER] = n_cut, wider


@inlined
def _ask(asked: Any, k: int, row: int, place: int, start: int, stop: int) -> None:
    if k < asked.shape[0]:
        asked[k, 0], asked[k, 1], asked[k, 2], asked[k, 3] = row, place, start, stop
