"""AUCStream: several learners in one pass over a stream, and the best of them.

Each block of rows is scored by every learner before they learn it, so the race between
them (:mod:`aucmax.stream.race`) costs no rows. What comes out is the blend of those
that may be the best, as one linear model, with scores that are calibrated log-odds.

The learners never see each other, and blocks end at fixed rows of the stream: however
it is cut into chunks, the result is the same to the last bit.
"""

import re
import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from aucmax.base.expression import ScoreExpression
from aucmax.base.ranker import Ranker, generator, product, same_classes
from aucmax.core.rows import Float, Rows, as_rows, cut_rows, n_values
from aucmax.core.threads import in_threads
from aucmax.core.validation import DataWarning
from aucmax.kernel.chain import Chain
from aucmax.kernel.fourier import RandomFourier
from aucmax.metrics.calibration import log_odds
from aucmax.metrics.inputs import Classes, area
from aucmax.online.base import DivergenceError, visits
from aucmax.online.oam import OAM
from aucmax.online.spam import SPAM
from aucmax.storage.estimator import below, restore
from aucmax.storage.storable import Spec, State, check_arrays
from aucmax.stream.limits import limited
from aucmax.stream.members import LastIterate, Mapped, Member, resized
from aucmax.stream.race import Race
from aucmax.tables.positive_class import check_positive

_SHARE = 16  # a block is one part in so many of the rows before it …
_SHORTEST, _LONGEST = 32, 65_536  # … within these bounds
_WIDTH = 1024  # features that a row of a block is worth: each block looks at all
_KEPT = 1024  # rows of each class whose scores are kept, for calibration
_RENEWAL = 0.5  # share of the last block in the scale of a member's scores
_TAIL = 0.05  # share of the scores at either end that is winsorised for that scale
_FAR = 10.0  # in such units from the middle, where scores are winsorised to calibrate
_BINS = 4096  # of the served scores, see _bin
_WIDEST = 10.0  # asinh of the largest log-odds that have a bin of their own
_WORTH_THREADS = 20_000  # values; a thread costs as much as it takes to learn some
_FOURIER = 300  # features
_HASTES = (4, 16)  # of members that forget faster than they are told to
_OWN = ("unit", "mix", "mass", "served", "most", "recency")  # arrays, see below
_ANY = Spec(finite=False)  # checked further on
_ROWS_A_FEATURE = 10  # at least, before drift is reported
_SURE, _MATTERS = 3.0, 0.002  # standard errors and AUC, from which on drift is reported


class Standing(NamedTuple):
    """A line of the leaderboard."""

    member: str
    rows: int  # it was judged on
    auc: float  # of rows before it learnt them
    se: float  # standard error of that
    behind: float  # the leader, on the same rows
    weight: float  # in the blend
    running: bool


class Drift(NamedTuple):
    """How much better the latest weights rank than the average over the stream."""

    gain: float  # in AUC; below zero in a stream that does not change
    se: float  # standard error of that
    found: bool  # whether the stream changes


