"""The steps of FSAUC: Algorithm 1, and the sets that it projects on.

See :mod:`aucmax.online.fsauc` for the problem and for deviations from the paper, and
:mod:`aucmax.online.fsauc_stages` for what happens between two stages.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows, entry, rowwise, stored
from aucmax.online import engine
from aucmax.online import fsauc_stages as stages
from aucmax.online.engine import (
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
from aucmax.online.projections import clip, l1_threshold

CAPPED, IMPLICIT, EXPLICIT = range(3)

_SLACK = 1.01  # how far out of the l1 ball the weights may be
_SMALL = 0.1  # a factor below this is multiplied out
_PACE = 0.25  # the largest step of a, b and α that w can follow


class State(NamedTuple):
    """The learner; its arrays change in place."""

    table: Table  # weights from the start of the stage: see engine.feature_table
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
        i = order[k]

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

        changes = near and n_expected >= 0.0  # in a stream, when features are rescaled
        if changes:
            size -= reach_row(X, i, table, how, start, scale)
        news = engine.learn(X, y, i, table, how)
        reach = max(reach + scale * scale * news.d_squares, 0.0)
        if changes:
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
            if how.l2.plain > 0.0:
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
