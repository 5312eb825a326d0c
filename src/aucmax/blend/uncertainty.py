r"""Confidence interval of a cross-fitted AUC, for the model that comes of it.

The AUC of rows that each are scored by the model of their fold differs in two ways from
that of independent rows scored by the mean of the models:

Folds depend on each other, as each model learns from the rows that others score. With
:math:`\rho` the share of the variance of scores, within a class, that another draw of
the training rows would change, the variance is at most :math:`1 + \rho` times that of
independent folds (:func:`aucmax.metrics.cv_auc_interval`).

The mean of the models is better than each: what is due to chance averages out, and
scores of a class vary less, by a share of :math:`r`. Were scores normal, an AUC of
:math:`\Phi(a)` became :math:`\Phi(a / \sqrt{1 - r})`. The upper end of the interval is
raised by that gain, the lower end is that of the models of the folds.

Both shares come from how much the models of the folds differ on the same rows, as in
the jackknife. That takes no fit.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.crossfit import Fitted, Part, scores_of
from aucmax.core.rows import Float, Index
from aucmax.metrics.delong import AUCInterval, cv_auc_interval

_CAUTION = 2.0  # an estimate of chance comes out low just when the AUC comes out high
_MOST = 0.9  # of the variance within a class that a mean of models may take away


def model_scores(fitted: Sequence[Fitted], count: int, X: Any) -> Float:
    """Return the scores of rows by the models of ``count`` folds, for each member."""
    return np.array(
        [[scores_of(model, X) for model in one.models[:count]] for one in fitted]
    )


def chance(scores: Float, unseen: Float, positive: NDArray[np.bool_]) -> float:
    """Return the share of the variance of scores that is due to the training rows.

    ``scores`` (K, rows) are those of the same rows by the models of K folds. As by the
    jackknife, another draw of all their training rows would change scores K - 1 times
    as much, in variance, as leaving out one fold does. The whole is the variance of
    ``unseen`` (n,), scores by models that never saw the row, within a class. The share
    may exceed 1 by chance, and for models that draw at random.
    """
    mean = np.where(positive, unseen[positive].mean(), unseen[~positive].mean())
    within = float(np.mean((unseen - mean) ** 2))
    between = float(scores.var(axis=0, ddof=1).mean()) * (len(scores) - 1)
    return between / within if within else 0.0


def crossfit_interval(
    positive: NDArray[np.bool_],
    unseen: Float,
    fold: NDArray[Any],
    weight: Float | None,
    share: float,
    gone: float,
) -> AUCInterval:
    """Return the cross-fitted AUC, with an interval for the mean of the models.

    ``share`` is :func:`chance`; ``gone`` the share of the variance within a class that
    the mean of the models does not have.
    """
    interval = cv_auc_interval(
        positive,
        unseen,
        fold,
        dependence=min(1.0, _CAUTION * share),
        sample_weight=weight,
    )
    if not gone or not 0.5 < interval.value < 1.0:
        return interval
    normal, rest = NormalDist(), 1.0 - min(_MOST, gone)
    better = normal.cdf(normal.inv_cdf(interval.value) / sqrt(rest))
    return interval._replace(high=min(1.0, interval.high + better - interval.value))


def merged(
    of: Index, positive: NDArray[np.bool_], fold: NDArray[Any], weight: Float | None
) -> tuple[Index, Float]:
    """Return one of the copies of each row, and what they weigh together.

    Copies have the same number ``of`` a distinct row, label and fold: and so, scores.
    """
    key = np.column_stack([of, positive, fold])
    _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return first, np.bincount(which.ravel(), weight).astype(np.float64)


def mutual(parts: Sequence[Part]) -> bool:
    """Tell whether two models learn from rows that the other one scores."""
    return any(
        np.isin(a.train, b.test).any() and np.isin(b.train, a.test).any()
        for i, a in enumerate(parts)
        for b in parts[:i]
        if len(a.test) and len(b.test)
    )
