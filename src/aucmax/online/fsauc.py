r"""FSAUC: fast stochastic AUC maximisation, in stages.

Liu, Zhang, Chen, Wang and Yang (ICML 2018) solve the saddle point of
:mod:`aucmax.online.solam`,

.. math:: \min_{\|w\|_1 \le R,\, a,\, b}\ \max_\alpha\ E\, F(w, a, b, \alpha; x, y)
          + \tfrac{p (1 - p)\, l_2}{2} \|w\|^2 ,

in stages of constant step size. A stage keeps v = (w, a, b) within r of where it
started and α within D; the mean of its iterates is where the next one starts, α anew
from the class means, with half the r and half the step size. The mean of a stage of
constant steps forgets where the stage started exponentially fast, which a mean over all
of a stream never does: hence O(1/n) in place of SOLAM's O(1/√n).

Deviations from the paper, none of which moves the minimum:

* rows are centred and steps scaled feature by feature, weights of the l1 ball are those
  of unit-scale features, and p counts through effective rows 4p(1 - p)n, as in
  :mod:`aucmax.online.solam`. In these coordinates, divided by the root mean squared
  norm of a row, κ is one, and w, a, b and α take steps of one size, as in the paper;
* *capped* steps: explicit ones, cut where the row's own residual vanishes. They do not
  overshoot there, like the implicit steps of :mod:`aucmax.online.solam`; but those, at
  a constant size, do not have their mean at the minimum, as they weigh rows by their
  norms (``benchmarks/bench_fsauc.py`` has both). And a, b and α never take larger steps
  than ¼, or w could not follow;
* a and b start a stage from the class means, as α does: the sums are there anyway;
* Lemma 1 bounds how wrong the class means may be with
  1 / (min(p, 1-p) T - √(2T log(12/δ))), which is negative until T is about
  10 / min(p, 1-p)², and with constants that would make the second stage's steps
  many times those of the first. Here it is their variance, at most
  ‖w‖² / (p(1-p) T) over *all* T rows so far, and at most what a single row has:
  β = 1 + 8κ² + 2 var / r², D = 2√2 κr + 3 √var. That is finite from the first pair on,
  is next to nothing after a few rows of both classes, and is zero in ``fit``, where
  the class means are exact. Steps never grow from stage to stage;
* the first stage's steps are η₀/√(1 + ñ₀/(4d)), ñ₀ its effective rows and d the
  features that make up the norm of a row: the paper's 1/√n₀, but full steps for wide
  data (:mod:`aucmax.core.steps`). For those r, too, is halved no sooner than
  1/√(1 + t̃/d) has halved, t̃ the effective rows so far;
* a stream of unknown length has stages twice as long as the one before, and r falls
  like 1/√(1 + t̃/(4d)): the paper's r ∝ 1/√n. (Halved with each doubling, steps would
  fall like 1/n: too fast, unless the convexity is known.) Within a stage, the weights
  are a mean of its start and its mean so far;
* after the l1 ball and the box, the ball around the start is a pull towards the start,
  which stays inside: a point of the intersection, like that of the paper's alternating
  projections, without iterations. The l1 ball may be overstepped by 1 % between
  projections, which are O(d); the weights returned are inside.

The Notes of the class have the settings that switch back, all but Lemma 1.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core import engine
from aucmax.core.base import OnlineAUC
from aucmax.core.engine import (
    DUE,
    NORM,
    PAST,
    ROWS,
    SINCE,
    WIDTH,
    D,
    P,
    Table,
    Visit,
    W,
)
from aucmax.core.jit import inlined, kernel
from aucmax.core.project import clip, l1_threshold
from aucmax.core.rows import Float, Rows, entry, rowwise, stored
from aucmax.core.tally import Tally
from aucmax.online import fsauc_stages as stages
from aucmax.online.fsauc_stages import (
    A1,
    ALPHA1,
    B1,
    BALL,
    DONE,
    DUAL,
    KAPPA,
    LENGTH,
    NEAR,
    PLANNED,
    REACH,
    SCALE,
    STAGE,
    SUM_A,
    SUM_B,
    A,
    B,
    T,
)

CAPPED, IMPLICIT, EXPLICIT = range(3)
STEPS = {"capped": CAPPED, "implicit": IMPLICIT, "explicit": EXPLICIT}

_STRETCH = 16  # steps at least, d at most, between two proximal maps
_SLACK = 1.01  # how far out of the l1 ball the weights may be
_SMALL = 0.1  # a factor below this is multiplied out
_PACE = 0.25  # the largest step of a, b and α that w can follow
_NO_BALL = 1e150  # its square is finite


class State(NamedTuple):
    """The learner; its arrays change in place."""

    table: Table  # weights from the start of the stage: see aucmax.core.engine.table
    start: Float  # (d,) w₁ / D, so that it follows the scales
    z: Float  # (23,) numbers, see aucmax.online.fsauc_stages


def init(n_features: int, precondition: bool, radius: float) -> State:
    """Return the state before the first row."""
    z = np.zeros(23)
    z[LENGTH] = stages.FIRST
    z[STAGE] = z[stages.FALL] = z[stages.ETA] = z[SCALE] = 1.0
    z[BALL] = 2.0 * np.sqrt(3.0) * radius  # 2R √(1 + 2κ²)
    z[DUAL] = 2.0 * np.sqrt(2.0) * z[BALL]
    z[stages.BETA] = stages.BETA0
    return State(engine.empty(n_features, precondition), np.zeros(n_features), z)


@inlined
def guarded(rule: int, step: float, curvature: float) -> float:
    """Return a step that does not overshoot the minimum along it, by ``rule``."""
    if rule == CAPPED:
        return step / max(step * curvature, 1.0)
    if rule == IMPLICIT:
        return step / (1.0 + step * curvature)
    return step


@rowwise
def start_row(X: Rows, i: int, table: Table, how: Visit, start: Float) -> float:
    """Return the score of row ``i`` by the weights that the stage started from."""
    s = 0.0
    for k in stored(X, i):
        j, x, _ = engine.seen(X, i, k, table.ref)
        s += start[j] * (table.feat[D, j] * x)
    for m in engine.others(X, how.listed):
        j = how.listed[m]
        s -= start[j] * (table.feat[D, j] * table.ref[j])
    return s


@rowwise
def reach_row(
    X: Rows, i: int, table: Table, how: Visit, start: Float, scale: float
) -> float:
    """Return Σ |w|/√D over the features that a step along row ``i`` moves."""
    s = 0.0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        size = stages.magnitude(table.feat, start, j, scale)
        s += size if (x != 0.0) & (table.ref[j] == 0.0) else 0.0
    for m in range(how.listed[0]):
        s += stages.magnitude(table.feat, start, how.listed[m + 1], scale)
    return s


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    n_expected: float,
    eta0: float,
    printed: bool,
    rule: int,
    radius: float,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``.

    ``n_expected`` is the length of a stream, zero if it is not known; below zero, all
    is planned.
    """
    table, start, z = state
    feat, stats = table.feat, table.stats
    t, done, a, b, alpha = z[T], z[DONE], z[A], z[B], z[stages.ALPHA]
    scale, reach, near, size = z[SCALE], z[REACH], z[NEAR] != 0.0, z[stages.SIZE]
    kappa = z[KAPPA]
    pq, slack = stats[P] * (1.0 - stats[P]), 1.0 if printed else _SLACK
    for k in range(order.shape[0]):
        i = engine.take(X, order, k, table, how)

        # A new stage, from the mean of the last, with the class means of its rows.
        if t > 0.0 and done > 0.0 and stages.finished(z, done, 4.0 * pq):
            stages.arrive(feat, start, stats[PAST] / done, 1.0 / done)
            stats[DUE] = stats[SINCE] = stats[PAST] = 0.0
            if stats[ROWS] >= stats[engine.RENEW_AT]:
                engine.renew(table, how)
            tau = l1_threshold(engine.unit_magnitudes(feat), radius)
            engine.soften(feat, tau, 0.0)
            squares, size = engine.norms(feat)
            a, b = engine.class_scores(table)
            a, b = clip(a, radius * kappa), clip(b, radius * kappa)
            alpha = clip(b - a, 2.0 * radius * kappa)
            if printed:
                a, b = z[SUM_A] / done, z[SUM_B] / done
            z[A1], z[B1], z[ALPHA1] = a, b, alpha
            stages.depart(feat, start)
            variance = 0.0 if n_expected < 0.0 else squares / max(pq * stats[ROWS], 0.5)
            stages.next_stage(z, t, done, 4.0 * pq, stats[WIDTH], variance, printed)
            scale, near, reach, done, z[SUM_A], z[SUM_B] = (
                1.0,
                False,
                0.0,
                0.0,
                0.0,
                0.0,
            )

        if near:
            size -= reach_row(X, i, table, how, start, scale)
        news = engine.learn(X, y, i, table, how)
        reach = max(reach + scale * scale * news.d_squares, 0.0)
        if near:
            size += reach_row(X, i, table, how, start, scale)
        if not news.ready:
            done += 1.0 if printed else 0.0  # a step at which nothing moves
            continue
        p = stats[P]
        pq = p * (1.0 - p)
        # In the first stage, which starts at zero, coordinates may change.
        if news.stale and z[STAGE] == 1.0:
            shift = scale * engine.renew(table, how)
            a, b = a + shift, b + shift
            reach = scale * scale * engine.norms(feat)[0]
            if n_expected >= 0.0 and not printed:
                replan(z, t + 1.0, stats, n_expected)

        # Gradient of F at this row: the one of w is along x.
        v, x_x, _, _ = engine.look_row(X, i, table, how)
        s = scale * v
        if z[STAGE] > 1.0:
            s += start_row(X, i, table, how, start)
        t += 1.0
        eta = z[stages.ETA] * eta0 * engine.weight_of(y, i, table)
        if y[i] > 0.0:
            share = 2.0 * (1.0 - p)
            g = share * (s - a - 1.0 - alpha)
            g_alpha = -share * s - 2.0 * pq * alpha
        else:
            share = 2.0 * p
            g = share * (s - b + 1.0 + alpha)
            g_alpha = share * s - 2.0 * pq * alpha
        unit = 1.0 if printed else stats[NORM]  # of squared norms
        gamma = eta / unit
        c = -guarded(rule, gamma, share * x_x) * g
        pace = eta if rule == EXPLICIT else min(eta, _PACE)
        follow = guarded(rule, pace, share) * share

        if printed:  # the mean has the variables from before their step
            stats[PAST] += scale
            z[SUM_A] += a
            z[SUM_B] += b

        # Step down in (w, a, b), up in alpha.
        if y[i] > 0.0:
            a += follow * (s - a)
        else:
            b += follow * (s - b)
        alpha += guarded(rule, pace, 2.0 * pq) * g_alpha
        if near:
            size -= reach_row(X, i, table, how, start, scale)
        engine.move_row(X, i, table, how, c / scale)
        if near:
            size += reach_row(X, i, table, how, start, scale)
        reach = max(reach + c * (2.0 * scale * v + c * x_x), 0.0)

        # Back into the sets. Mostly a bound is enough to know that w is in the l1 ball.
        kappa = max(kappa, np.sqrt(max(x_x, 0.0)))
        if not near and size + np.sqrt(feat.shape[1] * reach) > 0.5 * radius:
            size = np.sum(stages.magnitudes(feat, start, scale))
            near = True
        if near and size > slack * radius:
            found = stages.magnitudes(feat, start, scale)
            size = np.sum(found)
            if size > slack * radius:
                tau = l1_threshold(found, radius)
                stages.shrink(feat, start, scale, stats[PAST], 0.0, tau)
                size = np.sum(stages.magnitudes(feat, start, scale))
                reach = scale * scale * engine.norms(feat)[0]
        a, b = clip(a, radius * kappa), clip(b, radius * kappa)
        alpha = clip(alpha, 2.0 * radius * kappa)
        alpha = z[ALPHA1] + clip(alpha - z[ALPHA1], z[DUAL] * np.sqrt(unit))
        d_a, d_b = a - z[A1], b - z[B1]
        distance = np.sqrt(reach + (d_a * d_a + d_b * d_b) / unit)
        if distance > z[BALL]:
            back = z[BALL] / distance
            scale *= back
            reach *= back * back
            a, b = z[A1] + back * d_a, z[B1] + back * d_b
            if near:
                size = back * size + (1.0 - back) * radius  # a bound: w₁ is inside
            if scale < _SMALL:
                engine.rebase(feat, scale, stats[PAST])
                scale, stats[PAST] = 1.0, 0.0

        # The mean; the proximal map of the penalty, and what drifts, exactly.
        if not printed:
            stats[PAST] += scale
        done += 1.0
        if engine.falls_due(table, how, pq * gamma):
            ridge = how.l2.plain * stats[DUE]
            stages.shrink(feat, start, scale, stats[PAST], ridge, 0.0)
            stats[DUE] = stats[SINCE] = 0.0
            reach = scale * scale * engine.norms(feat)[0]
            size = np.sum(stages.magnitudes(feat, start, scale if near else 0.0))
            if n_expected >= 0.0 and z[STAGE] == 1.0 and not printed:
                replan(z, t, stats, n_expected)
    z[T], z[DONE], z[A], z[B], z[stages.ALPHA] = t, done, a, b, alpha
    z[SCALE], z[REACH], z[NEAR], z[stages.SIZE] = scale, reach, near * 1.0, size
    z[KAPPA] = kappa