class _Model(NamedTuple):
    """A score: linear, and what nonlinear members add."""

    w: Float
    intercept: float
    beside: list[tuple[Any, Float]]  # maps, and weights of their features

    def score(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        scores = product(X, self.w) + self.intercept
        for fourier, w in self.beside:
            scores += fourier.scores(X, w)
        return scores


class AUCStream(Ranker):
    """Learns a stream in one pass, with nothing to tune.

    Learners with different losses and step sizes run side by side. Each is judged on
    rows that it has not learnt yet; the score is a blend of those that are not behind,
    and those that cannot win drop out, so that a long stream costs hardly more than
    one learner.

    Parameters
    ----------
    half_life : float or None, default=None
        Rows after which a row counts half: for streams that change. Some members then
        forget four and sixteen times as fast, so that a rough idea will do. All of them
        go on to the end, as any may be the best one day.
    nonlinear : bool, default=False
        Whether two of the learners work on random Fourier features of the first rows'
        scale, beside the linear ones.
    tolerance : float, default=0.0005
        AUC that a member has to be ahead of a cheaper one, or it drops out.
    shuffle : bool, default=True
        Whether each pass of ``fit`` visits the rows in a new random order.
    random_state : int, RandomState instance or None, default=None
        Seed of that order.

    Attributes
    ----------
    leaderboard_ : list of Standing
        The members: rows judged, progressive AUC and its standard error, how far they
        are behind the leader on the same rows, weight in the blend, whether still
        running. The leader is first; those that are out are as they were then.
    members_ : dict
        The learners that are running, by name.
    drift_ : Drift
        Whether the stream changes: the AUC that SPAM's latest weights have above its
        averaged ones, its standard error, and whether that means drift. In a stream
        that does not change the average is better. A warning names ``half_life``.
    coef_ : ndarray of shape (1, n_features)
        The weights, if no nonlinear member has a part in the score.
    intercept_ : ndarray of shape (1,)
        Puts the score zero where both classes are equally likely.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.
    n_iter_ : int
        Passes done: one.

    See Also
    --------
    OAM, SPAM : The members.
    BAMCV : All rows at once, in memory.

    Notes
    -----
    A row costs what the members cost that are still running. Memory is some forty
    numbers a feature, and the rows in the buffers. ``random_state`` is the seed of the
    Fourier features, too.

    The error of the race is that of progressive validation: blocks of rows are taken
    for independent given those before. :mod:`aucmax.stream.race` has the formulas, and
    the rate at which a member that is ahead is dropped.

    References
    ----------
    .. [1] A. Blum, A. Kalai, J. Langford, "Beating the hold-out: bounds for k-fold and
       progressive cross-validation", COLT 1999.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import AUCStream
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> model = AUCStream(random_state=0)
    >>> for start in range(0, 2000, 500):
    ...     some = slice(start, start + 500)
    ...     _ = model.partial_fit(X[some], y[some], classes=[0, 1])
    >>> round(model.score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "half_life": [Interval(Real, 0, None, closed="neither"), None],
        "nonlinear": ["boolean"],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }

    n_iter_: int

    _team: list[Member]
    _race: Race
    _open: list[tuple[Float, Float]]  # of a block that has not ended: scores (K, m) …
    _waiting: int  # … and signed weights (m,), piece by piece; rows in all
    _kept: list[Float]  # (K, n) the last scores of either class, in units
    _unit: Float  # (K,) the scale of each member's scores
    _mix: Float  # (K,) the weights of the members in the blend
    _mass: Float  # (3,) weight of either class, recent rows counting more; rows
    _served: Float  # (2, bins) weight of either class by served score, see _bin
    _most: Float  # (d,) the largest absolute value of each feature, see limited
    _last: LastIterate  # of the first member; takes no part in the race
    _recency: Float  # (6,) sums that drift_ is made of, and whether it was reported
    _line: tuple[float, float] | None  # see _odds; None if it is not known

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
        """Learn from the rows of ``X`` and binary ``y`` in one pass.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; float32 and CSR are used as they are.
        y : array-like of shape (n_samples,)
            Two classes; the larger label, ``classes_[1]``, is to come out on top.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row of weight zero is not there at all.

        Returns
        -------
        self
            The fitted estimator.
        """
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._require_both(signed)
        check_positive(self.classes_, float(np.mean(signed > 0.0)))
        rng = generator(self.random_state)
        self._begin(rng.randint(2**31 - 1))
        if not self.shuffle:
            return self._learn(rows, signed)
        for order in visits(signed, rng, True):
            for start in range(0, len(order), _LONGEST):
                some = order[start : start + _LONGEST]
                self._learn(rows[some], signed[some])
        return self

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
        first = "_race" not in vars(self)
        rows, signed = self._rows(X, y, sample_weight, reset=first, classes=classes)
        if first:
            check_positive(self.classes_, 0.0)  # the first rows tell no share
            self._begin(generator(self.random_state).randint(2**31 - 1))
        elif classes is not None:
            same_classes(self.classes_, classes)
        return self._learn(rows, signed)

    def predict_proba(self, X: ArrayLike) -> Float:
        """Return the probability of each class, by the scores of rows so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Of ``classes_[0]`` and of ``classes_[1]``. They are calibrated on the rows
            of the stream, each scored before it was learnt, by Platt's method.
        """
        score = self.decision_function(X)
        return np.column_stack([expit(-score), expit(score)])

    @property
    def leaderboard_(self) -> list[Standing]:
        """The members and how they stand, the leader first."""
        race, names = self._race, [member.name for member in self._team]
        columns = race.means(), race.errors(), race.gaps(), race.weights()
        lines = [
            Standing(name, int(rows), mean, error, gap, weight, runs)
            for name, rows, runs, (mean, error, gap, weight) in zip(
                names,
                race.rows().tolist(),
                race.running.tolist(),
                np.transpose(columns).tolist(),
                strict=True,
            )
        ]
        return sorted(lines, key=lambda line: (not line.running, line.behind))

    @property
    def members_(self) -> dict[str, Any]:
        """The learners that are running."""
        running = self._running()
        for member in running:
            member.weights()
        return {member.name: member.learner for member in running}

    @property
    def coef_(self) -> Float:
        """The weights, if the score is linear."""
        now = self._model()
        if now.beside:
            raise AttributeError(
                "There are no weights: a nonlinear member has a part in the score."
            )
        return now.w[np.newaxis]

    @property
    def intercept_(self) -> Float:
        """Puts the score zero where both classes are equally likely."""
        return np.array([self._model().intercept])

    def _begin(self, seed: int) -> None:
        """Start all members, and the race."""
        team = _candidates(bool(self.nonlinear), self.half_life is not None, seed)
        for member in team:
            member.begin(self.n_features_in_)
        count = len(team)
        self._team, self._race, self.n_iter_ = team, Race.of(count), 1
        self._unit, self._mix = np.ones(count), np.full(count, 1.0 / count)
        self._mass, self._served, self._line = np.zeros(3), np.zeros((2, _BINS)), None
        self._most, self._recency = np.zeros(self.n_features_in_), np.zeros(6)
        self._last = LastIterate(team[0].learner)
        self._open, self._waiting = [], 0
        self._kept = [np.zeros((count, 0)), np.zeros((count, 0))]

    def _running(self) -> list[Member]:
        return [self._team[k] for k in np.flatnonzero(self._race.running)]

    def _learn(self, X: Any, signed: Float) -> Self:
        """Learn validated rows, piece by piece, as blocks end."""
        X = limited(X, self._most, self._race.at[0] + self._waiting)
        rows, start = as_rows(X), 0
        while start < len(signed):
            length = self._length()
            stop = min(start + length - self._waiting, len(signed))
            some = X[start:stop] if self.nonlinear else None  # a copy of sparse rows
            self._step(some, cut_rows(rows, start, stop), signed[start:stop])
            if self._waiting == length:
                self._settle()
            start = stop
        return self

    def _length(self) -> int:
        """Return the length of the block that has not ended."""
        length = _block(self._race.at[0], self.half_life, self.n_features_in_)
        return max(length, self._waiting + 1)  # it may have been meant for more

    def _step(self, X: Any, rows: Rows, signed: Float) -> None:
        """Let all members score rows, then learn them."""
        running = self._running()
        scores = np.zeros((len(self._team) + 1, len(signed)))
        scores[-1] = self._last.score(rows)  # before the member learns the rows
        many = len(running) > 1 and n_values(rows) > _WORTH_THREADS
        found = (in_threads if many else map)(
            lambda member: member.step(X, rows, signed), running
        )
        scores[:-1][self._race.running] = list(found)
        self._open.append((scores, signed))
        self._waiting += len(signed)

    def _block_so_far(self) -> tuple[Float, Float]:
        """Return the scores of the block that has not ended, and the signed weights."""
        none = np.zeros((len(self._team) + 1, 0)), np.zeros(0)
        scores, signed = zip(none, *self._open, strict=True)
        return np.hstack(scores), np.concatenate(signed)

    def _settle(self) -> None:
        """End a block: judge its scores, and see who goes on."""
        race, (scores, signed) = self._race, self._block_so_far()
        self._open, self._waiting = [], 0
        scores, last = scores[:-1], scores[-1]
        found, known = _areas(np.vstack([scores[race.running], last]), signed)
        if race.at[0] > 0.0:  # in the first block no member has learnt anything
            self._serve(scores, signed)
            self._keep(scores, signed)
        recent = race.at[0] + len(signed)
        self._mass += *(recent * _both(signed)), len(signed)
        areas = np.full(len(scores), 0.5)
        areas[race.running] = found[:-1]
        race.judge(areas, known, len(signed))
        if len(self._last.w):
            u, gain = known * race.at[0] ** 2, found[-1] - areas[0]
            self._recency += u, u * u, u * gain, u * u * gain, (u * gain) ** 2, 0.0
        if self.half_life is not None:
            share = 0.5 ** (len(signed) / self.half_life)
            race.fade(share)
            self._mass *= share
            for member in self._running():
                member.fade(share)
        else:
            checks = race.at[1]
            for k in race.drop(self.tolerance):
                race.retire(int(k))
            if race.at[1] > checks:
                self._warn_of_drift()
        for k in np.flatnonzero(race.running):
            try:
                self._team[k].renew()
            except DivergenceError:
                if race.runs.sum() == 1.0:
                    raise
                race.retire(int(k))
        self._last.renew()
        self._mix = race.weights()

    def _warn_of_drift(self) -> None:
        drift, rows = self.drift_, int(self._race.at[0])
        if drift.found and not self._recency[5]:
            self._recency[5] = 1.0
            warnings.warn(
                f"The stream changes: by row {rows:,}, the latest weights rank better "
                f"than their average, by {drift.gain:.3f} in AUC. Learn it with a "
                f"half-life, such as half_life={_rounded(rows / 16)} rows.",
                DataWarning,
                stacklevel=6,
            )

    @property
    def drift_(self) -> Drift:
        """Whether the stream changes; see :mod:`aucmax.stream.race` for the error."""
        u, uu, ug, uug, uugg, _ = self._recency.tolist()
        if not u * u > uu:  # fewer than two blocks
            return Drift(0.0, np.inf, False)
        gain, k = ug / u, u * u / uu
        spread = max(uugg - 2.0 * gain * uug + gain**2 * uu, 0.0)
        se = float(np.sqrt(spread * k / (k - 1.0)) / u)
        # While there are few rows for so many features, averages are behind anyway.
        known = self._race.at[0] > _ROWS_A_FEATURE * self.n_features_in_
        return Drift(gain, se, bool(known and gain > max(_SURE * se, _MATTERS)))

    def _serve(self, scores: Float, signed: Float) -> None:
        """Count the scores that were served for a block."""
        slope, intercept = self._odds
        place = _bin(slope * ((self._mix / self._unit) @ scores) + intercept)
        for count, side in zip(self._served, (signed > 0.0, signed < 0.0), strict=True):
            count += np.bincount(place[side], np.abs(signed[side]), _BINS)

    def _keep(self, scores: Float, signed: Float) -> None:
        """Update the scale of each member's scores; keep scores for calibration.

        A scale is that of the larger class, winsorised, and changes slowly: scores of
        one row, or of a block with many positives, must not change the scale of all.
        """
        sides = signed > 0.0, signed < 0.0
        larger = scores[:, sides[int(self._mass[0] < self._mass[1])]]
        if larger.shape[1]:
            low, high = np.quantile(larger, (_TAIL, 1.0 - _TAIL), axis=1)
            spread = np.clip(larger.T, low, high).std(axis=0)
            share = _RENEWAL if self._kept[0].size + self._kept[1].size else 1.0
            ratio = np.where(spread > 0.0, spread, self._unit) / self._unit
            self._unit = self._unit * ratio**share
        units = scores / self._unit[:, np.newaxis]
        self._kept = [
            np.hstack([kept, units[:, side]])[:, -_KEPT:]
            for kept, side in zip(self._kept, sides, strict=True)
        ]
        self._line = None

    @property
    def _odds(self) -> tuple[float, float]:
        """What makes log-odds of the blend's scores: a factor, and what to add.

        Fitted to members' scores, each from before its row was learnt, by the weights
        that the members have in the blend now; a single wild score has little say.
        """
        if self._line is None:
            pos, neg = (self._mix @ kept for kept in self._kept)
            if pos.size and neg.size:
                larger = pos if self._mass[0] > self._mass[1] else neg
                bounds = np.median(larger) + np.array([-_FAR, _FAR])
                pos, neg = pos.clip(*bounds), neg.clip(*bounds)
            *weights, rows = self._mass
            n = rows * np.array(weights) / (sum(weights) or 1.0)
            line = log_odds(pos, neg, n)
            if not (pos.size and neg.size):
                return line
            self._line = line
        return self._line

    @property
    def progressive_auc(self) -> tuple[float, float]:
        """Pairs of rows whose served scores are in the right order, and all pairs.

        Rows were scored before they were learnt, by the model as of their block's
        beginning, and scores of all blocks are compared. Scores in the same bin count
        half, as ties do.
        """
        pos, neg = self._served
        below = np.cumsum(neg) - 0.5 * neg
        return float(pos @ below), float(pos.sum() * neg.sum())

    def _model(self) -> _Model:
        """Return the score as it is now."""
        slope, intercept = self._odds
        w, beside = np.zeros(self.n_features_in_), []
        factors = slope * self._mix / self._unit
        for factor, member in zip(factors, self._team, strict=True):
            if factor == 0.0:
                continue
            its, offset = member.weights()
            intercept += factor * offset
            if isinstance(member, Mapped):
                beside.append((member.learner.current()[0], factor * its))
            else:
                w += factor * its
        return _Model(w, float(intercept), beside)

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        return self._model().score(X)

    def expression(self) -> ScoreExpression | None:
        """Return the score as a linear expression; None with nonlinear members."""
        now = self._model()
        return None if now.beside else ScoreExpression(now.intercept, now.w)

    # The interface of stream learners, see aucmax.base.stream_learner; progressive_auc
    # is above.

    @property
    def resumable(self) -> bool:
        """True: ``partial_fit`` always continues from what has been learnt."""
        return True

    @property
    def grows_quadratically(self) -> bool:
        """False: the members' states are proportional to the number of features."""
        return False

    def scorer(self) -> Callable[[Any], Float] | None:
        """Return a function that ranks rows as of now, whatever is learnt later."""
        return self._model().score

    def fade(self, share: float) -> None:
        """Not supported: a stream that changes has ``half_life``."""
        raise NotImplementedError("AUCStream forgets by its half_life.")

    def resize(self, n_features: int) -> None:
        """Take rows with more features from now on, or fewer."""
        for member in self._running():
            member.resize(n_features)
        self._last.resize(n_features)
        self._most = resized(self._most, n_features)
        self.n_features_in_ = n_features

    def state(self) -> State:
        """Return the state: that of the running members, and arrays of the race."""
        state = super().state()
        own = {
            **self._race.arrays(),
            **{f"before.{m.name}": m.before for m in self._running()},
            **dict(zip(("pos", "neg"), self._kept, strict=True)),
            **dict(zip(("scored", "signed"), self._block_so_far(), strict=True)),
            **{name: getattr(self, f"_{name}") for name in _OWN},
            "last": self._last.w,
        }
        state.arrays.update({f"own.{name}": array for name, array in own.items()})
        members = self.members_
        state.children.update({name: one.state() for name, one in members.items()})
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        parts = {name: restore(child) for name, child in state.children.items()}
        own = below("own", state.arrays)
        estimator._take(parts, check_arrays(own, dict.fromkeys(own, _ANY), 1))
        return estimator

    def _take(self, parts: dict[str, Any], own: dict[str, NDArray[Any]]) -> None:
        """Take members and arrays out of a state; raise a ValueError if invalid."""
        self._begin(0)
        names = [member.name for member in self._team]
        self._race = Race.restored(len(names), own)
        if {member.name for member in self._running()} != set(parts):
            raise ValueError(f"its members are {', '.join(parts)}.")
        for member in self._running():
            kind, member.learner = type(member.learner), parts[member.name]
            member.before = own[f"before.{member.name}"]
            if type(member.learner) is not kind:
                raise ValueError(f"{member.name} is no {kind.__name__}.")
            member.check(self.n_features_in_)
        count, length = len(names), len(own["signed"])
        own = _of_this_version(own, count, self.n_features_in_)
        shapes: dict[str, tuple[int, ...]]
        shapes = {"unit": (count,), "mix": (count,), "mass": (3,), "recency": (6,)}
        shapes |= {"served": (2, _BINS), "most": (self.n_features_in_,)}
        shapes |= {"scored": (count + 1, length), "signed": (length,)}
        shapes |= {"last": (self.n_features_in_ if own["last"].size else 0,)}
        shapes |= {name: (count, *own[name].shape[1:2]) for name in ("pos", "neg")}
        for name, shape in shapes.items():
            array = own[name]
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"its {name!r} has shape {array.shape}, not {shape}.")
            if name in _OWN:
                setattr(self, f"_{name}", array)
        self._open, self._waiting = [(own["scored"], own["signed"])], length
        if length >= _LONGEST or not own["signed"].all():
            raise ValueError("its last rows are more than a block, or none.")
        if not (self._unit > 0.0).all() or (self._mix < 0.0).any():
            raise ValueError("its members cannot be weighed.")
        if any((array < 0.0).any() for array in (self._mass, self._served, self._most)):
            raise ValueError("its classes or features have negative weights.")
        self._last = LastIterate(self._team[0].learner, own["last"])
        self._kept = [own["pos"], own["neg"]]


