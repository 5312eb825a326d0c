"""AUC of more than two classes."""

from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from aucmax.metrics.delong import AUCInterval, around
from aucmax.metrics.influence import influence_on_area
from aucmax.metrics.inputs import area, classes
from aucmax.metrics.roc_steps import check_level


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
        Named tuple (value, low, high, se). The influences of a row on all AUCs in which
        it takes part are added before they are squared, so that their dependence is
        included.

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
    truth = np.asarray(y)
    columns = np.asarray(score, np.float64)
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
    if average not in ("hand_till", "ovr"):
        raise ValueError(f"average={average!r}: expected 'hand_till' or 'ovr'.")
    if names.size < 2:
        raise ValueError("y holds one class only: AUC needs at least two")
    weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
    kept = np.ones(truth.size, bool) if weight is None else weight > 0.0
    counts = np.array([np.count_nonzero(kept & (truth == name)) for name in names])
    if not counts.all():
        missing = names[int(np.argmin(counts))]
        raise ValueError(f"class {missing!r} has no row: leave out its column")
    pairs = [
        (i, None if average == "ovr" else j)
        for i in range(names.size)
        for j in range(names.size)
        if i != j and (average == "hand_till" or j == (i + 1) % names.size)
    ]
    influence = np.zeros(truth.size)
    value = 0.0
    for i, j in pairs:
        one = truth == names[i]
        here = kept if j is None else kept & (one | (truth == names[j]))
        w = None if weight is None else weight[here]
        rows = classes(one[here], columns[here, i], w)
        found = influence_on_area(rows)
        value += area(rows) / len(pairs)
        influence[here & one] += found.pos / len(pairs)
        influence[here & ~one] += found.neg / len(pairs)
    codes = np.searchsorted(np.sort(names), truth)
    order = np.argsort(names)
    sizes = counts[order].astype(np.float64)
    correction = np.where(sizes > 1.0, sizes / np.maximum(sizes - 1.0, 1.0), np.inf)
    squares = np.bincount(codes, influence**2, names.size)
    se = min(sqrt(float(squares @ correction)), sqrt(value * (1.0 - value)))
    smallest = float(counts.min())
    return around(value, se, smallest, float(counts.sum()) - smallest, level)
