"""AUC of more rows than fit in memory, in parts that can be merged."""

from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.core.validation import refuse_mask
from aucmax.metrics._ranking import as_scores, as_weights

_MANTISSA = 52  # bits of a float64


class AUCBounds(NamedTuple):
    """An AUC that is known up to an error."""

    value: float  # between the bounds
    low: float
    high: float


class StreamingAUC:
    """AUC of a stream of labelled scores, in bounded memory and in any order.

    Scores are rounded to buckets of relative width 2**-``bits``, and each bucket counts
    its positives and negatives. Pairs in different buckets are compared exactly; pairs
    in the same bucket are the only uncertainty, so the error is known: the true AUC is
    within :meth:`bounds`. Counts of two parts can be added (:meth:`merge`), as on a
    cluster.

    Parameters
    ----------
    bits : int, default=12
        Bits of precision, from 1 to 52. Scores within a factor of two fall into 2**bits
        buckets: 12 bits distinguish 0.9000 and 0.9002. Probabilities near 1 are finer
        as log-odds. Memory is at most 24 bytes for each bucket in use.

    Examples
    --------
    >>> from aucmax.metrics import StreamingAUC
    >>> day1 = StreamingAUC().update([0, 1, 0], [0.2, 0.9, 0.4])
    >>> day2 = StreamingAUC().update([1, 0], [0.3, 0.1])
    >>> day1.merge(day2).bounds()
    AUCBounds(value=0.8333333333333334, low=0.8333333333333334, high=0.8333333333333334)
    """

    def __init__(self, bits: int = 12) -> None:
        if not 1 <= bits <= _MANTISSA:
            raise ValueError(f"bits={bits}: expected an integer from 1 to 52.")
        self.bits = bits
        self._keys: NDArray[np.int64] = np.empty(0, np.int64)
        self._counts: NDArray[np.float64] = np.empty((0, 2))  # positives, negatives

    def update(
        self, y: ArrayLike, score: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "StreamingAUC":
        """Add rows; positives have y > 0.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Labels 0 and 1, -1 and 1, or booleans; one class alone is fine.
        score : array-like of shape (n_rows,)
            Scores; NaN is an error.
        sample_weight : array-like of shape (n_rows,), optional
            Row weights; weight k counts as k rows.

        Returns
        -------
        StreamingAUC
            This object.
        """
        refuse_mask(y, "y")
        labels = np.asarray(y)
        if labels.ndim != 1 or labels.dtype.kind not in "biuf":
            raise ValueError("y must be a list of numbers: 0 or -1, and 1")
        odd = ~np.isin(labels, (-1, 0, 1))
        if odd.any():
            row = int(np.argmax(odd))
            raise ValueError(f"y is {labels[row]} at row {row}: expected 0, -1 or 1")
        scores = as_scores(score, labels.size).astype(np.float64)
        weight = np.ones(labels.size)
        if sample_weight is not None:
            weight = as_weights(sample_weight, labels.size)
        keys, place = np.unique(self._buckets(scores), return_inverse=True)
        positive = labels > 0
        counts = [
            np.bincount(place, weight * side, keys.size)
            for side in (positive, ~positive)
        ]
        self._add(keys, np.stack(counts, axis=1))
        return self

    def merge(self, other: "StreamingAUC") -> "StreamingAUC":
        """Add the rows of another part of the stream.

        Parameters
        ----------
        other : StreamingAUC
            A part with the same ``bits``.

        Returns
        -------
        StreamingAUC
            This object.
        """
        if other.bits != self.bits:
            raise ValueError(
                f"the parts have {self.bits} and {other.bits} bits: give both the same"
            )
        self._add(other._keys, other._counts)
        return self

    def bounds(self) -> AUCBounds:
        """Return the AUC, and bounds that hold for certain (up to rounding).

        Returns
        -------
        AUCBounds
            Named tuple (value, low, high); the value counts pairs within a bucket half.
            NaN as long as one class is missing.
        """
        pos, neg = self._counts.T
        pairs = float(pos.sum() * neg.sum())
        if pairs == 0.0:
            return AUCBounds(nan, nan, nan)
        below = np.cumsum(neg) - neg
        wins, unknown = float(pos @ below), float(pos @ neg)
        value = (wins + 0.5 * unknown) / pairs
        return AUCBounds(value, wins / pairs, min(1.0, (wins + unknown) / pairs))

    def _buckets(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return integers in the order of the scores, equal within a bucket."""
        bits = (scores + 0.0).view(np.int64)  # -0.0 becomes 0.0
        ordered = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
        return ordered >> (_MANTISSA - self.bits)

    def _add(self, keys: NDArray[np.int64], counts: NDArray[np.float64]) -> None:
        merged, place = np.unique(
            np.concatenate([self._keys, keys]), return_inverse=True
        )
        total = np.zeros((merged.size, 2))
        total[place[: self._keys.size]] = self._counts
        total[place[self._keys.size :]] += counts
        self._keys, self._counts = merged, total
