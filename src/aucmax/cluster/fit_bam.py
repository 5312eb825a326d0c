"""BAM and BAMCV on a cluster: the solver of a single machine on a DaskMatrix."""

import numpy as np

from aucmax.cluster.dask_matrix import DaskMatrix, feature_moments
from aucmax.cluster.distributed_rows import Block, DistributedRows, check_classes
from aucmax.cluster.fit_least_squares import class_covariances, n_folds_of
from aucmax.linear.bam import (
    BAM,
    FeatureStatistics,
    from_class_moments,
    from_covariances,
    with_covariances,
)
from aucmax.linear.bam_cv import BAMCV, Fold
from aucmax.linear.solvers.matrix_free import AllPairs
from aucmax.losses.pairwise import shares


def _statistics(rows: DistributedRows, X: DaskMatrix) -> FeatureStatistics:
    """Return the feature statistics that the solver needs; one pass."""
    if with_covariances(rows.n_rows, rows.n_features, rows.n_values):
        (moments,) = class_covariances(rows)
        return from_covariances(X, moments)
    known = feature_moments(rows)
    return from_class_moments(known, AllPairs(X, X.signed, known))


def fit_bam(model: BAM, rows: DistributedRows) -> None:
    """Fit to all rows."""
    rows.keep()
    X = DaskMatrix(rows)
    model._minimise(_statistics(rows, X), shares(X.signed))


def fit_bam_cv(model: BAMCV, rows: DistributedRows) -> None:
    """Fit to all rows, with penalty and loss chosen by cross-validation."""
    n_folds = n_folds_of(model.cv)
    rows.keep()
    X = DaskMatrix(rows)
    fold = np.concatenate(rows.collect(Block.folds, n_folds))
    positive = X.signed > 0.0
    counts = [
        np.bincount(fold[side], minlength=n_folds) for side in (positive, ~positive)
    ]
    check_classes(rows, list(np.column_stack(counts)))
    sides = [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)
    ]
    folds = [Fold(*side, X.signed, rows.weighted) for side in sides]
    model._search(_statistics(rows, X), folds, shares(X.signed))
