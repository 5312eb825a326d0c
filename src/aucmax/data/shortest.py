"""Text out of numbers: what Python's ``repr`` gives for a float, byte for byte.

That is the shortest decimal number that reads as the same float, and of several ones
the nearest. Found by R. Giulietti's Schubfach ("The Schubfach way to render doubles",
2020): a float c · 2^q is an interval of real numbers that round to it. For the power
of ten below its width, 10^k, the interval holds at least one multiple of 10^k, and at
most one of 10^(k+1), which is shorter. A few products with 128 bits of 10^-k tell.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel
from aucmax.data.chunk import Lines
from aucmax.data.digits import _multiply

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_LONGEST = 24  # bytes: -1.2345678901234567e-308

_LEAST, _MOST = -292, 324  # powers of ten that are needed
_ZERO, _POINT, _MINUS, _PLUS, _E = b"0.-+e"
_INF, _NAN = np.frombuffer(b"inf", np.uint8), np.frombuffer(b"nan", np.uint8)
_SIGNIFICAND = np.uint64(0xFFFFFFFFFFFFF)
_HIDDEN = np.uint64(1 << 52)
_INFINITE = np.uint64(0x7FF0000000000000)
_NO_LINES = Lines(b"", np.empty(0, np.int64), np.empty(0, np.int64))


def _powers_of_ten() -> NDArray[np.uint64]:
    """Return the first 128 bits of 10^k, rounded up, as two halves."""
    powers = []
    for k in range(_LEAST, _MOST + 1):
        ten = 10 ** abs(k)
        size = ten.bit_length()
        bits = -(-(1 << size + 127) // ten) if k < 0 else -(-ten << 128 >> size)
        powers.append((bits >> 64, bits & (1 << 64) - 1))
    return np.array(powers, np.uint64)


_POWERS = _powers_of_ten()


def as_text(
    scores: NDArray[np.float64],
    lines: Lines = _NO_LINES,
    delimiter: int = -1,
    end: bytes = b"\n",
) -> memoryview:
    """Return a line for each score: the shortest text that reads as the same float.

    A row's text and the delimiter come before it, if there is one.
    """
    starts, stops = (np.asarray(side, np.int64) for side in lines[1:])
    size = int((stops - starts).sum()) + scores.size * (_LONGEST + 1 + len(end))
    out, length = np.empty(size, np.uint8), np.zeros(1, np.int64)
    data, last = np.frombuffer(lines.data, np.uint8), np.frombuffer(end, np.uint8)
    _write(scores.view(np.uint64), data, starts, stops, delimiter, last, out, length)
    return out[: length[0]].data


@kernel
def _write(
    bits: NDArray[np.uint64],
    data: Bytes,
    starts: Ints,
    stops: Ints,
    delimiter: int,
    end: Bytes,
    out: Bytes,
    length: Ints,
) -> None:
    at = 0
    for row in range(bits.size):
        if delimiter >= 0:
            for k in range(starts[row], stops[row]):
                out[at] = data[k]
                at += 1
            out[at] = delimiter
            at += 1
        at = _write_float(bits[row], out, at)
        for k in range(end.size):
            out[at] = end[k]
            at += 1
    length[0] = at


@inlined
def _product(power: Any, c: Any) -> Any:
    """Return c times a power of ten: its whole part, odd if anything is cut off."""
    high, low = _multiply(c, power[0], power[1])
    return high | np.uint64(low > np.uint64(1))


@inlined
def _shortest(bits: Any) -> Any:
    """Return digits d and exponent k, d · 10^k, of a finite float that is not zero."""
    zero, one, two, four, ten = (
        np.uint64(0),
        np.uint64(1),
        np.uint64(2),
        np.uint64(4),
        np.uint64(10),
    )
    exponent = np.int64((bits >> np.uint64(52)) & np.uint64(0x7FF))
    c = bits & _SIGNIFICAND
    # Below a power of two, floats are twice as dense.
    closer = c == zero and exponent > 1
    q = np.int64(-1074)
    if exponent != 0:
        c |= _HIDDEN
        q = exponent - 1075
        if -53 < q <= 0:
            whole = c >> np.uint64(-q)
            if whole << np.uint64(-q) == c:  # an integer below 2^53: all of its digits
                return whole, np.int64(0)
    odd = c & one
    k = (q * 1262611 - (524031 if closer else 0)) >> 22  # floor(log10(width))
    h = np.uint64(q + ((-k * 1741647) >> 19) + 1)
    power = _POWERS[-k - _LEAST]
    middle = _product(power, c << two << h)
    lower = _product(power, ((c << two) - (one if closer else two)) << h) + odd
    upper = _product(power, ((c << two) + two) << h) - odd
    s = middle >> two
    if s >= ten:
        short = s // ten
        below = lower <= four * ten * short
        above = four * ten * (short + one) <= upper
        if below != above:
            return short + np.uint64(above), k + 1
    below = lower <= four * s
    above = four * (s + one) <= upper
    if below != above:
        return s + np.uint64(above), k
    half = four * s + two
    up = middle > half or (middle == half and s & one == one)
    return s + np.uint64(up), k


@inlined
def _write_float(bits: Any, out: Any, at: int) -> int:
    """Write the float with these ``bits``; return where it ends."""
    size = bits & np.uint64(0x7FFFFFFFFFFFFFFF)
    if bits != size and size <= _INFINITE:  # NaN has no sign
        out[at] = _MINUS
        at += 1
    if size >= _INFINITE:
        for j in range(3):
            out[at + j] = _INF[j] if size == _INFINITE else _NAN[j]
        return at + 3
    digits, exponent = np.uint64(0), np.int64(0)
    ten = np.uint64(10)
    if size != np.uint64(0):
        digits, exponent = _shortest(size)
    while digits != np.uint64(0) and digits % ten == np.uint64(0):
        digits //= ten
        exponent += 1
    n = 1
    rest = digits // ten
    while rest != np.uint64(0):
        rest //= ten
        n += 1
    return _place(digits, n, n + exponent, out, at)


@inlined
def _place(digits: Any, n: int, point: Any, out: Any, at: int) -> int:
    """Write ``n`` digits with the point after the first ``point`` of them."""
    if -4 < point <= 0:
        out[at] = _ZERO
        out[at + 1] = _POINT
        for j in range(-point):
            out[at + 2 + j] = _ZERO
        return _put(digits, n, out, at + 2 - point)
    if n <= point <= 16:
        at = _put(digits, n, out, at)
        for _ in range(point - n):
            out[at] = _ZERO
            at += 1
        out[at] = _POINT
        out[at + 1] = _ZERO
        return at + 2
    ahead = point if 0 < point <= 16 else 1
    end = _put(digits, n, out, at + 1)
    for j in range(ahead):
        out[at + j] = out[at + j + 1]
    out[at + ahead] = _POINT
    if 0 < point <= 16:
        return end
    if n == 1:
        end -= 1  # no point after a single digit
    power = point - 1
    out[end] = _E
    out[end + 1] = _MINUS if power < 0 else _PLUS
    power = abs(power)
    return _put(np.uint64(power), 3 if power > 99 else 2, out, end + 2)


@inlined
def _put(digits: Any, n: int, out: Any, at: int) -> int:
    ten = np.uint64(10)
    for j in range(at + n - 1, at - 1, -1):
        out[j] = _ZERO + np.int64(digits % ten)
        digits //= ten
    return at + n
