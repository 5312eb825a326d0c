"""Fit estimators to Dask collections.

**Products.** A vector with one number per row (scores, slopes) lives on the client; the
workers hold X alone. So ``X v`` sends d numbers to each worker and returns one number
per row, and ``Xᵀ u`` sends each block its slice of u and returns d numbers. Losses,
line search and conjugate gradients run on the client, by the code of
:mod:`aucmax.linear.solvers.newton` and :mod:`aucmax.losses.pairwise`. ``BAM`` and
``BAMCV`` are the solver of a single machine on such a matrix.

**Covariances.** ``LeastSquaresAUC`` takes one pass: class covariances add up. For
``LeastSquaresAUCCV`` one pass gives the class covariances of every fold, hence those of
all rows and of all rows but a fold, hence all paths; a second pass gives the AUC of
their weights on the held-out folds.

**AUC of many weight vectors** on held-out folds, in one pass over the rows: up to 2²⁵
scores are gathered on the client and ranked, which is exact. Of more, each worker makes
histograms of the scores of either class. Then only pairs within a bin, counted half,
can be wrong: the error is at most half of their share, which is known.
"""

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import dask
import numpy as np

from aucmax.base.class_moments import ClassMoments, measure
from aucmax.base.folds import area
from aucmax.base.ranker import product
from aucmax.cluster.distributed_rows import (
    Block,
    DistributedRows,
    PassCallback,
    check_classes,
    distributed_rows,
)
from aucmax.core import products
from aucmax.core.jit import kernel
from aucmax.core.rows import Float
from aucmax.linear.bam import (
    BAM,
    FeatureStatistics,
    from_class_moments,
    from_covariances,
    with_covariances,
)
from aucmax.linear.bam_cv import BAMCV, Fold
from aucmax.linear.least_squares import (
    LeastSquaresAUC,
    LeastSquaresAUCCV,
    implicitly,
    path,
)
from aucmax.linear.solvers.covariances import Moments, gather
from aucmax.linear.solvers.matrix_free import AllPairs
from aucmax.losses.pairwise import shares


class DaskMatrix:
    """Matrix of the rows of non-zero weight, in the order of the blocks.

    Implements :class:`aucmax.core.products.Matrix`. ``signed`` are the weights
    of these rows, signed by class. Construction takes one pass.
    """

    def __init__(self, rows: DistributedRows) -> None:
        self._rows = rows
        signed = rows.collect(_signed)
        self._ends = np.cumsum([len(part) for part in signed])[:-1]
        self.signed: Float = np.concatenate(signed)
        positive = np.count_nonzero(self.signed > 0.0)
        counts = [float(positive), float(len(self.signed) - positive)]
        check_classes(rows, [np.array(counts)])

    def times(self, v: Float) -> Float:
        """Return X v; one pass."""
        return np.concatenate(self._rows.collect(_times, v))

    def transposed_times(self, u: Float) -> Float:
        """Return Xᵀ u; one pass."""
        parts = np.split(u, self._ends)
        found: Float = self._rows.total_each(_transposed_times, parts)
        return found


def _signed(block: Block, _: None) -> Float:
    return block.signed


def _times(block: Block, v: Float) -> Float:
    return products.times(block.rows, v)


def _transposed_times(block: Block, u: Float) -> Float:
    return products.transposed_times(block.rows, u, block.X.shape[1])


def _measured(block: Block, _: None) -> ClassMoments:
    with np.errstate(all="ignore"):  # a block may lack a class
        return measure(block.rows, block.signed, block.X.shape[1])


def feature_moments(rows: DistributedRows) -> ClassMoments:
    """Return the means and variances of the features in each class; one pass."""
    found: ClassMoments = rows.total(_measured)
    if not all(np.isfinite(values).all() for values in (found.mean, found.variance)):
        raise ValueError("Sums over X exceed the range of float64; rescale X.")
    return found


_GATHERED = 1 << 25  # scores on the client, at most: 256 MB
_BINS, _BINS_PER_SCALE = 8192, 512.0  # in all, and per standard deviation
# Scores that a worker computes at a time: 64 kB. Dask's workers return larger arrays to
# the system at once, and new pages would take as long as the work.
_GROUP = 1 << 13


class _Request(NamedTuple):
    weights: list[Float]  # (d, k) of each fold
    centre: list[Float]  # (k,) mean score
    scale: list[Float]  # (k,) standard deviation of the scores
    exact: bool
    whole: bool  # counts are integers below 2³²


class _Gathered(NamedTuple):
    """Scores of held-out rows, and their weights signed by class."""

    scores: Float  # (k, n)
    signed: Float

    def __add__(self, other: Any) -> "_Gathered":
        return _Gathered(
            np.concatenate([self.scores, other.scores], axis=1),
            np.concatenate([self.signed, other.signed]),
        )


