r"""Calibration of probabilities: curve, line, Brier score and error; monitoring.

Scores whose labels are not known yet are monitored by their distribution and by the AUC
that their probabilities promise.

**Platt's calibration** has log-odds a s + b from scores s. The parameters minimise the
cross-entropy with the targets (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) in place of 1 and 0, so
that scores that separate the classes do not get infinite odds.

J. Platt, "Probabilistic outputs for support vector machines", 1999; solved as in
H.-T. Lin, C.-J. Lin, R. Weng, "A note on Platt's probabilistic outputs", 2007.
"""

import warnings
from math import inf, nan, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from aucmax.core.rows import Float
from aucmax.metrics._ranking import (
    OneClassError,
    Weights,
    as_numbers,
    check_level,
    increments,
    nan_if_one_class,
    steps,
)
from aucmax.metrics._variance import Interval, effective_number, normal_quantile, wilson

_PLATT_ROUNDS = 100
_PLATT_TINY = 1e-12  # added to the Hessian; smallest step
_NEAR = 1e-9  # expected decrease below which Newton steps need no line search
_ROUNDING = 1e-10  # standard deviation of equal scores, relative to their size
_LEAST_SLOPE = 1e-3  # odds must increase with the score


def log_odds(pos: Float, neg: Float, n: Float) -> tuple[float, float]:
    """Return the slope a and the offset b for scores of both classes.

    ``n`` are the numbers of positives and negatives, of which the scores are samples.
    Without scores of both classes, the log-odds are those of the class frequencies;
    zero if only one class has been seen.
    """
    if not len(pos) or not len(neg):
        return _LEAST_SLOPE, float(np.log(n[0] / n[1])) if n.all() else 0.0
    scores = np.concatenate([pos, neg])
    centre, unit = float(np.mean(scores)), float(np.std(scores))
    if unit <= _ROUNDING * float(np.abs(scores).max()):
        unit = 1.0
    s = (scores - centre) / unit
    kept = np.array([len(pos), len(neg)])
    goal = np.repeat([(n[0] + 1.0) / (n[0] + 2.0), 1.0 / (n[1] + 2.0)], kept)
    rate = np.repeat(n / n.sum() / kept, kept)
    a, b = 0.0, float(np.log(n[0] / n[1]))
    value = _loss(a * s + b, goal, rate)
    for _ in range(_PLATT_ROUNDS):
        p = expit(a * s + b)
        off, bend = rate * (p - goal), rate * p * (1.0 - p)
        gradient = np.array([off @ s, off.sum()])
        mixed = bend @ s
        hessian = np.array([[bend @ (s * s), mixed], [mixed, bend.sum()]])
        hessian[np.diag_indices(2)] += _PLATT_TINY
        step = -np.linalg.solve(hessian, gradient)
        descent, size = -float(gradient @ step), 1.0
        # Near the minimum, rounding hides the decrease.
        while descent > _NEAR and size > _PLATT_TINY:
            moved = _loss((a + size * step[0]) * s + b + size * step[1], goal, rate)
            if moved <= value - 1e-4 * size * descent:
                value = moved
                break
            size *= 0.5
        a, b = a + size * step[0], b + size * step[1]
        if descent <= _NEAR**2:
            break
    if a < _LEAST_SLOPE:
        a, b = _LEAST_SLOPE, float(np.log(n[0] / n[1]))
    a /= unit
    return float(a), float(b - a * centre)


def _loss(t: Float, goal: Float, rate: Float) -> float:
    """Return the cross-entropy of log-odds ``t``."""
    return float(rate @ (np.logaddexp(0.0, t) - goal * t))


Strategy = Literal["quantile", "uniform", "isotonic"]

_TINY = 1e-12  # probabilities are kept this far from 0 and 1 on the logit scale
_ROUNDS = 100


class CalibrationCurve(NamedTuple):
    """Mean probability and share of positives in each bin."""

    probability: NDArray[np.float64]
    observed: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rows: NDArray[np.float64]


class CalibrationLine(NamedTuple):
    """Logistic regression of the labels on the logit of the probabilities."""

    slope: Interval  # 1 is perfect; below 1, probabilities are too extreme
    intercept: Interval  # with slope 1: 0 is perfect; below 0, they are too high


