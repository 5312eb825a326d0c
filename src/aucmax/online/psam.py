r"""SAM, ASAM and PSAM: stochastic AUC maximisation by random pairs.

Khalid, Ray and Chitsaz (dissertation of Khalid 2019, Algorithms 10 and 11) minimise the
pairwise hinge loss, J of :class:`PSAM`, by one random pair a step, z = x⁺ - x⁻: w += η
z if w·z < 1. Every ``rskip`` steps the penalty of all of them is applied at once. Every
``askip`` steps w enters a running mean, which ASAM and PSAM return; SAM returns w
itself. PSAM replaces the subgradient by the proximal map of the loss,

.. math:: \arg\min_v \; \eta \max(0, 1 - v \cdot z) + \tfrac12 \|v - w\|^2
          = w + \min\bigl(\eta, \max(0, 1 - w \cdot z) / \|z\|^2\bigr)\, z ,

which goes along z no further than to the margin of one, so that no step size is too
large. Norms are those of the metric of the steps, z·Dz and w·D⁻¹w.

Deviations from the dissertation, none of which moves the minimum:

* steps are scaled feature by feature (:mod:`aucmax.online.engine`), so raw features do
  as well as standardised ones; the penalty is still that of the raw weights;
* the penalty is applied by its proximal map, 1/(1 + l2 Σ η D), where the dissertation
  multiplies by 1 - rskip/(t + t₀): the same to first order, but never negative. On wide
  data it is applied less often, so that it costs O(1) a step. With ``l1``, the proximal
  map is a soft threshold first (equation 7.1 allows any convex penalty, Algorithm 11
  has the l2 one);
* each class is shuffled again and again (:class:`RowOrder`);
* η_t = 1/(l2 (t + t₀)) is written 1/(1/η₀ + l2 D_min t), with η₀ in units of one over
  the mean of ‖z‖²: the same, if D = 1 and t₀ = 1/(l2 η₀);
* ``partial_fit`` pairs each row of a stream with two random rows of the other class
  from a reservoir (:mod:`aucmax.online.engine.reservoir`).

**Random pair order.** Each class is visited in random order and shuffled again when it
is exhausted. Both rows of a pair are uniform and independent, as in the papers, but no
row is repeated before all others of its class have been used.
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

Index = NDArray[np.int64]

_SMALL = 4096  # rows drawn at a time at least; small classes are repeated


class RowOrder:
    """Rows of one class in random order, in proportion to their weights."""

    def __init__(self, rows: Index, weight: Float, rng: np.random.RandomState) -> None:
        self.rows, self.rng = rows, rng
        self._until = None if (weight == weight[0]).all() else np.cumsum(weight)
        self._next: Index = np.zeros(0, np.int64)

    def sample(self, size: int) -> Index:
        """Return ``size`` rows in proportion to their weights, sorted.

        Systematic sampling: a row with k / size of the weight occurs k times, rounded
        at random without bias.
        """
        if self._until is None and size == len(self.rows):
            return self.rows
        at = (np.arange(size) + self.rng.random_sample()) / size
        if self._until is None:
            place = (at * len(self.rows)).astype(np.int64)
        else:
            place = np.searchsorted(self._until, at * self._until[-1], side="right")
        return self.rows[np.minimum(place, len(self.rows) - 1)]

    def take(self, k: int) -> Index:
        """Return the next ``k`` rows."""
        parts, left = [self._next[:k]], k - len(self._next)
        self._next = self._next[k:]
        while left > 0:
            rows = self._shuffled()
            parts.append(rows[:left])
            self._next = rows[left:]
            left -= len(rows)
        return np.concatenate(parts)

    def _shuffled(self) -> Index:
        size = len(self.rows)
        times = max(_SMALL // size, 1)
        return np.concatenate(
            [self.rng.permutation(self.sample(size)) for _ in range(times)]
        )


def pair_order(y: Float, rng: np.random.RandomState) -> tuple[RowOrder, RowOrder]:
    """Return the orders of the positives and of the negatives of signed ``y``."""
    sides = (np.flatnonzero(y > 0.0), np.flatnonzero(y < 0.0))
    positives, negatives = (RowOrder(rows, np.abs(y[rows]), rng) for rows in sides)
    return positives, negatives


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


_PARAMETERS = r"""
Parameters
----------
l2 : float or "auto", default="auto"
    Ridge penalty, the papers' :math:`\lambda`. "auto" sets it for each feature to 1e-3
    times its mean square where it is not zero, which does not depend on units.
