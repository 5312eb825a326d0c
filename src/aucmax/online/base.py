"""Base classes of the online learners and of the solvers that make many passes."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from aucmax.base.class_moments import NOISE, ClassMoments, noise
from aucmax.base.constraints import NON_NEGATIVE
from aucmax.base.interfaces import PartialFit
from aucmax.base.penalty import DEFAULT_L2, ridge_of_square_loss
from aucmax.base.ranker import GRADIENT, LinearRanker, generator
from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Rows, as_table, n_values
from aucmax.online.engine import L2, visit, weights
from aucmax.online.engine.feature_table import SQ
from aucmax.online.engine.known_moments import fit_table
from aucmax.storage.state import arrays, with_arrays

# The losses aim at a margin of one. On the data sets of the tests and benchmarks the
# standard deviation is below ten, and 35 with raw features and constant steps.
WIDEST = 1e4


@kernel
def score_deviation(w: Float, table: Float, squares: int, n: Float) -> float:
    """Return the class-balanced deviation of w·x for uncorrelated features."""
    to_pos, to_neg = 0.5 / n[0], 0.5 / n[1]
    total = 0.0
    for j in range(w.shape[0]):
        if w[j] != 0.0:
            second = table[squares, j] * to_pos + table[squares + 1, j] * to_neg
            unit = w[j] * np.sqrt(second)
            total += unit * unit
    return np.sqrt(total)


_PIECE = 1 << 16  # rows ordered at a time, to limit memory
_LARGEST_INTERCEPT = 1e12  # relative to scores: four of their digits are left
_MAX_RUN = 64  # neighbouring rows that are visited together
_MIN_RUNS = 1024  # number of such runs at least

_ATTRIBUTES = """
Attributes
----------
.. shared: weights, intercept, classes, features, """


class DivergenceError(ValueError):
    """The weights have diverged: steps were too large."""


class OnlineAUC(PartialFit, LinearRanker):
    """Base of the learners that see one row at a time.

    A subclass defines ``_start``, ``_update`` and ``_weights``, which pass its
    parameters to the functions of its file, and overrides other hooks below if its
    state is not built on the engine's table.
    """

    l2: float | str = 0.0
    precondition: bool
    max_iter: int
    shuffle: bool
    random_state: Any
    n_iter_: int

    # Whether the first pass of ``fit`` learns statistics row by row, as a stream does.
    _learns_in_fit: ClassVar[bool] = False
    _sections: ClassVar[str] = _ATTRIBUTES + "state\n"
    # Standard deviation of scores above which a learner has diverged.
    _widest: ClassVar[float] = WIDEST

    def _begin(self, rows: Rows, moments: ClassMoments) -> Any:
        """Return the state before the first pass of ``fit``, statistics known."""
        state = self._in_layout(self._start(self.n_features_in_), rows)
        fit_table(state.table, moments, self._penalty(), bool(self.precondition))
        return state

    def _penalty(self) -> L2:
        """Return the penalty in the form that kernels take."""
        if not isinstance(self.l2, str):
            return L2(float(self.l2), 0.0)
        _refuse_printed(self)
        return L2(0.0, DEFAULT_L2)

    def _visit(self, rows: Rows, state: Any, learn: bool) -> Any:
        """Return how the kernel visits rows; ``learn`` their statistics too."""
        return visit(rows, state.table, learn, self.precondition, self._penalty())

    def _in_layout(self, state: Any, rows: Rows) -> Any:
        """Return the state with its table stored in the layout of these rows."""
        table = state.table
        return state._replace(table=table._replace(feat=as_table(table.feat, rows)))

    def _with_room(self, state: Any, rows: Rows, signed: Float) -> Any:
        """Return the state with room for these rows, if it stores rows."""
        return state

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Any
    ) -> None:
        """Update the state with the rows ``order``, visited as ``_visit`` says."""
        raise NotImplementedError

    def _again(self, rows: Rows, signed: Float, state: Any) -> None:
        """Prepare the state for another pass over the same rows."""

    def _weights(self, state: Any) -> tuple[Float, float]:
        """Return the weights and the intercept."""
        raise NotImplementedError

    def _last(self, state: Any) -> tuple[Float, Float, int]:
        """Return the last iterate, a table, and the slot of its class sums of squares.

        Not the average, which changes little after an outlier.
        """
        return weights(state.table), state.table.feat, SQ

    def _class_weights(self, state: Any) -> Float:
        """Return the weight of the positives and of the negatives seen."""
        return state.table.n

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows, signed, moments = self._rows_and_moments(X, y, sample_weight)
        state = self._with_room(self._begin(rows, moments), rows, signed)
        self._run(rows, signed, state, generator(self.random_state))
        self.n_iter_ = self.max_iter
        self.set_weights(state)

    def _run(
        self, rows: Rows, signed: Float, state: Any, rng: np.random.RandomState
    ) -> None:
        """Make the passes of ``fit``."""
        all_present = bool(signed.all())
        for epoch in range(self.max_iter):
            how = self._visit(rows, state, self._learns_in_fit and epoch == 0)
            if epoch > 0:
                self._again(rows, signed, state)
            for order in visits(signed, rng if self.shuffle else None, all_present):
                self._update(rows, signed, order, state, how)

    def _learn_rows(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        rows, signed = self._stream(X, y, classes, sample_weight)
        self.absorb_rows(rows, signed)
        # After a few sparse rows, checking all features is not worth its time.
        self.set_weights(self.state_, look=n_values(rows) >= self.n_features_in_)

    def absorb_rows(self, rows: Rows, signed: Float) -> None:
        """Update the state with validated rows; ``set_weights`` updates the weights."""
        first = not self.resumable
        state = self._start(self.n_features_in_) if first else self.state_
        # An interrupt leaves a valid state, with some of the rows learnt.
        parts = arrays(state)
        state = with_arrays(
            state, {name: np.require(part, None, "W") for name, part in parts.items()}
        )
        state = self._with_room(self._in_layout(state, rows), rows, signed)
        self.state_ = state
        how = self._visit(rows, state, learn=True)
        for order in visits(signed, None):
            self._update(rows, signed, order, state, how)
        self.n_iter_ = 1 if first else self.n_iter_

    def _deviation(self, state: Any) -> float:
        """Return the standard deviation of scores by the last iterate; O(d)."""
        return float(score_deviation(*self._last(state), self._class_weights(state)))

    def _largest_column(self, state: Any, coef: Float) -> str:
        """Return the index, and the name, of the column with the largest effect."""
        _, table, squares = self._last(state)
        size = np.sqrt(table[squares : squares + 2].sum(axis=0))
        column = int(np.argmax(np.abs(coef) * size))
        names = getattr(self, "feature_names_in_", None)
        return f"{column}" if names is None else f"{column} ({names[column]!r})"

    def set_weights(self, state: Any, look: bool = True) -> None:
        """Set the fitted attributes; raise an error if the weights have diverged."""
        self.state_ = state
        coef, intercept = self.checked_weights(state, look)
        self.coef_ = coef[np.newaxis]
        self.intercept_ = np.array([intercept])

    def checked_weights(self, state: Any, look: bool) -> tuple[Float, float]:
        """Return weights and intercept; raise an error if they have diverged."""
        name = type(self).__name__
        coef, intercept = self._weights(state)
        problem = ""
        if not np.isfinite(coef).all():
            problem = "weights are not finite"
        elif look and self._class_weights(state).all():
            deviation = self._deviation(state)
            if deviation > self._widest:
                problem = (
                    f"scores deviate by {deviation:.1g}, where margins are about 1, "
                    f"mainly by column {self._largest_column(state, coef)}"
                )
        if problem:
            raise DivergenceError(
                f"{name} has diverged: {problem}. Start again with smaller steps, such "
                "as the defaults, and remove or limit extreme values."
            )
        size = abs(intercept) / _LARGEST_INTERCEPT
        if size > 1.0 and size > self._deviation(state):  # O(d), but rarely reached
            raise DivergenceError(
                f"{name} has diverged: its intercept {intercept:.1g} leaves no digits "
                "for scores, mainly by column "
                f"{self._largest_column(state, coef)}, which has an extreme value, "
                "such as a missing-value marker. Replace or drop such values and start "
                "again, or use AUCStream, which limits them."
            )
        return coef, intercept


class BatchAUC(LinearRanker):
    """Base of the solvers that make passes over the data until they converge."""

    l2: float | str
    max_iter: int
    tol: float | None
    random_state: Any
    n_iter_: int
    residual_: float

    _sections: ClassVar[str] = _ATTRIBUTES + "residual\n"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearRanker._parameter_constraints,
        "tol": [NON_NEGATIVE, None],
    }

    def _ridge(self, moments: ClassMoments) -> Float:
        """Return the penalty of every weight."""
        if isinstance(self.l2, str):
            _refuse_printed(self)
        return ridge_of_square_loss(self.l2, moments)

    def _solve(
        self,
        X: Rows,
        y: Float,
        moments: ClassMoments,
        tol: float,
        rng: np.random.RandomState,
    ) -> tuple[Float, int, float]:
        """Return the weights, the number of passes, and the residual."""
        raise NotImplementedError

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows, signed, moments = self._rows_and_moments(X, y, sample_weight)
        tol = _default_tol(moments) if self.tol is None else float(self.tol)
        w, self.n_iter_, self.residual_ = self._solve(
            rows, signed, moments, tol, generator(self.random_state)
        )
        if tol > 0.0:  # else all passes were asked for
            self._warn_above(tol, self.residual_, GRADIENT)
        self._set_linear(w, moments.mean)


def _default_tol(moments: ClassMoments) -> float:
    """Return the tolerance: 1e-4, or the noise level if features outnumber rows.

    With more features than rows, the minimum fits the noise and ranks worse.
    """
    if np.count_nonzero(moments.nonzero_share.any(axis=0)) <= moments.rows.sum():
        return 1e-4
    return min(NOISE * noise(moments), 0.5)


def _refuse_printed(estimator: Any) -> None:
    """Raise an error if ``l2="auto"`` is combined with the steps of the paper."""
    if getattr(estimator, "schedule", None) == "printed":
        raise ValueError(
            f'{type(estimator).__name__}(schedule="printed") needs the penalty of the '
            f"paper, a number, such as l2=1e-4, not l2={estimator.l2!r}."
        )


def visits(
    y: Float, rng: np.random.RandomState | None, all_present: bool | None = None
) -> Iterator[NDArray[np.int64]]:
    """Yield the row order of one pass, piece by piece; random if ``rng`` is given.

    Random access to a large X waits for memory, so runs of neighbouring rows are
    shuffled, not rows. (On four sets of 10⁵ to 4·10⁵ rows, as they come and sorted by
    class, the AUC is that of single rows within 0.004.)
    """
    # Rows of weight zero are ignored; mostly there are none, as the caller may know.
    if all_present is None:
        all_present = bool(y.all())
    present = None if all_present else np.flatnonzero(y)
    n = len(y) if present is None else len(present)
    run = min(max(n // _MIN_RUNS, 1), _MAX_RUN)
    starts = np.arange(0, n, run)
    if rng is not None:
        rng.shuffle(starts)
    for piece in range(0, len(starts), _PIECE // run):
        first = starts[piece : piece + _PIECE // run]
        order = (first[:, np.newaxis] + np.arange(run)).ravel()
        if first.max() + run > n:  # the last run is shorter
            order = order[order < n]
        yield order if present is None else present[order]
