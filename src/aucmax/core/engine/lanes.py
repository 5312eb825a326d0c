"""Vectors of the processor: how long they are, and arrays that are made of them."""

from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features

from aucmax.core.jit import inlined
from aucmax.core.rows import Float

AVX512 = bool(get_host_cpu_features().get("avx512f"))
_WORD = ir.IntType(32)


@inlined
def padded(length: int) -> int:
    """Return the next multiple of eight: numbers of whole cache lines, and vectors."""
    return -(-length // 8) * 8


@inlined
def aligned(rows: int, length: int) -> Float:
    """Return an array of zeros whose rows begin and end with cache lines."""
    length = padded(length)
    flat = np.zeros(rows * length + 7)
    skip = -(flat.ctypes.data // 8) % 8
    return flat[skip : skip + rows * length].reshape(rows, length)


def spread(builder: Any, value: Any, width: int) -> Any:
    """Return a vector of so many times ``value``."""
    none = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
    one = builder.insert_element(none, value, _WORD(0))
    zeros = ir.Constant(ir.VectorType(_WORD, width), [0] * width)
    return builder.shuffle_vector(one, none, zeros)