@inlined
def replan(z: Float, t: float, stats: Float, n_expected: float) -> None:
    """Plan the stages of a stream for what is known at its step ``t``."""
    before = stats[ROWS] - t  # rows of one class, which taught nothing
    left = max(n_expected - before, 1.0)
    balance = 4.0 * stats[P] * (1.0 - stats[P])
    number, length, eta = stages.plan(left, balance, stats[WIDTH])
    known = n_expected > 0.0
    z[PLANNED] = number if known else 0.0
    z[LENGTH] = length if known else stages.FIRST
    z[stages.ETA] = eta if known else z[stages.ETA]


def weights(state: State, radius: float) -> tuple[Float, float]:
    """Return the weights and the intercept.

    They are the mean of the stage once it is complete. Until then, its start, which is
    the mean of a whole stage, has a share.
    """
    table, start, z = state
    if not table.n.all():  # no row of the second class yet
        return np.zeros(len(start)), 0.0
    share = 1.0
    if z[STAGE] > 1.0:
        length = z[LENGTH]
        if z[STAGE] > z[PLANNED]:
            length /= 4.0 * float(np.prod(table.n / table.n.sum()))
        share = min(2.0 * z[DONE] / (length + z[DONE]), 1.0)
    share /= z[DONE]
    mean = table.feat.copy()
    stages.arrive(mean, start, share * table.stats[PAST], share)
    engine.soften(mean, l1_threshold(engine.unit_magnitudes(mean), radius), 0.0)
    return mean[W], engine.threshold(mean[W], table)


