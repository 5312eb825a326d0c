"""Monitoring of scores whose labels are not known yet."""

import warnings
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics.calibration import calibration_line, check_probabilities
from aucmax.metrics.inputs import OneClassError, as_numbers
from aucmax.metrics.intervals import Interval, normal_quantile
from aucmax.metrics.roc_steps import check_level


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
