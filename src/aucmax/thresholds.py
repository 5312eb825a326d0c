r"""Thresholds with a promise: a rate that holds on new rows with a stated confidence.

The scores must be of rows that the model was not trained on, drawn like the new rows.
Each promise holds for any distribution of scores and any number of rows; if the rows
are too few for it, an error tells about how many are needed.

- ``fpr <= a``, ``recall >= r`` and ``alerts <= share``: the number of rows of a class
  (or of all rows) on the wrong side of the true threshold is binomial, so an order
  statistic of the scores is a threshold that violates the promise with at most the
  stated probability (the umbrella algorithm of Tong, Feng and Li, 2018).
- ``precision >= p``: precision need not rise with the threshold. Thresholds are tested
  in a fixed order, from few alerts to many, each by a binomial test, until one fails
  (Learn then Test, Angelopoulos et al. 2021): the chance of any false promise is
  bounded.
- ``cost``: the threshold of the lowest cost on the rows, with an upper bound of the
  expected cost that holds for all thresholds at once (Dvoretzky, Kiefer, Wolfowitz).
"""

import re
from math import ceil, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics.decimals import exact
from aucmax.metrics.decisions import confusion_at
from aucmax.metrics.inputs import as_scores, positives
from aucmax.metrics.intervals import Interval, normal_quantile, wilson
from aucmax.metrics.roc_steps import check_level, check_share

__all__ = [
    "NotAchievableError",
    "Promise",
    "Threshold",
    "Verdict",
    "choose",
    "parse",
    "verify",
]

_FORM = re.compile(
    r"\s*(recall|fpr|precision|alerts|cost)\s*(>=|<=|=)\s*([\d.eE+-]+)\s*(%)?"
    r"(?:\s*(?:/|per)\s*([\d.eE+-]+))?\s*"
)
_SIGN = {"recall": ">=", "precision": ">=", "fpr": "<=", "alerts": "<=", "cost": "="}
_HELP = (
    "expected 'recall>=0.9', 'fpr<=0.01', 'precision>=0.5', 'alerts<=100 per 10000' or "
    "'cost=20' (cost of a missed positive, in false alerts)"
)
_TESTS = 60  # thresholds tested for precision
_STARTS = 4  # places where the sequence of tests starts


class Promise(NamedTuple):
    """What a threshold is to hold: a rate and its bound."""

    rate: str  # "recall", "fpr", "precision", "alerts" or "cost"
    bound: float

    def __str__(self) -> str:
        return f"{self.rate} {_SIGN[self.rate]} {exact(self.bound)}"


class Threshold(NamedTuple):
    """A threshold, what it promises, and what it did on the rows it was chosen on."""

    value: float  # rows that score at least this are called positive
    promise: Promise
    confidence: float
    recall: float
    fpr: float
    precision: float  # NaN if no row is called
    alerts: float  # share of the rows that is called
    cost: float  # upper bound of the cost per row, for a promise of cost; else NaN

    def __str__(self) -> str:
        return (
            f"score >= {self.value:.6g}: {self.promise} with confidence "
            f"{100.0 * self.confidence:g} %"
        )


class Verdict(NamedTuple):
    """Whether a promise held on labelled rows."""

    rate: Interval  # the promised rate on these rows
    verdict: str  # "kept", "missed, perhaps by chance", "broken" or "unknown"


class NotAchievableError(ValueError):
    """The rows are too few, or the ranking too weak, for a promise."""


def parse(text: str | Promise) -> Promise:
    """Return the promise that a text states.

    Parameters
    ----------
    text : str or Promise
        Such as "recall>=0.9", "fpr<=1%", "precision>=0.5", "alerts<=100 per 10000" or
        "cost=20".

    Returns
    -------
    Promise
        Named tuple (rate, bound).

    Examples
    --------
    >>> from aucmax import thresholds
    >>> thresholds.parse("alerts <= 50 per 1000")
    Promise(rate='alerts', bound=0.05)
    """
    if isinstance(text, Promise):
        return text
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None or _SIGN[match[1]] != match[2]:
        raise ValueError(f"goal={text!r}: {_HELP}.")
    try:
        bound = float(match[3]) / (100.0 if match[4] else 1.0)
        bound /= float(match[5]) if match[5] else 1.0
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"goal={text!r}: {_HELP}.") from None
    if match[1] == "cost":
        if not 0.0 < bound < inf:
            raise ValueError(f"goal={text!r}: the cost must be above 0.")
    else:
        check_share(match[1], bound, "(", ")")
    return Promise(match[1], bound)


