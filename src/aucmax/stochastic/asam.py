r"""SAM and ASAM: accelerated stochastic AUC maximisation.

Khalid, Ray and Chitsaz (dissertation of Khalid 2019, Algorithm 10) minimise the
pairwise hinge loss

.. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2

by one random pair a step, z = x⁺ - x⁻: w += η z if w·z < 1. Every ``rskip`` steps the
penalty of all of them falls due at once, and every ``askip`` steps w enters a running
mean, which ASAM returns; SAM returns w itself. PSAM (:mod:`aucmax.stochastic.psam`) has
its steps from the proximal map of the loss, which is the one line in which it differs:
the kernels here serve all three.

Deviations from the dissertation, none of which moves the minimum:

* steps are scaled feature by feature (:mod:`aucmax.core.table`), so that raw features
  do as well as standardised ones; the penalty acts on the raw weights all the same, so
  it shrinks them feature by feature;
* it does so by its proximal map, 1/(1 + l2 Σ η D), where the dissertation multiplies by
  1 - rskip/(t + t₀): the same to first order, but never below zero. On wide data the
  stretch is longer than ``rskip``, so that it costs O(1) a step;
* pairs are dealt from shuffled decks, one for each class (:mod:`aucmax.core.deck`);
* η_t = 1/(l2 (t + t₀)) is written 1/(1/η₀ + l2 D_min t), with η₀ in units of one over
  the mean of ‖z‖²: the same, if D = 1 and t₀ = 1/(l2 η₀);
* ``partial_fit`` pairs each row of a stream with two random ones of the other class out
  of a reservoir (:mod:`aucmax.core.reservoir`).

The Notes of the classes have the settings that switch back.
"""

from copy import deepcopy
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core import reservoir
from aucmax.core import table as tables
from aucmax.core.base import OnlineAUC, generator
from aucmax.core.deck import decks
from aucmax.core.jit import inlined, kernel
from aucmax.core.reservoir import choose, fill, keep, kept_score, move_kept
from aucmax.core.rows import (
    Rows,
    distance_row,
    fetch_ahead,
    fetch_row,
    learn_row,
    length_pair_row,
    listed,
    meet_row,
    move_pair_row,
    raw_dot_row,
    raw_move_row,
    score_pair_row,
)
from aucmax.core.steps import rates
from aucmax.core.table import (
    L2,
    SUM,
    D,
    Float,
    W,
    penalise,
    refresh,
)
from aucmax.core.tally import NEG, POS, RENEW, Tally

_FEATURES = 16  # at most so many a step are shrunk
PARTNERS = 2  # of each row of a stream
_PIECE = 1 << 16  # pairs that are dealt at a time

# The numbers in State.z, after those of aucmax.core.tally: mean of ‖z‖²; steps; Σ η
# since the penalty was last applied, and steps since; Σ γ, how many w are in the mean;
# rows of the positives and of the negatives.
LENGTH, T, DUE, SINCE, SUM_GAMMA, N_POS, N_NEG = range(6, 13)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    hot: Float  # (4, d) weights, scales, class sums: see aucmax.core.table
    cold: Float  # (4, d) the average's part, frequencies, sums of squares
    ref: Float  # (d,) reference points
    mark: Float  # (d,) the scales that the average was learnt with
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (13,) numbers, see above
    seed: Float  # the rest is rows kept for pairs: see aucmax.core.reservoir
    kept: Float
    starts: Float
    where: Float
    value: Float


def init(n_features: int, precondition: bool, rng: np.random.RandomState) -> State:
    """Return the state before the first row."""
    hot, cold, ref = tables.empty(n_features, precondition)
    rows = reservoir.empty(n_features, rng)
    mark = np.zeros(n_features)
    return State(hot, cold, ref, mark, np.zeros(2), np.zeros(13), *rows)


@kernel
def mean_length(
    hot: Float, cold: Float, ref: Float, to_pos: float, to_neg: float
) -> float:
    """Return the mean of z·Dz over all pairs; one if there is nothing but zeros."""
    length = 0.0
    for j in range(hot.shape[1]):
        one = hot[SUM, j] * to_pos - ref[j]
        other = hot[SUM + 1, j] * to_neg - ref[j]
        second = tables.second_moment(hot, cold, j, to_pos, to_neg)
        length += 2.0 * hot[D, j] * max(second - one * other, 0.0)
    return length if length > 0.0 else 1.0


@inlined
def step_size(eta0: float, length: float, convexity: float, t: float) -> float:
    """Return 1/(μ (t + t₀)), t₀ from the first step size eta0/length."""
    return eta0 / (length + eta0 * convexity * t)


