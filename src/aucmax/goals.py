"""Goals: which part of a ranking counts, as text or as small objects.

- ``auc`` or ``AUC()``: the whole ranking.
- ``pauc@fpr=0.05`` or ``PartialAUC(0.05)``: recall at false positive rates up to 5 %.
- ``recall@fpr=0.01`` or ``RecallAtFPR(0.01)``: positives found at that rate.
- ``precision@k=100`` or ``PrecisionAtTop(100)``: positives among the 100 highest rows.
- ``precision@share=0.01`` or ``PrecisionAtTop(0.01)``: among the highest 1 %.
- ``net_benefit@0.05..0.2`` or ``NetBenefit(0.05, 0.2)``: decisions at these
  threshold probabilities.
"""

import re
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from aucmax.metrics._ranking import (
    as_scores,
    as_weights,
    check_share,
    classes,
    exact,
    positives,
)
from aucmax.metrics._variance import Interval, normal_quantile, row_groups
from aucmax.metrics.auc import auc_interval, partial_auc_interval
from aucmax.metrics.curves import tpr_at
from aucmax.metrics.top import precision_interval
from aucmax.thresholds import Promise

__all__ = [
    "AUC",
    "NetBenefit",
    "PartialAUC",
    "PrecisionAtTop",
    "RecallAtFPR",
    "parse",
]

_WHOLE = 1.0 - 1e-12  # share of a list of all rows
_GRID = 31  # threshold probabilities of a net benefit