class BrierScore(NamedTuple):
    """The mean squared error of probabilities, and its three parts.

    value = miscalibration - discrimination + uncertainty.
    """

    value: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def calibration_curve(
    y: ArrayLike,
    probability: ArrayLike,
    *,
    bins: int = 10,
    strategy: Strategy = "quantile",
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> CalibrationCurve:
    """Return the share of positives by probability, with intervals.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes, as for :func:`auc`.
    probability : array-like of shape (n_rows,)
        Probabilities of the positive class.
    bins : int, default=10
        Number of bins; ignored by "isotonic".
    strategy : {"quantile", "uniform", "isotonic"}, default="quantile"
        "quantile": bins with equally many rows. "uniform": bins of equal width.
        "isotonic": the bins of the increasing function that fits best, so nothing has
        to be chosen; its intervals are too narrow, as the bins are found on the rows.
        Rows with the same probability are in the same bin, and empty bins are left out.
    level : float, default=0.95
        Confidence level of Wilson's interval of each share.
    sample_weight : array-like of shape (n_rows,), optional
        Row weights; for the intervals, bins have their effective number of rows.
    pos_label : label, optional
        Positive class; by default the larger label.

    Returns
    -------
    CalibrationCurve
        Named tuple (probability, observed, low, high, rows) of arrays, one for each
        bin, increasing.

    Examples
    --------
    >>> from aucmax.metrics import calibration_curve
    >>> y, p = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.6, 0.6, 0.9, 0.9]
    >>> curve = calibration_curve(y, p, bins=2)
    >>> curve.probability.round(2).tolist(), curve.observed.tolist()
    ([0.15, 0.75], [0.25, 0.75])
    """
    check_level(level)
    p, pos, total = _by_probability(y, probability, sample_weight, pos_label)
    if strategy == "isotonic":
        fitted = _increasing(pos / total, total)
        place = np.cumsum(np.append(0, np.diff(fitted) > 0.0))
    else:
        place = _bins(p, total, bins, strategy)
    sums = np.array([np.bincount(place, x) for x in (total, pos, total * p)])
    kept = sums[0] > 0.0
    rows, hits, mean = sums[:, kept]
    counts = rows
    if sample_weight is not None:
        weight = np.asarray(sample_weight, np.float64)
        at = np.searchsorted(p, check_probabilities(probability)[weight > 0.0])
        share = weight[weight > 0.0] / weight.max()  # squares stay in the range
        squares = np.bincount(place[at], share**2, kept.size)
        counts = (rows / weight.max()) ** 2 / squares[kept]
    found = [
        wilson(float(min(share, 1.0)), float(count), level)
        for share, count in zip(hits / rows, counts, strict=True)
    ]
    values = np.array(found).T
    return CalibrationCurve(mean / rows, values[0], values[1], values[2], rows)


def calibration_line(
    y: ArrayLike,
    probability: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> CalibrationLine:
    r"""Return slope and intercept of calibration, with intervals.

    The slope b is that of the logistic regression :math:`\mathrm{logit}\, P(+) = a +
    b\, \mathrm{logit}\, p`; the intercept is a for b = 1, known as calibration in the
    large [1]_. Intervals are normal, from the Fisher information.

    Parameters
    ----------
    y, probability, sample_weight, pos_label
        As for :func:`calibration_curve`. Probabilities of 0 and 1 are moved by 1e-12.
        For the intervals the rows have their effective number.
    level : float, default=0.95
        Confidence level.

    Returns
    -------
    CalibrationLine
        Named tuple (slope, intercept) of intervals. If the probabilities separate the
        classes, the slope is infinite; if they are all equal, it is NaN. Its interval
        is then unbounded.

    References
    ----------
    .. [1] B. Van Calster et al.: Calibration: the Achilles heel of predictive
       analytics. BMC Medicine 17 (2019).

    Examples
    --------
    >>> from aucmax.metrics import calibration_line
    >>> y, p = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.6, 0.6, 0.9, 0.9]
    >>> line = calibration_line(y, p)
    >>> round(line.slope.value, 3), round(line.intercept.value, 3)
    (1.047, 0.34)
    """
    check_level(level)
    p, pos, total = _by_probability(y, probability, sample_weight, pos_label)
    if sample_weight is not None:
        weight = np.asarray(sample_weight, np.float64)
        size, whole = effective_number(weight, weight.size), float(total.sum())
        pos, total = size * (pos / whole), size * (total / whole)
    logit = _logit(p)
    design = np.column_stack([np.ones_like(logit), logit])
    z = normal_quantile(level)
    large = _logistic_fit(design[:, :1], logit, pos, total)
    intercept = _around(*large[0], z)
    limit = _infinite_slope(pos, total - pos)
    if limit is not None:
        return CalibrationLine(Interval(limit, -inf, inf), intercept)
    both = _logistic_fit(design, np.zeros_like(logit), pos, total)
    return CalibrationLine(_around(*both[1], z), intercept)


@nan_if_one_class
def brier_score(
    y: ArrayLike,
    probability: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> BrierScore:
    """Return the Brier score and its decomposition.

    The recalibrated probabilities are the best increasing function of the given ones
    (isotonic regression), so the parts need no bins and add up exactly [1]_:
    miscalibration is what recalibration would gain, discrimination what recalibrated
    probabilities gain over the share of positives, uncertainty the score of that share.

    Parameters
    ----------
    y, probability, sample_weight, pos_label
        As for :func:`calibration_curve`.

    Returns
    -------
    BrierScore
        Named tuple (value, miscalibration, discrimination, uncertainty).

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan: Stable reliability diagrams for
       probabilistic classifiers. PNAS 118 (2021).

    Examples
    --------
    >>> from aucmax.metrics import brier_score
    >>> y, p = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.6, 0.6, 0.9, 0.9]
    >>> score = brier_score(y, p)
    >>> [round(part, 3) for part in score]
    [0.155, 0.03, 0.125, 0.25]
    """
    p, pos, total = _by_probability(y, probability, sample_weight, pos_label)
    share = total / total.sum()
    observed = pos / total
    fitted = _increasing(observed, total)
    rate = float(share @ observed)
    uncertainty = rate * (1.0 - rate)

    def score(q: Weights) -> float:
        return float(share @ (observed * (1.0 - q) ** 2 + (1.0 - observed) * q**2))

    value, recalibrated = score(p), score(fitted)
    miscalibration, discrimination = value - recalibrated, uncertainty - recalibrated
    return BrierScore(value, miscalibration, discrimination, uncertainty)


@nan_if_one_class
def calibration_error(
    y: ArrayLike,
    probability: ArrayLike,
    *,
    bins: int = 10,
    strategy: Literal["quantile", "uniform"] = "quantile",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """Return the expected calibration error (ECE).

    The mean over the bins, weighted by their rows, of the absolute difference of mean
    probability and share of positives. It depends on the bins, and it is above zero for
    perfect probabilities too; :func:`brier_score` has a measure without bins.

    Parameters
    ----------
    y, probability, bins, strategy, sample_weight, pos_label
        As for :func:`calibration_curve`.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from aucmax.metrics import calibration_error
    >>> y, p = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.6, 0.6, 0.9, 0.9]
    >>> round(calibration_error(y, p, bins=2), 3)
    0.05
    """
    curve = calibration_curve(
        y,
        probability,
        bins=bins,
        strategy=strategy,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )
    gap = np.abs(curve.probability - curve.observed)
    return float(curve.rows @ gap / curve.rows.sum())


def check_probabilities(probability: ArrayLike) -> NDArray[np.float64]:
    """Return a list of probabilities as floats; raise an error outside [0, 1]."""
    p = as_numbers(probability, "probability")
    if p.ndim != 1:
        raise ValueError(
            f"probability has shape {p.shape}, but must have one number per row; pass "
            "one column, as in probability[:, 1]"
        )
    outside = ~((p >= 0.0) & (p <= 1.0))
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"probability is {p[row]} at row {row}: expected a number from 0 to "
            "1; scores have to be calibrated first, as by predict_proba"
        )
    return p


def _by_probability(
    y: ArrayLike, probability: ArrayLike, weight: ArrayLike | None, pos_label: object
) -> tuple[Weights, Weights, Weights]:
    """Return distinct probabilities, increasing, their positives, and their rows."""
    ranking = steps(y, check_probabilities(probability), weight, pos_label)
    p = ranking.thresholds[::-1].astype(np.float64)
    pos, neg = increments(ranking.tp)[::-1], increments(ranking.fp)[::-1]
    kept = pos + neg > 0.0  # lost in the sum of much larger weights
    return p[kept], pos[kept], (pos + neg)[kept]


def _bins(p: Weights, total: Weights, bins: int, strategy: str) -> NDArray[np.intp]:
    """Return the bin of each distinct probability."""
    if bins < 1:
        raise ValueError(f"bins={bins}: expected at least 1.")
    if strategy == "uniform":
        return np.minimum((p * bins).astype(np.intp), bins - 1)
    if strategy != "quantile":
        raise ValueError(
            f"strategy={strategy!r}: expected 'quantile', 'uniform' or 'isotonic'."
        )
    middle = (np.cumsum(total) - 0.5 * total) / total.sum()
    return np.minimum((middle * bins).astype(np.intp), bins - 1)


def _increasing(observed: Weights, total: Weights) -> Weights:
    """Return the increasing function nearest to the observed shares."""
    from scipy.optimize import isotonic_regression  # slow import

    return np.asarray(isotonic_regression(observed, weights=total).x)


def _logit(p: Weights) -> Weights:
    inside = np.clip(p, _TINY, 1.0 - _TINY)
    return np.log(inside) - np.log1p(-inside)


def _infinite_slope(pos: Weights, neg: Weights) -> float | None:
    """Return the slope of probabilities without a finite one: infinite, or NaN.

    ``pos`` and ``neg`` are the rows of both classes at increasing probabilities.
    """
    if pos.size == 1:
        return nan
    with_pos, with_neg = np.flatnonzero(pos > 0.0), np.flatnonzero(neg > 0.0)
    if with_neg[-1] <= with_pos[0]:
        return inf
    return -inf if with_pos[-1] <= with_neg[0] else None


def _logistic_fit(
    design: Weights, offset: Weights, pos: Weights, total: Weights
) -> list[tuple[float, float]]:
    """Return coefficients and standard errors by Newton's method."""
    from scipy.special import expit  # slow import

    beta = np.zeros(design.shape[1])
    information = np.eye(beta.size)
    for _ in range(_ROUNDS):
        q = expit(design @ beta + offset)
        information = design.T @ (design * (total * q * (1.0 - q))[:, None])
        step = np.linalg.lstsq(information, design.T @ (pos - total * q), rcond=None)[0]
        # Long steps overshoot where the classes are nearly separated.
        beta += step * min(1.0, 2.0 / (float(np.abs(step).max()) + 1e-300))
        if np.abs(step).max() < 1e-10:
            break
    variances = np.diag(np.linalg.pinv(information))
    return [(float(b), sqrt(v)) for b, v in zip(beta, variances, strict=True)]


def _around(value: float, se: float, z: float) -> Interval:
    return Interval(value, value - z * se, value + z * se)


class StabilityIndex(NamedTuple):
    """How far a sample of values has moved from another one."""

    value: float  # below 0.1: hardly; above 0.25: much
    edges: NDArray[np.float64]  # of the bins, without -inf and inf
    reference: NDArray[np.float64]  # share of the rows in each bin
    current: NDArray[np.float64]


def stability_index(
    reference: ArrayLike, current: ArrayLike, *, bins: int = 10
) -> StabilityIndex:
    r"""Return the population stability index (PSI) between two samples.

    .. math:: \sum_b (q_b - p_b) \log \frac{q_b}{p_b}

    over bins with about equally many rows of the reference. Half a row is added to each
    bin, so that an empty one does not make it infinite. Two samples of the same
    population have about :math:`(b - 1)(1/n + 1/n')` for b bins. By convention 0.1 is a
    moderate shift and 0.25 a large one.

    Parameters
    ----------
    reference, current : array-like of shape (n_rows,)
        Scores, or values of a column; NaN is a bin of its own.
    bins : int, default=10
        Number of bins.

    Returns
    -------
    StabilityIndex
        Named tuple (value, edges, reference, current); the last bin is NaN's.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax.metrics import stability_index
    >>> x = np.arange(1000.0)
    >>> moved = stability_index(x, x + 200)
    >>> round(stability_index(x, x).value, 3), round(moved.value, 2)
    (0.0, 1.27)
    """
    if bins < 2:
        raise ValueError(f"bins={bins}: expected at least 2.")
    old = as_numbers(reference, "reference").ravel()
    new = as_numbers(current, "current").ravel()
    for values, name in ((old, "reference"), (new, "current")):
        if not values.size:
            raise ValueError(f"{name} is empty")
    edges = quantile_edges(old, bins)
    counts = []
    for values in (old, new):
        missing = np.isnan(values)
        place = np.searchsorted(edges, values[~missing])
        known = np.bincount(place, minlength=edges.size + 1)
        counts.append(np.append(known, np.count_nonzero(missing)))
    p, q = map(_shares, counts)
    return StabilityIndex(stability_of_counts(*counts), edges, p, q)


def quantile_edges(values: NDArray[np.float64], bins: int = 10) -> NDArray[np.float64]:
    """Return the upper edges of bins with equally many rows, without the last one.

    If the largest value is as frequent as a bin, as in a column of zeros and many ones,
    it has a bin of its own.
    """
    whole = values[~np.isnan(values)]
    if not whole.size:
        return np.empty(0)
    places = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    edges = np.quantile(whole, places, method="inverted_cdf")
    largest = whole.max()
    below = whole[whole < largest]
    if edges[-1] == largest and below.size:
        edges = np.append(edges, below.max())
    found: NDArray[np.float64] = np.unique(edges[edges < largest])
    return found


def stability_of_counts(
    reference: NDArray[np.int64], current: NDArray[np.int64]
) -> float:
    """Return the population stability index of the rows in each bin."""
    p, q = _shares(reference), _shares(current)
    return float((q - p) @ np.log(q / p))


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of each bin; half a row is added to each."""
    more = counts.astype(np.float64) + 0.5
    return more / more.sum()


def expected_auc(
    probability: ArrayLike,
    *,
    reference: tuple[ArrayLike, ArrayLike] | None = None,
    level: float = 0.95,
) -> Interval:
    r"""Return the AUC that calibrated probabilities promise, without labels.

    If row i is positive with probability :math:`p_i`, independently of the others, then

    .. math:: E[A] \approx \frac{\sum_{i,j} p_i (1 - p_j) \left( 1[p_i > p_j]
              + \frac12 1[p_i = p_j] \right)}{\sum_i p_i \sum_j (1 - p_j)},
              \qquad i \ne j.

    The interval is for the AUC of these rows, once their labels are known. It includes
    the randomness of the labels only: it is as good as the probabilities, and says
    nothing if the relation of rows and labels has changed.

    Parameters
    ----------
    probability : array-like of shape (n_rows,)
        Calibrated probabilities of rows without labels.
    reference : (y, probability), optional
        Labels and probabilities of recent rows, not used for training, by which the
        calibration is tested. There is a warning if it is bad, or if nothing is given.
    level : float, default=0.95
        Confidence level.

    Returns
    -------
    Interval
        Named tuple (value, low, high).

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax.metrics import expected_auc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.5, 2.0, 5000)
    >>> value, low, high = expected_auc(p, reference=(rng.random(5000) < p, p))
    >>> print(f"{value:.3f} in [{low:.3f}, {high:.3f}]")
    0.851 in [0.840, 0.863]
    """
    check_level(level)
    p = np.sort(check_probabilities(probability))
    _warn_if_doubtful(reference)
    q = 1.0 - p
    own = p * q
    pairs = float(p.sum() * q.sum() - own.sum())
    if p.size < 2 or not pairs > 0.0:
        from sklearn.exceptions import UndefinedMetricWarning  # slow import

        message = "expected_auc is NaN: the probabilities are those of one class only"
        warnings.warn(message, UndefinedMetricWarning, stacklevel=2)
        return Interval(np.nan, np.nan, np.nan)
    first = np.searchsorted(p, p, side="left")
    after = np.searchsorted(p, p, side="right")
    negatives, positives = (np.append(0.0, np.cumsum(x)) for x in (q, p))
    below = 0.5 * (negatives[first] + negatives[after])  # negatives below each row
    above = positives[-1] - 0.5 * (positives[first] + positives[after])
    value = float(p @ below - 0.5 * own.sum()) / pairs
    # Change of the AUC if the label of a row changes from negative to positive.
    change = (below - value * q.sum() - above + value * p.sum()) / pairs
    half = normal_quantile(level) * sqrt(float(own @ change**2))
    return Interval(value, max(0.0, value - half), min(1.0, value + half))


def _warn_if_doubtful(reference: tuple[ArrayLike, ArrayLike] | None) -> None:
    """Warn if probabilities are not known to be calibrated."""
    if reference is None:
        message = (
            "expected_auc trusts the probabilities: pass reference=(y, probability) of "
            "recent labelled rows to test them"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
        return
    try:
        line = calibration_line(*reference, level=0.99)
    except OneClassError as error:
        message = f"expected_auc cannot test the calibration: {error}"
        warnings.warn(message, UserWarning, stacklevel=3)
        return
    inside = line.slope.low <= 1.0 <= line.slope.high
    if not (inside and line.intercept.low <= 0.0 <= line.intercept.high):
        odds = np.exp(line.intercept.value)
        message = (
            "expected_auc cannot be trusted: on the reference rows the calibration has "
            f"slope {line.slope.value:.2f} (1 is right) and intercept "
            f"{line.intercept.value:+.2f} (0 is right; the odds are off by a factor of "
            f"{odds:.2f}); calibrate the probabilities first"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
