"""Masks of bytes against comparisons of arrays."""

import numpy as np
import pytest

from aucmax.core.jit import kernel
from aucmax.io.bits import trailing_zeros, without_first
from aucmax.io.masks import (
    count,
    look,
    mark_either,
    mark_range,
    mask_size,
)


@kernel
def both(buf, first, last, inside, either):
    mark_range(buf, first, last, inside)
    mark_either(buf, first, last, either)


@kernel
def seen(mask, at, out):
    word = look(mask, at)
    out[0] = word
    out[1] = np.uint64(trailing_zeros(word))
    out[2] = without_first(word)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 64, 65, 127, 128, 129, 1000])
@pytest.mark.parametrize(("first", "last"), [(48, 57), (10, 32), (0, 255), (200, 255)])
def test_masks_are_comparisons(size, first, last):
    rng = np.random.default_rng(size)
    some = [first, last, max(first - 1, 0), min(last + 1, 255), 0, 255, 128, 127]
    buf = rng.choice(some, size).astype(np.uint8)
    inside, either = np.full((2, mask_size(size)), 255, np.uint8)
    both(buf, first, last, inside, either)
    found = np.unpackbits(inside, bitorder="little")
    expected = (buf >= first) & (buf <= last)
    assert np.array_equal(found[:size], expected)
    assert not found[size:].any()
    found = np.unpackbits(either, bitorder="little")
    assert np.array_equal(found[:size], (buf == first) | (buf == last))
    assert not found[size:].any()
    assert count(buf, first) == np.count_nonzero(buf == first)
    out = np.empty(3, np.uint64)
    for at in range(size):
        seen(inside, at, out)
        ahead = expected[at : at + 57]
        word, zeros, rest = out.tolist()
        assert [word >> k & 1 for k in range(len(ahead))] == ahead.tolist()
        assert zeros == (min(np.flatnonzero(expected[at:])) if word else 64)
        assert rest == word & (word - 1)
