"""Pair sampling: kernels and base class of SAM, ASAM and PSAM.

:mod:`aucmax.online.psam` has the problem and the deviations from the paper.
"""

from copy import deepcopy
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import ClassMoments
from aucmax.base.constraints import COUNT
from aucmax.base.ranker import generator
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows, raw_dot_row
from aucmax.online import engine
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import Table, Visit, reservoir
from aucmax.online.engine import pair_rows as pairs
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.feature_table import penalise
from aucmax.online.engine.reservoir import Reservoir
from aucmax.online.engine.row_visit import class_of
from aucmax.online.pair_order import pair_order

_FEATURES = 16  # features that the penalty may visit per step
PARTNERS = 2  # pairs per row of a stream
_PIECE = 1 << 16  # pairs that get their order at a time

# Slots of State.z: mean of ‖z‖²; steps; rows of each class (2).
LENGTH, T, N_POS, N_NEG = range(4)


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table
    pool: Reservoir  # stored rows for pairs
    z: Float  # (4,) slots above


def init(n_features: int, precondition: bool, rng: np.random.RandomState) -> State:
    """Return the state before the first row."""
    pool = reservoir.empty(n_features, rng)
    return State(engine.empty(n_features, precondition), pool, np.zeros(4))


@inlined
def step_size(eta0: float, length: float, convexity: float, t: float) -> float:
    """Return 1/(μ (t + t₀)), t₀ from the first step size eta0/length."""
    return eta0 / (length + eta0 * convexity * t)


@inlined
def along(loss: float, q: float, eta: float, proximal: bool) -> float:
    """Return the step along a pair; a proximal one ends at the margin."""
    return loss / max(q, loss / eta) if proximal else eta


@kernel
def shrink(table: Table, how: Visit, eta: float, printed: bool, l1: float) -> None:
    """Apply the penalty that is due.

    As published, multiply weights by 1 - rskip/(t + t₀), with η = 1/(l2 (t + t₀)).
    """
    due, many = stats.penalty_due(table), eta * stats.steps_due(table)
    due = many / (1.0 - how.l2.plain * many) if printed else due
    penalise(table, how.l2, due, l1)
    stats.clear_penalty(table)


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
    l1: float,
) -> None:
    """Run Algorithm 10, or 11 if ``proximal``, over pairs; ``askip=0`` is SAM."""
    table, _, z = state
    feat = table.feat
    t, length = z[T], 1.0 if printed else z[LENGTH]
    skipped = t % askip if askip > 0.0 else 0.0  # a remainder at each step is slow
    room = np.zeros(feat.shape[1])
    for k in range(pos.shape[0]):
        i, other = pos[k], neg[k]
        t += 1.0
        eta = step_size(eta0, length, stats.convexity(table), t)
        loss = 1.0 - pairs.score_pair(X, i, other, feat)
        if loss > 0.0:
            q = pairs.length_pair(X, i, other, feat, room) if proximal else 0.0
            pairs.move_pair(X, i, other, table, along(loss, q, eta, proximal))

        if engine.falls_due(table, how, eta):
            shrink(table, how, eta, printed, l1)
        skipped += 1.0
        if skipped == askip:
            stats.add_to_average(table, 1.0)
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
    l1: float,
) -> None:
    """Run the same algorithm on a stream, each row paired with stored rows."""
    table, pool, z = state
    feat, n = table.feat, table.n
    t, room = z[T], np.zeros(feat.shape[1])
    skipped = t % askip if askip > 0.0 else 0.0
    for i in order:
        side, sign = class_of(y[i]), 1.0 if y[i] > 0.0 else -1.0
        partners = 1 - side
        where, value = pool.where[partners], pool.value[partners]
        z[N_POS + side] += 1.0
        news = engine.learn(X, y, i, table, how)
        if news.ready and news.stale:
            engine.settle(table, how, l1)
            engine.renew(table, how)
            z[LENGTH] = pairs.mean_length(table)

        # Steps along the differences to random rows of the other class.
        for _ in range(PARTNERS if news.ready else 0):
            r = reservoir.choose(pool.seed, pool.kept[partners])
            t += 1.0
            length = 1.0 if printed else z[LENGTH]
            eta = step_size(eta0, length, stats.convexity(table), t)
            eta *= abs(y[i]) * z[N_POS + side] / n[side]
            s = raw_dot_row(X, i, engine.weights(table))
            s -= reservoir.kept_score(pool, partners, r, feat)
            loss = 1.0 - sign * s
            if loss > 0.0:
                q = 0.0
                if proximal:
                    start = int(pool.starts[partners, r])
                    stop = int(pool.starts[partners, r + 1])
                    q = pairs.length_kept(X, i, feat, where, value, start, stop, room)
                c = sign * along(loss, q, eta, proximal)
                pairs.raw_move_row(X, i, table, c)
                reservoir.move_kept(pool, partners, r, table, -c)

            if engine.falls_due(table, how, eta):
                shrink(table, how, eta, printed, l1)
            skipped += 1.0
            if skipped == askip:
                stats.add_to_average(table, 1.0)
                skipped = 0.0
        reservoir.keep(X, i, side, abs(y[i]) / n[side], pool)
    z[T] = t


class PairSampler(OnlineAUC):
    """Base of SAM, ASAM (``askip`` above zero) and PSAM (``_proximal``)."""

    l1: float
    eta0: float
    schedule: str
    rskip: int
    askip: int = 0

    _proximal: ClassVar[bool] = False
    is_hinge: ClassVar[bool] = True  # the loss has no curvature

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineAUC._parameter_constraints,
        "schedule": [StrOptions({"inv", "printed"})],
        "rskip": [COUNT],
        "askip": [COUNT],
    }

    def _start(self, n_features: int) -> State:
        # A copy: an empty state does not advance the user's generator.
        rng = generator(deepcopy(self.random_state))
        return init(n_features, bool(self.precondition), rng)

    def _begin(self, rows: Rows, moments: ClassMoments) -> State:
        state: State = super()._begin(rows, moments)
        state.z[LENGTH] = pairs.mean_length(state.table)
        state.z[N_POS : N_NEG + 1] = moments.rows
        return state

    def _validate_state(self, state: State) -> None:
        reservoir.check(state.pool, state.table.n, self.n_features_in_)

    def _visit(self, rows: Rows, state: State, learn: bool) -> Visit:
        how = super()._visit(rows, state, learn)
        if self.schedule == "printed":
            return how._replace(stretch=float(self.rskip), most=np.inf)
        stretch = float(max(self.rskip, self.n_features_in_ // _FEATURES))
        return how._replace(stretch=stretch)

    def _hyper(self) -> tuple[bool, bool, float, float, float]:
        printed, eta0 = self.schedule == "printed", float(self.eta0)
        return self._proximal, printed, eta0, float(self.askip), float(self.l1)

    def _run(
        self, rows: Rows, signed: Float, state: State, rng: np.random.RandomState
    ) -> None:
        sides = pair_order(signed, rng)
        left = self.max_iter * int(np.count_nonzero(signed))
        how = self._visit(rows, state, learn=False)
        while left > 0:
            pos, neg = (order.take(min(left, _PIECE)) for order in sides)
            update(rows, pos, neg, state, how, *self._hyper())
            left -= _PIECE
        for side, order in enumerate(sides):  # for a later partial_fit
            chosen = order.sample(min(len(order.rows), reservoir.ROWS))
            reservoir.fill(rows, chosen, side, state.pool)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: Visit
    ) -> None:
        learn_rows(X, y, order, state, how, *self._hyper())

    def _weights(self, state: State) -> tuple[Float, float]:
        return engine.averaged(state.table)