def choose(
    y: ArrayLike,
    score: ArrayLike,
    goal: str | Promise,
    *,
    confidence: float = 0.95,
    pos_label: object = None,
) -> Threshold:
    """Return a threshold that keeps a promise on new rows.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes.
    score : array-like of shape (n_rows,)
        Scores of rows that the model was not trained on; any model's.
    goal : str or Promise
        The promise: "recall>=0.9", "fpr<=0.01", "precision>=0.5", "alerts<=100 per
        10000", or "cost=20" for the lowest expected cost if a missed positive costs as
        much as 20 false alerts.
    confidence : float, default=0.95
        Probability that the promise holds: of all samples of such rows, at least this
        share gives a threshold that keeps it.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    Threshold
        Named tuple (value, promise, confidence, recall, fpr, precision, alerts, cost).
        Of the thresholds that keep the promise it is the one with the highest recall,
        or for a promise of recall the one with the fewest alerts.

    Raises
    ------
    NotAchievableError
        If no threshold can be promised; the message says how many rows would do.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import thresholds
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(5000) < 0.1
    >>> found = thresholds.choose(y, 2 * y + rng.normal(size=5000), "fpr<=0.05")
    >>> round(found.fpr, 3), round(found.recall, 2)
    (0.044, 0.63)
    """
    check_level(confidence)
    promise = parse(goal)
    positive = positives(y, pos_label)
    scores = as_scores(score, positive.size).astype(np.float64)
    value, cost = _FINDERS[promise.rate](scores, positive, promise, 1.0 - confidence)
    called = scores >= value
    hits = float(np.count_nonzero(called & positive))
    rows, m = float(np.count_nonzero(called)), float(np.count_nonzero(positive))
    return Threshold(
        value=value,
        promise=promise,
        confidence=confidence,
        recall=hits / m,
        fpr=(rows - hits) / (positive.size - m),
        precision=hits / rows if rows else np.nan,
        alerts=rows / positive.size,
        cost=cost,
    )


def verify(
    y: ArrayLike,
    score: ArrayLike,
    threshold: Threshold,
    *,
    level: float = 0.95,
    pos_label: object = None,
) -> Verdict:
    """Return whether the promise of a threshold held on new rows.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes.
    score : array-like of shape (n_rows,)
        Scores of the model that the threshold was chosen for.
    threshold : Threshold
        The threshold, from ``choose`` or ``AUCClassifier.threshold_``.
    level : float, default=0.95
        Confidence level of the interval.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    Verdict
        Named tuple (rate, verdict). The rate has a Wilson interval (a normal one for a
        cost). The verdict is "kept" if the rate is on the right side of the bound,
        "broken" if its whole interval is on the wrong side, else "missed, perhaps by
        chance"; "unknown" if no row counts, such as a precision without called rows.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import thresholds
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(10_000) < 0.1
    >>> score = 2 * y + rng.normal(size=10_000)
    >>> found = thresholds.choose(y[:5000], score[:5000], "fpr<=0.05")
    >>> thresholds.verify(y[5000:], score[5000:], found).verdict
    'kept'
    """
    check_level(level)
    positive = positives(y, pos_label)
    scores = as_scores(score, positive.size).astype(np.float64)
    name, bound = threshold.promise
    if name == "cost":
        called = scores >= threshold.value
        each = np.where(positive, bound * ~called, called)
        half = normal_quantile(level) * float(each.std()) / sqrt(each.size)
        mean = float(each.mean())
        rate, bound = Interval(mean, mean - half, mean + half), threshold.cost
    else:
        at = confusion_at(positive, scores, threshold.value, level=level)
        n = scores.size
        rates = {
            "fpr": at.fpr,
            "recall": at.recall,
            "precision": at.precision,
            "alerts": wilson((at.tp + at.fp) / n, n, level),
        }
        rate = rates[name]
    if name in ("recall", "precision"):
        held, near = rate.value >= bound, rate.high >= bound
    else:
        held, near = rate.value <= bound, rate.low <= bound
    if np.isnan(rate.value):
        return Verdict(rate, "unknown")
    words = "kept" if held else "missed, perhaps by chance" if near else "broken"
    return Verdict(rate, words)


Found = tuple[float, float]  # threshold, bound of the cost


def _few_called(
    sample: NDArray[np.float64], promise: Promise, chance: float, who: str
) -> Found:
    """Return a threshold that at most a share of the sample's population reaches."""
    from scipy.stats import binom  # slow import

    n, share = sample.size, promise.bound
    # Called rows of the population are more than the share if the true threshold is
    # above the chosen score, and then at most `allowed` rows of the sample are above.
    allowed = int(binom.ppf(chance, n, share))
    if binom.cdf(allowed, n, share) > chance:
        allowed -= 1
    if allowed < 0:
        needed = ceil(log(chance) / log(1.0 - share))
        raise NotAchievableError(
            f"{promise} cannot be promised with {n:,} {who}: about {needed - n:,} more "
            f"are needed, {needed:,} in all."
        )
    edge = float(np.sort(sample)[n - 1 - allowed])  # `allowed` rows are above it
    if edge == inf:
        raise NotAchievableError(
            f"{promise} cannot be promised: {np.count_nonzero(sample == inf):,} of "
            f"{n:,} {who} score inf, and no threshold is above it. Use scores that "
            "rank these rows."
        )
    return float(np.nextafter(edge, inf)), np.nan


