"""AUCStream: a race of online learners in one pass over a stream.

Every learner scores each block of rows before it learns them, so the race
(:mod:`aucmax.stream.race`) needs no held-out rows. The model is a blend of the learners
that may be the best. Its scores are calibrated log-odds
(:mod:`aucmax.stream.serving`).

Learners are independent of each other, and blocks end at fixed rows of the stream. The
result is therefore bit for bit the same for every division of the stream into chunks.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from aucmax.base.expression import ScoreExpression
from aucmax.base.ranker import Ranker, generator, same_classes
from aucmax.core.rows import Float, Rows, as_rows, cut_rows, n_values
from aucmax.core.threads import in_threads
from aucmax.online.base import DivergenceError, visits
from aucmax.storage.estimator import below, restore
from aucmax.storage.storable import Spec, State, check_arrays
from aucmax.stream.blended_score import BlendedScore
from aucmax.stream.blocks import MAX_LENGTH, block_aucs, block_length
from aucmax.stream.candidates import candidates as _candidates
from aucmax.stream.drift import Drift, DriftMonitor
from aucmax.stream.leaderboard import StreamLeaderboardEntry, leaderboard
from aucmax.stream.limits import limit_values
from aucmax.stream.members import Member, resized
from aucmax.stream.race import Race
from aucmax.stream.serving import ServedScores
from aucmax.stream.stored_arrays import checked_arrays
from aucmax.tables.positive_class import check_positive

_MIN_VALUES_FOR_THREADS = 20_000  # learning fewer values takes less than a thread
_ANY = Spec(finite=False)  # checked by checked_arrays


Standing = StreamLeaderboardEntry  # the name in version 0.1.0


class AUCStream(Ranker):
    """Classifier for streams that maximises AUC in one pass, with nothing to tune.

    It needs constant memory and no feature scaling, and can be used at any time.

    >>> from sklearn.datasets import make_classification
    >>> from aucmax import AUCStream
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> model = AUCStream(random_state=0)
    >>> for start in range(0, 2000, 500):
    ...     chunk = slice(start, start + 500)
    ...     _ = model.partial_fit(X[chunk], y[chunk], classes=[0, 1])
    >>> round(model.score(X, y), 2)
    0.92

    Several learners with different losses and step sizes run side by side. Each is
    evaluated on rows that it has not learnt yet. The score is a blend of the learners
    that may be the best. Learners that cannot win are eliminated, so that a long stream
    costs hardly more than one learner.

    Parameters
    ----------
    half_life : float or None, default=None
        Number of rows after which the weight of a row is halved, for streams that
        change. A rough value is enough: additional members forget 4 and 16 times as
        fast. No member is eliminated, since any can become the best later.
    nonlinear : bool, default=False
        Whether to add two learners on random Fourier features, scaled by the first
        rows.
    tolerance : float, default=0.0005
        Smallest gain in AUC over a cheaper member that keeps a member in the race.
    shuffle : bool, default=True
        Whether ``fit`` visits the rows in random order.
    random_state : int, RandomState instance or None, default=None
        Random seed of the order of rows and of the Fourier features.

    Attributes
    ----------
    leaderboard_ : list of StreamLeaderboardEntry
        The members, leader first: rows evaluated, progressive AUC and its standard
        error, gap to the leader on the same rows, weight in the blend, and whether the
        member is running. Eliminated members keep their last results.
    members_ : dict
        The running learners, by name.
    drift_ : Drift
        Whether the stream changes: AUC of SPAM's latest weights minus that of its
        averaged weights, the standard error, and whether this means drift. In a
        stationary stream the averaged weights are better. If drift is found, a warning
        suggests a ``half_life``.
    coef_ : ndarray of shape (1, n_features)
        Weights of the features, if no nonlinear member has a weight in the blend.
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
    feature, plus the rows in the learners' buffers.

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
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }

    n_iter_: int

    _all_members: list[Member]
    _race: Race
    _served: ServedScores
    _drift: DriftMonitor  # of the first member
    _largest: Float  # (d,) largest absolute value of each feature, see limit_values
    # The unfinished block: scores (K + 1, m), those of the drift monitor last, and
    # signed weights (m,), in pieces; number of rows.
    _pending: list[tuple[Float, Float]]
    _n_pending: int

    def __init__(
        self,
        half_life: float | None = None,
        *,
        nonlinear: bool = False,
        tolerance: float = 0.0005,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.half_life = half_life
        self.nonlinear = nonlinear
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
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._require_both(signed)
        check_positive(self.classes_, float(np.mean(signed > 0.0)))
        rng = generator(self.random_state)
        self._start(rng.randint(2**31 - 1))
        if not self.shuffle:
            return self._learn(rows, signed)
        for order in visits(signed, rng, True):
            for start in range(0, len(order), MAX_LENGTH):
                chunk = order[start : start + MAX_LENGTH]
                self._learn(rows[chunk], signed[chunk])
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the next rows of a stream, once each, in the given order.

        The division of a stream into chunks does not change the result.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Next rows of the stream.
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
        rows, signed = self._rows(X, y, sample_weight, reset=first, classes=classes)
        if first:
            check_positive(self.classes_, 0.0)  # class shares are not known yet
            self._start(generator(self.random_state).randint(2**31 - 1))
        elif classes is not None:
            same_classes(self.classes_, classes)
        return self._learn(rows, signed)

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

    @property
    def leaderboard_(self) -> list[StreamLeaderboardEntry]:
        """Results of the members, leader first."""
        names = [member.name for member in self._all_members]
        return leaderboard(names, self._race)

    @property
    def members_(self) -> dict[str, Any]:
        """The running learners, by name."""
        running = self._running()
        for member in running:
            member.weights()
        return {member.name: member.learner for member in running}

    @property
    def drift_(self) -> Drift:
        """Gain in AUC of the latest weights over the averaged ones."""
        return self._drift.estimate(self._race.n_rows, self.n_features_in_)

    @property
    def coef_(self) -> Float:
        """Weights of the features, if the score is linear."""
        score = self._score()
        if score.mapped:
            raise AttributeError(
                "coef_ is not available: a nonlinear member has a weight in the blend. "
                "Use nonlinear=False for a linear model."
            )
        return score.w[np.newaxis]

    @property
    def intercept_(self) -> Float:
        """Intercept; a score of zero means a probability of 0.5."""
        return np.array([self._score().intercept])

    def _start(self, seed: int) -> None:
        """Start all members and the race."""
        members = _candidates(bool(self.nonlinear), self.half_life is not None, seed)
        for member in members:
            member.prepare(self.n_features_in_)
        count = len(members)
        self._all_members, self._race, self.n_iter_ = members, Race.of(count), 1
        self._served = ServedScores.start(count)
        self._drift = DriftMonitor(members[0].learner)
        self._largest = np.zeros(self.n_features_in_)
        self._pending, self._n_pending = [], 0

    def _running(self) -> list[Member]:
        return [self._all_members[k] for k in np.flatnonzero(self._race.running)]

    def _learn(self, X: Any, signed: Float) -> Self:
        """Learn validated rows; blocks may begin and end anywhere in them."""
        X = limit_values(X, self._largest, self._race.n_rows + self._n_pending)
        rows, start = as_rows(X), 0
        while start < len(signed):
            length = self._block_length()
            stop = min(start + length - self._n_pending, len(signed))
            piece = X[start:stop] if self.nonlinear else None  # copies sparse rows
            self._learn_piece(piece, cut_rows(rows, start, stop), signed[start:stop])
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
        running = self._running()
        scores = np.zeros((len(self._all_members) + 1, len(signed)))
        scores[-1] = self._drift.score(rows)
        threads = len(running) > 1 and n_values(rows) > _MIN_VALUES_FOR_THREADS
        found = (in_threads if threads else map)(
            lambda member: member.score_and_learn(X, rows, signed), running
        )
        scores[:-1][self._race.running] = list(found)
        self._pending.append((scores, signed))
        self._n_pending += len(signed)

    def _unfinished_block(self) -> tuple[Float, Float]:
        """Return scores and signed weights of the unfinished block."""
        empty = np.zeros((len(self._all_members) + 1, 0)), np.zeros(0)
        scores, signed = zip(empty, *self._pending, strict=True)
        return np.hstack(scores), np.concatenate(signed)

    def _end_block(self) -> None:
        """Evaluate the members on a finished block, and eliminate losers."""
        race, (scores, signed) = self._race, self._unfinished_block()
        self._pending, self._n_pending = [], 0
        scores, latest = scores[:-1], scores[-1]
        found, information = block_aucs(
            np.vstack([scores[race.running], latest]), signed
        )
        if race.n_rows > 0.0:  # in the first block all scores are zero
            self._served.add_block(scores, signed)
        self._served.add_classes(signed, race.n_rows + len(signed))
        aucs = np.full(len(scores), 0.5)
        aucs[race.running] = found[:-1]
        weight = race.add_block(aucs, information, len(signed))
        self._drift.add_block(found[-1] - aucs[0], weight)
        if self.half_life is not None:
            share = 0.5 ** (len(signed) / self.half_life)
            race.fade(share)
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
        self._served.set_weights(race.weights())

    @property
    def progressive_auc(self) -> tuple[float, float]:
        """Weight of correctly ordered pairs of rows, and of all pairs.

        Every row is scored by the model at the start of its block, before it is learnt.
        Scores of all blocks are compared, by a histogram.
        """
        return self._served.progressive_auc()

    def _score(self) -> BlendedScore:
        """Return the present score."""
        return BlendedScore.of(self._all_members, self._served, self.n_features_in_)

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        return self._score().score(X)

    def expression(self) -> ScoreExpression | None:
        """Return the score as a linear expression; None with nonlinear members."""
        score = self._score()
        return None if score.mapped else ScoreExpression(score.intercept, score.w)

    # The rest of the interface of stream learners, see aucmax.base.stream_learner.

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
        return self._score().score

    def fade(self, share: float) -> None:
        """Not supported; use the parameter ``half_life``."""
        raise NotImplementedError("AUCStream does not support fade; set half_life.")

    def resize(self, n_features: int) -> None:
        """Change the number of features; new features have weight zero."""
        for member in self._running():
            member.resize(n_features)
        self._drift.resize(n_features)
        self._largest = resized(self._largest, n_features)
        self.n_features_in_ = n_features

    def state(self) -> State:
        """Return the state of the running members and of the race."""
        state = super().state()
        scores, signed = self._unfinished_block()
        own = {
            **self._race.arrays(),
            **{f"before.{m.name}": m.block_start for m in self._running()},
            **self._served.arrays(),
            "scored": scores,
            "signed": signed,
            "most": self._largest,
            "recency": self._drift.sums,
            "last": self._drift.w,
        }
        state.arrays.update({f"own.{name}": array for name, array in own.items()})
        for name, learner in self.members_.items():
            state.children[name] = learner.state()
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        learners = {name: restore(child) for name, child in state.children.items()}
        own = below("own", state.arrays)
        own = check_arrays(own, dict.fromkeys(own, _ANY), 1)
        estimator._restore(learners, own)
        return estimator

    def _restore(
        self, learners: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> None:
        """Restore members and race; raise a ValueError if they are invalid."""
        self._start(0)
        count = len(self._all_members)
        self._race = Race.restored(count, arrays)
        names = [member.name for member in self._running()]
        if set(names) != set(learners):
            raise ValueError(
                f"members are {', '.join(learners)}, expected {', '.join(names)}."
            )
        for member in self._running():
            kind, member.learner = type(member.learner), learners[member.name]
            member.block_start = arrays[f"before.{member.name}"]
            if type(member.learner) is not kind:
                found = type(member.learner).__name__
                raise ValueError(f"{member.name} is {found}, expected {kind.__name__}.")
            member.check(self.n_features_in_)
        arrays = checked_arrays(arrays, count, self.n_features_in_)
        self._served = ServedScores.restored(arrays)
        self._largest = arrays["most"]
        self._pending = [(arrays["scored"], arrays["signed"])]
        self._n_pending = len(arrays["signed"])
        first = self._all_members[0].learner
        self._drift = DriftMonitor(first, arrays["last"], arrays["recency"])