@inlined
def penalty_due(l2: L2, due: float, eta: float, since: float, printed: bool) -> float:
    """Return how much of the penalty has fallen due, for its proximal map.

    That is Σ η; or, as printed, what multiplies weights by 1 - rskip/(t + t₀), η being
    1/(l2 (t + t₀)).
    """
    if printed:
        return eta * since / (1.0 - l2.plain * eta * since)
    return due


@kernel
def update(
    X: Rows,
    pos: NDArray[np.int64],
    neg: NDArray[np.int64],
    hot: Float,
    cold: Float,
    z: Float,
    ahead: int,
    proximal: bool,
    printed: bool,
    eta0: float,
    rskip: float,
    askip: float,
    l2: L2,
) -> None:
    """Run Algorithm 10, or 11 if ``proximal``, over the pairs of rows ``pos, neg``.

    ``askip=0`` is SAM: no mean.
    """
    mildest, hardest, length = z[3], z[4], 1.0 if printed else z[6]
    t, due, since, sum_gamma = z[7], z[8], z[9], z[10]
    stretch = rskip if printed else max(rskip, hot.shape[1] // _FEATURES)
    most = np.inf if printed else 0.5  # is taken off at once
    skipped = t % askip if askip > 0.0 else 0.0  # a remainder at each step is dear
    last, room = pos.shape[0] - 1, np.zeros(hot.shape[1])
    for k in range(pos.shape[0]):
        then = min(k + ahead, last)
        fetch_row(X, pos[then])
        fetch_row(X, neg[then])
        i, other = pos[k], neg[k]

        t += 1.0
        eta = step_size(eta0, length, mildest, t)
        loss = 1.0 - score_pair_row(X, i, other, hot)
        if loss > 0.0:
            c = eta
            if proximal:
                c = loss / max(length_pair_row(X, i, other, hot, room), loss / eta)
            move_pair_row(X, i, other, hot, cold, c, sum_gamma)

        due += eta
        since += 1.0
        if since >= stretch or due * hardest > most:
            due = penalty_due(l2, due, eta, since, printed)
            penalise(hot, cold, l2, due, sum_gamma)
            due = since = 0.0
        skipped += 1.0
        if skipped == askip:
            sum_gamma += 1.0
            skipped = 0.0
    z[7], z[8], z[9], z[10] = t, due, since, sum_gamma


@kernel
def learn_rows(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    hot: Float,
    cold: Float,
    ref: Float,
    mark: Float,
    n: Float,
    z: Float,
    seed: Float,
    kept: Float,
    starts: Float,
    where: Float,
    value: Float,
    proximal: bool,
    precondition: bool,
    printed: bool,
    eta0: float,
    rskip: float,
    askip: float,
    l2: L2,
) -> None:
    """Do the same for the rows of a stream, each paired with ones that were kept."""
    rows, mildest, hardest, renew_at, length = z[0], z[3], z[4], z[5], z[6]
    t, due, since, sum_gamma = z[7], z[8], z[9], z[10]
    stretch = rskip if printed else max(rskip, hot.shape[1] // _FEATURES)
    most = np.inf if printed else 0.5  # is taken off at once
    skipped = t % askip if askip > 0.0 else 0.0  # a remainder at each step is dear
    centred = listed(X, ref)
    for k in range(order.shape[0]):
        i = order[k]
        weight = abs(y[i])
        if weight == 0.0:
            continue
        side = POS if y[i] > 0.0 else NEG
        sign = 1.0 if y[i] > 0.0 else -1.0
        rows += 1.0
        z[N_POS + side] += 1.0
        n[side] += weight
        learn_row(X, i, weight, side, hot, cold, ref, centred)

        if n[POS] > 0.0 and n[NEG] > 0.0:
            # Running class statistics.
            _, to_pos, to_neg, _ = rates(n, rows)
            if precondition:
                own = 0.5 * weight / n[side]
                meet_row(
                    X,
                    i,
                    hot,
                    cold,
                    ref,
                    mark,
                    to_pos,
                    to_neg,
                    l2,
                    sum_gamma,
                    own,
                )
            if rows >= renew_at:
                penalise(hot, cold, l2, due, sum_gamma)
                due = since = 0.0
                _, _, mildest, hardest = refresh(
                    hot, cold, ref, to_pos, to_neg, l2, precondition
                )
                length = mean_length(hot, cold, ref, to_pos, to_neg)
                renew_at = RENEW * rows
                centred = listed(X, ref)

            # Steps along the differences to random rows of the other class.
            for _ in range(PARTNERS):
                r = choose(seed, kept[1 - side])
                start = int(starts[1 - side, r])
                stop = int(starts[1 - side, r + 1])
                features, values = where[1 - side], value[1 - side]
                t += 1.0
                eta = step_size(eta0, 1.0 if printed else length, mildest, t)
                eta *= weight * z[N_POS + side] / n[side]
                s = raw_dot_row(X, i, hot[W])
                s -= kept_score(hot, features, values, start, stop)
                loss = 1.0 - sign * s
                if loss > 0.0:
                    c = eta
                    if proximal:
                        q = distance_row(X, i, hot, features, values, start, stop)
                        c = loss / max(q, loss / eta)
                    raw_move_row(X, i, hot, cold, sign * c, sum_gamma)
                    move_kept(
                        hot, cold, features, values, start, stop, -sign * c, sum_gamma
                    )

                due += eta
                since += 1.0
                if since >= stretch or due * hardest > most:
                    due = penalty_due(l2, due, eta, since, printed)
                    penalise(hot, cold, l2, due, sum_gamma)
                    due = since = 0.0
                skipped += 1.0
                if skipped == askip:
                    sum_gamma += 1.0
                    skipped = 0.0

        keep(X, i, side, weight / n[side], seed, kept, starts, where, value)
    z[0], z[3], z[4], z[5], z[6] = rows, mildest, hardest, renew_at, length
    z[7], z[8], z[9], z[10] = t, due, since, sum_gamma


def weights(state: State) -> tuple[Float, float]:
    """Return the mean of the weights, or the last if there is none; the intercept."""
    return tables.averaged(state.hot, state.cold, state.n, state.z[SUM_GAMMA])


class PairSampler(OnlineAUC):
    """Base of SAM, ASAM and PSAM, which differ in two switches."""

    eta0: float
    schedule: str
    rskip: int
    askip: int  # SAM has none

    _proximal: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"inv", "printed"})],
        "precondition": ["boolean"],
        "rskip": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def _start(self, n_features: int) -> State:
        # A copy: whoever asks for an empty state does not turn the user's generator.
        rng = generator(deepcopy(self.random_state))
        return init(n_features, bool(self.precondition), rng)

    def _begin(self, rows: Rows, tally: Tally) -> State:
        state: State = super()._begin(rows, tally)
        to_pos, to_neg = (1.0 / tally.weight).tolist()
        state.z[LENGTH] = mean_length(state.hot, state.cold, state.ref, to_pos, to_neg)
        state.z[N_POS : N_NEG + 1] = tally.rows
        return state

    def _validate_state(self, state: State) -> None:
        rows = reservoir.Reservoir(*state[6:])
        reservoir.check(rows, state.n, self.n_features_in_)

    def _hyper(self) -> tuple[bool, float, float, float, L2]:
        printed, askip = self.schedule == "printed", float(getattr(self, "askip", 0.0))
        return printed, float(self.eta0), float(self.rskip), askip, self._penalty()

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to ``X`` and binary ``y`` by ``max_iter`` times as many pairs as rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; float32 and CSR are used as they are.
        y : array-like of shape (n_samples,)
            Two classes; the larger label, ``classes_[1]``, is to come out on top.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row is drawn in proportion to its own. A row of
            weight zero is not there at all.

        Returns
        -------
        self
            The fitted estimator.
        """
        rows, signed, tally = self._tallied(X, y, sample_weight)
        state = self._begin(rows, tally)
        sides = decks(signed, generator(self.random_state))
        left = self.max_iter * int(np.count_nonzero(signed))
        while left > 0:
            pos, neg = (deck.deal(min(left, _PIECE)) for deck in sides)
            self._take_pairs(rows, pos, neg, state)
            left -= _PIECE
        for side, deck in enumerate(sides):  # for a stream that goes on from here
            some = deck.spread(min(len(deck.rows), reservoir.ROWS), 1)[0]
            fill(rows, some, side, *state[6:])
        self.n_iter_ = self.max_iter
        return self._finish(state)

    def _take_pairs(
        self, X: Rows, pos: NDArray[np.int64], neg: NDArray[np.int64], state: State
    ) -> None:
        update(
            X,
            pos,
            neg,
            state.hot,
            state.cold,
            state.z,
            fetch_ahead(X, pairs=True),
            self._proximal,
            *self._hyper(),
        )

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, learn: bool
    ) -> None:
        learn_rows(
            X,
            y,
            order,
            *state,
            self._proximal,
            bool(self.precondition),
            *self._hyper(),
        )

    def _weights(self, state: State) -> tuple[Float, float]:
        return weights(state)


class SAM(PairSampler):
    r"""Stochastic AUC maximisation with the pairwise hinge loss.

    Minimises, one random pair of rows a step,

    .. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2 .

    A pair that is not ranked right by a margin of one moves the weights along its
    difference. The last weights are returned.

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given; the papers' :math:`\lambda`.
        With "auto" each feature has its own, which depends on no unit: 1e-3 times its
        mean square where it is not zero.
    eta0 : float, default=0.1
        First step size, in units of one over the mean of :math:`\|x^+ - x^-\|^2`;
        steps fall with the number of pairs, the faster the larger ``l2`` is, and with
        ``l2=0`` not at all.
    schedule : {"inv", "printed"}, default="inv"
        Steps fall with their number, and the penalty is applied by its proximal map; or
        with ``eta0`` a plain number and the penalty subtracted, as in the dissertation.
    rskip : int, default=16
        Steps between two applications of the penalty; more on wide data.
    precondition : bool, default=True
        Whether features are scaled inside, by class moments. The objective is the same
        without, the number of pairs to its minimum is not.
    max_iter : int, default=5
        Passes in ``fit``: so many times as many pairs as there are rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the pairs.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The weights.
    intercept_ : ndarray of shape (1,)
        Puts the score zero midway between the mean scores of the classes.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.
    n_iter_ : int
        Passes done.
    state_ : State
        The variables of the algorithm; ``partial_fit`` goes on from them.

    See Also
    --------
    ASAM : The mean of the weights in place of the last ones: more accurate.
    PSAM : ASAM with proximal steps: use this.
    SPAM : The pairwise square loss, one row a step.

    Notes
    -----
    A pair costs the non-zeros of its two rows; memory is eleven numbers a feature, and
    for ``partial_fit`` up to 256 rows of each class, as long as they have no more than
    2¹⁷ values, or one row. ``fit`` reads the data once more, for exact class moments.
    Without the mean, a first step as large as that of ASAM would cost accuracy.

    As printed: ``SAM(l2, eta0=1 / (l2 * t0), schedule="printed", precondition=False)``
    and ``fit``. Pairs are dealt, not drawn: see :mod:`aucmax.core.deck`.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 10.
    .. [2] A. Bordes, L. Bottou, P. Gallinari, "SGD-QN: Careful Quasi-Newton Stochastic
       Gradient Descent", JMLR 10, 2009: the penalty every so many steps.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(SAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        eta0: float = 0.1,
        schedule: str = "inv",
        rskip: int = 16,
        precondition: bool = True,
        max_iter: int = 5,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.rskip = rskip
        self.precondition = precondition
        self.max_iter = max_iter
        self.random_state = random_state


