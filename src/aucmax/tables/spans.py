"""Column values as slices of a block of bytes, without Python objects."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Float = NDArray[np.float64]

_MASK = 0xFFFFFFFF


class Spans(NamedTuple):
    """Values of a column: value i is ``data[starts[i]:stops[i]]``, or missing.

    A missing value has a stop before its start.
    """

    data: Bytes
    starts: Ints
    stops: Ints


def decode(value: bytes) -> str:
    """Return text, whatever the bytes: no file fails for an accent in a category."""
    return value.decode("utf-8", "backslashreplace")


def objects(spans: Spans) -> NDArray[Any]:
    """Return the values as str objects, equal ones as one object."""
    codes, values = dictionary(spans)
    return np.array([*values, ""], dtype=object)[codes]


def dictionary(spans: Spans) -> tuple[Ints, list[str]]:
    """Return the number of each value (-1: missing) and the values, no two equal."""
    n = len(spans.starts)
    codes = np.empty(n, np.int64)
    first = np.empty(n, np.int64)
    table = np.full(1 << max(4, (2 * n).bit_length()), -1, np.int64)
    n_values = np.zeros(1, np.int64)
    _dictionary(*spans, table, codes, first, n_values)
    text = spans.data
    values = [
        decode(text[spans.starts[i] : spans.stops[i]].tobytes())
        for i in first[: n_values[0]].tolist()
    ]
    return codes, values


@kernel
def _dictionary(
    data: Bytes,
    starts: Ints,
    stops: Ints,
    table: Ints,
    codes: Ints,
    first: Ints,
    n_values: Ints,
) -> None:
    """Give the values numbers, in the order in which they first come."""
    mask = len(table) - 1
    n = 0
    for i in range(len(starts)):
        start, stop = starts[i], stops[i]
        if stop < start:
            codes[i] = -1
            continue
        h = int(stop - start)
        for j in range(start, stop):
            h = ((h ^ int(data[j])) * 0x01000193) & _MASK
        h ^= h >> 15  # the low bits alone know little of the first letters
        place = h & mask
        while True:
            code = table[place]
            if code < 0:
                table[place] = n
                first[n] = i
                codes[i] = n
                n += 1
                break
            other = first[code]
            if _equal(data, start, stop, starts[other], stops[other]):
                codes[i] = code
                break
            place = (place + 1) & mask
    n_values[0] = n


@inlined
def _equal(data: Bytes, start: int, stop: int, other: int, other_stop: int) -> bool:
    if stop - start != other_stop - other:
        return False
    same = True
    for j in range(stop - start):
        same &= data[start + j] == data[other + j]
    return same