def _block_scores(block: Block, request: _Request) -> list[Any]:
    """Return, for each fold, the scores of its rows or their histograms."""
    fold = block.folds(len(request.weights))
    found: list[Any] = []
    for number, W in enumerate(request.weights):
        k = W.shape[1]
        here = np.flatnonzero(fold == number)
        if request.exact:
            found.append(_Gathered(_scores(block.X[here], W), block.signed[here]))
            continue
        counts = np.zeros((k, 2, _BINS), np.uint32 if request.whole else np.float64)
        per_scale = _BINS_PER_SCALE / request.scale[number]
        size = max(_GROUP // k, 64)
        for start in range(0, len(here), size):
            group = here[start : start + size]
            scores = _scores(block.X[group], W)
            signed = block.signed[group]
            _count(scores, signed, request.centre[number], per_scale, counts)
        found.append(counts)
    return found


def _scores(X: Any, W: Float) -> Float:
    """Return the scores of the rows for each column of W, a row each."""
    if isinstance(X, np.ndarray) and X.dtype == np.float64:
        return W.T @ X.T
    return np.ascontiguousarray(product(X, W).T)


@kernel
def _count(
    scores: Float, signed: Float, centre: Float, per_scale: Float, counts: Any
) -> None:
    """Add rows to the histograms: counts, or sums of weights."""
    last = counts.shape[2] - 1
    for k in range(scores.shape[0]):
        for i in range(signed.shape[0]):
            at = (scores[k, i] - centre[k]) * per_scale[k] + 0.5 * (last + 1)
            bin_ = int(min(max(at, 0.0), float(last)))
            counts[k, 0 if signed[i] > 0.0 else 1, bin_] += abs(signed[i])


def fold_aucs(
    rows: DistributedRows, weights: list[Float], centre: list[Float], scale: list[Float]
) -> tuple[Float, float]:
    """Return the AUC of each column of weights on each fold, and an error bound.

    ``centre`` and ``scale`` are the approximate mean and standard deviation of the
    scores of each column.
    """
    exact = rows.n_rows * weights[0].shape[1] <= _GATHERED
    whole = not rows.weighted and rows.n_rows < 1 << 32
    found = rows.total(_block_scores, _Request(weights, centre, scale, exact, whole))
    if exact:
        values = [
            [area(score, fold.signed, rows.weighted) for score in fold.scores]
            for fold in found
        ]
        return np.array(values).T, 0.0
    each, errors = zip(*map(_auc_of_histograms, found), strict=True)
    return np.column_stack(each), float(np.max(errors))


def _auc_of_histograms(counts: Float) -> tuple[Float, Float]:
    """Return AUCs with pairs within a bin counted half, and their error bounds."""
    pos, neg = (counts[:, k] / counts[:, k].sum(axis=1)[:, None] for k in (0, 1))
    below = np.cumsum(neg, axis=1) - neg
    within = 0.5 * (pos * neg).sum(axis=1)
    return (pos * below).sum(axis=1) + within, within


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


Fit = Callable[[Any, DistributedRows], None]

_FITS: dict[type, Fit] = {
    LeastSquaresAUC: fit_least_squares,
    LeastSquaresAUCCV: fit_least_squares_cv,
    BAM: fit_bam,
    BAMCV: fit_bam_cv,
}


def fit(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    watch: PassCallback | None = None,
) -> Any:
    """Fit an estimator to rows on a Dask cluster.

    Parameters
    ----------
    estimator : LeastSquaresAUC, LeastSquaresAUCCV, BAM or BAMCV
        The estimator to fit. ``cv`` must be a number of folds: the fold of a row is a
        hash of its row number.
    X : dask array or data frame, or list of blocks
        The rows. Blocks are matrices, dense or CSR, or data frames, and can be delayed.
        A block can be empty or have one class only.
    y : dask array or series, or list of blocks
        The labels, partitioned as X; arrays of known chunks are rechunked.
    sample_weight : as y, default=None
        Row weights.
    watch : callable, default=None
        Called after each pass over the rows with the number of passes so far.

    Returns
    -------
    estimator
        The fitted estimator, equal to ``estimator.fit`` on all rows up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import LeastSquaresAUC, cluster
    >>> X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    >>> model = cluster.fit(LeastSquaresAUC(), [X[:2], X[2:]], [y[:2], y[2:]])
    >>> model.classes_.tolist()
    [0, 1]
    """
    fitting = find_fit(estimator)
    return fit_rows(estimator, fitting, distributed_rows(X, y, sample_weight, watch))


def find_fit(estimator: Any) -> Fit:
    """Validate the estimator and return the function that fits it on a cluster."""
    found = _FITS.get(type(estimator))
    if found is None:
        known = ", ".join(kind.__name__ for kind in _FITS)
        raise TypeError(
            f"{type(estimator).__name__} cannot be fitted on a cluster; use one of "
            f"{known}."
        )
    estimator._validate_params()
    return found


def fit_rows(estimator: Any, fitting: Fit, rows: DistributedRows) -> Any:
    """Fit to distributed rows."""
    estimator.classes_, estimator.n_features_in_ = rows.classes, rows.n_features
    estimator.__dict__.pop("feature_names_in_", None)  # of an earlier fit
    if rows.names is not None:
        estimator.feature_names_in_ = rows.names
    # Vectors as long as the rows are part of the graphs on purpose. The setting is
    # global, so it is made here and not in the threads of cross-validation.
    limit = {"distributed.admin.large-graph-warning-threshold": "1TB"}
    with dask.config.set(limit):
        fitting(estimator, rows)
    return estimator
