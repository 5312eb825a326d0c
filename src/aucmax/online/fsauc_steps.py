"""The steps of FSAUC: Algorithm 1 and its projections.

See :mod:`aucmax.online.fsauc` for the problem and the deviations from the paper, and
:mod:`aucmax.online.fsauc_stages` for the stages.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows, entry, rowwise, stored
from aucmax.online import engine
from aucmax.online import fsauc_stages as stages
from aucmax.online.engine import Table, Visit
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.centred_rows import others, seen
from aucmax.online.engine.feature_table import norms, rebase
from aucmax.online.projections import clip, l1_threshold, project_weights
from aucmax.online.solam import saddle_gradient

CAPPED, IMPLICIT, EXPLICIT = range(3)

_SLACK = 1.01  # factor by which the weights may exceed the l1 ball
_SMALL = 0.1  # a factor of the weights below this is multiplied out
_PACE = 0.25  # largest step of a, b and α that w can follow


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table  # its weights are relative to the start of the stage
    start: Float  # (d,) w₁ / D, so that it follows the scales
    z: Float  # (23,) slots in aucmax.online.fsauc_stages


def init(n_features: int, precondition: bool, radius: float) -> State:
    """Return the state before the first row."""
    z = np.zeros(23)
    z[stages.LENGTH] = stages.FIRST
    z[stages.STAGE] = z[stages.FALL] = z[stages.ETA] = z[stages.SCALE] = 1.0
    z[stages.BALL] = 2.0 * np.sqrt(3.0) * radius  # 2R √(1 + 2κ²)
    z[stages.DUAL] = 2.0 * np.sqrt(2.0) * z[stages.BALL]
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
        size = stages.magnitude(table, start, j, scale)
        s += size if (x != 0.0) & (table.ref[j] == 0.0) else 0.0
    for m in range(how.listed[0]):
        s += stages.magnitude(table, start, how.listed[m + 1], scale)
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
    stages.arrive(table, start, stats.average_weight(table) / done, 1.0 / done)
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
        a, b = z[stages.SUM_A] / done, z[stages.SUM_B] / done
    z[stages.A1], z[stages.B1], z[stages.ALPHA1] = a, b, alpha
    z[stages.SUM_A] = z[stages.SUM_B] = 0.0
    stages.depart(table, start)
    known = n_expected < 0.0
    variance = 0.0 if known else squares / max(pq * stats.rows_seen(table), 0.5)
    width = stats.effective_width(table)
    stages.next_stage(z, t, done, 4.0 * pq, width, variance, printed)
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
    t, done, kappa = z[stages.T], z[stages.DONE], z[stages.KAPPA]
    a, b, alpha = z[stages.A], z[stages.B], z[stages.ALPHA]
    scale, reach = z[stages.SCALE], z[stages.REACH]
    near, size = z[stages.NEAR] != 0.0, z[stages.SIZE]
    p, slack = stats.class_prior(table), 1.0 if printed else _SLACK
    pq = p * (1.0 - p)
    for k in range(order.shape[0]):
        i = order[k]

        if t > 0.0 and done > 0.0 and stages.finished(z, done, 4.0 * pq):
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
        if news.stale and z[stages.STAGE] == 1.0:
            shift = scale * engine.renew(table, how)
            a, b = a + shift, b + shift
            reach = scale * scale * norms(table)[0]
            if n_expected >= 0.0 and not printed:
                replan(z, t + 1.0, table, n_expected)

        # Gradient of F at this row: the one of w is along x.
        v, x_x, _, _ = engine.look_row(X, i, table, how)
        s = scale * v
        if z[stages.STAGE] > 1.0:
            s += start_row(X, i, table, how, start)
        t += 1.0
        eta = z[stages.ETA] * eta0 * stats.weight_of(y, i, table)
        share, g, g_alpha = saddle_gradient(y[i] > 0.0, s, a, b, alpha, p)
        g_alpha -= 2.0 * pq * alpha
        unit = 1.0 if printed else stats.mean_norm(table)  # of squared norms
        gamma = eta / unit
        c = -guarded(rule, gamma, share * x_x) * g
        pace = eta if rule == EXPLICIT else min(eta, _PACE)
        follow = guarded(rule, pace, share) * share

        if printed:  # the mean takes the variables before their step
            stats.add_to_average(table, scale)
            z[stages.SUM_A] += a
            z[stages.SUM_B] += b

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
            size = np.sum(stages.magnitudes(table, start, scale))
            near = True
        if near and size > slack * radius:
            found = stages.magnitudes(table, start, scale)
            size = np.sum(found)
            if size > slack * radius:
                tau = l1_threshold(found, radius)
                stages.shrink(table, start, scale, 0.0, tau)
                size = np.sum(stages.magnitudes(table, start, scale))
                reach = scale * scale * norms(table)[0]
        a, b = clip(a, radius * kappa), clip(b, radius * kappa)
        alpha = clip(alpha, 2.0 * radius * kappa)
        reach_alpha = z[stages.DUAL] * np.sqrt(unit)
        alpha = z[stages.ALPHA1] + clip(alpha - z[stages.ALPHA1], reach_alpha)
        d_a, d_b = a - z[stages.A1], b - z[stages.B1]
        distance = np.sqrt(reach + (d_a * d_a + d_b * d_b) / unit)
        if distance > z[stages.BALL]:
            back = z[stages.BALL] / distance
            scale *= back
            reach *= back * back
            a, b = z[stages.A1] + back * d_a, z[stages.B1] + back * d_b
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
                stages.shrink(table, start, scale, ridge, 0.0)
            stats.clear_penalty(table)
            reach = scale * scale * norms(table)[0]
            size = np.sum(stages.magnitudes(table, start, scale if near else 0.0))
            if n_expected >= 0.0 and z[stages.STAGE] == 1.0 and not printed:
                replan(z, t, table, n_expected)
    z[stages.T], z[stages.DONE], z[stages.KAPPA] = t, done, kappa
    z[stages.A], z[stages.B], z[stages.ALPHA] = a, b, alpha
    z[stages.SCALE], z[stages.REACH] = scale, reach
    z[stages.NEAR], z[stages.SIZE] = near * 1.0, size


@inlined
def replan(z: Float, t: float, table: Table, n_expected: float) -> None:
    """Plan the stages of a stream from what is known at its step ``t``."""
    before = stats.rows_seen(table) - t  # rows before both classes were seen
    left = max(n_expected - before, 1.0)
    number, length, eta = stages.plan(
        left, stats.class_balance(table), stats.effective_width(table)
    )
    known = n_expected > 0.0
    z[stages.PLANNED] = number if known else 0.0
    z[stages.LENGTH] = length if known else stages.FIRST
    z[stages.ETA] = eta if known else z[stages.ETA]


def weights(state: State, radius: float) -> tuple[Float, float]:
    """Return the weights and the intercept.

    The weights are the mean of the stage; until it is complete, they are combined with
    its start, the mean of the stage before.
    """
    table, start, z = state
    if not table.n.all():  # no row of the second class yet
        return np.zeros(len(start)), 0.0
    share = 1.0
    if z[stages.STAGE] > 1.0:
        length = z[stages.LENGTH]
        if z[stages.STAGE] > z[stages.PLANNED]:
            length /= 4.0 * float(np.prod(table.n / table.n.sum()))
        share = min(2.0 * z[stages.DONE] / (length + z[stages.DONE]), 1.0)
    share /= z[stages.DONE]
    mean = table._replace(feat=table.feat.copy())
    stages.arrive(mean, start, share * stats.average_weight(table), share)
    project_weights(mean, radius)
    w = engine.weights(mean)
    return w, engine.threshold(w, table)
