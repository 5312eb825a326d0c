"""Base classes of online learners and of stochastic solvers."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context

from aucmax.base.class_moments import NOISE, noise
from aucmax.base.class_moments import ClassMoments as Tally
from aucmax.base.penalty import DEFAULT_L2
from aucmax.base.ranker import GRADIENT, LinearRanker, generator, midway, ridge_of
from aucmax.core.rows import Float, Rows, as_table, n_values
from aucmax.online.divergence import WIDEST, score_spread
from aucmax.online.engine import L2, SQ, W, visit
from aucmax.online.engine.known_moments import fit_table
from aucmax.storage.state_arrays import arrays, with_arrays

_PIECE = 1 << 16  # rows that get their order at a time: memory beside X stays small


_LARGEST_INTERCEPT = 1e12  # in units of scores: four of their digits are left


_MAX_RUN = 64  # rows next to each other in memory are visited together …


_MIN_RUNS = 1024  # … in so many groups at least


class DivergenceError(ValueError):
    """Steps were so large that the weights mean nothing any more."""


class OnlineAUC(LinearRanker):
    """Base of the learners that see one row at a time.

    A subclass gives the functions below, each a line or two that hands its
    hyper-parameters to the functions of its file.
    """

    l2: float | str
    precondition: bool
    max_iter: int
    shuffle: bool
    random_state: Any
    n_iter_: int

    # Whether the first pass of ``fit`` learns statistics row by row, as a stream does.
    _learns_in_fit: ClassVar[bool] = False
    # A deviation of scores that no learner of this loss needs.
    _widest: ClassVar[float] = WIDEST

    def _begin(self, rows: Rows, tally: Tally) -> Any:
        """Return the state before the first pass of ``fit``, statistics known."""
        state = self._fitted_to(self._start(self.n_features_in_), rows)
        fit_table(state.table, tally, self._penalty(), bool(self.precondition))
        return state

    def _penalty(self) -> L2:
        """Return the penalty as kernels take it."""
        l2 = getattr(self, "l2", 0.0)
        if not isinstance(l2, str):
            return L2(float(l2), 0.0)
        _refuse_printed(self)
        return L2(0.0, DEFAULT_L2)

    def _visit(self, rows: Rows, state: Any, learn: bool) -> Any:
        """Return how the kernel is to visit rows; ``learn`` their statistics too."""
        return visit(rows, state.table, learn, self.precondition, self._penalty())

    def _fitted_to(self, state: Any, rows: Rows) -> Any:
        """Return the state, stored as rows of this layout like it."""
        table = state.table
        return state._replace(table=table._replace(feat=as_table(table.feat, rows)))

    def _with_room(self, state: Any, rows: Rows, signed: Float) -> Any:
        """Return the state with room for these rows, if it keeps any."""
        return state

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Any
    ) -> None:
        """Take the state past the rows ``order``, visited as ``_visit`` says."""
        raise NotImplementedError

    def _again(self, state: Any) -> None:
        """Make the state ready for another pass over the same rows."""

    def _weights(self, state: Any) -> tuple[Float, float]:
        """Return the weights and the intercept."""
        raise NotImplementedError

    def _last(self, state: Any) -> tuple[Float, Float, int]:
        """Return the last iterate, and where the class sums of squares begin.

        Not the average: after a wild row, it scores such rows as it would have before.
        """
        return state.table.feat[W], state.table.feat, SQ

    def _class_weights(self, state: Any) -> Float:
        """Return the weight of the positives and of the negatives seen."""
        return state.table.n

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to ``X`` and binary ``y`` in ``max_iter`` passes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; float32 and CSR are used as they are.
        y : array-like of shape (n_samples,)
            Two classes; the larger label, ``classes_[1]``, is to come out on top.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a pair weighs the product. A row of weight zero is not
            there at all.

        Returns
        -------
        self
            The fitted estimator.
        """
        rows, signed, tally = self._tallied(X, y, sample_weight)
        rng = generator(self.random_state)
        state = self._with_room(self._begin(rows, tally), rows, signed)
        none_left_out = tally.rows.sum() == len(signed)
        for epoch in range(self.max_iter):
            how = self._visit(rows, state, self._learns_in_fit and epoch == 0)
            if epoch > 0:
                self._again(state)
            for order in visits(signed, rng if self.shuffle else None, none_left_out):
                self._update(rows, signed, order, state, how)
        self.n_iter_ = self.max_iter
        return self._finish(state)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from the rows of ``X``, once each, in the order given.

        However a stream is cut into chunks, the result is the same to the last bit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The next rows of the stream.
        y : array-like of shape (n_samples,)
            Their labels; one class alone is fine.
        classes : array-like of shape (2,), default=None
            The two labels, needed in the first call if ``y`` has only one of them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row of weight zero is not there at all.

        Returns
        -------
        self
            The estimator.
        """
        rows, signed = self._stream(X, y, classes, sample_weight)
        self._absorb(rows, signed)
        # To look at all features is not worth it after a few sparse rows.
        return self._finish(self.state_, look=n_values(rows) >= self.n_features_in_)

    def _absorb(self, rows: Rows, signed: Float) -> None:
        """Learn from validated rows, once each, in the order given.

        What comes of it is for ``_finish`` to say.
        """
        first = not self.resumable
        state = self._start(self.n_features_in_) if first else self.state_
        # An interrupt leaves a state that is whole, with some of the rows learnt.
        parts = arrays(state)
        state = with_arrays(
            state, {name: np.require(part, None, "W") for name, part in parts.items()}
        )
        state = self._fitted_to(state, rows)
        state = self._with_room(state, rows, signed)
        self.state_ = state
        how = self._visit(rows, state, learn=True)
        for order in visits(signed, None):
            self._update(rows, signed, order, state, how)
        self.n_iter_ = 1 if first else self.n_iter_

    def _deviation(self, state: Any) -> float:
        """Return the deviation of scores by the last iterate; O(d)."""
        return float(score_spread(*self._last(state), self._class_weights(state)))

    def _largest_column(self, state: Any, coef: Float) -> str:
        """Return the number, and the name, of the column with the most say."""
        _, table, squares = self._last(state)
        size = np.sqrt(table[squares : squares + 2].sum(axis=0))
        column = int(np.argmax(np.abs(coef) * size))
        names = getattr(self, "feature_names_in_", None)
        return f"{column}" if names is None else f"{column} ({names[column]!r})"

    def _finish(self, state: Any, look: bool = True) -> Self:
        self.state_ = state
        coef, intercept = self._weights(state)
        weights = self._class_weights(state)
        problem = ""
        if not np.isfinite(coef).all():
            problem = "its weights are not finite any more"
        elif look and weights.all():
            spread = self._deviation(state)
            if spread > self._widest:
                problem = (
                    f"scores deviate by {spread:.1g}, where margins of 1 would do, "
                    f"mostly by column {self._largest_column(state, coef)}"
                )
        if problem:
            raise DivergenceError(
                f"{type(self).__name__} has diverged: {problem}. Begin anew with "
                "smaller steps, such as the default ones, and without values far "
                "beyond all others of their column."
            )
        size = abs(intercept) / _LARGEST_INTERCEPT
        if size > 1.0 and size > self._deviation(state):  # O(d), hardly ever asked
            column = self._largest_column(state, coef)
            raise DivergenceError(
                f"{type(self).__name__} has diverged: its intercept, {intercept:.1g}, "
                f"leaves scores no digits, by column {column}. It has a value far "
                "beyond all others, such as a fill value for missing ones. Replace or "
                "drop such values and begin anew; AUCStream limits them."
            )
        self.coef_ = coef[np.newaxis]
        self.intercept_ = np.array([intercept])
        return self


class BatchAUC(LinearRanker):
    """Base of the solvers that go over all of the data until nothing changes."""

    l2: float | str
    max_iter: int
    tol: float | None
    random_state: Any
    n_iter_: int
    residual_: float

    def _ridge(self, tally: Tally) -> Float:
        """Return the penalty of every weight."""
        if isinstance(self.l2, str):
            _refuse_printed(self)
        return ridge_of(self.l2, tally)

    def _solve(
        self,
        X: Rows,
        y: Float,
        tally: Tally,
        tol: float,
        rng: np.random.RandomState,
    ) -> tuple[Float, int, float]:
        """Return the weights, the passes done, and the residual that is left."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to ``X`` and binary ``y`` in at most ``max_iter`` passes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; float32 and CSR are used as they are.
        y : array-like of shape (n_samples,)
            Two classes; the larger label, ``classes_[1]``, is to come out on top.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a pair weighs the product. A row of weight zero is not
            there at all.

        Returns
        -------
        self
            The fitted estimator.
        """
        rows, signed, tally = self._tallied(X, y, sample_weight)
        tol = _default_tol(tally) if self.tol is None else float(self.tol)
        w, self.n_iter_, self.residual_ = self._solve(
            rows, signed, tally, tol, generator(self.random_state)
        )
        if tol > 0.0:  # else all passes were asked for
            self._warn_above(tol, self.residual_, GRADIENT)
        self.coef_ = w[np.newaxis]
        self.intercept_ = np.array([midway(w, tally.mean)])
        return self


def _default_tol(tally: Tally) -> float:
    """Return where to stop: well past what matters, or at the noise if it is in sight.

    With more features than rows, the minimum fits the noise, and ranks worse.
    """
    if np.count_nonzero(tally.nonzero_share.any(axis=0)) <= tally.rows.sum():
        return 1e-4
    return min(NOISE * noise(tally), 0.5)


def _refuse_printed(estimator: Any) -> None:
    """Raise an error if the default penalty, which no paper has, is to be a paper's."""
    if getattr(estimator, "schedule", None) == "printed":
        raise ValueError(
            'schedule="printed" needs the penalty of the paper, a number: '
            f"{type(estimator).__name__}(l2=1e-4, …) in place of l2={estimator.l2!r}."
        )


def visits(
    y: Float, rng: np.random.RandomState | None, none_left_out: bool | None = None
) -> Iterator[NDArray[np.int64]]:
    """Yield the order of one pass, piece by piece; random if ``rng`` is given.

    A random row of a large X is a wait for memory, so neighbours are visited in short
    runs, the runs in random order. (Measured on four sets of 10⁵ to 4·10⁵ rows, as they
    come and sorted by class: AUC as with single rows, within 0.004.)
    """
    # A row of weight zero is not there; mostly there is none, as the caller may know.
    if none_left_out is None:
        none_left_out = bool(y.all())
    present = None if none_left_out else np.flatnonzero(y)
    n = len(y) if present is None else len(present)
    run = min(max(n // _MIN_RUNS, 1), _MAX_RUN)
    starts = np.arange(0, n, run)
    if rng is not None:
        rng.shuffle(starts)
    for piece in range(0, len(starts), _PIECE // run):
        some = starts[piece : piece + _PIECE // run]
        order = (some[:, np.newaxis] + np.arange(run)).ravel()
        if some.max() + run > n:  # the last run is shorter
            order = order[order < n]
        yield order if present is None else present[order]
