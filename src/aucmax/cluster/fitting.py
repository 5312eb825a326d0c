"""Fit estimators to Dask collections."""

from collections.abc import Callable
from typing import Any

import dask

from aucmax.cluster.distributed_rows import DistributedRows, PassCallback
from aucmax.cluster.fit_bam import fit_bam, fit_bam_cv
from aucmax.cluster.fit_least_squares import fit_least_squares, fit_least_squares_cv
from aucmax.cluster.partitions import distributed_rows
from aucmax.linear.bam import BAM
from aucmax.linear.bam_cv import BAMCV
from aucmax.linear.least_squares import LeastSquaresAUC
from aucmax.linear.least_squares_cv import LeastSquaresAUCCV

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
