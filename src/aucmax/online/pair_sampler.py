"""Pair sampling: the kernels of SAM, ASAM and PSAM, and what the three have in common.

See :mod:`aucmax.online.asam` for the problem and for deviations from the paper.
"""

from copy import deepcopy
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.base.class_moments import ClassMoments as Tally
from aucmax.base.ranker import generator
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows, raw_dot_row
from aucmax.online import engine
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import (
    DUE,
    MILDEST,
    PAST,
    SINCE,
    SUM,
    TO_NEG,
    TO_POS,
    D,
    Table,
    Visit,
    W,
    class_of,
    falls_due,
    learn,
    penalise,
    renew,
    reservoir,
    second_moment,
)
from aucmax.online.engine.reservoir import (
    Reservoir,
    choose,
    fill,
    keep,
    kept_score,
    move_kept,
)
from aucmax.online.pair_order import pair_order
from aucmax.online.pair_rows import (
    length_kept,
    length_pair,
    move_pair,
    raw_move_row,
    score_pair,
)

_FEATURES = 16  # at most so many a step are shrunk
PARTNERS = 2  # of each row of a stream
_PIECE = 1 << 16  # pairs that are dealt at a time

# The numbers in State.z: mean of ‖z‖²; steps; rows of either class.
LENGTH, T, N_POS, N_NEG = range(4)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    table: (
        Table  # weights, scales, class moments: see aucmax.online.engine.feature_table
    )
    pool: Reservoir  # rows kept for pairs
    z: Float  # (4,) numbers, see above


def init(n_features: int, precondition: bool, rng: np.random.RandomState) -> State:
    """Return the state before the first row."""
    pool = reservoir.empty(n_features, rng)
    return State(engine.empty(n_features, precondition), pool, np.zeros(4))


@kernel
def mean_length(table: Table) -> float:
    """Return the mean of z·Dz over all pairs; one if there is nothing but zeros."""
    feat, ref, _, _, stats = table
    to_pos, to_neg = stats[TO_POS], stats[TO_NEG]
    length = 0.0
    for j in range(feat.shape[1]):
        one = feat[SUM, j] * to_pos - ref[j]
        other = feat[SUM + 1, j] * to_neg - ref[j]
        second = second_moment(feat, j, to_pos, to_neg)
        length += 2.0 * feat[D, j] * max(second - one * other, 0.0)
    return length if length > 0.0 else 1.0


@inlined
def step_size(eta0: float, length: float, convexity: float, t: float) -> float:
    """Return 1/(μ (t + t₀)), t₀ from the first step size eta0/length."""
    return eta0 / (length + eta0 * convexity * t)


@inlined
def along(loss: float, q: float, eta: float, proximal: bool) -> float:
    """Return how far to go along a pair: a step, or to the margin if that is nearer."""
    return loss / max(q, loss / eta) if proximal else eta


@kernel
def shrink(table: Table, how: Visit, eta: float, printed: bool) -> None:
    """Apply the penalty that is due: Σ η of it.

    Or, as printed, what multiplies weights by 1 - rskip/(t + t₀), η being
    1/(l2 (t + t₀)).
    """
    stats = table.stats
    due, many = stats[DUE], eta * stats[SINCE]
    penalise(table, how.l2, many / (1.0 - how.l2.plain * many) if printed else due)
    stats[DUE] = stats[SINCE] = 0.0


@kernel
def update(
    X: Rows,
    pos: NDArray[np.int64],
    neg: NDArray[np.int64],
    state: State,
    how: Visit,
    proximal: bool,
    printed: bool,
    eta0: float,
    askip: float,
) -> None:
    """Run Algorithm 10, or 11 if ``proximal``, over the pairs of rows ``pos, neg``.

    ``askip=0`` is SAM: no mean.
    """
    table, _, z = state
    feat, stats = table.feat, table.stats
    t, length = z[T], 1.0 if printed else z[LENGTH]
    skipped = t % askip if askip > 0.0 else 0.0  # a remainder at each step is dear
    room = np.zeros(feat.shape[1])
    for k in range(pos.shape[0]):
        i, other = pos[k], neg[k]
        t += 1.0
        eta = step_size(eta0, length, stats[MILDEST], t)
        loss = 1.0 - score_pair(X, i, other, feat)
        if loss > 0.0:
            q = length_pair(X, i, other, feat, room) if proximal else 0.0
            move_pair(X, i, other, table, along(loss, q, eta, proximal))

        if falls_due(table, how, eta):
            shrink(table, how, eta, printed)
        skipped += 1.0
        if skipped == askip:
            stats[PAST] += 1.0
            skipped = 0.0
    z[T] = t


