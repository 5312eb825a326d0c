"""Cross-validation folds by a hash of the row number.

So a row is in the same fold for every partitioning of the rows.
"""

import numpy as np
from numpy.typing import NDArray


def fold_of(row_number: NDArray[np.int64], n_folds: int) -> NDArray[np.int64]:
    """Return the fold of each row, by splitmix64 (Steele, Lea and Flood, 2014)."""
    z = row_number.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z % np.uint64(n_folds)).astype(np.int64)
