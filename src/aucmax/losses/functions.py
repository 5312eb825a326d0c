"""Values and derivatives of pairwise losses, and objectives for boosting."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from aucmax.core.rows import Float
from aucmax.core.validation import row_weights
from aucmax.losses.pairwise import POINTS, Point, shares

NAMES = tuple(POINTS)

Derivatives = tuple[Float, Float]  # gradient and diagonal of the Hessian

_LEAST = 1e-12  # Hessian of a row; zero would be 0/0 in a tree


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


def lightgbm_objective(
    loss: str = "squared_hinge",
) -> Callable[[Any, Any], Derivatives]:
    """Return a LightGBM objective: the pairwise loss over all pairs.

    It works in both interfaces: ``lightgbm.train({"objective": f, ...}, data)``, with
    the weights of the data, and ``LGBMClassifier(objective=f)``, without weights.

    Parameters
    ----------
    loss : str, default="squared_hinge"
        One of :data:`NAMES` that is convex and has second derivatives.

    Returns
    -------
    callable
        Returns the gradient and the diagonal of the Hessian, times n/2: of the size of
        a loss of n rows, so that LightGBM's defaults fit. The diagonal is at least half
        of the Hessian, so leaves are overestimated by at most a factor of two.

    Notes
    -----
    Do not expect a higher AUC than with LightGBM's binary objective. With 200 trees on
    five splits, the AUC of the squared hinge differed from it by +0.2 (-0.3, +0.8) and
    +0.3 (-2.4, +2.9) thousandths on a9a, at learning rates of 0.05 and 0.1, and by -0.4
    (-0.6, -0.2) and -0.4 (-1.1, +0.4) on ijcnn1, where a tenth of the rows is positive.
    Intervals are 95 % of the corrected resampled t-test; see ``benchmarks/peers.py
    boosting``.

    Examples
    --------
    >>> from aucmax import losses
    >>> objective = losses.lightgbm_objective()
    >>> gradient, hessian = objective([0, 1, 1], [0.2, 0.1, 0.3])
    >>> gradient.round(2).tolist()
    [3.0, -1.65, -1.35]
    """
    return _objective(loss)


def xgboost_objective(loss: str = "squared_hinge") -> Callable[[Any, Any], Derivatives]:
    """Return an XGBoost objective: the pairwise loss over all pairs.

    It works in both interfaces: ``xgboost.train(params, data, obj=f)``, with the
    weights of the data, and ``XGBClassifier(objective=f)``, without weights.

    Parameters
    ----------
    loss : str, default="squared_hinge"
        One of :data:`NAMES` that is convex and has second derivatives.

    Returns
    -------
    callable
        As for :func:`lightgbm_objective`.

    Examples
    --------
    >>> from aucmax import losses
    >>> objective = losses.xgboost_objective("logistic")
    >>> gradient, hessian = objective([0, 1, 1], [0.2, 0.1, 3.0])
    >>> gradient.round(2).tolist()
    [0.44, -0.39, -0.04]
    """
    return _objective(loss)


def _objective(loss: str) -> Callable[[Any, Any], Derivatives]:
    _check(loss, convex=True)

    def objective(first: Any, second: Any) -> Derivatives:
        if not hasattr(second, "get_label"):
            return _boost(loss, first, second, None)  # (labels, scores)
        weight = second.get_weight()  # None or empty if there is none
        weight = weight if np.size(weight) and weight is not None else None
        return _boost(loss, second.get_label(), first, weight)  # (scores, data)

    return objective


def _boost(loss: str, y: Any, score: Any, weight: Any) -> Derivatives:
    point, present = _point(loss, y, np.ravel(score), weight, curved=True)
    half = 0.5 * np.count_nonzero(present)
    gradient = _everywhere(half * point.slope, present)
    return gradient, np.maximum(_everywhere(half * point.diagonal(), present), _LEAST)


def _check(loss: str, *, curved: bool = True, convex: bool = False) -> None:
    known = [
        name
        for name in NAMES
        if not (curved and name == "hinge") and not (convex and name == "sigmoid")
    ]
    if loss not in known:
        raise ValueError(f"loss={loss!r}: expected one of {', '.join(known)}.")


def _point(
    loss: str, y: Any, score: Any, weight: Any, *, curved: bool = False
) -> tuple[Point, Any]:
    """Return the loss at the scores of rows of nonzero weight, and their mask."""
    _check(loss, curved=curved)
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
