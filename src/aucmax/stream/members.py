"""A learner that takes part in a race, and what it was when a block began."""

from typing import Any

import numpy as np

from aucmax.core.products import times
from aucmax.core.rows import Float, Rows, n_rows, n_values
from aucmax.core.threads import one_thread
from aucmax.online.base import DivergenceError
from aucmax.online.engine.feature_table import W

_CLASSES = [False, True]


class Member:
    """A linear learner of streams."""

    def __init__(self, name: str, learner: Any, haste: float = 1.0) -> None:
        self.name = name
        self.learner = learner
        self.haste = haste  # it forgets as if so many times as many rows had passed
        self.before = np.zeros(0)  # weights and intercept; none before the first block
        self._new = 0  # values learnt since the weights were taken

    def begin(self, n_features: int) -> None:
        """Get ready for rows of so many features."""
        self.learner.n_features_in_ = n_features
        self.learner.classes_ = np.array(_CLASSES)

    def step(self, X: Any, rows: Rows, signed: Float) -> Float:
        """Score rows as of the block's beginning, then learn them."""
        known = len(self.before) > 0
        scores = self._score(X, rows) if known else np.zeros(len(signed))
        self._learn(X, rows, signed)
        return scores

    def renew(self) -> None:
        """Begin a new block; raise an error if it has diverged."""
        self._look()
        self.before = np.append(*self.weights())

    def weights(self) -> tuple[Float, float]:
        """Return the weights and the intercept as they are now.

        If it has diverged, as they were when the block began.
        """
        try:
            self._look()
        except DivergenceError:
            if not len(self.before):
                raise
            return self.before[:-1], float(self.before[-1])
        return self.learner.coef_[0], float(self.learner.intercept_[0])

    def fade(self, share: float) -> None:
        """Let all rows so far count ``share`` of what they did, or less, by haste."""
        self.learner._fade(share**self.haste)

    def resize(self, n_features: int) -> None:
        """Take rows with more features, which do not matter, or fewer."""
        self.weights()
        self.learner._resize(n_features)
        if len(self.before):
            w = resized(self.before[:-1], n_features)
            self.before = np.append(w, self.before[-1])

    def check(self, n_features: int) -> None:
        """Raise an error if what is out of a file does not go together."""
        if self.learner.n_features_in_ != n_features:
            raise ValueError(f"{self.name} is of other features.")
        width = len(self.weights()[0])
        if len(self.before) not in (0, width + 1) or self.before.ndim != 1:
            raise ValueError(f"{self.name} has weights of other features.")
        if not np.isfinite(self.before).all():
            raise ValueError(f"{self.name} has weights that are not finite.")

    def _look(self) -> None:
        """Take the weights out of what was learnt, if there is more of it."""
        if self._new:  # to take them costs O(d), and to look at all features too
            look = self._new >= self.learner.n_features_in_
            self.learner._finish(self.learner.state_, look)
            self._new = 0

    def _score(self, X: Any, rows: Rows) -> Float:
        with one_thread():  # members have threads; to start more takes its time
            return times(rows, self.before[:-1]) + self.before[-1]

    def _learn(self, X: Any, rows: Rows, signed: Float) -> None:
        self.learner._absorb(rows, signed)
        self._new += n_values(rows) + 1


class LastIterate:
    """The weights of a learner as of its last step, where it reports their average."""

    def __init__(self, learner: Any, w: Float | None = None) -> None:
        self.learner = learner
        self.w = np.zeros(0) if w is None else w  # when the block began

    def score(self, rows: Rows) -> Float:
        """Return the scores of rows; zero before the first block."""
        if not len(self.w):
            return np.zeros(n_rows(rows))
        with one_thread():
            return times(rows, self.w)

    def renew(self) -> None:
        """Begin a new block."""
        self.w = self.learner.state_.table.feat[W].copy()

    def resize(self, n_features: int) -> None:
        """Take rows with more features, which do not matter, or fewer."""
        if len(self.w):
            self.w = resized(self.w, n_features)


def resized(w: Float, n_features: int) -> Float:
    """Return ``w`` for more features, which are zero, or fewer."""
    out = np.zeros(n_features)
    kept = min(n_features, len(w))
    out[:kept] = w[:kept]
    return out


class Mapped(Member):
    """A learner on the features of a map, which is settled by the first rows."""

    def begin(self, n_features: int) -> None:
        """Get ready for rows; a chain finds out by itself."""

    def renew(self) -> None:
        """Begin a new block; it has no scores while the map is not settled."""
        if hasattr(self.learner, "map_"):
            super().renew()

    def weights(self) -> tuple[Float, float]:
        """Return the weights of the features, and the intercept."""
        learner = self.learner._as_it_is()[1]
        return learner.coef_[0], float(learner.intercept_[0])

    def fade(self, share: float) -> None:
        """Let all rows so far count ``share`` of what they did, or less, by haste."""
        if hasattr(self.learner, "map_"):
            self.learner.learner_._fade(share**self.haste)

    def resize(self, n_features: int) -> None:
        """Take rows with more features, which do not matter, or fewer."""
        self.learner._resize(n_features)

    def _score(self, X: Any, rows: Rows) -> Float:
        return self.learner.map_.scores(X, self.before[:-1]) + self.before[-1]

    def _learn(self, X: Any, rows: Rows, signed: Float) -> None:
        self.learner.partial_fit(X, signed > 0.0, _CLASSES, np.abs(signed))
