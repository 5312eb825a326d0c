"""Bytes that matter, found 64 at a time: bit k of byte j of a mask is byte 8 j + k.

With a mask of what ends a token at hand, the place of the next one does not hang on
what is made of this one, so that the processor works on several of them at once.
"""

import sys
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from aucmax.core.jit import INLINE, inlined, kernel

Mask: TypeAlias = NDArray[np.uint8]

WIDTH = 64  # bytes


def spread(builder: Any, value: Any, width: int) -> Any:
    """Return a vector of so many times ``value``."""
    none = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
    one = builder.insert_element(none, value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
    return builder.shuffle_vector(one, none, zeros)


def mask_size(n_bytes: int) -> int:
    """Return how many bytes a mask has: more than needed, so that one can look on."""
    return 8 * (n_bytes // WIDTH + 2)


def _within(buf: Any, at: int, first: int, last: int) -> Any:
    """Return which of 64 bytes from ``at`` on are from ``first`` to ``last``."""
    some = buf[at : at + WIDTH]
    bits = np.packbits((some >= first) & (some <= last), bitorder="little")
    return bits.view("<u8")[0]


@intrinsic
def _within_llvm(typing, buf, at, first, last):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        byte = ir.IntType(8)
        wide = ir.VectorType(byte, WIDTH)
        place = _pointer(context, builder, signature, arguments, wide)
        some = builder.load(place, align=1)

        first, last = (builder.trunc(value, byte) for value in arguments[2:])
        above = builder.sub(some, spread(builder, first, WIDTH))
        inside = builder.icmp_unsigned(
            "<=", above, spread(builder, builder.sub(last, first), WIDTH)
        )
        mask = builder.bitcast(inside, ir.IntType(WIDTH))
        if sys.byteorder == "big":
            mask = builder.bitreverse(mask)
        return mask

    whole = types.int64
    return types.uint64(buf, whole, whole, whole), generate


@overload(_within, jit_options=INLINE)
def _within_compiled(buf, at, first, last):  # type: ignore[no-untyped-def]
    return lambda buf, at, first, last: _within_llvm(buf, at, first, last)


def eight_bytes(buf: Any, at: int) -> Any:
    """Return eight bytes as a number, the first one lowest."""
    return np.uint64(int.from_bytes(buf[at : at + 8].tobytes(), "little"))


@intrinsic
def _eight_bytes_llvm(typing, buf, at):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = _pointer(context, builder, signature, arguments, ir.IntType(64))
        word = builder.load(place, align=1)
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.uint64(buf, types.int64), generate


@overload(eight_bytes, jit_options=INLINE)
def _eight_bytes_compiled(buf, at):  # type: ignore[no-untyped-def]
    return lambda buf, at: _eight_bytes_llvm(buf, at)


def put_eight_bytes(buf: Any, at: int, word: Any) -> None:
    """Write what :func:`eight_bytes` reads."""
    buf[at : at + 8] = np.frombuffer(int(word).to_bytes(8, "little"), np.uint8)


@intrinsic
def _put_eight_bytes_llvm(typing, buf, at, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = _pointer(context, builder, signature, arguments, ir.IntType(64))
        word = arguments[2]
        word = word if sys.byteorder == "little" else builder.bswap(word)
        builder.store(word, place, align=1)
        return context.get_dummy_value()

    return types.void(buf, types.int64, types.uint64), generate


@overload(put_eight_bytes, jit_options=INLINE)
def _put_eight_bytes_compiled(buf, at, word):  # type: ignore[no-untyped-def]
    return lambda buf, at, word: _put_eight_bytes_llvm(buf, at, word)


def _pointer(
    context: Any, builder: Any, signature: Any, arguments: Any, kind: Any
) -> Any:
    """Return the place of the second argument in the array that is the first."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), kind.as_pointer())


def _ones(word: Any) -> int:
    """Return how many bits are set."""
    return int(word).bit_count()


@intrinsic
def _ones_llvm(typing, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@overload(_ones, jit_options=INLINE)
def _ones_compiled(word):  # type: ignore[no-untyped-def]
    return lambda word: _ones_llvm(word)


@inlined
def look(mask: Mask, at: int) -> Any:
    """Return the bits of 57 bytes or more from ``at`` on."""
    return eight_bytes(mask, at >> 3) >> np.uint64(at & 7)


@inlined
def _last(buf: Any, at: int, first: int, last: int) -> Any:
    """Return which bytes, fewer than 64, are from ``first`` to ``last``."""
    word = np.uint64(0)
    for k in range(at, buf.size):
        inside = np.uint64(first <= buf[k] <= last)
        word |= inside << np.uint64(k - at)
    return word


@inlined
def mark_range(buf: Any, first: int, last: int, mask: Mask) -> None:
    """Note in ``mask`` which bytes are from ``first`` to ``last``; the rest is zero."""
    whole = buf.size // WIDTH
    for j in range(whole):
        put_eight_bytes(mask, 8 * j, _within(buf, j * WIDTH, first, last))
    put_eight_bytes(mask, 8 * whole, _last(buf, whole * WIDTH, first, last))
    put_eight_bytes(mask, 8 * whole + 8, np.uint64(0))


@inlined
def mark_either(buf: Any, one: int, two: int, mask: Mask) -> None:
    """Note in ``mask`` which bytes are one of two; the rest is zero."""
    whole = buf.size // WIDTH
    for j in range(whole):
        at = j * WIDTH
        both = _within(buf, at, one, one) | _within(buf, at, two, two)
        put_eight_bytes(mask, 8 * j, both)
    at = whole * WIDTH
    both = _last(buf, at, one, one) | _last(buf, at, two, two)
    put_eight_bytes(mask, 8 * whole, both)
    put_eight_bytes(mask, 8 * whole + 8, np.uint64(0))


@kernel
def count(buf: NDArray[np.uint8], byte: int) -> int:
    """Return how often ``byte`` occurs."""
    n, whole = 0, buf.size // WIDTH
    for j in range(whole):
        n += _ones(_within(buf, j * WIDTH, byte, byte))
    return n + _ones(_last(buf, whole * WIDTH, byte, byte))
