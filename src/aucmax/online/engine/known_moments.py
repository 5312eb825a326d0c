"""Feature tables from known class moments, as ``fit`` has them."""

import numpy as np

from aucmax.base.class_moments import NEG, POS
from aucmax.base.class_moments import ClassMoments as Tally
from aucmax.core.jit import kernel
from aucmax.core.rows import (
    Float,
)
from aucmax.online.engine.feature_table import (
    HARDEST,
    L2,
    MEAN_TO_SPREAD,
    MILDEST,
    NO_PENALTY,
    NORM,
    NZ,
    ROWS,
    SQ,
    SUM,
    WIDTH,
    D,
    Table,
    refresh,
)

# Rows of either class that a feature is taken to be in besides those it was seen in,
# when ``fit`` scales steps: by its mean square alone, a word in two of a million rows
# would be scaled up 700-fold, and its weight be those rows' labels. Not in streams,
# whose weights follow the scales: there it did harm. What it brings is in
# docs/benchmarks.md, "Rare features".
PRIOR = 2.0


@kernel
def _enter(
    table: Table,
    weight: Float,
    mean: Float,
    variance: Float,
    often: Float,
    more: float,
) -> None:
    """Write moments to a table, squares about the reference points.

    As if every feature were in rows of the weight ``more`` of either class besides, as
    large there as it usually is, and of either sign.
    """
    feat, ref = table.feat, table.ref
    for j in range(ref.shape[0]):
        for side in range(2):
            off = mean[side, j] - ref[j]
            feat[SUM + side, j] = weight[side] * mean[side, j]
            feat[SQ + side, j] = weight[side] * (variance[side, j] + off * off)
        feat[NZ, j] = weight[POS] * often[POS, j] + weight[NEG] * often[NEG, j]
        if feat[NZ, j] > 0.0:
            usual = (feat[SQ, j] + feat[SQ + 1, j]) / feat[NZ, j]
            for side in range(2):
                feat[SQ + side, j] += more * usual
            feat[NZ, j] += 2.0 * more


def fit_table(
    table: Table, tally: Tally, l2: L2, precondition: bool, prior: float = PRIOR
) -> None:
    """Fit a table to known moments, in place of running ones.

    ``prior`` is the number of rows of either class that each feature is taken to be in
    besides, so that what was seen once or twice has no large scale.
    """
    table.ref[:] = centres(tally) if precondition else 0.0
    weight, rows = tally.weight, tally.rows.sum()
    more = prior * weight.sum() / rows if precondition else 0.0
    _enter(table, weight, tally.mean, tally.variance, tally.nonzero_share, more)
    table.n[:] = weight
    table.stats[ROWS] = rows
    refresh(table, l2, precondition)
    table.mark[:] = table.feat[D]


def fit_table_to_ridge(
    table: Table, tally: Tally, l2: Float, precondition: bool = True
) -> None:
    """Do the same for a solver with a penalty of its own for every weight."""
    fit_table(table, tally, NO_PENALTY, precondition, prior=0.0)
    varies = table.feat[D] > 0.0
    if not precondition or not varies.any():
        return
    second = 1.0 / table.feat[D][varies]
    scale = 1.0 / (second + 0.25 * l2[varies])
    table.feat[D][varies] = scale
    stats = table.stats
    stats[NORM] = (second * scale).sum()
    stats[WIDTH] = stats[NORM] / (second * scale).max()
    stats[MILDEST], stats[HARDEST] = np.sort(l2[varies] * scale)[[0, -1]]


def centres(tally: Tally) -> Float:
    """Return reference points: the balanced mean, or zero if that is near."""
    mean = 0.5 * (tally.mean[POS] + tally.mean[NEG])
    apart = 0.5 * (tally.mean[POS] - tally.mean[NEG])
    spread = 0.5 * (tally.variance[POS] + tally.variance[NEG]) + apart * apart
    return np.where(mean * mean > MEAN_TO_SPREAD**2 * spread, mean, 0.0)
