"""Drift detection: compare the latest weights of a learner with its averaged weights.

In a stationary stream the average ranks better. If the latest weights rank better, the
stream changes. The gain in AUC is a weighted mean over blocks, with the weights and the
standard error of :mod:`aucmax.stream.race`.
"""

from typing import Any, NamedTuple

import numpy as np

from aucmax.core.products import times
from aucmax.core.rows import Float, Rows, n_rows
from aucmax.core.threads import one_thread
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning
from aucmax.online.engine.feature_table import W
from aucmax.stream.members import resized

_MIN_ROWS_PER_FEATURE = 10  # with fewer rows, averages are behind in any stream
_MIN_ERRORS, _MIN_GAIN = 3.0, 0.002  # standard errors and AUC of a reported gain
_HALF_LIVES = 16  # of the suggested half-life, in the rows so far


class Drift(NamedTuple):
    """AUC of the latest weights minus that of the averaged weights."""

    gain: float  # negative in a stationary stream
    se: float  # standard error of the gain
    found: bool  # whether the stream changes


class DriftMonitor:
    """Latest weights of a learner that averages, and their gain in AUC."""

    def __init__(
        self, learner: Any, w: Float | None = None, sums: Float | None = None
    ) -> None:
        self.learner = learner
        self.w = np.zeros(0) if w is None else w  # at the start of the block
        # (6,) Σu, Σu², Σug, Σu²g, Σu²g² for gains g and weights u; 1 after a warning
        self.sums = np.zeros(6) if sums is None else sums

    def score(self, rows: Rows) -> Float:
        """Return scores by the weights at the start of the block; zero in the first."""
        if not len(self.w):
            return np.zeros(n_rows(rows))
        with one_thread():
            return times(rows, self.w)

    def add_block(self, gain: float, weight: float) -> None:
        """Add the gain in AUC on a block; the first block is ignored."""
        if len(self.w):
            u = weight
            self.sums += u, u * u, u * gain, u * u * gain, (u * gain) ** 2, 0.0

    def start_block(self) -> None:
        """Take the latest weights."""
        self.w = self.learner.state_.table.feat[W].copy()

    def resize(self, n_features: int) -> None:
        """Change the number of features; new features have weight zero."""
        if len(self.w):
            self.w = resized(self.w, n_features)

    def estimate(self, rows: float, n_features: int) -> Drift:
        """Return the mean gain after so many rows."""
        u, uu, ug, uug, uugg, _ = self.sums.tolist()
        if not u * u > uu:  # fewer than two blocks
            return Drift(0.0, np.inf, False)
        gain, k = ug / u, u * u / uu
        squares = max(uugg - 2.0 * gain * uug + gain**2 * uu, 0.0)
        se = float(np.sqrt(squares * k / (k - 1.0)) / u)
        enough = rows > _MIN_ROWS_PER_FEATURE * n_features
        return Drift(gain, se, bool(enough and gain > max(_MIN_ERRORS * se, _MIN_GAIN)))

    def warn_once(self, rows: float, n_features: int) -> None:
        """Warn of drift, once per stream; refers to the caller of ``partial_fit``."""
        drift = self.estimate(rows, n_features)
        if drift.found and not self.sums[5]:
            self.sums[5] = 1.0
            half_life = _one_digit(int(rows) / _HALF_LIVES)
            warn_user(
                f"The stream changes: by row {int(rows):,}, the AUC of the latest "
                f"weights is {drift.gain:.3f} above that of the averaged weights. Set "
                f"half_life, for example half_life={half_life} rows.",
                DataWarning,
            )


def _one_digit(rows: float) -> int:
    """Round down to one significant digit."""
    size = 10 ** max(len(str(int(rows))) - 1, 0)
    return int(rows) // size * size
