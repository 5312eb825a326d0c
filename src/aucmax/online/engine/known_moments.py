"""Feature tables from known class moments, for ``fit``."""

import numpy as np
from numpy.typing import NDArray

from aucmax.base.class_moments import NEG, POS, ClassMoments
from aucmax.core.jit import kernel
from aucmax.core.rows import Float
from aucmax.online.engine.feature_table import (
    HARDEST,
    L2,
    MEAN_TO_DEVIATION,
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

# Extra rows of each class in which a feature is assumed to be present when ``fit``
# scales steps. By its mean square alone, a hashed feature name in two of a million rows
# would be scaled up 700-fold, and its weight would be the labels of those rows. Not in
# streams, whose weights follow the scales: there it did harm. docs/benchmarks.md, "Rare
# features", has the measurements.
PRIOR = 2.0
# Scales that follow the curvature of a loss: their largest growth, and the number of
# rows per feature below which they do not, as the minimum would fit noise.
_GROWTH, _ROWS = 1000.0, 10.0


@kernel
def _enter(
    table: Table, weight: Float, mean: Float, variance: Float, often: Float, more: float
) -> None:
    """Write moments to a table, with squares about the reference points.

    Each feature is counted in extra rows of weight ``more`` of each class, where it has
    its usual size and mean zero.
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
    table: Table,
    moments: ClassMoments,
    l2: L2,
    precondition: bool,
    prior: float = PRIOR,
) -> None:
    """Fit a table to known moments; ``prior`` as ``PRIOR`` above."""
    table.ref[:] = centres(moments) if precondition else 0.0
    weight, rows = moments.weight, moments.rows.sum()
    more = prior * weight.sum() / rows if precondition else 0.0
    _enter(table, weight, moments.mean, moments.variance, moments.nonzero_share, more)
    table.n[:] = weight
    table.stats[ROWS] = rows
    refresh(table, l2, precondition)
    table.mark[:] = table.feat[D]


def fit_table_to_ridge(
    table: Table, moments: ClassMoments, l2: Float, precondition: bool = True
) -> None:
    """Fit a table for a solver with a penalty of its own for every weight."""
    fit_table(table, moments, NO_PENALTY, precondition, prior=0.0)
    varies = table.feat[D] > 0.0
    if not precondition or not varies.any():
        return
    second = 1.0 / table.feat[D][varies]
    scale = 1.0 / (second + 0.25 * l2[varies])
    _set_scales(table, varies, second, scale)
    table.stats[MILDEST], table.stats[HARDEST] = np.sort(l2[varies] * scale)[[0, -1]]


def fit_scales_to_curvature(table: Table, moments: ClassMoments) -> None:
    """Scale steps by the curvature of a loss that is not quadratic.

    ``moments`` are those of rows weighted by the second derivative of their loss, at
    most one. So a feature whose largest values have no curvature left gets larger
    steps, by at most ``_GROWTH``.
    """
    varies = table.feat[D] > 0.0
    many = table.stats[ROWS] >= _ROWS * np.count_nonzero(varies) > 0.0
    if not (many and moments.weight.all()):
        return
    share = 0.5 * moments.weight / table.n
    off = moments.mean[:, varies] - table.ref[varies]
    second = share @ (moments.variance[:, varies] + off * off)
    usual = 0.5 * (table.feat[SQ : SQ + 2, varies] / table.n[:, np.newaxis]).sum(axis=0)
    scale = 1.0 / np.maximum(second, usual / _GROWTH)
    _set_scales(table, varies, second, scale)


def _set_scales(
    table: Table, varies: NDArray[np.bool_], second: Float, scale: Float
) -> None:
    """Set the scales of the features that vary, given their mean squares."""
    table.feat[D][varies] = scale
    table.stats[NORM] = (second * scale).sum()
    table.stats[WIDTH] = table.stats[NORM] / (second * scale).max()


def centres(moments: ClassMoments) -> Float:
    """Return reference points: the class-balanced mean, or zero if near."""
    mean = 0.5 * (moments.mean[POS] + moments.mean[NEG])
    apart = 0.5 * (moments.mean[POS] - moments.mean[NEG])
    variance = 0.5 * (moments.variance[POS] + moments.variance[NEG]) + apart * apart
    return np.where(mean * mean > MEAN_TO_DEVIATION**2 * variance, mean, 0.0)
