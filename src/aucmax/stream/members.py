"""Members of a race: learners, with their weights at the start of a block."""

from contextlib import suppress
from typing import Any

import numpy as np

from aucmax.core.products import times
from aucmax.core.rows import Float, Rows, n_values
from aucmax.core.threads import one_thread
from aucmax.online.base import DivergenceError

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
