"""Class-balanced sample of a stream, bounded in rows and in bytes.

Row i of weight w gets the priority w/u, where u is uniform in (0, 1) and depends only
on the random seed and on the row number. Of each class, the rows of highest priority
are kept. max(w, τ), where τ is the highest priority of a discarded row of the class, is
an unbiased estimate of the weight that a kept row represents: priority sampling [1]_.
The sample is thus uniform within a class, up to row weights, and these estimates undo
the balance of the classes. With a half-life, w doubles every ``half_life`` rows, and
recent rows are preferred. The sample does not depend on chunks: discarding rows early
keeps all rows that a later, smaller selection would keep.

.. [1] N. Duffield, C. Lund, M. Thorup, "Priority sampling for estimation of arbitrary
   subset sums", Journal of the ACM 54(6), 2007.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.row_hashes import split_mix
from aucmax.core.rows import Float

Arrays = dict[str, NDArray[Any]]

MAX_BYTES = 64 << 20  # of the kept rows
_SLACK = 4  # rows are discarded when there are 1/4 too many, to save time
_MAX = np.finfo(np.float32).max


class Sample(NamedTuple):
    """Kept rows, in the order of the stream."""

    rows: NDArray[np.float32]  # (n, d), relative to ``centre``
    positive: NDArray[np.bool_]
    weight: Float  # represented weight, with mean 1 in each class
    number: Float  # row number in the stream
    centre: Float  # (d,)


class Reservoir:
    """At most ``capacity`` rows, half of them of each class if there are enough.

    Rows are stored as float32 differences from the first row, which keeps the
    resolution of features with a large offset, such as timestamps.
    """

    def __init__(self, n_features: int, capacity: int, seed: int) -> None:
        self.seed = seed
        self.limit = capacity  # before the bound in bytes
        self.centre = np.zeros(0)  # (d,) the first row; empty before it
        self.floor = np.full(2, -np.inf)  # log τ of negatives and positives
        self._n = 0
        self._rows = np.zeros((0, n_features), np.float32)
        # Log priority, log weight, 1 if positive, row number.
        self._table = np.zeros((4, 0))

    @property
    def capacity(self) -> int:
        """Maximum number of rows; fewer than ``limit`` if rows are wide."""
        return max(min(self.limit, MAX_BYTES // (4 * self._rows.shape[1])), 2)

    @property
    def full(self) -> bool:
        """Whether rows have been discarded."""
        return bool((self.floor > -np.inf).any())

    def counts(self) -> NDArray[np.intp]:
        """Return the number of kept negatives and positives."""
        positives = int(self._table[2, : self._n].sum())
        return np.array([self._n - positives, positives])

    def add(self, X: Any, signed: Float, first: int, decay: float) -> None:
        """Offer rows; the first one has the number ``first`` in the stream.

        ``decay`` is the increase of the log weight per row.
        """
        numbers = np.arange(first, first + len(signed))
        log_weight = np.log(np.abs(signed)) + decay * numbers
        priority = log_weight - np.log(_uniform(self.seed, numbers))
        positive = signed > 0.0
        if not len(self.centre):
            self.centre = _dense(X[:1])[0].astype(np.float64)
        chosen = priority > self.floor[positive.astype(np.intp)]
        table = np.array([priority, log_weight, positive, numbers])
        # In portions, so that one large chunk takes no more memory than small ones.
        step, chosen = max(self.capacity // _SLACK, 64), np.flatnonzero(chosen)
        for start in range(0, len(chosen), step):
            portion = chosen[start : start + step]
            self._append(_dense(X[portion]), table[:, portion])
            if self._n >= self.capacity + step:
                self.prune()

    def _append(self, rows: Any, table: Float) -> None:
        end = self._n + len(rows)
        if end > len(self._rows):
            size = max(end, min(2 * end, self.capacity + self.capacity // _SLACK + 64))
            kept, known = self._rows, self._table
            self._rows = np.empty((size, kept.shape[1]), np.float32)
            self._table = np.empty((4, size))
            self._rows[: self._n] = kept[: self._n]
            self._table[:, : self._n] = known[:, : self._n]
        with np.errstate(over="ignore"):
            centred = np.clip(rows - self.centre, -_MAX, _MAX)
        self._rows[self._n : end] = centred
        self._table[:, self._n : end] = table
        self._n = end

    def prune(self) -> None:
        """Discard the rows beyond the capacity."""
        half, counts = self.capacity // 2, self.counts()
        if self._n <= self.capacity:
            return
        priority, _, positive, _ = self._table[:, : self._n]
        kept = np.ones(self._n, bool)
        for side in (0, 1):
            most = self.capacity - min(int(counts[1 - side]), half)
            members = np.flatnonzero(positive == side)
            if (excess := len(members) - most) > 0:
                values = priority[members]
                self.floor[side] = np.partition(values, excess - 1)[excess - 1]
                kept[members[values <= self.floor[side]]] = False
        self._n = int(kept.sum())
        self._rows[: self._n] = self._rows[: len(kept)][kept]
        self._table[:, : self._n] = self._table[:, : len(kept)][:, kept]

    def sample(self) -> Sample:
        """Return a copy of the kept rows, with their weights."""
        self.prune()
        _, log_weight, positive, number = self._table[:, : self._n]
        log_weight = np.maximum(log_weight, self.floor[positive.astype(np.intp)])
        weight = np.ones(self._n)
        for side in (positive > 0.0, positive == 0.0):  # a class may be long ago
            found = np.exp(log_weight[side] - log_weight[side].max(initial=-np.inf))
            weight[side] = found / max(found.sum(), 1.0) * len(found)
        return Sample(
            self._rows[: self._n].copy(),
            positive > 0.0,
            weight,
            number.copy(),
            self.centre.copy(),
        )

    def resize(self, n_features: int) -> None:
        """Change the number of features; new features have been zero so far."""
        kept = min(n_features, self._rows.shape[1])
        rows = np.zeros((self._n, n_features), np.float32)
        rows[:, :kept] = self._rows[: self._n, :kept]
        self._rows, self._table = rows, self._table[:, : self._n].copy()
        if len(self.centre):
            centre = np.zeros(n_features)
            centre[:kept] = self.centre[:kept]
            self.centre = centre

    def arrays(self) -> Arrays:
        """Return the arrays that a model file stores."""
        self.prune()
        return {
            "rows": self._rows[: self._n].copy(),
            "table": self._table[:, : self._n].copy(),
            "floor": np.maximum(self.floor, -_MAX),  # JSON-like readers reject -inf
            "centre": self.centre.copy(),
            "settings": np.array([self.limit, self.seed], np.float64),
        }

    @classmethod
    def restored(cls, arrays: Arrays, n_features: int) -> Self:
        """Return the reservoir of stored arrays; raise a ValueError if invalid."""
        rows, table, floor = arrays["rows"], arrays["table"], arrays["floor"]
        centre, settings = arrays["centre"], arrays["settings"]
        n = len(rows)
        shapes = [a.shape for a in (rows, table, floor, settings)]
        if shapes != [(n, n_features), (4, n), (2,), (2,)]:
            raise ValueError("the arrays of the reservoir do not match each other.")
        if centre.shape not in ((0,), (n_features,)) or (n and not len(centre)):
            raise ValueError(f"'centre' of the reservoir has shape {centre.shape}.")
        if rows.dtype != np.float32 or not all(
            np.isfinite(a).all() for a in (rows, table, floor, centre, settings)
        ):
            raise ValueError("the reservoir has values that are not finite float32.")
        in_range = (settings >= 0.0) & (settings < 2.0**31)
        if not np.isin(table[2], (0.0, 1.0)).all() or not in_range.all():
            raise ValueError("the reservoir has an invalid class, size or seed.")
        limit, seed = (int(value) for value in settings)
        found = cls(n_features, limit, seed)
        found._n, found._rows, found._table = n, rows.copy(), table.copy()
        found.centre = np.array(centre)
        found.floor = np.where(floor <= -_MAX, -np.inf, floor)
        return found


def _uniform(seed: int, numbers: NDArray[np.int64]) -> Float:
    """Return a number in (0, 1) for each row number."""
    start = split_mix(np.array([seed], np.uint64))
    bits = split_mix(numbers.astype(np.uint64) ^ start) >> np.uint64(11)
    return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-53)


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X
