"""Validation of labels, scores and weights, and their split by class.

It takes a few passes over the arrays: no sort, no ``np.unique``. Slow searches, for the
details of a message, run only if there is an error.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from math import nan
from typing import Any, NamedTuple, ParamSpec, TypeVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.core.validation import check_weights, refuse_mask
from aucmax.metrics.pair_counts import (
    Scores,
    Weights,
    split,
    weighted_win_fraction,
    win_fraction,
)

_NO_NUMBERS = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


class OneClassError(ValueError):
    """The rows, or those with a weight, are of one class."""


Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")


def nan_if_one_class(
    measure: Callable[Parameters, Result],
) -> Callable[Parameters, Result]:
    """Make a measure return NaN, with a warning, if there is one class only.

    The measure returns a float or a named tuple of floats.
    """

    @wraps(measure)
    def defined(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return measure(*args, **kwargs)
        except OneClassError as error:
            from sklearn.exceptions import UndefinedMetricWarning  # slow import

            message = f"{measure.__name__} is NaN: {error}"
            warnings.warn(message, UndefinedMetricWarning, stacklevel=2)
            kind = get_type_hints(measure)["return"]
            if kind is float:
                return nan  # type: ignore[return-value]
            return kind(*[nan] * len(kind._fields))

    return defined


class Classes(NamedTuple):
    """Scores of each class in row order, and their weights if there are any."""

    pos: Scores
    neg: Scores
    w_pos: Weights | None
    w_neg: Weights | None


def classes(
    y: ArrayLike,
    score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Classes:
    """Validate the rows and split them by class, without rows of weight zero."""
    positive = positives(y, pos_label)
    scores = as_scores(score, positive.size)
    if sample_weight is None:
        return Classes(*split(scores, positive), None, None)
    weight = as_weights(sample_weight, positive.size)
    _check_both_weigh(weight, positive)
    if not weight.all():
        kept = weight > 0.0
        scores, positive, weight = scores[kept], positive[kept], weight[kept]
    return Classes(*split(scores, positive), *split(weight, positive))


def area(rows: Classes) -> float:
    """Return the area under the ROC curve, ties counted half."""
    pos, neg, w_pos, w_neg = rows
    if w_pos is None or w_neg is None:
        return win_fraction(pos, neg)
    return weighted_win_fraction(pos, neg, w_pos, w_neg)


def positives(y: ArrayLike, pos_label: object = None) -> NDArray[np.bool_]:
    """Return the mask of positive rows: the larger of two labels, or ``pos_label``."""
    refuse_mask(y, "y")
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(
            f"y has shape {labels.shape}, but must have one label per row; "
            "pass np.ravel(y) if it is a single column"
        )
    if labels.size == 0:
        raise ValueError("y is empty: AUC needs rows of both classes")
    try:
        return _is_positive(labels, pos_label)
    except TypeError:
        raise ValueError(
            "y holds labels that cannot be compared with each other, such as missing "
            "values or numbers among strings; drop those rows or map them to 0 and 1"
        ) from None


def _is_positive(labels: NDArray[Any], pos_label: object) -> NDArray[np.bool_]:
    one = labels[0]
    is_one = _equal(labels, one)
    if is_one.all():
        raise OneClassError(
            f"y holds one class only: all {labels.size} rows are {_show(one)}; "
            "AUC needs rows of both classes"
        )
    other = labels[np.argmin(is_one)]
    is_other = _equal(labels, other)
    if np.count_nonzero(is_one) + np.count_nonzero(is_other) < labels.size:
        raise ValueError(_odd_label(labels, is_one | is_other))
    wanted = max(one, other) if pos_label is None else pos_label
    if wanted == one:
        return is_one
    if wanted == other:
        return is_other
    raise ValueError(
        f"pos_label={_show(wanted)} does not occur in y, "
        f"whose classes are {_show(one)} and {_show(other)}"
    )


def as_scores(score: ArrayLike, n_rows: int, name: str = "score") -> Scores:
    """Return validated scores, as float32 or float64."""
    scores = _one_column(score, n_rows, name)
    if np.isnan(scores).any():
        row = int(np.argmax(np.isnan(scores)))
        raise ValueError(
            f"{name} is NaN at row {row}, which cannot be ranked; "
            "drop such rows, or give them the lowest score, -inf"
        )
    return scores


def as_weights(sample_weight: ArrayLike, n_rows: int) -> Weights:
    """Return validated row weights."""
    weight = _one_column(sample_weight, n_rows, "sample_weight")
    check_weights(weight)
    return weight.astype(np.float64, copy=False)


def _check_both_weigh(weight: Weights, positive: NDArray[np.bool_]) -> None:
    for one_class, which in ((positive, "positive"), (~positive, "negative")):
        if not weight[one_class].any():
            raise OneClassError(
                f"sample_weight is zero at all {np.count_nonzero(one_class)} {which} "
                "rows: AUC needs some weight in both classes"
            )


def _one_column(values: ArrayLike, n_rows: int, name: str) -> Scores:
    refuse_mask(values, name)
    column = np.asarray(values)
    if column.ndim != 1:
        single = column.size == n_rows
        raise ValueError(
            f"{name} has shape {column.shape}, but must have one number per row; pass "
            + (f"np.ravel({name})" if single else f"one column, as in {name}[:, 1]")
        )
    if column.size != n_rows:
        raise ValueError(f"{name} has {column.size} rows, but y has {n_rows}")
    if column.dtype.kind not in "biuf":
        column = _real_numbers(column, name)
    single = column.dtype in (np.float16, np.float32)
    # Contiguous and writeable: Numba would compile for other arrays once more.
    return np.require(column, np.float32 if single else np.float64, ["C", "A", "W"])


def _real_numbers(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Convert Python objects to numbers, or raise an error."""
    numbers = np.empty(column.size)
    for row, value in enumerate(column):
        try:
            if isinstance(value, _NO_NUMBERS):
                raise TypeError
            numbers[row] = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} is {_show(value)} at row {row}: it must be a real number"
            ) from None
    return numbers


def as_numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return real numbers, NaN among them, of any shape."""
    refuse_mask(values, name)
    given = np.asarray(values)
    if given.dtype.kind in "OUScMm":
        for row, value in enumerate(given.ravel()):
            if isinstance(value, _NO_NUMBERS):
                row //= given[:1].size
                raise ValueError(
                    f"{name} is {_show(value)} at row {row}: it must be a real number"
                )
    return np.asarray(values, np.float64)


def _equal(labels: NDArray[Any], label: object) -> NDArray[np.bool_]:
    return np.asarray(labels == label, dtype=np.bool_)


def _odd_label(labels: NDArray[Any], known: NDArray[np.bool_]) -> str:
    """Return the message for the first label that is neither of the known two."""
    row = int(np.argmin(known))
    odd = labels[row]
    if odd != odd:
        return f"y is {_show(odd)} at row {row}: drop the rows that have no label"
    both = [_show(label) for label in np.unique(labels[known])]
    return (
        f"y holds more than two classes: {' and '.join(both)}, but at row {row} "
        f"{_show(odd)}; compare one class with the rest, as in y == {_show(odd)}"
    )


def _show(label: object) -> str:
    """Return the label as typed in Python: 1 rather than np.int64(1)."""
    return repr(label.item() if isinstance(label, np.generic) else label)
