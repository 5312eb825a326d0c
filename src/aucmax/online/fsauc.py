r"""FSAUC: fast stochastic AUC maximisation, in stages.

Liu, Zhang, Chen, Wang and Yang (ICML 2018) solve the saddle point of
:mod:`aucmax.online.solam`,

.. math:: \min_{\|w\|_1 \le R,\, a,\, b}\ \max_\alpha\ E\, F(w, a, b, \alpha; x, y)
          + \tfrac{p (1 - p)\, l_2}{2} \|w\|^2 ,

in stages of constant step size. A stage keeps v = (w, a, b) within r of its start and α
within D. The next stage starts from the mean of its iterates, with α from the class
means, half the r and half the step size. The mean of a stage of constant steps forgets
its start exponentially fast, which a mean over all of a stream never does: hence O(1/n)
instead of SOLAM's O(1/√n).

Deviations from the paper, none of which moves the minimum:

* rows are centred and steps scaled feature by feature, the l1 ball holds the weights at
  unit scale, and p enters through effective rows 4p(1 - p)n, as in
  :mod:`aucmax.online.solam`. In these coordinates, divided by the root mean squared
  norm of a row, κ is one, and w, a, b and α take steps of one size, as in the paper;
* *capped* steps are explicit ones, cut where the residual of the row vanishes. Like the
  implicit steps of :mod:`aucmax.online.solam` they do not overshoot; but those, at a
  constant size, do not have their mean at the minimum, as they weigh rows by their
  norms. Steps of a, b and α are at most ¼, or w could not follow;
* a and b start a stage from the class means, as α does;
* Lemma 1 bounds the error of the class means by
  1 / (min(p, 1-p) T - √(2T log(12/δ))), which is negative until T is about
  10 / min(p, 1-p)², and with constants that make the steps of the second stage many
  times those of the first. Here it is their variance, at most ‖w‖² / (p(1-p) T) over
  *all* T rows so far, and at most that of a single row: β = 1 + 8κ² + 2 var / r²,
  D = 2√2 κr + 3 √var. It is finite from the first pair on, small after a few rows of
  both classes, and zero in ``fit``, where the class means are exact. Steps never grow
  from stage to stage;
* the steps of the first stage are η₀/√(1 + ñ₀/(4d)), with ñ₀ its effective rows and d
  the effective number of features: the paper's 1/√n₀, but full steps for wide data
  (:mod:`aucmax.online.engine.step_sizes`). For wide data r, too, is halved no sooner
  than 1/√(1 + t̃/d) has halved, t̃ the effective rows so far;
* in a stream of unknown length each stage is twice as long as the one before, and r
  falls like 1/√(1 + t̃/(4d)): the paper's r ∝ 1/√n. (Halved with each doubling, steps
  would fall like 1/n: too fast, unless the convexity is known.) Within a stage, the
  weights are a mean of its start and its mean so far;
* after the l1 ball and the box, the ball around the start is a pull towards the start:
  a point of the intersection, as by the paper's alternating projections, without
  iterations. The l1 ball may be exceeded by 1 % between projections, which cost O(d);
  the weights returned are inside.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import ClassMoments
from aucmax.base.constraints import COUNT, NON_NEGATIVE, POSITIVE
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows, entry, rowwise, stored
from aucmax.online import engine
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import Stream, Table, Visit
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.centred_rows import others, seen
from aucmax.online.engine.feature_table import average_part, norms, rebase
from aucmax.online.engine.statistics import (
    average_weight,
    class_balance,
    effective_width,
    rows_seen,
)
from aucmax.online.solam import clip, l1_threshold, project_weights, saddle_gradient

FIRST = 16.0  # effective rows in the first stage of a stream
_PATIENCE = 4.0  # effective rows per feature with full steps
BETA0 = 9.0  # 1 + 8 κ²

# Slots of State.z: steps, in all and in this stage; the stage, from 1; number of
# planned stages, and the length of one, or of an unplanned one in effective rows; the
# radii r and D; β; r and the step size η relative to the first stage; the variables a,
# b and α, and their starts; the factor s of the weights, w = w₁ + s W; ‖w - w₁‖²;
# whether ‖w‖₁ is tracked, and its bound if it is, else ‖w₁‖₁; the largest norm of a
# row; as printed Σ a and Σ b. (Σ s is the weight of the average, in the table.)
T, DONE, STAGE, PLANNED, LENGTH, BALL, DUAL, BETA, FALL, ETA = range(10)
A, B, ALPHA, A1, B1, ALPHA1, SCALE, REACH, NEAR, SIZE, KAPPA, SUM_A, SUM_B = range(
    10, 23
)


@kernel
def plan(n: float, balance: float, width: float) -> tuple[float, float, float]:
    """Return the number of stages for ``n`` rows, the length of one, and the first η.

    ``balance`` is 4p(1 - p): stages are longer if positives are rare.
    """
    effective = max(balance * n, 2.0)
    m = np.floor(0.5 * np.log2(2.0 * effective / np.log2(effective))) - 1.0
    m = max(m, 1.0)
    length = np.ceil(n / m)
    return m, length, 1.0 / np.sqrt(1.0 + balance * length / (_PATIENCE * width))


def printed_plan(n: int) -> tuple[float, float]:
    """Return m (at least one) and n₀ of the paper's Algorithm 1."""
    m = max(int(0.5 * np.log2(2.0 * n / np.log2(max(n, 2)))) - 1, 1)
    return float(m), float(n // m)


@inlined
def finished(z: Float, done: float, balance: float) -> bool:
    """Return whether the stage is complete after ``done`` steps."""
    if z[STAGE] <= z[PLANNED]:
        return done >= z[LENGTH]
    # The half keeps rounding from deciding when all of these are round numbers.
    return balance * (done + 0.5) >= z[LENGTH]


@inlined
def next_stage(
    z: Float,
    t: float,
    done: float,
    balance: float,
    width: float,
    variance: float,
    printed: bool,
) -> None:
    """Set r, D, β, η and the length for the stage after this one.

    ``t`` and ``done`` are the steps so far and of this stage, ``balance`` is 4p(1 - p),
    ``variance`` that of the new α.
    """
    before = z[FALL]
    if z[STAGE] >= z[PLANNED]:
        z[LENGTH] = 2.0 * (balance * done if z[STAGE] == z[PLANNED] else z[LENGTH])
    if printed:
        z[FALL] = 0.5 * before
    elif z[STAGE] < z[PLANNED]:
        law = 1.0 / np.sqrt(1.0 + balance * t / width)
        z[FALL] = min(max(law, 0.5 * before), before)
    else:
        law = 1.0 / np.sqrt(1.0 + balance * t / (_PATIENCE * width))
        z[FALL] = min(law, before)
    z[BALL] *= z[FALL] / before
    beta = BETA0 + 2.0 * variance / (z[BALL] * z[BALL])
    z[ETA] *= min(z[FALL] / before * np.sqrt(beta / z[BETA]), 1.0)
    z[BETA] = beta
    z[DUAL] = 2.0 * np.sqrt(2.0) * z[BALL] + 3.0 * np.sqrt(variance)
    z[STAGE] += 1.0


@kernel
def arrive(table: Table, start: Float, of_weights: float, of_past: float) -> None:
    """Replace the weights by the mean of the stage; O(d)."""
    w, u, scales = engine.weights(table), average_part(table), engine.scales(table)
    for j in range(w.shape[0]):
        w[j] = start[j] * scales[j] + (of_weights * w[j] - of_past * u[j])


@kernel
def depart(table: Table, start: Float) -> None:
    """Start a stage from the weights; O(d)."""
    w, u, scales = engine.weights(table), average_part(table), engine.scales(table)
    for j in range(w.shape[0]):
        start[j] = w[j] / scales[j] if scales[j] > 0.0 else 0.0
        w[j] = u[j] = 0.0


@inlined
def magnitude(table: Table, start: Float, j: int, factor: float) -> float:
    """Return |w₁ + factor W|/√D of feature ``j``, zero if it has no scale."""
    unit, first = np.sqrt(engine.scales(table)[j]), start[j]
    w = engine.weights(table)[j]
    return abs(first * unit + factor * w / unit) if unit > 0.0 else 0.0


@kernel
def magnitudes(table: Table, start: Float, factor: float) -> Float:
    """Return the magnitudes of all features; O(d)."""
    found = np.zeros(start.shape[0])
    for j in range(start.shape[0]):
        found[j] = magnitude(table, start, j, factor)
    return found


@kernel
def shrink(
    table: Table, start: Float, factor: float, ridge: float, threshold: float
) -> None:
    """Soft-threshold the weights at unit scale, and shrink them; O(d)."""
    past = average_weight(table)
    weights, u, scales = (
        engine.weights(table),
        average_part(table),
        engine.scales(table),
    )
    for j in range(weights.shape[0]):
        w = start[j] * scales[j] + factor * weights[j]
        soft = np.sign(w) * max(abs(w) - threshold * np.sqrt(scales[j]), 0.0)
        change = (soft / (1.0 + ridge * scales[j]) - w) / factor
        weights[j] += change
        u[j] += past * change


CAPPED, IMPLICIT, EXPLICIT = range(3)

_SLACK = 1.01  # factor by which the weights may exceed the l1 ball
_SMALL = 0.1  # a factor of the weights below this is multiplied out
_PACE = 0.25  # largest step of a, b and α that w can follow


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table  # its weights are relative to the start of the stage
    start: Float  # (d,) w₁ / D, so that it follows the scales
    z: Float  # (23,) slots above


def init(n_features: int, precondition: bool, radius: float) -> State:
    """Return the state before the first row."""
    z = np.zeros(23)
    z[LENGTH] = FIRST
    z[STAGE] = z[FALL] = z[ETA] = z[SCALE] = 1.0
    z[BALL] = 2.0 * np.sqrt(3.0) * radius  # 2R √(1 + 2κ²)
    z[DUAL] = 2.0 * np.sqrt(2.0) * z[BALL]
    z[BETA] = BETA0
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
    """Return the score of row ``i`` by the weights at the start of the stage."""
    s, scales = 0.0, engine.scales(table)
    for k in stored(X, i):
        j, x, _ = seen(X, i, k, table.ref)
        s += start[j] * (scales[j] * x)
    for m in others(X, how.listed):
        j = how.listed[m]
        s -= start[j] * (scales[j] * table.ref[j])
    return s


@rowwise
def reach_row(
    X: Rows, i: int, table: Table, how: Visit, start: Float, scale: float
) -> float:
    """Return Σ |w|/√D over the features that a step along row ``i`` moves."""
    s = 0.0
    for k in stored(X, i):
        j, x = entry(X, i, k)
        size = magnitude(table, start, j, scale)
        s += size if (x != 0.0) & (table.ref[j] == 0.0) else 0.0
    for m in range(how.listed[0]):
        s += magnitude(table, start, how.listed[m + 1], scale)
    return s


@kernel
def start_stage(
    state: State,
    how: Visit,
    n_expected: float,
    printed: bool,
    radius: float,
    t: float,
    done: float,
    kappa: float,
    pq: float,
) -> tuple[float, float, float, float]:
    """Start a stage from the mean of the last one; return a, b, α and ‖w‖₁."""
    table, start, z = state
    arrive(table, start, stats.average_weight(table) / done, 1.0 / done)
    stats.clear_penalty(table)
    stats.restart_average(table)
    if stats.is_stale(table):
        engine.renew(table, how)
    project_weights(table, radius)
    squares, size = norms(table)
    a, b = engine.class_scores(table)
    a, b = clip(a, radius * kappa), clip(b, radius * kappa)
    alpha = clip(b - a, 2.0 * radius * kappa)
    if printed:
        a, b = z[SUM_A] / done, z[SUM_B] / done
    z[A1], z[B1], z[ALPHA1] = a, b, alpha
    z[SUM_A] = z[SUM_B] = 0.0
    depart(table, start)
    known = n_expected < 0.0
    variance = 0.0 if known else squares / max(pq * stats.rows_seen(table), 0.5)
    width = stats.effective_width(table)
    next_stage(z, t, done, 4.0 * pq, width, variance, printed)
    return a, b, alpha, size


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

    ``n_expected`` is the length of a stream, zero if it is unknown; in ``fit`` it is
    negative.
    """
    table, start, z = state
    t, done, kappa = z[T], z[DONE], z[KAPPA]
    a, b, alpha = z[A], z[B], z[ALPHA]
    scale, reach = z[SCALE], z[REACH]
    near, size = z[NEAR] != 0.0, z[SIZE]
    p, slack = stats.class_prior(table), 1.0 if printed else _SLACK
    pq = p * (1.0 - p)
    for k in range(order.shape[0]):
        i = order[k]

        if t > 0.0 and done > 0.0 and finished(z, done, 4.0 * pq):
            a, b, alpha, size = start_stage(
                state, how, n_expected, printed, radius, t, done, kappa, pq
            )
            scale, near, reach, done = 1.0, False, 0.0, 0.0

        changes = near and n_expected >= 0.0  # in a stream, rows rescale features
        if changes:
            size -= reach_row(X, i, table, how, start, scale)
        news = engine.learn(X, y, i, table, how)
        reach = max(reach + scale * scale * news.d_squares, 0.0)
        if changes:
            size += reach_row(X, i, table, how, start, scale)
        if not news.ready:
            done += 1.0 if printed else 0.0  # a step without a move
            continue
        p = stats.class_prior(table)
        pq = p * (1.0 - p)
        # Coordinates may change in the first stage, which starts at zero.
        if news.stale and z[STAGE] == 1.0:
            shift = scale * engine.renew(table, how)
            a, b = a + shift, b + shift
            reach = scale * scale * norms(table)[0]
            if n_expected >= 0.0 and not printed:
                replan(z, t + 1.0, table, n_expected)

        # Gradient of F at this row: the one of w is along x.
        v, x_x, _, _ = engine.look_row(X, i, table, how)
        s = scale * v
        if z[STAGE] > 1.0:
            s += start_row(X, i, table, how, start)
        t += 1.0
        eta = z[ETA] * eta0 * stats.weight_of(y, i, table)
        share, g, g_alpha = saddle_gradient(y[i] > 0.0, s, a, b, alpha, p)
        g_alpha -= 2.0 * pq * alpha
        unit = 1.0 if printed else stats.mean_norm(table)  # of squared norms
        gamma = eta / unit
        c = -guarded(rule, gamma, share * x_x) * g
        pace = eta if rule == EXPLICIT else min(eta, _PACE)
        follow = guarded(rule, pace, share) * share

        if printed:  # the mean takes the variables before their step
            stats.add_to_average(table, scale)
            z[SUM_A] += a
            z[SUM_B] += b

        # Step down in (w, a, b), up in alpha.
        a += follow * (s - a) if y[i] > 0.0 else 0.0
        b += follow * (s - b) if y[i] < 0.0 else 0.0
        alpha += guarded(rule, pace, 2.0 * pq) * g_alpha
        if near:
            size -= reach_row(X, i, table, how, start, scale)
        engine.move_row(X, i, table, how, c / scale)
        if near:
            size += reach_row(X, i, table, how, start, scale)
        reach = max(reach + c * (2.0 * scale * v + c * x_x), 0.0)

        # Projections. Mostly a bound shows that w is inside the l1 ball.
        kappa = max(kappa, np.sqrt(max(x_x, 0.0)))
        if not near and size + np.sqrt(start.shape[0] * reach) > 0.5 * radius:
            size = np.sum(magnitudes(table, start, scale))
            near = True
        if near and size > slack * radius:
            found = magnitudes(table, start, scale)
            size = np.sum(found)
            if size > slack * radius:
                tau = l1_threshold(found, radius)
                shrink(table, start, scale, 0.0, tau)
                size = np.sum(magnitudes(table, start, scale))
                reach = scale * scale * norms(table)[0]
        a, b = clip(a, radius * kappa), clip(b, radius * kappa)
        alpha = clip(alpha, 2.0 * radius * kappa)
        reach_alpha = z[DUAL] * np.sqrt(unit)
        alpha = z[ALPHA1] + clip(alpha - z[ALPHA1], reach_alpha)
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
                rebase(table, scale)
                scale = 1.0

        # The mean, the proximal map of the penalty, and exact norms.
        if not printed:
            stats.add_to_average(table, scale)
        done += 1.0
        if engine.falls_due(table, how, pq * gamma):
            if how.l2.plain > 0.0:
                ridge = how.l2.plain * stats.penalty_due(table)
                shrink(table, start, scale, ridge, 0.0)
            stats.clear_penalty(table)
            reach = scale * scale * norms(table)[0]
            size = np.sum(magnitudes(table, start, scale if near else 0.0))
            if n_expected >= 0.0 and z[STAGE] == 1.0 and not printed:
                replan(z, t, table, n_expected)
    z[T], z[DONE], z[KAPPA] = t, done, kappa
    z[A], z[B], z[ALPHA] = a, b, alpha
    z[SCALE], z[REACH] = scale, reach
    z[NEAR], z[SIZE] = near * 1.0, size


@inlined
def replan(z: Float, t: float, table: Table, n_expected: float) -> None:
    """Plan the stages of a stream from what is known at its step ``t``."""
    before = stats.rows_seen(table) - t  # rows before both classes were seen
    left = max(n_expected - before, 1.0)
    number, length, eta = plan(
        left, stats.class_balance(table), stats.effective_width(table)
    )
    known = n_expected > 0.0
    z[PLANNED] = number if known else 0.0
    z[LENGTH] = length if known else FIRST
    z[ETA] = eta if known else z[ETA]


def weights(state: State, radius: float) -> tuple[Float, float]:
    """Return the weights and the intercept.

    The weights are the mean of the stage; until it is complete, they are combined with
    its start, the mean of the stage before.
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
    mean = table._replace(feat=table.feat.copy())
    arrive(mean, start, share * stats.average_weight(table), share)
    project_weights(mean, radius)
    w = engine.weights(mean)
    return w, engine.threshold(w, table)


STEPS = {"capped": CAPPED, "implicit": IMPLICIT, "explicit": EXPLICIT}

_STRETCH = 16  # steps between two proximal maps; d if that is more
_NO_BALL = 1e150  # its square is finite


class FSAUC(OnlineAUC):
    r"""Fast stochastic AUC maximisation with the square loss.

    Solves, one row at a time and in stages of ever smaller steps, the saddle point form
    of

    .. math:: \min_{\|w\|_1 \le R}\ E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    radius : float or None, default=100.0
        Radius R of the l1 ball, for weights at unit scale: at weight 1, one standard
        deviation of a feature is one unit of score. The first stage stays within about
        3.5 R of zero, each later one within half of that of its start. None removes all
        balls. Without ``precondition``, the ball holds the raw weights.
    l2 : float, default=0.0
        Ridge penalty. The papers' :math:`\beta` is :math:`p(1-p)\,l_2`.
    eta0 : float, default=0.5
        Step size of a short first stage, in units of one over the mean squared norm of
        a row; that of a long one falls with the square root of its length.
    schedule : {"stages", "printed"}, default="stages"
        Fit lengths of stages, balls and steps to the data; or take the number and the
        length of stages from the paper, halve ball and step size with each stage, and
        take ``eta0`` as the first step size of all variables, a plain number.
    n_expected : int or None, default=None
        Number of rows that ``partial_fit`` will see in all, to plan the stages as in
        the paper; more may follow. By default, each stage is twice as long as the one
        before. ``fit`` ignores it.
    step : {"capped", "implicit", "explicit"}, default="capped"
        Explicit steps, those of the paper, diverge if ``eta0`` is too large. Capped
        steps end where the residual of the row is zero; implicit ones take it after the
        step. Both can diverge if it is far too large and there are no balls. Divergence
        raises an error.
    .. shared: precondition, passes

    See Also
    --------
    SOLAM : The same saddle point without stages.
    SPAM : The same loss without the dual variables.

    Notes
    -----
    A row costs O(nnz), or O(d) when the l1 ball is left; memory is nine numbers per
    feature. ``fit`` makes one more pass for exact class moments, ``partial_fit`` uses
    running ones. The number of stages for n rows is
    :math:`\lfloor \tfrac12 \log_2 (2 \tilde n / \log_2 \tilde n) \rfloor - 1`, at least
    one, with :math:`\tilde n = 4 p (1 - p) n`. By the paper's Theorem 1, the
    error falls like O(1/n) up to logarithms [1]_.

    The constants of the paper's Lemma 1 are negative or unbounded for few rows or rare
    positives. They bound the error of the class means that a stage starts from; here
    the variance of those means is used, and steps never grow from stage to stage.

    As published: ``FSAUC(R, eta0=eta1, n_expected=n, schedule="printed",
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
        **OnlineAUC._parameter_constraints,
        "radius": [POSITIVE, None],
        "l2": [NON_NEGATIVE],
        "schedule": [StrOptions({"stages", "printed"})],
        "n_expected": [COUNT, None],
        "step": [StrOptions(set(STEPS))],
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
            state.z[PLANNED], state.z[LENGTH] = printed_plan(int(self.n_expected))
        return state

    def _begin(self, rows: Rows, moments: ClassMoments) -> State:
        state: State = super()._begin(rows, moments)
        z, table = state.z, state.table
        n = rows_seen(table) * self.max_iter
        if self.schedule == "printed":
            z[PLANNED], z[LENGTH] = printed_plan(int(n))
            return state
        first = plan(n, class_balance(table), effective_width(table))
        z[PLANNED], z[LENGTH], z[ETA] = first
        return state

    def _visit(self, rows: Rows, state: State, learn: bool) -> Visit:
        how = super()._visit(rows, state, learn)
        stretch = float(max(_STRETCH, self.n_features_in_))
        return how._replace(follows=True, stretch=stretch)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: Visit
    ) -> None:
        n = float(self.n_expected or 0.0) if isinstance(how, Stream) else -1.0
        printed, rule = self.schedule == "printed", STEPS[self.step]
        hyper = n, float(self.eta0), printed, rule, self._radius()
        update(X, y, order, state, how, *hyper)

    def _weights(self, state: State) -> tuple[Float, float]:
        return weights(state, self._radius())