l1 : float, default=0.0
    Lasso penalty on the weights of the features as given; with ``l2`` an elastic net.
    A mean of iterates has hardly any exact zeros; the ``l1`` of :class:`BAM` and
    :class:`SPAM` gives them.
eta0 : float, default=ETA0
    First step size, in units of one over the mean of :math:`\|x^+ - x^-\|^2`; steps
    fall with the number of pairs, faster for larger ``l2``.
schedule : {"inv", "printed"}, default="inv"
    "printed" takes ``eta0`` as a plain number and subtracts the penalty, as in the
    dissertation.
rskip : int, default=16
    Steps between two applications of the penalty; more on wide data.
ASKIPprecondition : bool, default=True
    Scale features internally; this does not move the minimum.
max_iter : int, default=5
    Number of passes in ``fit``: pairs per row.
random_state : int, RandomState instance or None, default=None
    Random seed of the pairs.
"""
_ASKIP = """askip : int, default=16
    Steps between two iterates that enter the mean.
"""


class SAM(PairSampler):
    r"""Stochastic AUC maximisation with the pairwise hinge loss.

    :class:`PSAM` with plain steps and without the mean: a pair within the margin of one
    moves the weights along its difference by the whole step size, and the last iterate
    is returned. It needs a smaller first step than a mean.

    See Also
    --------
    PSAM : Proximal steps and the mean of the iterates; recommended.

    Notes
    -----
    As published: ``SAM(l2, eta0=1 / (l2 * t0), schedule="printed",
    precondition=False)`` and ``fit``: Algorithm 10 of [1]_ without averaging.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 10.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(SAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _sections = (
        _PARAMETERS.replace("ETA0", "0.1").replace("ASKIP", "") + PairSampler._sections
    )

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        l1: float = 0.0,
        eta0: float = 0.1,
        schedule: str = "inv",
        rskip: int = 16,
        precondition: bool = True,
        max_iter: int = 5,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.eta0 = eta0
        self.schedule = schedule
        self.rskip = rskip
        self.precondition = precondition
        self.max_iter = max_iter
        self.random_state = random_state


class ASAM(SAM):
    r"""Accelerated stochastic AUC maximisation with the pairwise hinge loss.

    :class:`PSAM` with plain steps: a pair within the margin of one moves the weights
    along its difference by the whole step size. Returns the mean of the iterates.

    See Also
    --------
    PSAM : The same with proximal steps, at the same cost.

    Notes
    -----
    As published: ``ASAM(l2, eta0=1 / (l2 * t0), schedule="printed",
    precondition=False)`` and ``fit``: Algorithm 10 of [1]_.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 10.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import ASAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(ASAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _sections = (
        _PARAMETERS.replace("ETA0", "1.0").replace("ASKIP", _ASKIP)
        + PairSampler._sections
    )

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        l1: float = 0.0,
        eta0: float = 1.0,
        schedule: str = "inv",
        rskip: int = 16,
        askip: int = 16,
        precondition: bool = True,
        max_iter: int = 5,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            l2,
            l1=l1,
            eta0=eta0,
            schedule=schedule,
            rskip=rskip,
            precondition=precondition,
            max_iter=max_iter,
            random_state=random_state,
        )
        self.askip = askip


class PSAM(ASAM):
    r"""Proximal stochastic AUC maximisation with the pairwise hinge loss.

    Minimises, one random pair of rows a step,

    .. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-))
              + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1 .

    A pair within the margin of one moves the weights along its difference, but no
    further than to that margin. Returns the mean of the iterates.

    See Also
    --------
    ASAM : The same with plain steps.
    SAM : Plain steps, without the mean.
    SPAM : The pairwise square loss, one row a step.

    Notes
    -----
    A pair costs the non-zeros of its two rows. Memory is eleven numbers per feature,
    and for ``partial_fit`` up to 256 rows of each class (at most 2¹⁹ values, or one
    row). ``fit`` makes one more pass for exact class moments.

    As published: ``PSAM(l2, eta0=1 / (l2 * t0), schedule="printed",
    precondition=False)`` and ``fit``. For the order of pairs see
    :mod:`aucmax.online.psam`.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 11.
    .. [2] A. Bordes, L. Bottou, P. Gallinari, "SGD-QN: Careful Quasi-Newton Stochastic
       Gradient Descent", JMLR 10, 2009 (the penalty every so many steps).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import PSAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(PSAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _proximal: ClassVar[bool] = True
