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
  expected cost. For the share of positives :math:`\pi`, the cost of a threshold is
  :math:`C \pi F_1 + (1 - \pi) (1 - F_0)`, where :math:`F_1` and :math:`F_0` are the
  shares of positives and negatives below it. Four bounds fail with a quarter of the
  chance each: Clopper and Pearson's for :math:`\pi` from below and from above, and,
  given the labels, those of Dvoretzky, Kiefer and Wolfowitz (Massart's constant) for
  :math:`F_1` and :math:`1 - F_0`, which hold at all thresholds at once. Given the
  last two, the cost is linear in :math:`\pi`, so it is at most that of an end.

Weights and groups: a rate of weighted or dependent rows varies as that of fewer
independent rows, and their number takes the place of the number of rows.

- Rows with weights count as the sum of their weights over the largest weight of the
  sample, since rows as heavy as that may be missing where they matter. If the weights
  differ between the classes only, a rate of one class is not weighted.
- For groups, the number is estimated from the variance of the rate over the groups
  (``metrics.influence.effective_trials``). These promises are approximate: they assume
  that the groups at hand show how groups differ. A kind of group that makes up a share
  of all may be missing from few groups, so promises of a rate need as many groups as
  they would need independent rows.

In simulations, of all samples at most 5 % gave a threshold that broke its promise, up
to chance: 20 to 200 groups of 5 to 50 rows, normal and heavy tails; weights of 1 and
10, 1 to 5, log-normal, and heavy ones only where few rows are. Samples without a
promise count as kept.
"""

import re
from math import ceil, floor, inf, log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics._ranking import (
    as_scores,
    as_weights,
    check_level,
    check_share,
    classes,
    exact,
    positives,
)
from aucmax.metrics._variance import (
    Interval,
    clopper_pearson,
    effective_trials,
    normal_quantile,
    row_groups,
    wilson,
)

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
_CAUTION = 1.0  # standard errors by which effective numbers of rows are lowered
_FEWEST_GROUPS = 20
_GAPS = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles at which clusters are counted


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
            f"score >= {exact(self.value)}: {self.promise} with confidence "
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
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
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
    groups : array-like of shape (n_rows,), optional
        Group of each row, such as the patient or the row that it is a copy of, if rows
        of a group depend on each other. The promise is about rows of new groups. At
        least 20 groups are needed, and as many as a promise needs independent rows: 59
        for "fpr<=0.05" and a confidence of 95 %.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights: the promise is about the weighted population. Weights that are
        all equal change nothing.

    Returns
    -------
    Threshold
        Named tuple (value, promise, confidence, recall, fpr, precision, alerts, cost).
        Of the thresholds that keep the promise it is the one with the highest recall,
        or for a promise of recall the one with the fewest alerts. The rates are those
        of the rows at hand, with their weights.

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
    sample = _read(y, score, pos_label, groups, sample_weight)
    if sample.group is not None and sample.units < _FEWEST_GROUPS:
        raise NotAchievableError(
            f"{promise} cannot be promised with {sample.units} groups: at least "
            f"{_FEWEST_GROUPS} are needed to see how groups differ."
        )
    value, cost = _FINDERS[promise.rate](sample, promise, 1.0 - confidence)
    called = sample.score >= value
    return Threshold(
        value=value,
        promise=promise,
        confidence=confidence,
        recall=sample.of_class(True).share(called[sample.positive]),
        fpr=sample.of_class(False).share(called[~sample.positive]),
        precision=sample.of(called).share(sample.positive[called]),
        alerts=sample.share(called),
        cost=cost,
    )


def verify(
    y: ArrayLike,
    score: ArrayLike,
    threshold: Threshold,
    *,
    level: float = 0.95,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
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
    groups, sample_weight : array-like of shape (n_rows,), optional
        Groups and sampling weights of the rows, as for :func:`choose`: the rate is
        weighted, and its interval is that of the effective number of rows.

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
    sample = _read(y, score, pos_label, groups, sample_weight)
    name, bound = threshold.promise
    called, positive = sample.score >= threshold.value, sample.positive
    if name == "cost":
        rate, bound = _cost_interval(sample, called, bound, level), threshold.cost
    else:
        rows, hit = {
            "fpr": (~positive, called),
            "recall": (positive, called),
            "precision": (called, positive),
            "alerts": (np.ones_like(called), called),
        }[name]
        counted, hit = sample.of(rows), hit[rows]
        if not hit.size:
            return Verdict(Interval(np.nan, np.nan, np.nan), "unknown")
        trials = effective_trials(hit, counted.weight, counted.group)
        rate = wilson(counted.share(hit), trials, level)
    if name in ("recall", "precision"):
        held, near = rate.value >= bound, rate.high >= bound
    else:
        held, near = rate.value <= bound, rate.low <= bound
    words = "kept" if held else "missed, perhaps by chance" if near else "broken"
    return Verdict(rate, words)


def _cost_interval(
    sample: "_Sample", called: NDArray[np.bool_], missed: float, level: float
) -> Interval:
    """Return the mean cost of a row with its normal interval."""
    cost = np.where(sample.positive, missed * ~called, called)
    mean = float(np.average(cost, weights=sample.weight))
    error: NDArray[Any] = cost - mean
    if sample.weight is not None:
        error = sample.weight * error
    if sample.group is not None:
        error = np.bincount(sample.group, error)
    half = normal_quantile(level) * sqrt(float(error @ error)) / sample.total
    return Interval(mean, mean - half, mean + half)


Found = tuple[float, float]  # threshold, bound of the cost


class _Sample(NamedTuple):
    """Scored rows of positive weight."""

    score: NDArray[np.float64]
    positive: NDArray[np.bool_]
    weight: NDArray[np.float64] | None  # None if all are equal; the heaviest row has 1
    group: NDArray[np.intp] | None  # None if each row has its own

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.score.size if self.weight is None else self.weight.sum())

    def of(self, rows: NDArray[Any]) -> "_Sample":
        """Return some of the rows."""
        return _Sample(*(None if x is None else x[rows] for x in self))  # type: ignore[arg-type]

    def of_class(self, positive: bool) -> "_Sample":
        """Return the rows of a class, without weights that differ by class only."""
        w, mask = self.weight, self.positive
        by_class = w is not None and all(np.ptp(w[one]) == 0.0 for one in (mask, ~mask))
        found = self.of(mask == positive)
        return found._replace(weight=None) if by_class else found

    @property
    def units(self) -> int:
        """Number of groups, or of rows if these are independent."""
        return self.score.size if self.group is None else np.unique(self.group).size

    def share(self, hit: NDArray[np.bool_]) -> float:
        """Return the share of the weight that hits have; NaN without rows."""
        if not hit.size:
            return np.nan
        return float(np.average(hit, weights=self.weight))

    def trials(self, hit: NDArray[np.bool_]) -> int:
        """Return the effective number of rows for a promise about the share of hits."""
        rows = self.total  # the heaviest weight is 1
        if self.group is not None:
            found = effective_trials(hit, self.weight, self.group, _CAUTION)
            rows = min(found, rows)
        return max(int(rows * (1.0 + 1e-12)), 1)


def _read(
    y: ArrayLike,
    score: ArrayLike,
    pos_label: object,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> _Sample:
    """Return the validated rows."""
    classes(y, score, sample_weight, pos_label)  # both have rows with weight
    positive = positives(y, pos_label)
    scores = as_scores(score, positive.size).astype(np.float64)
    sample, kept = _Sample(scores, positive, None, None), None
    if sample_weight is not None:
        weight = as_weights(sample_weight, positive.size)
        kept = weight > 0.0
        equal = (weight[kept] == weight.max()).all()
        scaled = None if equal else weight / weight.max()
        sample = sample._replace(weight=scaled).of(kept)
    if groups is not None:
        codes = row_groups(groups, positive.size, kept)
        if np.unique(codes).size < codes.size:
            sample = sample._replace(group=codes)
    return sample


def _share_above(
    sample: _Sample, promise: Promise, share: float, chance: float, who: str
) -> float:
    """Return a score that at most a share of the sample's population exceeds."""
    from scipy.stats import binom  # slow import

    order = np.argsort(-sample.score, kind="stable")
    falling = sample.score[order]
    weight = np.ones(order.size) if sample.weight is None else sample.weight[order]
    reached = np.cumsum(weight)
    at = min(int(np.searchsorted(reached, share * reached[-1])), order.size - 1)
    n = sample.trials(sample.score >= falling[at])
    # More than the share of the population exceed the chosen score if the true
    # threshold is above it, and then at most `allowed` rows of the sample exceed that.
    allowed = int(binom.ppf(chance, n, share))
    if binom.cdf(allowed, n, share) > chance:
        allowed -= 1
    needed = ceil(log(chance) / log1p(-share))
    if sample.group is not None and sample.units < needed:
        raise NotAchievableError(
            f"{promise} cannot be promised with {who} of {sample.units:,} groups: at "
            f"least {needed:,} groups are needed. Add groups or relax the bound."
        )
    if allowed < 0:
        if n < order.size:
            who += f" that count as {n:,} independent ones"
        raise NotAchievableError(
            f"{promise} cannot be promised with {order.size:,} {who}: about "
            f"{ceil((needed - n) * (order.size / n)):,} more are needed, "
            f"{ceil(needed * (order.size / n)):,} in all."
        )
    above = int(np.searchsorted(reached, allowed * (reached[-1] / n), side="right"))
    return float(falling[above])  # the weight of `allowed` rows exceeds it


def _few_called(sample: _Sample, promise: Promise, chance: float, who: str) -> Found:
    edge = _share_above(sample, promise, promise.bound, chance, who)
    if edge == inf:
        raise NotAchievableError(
            f"{promise} cannot be promised: {np.count_nonzero(sample.score == inf):,} "
            f"of {sample.score.size:,} {who} score inf, and no threshold is above it. "
            "Use scores that rank these rows."
        )
    return float(np.nextafter(edge, inf)), np.nan


def _fpr(sample: _Sample, p: Promise, d: float) -> Found:
    return _few_called(sample.of_class(False), p, d, "negatives")


def _alerts(sample: _Sample, p: Promise, d: float) -> Found:
    return _few_called(sample, p, d, "rows")


def _recall(sample: _Sample, p: Promise, d: float) -> Found:
    found = sample.of_class(True)
    falling = found._replace(score=-found.score)
    return 0.0 - _share_above(falling, p, 1.0 - p.bound, d, "positives"), np.nan


def _precision(sample: _Sample, p: Promise, d: float) -> Found:
    from scipy.stats import binom  # slow import

    ranked = sample.of(np.argsort(-sample.score, kind="stable"))
    falling = ranked.score
    n = falling.size
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
    rates, passed = np.zeros(above.size), np.zeros(above.size, np.bool_)
    for i, rows in enumerate(above):
        called = ranked.of(np.arange(rows))
        if called.units >= fewest:
            rates[i] = called.share(called.positive)
            trials = called.trials(called.positive)
            hits = floor(rates[i] * trials + 1e-9)
            passed[i] = binom.sf(hits - 1, trials, p.bound) <= d / _STARTS
    best = 0
    for start in np.linspace(0, places.size, _STARTS, endpoint=False).astype(int):
        stop = start + int(np.argmin(np.append(passed[start:], False)))
        if stop > start:
            best = max(best, int(above[stop - 1]))
    if best == 0:
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


def _cost(sample: _Sample, p: Promise, d: float) -> Found:
    ranked = sample.of(np.argsort(-sample.score, kind="stable"))
    falling, labels = ranked.score, ranked.positive
    last = np.append(falling[1:] < falling[:-1], True)  # tied rows stay together
    w = np.ones(falling.size) if ranked.weight is None else ranked.weight
    tp = np.append(0, np.cumsum(w * labels)[last])
    fp = np.append(0, np.cumsum(w * ~labels)[last])
    m, n = float(tp[-1]), float(fp[-1])
    at = int(np.argmin(p.bound * (m - tp) + fp))
    # Four bounds, each with a quarter of the chance: the share of positives on either
    # side, and the distribution function of the scores of each class.
    missed = min((m - tp[at]) / m + _largest_gap(ranked.of_class(True), d), 1.0)
    false = min(fp[at] / n + _largest_gap(ranked.of_class(False), d), 1.0)
    ends = clopper_pearson(ranked.share(labels), ranked.trials(labels), 1.0 - 0.5 * d)
    value = float(falling[last][at - 1]) if at else float(np.nextafter(falling[0], inf))
    costs = [p.bound * pi * missed + (1.0 - pi) * false for pi in ends]
    return value, float(max(costs))


def _largest_gap(sample: _Sample, chance: float) -> float:
    """Return the gap of an empirical distribution function, one-sided."""
    edges = np.quantile(sample.score, _GAPS, method="lower")
    rows = min(sample.trials(sample.score >= edge) for edge in edges)
    return sqrt(log(4.0 / chance) / (2.0 * rows))


_FINDERS = {
    "fpr": _fpr,
    "recall": _recall,
    "alerts": _alerts,
    "precision": _precision,
    "cost": _cost,
}