def _fpr(
    s: NDArray[np.float64], positive: NDArray[np.bool_], p: Promise, d: float
) -> Found:
    return _few_called(s[~positive], p, d, "negatives")


def _alerts(
    s: NDArray[np.float64], positive: NDArray[np.bool_], p: Promise, d: float
) -> Found:
    return _few_called(s, p, d, "rows")


def _recall(
    s: NDArray[np.float64], positive: NDArray[np.bool_], p: Promise, d: float
) -> Found:
    from scipy.stats import binom  # slow import

    sample = s[positive]
    n, missed = sample.size, 1.0 - p.bound
    allowed = int(binom.ppf(d, n, missed))
    if binom.cdf(allowed, n, missed) > d:
        allowed -= 1
    if allowed < 0:
        needed = ceil(log(d) / log(p.bound))
        raise NotAchievableError(
            f"{p} cannot be promised with {n:,} positives: about {needed - n:,} more "
            f"are needed, {needed:,} in all."
        )
    return float(np.sort(sample)[allowed]), np.nan  # `allowed` positives are below it


def _precision(
    s: NDArray[np.float64], positive: NDArray[np.bool_], p: Promise, d: float
) -> Found:
    from scipy.stats import binom  # slow import

    order = np.argsort(-s, kind="stable")
    falling, hits = s[order], np.cumsum(positive[order])
    n = s.size
    fewest = ceil(log(d / _STARTS) / log(p.bound))  # rows, all positive, for a test
    if fewest >= n:
        raise NotAchievableError(
            f"{p} cannot be promised with {n:,} rows: at least {fewest:,} called rows "
            "are needed."
        )
    places = np.unique(np.geomspace(fewest, n - 1, _TESTS).astype(np.intp))
    # The row at a place is the threshold; rows that score higher are a sample of those
    # that a threshold above it calls. Tied rows are left out of the sample.
    above = np.searchsorted(-falling, -falling[places], side="left")
    found = np.append(0, hits)[above]
    passed = binom.sf(found - 1, above, p.bound) <= d / _STARTS
    passed &= above > 0
    best = 0
    for start in np.linspace(0, places.size, _STARTS, endpoint=False).astype(int):
        stop = start + int(np.argmin(np.append(passed[start:], False)))
        if stop > start:
            best = max(best, int(above[stop - 1]))
    if best == 0:
        rates = found / np.maximum(above, 1)
        top = float(rates.max()) if rates.size else 0.0
        if top <= p.bound:
            hint = f"the highest precision on these rows is {top:.3g}"
        else:
            gap = top - p.bound
            rows = above[int(np.argmax(rates))]
            more = ceil(
                p.bound * (1.0 - p.bound) * 2.5 * log(1.0 / d) / gap**2 / rows * n
            )
            hint = f"about {max(more - n, 1):,} more rows would be needed"
        raise NotAchievableError(f"{p} cannot be promised with {n:,} rows: {hint}.")
    edge = falling[best - 1]  # the lowest of the rows that were tested
    below = falling[best] if best < n else -inf
    return float(np.nextafter(below, inf) if below < edge else edge), np.nan


def _cost(
    s: NDArray[np.float64], positive: NDArray[np.bool_], p: Promise, d: float
) -> Found:
    order = np.argsort(-s, kind="stable")
    falling, labels = s[order], positive[order]
    last = np.append(falling[1:] < falling[:-1], True)  # tied rows stay together
    tp = np.append(0, np.cumsum(labels)[last])
    fp = np.append(0, np.cumsum(~labels)[last])
    m, n = float(tp[-1]), float(fp[-1])
    cost = (p.bound * (m - tp) + fp) / (m + n)
    at = int(np.argmin(cost))
    # Both distribution functions, each with half of the chance.
    slack = p.bound * m * _largest_gap(m, d) + n * _largest_gap(n, d)
    value = float(falling[last][at - 1]) if at else float(np.nextafter(falling[0], inf))
    return value, float(cost[at] + slack / (m + n))


def _largest_gap(rows: float, chance: float) -> float:
    """Return the gap of an empirical distribution function, one-sided."""
    return sqrt(log(2.0 / chance) / (2.0 * rows))


_FINDERS = {
    "fpr": _fpr,
    "recall": _recall,
    "alerts": _alerts,
    "precision": _precision,
    "cost": _cost,
}
