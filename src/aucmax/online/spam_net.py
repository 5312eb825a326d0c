r"""SPAM-NET: SPAM with an l1 penalty.

Problem and gradient are those of :mod:`aucmax.online.spam`; only the penalty is treated
differently. The paper soft-thresholds the weights at every step, but steps are mostly
noise, so hardly any weight stays zero. Here weights follow the regularised leader
(McMahan 2011). With g the negative sum of all gradients so far and Λ that of the
penalty's shares,

.. math:: w_j = \frac{\operatorname{sign}(g_j)\, \max(|g_j| - \Lambda l_1, 0)}
                     {1 / (\eta D_j) + \Lambda \lambda_j} .

Without penalties these are the weights of SPAM: when η falls, g is adjusted to keep w.
With them, noise in g grows like √t and the threshold like t, so that weights become
exactly zero; the last iterate is returned, without an average. A weight follows from g
when a row needs it, so the penalty is exact at O(nnz) a row. The mean scores a and b
depend on all weights: they are recomputed once as many values have been visited as
there are features.

Features of weight zero do not move the score, so they count neither in the norm and the
number of features that step sizes are relative to, nor in the implicit step. With 3,000
features of which the minimum has ten, steps are 300 times as long.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows
from aucmax.online import engine
from aucmax.online.engine import L2, Table, Visit
from aucmax.online.engine.centred_rows import centred_row
from aucmax.online.engine.feature_table import class_means, mean_square, ridge
from aucmax.online.engine.statistics import (
    class_prior,
    effective_width,
    mean_norm,
    weight_of,
)
from aucmax.online.engine.step_sizes import step_at

_STRETCH = 16.0  # steps at least between two updates of all weights

# Slots of State.z: steps; mean scores w·(m₊ - ref) and w·(m₋ - ref); η; Λ; steps and
# values since all weights were updated.
T, A, B, ETA, PAID, SINCE, TOUCHED = range(7)


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table
    g: Float  # (d,) negative sum of the gradients
    z: Float  # (7,) slots above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    table = engine.empty(n_features, precondition)
    return State(table, np.zeros(n_features), np.zeros(7))


@inlined
def leader(
    table: Table, g: Float, j: int, l2: L2, l1: float, eta: float, paid: float
) -> float:
    """Return w_j."""
    step = eta * engine.scales(table)[j]
    excess = max(abs(g[j]) - paid * l1, 0.0)
    slope = ridge(table.feat, j, l2)
    return np.copysign(excess, g[j]) * (step / (1.0 + step * paid * slope))


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    eta0: float,
    schedule: int,
    power: float,
    implicit: bool,
    l1: float,
    average: bool,  # not used: SPAM-NET returns the last iterate
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    table, g, z = state
    w, scale, l2 = engine.weights(table), engine.scales(table), how.l2
    t, a, b, eta, paid = z[T], z[A], z[B], z[ETA], z[PAID]
    since, touched = z[SINCE], z[TOUCHED]
    x, at = np.empty(g.shape[0]), np.empty(g.shape[0], np.uint32)
    for i in order:
        news = engine.learn(X, y, i, table, how)
        if not news.ready:
            continue
        a, b = engine.mean_scores(news, y[i], a, b)
        if news.stale:
            engine.renew(table, how)
        p = class_prior(table)

        # A new η, and an update of all weights.
        if t == 0.0 or news.stale or (since >= _STRETCH and touched >= g.shape[0]):
            active = 0.0
            for j in range(g.shape[0]):
                if scale[j] > 0.0:
                    w[j] = leader(table, g, j, l2, l1, eta, paid)
                    active += scale[j] * mean_square(table, j) if w[j] != 0.0 else 0.0
            share = max(active / mean_norm(table), 1.0 / effective_width(table))
            share = min(share, 1.0) if t > 0.0 else 1.0
            next_eta = step_at(schedule, eta0, power, table, t + 1.0, share)
            change = 1.0 / next_eta - 1.0 / eta if t > 0.0 else 0.0
            for j in range(g.shape[0]):
                if scale[j] > 0.0:
                    g[j] += change * (w[j] / scale[j])
            a, b = engine.class_scores(table)
            eta, since, touched = next_eta, 0.0, 0.0

        # Current weights of the row's features; its score and the squared length that
        # the step can change it by.
        s = x_x = 0.0
        length = centred_row(X, i, table.ref, how.listed, x, at)
        for k in range(length):
            j = at[k]
            new = leader(table, g, j, l2, l1, eta, paid)
            m_pos, m_neg = class_means(table, j)
            a += (new - w[j]) * m_pos
            b += (new - w[j]) * m_neg
            w[j] = new
            s += new * x[k]
            x_x += (scale[j] * x[k]) * x[k] if new != 0.0 else 0.0

        # The step, along the row.
        weight = weight_of(y, i, table)
        if y[i] > 0.0:
            pace, goal = 2.0 * eta * weight * (1.0 - p), b + 1.0
        else:
            pace, goal = 2.0 * eta * weight * p, a - 1.0
        c = (goal - s) * (pace / (1.0 + pace * x_x) if implicit else pace)
        t += 1.0
        paid += p * (1.0 - p) * weight
        for k in range(length):
            j = at[k]
            g[j] += c / eta * x[k]
            new = leader(table, g, j, l2, l1, eta, paid)
            m_pos, m_neg = class_means(table, j)
            a += (new - w[j]) * m_pos
            b += (new - w[j]) * m_neg
            w[j] = new
        since += 1.0
        touched += length
    z[T], z[A], z[B], z[ETA], z[PAID] = t, a, b, eta, paid
    z[SINCE], z[TOUCHED] = since, touched


@kernel
def _all_weights(table: Table, g: Float, z: Float, l2: L2, l1: float) -> Float:
    """Return all weights; O(d)."""
    w = np.zeros(g.shape[0])
    for j in range(g.shape[0]):
        w[j] = leader(table, g, j, l2, l1, z[ETA], z[PAID])
    return w


def weights(state: State, l2: L2, l1: float) -> tuple[Float, float]:
    """Return the current weights and the intercept."""
    table, g, z = state
    if z[T] == 0.0:
        return np.zeros(len(g)), 0.0
    w = _all_weights(table, g, z, l2, l1)
    return w, engine.threshold(w, table)