class ASAM(PairSampler):
    r"""Accelerated stochastic AUC maximisation with the pairwise hinge loss.

    Minimises, one random pair of rows a step,

    .. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2 .

    A pair that is not ranked right by a margin of one moves the weights along its
    difference. The mean of the weights is returned.

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given; the papers' :math:`\lambda`.
        With "auto" each feature has its own, which depends on no unit: 1e-3 times its
        mean square where it is not zero.
    eta0 : float, default=1.0
        First step size, in units of one over the mean of :math:`\|x^+ - x^-\|^2`;
        steps fall with the number of pairs, the faster the larger ``l2`` is, and with
        ``l2=0`` not at all.
    schedule : {"inv", "printed"}, default="inv"
        Steps fall with their number, and the penalty is applied by its proximal map; or
        with ``eta0`` a plain number and the penalty subtracted, as in the dissertation.
    rskip : int, default=16
        Steps between two applications of the penalty; more on wide data.
    askip : int, default=16
        Steps between two weights that enter the mean.
    precondition : bool, default=True
        Whether features are scaled inside, by class moments. The objective is the same
        without, the number of pairs to its minimum is not.
    max_iter : int, default=5
        Passes in ``fit``: so many times as many pairs as there are rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the pairs.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The weights.
    intercept_ : ndarray of shape (1,)
        Puts the score zero midway between the mean scores of the classes.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.
    n_iter_ : int
        Passes done.
    state_ : State
        The variables of the algorithm; ``partial_fit`` goes on from them.

    See Also
    --------
    PSAM : The same with proximal steps, at the same price.
    SAM : The same without the mean.
    SPAM : The pairwise square loss, one row a step.

    Notes
    -----
    A pair costs the non-zeros of its two rows; memory is eleven numbers a feature, and
    for ``partial_fit`` up to 256 rows of each class, as long as they have no more than
    2¹⁷ values, or one row. ``fit`` reads the data once more, for exact class moments.

    As printed: ``ASAM(l2, eta0=1 / (l2 * t0), schedule="printed", precondition=False)``
    and ``fit``. Pairs are dealt, not drawn: see :mod:`aucmax.core.deck`.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 10.
    .. [2] A. Bordes, L. Bottou, P. Gallinari, "SGD-QN: Careful Quasi-Newton Stochastic
       Gradient Descent", JMLR 10, 2009: the penalty every so many steps.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import ASAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(ASAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairSampler._parameter_constraints,
        "askip": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        eta0: float = 1.0,
        schedule: str = "inv",
        rskip: int = 16,
        askip: int = 16,
        precondition: bool = True,
        max_iter: int = 5,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.rskip = rskip
        self.askip = askip
        self.precondition = precondition
        self.max_iter = max_iter
        self.random_state = random_state
