"""AUCStream: a race of online learners, and boosted trees, in one pass over a stream.

Every learner scores each block of rows before it learns them, so the race
(:mod:`aucmax.stream.race`) needs no held-out rows. The model is a blend of the learners
that may be the best and of trees that are refitted to a sample of the stream
(:mod:`aucmax.stream.trees`). Its scores are calibrated log-odds
(:mod:`aucmax.stream.serving`).

Learners are independent of each other, and blocks end at fixed rows of the stream. The
result is therefore bit for bit the same for every division of the stream into chunks.
"""

from collections.abc import Callable
from copy import deepcopy
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_X_y, validate_data

from aucmax.base.interfaces import ScoreExpression
from aucmax.base.ranker import generator, same_classes
from aucmax.blend.table_input import label_task
from aucmax.core.rows import Float, Rows, as_rows, cut_rows, n_values
from aucmax.core.threads import in_threads
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import MATRIX, DataWarning, refuse_mask
from aucmax.online.base import DivergenceError, visits
from aucmax.stream.blocks import MAX_LENGTH, MIN_LENGTH, block_aucs, block_length
from aucmax.stream.drift import Drift
from aucmax.stream.leaderboard import StreamLeaderboardEntry, leaderboard
from aucmax.stream.members import limit_values
from aucmax.stream.serving import BlendedScore
from aucmax.stream.stream_state import Cached, StreamState
from aucmax.stream.table_chunks import (
    FIRST_ROWS,
    FirstRows,
    are_numbers,
    as_frame,
    as_table,
    check_rows,
    column_names,
    filled,
    fit_encoder,
    fit_to_first_rows,
    has_columns,
    is_numeric_frame,
    is_table,
    rows_of,
)
from aucmax.tables.labels import check_positive

_MIN_VALUES_FOR_THREADS = 20_000  # learning fewer values takes less than a thread
_MIN_SHARE = 2.0**-60  # of the weight that past rows keep after a block


