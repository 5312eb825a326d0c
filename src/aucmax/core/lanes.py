"""LLVM code for loops that go over arrays of float64 several numbers at a time.

For the few loops where the compiler does not find the SIMD code by itself. What does
not fill a vector at the end of an array is loaded under a mask, so that it costs no
loop of its own; what is written to ends with a whole vector.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils

from aucmax.core.jit import shared
from aucmax.core.table import Float

AVX512 = bool(get_host_cpu_features().get("avx512f"))
LANES = 8 if AVX512 else 4
CACHE_LINE = 64  # bytes

INDEX = ir.IntType(64)
_WORD = ir.IntType(32)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_BYTES = ir.IntType(8).as_pointer()
_NONE = ir.Constant(_VECTOR, [0.0] * LANES)
_SUM = ["reassoc", "contract", "nsz"]  # as in aucmax.core.jit.SIMD


@shared
def padded(length: int) -> int:
    """Return the next multiple of eight: numbers of whole cache lines, and vectors."""
    return -(-length // 8) * 8


@shared
def aligned(rows: int, length: int) -> Float:
    """Return an array of zeros whose rows begin and end with cache lines."""
    length = padded(length)
    flat = np.zeros(rows * length + 7)
    skip = -(flat.ctypes.data // 8) % 8
    return flat[skip : skip + rows * length].reshape(rows, length)


class Lanes:
    """What a loop is made of, as code that ``builder`` appends."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def loop(self, length: Any, body: Callable[[Any], None]) -> None:
        """Run ``body(j)`` for every j at which a whole vector begins."""
        length, step = self.builder.and_(length, INDEX(-LANES)), INDEX(LANES)
        steps = cgutils.for_range_slice(self.builder, INDEX(0), length, step, INDEX)
        with steps as (j, _):
            body(j)

    def masked_loop(self, length: Any, body: Callable[[Any, Any], None]) -> None:
        """Run ``body(j, mask)``; the mask is None, but for what is left at the end."""
        self.loop(length, lambda j: body(j, None))
        builder = self.builder
        whole = builder.and_(length, INDEX(-LANES))
        with builder.if_then(builder.icmp_signed("<", whole, length)):
            place = ir.Constant(ir.VectorType(INDEX, LANES), list(range(LANES)))
            left = self.spread(builder.sub(length, whole))
            body(whole, builder.icmp_signed("<", place, left))

    def load(self, array: Any, at: Any, mask: Any = None, bits: int = 64) -> Any:
        """Return a vector of float64, made of the numbers from ``array[at]`` on.

        They have so many ``bits``; what the mask hides is zero.
        """
        kind = _VECTOR if bits == 64 else ir.VectorType(ir.FloatType(), LANES)
        place = self._place(array, at, kind)
        size = bits // 8
        if mask is None:
            vector = self.builder.load(place, align=size)
        else:
            signature = ir.FunctionType(kind, [kind.as_pointer(), _WORD, _MASK, kind])
            name = f"llvm.masked.load.v{LANES}f{bits}.p0"
            nothing = ir.Constant(kind, [0.0] * LANES)
            vector = self._call(name, signature, place, _WORD(size), mask, nothing)
        return vector if bits == 64 else self.builder.fpext(vector, _VECTOR)

    def store(self, vector: Any, array: Any, at: Any) -> None:
        """Write a vector to where ``load`` would take it from."""
        self.builder.store(vector, self._place(array, at, _VECTOR), align=8)

    def spread(self, value: Any) -> Any:
        """Return a vector that is ``value`` in each lane."""
        return spread(self.builder, value, LANES)

    def sum(self) -> "Sum":
        """Return a sum that is zero."""
        return Sum(self)

    def plus_product(self, c: Any, a: Any, b: Any) -> Any:
        """Return c + a b."""
        product = self.builder.fmul(a, b, flags=_SUM)
        return self.builder.fadd(c, product, flags=_SUM)

    def totals(self, sums: Sequence["Sum"]) -> list[Any]:
        """Return vectors that hold the totals, LANES in each.

        Of two vectors, neighbours are added so that both fit in one, and so on: a total
        takes three instructions, not six.
        """
        vectors = [self.builder.load(each.place) for each in sums]
        vectors += [_NONE] * (-len(vectors) % LANES)
        width = 1  # lanes side by side that hold numbers of different sums
        while width < LANES:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self._halves(a, b, width) for a, b in pairs]
            width *= 2
        return vectors

    def _halves(self, a: Any, b: Any, width: int) -> Any:
        """Return the sums of neighbours, ``width`` lanes each, of ``a`` and ``b``."""
        order: list[int] = []
        for k in range(0, LANES, 2 * width):
            mine = list(range(k, k + width))
            order += [*mine, *(LANES + lane for lane in mine)]
        picks = (order, [lane + width for lane in order])
        parts = []
        for pick in picks:
            lanes = ir.Constant(ir.VectorType(_WORD, LANES), pick)
            parts.append(self.builder.shuffle_vector(a, b, lanes))
        return self.builder.fadd(*parts, flags=_SUM)

    def _place(self, array: Any, at: Any, kind: Any) -> Any:
        place = self.builder.gep(array, [at])
        return self.builder.bitcast(place, kind.as_pointer())

    def _call(self, name: str, signature: Any, *arguments: Any) -> Any:
        module = self.builder.module
        function = cgutils.get_or_insert_function(module, signature, name)
        return self.builder.call(function, arguments)


def spread(builder: Any, value: Any, width: int) -> Any:
    """Return a vector of so many times ``value``."""
    none = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
    one = builder.insert_element(none, value, _WORD(0))
    zeros = ir.Constant(ir.VectorType(_WORD, width), [0] * width)
    return builder.shuffle_vector(one, none, zeros)


def fetch(builder: Any, array: Any, offset: Any, near: int) -> None:
    """Ask for the cache line ``offset`` bytes into ``array``, in the cache ``near``.

    3 is the nearest cache, 2 the next. Dense rows go to the second one: in the nearest,
    few requests can be under way, and rows of a hundred numbers came half as fast.
    """
    place = builder.gep(builder.bitcast(array, _BYTES), [offset])
    signature = ir.FunctionType(ir.VoidType(), [_BYTES, _WORD, _WORD, _WORD])
    name = "llvm.prefetch.p0"
    function = cgutils.get_or_insert_function(builder.module, signature, name)
    to_read, data = _WORD(0), _WORD(1)
    builder.call(function, [place, to_read, _WORD(near), data])


class Sum:
    """A running sum, a number in each lane; LLVM keeps it in a register."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.place = cgutils.alloca_once(lanes.builder, _VECTOR)
        lanes.builder.store(_NONE, self.place)

    def add(self, a: Any, b: Any) -> None:
        """Add the product a b."""
        builder = self.lanes.builder
        total = self.lanes.plus_product(builder.load(self.place), a, b)
        builder.store(total, self.place)
