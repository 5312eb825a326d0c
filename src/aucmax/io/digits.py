"""Numbers out of text, correctly rounded: what Python's ``float`` and ``int`` give.

``read_…`` functions take the longest number that stands at ``start`` in an array of
bytes and tell where it ends; ``parse_…`` functions want all of ``start`` to ``stop`` to
be one. Each also gives a verdict:

====  ==================================================================================
OK    the value is right to the last bit
NAN   "nan", in any case and with any sign
INF   "inf", "infinity", or a number too large to be a float; the value has its sign
NONE  not a number
ASK   a number that takes more work (one in a million, or made to be): ask Python for it
====  ==================================================================================

The grammar is Python's, without underscores and without white space around.

A decimal number is w · 10^q. For small w and q one operation on exact operands rounds
once, so right (Clinger 1990). Else w is multiplied by the first 128 bits of 5^q: that
is enough for w of up to 19 digits (Lemire 2021; Mushtak and Lemire 2023 show that there
is no exception). Of more digits the first 19 give a lower and, plus one, an upper
bound; nearly always both round to the same float.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from aucmax.core.jit import INLINE, inlined, kernel
from aucmax.io.bits import trailing_zeros, without_first
from aucmax.io.masks import eight_bytes

OK, NAN, INF, NONE, ASK = range(5)

_PLUS, _MINUS, _POINT, _ZERO, _E = b"+-.0e"
_ZEROS = np.uint64(0x3030303030303030)  # eight of them
_LOWER = 0x20  # makes a letter small
_EXACT = 1 << 53  # integers up to here are floats
_WHOLE_TENS = np.array([10**digits for digits in range(9)], np.uint64)
_TENS = np.array([10.0**q for q in range(23)])  # all that are exact
_LEAST, _MOST = -342, 308  # q beyond which any w of 19 digits gives 0 or infinity
LOOK = 80  # bytes that have to follow where masks are looked at
_FAR = 1 << 50  # an exponent that no number of digits makes up for


def _powers_of_five() -> NDArray[np.uint64]:
    """Return the first 128 bits of 5^q, for every q that matters, as two halves."""
    powers = []
    for q in range(_LEAST, _MOST + 1):
        five = 5 ** abs(q)
        size = five.bit_length()
        bits = five << 128 >> size
        if q < 0:  # rounded up where w · 10^q may lie half-way between floats
            bits = (1 << size + 127) // five + (q >= -27)
        powers.append((bits >> 64, bits & (1 << 64) - 1))
    return np.array(powers, np.uint64)


_FIVES = _powers_of_five()


def _multiply(w: Any, high: Any, low: Any) -> Any:
    """Return w · (high · 2^64 + low), without its last 64 bits, as two halves."""
    product = int(w) * (int(high) << 64 | int(low)) >> 64
    return np.uint64(product >> 64), np.uint64(product & (1 << 64) - 1)


@intrinsic
def _multiply_llvm(typing, w, high, low):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        wide, half = ir.IntType(128), ir.IntType(64)
        w, high, low = (builder.zext(value, wide) for value in arguments)
        shift = ir.Constant(wide, 64)
        rest = builder.lshr(builder.mul(w, low), shift)
        product = builder.add(builder.mul(w, high), rest)
        halves = builder.lshr(product, shift), product
        return cgutils.pack_array(builder, [builder.trunc(x, half) for x in halves])

    whole = types.uint64
    return types.UniTuple(whole, 2)(whole, whole, whole), generate


@overload(_multiply, jit_options=INLINE)
def _multiply_compiled(w, high, low):  # type: ignore[no-untyped-def]
    return lambda w, high, low: _multiply_llvm(w, high, low)


def _leading_zeros(w: Any) -> int:
    """Return how many of the 64 bits stand before the first that is set."""
    return 64 - int(w).bit_length()


@intrinsic
def _leading_zeros_llvm(typing, w):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@overload(_leading_zeros, jit_options=INLINE)
def _leading_zeros_compiled(w):  # type: ignore[no-untyped-def]
    return lambda w: _leading_zeros_llvm(w)


def byte_at(buf: Any, at: int) -> int:
    """Return ``buf[at]`` for an ``at`` that is not negative, which is not tested."""
    return int(buf[at])


@intrinsic
def _byte_llvm(typing, buf, at):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(
            context, builder, arguments[0]
        ).data
        byte = builder.load(builder.gep(data, [arguments[1]]))
        return builder.zext(byte, ir.IntType(64))

    return types.int64(buf, types.int64), generate


@overload(byte_at, jit_options=INLINE)
def _byte_at_compiled(buf, at):  # type: ignore[no-untyped-def]
    return lambda buf, at: _byte_llvm(buf, at)


@inlined
def _joined(word: Any, digits: int) -> Any:
    """Return the number that the first, 1 to 8, of eight digits make.

    They are values, not characters, the first one in the lowest byte.
    """
    # Move the last one into the highest byte; then pairs, fours and eights of digits.
    word = word << np.uint64((64 - 8 * digits) & 63)
    word = word * np.uint64(10) + (word >> np.uint64(8))
    odd = word & np.uint64(0x000000FF000000FF)
    even = (word >> np.uint64(16)) & np.uint64(0x000000FF000000FF)
    w = odd * np.uint64(1000000 << 32 | 100) + even * np.uint64(10000 << 32 | 1)
    return w >> np.uint64(32)


@inlined
def known_digits(buf: Any, at: int, digits: int) -> Any:
    """Return the number that 1 to 8 bytes make, all digits; eight have to be there."""
    return _joined(eight_bytes(buf, at) ^ _ZEROS, digits)


@inlined
def _eight_digits(buf: Any, at: int) -> Any:
    """Return what the first of eight bytes are as digits, and how many are digits."""
    # A digit becomes its value, any other byte something larger than 9: that plus
    # 0x76, or itself, has its highest bit set. A carry spoils later bytes only.
    word = eight_bytes(buf, at) ^ _ZEROS
    other = (word + np.uint64(0x7676767676767676)) | word
    digits = trailing_zeros(other & np.uint64(0x8080808080808080)) >> 3
    return _joined(word, digits) if digits > 0 else np.uint64(0), digits


@inlined
def _read_digits(buf: Any, at: int, stop: int, w: Any) -> Any:
    """Append digits to ``w``; return it, wrong if they are over 19, and their end."""
    while at + 8 <= stop:
        more, digits = _eight_digits(buf, at)
        w = w * _WHOLE_TENS[digits] + more
        at += digits
        if digits < 8:
            return w, at
    while at < stop:
        digit = byte_at(buf, at) - _ZERO
        if digit < 0 or digit > 9:
            break
        w = w * np.uint64(10) + np.uint64(digit)
        at += 1
    return w, at


@kernel
def scaled(w: Any, q: int) -> float:
    """Return w · 10^q, rounded once, for an unsigned w of up to 19 digits."""
    if w == 0 or q < _LEAST:
        return 0.0
    if q > _MOST:
        return np.inf
    zeros = _leading_zeros(w)
    high, low = _multiply(
        w << np.uint64(zeros), _FIVES[q - _LEAST, 0], _FIVES[q - _LEAST, 1]
    )
    top = np.int64(high >> np.uint64(63))
    one = np.uint64(1)
    # 53 bits and one more to round by; 217706 / 2^16 is log2(10), close enough.
    mantissa = high >> np.uint64(top + 9)
    exponent = (217706 * q >> 16) + 63 + top - zeros + 1023
    if exponent <= 0:  # too small for 53 bits
        if exponent < -62:
            return 0.0
        mantissa >>= np.uint64(1 - exponent)
        # What rounds up to 2^52 gets the exponent 1 by that very bit.
        return np.uint64((mantissa + (mantissa & one)) >> one).view(np.float64)
    half_way = low <= one and mantissa << np.uint64(top + 9) == high
    if half_way and -4 <= q <= 23 and mantissa & np.uint64(3) == one:
        mantissa ^= one  # to the even one
    mantissa = (mantissa + (mantissa & one)) >> one
    # The leading bit of the mantissa is not stored: it counts as 1 for the exponent.
    bits = mantissa + (np.uint64(exponent - 1) << np.uint64(52))
    if bits >= np.uint64(0x7FF << 52):
        return np.inf
    return np.uint64(bits).view(np.float64)


@inlined
def known_number(buf: Any, at: int, whole: int, after: int) -> float:
    """Return a number of 1 to 8 digits, and some after a point, up to 19 in all.

    Of ``buf``, 25 bytes have to be there.
    """
    # The bytes before the point, and those after it moved to its place.
    before = (np.uint64(1) << np.uint64(8 * whole & 63)) - np.uint64(1)
    ahead, behind = eight_bytes(buf, at), eight_bytes(buf, at + 1)
    word = behind ^ ((ahead ^ behind) & before) if whole < 8 else ahead
    word ^= _ZEROS
    digits = whole + after
    if digits <= 8:
        w = _joined(word, digits)
    else:
        w = _joined(word, 8)
        if digits > 16:
            w = w * _WHOLE_TENS[8] + known_digits(buf, at + 9, 8)
            at, digits = at + 8, digits - 8
        w = w * _WHOLE_TENS[digits - 8] + known_digits(buf, at + 9, digits - 8)
        if w > np.uint64(_EXACT):
            return scaled(w, -after)
    return np.float64(np.int64(w)) / _TENS[np.uint64(after)]


@inlined
def read_plain(buf: Any, at: int, size: int, other: Any) -> tuple[float, bool]:
    """Read ``size`` bytes that are a number as nearly all are; tell whether it is one.

    That is: maybe a minus, up to 8 digits, maybe a point and further ones. ``other``
    says which bytes from ``at`` on are no digits, and ``buf`` has all that it is about.
    """
    minus = byte_at(buf, at) == _MINUS
    other = without_first(other) if minus else other
    first = 1 if minus else 0
    point = trailing_zeros(other)
    is_point = byte_at(buf, at + point) == _POINT
    other = without_first(other) if is_point else other
    whole = point - first
    after = size - point - 1 if is_point else 0
    if trailing_zeros(other) != size or (whole - 1) & ~7 or whole + after > 19:
        return 0.0, False
    value = known_number(buf, at + first, whole, after)
    return -value if minus else value, True


@kernel
def _long(buf: Any, start: int, stop: int, exponent: int) -> tuple[float, int]:
    """Return what more than 19 digits from ``start`` to ``stop`` are, and a verdict."""
    w, digits = np.uint64(0), 0
    q, after = exponent, 0  # after: 1 once the point is behind us
    more = False  # digits that w does not have
    for at in range(start, stop):
        if buf[at] == _POINT:
            after = 1
        elif digits < 19:
            w = w * np.uint64(10) + np.uint64(buf[at] - _ZERO)
            digits += w != 0
            q -= after
        else:
            more |= buf[at] != _ZERO
            q += 1 - after
    value = scaled(w, q)
    if more and value != scaled(w + np.uint64(1), q):
        return value, ASK
    return value, OK


@kernel
def _word(buf: Any, start: int, stop: int) -> tuple[float, int, int]:
    """Read "nan" or "inf" or "infinity"."""
    end, found = start, 0
    for word in (b"infinity", b"inf", b"nan"):
        size = len(word)
        if found == 0 and start + size <= stop:
            same = True
            for k in range(size):
                same &= buf[start + k] | _LOWER == word[k]
            if same:
                end, found = start + size, word[0]
    if found == 0:
        return 0.0, NONE, start
    return (np.inf, INF, end) if found != 110 else (np.nan, NAN, end)


@inlined
def read_number(buf: Any, start: int, stop: int) -> tuple[float, int, int]:
    """Read a float at ``start``; return its value, the verdict and where it ends."""
    sign = byte_at(buf, start) if start < stop else 0
    first = start + (sign in (_MINUS, _PLUS))
    w, at = _read_digits(buf, first, stop, np.uint64(0))
    digits, q = at - first, 0
    if at < stop and byte_at(buf, at) == _POINT:
        point = at + 1
        w, at = _read_digits(buf, point, stop, w)
        q = point - at
        digits -= q
    simple = at == stop or byte_at(buf, at) | _LOWER != _E
    if simple and 0 < digits <= 19 and w <= np.uint64(_EXACT):
        value, verdict = np.float64(w) / _TENS[-q], OK
    else:
        value, verdict, at = _read_rest(buf, first, at, stop, w, q, digits)
    return -value if sign == _MINUS else value, verdict, at


@kernel
def _read_rest(
    buf: Any, first: int, at: int, stop: int, w: Any, q: int, digits: int
) -> tuple[float, int, int]:
    """Go on after the digits of a number that is not a simple one."""
    if digits == 0:
        return _word(buf, first, stop)
    last, exponent = at, 0
    if at < stop and byte_at(buf, at) | _LOWER == _E:
        exponent, at = _read_exponent(buf, at, stop)
        q += exponent
    verdict = OK
    if digits > 19:  # w may have overflowed
        value, verdict = _long(buf, first, last, exponent)
    elif w <= np.uint64(_EXACT) and -22 <= q <= 22:
        value = np.float64(w)
        value = value / _TENS[-q] if q < 0 else value * _TENS[q]
    else:
        value = scaled(w, q)
    if verdict == OK and value == np.inf:
        verdict = INF
    return value, verdict, at


@kernel
def _read_exponent(buf: Any, e: int, stop: int) -> Any:
    """Return the exponent after an "e" and where it ends; 0 and ``e`` if none."""
    at = e + 1
    negative = False
    if at < stop and (buf[at] == _MINUS or buf[at] == _PLUS):
        negative = buf[at] == _MINUS
        at += 1
    first = at
    exponent: Any = 0
    while at < stop and _ZERO <= buf[at] <= _ZERO + 9:
        exponent = min(10 * exponent + (np.int64(buf[at]) - _ZERO), _FAR)
        at += 1
    if at == first:
        return 0, e
    return -exponent if negative else exponent, at


@inlined
def parse_number(buf: Any, start: int, stop: int) -> tuple[float, int]:
    """Return the value of the float from ``start`` to ``stop``, and the verdict."""
    value, verdict, end = read_number(buf, start, stop)
    return value, verdict if end == stop else NONE


@inlined
def read_integer(buf: Any, start: int, stop: int) -> Any:
    """Read an integer at ``start``; return its value, the verdict and where it ends.

    More than 18 digits are for Python.
    """
    w, at = _read_digits(buf, start, stop, np.uint64(0))
    value, digits = np.int64(w), at - start
    if digits == 0:  # so that a sign, which is rare, costs nothing where there is none
        value, digits, at = _read_signed(buf, start, stop)
    verdict = OK
    if digits == 0:
        at, verdict = start, NONE
    elif digits > 18:
        verdict = ASK
    return value, verdict, at


@kernel
def _read_signed(buf: Any, start: int, stop: int) -> Any:
    """Read an integer that has a sign; return it, the number of digits and the end."""
    sign = byte_at(buf, start) if start < stop else 0
    if sign != _MINUS and sign != _PLUS:
        return np.int64(0), 0, start
    w, at = _read_digits(buf, start + 1, stop, np.uint64(0))
    return -np.int64(w) if sign == _MINUS else np.int64(w), at - start - 1, at
