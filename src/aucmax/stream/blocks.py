"""Blocks of a stream: their lengths, and the AUC of scores within a block."""

import numpy as np

from aucmax.core.rows import Float
from aucmax.metrics._ranking import Classes, area

MAX_LENGTH = 65_536  # rows
MIN_LENGTH = 32
_SHARE = 16  # a block has 1/16 of the rows before it, rounded down to a power of two …
_FEATURES_PER_ROW = 1024  # … and at least a row per so many features: it costs O(d)


def block_length(rows: float, half_life: float | None, n_features: int) -> int:
    """Return the length of the block that starts after ``rows`` rows."""
    if half_life is not None:
        rows = min(rows, half_life)
    length = 1 << max(int(rows / _SHARE).bit_length() - 1, 0)
    return min(max(length, MIN_LENGTH, n_features // _FEATURES_PER_ROW), MAX_LENGTH)


def class_weights(signed: Float) -> Float:
    """Return the total weight of the positive and of the negative rows."""
    return np.array([signed[signed > 0.0].sum(), -signed[signed < 0.0].sum()])


def block_aucs(scores: Float, signed: Float) -> tuple[Float, float]:
    """Return the AUC of each row of ``scores``, and its information n₊n₋/(n₊ + n₋)."""
    positive, weight, totals = signed > 0.0, np.abs(signed), class_weights(signed)
    if not totals.all():
        return np.full(len(scores), 0.5), 0.0
    weights = (weight[positive], weight[~positive])
    used = weights if (weight != 1.0).any() else (None, None)
    aucs = [area(Classes(s[positive], s[~positive], *used)) for s in scores]
    return np.array(aucs), float(totals.prod() / totals.sum())