class FSAUC(OnlineAUC):
    r"""Fast stochastic AUC maximisation with the square loss.

    Solves, one row at a time and in stages of ever smaller steps, the saddle point form
    of

    .. math:: \min_{\|w\|_1 \le R}\ E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    radius : float or None, default=100.0
        Radius R of the l1 ball, for weights of unit-scale features: 1 is the weight of
        a feature one standard deviation of which is one unit of score. The first stage
        stays within about 3.5 R of zero, each further one within half of that of where
        it starts. None stands for no balls at all. Without ``precondition``, weights
        are measured as they are.
    l2 : float, default=0.0
        Ridge penalty. The papers' :math:`\beta` is :math:`p(1-p)\,l_2`.
    eta0 : float, default=0.5
        Step size of a short first stage, in units of one over the mean squared norm of
        a row; that of a long one falls with the square root of its length.
    schedule : {"stages", "printed"}, default="stages"
        Whether lengths of stages, balls and steps fit the data; or stages are as many
        and as long as in the paper, each with half the ball and half the step size of
        the one before, and ``eta0`` is the first step size of all variables, a plain
        number.
    n_expected : int or None, default=None
        Rows that ``partial_fit`` will see in all, which are then divided into stages as
        in the paper; more may come. Without it, each stage is twice as long as the one
        before. ``fit`` knows.
    step : {"capped", "implicit", "explicit"}, default="capped"
        Explicit steps are those of the paper and diverge if ``eta0`` is too large.
        Capped ones end where the residual of the row is zero; implicit ones take it
        after the step. Both may diverge, if it is far too large and there are no balls.
        That is an error.
    precondition : bool, default=True
        Whether features are centred and scaled inside, by class moments. The objective
        is the same without, the number of passes to its minimum is not.
    max_iter : int, default=5
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Whether each pass of ``fit`` visits the rows in a new random order.
    random_state : int, RandomState instance or None, default=None
        Seed of that order.

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
    SOLAM : The same saddle point without stages.
    SPAM : The same loss without the dual variables.

    Notes
    -----
    A row costs O(nnz), or O(d) when the l1 ball is left; memory is nine numbers a
    feature. ``fit`` reads the data once more, for exact class moments, and
    ``partial_fit`` uses running ones. Of n rows, the stages are
    :math:`m = \lfloor \tfrac12 \log_2 (2 \tilde n / \log_2 \tilde n) \rfloor - 1`, at
    least one, where :math:`\tilde n = 4 p (1 - p) n`. By the paper's Theorem 1, the
    error falls like O(1/n) up to logarithms [1]_.

    The constants of the paper's Lemma 1 are negative or without bound for few rows or
    rare positives. What they bound is the error of the class means from which a stage
    starts; in its place stands the variance of those means, counting all rows so far
    and at least one of each class, and steps never grow from stage to stage.

    As printed: ``FSAUC(R, eta0=eta1, n_expected=n, schedule="printed",
    step="explicit", precondition=False)`` and ``partial_fit``, for rows of norm one
    (κ = 1), but for Lemma 1. The first step size stands for the paper's G.

    References
    ----------
    .. [1] M. Liu, X. Zhang, Z. Chen, X. Wang, T. Yang, "Fast Stochastic AUC
       Maximization with O(1/n)-Convergence Rate", ICML 2018, Algorithms 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import FSAUC
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(FSAUC(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "l2": [Interval(Real, 0, None, closed="left")],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"stages", "printed"})],
        "n_expected": [Interval(Integral, 1, None, closed="left"), None],
        "step": [StrOptions(set(STEPS))],
        "precondition": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        radius: float | None = 100.0,
        *,
        l2: float = 0.0,
        eta0: float = 0.5,
        schedule: str = "stages",
        n_expected: int | None = None,
        step: str = "capped",
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.n_expected = n_expected
        self.step = step
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _radius(self) -> float:
        return _NO_BALL if self.radius is None else min(float(self.radius), _NO_BALL)

    def _start(self, n_features: int) -> State:
        state = init(n_features, bool(self.precondition), self._radius())
        if self.schedule == "printed" and self.n_expected is not None:
            state.z[PLANNED], state.z[LENGTH] = stages.printed_plan(
                int(self.n_expected)
            )
        return state

    def _begin(self, rows: Rows, tally: Tally) -> State:
        state: State = super()._begin(rows, tally)
        z, stats = state.z, state.table.stats
        n = float(stats[ROWS]) * self.max_iter
        if self.schedule == "printed":
            z[PLANNED], z[LENGTH] = stages.printed_plan(int(n))
            return state
        balance = 4.0 * float(stats[P] * (1.0 - stats[P]))
        first = stages.plan(n, balance, float(stats[WIDTH]))
        z[PLANNED], z[LENGTH], z[stages.ETA] = first
        return state

    def _visit(self, rows: Rows, state: State, learn: bool) -> Visit:
        how = super()._visit(rows, state, learn)
        stretch = float(max(_STRETCH, self.n_features_in_))
        return how._replace(follows=True, stretch=stretch)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: Visit
    ) -> None:
        n = float(self.n_expected or 0.0) if isinstance(how, engine.Stream) else -1.0
        printed, rule = self.schedule == "printed", STEPS[self.step]
        hyper = n, float(self.eta0), printed, rule, self._radius()
        update(X, y, order, state, how, *hyper)

    def _weights(self, state: State) -> tuple[Float, float]:
        return weights(state, self._radius())
