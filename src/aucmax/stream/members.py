"""Linear members of AUCStream, and limits for extreme values of their features.

One extreme value, such as a fill value of 1e36, would dominate the scale and the mean
of its feature for the rest of the stream. Each value is therefore clipped to 100 times
the largest absolute value that the feature had before. Clipped values raise the limit,
so a feature whose values become larger permanently is clipped in a few rows only.
"""

import re
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from aucmax.core.jit import kernel
from aucmax.core.products import times
from aucmax.core.rows import (
    Float,
    Rows,
    as_rows,
    entry,
    n_rows,
    n_values,
    rowwise,
    stored,
)
from aucmax.core.threads import one_thread
from aucmax.online.base import DivergenceError
from aucmax.online.oam import OAM
from aucmax.online.spam import SPAM

FACTOR = 100.0
FIRST_ROWS = 128.0  # rows at the start of the stream that are not limited


@rowwise
def _update_largest(X: Rows, i: int, free: bool, largest: Float) -> bool:
    """Update the largest values by row ``i``; return whether it exceeds a limit.

    Values beyond their limit are left out, unless the row is ``free`` of limits.
    """
    beyond = 0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        size, known = abs(x), largest[j]
        if size > known:
            if known > 0.0 and size > FACTOR * known and not free:
                beyond += 1
            else:
                largest[j] = size
    return beyond > 0


@kernel
def _first_beyond(X: Rows, start: int, n: int, free: int, largest: Float) -> int:
    """Return the first row from ``start`` that exceeds a limit, or ``n``.

    Rows before ``free`` have no limits.
    """
    for i in range(start, n):
        if _update_largest(X, i, i < free, largest):
            return i
    return n


def limit_values(X: Any, largest: Float, seen: float) -> Any:
    """Return rows with limited values, or ``X`` itself if no value exceeds its limit.

    ``seen`` is the number of earlier rows, and ``largest`` the largest absolute value
    of each feature in them; it is updated in place.
    """
    rows = as_rows(X)
    n, free = n_rows(rows), int(max(FIRST_ROWS - seen, 0.0))
    at, given = _first_beyond(rows, 0, n, free, largest), X
    while at < n:
        if X is given:
            X = X.copy()
            if sparse.issparse(X):
                X.sum_duplicates()
        if sparse.issparse(X):
            row = slice(X.indptr[at], X.indptr[at + 1])
            values, bound = X.data[row], largest[X.indices[row]]
        else:
            values, bound = X[at], largest.copy()
        bound = np.where(bound > 0.0, FACTOR * bound, np.inf)
        values[:] = np.clip(values, -bound, bound)
        rows = as_rows(X)
        at = _first_beyond(rows, at, n, at + 1, largest)
    return X


_CLASSES = [False, True]


