"""Hash of each row, the same for equal rows of any layout."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Hashes = NDArray[np.uint64]

_BLOCK = 1 << 18  # values of dense rows hashed at a time


def row_hashes(X: Any, seed: int = 0) -> Hashes:
    """Return a hash of each row, dense or CSR."""
    if sparse.issparse(X):
        rows = sparse.csr_array(X)
        mixed = _cells(rows.data, rows.indices, seed)
        sums = np.append(np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64))
        return split_mix(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
    X = np.asarray(X)
    step, columns = max(_BLOCK // max(X.shape[1], 1), 1), np.arange(X.shape[1])
    totals = np.zeros(len(X), np.uint64)
    for start in range(0, len(X), step):
        block = slice(start, start + step)
        totals[block] = _cells(X[block], columns, seed).sum(axis=1, dtype=np.uint64)
    return split_mix(totals)


def _cells(values: Any, columns: Any, seed: int) -> Hashes:
    """Return a hash of each value and its column; 0 for zero."""
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
    column = split_mix(np.asarray(columns, np.uint64) + np.uint64(seed + 1))
    mixed = split_mix(bits ^ column)
    mixed[values == 0.0] = 0
    return mixed


def split_mix(x: Hashes) -> Hashes:
    """Return the output of the generator SplitMix64 (Steele, Lea, Flood 2014) at x."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
