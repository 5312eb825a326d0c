"""Scores of rows on a cluster, and their AUC.

The workers compute the scores; the client gathers them, nine bytes per row (17 with
weights), and ranks them by the code of :mod:`aucmax.metrics`.
"""

from typing import Any

import dask
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from aucmax import metrics
from aucmax.cluster.distributed_rows import (
    check_versions,
    column_values,
    lengths_of,
    matching_partitions,
    partition_labels,
    partitions_of,
)
from aucmax.core.rows import Float
from aucmax.core.validation import check_weights
from aucmax.metrics._ranking import as_scores
from aucmax.metrics.auc import AUCInterval, Method


def decision_function(estimator: Any, X: Any) -> Any:
    """Return the scores of rows on a cluster, as a lazy Dask object.

    Parameters
    ----------
    estimator : fitted estimator
        Any estimator with a ``decision_function``.
    X : dask array or data frame, or list of blocks
        The rows.

    Returns
    -------
    dask array or series, or list of delayed blocks
        The scores, partitioned as X.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import LeastSquaresAUC, cluster
    >>> X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    >>> model = LeastSquaresAUC().fit(X, y)
    >>> blocks = cluster.decision_function(model, [X[:2], X[2:]])  # delayed
    >>> len(blocks), blocks[0].compute().shape
    (2, (2,))
    """
    if isinstance(X, list | tuple):
        return [delayed(_scores, pure=False)(block, estimator) for block in X]
    if hasattr(X, "map_blocks"):
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        meta = np.empty(0)
        return X.map_blocks(_scores, estimator, drop_axis=1, dtype=float, meta=meta)
    return X.map_partitions(_score_frame, estimator, meta=("score", "f8"))


def _scores(X: Any, estimator: Any) -> Float:
    if X.shape[0] == 0:
        return np.empty(0)
    return np.asarray(estimator.decision_function(X))


def _score_frame(X: Any, estimator: Any) -> Any:
    return X.assign(score=_scores(X, estimator))["score"]


def auc(
    y: Any, score: Any, *, sample_weight: Any = None, pos_label: object = None
) -> float:
    """Return the area under the ROC curve, ties counted half.

    Parameters
    ----------
    y : dask array or series, or list of blocks
        The labels of two classes.
    score : as y
        The scores, as from :func:`decision_function`.
    sample_weight : as y, default=None
        Row weights; a pair counts the product of its two weights.
    pos_label : label, default=None
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        Equal to :func:`aucmax.metrics.auc` of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import cluster
    >>> y, score = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])
    >>> cluster.auc([y[:2], y[2:]], [score[:2], score[2:]])
    0.75
    """
    positive, scores, weight = _gathered(y, score, sample_weight, pos_label)
    return metrics.auc(positive, scores, sample_weight=weight)


def auc_interval(
    y: Any,
    score: Any,
    *,
    level: float = 0.95,
    method: Method = "wilson",
    sample_weight: Any = None,
    pos_label: object = None,
) -> AUCInterval:
    """Return the AUC with a confidence interval.

    Parameters
    ----------
    y, score, sample_weight, pos_label
        As for :func:`auc`.
    level : float, default=0.95
        Confidence level.
    method : {"wilson", "logit", "wald"}, default="wilson"
        As for :func:`aucmax.metrics.auc_interval`.

    Returns
    -------
    AUCInterval
        Equal to :func:`aucmax.metrics.auc_interval` of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import cluster
    >>> y, score = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])
    >>> found = cluster.auc_interval([y[:2], y[2:]], [score[:2], score[2:]])
    >>> print(f"{found.value:.2f} in [{found.low:.2f}, {found.high:.2f}]")
    0.75 in [0.18, 0.98]
    """
    positive, scores, weight = _gathered(y, score, sample_weight, pos_label)
    return metrics.auc_interval(
        positive, scores, level=level, method=method, sample_weight=weight
    )


def _gathered(
    y: Any, score: Any, weight: Any, pos_label: object
) -> tuple[NDArray[np.bool_], NDArray[Any], Float | None]:
    """Return which rows are positive, and the scores and weights of all rows."""
    check_versions()
    scores, lengths = partitions_of(score, "score"), lengths_of(score)
    labels = matching_partitions(y, "y", scores, lengths)
    weights: list[Any] = [None] * len(scores)
    if weight is not None:
        weights = matching_partitions(weight, "sample_weight", scores, lengths)
    look = delayed(partition_labels, pure=False)
    seen = dask.compute([look(part, k) for k, part in enumerate(labels)])[0]
    positive = _positive_label([found for n, found in seen if n], pos_label)
    read = delayed(_partition_columns, pure=False)
    parts = enumerate(zip(labels, scores, weights, strict=True))
    found = dask.compute([read(*part, positive, k) for k, part in parts])[0]
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    return columns[0], columns[1], columns[2] if weight is not None else None


def _positive_label(found: list[Any], pos_label: object) -> Any:
    distinct = np.unique(np.concatenate(found)) if found else np.empty(0)
    if len(distinct) != 2:
        raise ValueError(
            f"y has the labels {distinct.tolist()}, but AUC needs two classes."
        )
    if pos_label is None:
        return distinct[1]
    if pos_label not in distinct.tolist():
        raise ValueError(f"pos_label={pos_label!r} does not occur in y.")
    return pos_label


def _partition_columns(
    y: Any, score: Any, weight: Any, positive: Any, number: int
) -> list[NDArray[Any]]:
    labels = column_values(y, "y", number)
    try:
        columns = [
            labels == positive,
            as_scores(column_values(score, "score", number), len(labels)),
        ]
        if weight is not None:
            values = column_values(weight, "sample_weight", number).astype(np.float64)
            check_weights(values)
            columns.append(values)
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error
    return columns
