"""The bits of a 64-bit word, one set bit after the other."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from aucmax.core.jit import INLINE, inlined


def trailing_zeros(word: Any) -> int:
    """Return how many bits come before the first that is set; 64 if none is."""
    word = int(word)
    return (word & -word).bit_length() - 1 if word else 64


@intrinsic
def _trailing_zeros_llvm(typing, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@overload(trailing_zeros, jit_options=INLINE)
def _trailing_zeros_compiled(word):  # type: ignore[no-untyped-def]
    return lambda word: _trailing_zeros_llvm(word)


@inlined
def without_first(word: Any) -> Any:
    """Return the word without the first bit that is set."""
    return word & (word - np.uint64(1))
