"""Sums of outer products, added to a few rows of a matrix at a time.

What is added to stays in registers while all the products go by, and no element is left
over to be added by itself: the compiler finds neither. A sum of eight or more products
is then as fast as the processor multiplies.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from aucmax.core.engine.lanes import AVX512, spread
from aucmax.core.jit import INLINE
from aucmax.core.rows import Float

LINE = 8  # numbers in a cache line: a tile is as wide
# Rows of a tile, as many as there are registers for; half of that ends a matrix.
TALL = 8 if AVX512 else 4
HALF = 4


def add_products(
    K: Float,
    at: int,
    length: int,
    rows: int,
    c: Float,
    first: int,
    V: Float,
    r: int,
    start: int,
    stop: int,
) -> None:
    """Add Σ c_l v_lᵀ over the first ``r`` rows of ``c`` and V to some rows in K.

    These are TALL, HALF or one; the first begins at ``at``, the next ``length`` later.
    Of ``c`` as many columns count, from ``first`` on, and of V those from ``start`` to
    ``stop``, whole cache lines.
    """
    for q in range(rows):
        here = at + q * length
        K[here : here + stop - start] += c[:r, first + q] @ V[:r, start:stop]


@overload(add_products, jit_options=INLINE)
def _add_products(K, at, length, rows, c, first, V, r, start, stop):
    def loop(K, at, length, rows, c, first, V, r, start, stop):
        here = at - start
        if rows == TALL:
            for k in range(start, stop, LINE):
                _add_tall(K, here + k, length, c, first, V, r, k)
        elif rows == HALF:
            for k in range(start, stop, LINE):
                _add_half(K, here + k, length, c, first, V, r, k)
        else:
            for k in range(start, stop, LINE):
                _add_one(K, here + k, length, c, first, V, r, k)

    return loop


def _tile(height: int) -> Any:
    """Return ``add_products`` for one cache line of V, from column ``k`` on."""
    index, lanes = ir.IntType(64), ir.VectorType(ir.DoubleType(), LINE)

    def add(typing_context, K, at, length, c, first, V, r, k):
        whole = types.int64
        return types.void(K, whole, whole, c, whole, V, whole, whole), emit

    def emit(context, builder, signature, args):
        arrays = {n: context.make_array(signature.args[n]) for n in (0, 3, 5)}
        K, c, V = (make(context, builder, args[n]) for n, make in arrays.items())
        at, length, first, r, k = (args[n] for n in (1, 2, 4, 6, 7))

        def line(array, offset):
            place = builder.gep(array.data, [offset])
            return builder.bitcast(place, lanes.as_pointer())

        def offset(array, row, column):
            apart = cgutils.unpack_tuple(builder, array.strides, 2)[0]
            apart = builder.sdiv(apart, index(8))
            return builder.add(builder.mul(row, apart), column)

        sums, places = [], []
        for q in range(height):
            places.append(line(K, builder.add(at, builder.mul(length, index(q)))))
            sums.append(cgutils.alloca_once(builder, lanes))
            builder.store(builder.load(places[q], align=8), sums[q])
        with cgutils.for_range(builder, r) as products:
            v = builder.load(line(V, offset(V, products.index, k)), align=8)
            for q in range(height):
                column = builder.add(first, index(q))
                place = builder.gep(c.data, [offset(c, products.index, column)])
                factor = spread(builder, builder.load(place), LINE)
                product = builder.fmul(factor, v, flags=["contract"])
                old = builder.load(sums[q])
                builder.store(builder.fadd(old, product, flags=["contract"]), sums[q])
        for place, result in zip(places, sums, strict=True):
            builder.store(builder.load(result), place, align=8)
        return context.get_dummy_value()

    return intrinsic(add)


_add_tall, _add_half, _add_one = _tile(TALL), _tile(HALF), _tile(1)