class Member:
    """A linear learner that takes part in a race.

    Parameters
    ----------
    name : str
        Name on the leaderboard.
    learner : estimator
        A linear stream learner.
    forgetting_rate : float, default=1.0
        The member forgets as if so many times as many rows had passed.
    """

    def __init__(self, name: str, learner: Any, forgetting_rate: float = 1.0) -> None:
        self.name = name
        self.learner = learner
        self.forgetting_rate = forgetting_rate
        # Weights and intercept at the start of the block; empty in the first block.
        self.block_start = np.zeros(0)
        self._new_values = 0  # learnt since the weights were last computed

    def prepare(self, n_features: int) -> None:
        """Set the number of features before the first row."""
        self.learner.n_features_in_ = n_features
        self.learner.classes_ = np.array(_CLASSES)

    def score_and_learn(self, rows: Rows, signed: Float) -> Float:
        """Score rows by the weights at the start of the block, then learn them."""
        known = len(self.block_start) > 0
        scores = self._score(rows) if known else np.zeros(len(signed))
        self.learner.absorb_rows(rows, signed)
        self._new_values += n_values(rows) + 1
        return scores

    def start_block(self) -> None:
        """Take the present weights; raise a DivergenceError if they diverged."""
        self._update_weights()
        self.block_start = np.append(*self.weights())

    def weights(self) -> tuple[Float, float]:
        """Return the present weights and intercept.

        After divergence, those at the start of the block.
        """
        try:
            self._update_weights()
        except DivergenceError:
            if not len(self.block_start):
                raise
            return self.block_start[:-1], float(self.block_start[-1])
        return self.learner.coef_[0], float(self.learner.intercept_[0])

    def present_weights(self) -> tuple[Float, float]:
        """Return the present weights and intercept, and store nothing."""
        learner = self.learner
        if not self._new_values and "coef_" in vars(learner):
            return learner.coef_[0], float(learner.intercept_[0])
        if learner.resumable:
            check_all = self._new_values >= learner.n_features_in_
            with suppress(DivergenceError):
                return learner.checked_weights(learner.state_, check_all)
        return self.at_block_start(learner.n_features_in_)

    def at_block_start(self, n_features: int) -> tuple[Float, float]:
        """Return weights and intercept at the start of the block, at first zero."""
        start = self.block_start  # another thread may replace it
        if not len(start):
            return np.zeros(n_features), 0.0
        return start[:-1], float(start[-1])

    def fade(self, share: float) -> None:
        """Multiply the weight of all rows by ``share``, to the forgetting rate."""
        self.learner.fade(share**self.forgetting_rate)

    def resize(self, n_features: int) -> None:
        """Change the number of features; new features have weight zero."""
        self.weights()
        self.learner.resize(n_features)
        if len(self.block_start):
            w = resized(self.block_start[:-1], n_features)
            self.block_start = np.append(w, self.block_start[-1])

    def check(self, n_features: int) -> None:
        """Raise a ValueError if a restored member is inconsistent."""
        found = self.learner.n_features_in_
        if found != n_features:
            raise ValueError(f"{self.name} has {found} features, not {n_features}.")
        width = len(self.weights()[0])
        if self.block_start.ndim != 1 or len(self.block_start) not in (0, width + 1):
            raise ValueError(
                f"{self.name} has weights of shape {self.block_start.shape}, expected "
                f"({width + 1},)."
            )
        if not np.isfinite(self.block_start).all():
            raise ValueError(f"{self.name} has weights that are not finite.")

    def _update_weights(self) -> None:
        """Compute the weights from the learner's state, if it has changed."""
        if self._new_values:  # this costs O(d), and so does the check of all features
            check_all = self._new_values >= self.learner.n_features_in_
            self.learner.set_weights(self.learner.state_, check_all)
            self._new_values = 0

    def _score(self, rows: Rows) -> Float:
        with one_thread():  # members already run in threads
            return times(rows, self.block_start[:-1]) + self.block_start[-1]


def resized(w: Float, n_features: int) -> Float:
    """Return ``w`` with zeros appended, or cut, to ``n_features`` values."""
    out = np.zeros(n_features)
    kept = min(n_features, len(w))
    out[:kept] = w[:kept]
    return out


_FORGETTING_RATES = (4, 16)  # of the additional members with a half-life


def candidates(forgetful: bool) -> list[Member]:
    """Return all members before the race, cheapest first.

    docs/streams.md describes how they were chosen.
    """
    small = OAM(C=2.0, buffer_size=25)
    plain = OAM(C=5.0, average=False, buffer_size=10, precondition=False)  # for texts
    linear = (SPAM(), small, plain, OAM(C=6.0), OAM(C=60.0))
    members = [Member(_one_line(learner), learner) for learner in linear]
    if forgetful:  # it is not known how fast the stream will change
        for rate in _FORGETTING_RATES:
            name = f"{_one_line(OAM(C=6.0))}, forgets {rate} times as fast"
            members.append(Member(name, OAM(C=6.0), rate))
    return members


def _one_line(learner: Any) -> str:
    """Return the expression of a learner, without line breaks."""
    return re.sub(r"\s+", " ", repr(learner))
