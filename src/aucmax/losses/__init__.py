r"""Pairwise losses, summed over all pairs of a positive and a negative row.

.. math:: L(s) = \sum_{i: +} \sum_{j: -} \frac{c_i}{\sum c_+} \frac{c_j}{\sum c_-}\,
          \ell(s_i - s_j)

with row weights c. Value and derivatives take O(n log n) time. :data:`NAMES` lists the
losses: "squared_hinge", "logistic", "sigmoid", "exponential", "square",
"smoothed_hinge", "huber", and "hinge", which has no second derivative. "logistic" and
"sigmoid" are accurate to 1e-10 per pair, their second derivatives to 5e-7.

>>> from aucmax import losses
>>> y, score = [0, 0, 1, 1], [0.1, 0.4, 0.3, 2.0]
>>> round(losses.value("squared_hinge", y, score), 4)
0.4625
>>> losses.gradient("squared_hinge", y, score)
array([ 0.4 ,  0.55, -0.95, -0.  ])
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from aucmax.core.rows import Float
from aucmax.core.validation import row_weights
from aucmax.losses.pairwise import POINTS, Point, shares

__all__ = [
    "NAMES",
    "gradient",
    "hessian_diagonal",
    "hessian_product",
    "value",
]

NAMES = tuple(POINTS)


def value(
    loss: str, y: ArrayLike, score: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean of a loss over all pairs of a positive and a negative row.

    Parameters
    ----------
    loss : str
        One of :data:`NAMES`.
    y : array-like of shape (n,)
        Labels 0 and 1, or -1 and 1: positives are above zero.
    score : array-like of shape (n,)
        Higher scores rank higher.
    sample_weight : array-like of shape (n,), default=None
        Row weights; a pair has the product of its two weights.

    Returns
    -------
    float
        The mean.

    Examples
    --------
    >>> from aucmax import losses
    >>> losses.value("hinge", [0, 0, 1, 1], [0.0, 0.5, 0.5, 2.0])
    0.375
    """
    return _point(loss, y, score, sample_weight)[0].value


def gradient(
    loss: str, y: ArrayLike, score: ArrayLike, sample_weight: ArrayLike | None = None
) -> Float:
    """Return the derivative of :func:`value` by each score.

    Parameters
    ----------
    loss, y, score, sample_weight
        As for :func:`value`.

    Returns
    -------
    ndarray of shape (n,)
        For "hinge", a subgradient.

    Examples
    --------
    >>> from aucmax import losses
    >>> losses.gradient("square", [0, 0, 1, 1], [0.0, 0.5, 0.5, 2.0])
    array([-0.25,  0.25, -0.75,  0.75])
    """
    point, present = _point(loss, y, score, sample_weight)
    return _everywhere(point.slope, present)


def hessian_product(
    loss: str,
    y: ArrayLike,
    score: ArrayLike,
    v: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> Float:
    """Return the n × n matrix of second derivatives of :func:`value`, times ``v``.

    Parameters
    ----------
    loss, y, score, sample_weight
        As for :func:`value`; not "hinge".
    v : array-like of shape (n,)
        A direction.

    Returns
    -------
    ndarray of shape (n,)
        The product.

    Examples
    --------
    >>> from aucmax import losses
    >>> y, score = [0, 0, 1, 1], [0.0, 0.5, 0.5, 2.0]
    >>> losses.hessian_product("square", y, score, [1.0, 0.0, 0.0, 0.0])
    array([ 1. ,  0. , -0.5, -0.5])
    """
    point, present = _point(loss, y, score, sample_weight, curved=True)
    along = np.asarray(v, dtype=np.float64)
    if along.shape != present.shape:
        raise ValueError(f"v has shape {along.shape}, score {present.shape}.")
    return _everywhere(point.product(along[present]), present)


def hessian_diagonal(
    loss: str, y: ArrayLike, score: ArrayLike, sample_weight: ArrayLike | None = None
) -> Float:
    """Return the second derivative of :func:`value` by each score alone.

    Parameters
    ----------
    loss, y, score, sample_weight
        As for :func:`value`; not "hinge".

    Returns
    -------
    ndarray of shape (n,)
        The diagonal.

    Examples
    --------
    >>> from aucmax import losses
    >>> losses.hessian_diagonal("square", [0, 0, 1, 1], [0.0, 0.5, 0.5, 2.0])
    array([1., 1., 1., 1.])
    """
    point, present = _point(loss, y, score, sample_weight, curved=True)
    return _everywhere(point.diagonal(), present)


def _point(
    loss: str, y: Any, score: Any, weight: Any, *, curved: bool = False
) -> tuple[Point, Any]:
    """Return the loss at the scores of rows of nonzero weight, and their mask."""
    known = [name for name in NAMES if not (curved and name == "hinge")]
    if loss not in known:
        raise ValueError(f"loss={loss!r}: expected one of {', '.join(known)}.")
    signed = np.where(np.asarray(y) > 0, 1.0, -1.0)
    scores = np.asarray(score, dtype=np.float64)
    if signed.ndim != 1 or scores.shape != signed.shape:
        raise ValueError(f"y has shape {signed.shape}, score {scores.shape}.")
    if weight is not None:
        signed *= row_weights(weight, len(signed))
    present = signed != 0.0
    signed, scores = signed[present], scores[present]
    if not np.isfinite(scores).all():
        raise ValueError("score contains NaN or infinity.")
    if not ((signed > 0.0).any() and (signed < 0.0).any()):
        raise ValueError("Expected rows of both classes with a weight above zero.")
    return POINTS[loss](scores, shares(signed)), present


def _everywhere(some: Float, present: Any) -> Float:
    out = np.zeros(len(present))
    out[present] = some
    return out
