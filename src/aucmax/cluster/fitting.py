"""Which estimators can be fitted on a cluster, and how."""

from collections.abc import Callable
from typing import Any

from aucmax.cluster.blocks import Table, Watch, spread_out
from aucmax.cluster.moments import fit_least_squares, fit_least_squares_cv
from aucmax.cluster.newton import fit_bam, fit_bam_cv
from aucmax.cluster.streams import fit_stream
from aucmax.linear.bam import BAM
from aucmax.linear.bam_cv import BAMCV
from aucmax.linear.least_squares import LeastSquaresAUC
from aucmax.linear.least_squares_cv import LeastSquaresAUCCV
from aucmax.online.oam import OAM
from aucmax.online.psam import PSAM
from aucmax.online.spam import SPAM

FITS: dict[type, Callable[[Any, Table], None]] = {
    LeastSquaresAUC: fit_least_squares,
    LeastSquaresAUCCV: fit_least_squares_cv,
    BAM: fit_bam,
    BAMCV: fit_bam_cv,
    SPAM: fit_stream,
    OAM: fit_stream,
    PSAM: fit_stream,
}


def fit(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    watch: Watch | None = None,
) -> Any:
    """Fit an estimator to rows that are spread over a cluster.

    Parameters
    ----------
    estimator : LeastSquaresAUC, LeastSquaresAUCCV, BAM, BAMCV, SPAM, OAM or PSAM
        What to fit. ``cv`` has to be a number: a row's fold follows from a hash of its
        place among all rows. The last three learn row by row: here one pass, by one
        learner a partition, whose weights are averaged. That is another model than one
        machine's, and wants rows in mixed order and partitions of a thousand or more.
    X : dask array or data frame, or list of blocks
        The rows. Blocks may be delayed; they are matrices, dense or CSR, or data
        frames. Any may be empty or of one class.
    y : dask array or series, or list of blocks
        The labels, partitioned as X is; arrays of known chunks are made so.
    sample_weight : as y, default=None
        Weights of the rows.
    watch : callable, default=None
        Is told the number of passes over the rows, after each.

    Returns
    -------
    estimator
        The same, fitted: as ``estimator.fit`` would have done it, up to rounding; but
        for the learners of streams, which cannot go on learning either.
    """
    how = how_to_fit(estimator)
    table = spread_out(X, y, sample_weight, watch)
    return fit_table(estimator, how, table)


def how_to_fit(estimator: Any) -> Callable[[Any, Table], None]:
    """Return how, or raise an error if an estimator cannot be fitted on a cluster."""
    how = FITS.get(type(estimator))
    if how is None:
        known = ", ".join(kind.__name__ for kind in FITS)
        raise TypeError(
            f"{type(estimator).__name__} cannot be fitted on a cluster; {known} can."
        )
    estimator._validate_params()
    return how


def fit_table(estimator: Any, how: Callable[[Any, Table], None], table: Table) -> Any:
    """Fit to the rows of a table."""
    estimator.classes_, estimator.n_features_in_ = table.classes, table.width
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if table.names is not None:
        estimator.feature_names_in_ = table.names
    how(estimator, table)
    return estimator
