"""AUCStream: several learners in one pass over a stream, and the best of them.

Each block of rows is scored by every learner before they learn it, so the race between
them (:mod:`aucmax.front.race`) costs no rows. What comes out is the blend of those that
may be the best, as one linear model, with scores that are calibrated log-odds.

The learners never see each other, and blocks end at fixed rows of the stream: however
it is cut into chunks, the result is the same to the last bit.
"""

import re
from collections import deque
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from aucmax.core.base import (
    DivergenceError,
    Ranker,
    generator,
    product,
    same_classes,
    visits,
)
from aucmax.core.check import check_float64
from aucmax.core.classes import Classes, area
from aucmax.core.formula import Formula
from aucmax.core.moments import in_threads
from aucmax.core.platt import log_odds
from aucmax.core.rows import Float, Rows, as_rows, cut_rows, n_values
from aucmax.features.chain import Chain
from aucmax.features.fourier import RandomFourier
from aucmax.front.member import Mapped, Member
from aucmax.front.race import Race
from aucmax.online.oam import OAM
from aucmax.online.spam import SPAM

_SHARE = 16  # a block is one part in so many of the rows before it …
_SHORTEST, _LONGEST = 32, 65_536  # … within these bounds
_WIDTH = 1024  # features that a row of a block is worth: each block looks at all
_KEPT = 1024  # scores of each class, to calibrate by
_WORTH_THREADS = 20_000  # values; a thread costs as much as it takes to learn some
_FOURIER = 300  # features
_HASTES = (4, 16)  # of members that forget faster than they are told to
_OWN = ("unit", "mix", "mass", "won")  # arrays, see below