@kernel
def learn_rows(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    proximal: bool,
    printed: bool,
    eta0: float,
    askip: float,
) -> None:
    """Do the same for the rows of a stream, each paired with ones that were kept."""
    table, pool, z = state
    feat, stats, n = table.feat, table.stats, table.n
    t, room = z[T], np.zeros(feat.shape[1])
    skipped = t % askip if askip > 0.0 else 0.0
    for i in order:
        side, sign = class_of(y[i]), 1.0 if y[i] > 0.0 else -1.0
        partners = 1 - side
        where, value = pool.where[partners], pool.value[partners]
        z[N_POS + side] += 1.0
        news = learn(X, y, i, table, how)
        if news.ready and news.stale:
            renew(table, how)
            z[LENGTH] = mean_length(table)

        # Steps along the differences to random rows of the other class.
        for _ in range(PARTNERS if news.ready else 0):
            r = choose(pool.seed, pool.kept[partners])
            t += 1.0
            eta = step_size(eta0, 1.0 if printed else z[LENGTH], stats[MILDEST], t)
            eta *= abs(y[i]) * z[N_POS + side] / n[side]
            s = raw_dot_row(X, i, feat[W]) - kept_score(pool, partners, r, feat)
            loss = 1.0 - sign * s
            if loss > 0.0:
                q = 0.0
                if proximal:
                    start = int(pool.starts[partners, r])
                    stop = int(pool.starts[partners, r + 1])
                    q = length_kept(X, i, feat, where, value, start, stop, room)
                c = sign * along(loss, q, eta, proximal)
                raw_move_row(X, i, table, c)
                move_kept(pool, partners, r, table, -c)

            if falls_due(table, how, eta):
                shrink(table, how, eta, printed)
            skipped += 1.0
            if skipped == askip:
                stats[PAST] += 1.0
                skipped = 0.0
        keep(X, i, side, abs(y[i]) / n[side], pool)
    z[T] = t


class PairSampler(OnlineAUC):
    """Base of SAM, ASAM and PSAM, which differ in two switches."""

    eta0: float
    schedule: str
    rskip: int
    askip: int  # SAM has none

    _proximal: ClassVar[bool] = False
    is_hinge: ClassVar[bool] = True  # the loss has no curvature

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
        state.z[LENGTH] = mean_length(state.table)
        state.z[N_POS : N_NEG + 1] = tally.rows
        return state

    def _validate_state(self, state: State) -> None:
        reservoir.check(state.pool, state.table.n, self.n_features_in_)

    def _visit(self, rows: Rows, state: State, learn: bool) -> Visit:
        how = super()._visit(rows, state, learn)
        if self.schedule == "printed":
            return how._replace(stretch=float(self.rskip), most=np.inf)
        stretch = float(max(self.rskip, self.n_features_in_ // _FEATURES))
        return how._replace(stretch=stretch)

    def _hyper(self) -> tuple[bool, bool, float, float]:
        askip = float(getattr(self, "askip", 0.0))
        return self._proximal, self.schedule == "printed", float(self.eta0), askip

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
        sides = pair_order(signed, generator(self.random_state))
        left = self.max_iter * int(np.count_nonzero(signed))
        how = self._visit(rows, state, learn=False)
        while left > 0:
            pos, neg = (order.take(min(left, _PIECE)) for order in sides)
            update(rows, pos, neg, state, how, *self._hyper())
            left -= _PIECE
        for side, order in enumerate(sides):  # for a stream that goes on from here
            some = order.sample(min(len(order.rows), reservoir.ROWS))
            fill(rows, some, side, state.pool)
        self.n_iter_ = self.max_iter
        return self._finish(state)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: Visit
    ) -> None:
        learn_rows(X, y, order, state, how, *self._hyper())

    def _weights(self, state: State) -> tuple[Float, float]:
        return engine.averaged(state.table)