class AUCStream(StreamState):
    """Classifier for streams that maximises AUC in one pass, with nothing to tune.

    It needs bounded memory and no feature scaling, and can be used at any time.

    >>> from sklearn.datasets import make_classification
    >>> from aucmax import AUCStream
    >>> X, y = make_classification(4000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> model = AUCStream(random_state=0)
    >>> for start in range(0, 3000, 500):
    ...     chunk = slice(start, start + 500)
    ...     _ = model.partial_fit(X[chunk], y[chunk], classes=[0, 1])
    >>> round(model.score(X[3000:], y[3000:]), 2)
    0.86

    Several linear learners with different losses and step sizes run side by side, and
    boosted trees are refitted to a sample of the rows as the stream grows. Each member
    is evaluated on rows that it has not learnt yet. The score is a blend of the members
    that may be the best. Members that cannot win are eliminated.

    Parameters
    ----------
    half_life : float or None, default=None
        Number of rows after which the weight of a row is halved, for streams that
        change. A rough value is enough: additional members forget 4 and 16 times as
        fast. No member is eliminated, since any can become the best later.
    nonlinear : bool, default=True
        Whether to add boosted trees (LightGBM). They start after 1000 rows with 20 of
        each class, for rows of up to 2000 features; a column of a table with more than
        50 categories counts as one if need be. With False, the model is linear and has
        ``coef_``.
    reservoir : int, default=30000
        Maximum number of rows that are kept for the trees, as float32; fewer if they
        would exceed 64 MB. Half of them are of each class if there are enough.
    tolerance : float, default=0.0005
        Smallest gain in AUC over a cheaper member that keeps a member in the race.
    shuffle : bool, default=True
        Whether ``fit`` visits the rows in random order.
    random_state : int, RandomState instance or None, default=None
        Random seed of the order of rows, of the kept rows and of the trees.

    Attributes
    ----------
    leaderboard_ : list of StreamLeaderboardEntry
        The blend, then the members, leader first: rows evaluated, progressive AUC and
        its standard error, gap to the leader on the same rows, weight in the blend, and
        whether the member is running. Eliminated members keep their last results. The
        trees are evaluated from their first refit on; see :doc:`Streams </streams>`.
    members_ : dict
        The running linear learners, by name.
    refits_ : tuple of int
        Number of refits of the trees, and the row at which the last one started.
    drift_ : Drift
        Whether the stream changes: AUC of SPAM's latest weights minus that of its
        averaged weights, the standard error, and whether this means drift. In a
        stationary stream the averaged weights are better. If drift is found, a warning
        suggests a ``half_life``.
    coef_ : ndarray of shape (1, n_features)
        Weights of the features, if the trees have no weight in the blend.
    intercept_ : ndarray of shape (1,)
        Intercept; a score of zero means a probability of 0.5.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names, if X was a data frame.
    n_iter_ : int
        Number of passes over the data: 1.

    See Also
    --------
    OAM, SPAM : The learners.
    BAMCV : Trains on all rows at once, in memory.

    Notes
    -----
    The time per row is that of the running members. Memory is about forty numbers per
    feature, plus the rows in the learners' buffers and in the reservoir. Trees are
    refitted in a second thread whenever the rows have grown by half (doubled, once the
    reservoir is full); the result does not depend on the timing.

    Threads: ``decision_function``, ``predict``, ``predict_proba`` and
    ``blended_score`` may be called in any threads while one thread learns. They store
    nothing that is learnt from, and use the scores at the start of the block until the
    call of ``partial_fit`` ends. Call everything else, such as ``save`` or
    ``leaderboard_``, while no thread learns.

    Standard errors assume that blocks of rows are independent given the rows before
    them (progressive validation). :mod:`aucmax.stream.race` has the formulas and the
    error rate of eliminations.

    References
    ----------
    .. [1] A. Blum, A. Kalai, J. Langford, "Beating the hold-out: bounds for k-fold and
       progressive cross-validation", COLT 1999.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "half_life": [Interval(Real, 0, None, closed="neither"), None],
        "nonlinear": ["boolean"],
        "reservoir": [Interval(Integral, 100, None, closed="left")],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        half_life: float | None = None,
        *,
        nonlinear: bool = True,
        reservoir: int = 30_000,
        tolerance: float = 0.0005,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.half_life = half_life
        self.nonlinear = nonlinear
        self.reservoir = reservoir
        self.tolerance = tolerance
        self.shuffle = shuffle
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn all rows in one pass.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; float32 and CSR are used without conversion.
        y : array-like of shape (n_samples,)
            Labels of two classes; the larger label, ``classes_[1]``, is positive.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights. Rows of weight zero are ignored.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._category = self._first = self._fill = self.recipe_ = None
        self.encoder_ = fit_encoder(X) if is_table(X) else None
        X = self._encoded(X)
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._describe_table()
        self._require_both(signed)
        check_positive(self.classes_, float(np.mean(signed > 0.0)))
        rng = generator(self.random_state)
        self._start(rng.randint(2**31 - 1))
        if not self.shuffle:
            self._learn(rows, signed)
            return self.finish()
        for order in visits(signed, rng, True):
            for start in range(0, len(order), MAX_LENGTH):
                chunk = order[start : start + MAX_LENGTH]
                self._learn(rows[chunk], signed[chunk])
        return self.finish()

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the next rows of a stream, once each, in the given order.

        The division of a stream into chunks does not change the result. The encoder of
        tables is fitted to their first 1000 rows (with weight), whatever the chunks;
        with fewer rows, scores are those of a model of the rows so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), data frame, \
                or list of dict
            Next rows of the stream. Data frames and dictionaries may have categories,
            dates and missing values.
        y : array-like of shape (n_samples,)
            Labels; a chunk may have one class only.
        classes : array-like of shape (2,), default=None
            The two labels; required in the first call if ``y`` has only one of them.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights. Rows of weight zero are ignored.

        Returns
        -------
        self
            The estimator.
        """
        first = "_race" not in vars(self)
        if first and (self._first is not None or has_columns(X)):
            return self._keep(X, y, classes, sample_weight)
        X = self._encoded(X)
        rows, signed = self._rows(X, y, sample_weight, reset=first, classes=classes)
        if first:
            check_positive(self.classes_, 0.0)  # class shares are not known yet
            self._start(generator(self.random_state).randint(2**31 - 1))
        elif classes is not None:
            same_classes(self.classes_, classes)
        return self._learn(rows, signed)

    def _keep(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        """Keep rows of tables; learn them if there are enough to fit the encoder."""
        if not has_columns(X):
            raise ValueError(
                f"X is {type(X).__name__}, but this stream began with tables: pass a "
                f"data frame or a list of dictionaries in its first {FIRST_ROWS:,} "
                "rows."
            )
        refuse_mask(y, "y")
        first, kept = self._first is None, self._first or FirstRows.of(X)
        _, labels = check_X_y(np.zeros((len(X), 1)), y)
        if is_numeric_frame(X) and (first or kept.numeric):
            validate_data(self, X, skip_check_array=True, reset=first)
        signed = self._signed(labels, sample_weight, first, classes)
        if first:
            check_positive(self.classes_, 0.0)  # class shares are not known yet
            seed = int(generator(self.random_state).randint(2**31 - 1))
            kept, self._cached = kept._replace(seed=seed), Cached()
        elif classes is not None:
            same_classes(self.classes_, classes)
        # Later rows must not change the types of the first ones.
        some = np.flatnonzero(signed)[: FIRST_ROWS - len(kept.signed)]
        full = len(kept.signed) + len(some) == FIRST_ROWS
        stop = int(some[-1]) + 1 if full else len(labels)
        table = as_table(rows_of(X, 0, stop), kept.names)
        if absent := sorted({*kept.names} - {*table.column_names}):
            raise ValueError(
                f"data frame has no column {absent[0]!r}, which the rows before have."
            )
        if kept.numeric is not None and not are_numbers(table):
            raise ValueError("X must have numbers only, as the rows before.")
        check_rows(table, signed[:stop] != 0.0)
        kept = kept.added(table.take(some), signed[some])
        self.n_features_in_ = len(kept.names)  # until the encoder is fitted
        if full:
            rest = rows_of(X, stop), labels[stop:], np.abs(signed[stop:])
            self._learn_first(kept, rest if stop < len(labels) else None, warn=True)
        else:
            self._first = kept
        return self

    def _learn_first(
        self, kept: FirstRows, rest: Any = None, warn: bool = False
    ) -> None:
        """Fit the encoder to the first rows of tables; learn them, then the rest."""
        rows = kept.numbers()
        rows = None if rows is None or np.isnan(rows).any() else rows
        self.encoder_ = self.recipe_ = None
        self._fill = None if rows is None else np.median(np.float64(rows), axis=0)
        if rows is None:
            table, numeric = kept.table(), kept.numeric is not None
            self.encoder_ = fit_to_first_rows(table, numeric, warn)
            self._describe_table()
            rows = self.encoder_.transform(table, warn_unknown=False)
            rows = validate_data(self, rows, reset=True, **MATRIX)
        self.n_features_in_ = int(rows.shape[1])
        parts = [(rows, kept.signed)]
        if rest is not None:
            X, y, weight = rest
            parts.append(self._rows(self._encoded(X), y, weight, reset=False))
        self._start(kept.seed)
        try:
            for rows, signed in parts:
                self._learn(rows, signed)
        finally:
            self._first = None

    def _now(self) -> Self:
        """Return this model or, before the encoder is fitted, one of the kept rows."""
        kept = self._first
        if kept is None:
            return self
        cached = self._cached
        known = cached.preview
        if known is None or known[0] is not kept:
            known = cached.preview = self._with_preview(kept, known and known[2])
        model: Self = known[1]
        return model

    def _with_preview(
        self, kept: FirstRows, base: Self | None
    ) -> tuple[FirstRows, Self, Self]:
        """Return kept rows, a model of them, and one of all but the last few rows.

        The latter serves for ``MIN_LENGTH`` rows: ends of blocks take time.
        """
        n = len(kept.signed)
        if not n:
            raise NotFittedError("No row with a weight above zero was learnt yet.")
        start = n - n % MIN_LENGTH or n
        if base is None or base._race.n_rows + base._n_pending != start:
            base = type(self)(**self.get_params(deep=False))
            names = ("classes_", "feature_names_in_")
            base.__dict__ |= {k: v for k, v in vars(self).items() if k in names}
            base._learn_first(kept.part(0, start))
        model = base
        if start < n:
            model, rest = deepcopy(base), kept.part(start, n)
            if model.encoder_ is None:
                found = rest.numbers()
                rows = np.where(np.isnan(found), model._fill, found)
            else:
                rows = model.encoder_.transform(rest.table(), warn_unknown=False)
            model._learn(rows, rest.signed)
        return kept, model, base

    def _encoded(self, X: Any) -> Any:
        """Return a table as numeric rows, and anything else unchanged."""
        rows = self._as_frame(X)
        if self.encoder_ is None or not hasattr(rows, "columns"):
            return rows
        known = self.encoder_.schema.columns
        if new := [n for n in column_names(rows) if n not in known]:
            warn_user(
                f"Columns that the first rows of the stream lack are not used: "
                f"{', '.join(map(repr, new))}.",
                DataWarning,
            )
        return self.encoder_.transform(rows, warn_unknown=False)

    def set_categories(self, category: NDArray[np.int64]) -> None:
        """Set which features are the one-hot features of a categorical column.

        In rows of more than 2000 features, trees take a column with many categories as
        one column. A data frame needs no call: its columns are known.

        Parameters
        ----------
        category : ndarray of shape (n_features,)
            Number of the column of each one-hot feature; -1 for other features.
        """
        if "_race" in vars(self) or self._first is not None:
            raise ValueError("set_categories must be called before the first row.")
        self._category = np.asarray(category)

    def _as_frame(self, X: Any) -> Any:
        if self._fill is not None:
            return filled(X, self._fill)
        if self.encoder_ is None:
            return X
        return as_frame(X, list(self.encoder_.schema.columns))

    def _describe_table(self) -> None:
        """Store how tables are encoded, for model files."""
        if self.encoder_ is not None:
            reading = {"format": "parquet", **self.encoder_.to_json()}
            self.recipe_ = {"input": reading, "task": label_task(self.classes_)}

    def decision_function(self, X: ArrayLike) -> Float:
        """Return the score of each row, as calibrated log-odds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), data frame, \
                or list of dict
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores; a score above zero means a probability of ``classes_[1]`` above 0.5.
        """
        now = self._now()
        if now is not self:
            return now.decision_function(X)
        return super().decision_function(self._as_frame(X))

    def predict_proba(self, X: ArrayLike) -> Float:
        """Return calibrated class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities of ``classes_[0]`` and ``classes_[1]``, calibrated by Platt's
            method on scores of recent rows from before they were learnt.
        """
        score = self.decision_function(X)
        return np.column_stack([expit(-score), expit(score)])

    def save(self, path: str | Path) -> None:
        """Write the model to ``path``; see :func:`aucmax.load`.

        The file has the whole state, so that a loaded model continues training as if it
        had never been saved. The file is written completely or not at all. Do not call
        this while another thread learns.
        """
        if self._first is not None:
            self.recipe_ = self._now().recipe_
        super().save(path)

    @property
    def row_width(self) -> int:
        """Number of features of a row that a reader of files makes."""
        return self._now().n_features_in_

    @property
    def leaderboard_(self) -> list[StreamLeaderboardEntry]:
        """Results of the members, leader first."""
        now = self._now()
        names = [member.name for member in now._all_members]
        weights = now._served.weights
        share = 0.0 if now._trees is None else float(weights[-1])
        return leaderboard(names, now._race, now._blend, now._trees, share)

    @property
    def members_(self) -> dict[str, Any]:
        """The running linear learners, by name."""
        running = self._now()._running()
        for member in running:
            member.weights()
        return {member.name: member.learner for member in running}

    @property
    def drift_(self) -> Drift:
        """Gain in AUC of the latest weights over the averaged ones."""
        now = self._now()
        return now._drift.estimate(now._race.n_rows, now.n_features_in_)

    @property
    def refits_(self) -> tuple[int, int]:
        """Number of refits of the trees, and rows of the stream at the last start."""
        trees = self._now()._trees
        return (0, 0) if trees is None else (trees.refits, int(trees.last_refit))

    @property
    def coef_(self) -> Float:
        """Weights of the features, if the score is linear."""
        score = self.blended_score()
        if not score.linear:
            raise AttributeError(
                "coef_ is not available: a nonlinear member has a weight in the blend. "
                "Use nonlinear=False for a linear model."
            )
        return score.w[np.newaxis].copy()

    @property
    def intercept_(self) -> Float:
        """Intercept; a score of zero means a probability of 0.5."""
        return np.array([self.blended_score().intercept])

    def _learn(self, X: Any, signed: Float) -> Self:
        """Learn validated rows; blocks may begin and end anywhere in them."""
        with self._changing():
            X = limit_values(X, self._largest, self._race.n_rows + self._n_pending)
            rows, start = as_rows(X), 0
            while start < len(signed):
                length = self._block_length()
                stop = min(start + length - self._n_pending, len(signed))
                piece = X[start:stop] if self._uses_matrix else X  # copies sparse rows
                some = cut_rows(rows, start, stop)
                self._learn_piece(piece, some, signed[start:stop])
                if self._n_pending == length:
                    self._end_block()
                start = stop
        return self

    def _block_length(self) -> int:
        """Return the length of the unfinished block."""
        rows, n_features = self._race.n_rows, self.n_features_in_
        length = block_length(rows, self.half_life, n_features)
        return max(length, self._n_pending + 1)  # half_life or n_features may change

    def _learn_piece(self, X: Any, rows: Rows, signed: Float) -> None:
        """Let all running members score rows, then learn them."""
        running, count = self._running(), len(self._all_members)
        scores = np.zeros((self._n_scores + 1, len(signed)))
        scores[-1] = self._drift.score(rows)
        if self._trees is not None:
            first = int(self._race.n_rows) + self._n_pending
            scores[-2] = self._trees.score_and_learn(X, signed, first)
        threads = len(running) > 1 and n_values(rows) > _MIN_VALUES_FOR_THREADS
        found = (in_threads if threads else map)(
            lambda member: member.score_and_learn(rows, signed), running
        )
        scores[:count][self._race.running] = list(found)
        self._pending.append((scores, signed))
        self._n_pending += len(signed)

    def _end_block(self) -> None:
        """Evaluate the members on a finished block, and eliminate losers."""
        race, (scores, signed) = self._race, self._unfinished_block()
        self._pending, self._n_pending = [], 0
        scores, latest = scores[:-1], scores[-1]
        linear, served = scores[: len(self._all_members)], self._served.blended(scores)
        found, information = block_aucs(
            np.vstack([linear[race.running], latest, served]), signed
        )
        self._compare_trees(scores, signed)
        if race.n_rows > 0.0:  # in the first block all scores are zero
            self._served.add_block(scores, signed)
        self._served.add_classes(signed, race.n_rows + len(signed))
        aucs = np.full(len(linear), 0.5)
        aucs[race.running] = found[:-2]
        weight = race.add_block(aucs, information, len(signed))
        self._blend.add_block(found[-1:], information, len(signed))
        self._drift.add_block(found[-2] - aucs[0], weight)
        if self.half_life is not None:
            share = max(0.5 ** (len(signed) / self.half_life), _MIN_SHARE)
            race.fade(share)
            self._blend.fade(share)
            self._served.fade(share)
            for member in self._running():
                member.fade(share)
        else:
            checks = race.at[1]
            for k in race.losers(self.tolerance):
                race.eliminate(int(k))
            if race.at[1] > checks:
                self._drift.warn_once(race.n_rows, self.n_features_in_)
        for k in np.flatnonzero(race.running):
            try:
                self._all_members[k].start_block()
            except DivergenceError:
                if race.runs.sum() == 1.0:
                    raise
                race.eliminate(int(k))
        self._drift.start_block()
        if self._trees is None:
            self._served.set_weights(race.weights())
        else:
            self._trees.end_block(race.n_rows, len(signed), self.tolerance)
            self._served.set_share_of_last(race.weights(), self._trees.share)
        self._publish()

    def _compare_trees(self, scores: Float, signed: Float) -> None:
        """Compare the trees with the linear members on a finished block."""
        if self._trees is not None:
            scaled = scores / self._served.scale[:, np.newaxis]
            self._trees.add_block(
                self._race.weights() @ scaled[:-1], scaled[-1], signed
            )

    def finish(self) -> Self:
        """End a stream: refit the trees to all rows so far.

        ``fit`` and ``aucmax train`` do this at the end. Training can continue.
        """
        if self._first is None and self._trees is not None:
            with self._changing():
                self._trees.finish(self._race.n_rows + self._n_pending)
                self._publish()
        return self

    @property
    def progressive_auc(self) -> tuple[float, float]:
        """Weight of correctly ordered pairs of rows, and of all pairs.

        Every row is scored by the model at the start of its block, before it is learnt.
        Scores of all blocks are compared, by a histogram.
        """
        return self._now()._served.progressive_auc()

    def blended_score(self) -> BlendedScore:
        """Return the present score, which later training does not change.

        While another thread learns, it is the score at the start of the block.
        """
        if (now := self._now()) is not self:
            return now.blended_score()
        changes, last = self._changes, self._cached.score
        if last is not None and last[0] == changes:
            return last[1]
        if changes % 2 == 0:
            score = BlendedScore.of(self._present, True)
            if self._changes == changes:  # else rows were learnt meanwhile
                self._cached.score = changes, score
                return score
        return BlendedScore.of(self._present, False)

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        return self.blended_score().score(X)

    def expression(self) -> ScoreExpression | None:
        """Return the score as a linear expression; None with nonlinear members."""
        score = self.blended_score()
        return ScoreExpression(score.intercept, score.w) if score.linear else None

    # The rest of the interface of stream learners, see aucmax.base.interfaces.

    @property
    def resumable(self) -> bool:
        """True: ``partial_fit`` always continues from the present state."""
        return True

    @property
    def grows_quadratically(self) -> bool:
        """False: memory is proportional to the number of features."""
        return False

    def scorer(self) -> Callable[[Any], Float] | None:
        """Return a function that scores rows by the present model, also later."""
        return self.blended_score().score

    def fade(self, share: float) -> None:
        """Not supported; use the parameter ``half_life``."""
        raise NotImplementedError("AUCStream does not support fade; set half_life.")