class Standing(NamedTuple):
    """A line of the leaderboard."""

    member: str
    rows: int  # it was judged on
    auc: float  # of rows before it learnt them
    se: float  # standard error of that
    behind: float  # the leader, on the same rows
    weight: float  # in the blend
    running: bool


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
    for independent given those before. :mod:`aucmax.front.race` has the formulas, and
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
    _kept: tuple[deque[float], deque[float]]  # the last scores, of either class
    _unit: Float  # (K,) the spread of scores in the last block
    _mix: Float  # (K,) the weights of the members in the blend
    _mass: Float  # (3,) weight of the positives and of the negatives, rows
    _won: Float  # (2,) pairs that the blend ranked right before they were learnt, of …
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
        first = not hasattr(self, "_race")
        rows, signed = self._rows(X, y, sample_weight, reset=first, classes=classes)
        if first:
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
        self._mass, self._won, self._line = np.zeros(3), np.zeros(2), None
        self._open, self._waiting = [], 0
        self._kept = deque(maxlen=_KEPT), deque(maxlen=_KEPT)

    def _running(self) -> list[Member]:
        return [self._team[k] for k in np.flatnonzero(self._race.running)]

    def _learn(self, X: Any, signed: Float) -> Self:
        """Learn validated rows, piece by piece, as blocks end."""
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
        scores = np.zeros((len(self._team), len(signed)))
        many = len(running) > 1 and n_values(rows) > _WORTH_THREADS
        found = (in_threads if many else map)(
            lambda member: member.step(X, rows, signed), running
        )
        scores[self._race.running] = list(found)
        self._open.append((scores, signed))
        self._waiting += len(signed)

    def _block_so_far(self) -> tuple[Float, Float]:
        """Return the scores of the block that has not ended, and the signed weights."""
        none = np.zeros((len(self._team), 0)), np.zeros(0)
        scores, signed = zip(none, *self._open, strict=True)
        return np.hstack(scores), np.concatenate(signed)

    def _settle(self) -> None:
        """End a block: judge its scores, and see who goes on."""
        race, (scores, signed) = self._race, self._block_so_far()
        self._open, self._waiting = [], 0
        both = _both(signed)
        self._mass += *both, len(signed)
        blend = (self._mix / self._unit) @ scores
        found, known = _areas(np.vstack([scores[race.running], blend]), signed)
        if race.at[0] > 0.0:  # else nobody has learnt anything
            self._won += both.prod() * np.array([found[-1], 1.0])
            self._keep(blend, scores, signed)
        areas = np.full(len(scores), 0.5)
        areas[race.running] = found[:-1]
        race.judge(areas, known, len(signed))
        if self.half_life is not None:
            share = 0.5 ** (len(signed) / self.half_life)
            race.fade(share)
            self._mass *= share
            for member in self._running():
                member.fade(share)
        else:
            for k in race.drop(self.tolerance):
                race.retire(int(k))
        for k in np.flatnonzero(race.running):
            try:
                self._team[k].renew()
            except DivergenceError:
                if race.runs.sum() == 1.0:
                    raise
                race.retire(int(k))
        self._mix = race.weights()

    def _keep(self, blend: Float, scores: Float, signed: Float) -> None:
        """Take note of the blend's scores of a block, and of the members' units."""
        for kept, side in zip(self._kept, (signed > 0.0, signed < 0.0), strict=True):
            kept.extend(blend[side][-_KEPT:].tolist())
        spread = scores.std(axis=1)
        self._unit = np.where(spread > 0.0, spread, self._unit)
        self._line = None

    @property
    def _odds(self) -> tuple[float, float]:
        """What makes log-odds of the blend's scores: a factor, and what to add."""
        if self._line is None and all(self._kept):
            pos, neg = (np.array(kept) for kept in self._kept)
            mean = self._mass[:2].sum() / self._mass[2]
            self._line = log_odds(pos, neg, self._mass[:2] / mean)
        return self._line or (1.0, 0.0)

    @property
    def _judged(self) -> tuple[float, float]:
        """Pairs of a block that were ranked right before it was learnt, and all."""
        return float(self._won[0]), float(self._won[1])

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
                beside.append((member.learner._as_it_is()[0], factor * its))
            else:
                w += factor * its
        return _Model(w, float(intercept), beside)

    def _scores(self, X: Any) -> Float:
        return self._model().score(X)

    # What streams, exports and model files ask of an estimator.

    def _formula(self) -> Formula:
        """Return the score as a formula."""
        if self._model().beside:
            raise TypeError(
                "a blend with nonlinear members is more than one formula; take "
                "nonlinear=False, or a Chain."
            )
        return Formula(float(self.intercept_[0]), self.coef_[0])

    @property
    def _goes_on(self) -> bool:
        return True

    def _state_size(self, n_features: int) -> int:
        return n_features  # some forty times that, but no square of it

    def _resize(self, n_features: int) -> None:
        """Take rows with more features from now on, or fewer."""
        for member in self._running():
            member.resize(n_features)
        self.n_features_in_ = n_features

    def _parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the members that are running, and the numbers of the race."""
        own = {
            **self._race.arrays(),
            **{f"before.{m.name}": m.before for m in self._running()},
            **dict(zip(("pos", "neg"), map(np.array, self._kept), strict=True)),
            **dict(zip(("scored", "signed"), self._block_so_far(), strict=True)),
            **{name: getattr(self, f"_{name}") for name in _OWN},
        }
        return self.members_, own

    def _take_parts(self, parts: dict[str, Any], own: dict[str, NDArray[Any]]) -> None:
        """Take what ``_parts`` gave; raise an error if it does not go together."""
        self._begin(0)
        for name, array in own.items():
            check_float64(name, array)
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
        shapes: dict[str, tuple[int, ...]]
        shapes = {"unit": (count,), "mix": (count,), "mass": (3,), "won": (2,)}
        shapes |= {"scored": (count, length), "signed": (length,)}
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
        right, pairs = self._won  # all of them, up to rounding
        if (self._mass < 0.0).any() or not 0.0 <= right <= pairs * (1.0 + 1e-9):
            raise ValueError("its classes weigh nothing, or its pairs are none.")
        for kept, name in zip(self._kept, ("pos", "neg"), strict=True):
            if own[name].ndim != 1 or not np.isfinite(own[name]).all():
                raise ValueError("scores that it keeps are none.")
            kept.extend(own[name].tolist())


def _block(rows: float, half_life: float | None, width: int) -> int:
    """Return the length of the block of so many features that begins after ``rows``."""
    if half_life is not None:
        rows = min(rows, half_life)
    length = 1 << max(int(rows / _SHARE).bit_length() - 1, 0)
    return min(max(length, _SHORTEST, width // _WIDTH), _LONGEST)


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
