"""AUC of more than two classes."""

from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.core.validation import refuse_mask
from aucmax.metrics.delong import AUCInterval, around
from aucmax.metrics.influence import (
    effective_number,
    influence_on_area,
    jackknife_errors,
    rounded,
)
from aucmax.metrics.inputs import (
    OneClassError,
    area,
    as_numbers,
    as_scores,
    as_weights,
    classes,
    nan_if_one_class,
)
from aucmax.metrics.roc_steps import check_level


@nan_if_one_class
def multiclass_auc(
    y: ArrayLike,
    score: ArrayLike,
    *,
    average: Literal["hand_till", "ovr"] = "hand_till",
    labels: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> AUCInterval:
    r"""Return an AUC of several classes, with a confidence interval.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of at least two classes.
    score : array-like of shape (n_rows, n_classes)
        A column of scores for each class, such as probabilities.
    average : {"hand_till", "ovr"}, default="hand_till"
        "hand_till": M of Hand and Till [1]_, the mean over all ordered pairs of classes
        (i, j) of the AUC of class i against class j by the scores of i; it does not
        depend on the class frequencies. "ovr": the mean over the classes of the AUC of
        one against the rest.
    labels : array-like of shape (n_classes,), optional
        Class of each column; by default the sorted labels.
    level : float, default=0.95
        Confidence level.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights, as for :func:`auc_interval`.

    Returns
    -------
    AUCInterval
        Named tuple (value, low, high, se). The standard error is the jackknife's: the
        changes of all AUCs without a row are added before they are squared, so that
        their dependence is included.

    Notes
    -----
    The interval is that of :func:`auc_interval` with the smallest class as positives.
    This is conservative: a mean of several AUCs varies less than one. For three
    classes, 95 % intervals covered in 98 % and more of simulated draws with 20 rows in
    the smallest class; with 200 rows in 95 % for an AUC of 0.7, and in 98 % for 0.95.

    References
    ----------
    .. [1] D. J. Hand, R. J. Till: A simple generalisation of the area under the ROC
       curve for multiple class classification problems. Machine Learning 45 (2001).

    Examples
    --------
    >>> from aucmax.metrics import multiclass_auc
    >>> y = ["a", "a", "b", "b", "c", "c"]
    >>> score = [[7, 2, 1], [4, 5, 1], [2, 6, 2], [3, 3, 4], [1, 2, 7], [2, 4, 4]]
    >>> value, low, high, se = multiclass_auc(y, score)
    >>> round(value, 4)
    0.8958
    """
    check_level(level)
    if average not in ("hand_till", "ovr"):
        raise ValueError(f"average={average!r}: expected 'hand_till' or 'ovr'.")
    refuse_mask(y, "y")
    truth = np.asarray(y)
    columns = as_numbers(score, "score")
    names = np.unique(truth) if labels is None else np.asarray(labels)
    if columns.ndim != 2 or columns.shape != (truth.size, names.size):
        raise ValueError(
            f"score has shape {columns.shape}, but must have {truth.size} rows and a "
            f"column for each of {names.size} classes"
        )
    unknown = ~np.isin(truth, names)
    if unknown.any():
        row = int(np.argmax(unknown))
        raise ValueError(f"y is {truth[row]!r} at row {row}, which is not in labels")
    for i, column in enumerate(columns.T):
        as_scores(column, truth.size, f"score[:, {i}]")
    if names.size < 2:
        raise OneClassError("y holds one class only: AUC needs at least two")
    kept, weight = np.ones(truth.size, np.bool_), None
    if sample_weight is not None:
        weight = as_weights(sample_weight, truth.size)
        kept = weight > 0.0
    members = [kept & (truth == name) for name in names]
    for name, one in zip(names.tolist(), members, strict=True):
        if not one.any():
            raise ValueError(f"class {name!r} has no row: leave out its column")
    pairs: list[tuple[int, NDArray[np.bool_]]] = []  # a class and its opponents
    for i, one in enumerate(members):
        others = members[:i] + members[i + 1 :]
        pairs += [(i, kept & ~one)] if average == "ovr" else [(i, x) for x in others]
    errors = np.zeros(truth.size)
    areas = []
    for i, other in pairs:
        one = members[i]
        here = one | other
        w = None if weight is None else weight[here]
        rows = classes(one[here], columns[here, i], w)
        pos, neg = jackknife_errors(influence_on_area(rows))
        areas.append(area(rows))
        errors[one] += pos / len(pairs)
        errors[other] += neg / len(pairs)
    value = float(np.mean(areas))
    variance = min(rounded(float(errors @ errors)), value * (1.0 - value))
    sizes = [
        effective_number(None if weight is None else weight[one], int(one.sum()))
        for one in members
    ]
    smallest = min(sizes)
    return around(value, sqrt(variance), smallest, sum(sizes) - smallest, level)