class Goal(Protocol):
    """What a ranking is for."""

    def interval(
        self,
        y: ArrayLike,
        score: ArrayLike,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Interval:
        """Return its value on rows scored by log-odds, with a confidence interval.

        Weights are sampling weights, and rows of a group may depend on each other, as
        for :func:`aucmax.metrics.auc_interval`.
        """
        ...

    def promise(self, n_rows: int) -> Promise | None:
        """Return what the default threshold is to hold, for a table of so many rows."""
        ...

    @property
    def score(self) -> float:
        """Threshold if nothing is promised, in log-odds."""
        ...


@dataclass(frozen=True)
class AUC:
    """The area under the ROC curve: the whole ranking counts.

    Examples
    --------
    >>> from aucmax import goals
    >>> goals.AUC().interval([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).value
    0.75
    """

    score = 0.0

    def __str__(self) -> str:
        return "auc"

    def interval(
        self,
        y: ArrayLike,
        score: ArrayLike,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Interval:
        """Return the AUC with its confidence interval."""
        more: Any = {"sample_weight": sample_weight, "groups": groups}
        return Interval(*auc_interval(y, score, level=level, **more)[:3])

    def promise(self, n_rows: int) -> Promise | None:
        """Return None: rows with a probability above one half are called positive."""
        return None


@dataclass(frozen=True)
class PartialAUC:
    """The partial AUC up to a false positive rate, on the scale of an AUC.

    Parameters
    ----------
    fpr : float
        Largest false positive rate, in (0, 1].

    Examples
    --------
    >>> from aucmax import goals
    >>> goal = goals.PartialAUC(0.5)
    >>> str(goal)
    'pauc@fpr=0.5'
    >>> round(goal.interval([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).value, 4)
    0.6667
    """

    fpr: float
    score = 0.0

    def __post_init__(self) -> None:
        check_share("fpr", self.fpr)

    def __str__(self) -> str:
        return f"pauc@fpr={exact(self.fpr)}"

    def interval(
        self,
        y: ArrayLike,
        score: ArrayLike,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Interval:
        """Return the standardised partial AUC with its confidence interval."""
        more: Any = {"sample_weight": sample_weight, "groups": groups}
        return partial_auc_interval(
            y, score, max_fpr=self.fpr, standardise=True, level=level, **more
        )

    def promise(self, n_rows: int) -> Promise | None:
        """Return the false positive rate that the threshold is not to exceed."""
        return Promise("fpr", self.fpr) if self.fpr < 1.0 else None


@dataclass(frozen=True)
class RecallAtFPR:
    """The recall at a false positive rate.

    Parameters
    ----------
    fpr : float
        False positive rate, between 0 and 1.

    Examples
    --------
    >>> from aucmax import goals
    >>> goal = goals.RecallAtFPR(0.01)
    >>> str(goal), str(goal.promise(1000))
    ('recall@fpr=0.01', 'fpr <= 0.01')
    """

    fpr: float
    score = 0.0

    def __post_init__(self) -> None:
        check_share("fpr", self.fpr, "(", ")")

    def __str__(self) -> str:
        return f"recall@fpr={exact(self.fpr)}"

    def interval(
        self,
        y: ArrayLike,
        score: ArrayLike,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Interval:
        """Return the recall with its confidence interval."""
        more: Any = {"sample_weight": sample_weight, "groups": groups}
        return tpr_at(y, score, self.fpr, level=level, **more)

    def promise(self, n_rows: int) -> Promise | None:
        """Return the false positive rate that the threshold is not to exceed."""
        return Promise("fpr", self.fpr)


@dataclass(frozen=True)
class PrecisionAtTop:
    """The precision of the highest rows: a number of rows, or a share of them.

    Parameters
    ----------
    k : int or float
        An integer is a number of rows, a float between 0 and 1 a share of all rows.

    Examples
    --------
    >>> from aucmax import goals
    >>> goal = goals.PrecisionAtTop(2)
    >>> goal.interval([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).value
    0.5
    >>> str(goal.promise(100))
    'alerts <= 0.02'
    """

    k: int | float
    score = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.k, float):
            check_share("share", self.k, "(", ")")
        elif self.k < 1:
            raise ValueError(f"k={self.k}: expected a number of rows, at least 1.")

    def __str__(self) -> str:
        kind = "share" if isinstance(self.k, float) else "k"
        return f"precision@{kind}={exact(self.k)}"

    def interval(
        self,
        y: ArrayLike,
        score: ArrayLike,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Interval:
        """Return the precision with its confidence interval.

        With weights, k of n rows are the share k / n of the weight, as in ``promise``.
        """
        k = self.k if isinstance(self.k, float) else min(self.k, np.size(y))
        if sample_weight is not None:
            k = min(self.k / (1 if isinstance(k, float) else np.size(y)), _WHOLE)
        more: Any = {"sample_weight": sample_weight, "groups": groups}
        return precision_interval(y, score, k, level=level, **more)

    def promise(self, n_rows: int) -> Promise | None:
        """Return the share of rows that the threshold is not to call more of."""
        share = self.k
        if not isinstance(share, float):
            share = float(f"{share / n_rows:.6g}")  # as it is shown
        return Promise("alerts", share) if share < 1.0 else None


@dataclass(frozen=True)
class NetBenefit:
    """The mean net benefit over a range of threshold probabilities.

    Parameters
    ----------
    low, high : float
        Ends of the range, between 0 and 1.

    Examples
    --------
    >>> from aucmax import goals
    >>> goal = goals.NetBenefit(0.1, 0.3)
    >>> str(goal)
    'net_benefit@0.1..0.3'
    >>> round(goal.score, 3)  # log-odds of the threshold of predict: 0.2
    -1.386
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        check_share("low", self.low, "(", ")")
        check_share("high", self.high, "(", ")")
        if self.low > self.high:
            raise ValueError(f"low={self.low} is above high={self.high}.")

    def __str__(self) -> str:
        return f"net_benefit@{exact(self.low)}..{exact(self.high)}"

    def interval(
        self,
        y: ArrayLike,
        score: ArrayLike,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Interval:
        """Return the net benefit of log-odds with a normal confidence interval."""
        positive = positives(y)
        weight, kept = np.ones(positive.size), np.ones(positive.size, np.bool_)
        p = expit(as_scores(score, positive.size).astype(np.float64))
        if sample_weight is not None:
            classes(y, score, sample_weight)  # both have rows with weight
            weight = as_weights(sample_weight, positive.size)
            kept = weight > 0.0
        codes = np.arange(int(kept.sum()))
        if groups is not None:
            codes = row_groups(groups, positive.size, kept)
        positive, p, weight = positive[kept], p[kept], weight[kept]
        grid = np.linspace(self.low, self.high, _GRID)
        each = np.zeros(positive.size)
        for t in grid:
            each += (p >= t) * np.where(positive, 1.0, -t / (1.0 - t)) / grid.size
        value = float(np.average(each, weights=weight))
        error = np.bincount(codes, weight * (each - value)) / weight.sum()
        n = np.unique(codes).size
        half = normal_quantile(level) * sqrt(float(error @ error) * n / (n - 1))
        return Interval(value, value - half, value + half)

    def promise(self, n_rows: int) -> Promise | None:
        """Return None: the threshold is a probability."""
        return None

    @property
    def score(self) -> float:
        """Log-odds of the middle of the range."""
        return float(logit(0.5 * (self.low + self.high)))


KINDS = (AUC, PartialAUC, RecallAtFPR, PrecisionAtTop, NetBenefit)
_NUMBER = r"([\d.eE+-]+)(%?)"
_FORMS: tuple[tuple[str, Any], ...] = (
    (rf"pauc@fpr={_NUMBER}", PartialAUC),
    (rf"recall@fpr={_NUMBER}", RecallAtFPR),
    (rf"precision@share={_NUMBER}", PrecisionAtTop),
)
_HELP = (
    "expected auc, pauc@fpr=0.05, recall@fpr=0.01, precision@k=100, "
    "precision@share=0.01 or net_benefit@0.05..0.2"
)


def parse(goal: str | Goal) -> Goal:
    """Return the goal that a text states; a goal is returned as it is.

    Parameters
    ----------
    goal : str or goal
        See the list at the top of this module.

    Returns
    -------
    goal
        An object with ``interval(y, score)``.

    Examples
    --------
    >>> from aucmax import goals
    >>> goals.parse("recall@fpr=1%")
    RecallAtFPR(fpr=0.01)
    >>> str(goals.parse("precision@k=100"))
    'precision@k=100'
    """
    if not isinstance(goal, str):
        if isinstance(goal, KINDS):
            return goal
        raise TypeError(f"goal={goal!r}: {_HELP}.")
    text = re.sub(r"\s", "", goal.lower())
    try:
        if text == "auc":
            return AUC()
        if match := re.fullmatch(r"precision@k=(\d+)", text):
            return PrecisionAtTop(int(match[1]))
        if match := re.fullmatch(rf"net_benefit@{_NUMBER}\.\.{_NUMBER}", text):
            low, high = _number(match[1], match[2]), _number(match[3], match[4])
            return NetBenefit(low, high)
        for form, kind in _FORMS:
            if match := re.fullmatch(form, text):
                found: Goal = kind(_number(match[1], match[2]))
                return found
    except ValueError as error:
        raise ValueError(f"goal={goal!r}: {error}") from None
    raise ValueError(f"goal={goal!r}: {_HELP}.")


def _number(text: str, percent: str) -> float:
    return float(text) / (100.0 if percent else 1.0)