def _block(rows: float, half_life: float | None, width: int) -> int:
    """Return the length of the block of so many features that begins after ``rows``."""
    if half_life is not None:
        rows = min(rows, half_life)
    length = 1 << max(int(rows / _SHARE).bit_length() - 1, 0)
    return min(max(length, _SHORTEST, width // _WIDTH), _LONGEST)


def _bin(score: Float) -> NDArray[np.intp]:
    """Return the bins of log-odds: 0.5 % wide for large ones, 0.005 near zero."""
    place = (np.arcsinh(score) / _WIDEST + 1.0) * (0.5 * _BINS)
    return np.clip(place, 0, _BINS - 1).astype(np.intp)


def _rounded(rows: float) -> int:
    """Return a number of rows with one digit that is not zero."""
    size = 10 ** max(len(str(int(rows))) - 1, 0)
    return int(rows) // size * size


def _of_this_version(
    own: dict[str, NDArray[Any]], count: int, n_features: int
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, those of version 0.1.0 as they are now.

    It kept scores of the blend, not of each member, and pairs instead of scores served.
    """
    if "served" in own:
        return own
    scored = np.vstack([own["scored"], np.zeros_like(own["scored"][:1])])
    return {
        **own,
        **{name: np.tile(own[name], (count, 1)) for name in ("pos", "neg")},
        "served": np.zeros((2, _BINS)),
        "most": np.zeros(n_features),
        "recency": np.zeros(6),
        "last": np.zeros(0),
        "scored": scored,
    }


def _both(signed: Float) -> Float:
    """Return the weight of the positives and of the negatives."""
    return np.array([signed[signed > 0.0].sum(), -signed[signed < 0.0].sum()])


def _areas(scores: Float, signed: Float) -> tuple[Float, float]:
    """Return the AUC of each row of scores, and n₊n₋/(n₊ + n₋): what is known by it."""
    positive, weight, both = signed > 0.0, np.abs(signed), _both(signed)
    if not both.all():
        return np.full(len(scores), 0.5), 0.0
    parts = (weight[positive], weight[~positive])
    some = parts if (weight != 1.0).any() else (None, None)
    areas = [area(Classes(s[positive], s[~positive], *some)) for s in scores]
    return np.array(areas), float(both.prod() / both.sum())


def _candidates(nonlinear: bool, forgetful: bool, seed: int) -> list[Member]:
    """Return all members before the race, cheap ones first.

    How they were chosen is in docs/streams.md; benchmarks/streams.py has the study.
    """
    small = OAM(C=2.0, buffer_size=25)
    plain = OAM(C=5.0, average=False, buffer_size=10, precondition=False)  # for texts
    linear = (SPAM(), small, plain, OAM(C=6.0), OAM(C=60.0))
    team = [Member(_written(learner), learner) for learner in linear]
    if nonlinear:
        for learner in (OAM(C=2.0, buffer_size=25), OAM(C=6.0)):
            fourier = RandomFourier(_FOURIER, linear=True, random_state=seed)
            name = f"Fourier, {_written(learner)}"
            team.append(Mapped(name, Chain(fourier, learner)))
    if forgetful:  # nobody knows how quickly a stream will change
        for haste in _HASTES:
            name = f"{_written(OAM(C=6.0))}, forgets {haste} times as fast"
            team.append(Member(name, OAM(C=6.0), haste))
    return team


def _written(learner: Any) -> str:
    """Return the learner as one would write it."""
    return re.sub(r"\s+", " ", repr(learner))
