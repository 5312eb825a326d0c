"""The square loss on a cluster: moments add up, and there is nothing else to know.

One pass for ``LeastSquaresAUC``. For ``LeastSquaresAUCCV`` one pass gives the moments
of every fold, hence those of all rows and of all rows but a fold, hence all paths; a
second one gives the AUC of their weights on the folds left out.
"""

import warnings
from numbers import Integral
from typing import Any

import numpy as np

from aucmax.base.ranker import LinearRanker
from aucmax.cluster.areas import areas
from aucmax.cluster.blocks import Block, Table
from aucmax.cluster.folds import fold_of
from aucmax.cluster.implicit import system
from aucmax.core.rows import Float
from aucmax.linear.least_squares import LeastSquaresAUC, implicitly
from aucmax.linear.least_squares_cv import LeastSquaresAUCCV, path
from aucmax.linear.solvers.covariances import Moments, gather

_DOUBT = 1e-3  # of an AUC: a bound of its error that is worth a word


def gathered(block: Block, n_folds: int) -> list[Moments]:
    """Return the moments of the rows of each fold."""
    rows, d = block.rows, block.X.shape[1]
    if n_folds == 1:
        return [gather(rows, block.signed, d)]
    fold = fold_of(block.places(), n_folds)
    return [
        gather(rows, block.signed, d, np.flatnonzero(fold == k)) for k in range(n_folds)
    ]


def all_moments(ranker: LinearRanker, table: Table, n_folds: int = 1) -> list[Moments]:
    """Return the moments of the folds, checked, in one pass."""
    found: list[Moments] = table.total(gathered, n_folds)
    table.counts = np.sum([moments.rows for moments in found], axis=0)
    for number, moments in enumerate(found):
        for rows, label in zip(moments.rows, table.classes[::-1], strict=True):
            if rows == 0.0:
                where = "" if n_folds == 1 else f" in fold {number} of {n_folds}"
                raise ValueError(
                    f"No row of class {label}{where} has a weight above zero; both "
                    "classes are needed."
                )
        if not moments.finite:
            raise ValueError("Sums over X exceed the range of float64; rescale it.")
    return found


def fit_least_squares(model: LeastSquaresAUC, table: Table) -> None:
    """Fit to all rows."""
    for left in ("state_",):
        if hasattr(model, left):
            delattr(model, left)
    if implicitly(table.n_values, table.n_rows, table.width, model.solver, model.l1):
        table.keep()
        model._solve_implicitly(*system(table))
        return
    (moments,) = all_moments(model, table)
    model._solve(moments)


def n_folds_of(cv: Any) -> int:
    """Return the number of folds; on a cluster, that is all one may say of them."""
    if not isinstance(cv, Integral) or cv < 2:
        raise ValueError(
            f"cv={cv!r}: on a cluster it has to be a number of folds, of two or more."
        )
    return int(cv)


def fit_least_squares_cv(model: LeastSquaresAUCCV, table: Table) -> None:
    """Fit to all rows, the penalty by cross-validation."""
    n_folds = n_folds_of(model.cv)
    if implicitly(table.n_values, table.n_rows, table.width, model.solver, 0.0):
        raise ValueError(
            f"{table.width} features are too many for moments, and LeastSquaresAUCCV "
            "has no other way on a cluster: use BAM or LeastSquaresAUC, which have."
        )
    parts = all_moments(model, table, n_folds)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part

    def score(l2s: Float, scale: Float) -> Float:
        rest = [whole - part for part in parts]
        weights = [path(some, l2s, scale) for some in rest]
        found, off = areas(
            table,
            weights,
            [some.mean.mean(axis=0) @ W for some, W in zip(rest, weights, strict=True)],
            [_deviations(some, W) for some, W in zip(rest, weights, strict=True)],
        )
        if off > _DOUBT:
            warnings.warn(
                f"Scores were counted in cells, and the AUC of a fold may be off by "
                f"{off:.1g}: outliers, or few distinct scores.",
                stacklevel=2,
            )
        return found

    model._choose(whole, score)


def _deviations(moments: Moments, W: Float) -> Float:
    """Return about the standard deviation of each column's scores."""
    H, _, varies = moments.quadratic()
    some = W[varies]
    return np.sqrt(np.maximum(0.5 * np.sum(some * (H @ some), axis=0), 1e-300))
