"""LeastSquaresAUC and LeastSquaresAUCCV on a cluster: class covariances add up.

``LeastSquaresAUC`` takes one pass. For ``LeastSquaresAUCCV`` one pass gives the class
covariances of every fold, hence those of all rows and of all rows but a fold, hence all
paths; a second pass gives the AUC of their weights on the held-out folds.
"""

import warnings
from numbers import Integral
from typing import Any

import numpy as np

from aucmax.cluster.dask_matrix import DaskMatrix, feature_moments
from aucmax.cluster.distributed_rows import Block, DistributedRows, check_classes
from aucmax.cluster.fold_auc import fold_aucs
from aucmax.core.rows import Float
from aucmax.linear.least_squares import LeastSquaresAUC, implicitly
from aucmax.linear.least_squares_cv import LeastSquaresAUCCV, path
from aucmax.linear.solvers.covariances import Moments, gather
from aucmax.linear.solvers.matrix_free import AllPairs

_AUC_ERROR = 1e-3  # largest error bound of an AUC that gives no warning


def _fold_covariances(block: Block, n_folds: int) -> list[Moments]:
    rows, d = block.rows, block.X.shape[1]
    if n_folds == 1:
        return [gather(rows, block.signed, d)]
    fold = block.folds(n_folds)
    return [
        gather(rows, block.signed, d, np.flatnonzero(fold == k)) for k in range(n_folds)
    ]


def class_covariances(rows: DistributedRows, n_folds: int = 1) -> list[Moments]:
    """Return the class covariances of each fold, validated; one pass."""
    found: list[Moments] = rows.total(_fold_covariances, n_folds)
    check_classes(rows, [moments.rows for moments in found])
    if not all(moments.finite for moments in found):
        raise ValueError("Sums over X exceed the range of float64; rescale X.")
    return found


def fit_least_squares(model: LeastSquaresAUC, rows: DistributedRows) -> None:
    """Fit to all rows."""
    model.__dict__.pop("state_", None)  # of an earlier fit
    if implicitly(rows.n_values, rows.n_rows, rows.n_features, model.solver, model.l1):
        rows.keep()
        X, known = DaskMatrix(rows), feature_moments(rows)
        model._solve_implicitly(AllPairs(X, X.signed, known), known)
        return
    (moments,) = class_covariances(rows)
    model._solve(moments)


def n_folds_of(cv: Any) -> int:
    """Return the number of folds; a cluster accepts no other kind of ``cv``."""
    if not isinstance(cv, Integral) or cv < 2:
        raise ValueError(
            f"cv={cv!r}: on a cluster it must be a number of folds, two or more."
        )
    return int(cv)


def fit_least_squares_cv(model: LeastSquaresAUCCV, rows: DistributedRows) -> None:
    """Fit to all rows, with the penalty chosen by cross-validation."""
    n_folds = n_folds_of(model.cv)
    if implicitly(rows.n_values, rows.n_rows, rows.n_features, model.solver, 0.0):
        raise ValueError(
            f"{rows.n_features} features are too many for covariances, which "
            "LeastSquaresAUCCV needs on a cluster: use BAM or LeastSquaresAUC."
        )
    parts = class_covariances(rows, n_folds)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part

    def score(l2s: Float, scale: Float) -> Float:
        train = [whole - part for part in parts]
        weights = [path(moments, l2s, scale) for moments in train]
        pairs = list(zip(train, weights, strict=True))
        found, error = fold_aucs(
            rows,
            weights,
            [moments.mean.mean(axis=0) @ W for moments, W in pairs],
            [_score_scales(moments, W) for moments, W in pairs],
        )
        if error > _AUC_ERROR:
            warnings.warn(
                f"The AUC of a fold can be off by {error:.1g}: scores were counted in "
                "histogram bins, and many share a bin (outliers, or few distinct "
                "scores).",
                stacklevel=2,
            )
        return found

    model._choose(whole, score)


def _score_scales(moments: Moments, W: Float) -> Float:
    """Return about the standard deviation of the scores of each column of W."""
    H, _, varies = moments.quadratic()
    V = W[varies]
    return np.sqrt(np.maximum(0.5 * np.sum(V * (H @ V), axis=0), 1e-300))
