"""Kernel that reads a block of svmlight text into CSR arrays.

The kernel converts plain decimals of up to 19 digits. If the digits make an integer of
at most 2^53, dividing it by a power of ten rounds once, so the result is exact (Clinger
1990). Otherwise the quotient is computed with twice the precision, and is exact unless
it is too close to the middle between two floats. The kernel only records where all
other numbers are, for a library to parse.

The text must end with a newline. Loops stop there, so they do not check the size.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel

_NEWLINE, _RETURN, _TAB, _SPACE, _HASH, COLON, _POINT = b"\n\r\t #:."
_PLUS, _MINUS, _ZERO = b"+-0"

BLANK, ROW, MALFORMED = range(3)  # status of a line
LABEL, _IGNORED = -1, -2  # entry number of a deferred label; of an ignored entry
# Items of ``counts``: rows, entries, deferred numbers, features, whether a row is
# unsorted, rows with ignored features, and features including the ignored ones.
ROWS, ENTRIES, DEFERRED, WIDTH, UNSORTED, CUT_ROWS, CUT_WIDTH = range(7)

_EXACT = np.uint64(1 << 53)  # integers up to this one are floats
_TENS = np.array([10.0**q for q in range(20)])


@inlined
def _byte(buf: Any, at: int) -> Any:
    """Return ``buf[at]``; an unsigned index costs no test for negative ones."""
    return buf[np.uint64(at)]


@inlined
def _is_space(byte: Any) -> bool:
    return byte == _SPACE or _TAB <= byte <= _RETURN


@inlined
def _ends_line(byte: Any) -> bool:
    return byte in (_NEWLINE, _HASH)


@inlined
def _ends_token(byte: Any) -> bool:
    return _is_space(byte) or byte == _HASH


@inlined
def _skip_space(buf: Any, at: int) -> int:
    while _byte(buf, at) != _NEWLINE and _is_space(_byte(buf, at)):
        at += 1
    return at


@inlined
def _read_digits(buf: Any, at: int, number: Any) -> Any:
    """Append digits to ``number``; return it and the end of the digits."""
    while True:
        digit = np.uint64(_byte(buf, at)) - np.uint64(_ZERO)
        if digit > np.uint64(9):
            return number, at
        number = number * np.uint64(10) + digit
        at += 1


@inlined
def _split(x: float) -> tuple[float, float]:
    """Return two floats of half the precision whose sum is ``x`` (Dekker 1971)."""
    scaled = 134217729.0 * x
    high = scaled - (scaled - x)
    return high, x - high


@kernel
def _divide(digits: Any, ten: float) -> tuple[float, bool]:
    """Divide an integer by a power of ten; return whether the result is exact."""
    n = np.float64(digits)  # digits = n + rest
    rest = np.float64(np.uint64(digits - np.uint64(n)).view(np.int64))
    quotient = n / ten
    a, b = _split(quotient)
    c, d = _split(ten)
    product = quotient * ten
    error = ((a * c - product) + a * d + b * c) + b * d
    # The relative error of this correction is below 2^-50.
    correction = ((n - product) - error + rest) / ten
    value = quotient + correction * (1.0 - 2.0**-45)
    return value, value == quotient + correction * (1.0 + 2.0**-45)


@inlined
def _read_number(buf: Any, at: int) -> tuple[float, int, bool]:
    """Return a number, its end, and whether it is exact; NaN if it is not."""
    sign = _byte(buf, at)
    if sign in (_MINUS, _PLUS):
        at += 1
    start = at
    digits, at = _read_digits(buf, at, np.uint64(0))
    n_digits, decimals = at - start, 0
    if _byte(buf, at) == _POINT:
        start = at + 1
        digits, at = _read_digits(buf, start, digits)
        decimals = at - start
        n_digits += decimals
    # Up to 19 digits cannot overflow.
    exact = 0 < n_digits <= 19 and _ends_token(_byte(buf, at))
    value = np.nan
    if exact and digits <= _EXACT:
        value = np.float64(np.int64(digits)) / _TENS[np.uint64(decimals)]
    elif exact:
        value, exact = _divide(digits, _TENS[np.uint64(decimals)])
    return -value if sign == _MINUS else value, at, exact


@inlined
def _read_integer(buf: Any, at: int) -> tuple[Any, int, bool]:
    """Return an integer, its end, and whether it has 1 to 18 digits."""
    sign = _byte(buf, at)
    if sign in (_MINUS, _PLUS):
        at += 1
    digits, end = _read_digits(buf, at, np.uint64(0))
    number = np.int64(digits)
    return -number if sign == _MINUS else number, end, 0 < end - at <= 18


@kernel
def _skip_query(buf: Any, at: int) -> tuple[int, bool]:
    """Return the end of ``qid:n``, and whether that is what is there."""
    for byte in b"qid:":
        if _byte(buf, at) != byte:
            return at, False
        at += 1
    _, at, valid = _read_integer(buf, at)
    return at, valid and _ends_token(_byte(buf, at))


@kernel
def _token_end(buf: Any, at: int) -> tuple[int, bool]:
    """Return the end of a token, and whether the token has a colon."""
    colon = False
    while not _ends_token(_byte(buf, at)):
        colon |= _byte(buf, at) == COLON
        at += 1
    return at, colon


@inlined
def _defer(deferred: Any, i: int, row: int, entry: int, start: int, stop: int) -> None:
    deferred[i, 0], deferred[i, 1] = row, entry
    deferred[i, 2], deferred[i, 3] = start, stop


@kernel
def read_block(
    buf: NDArray[np.uint8],
    base: int,
    limit: int,
    cut: bool,
    labelled: bool,
    y: NDArray[np.float64],
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    values: NDArray[Any],
    status: NDArray[np.uint8],
    spans: NDArray[np.int32],
    deferred: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Read whole lines of text into CSR arrays.

    Features from ``limit`` on are ignored if ``cut``, else they make the line
    malformed. Unless ``labelled``, lines may begin with an entry. ``status`` and
    ``spans`` (start, stop) describe each line; ``deferred`` (row, entry, start, stop)
    lists numbers to be parsed by the caller.
    """
    at = line = row = n_deferred = 0
    k: Any = 0
    n_cut: Any = 0
    cut_width: Any = 0
    width, unsorted = counts[WIDTH], False
    while at < buf.size:
        first, first_k, first_deferred = at, k, n_deferred
        in_order: Any = True
        last_column, cut_column = np.int64(-1), np.int64(-1)
        at = _skip_space(buf, at)
        blank = _ends_line(_byte(buf, at))
        good = not blank
        if good:
            start = at
            y[row], at, exact = _read_number(buf, at)
            if not exact:
                at, colon = _token_end(buf, at)
                if colon:  # an entry
                    good, at = not labelled, start
                else:
                    _defer(deferred, n_deferred, row, LABEL, start, at)
                    n_deferred += 1
        while good:
            at = _skip_space(buf, at)
            if _ends_line(_byte(buf, at)):
                break
            start = at
            digits, at = _read_digits(buf, at, np.uint64(0))
            index = np.int64(digits)
            if not (0 < at - start <= 18):
                index, at, valid = _read_integer(buf, start)
                if not valid:
                    at, good = _skip_query(buf, start)
                    continue
            column = index - base
            kept = column < limit
            if column < 0 or _byte(buf, at) != COLON or not (kept or cut):
                good = False
                break
            start = at + 1
            value, at, exact = _read_number(buf, start)
            if not exact:
                at, _ = _token_end(buf, at)
                entry = k if kept else _IGNORED
                _defer(deferred, n_deferred, row, entry, start, at)
                n_deferred += 1
            if kept:
                indices[np.uint64(k)] = column
                values[np.uint64(k)] = value
                k += 1
                in_order &= column > last_column
                last_column = max(column, last_column)
            elif value != 0.0:
                cut_column = max(column, cut_column)
        while _byte(buf, at) != _NEWLINE:
            at += 1
        end = at - (at > first and _byte(buf, at - 1) == _RETURN)
        spans[line, 0], spans[line, 1] = first, end
        at += 1
        if good:
            status[line] = ROW
            row += 1
            indptr[row] = k
            width = max(width, last_column + 1)
            unsorted |= not in_order
            n_cut += cut_column >= 0
            cut_width = max(cut_width, cut_column + 1)
        else:
            status[line] = BLANK if blank else MALFORMED
            k, n_deferred = first_k, first_deferred
        line += 1
    counts[ROWS], counts[ENTRIES], counts[DEFERRED] = row, k, n_deferred
    counts[WIDTH], counts[UNSORTED] = width, unsorted
    counts[CUT_ROWS], counts[CUT_WIDTH] = n_cut, cut_width
