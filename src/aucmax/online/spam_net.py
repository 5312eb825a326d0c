r"""SPAM-NET: SPAM with an l1 penalty.

The problem is that of :mod:`aucmax.online.spam`, and so is the gradient at a row. What
differs is how the penalty is taken in. The paper soft-thresholds the weights at every
step, but a step is mostly noise, so that hardly a weight is zero for long. Here weights
follow the regularised leader (McMahan 2011): with g the sum of all gradients so far,
taken negative, and Λ that of the penalty's shares,

.. math:: w_j = \frac{\operatorname{sign}(g_j)\, \max(|g_j| - \Lambda l_1, 0)}
                     {1 / (\eta D_j) + \Lambda \lambda_j} .

Without penalties that is the same sequence of weights as SPAM's: when η falls, g gets
what keeps w in its place. With them, noise grows like √t in g and the threshold like t,
so that what is to be zero is zero: no average is needed, and the last weights are
returned. And a weight that no row has asked for need not be known: it follows from g
whenever one does. So the penalty is exact at O(nnz) a row, at any width; the mean
scores a and b, in which all weights are, are taken anew once as many values have been
visited as there are features.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows
from aucmax.online import engine
from aucmax.online.engine import (
    L2,
    SUM,
    TO_NEG,
    TO_POS,
    D,
    P,
    Table,
    Visit,
    W,
    centred_row,
    class_scores,
    learn,
    mean_scores,
    renew,
    ridge,
    weight_of,
)
from aucmax.online.engine.step_sizes import step_at

_STRETCH = 16.0  # steps at least between two visits of all weights

# The numbers in State.z: steps; mean scores w·(m₊ - ref) and w·(m₋ - ref); η; Λ; steps
# and values since all weights were visited.
T, A, B, ETA, PAID, SINCE, TOUCHED = range(7)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    table: (
        Table  # weights, scales, class moments: see aucmax.online.engine.feature_table
    )
    g: Float  # (d,) the sum of the gradients, taken negative
    z: Float  # (7,) numbers, see above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    table = engine.empty(n_features, precondition)
    return State(table, np.zeros(n_features), np.zeros(7))


@inlined
def leader(
    feat: Float, g: Float, j: int, l2: L2, l1: float, eta: float, paid: float
) -> float:
    """Return w_j."""
    step = eta * feat[D, j]
    excess = max(abs(g[j]) - paid * l1, 0.0)
    return np.copysign(excess, g[j]) * (step / (1.0 + step * paid * ridge(feat, j, l2)))


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    eta0: float,
    schedule: int,
    implicit: bool,
    l1: float,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    table, g, z = state
    feat, ref, l2 = table.feat, table.ref, how.l2
    t, a, b, eta, paid = z[T], z[A], z[B], z[ETA], z[PAID]
    since, touched = z[SINCE], z[TOUCHED]
    x, at = np.empty(g.shape[0]), np.empty(g.shape[0], np.uint32)
    for i in order:
        news = learn(X, y, i, table, how)
        if not news.ready:
            continue
        a, b = mean_scores(news, y[i], a, b)
        if news.stale:
            renew(table, how)
        p, to_pos, to_neg = table.stats[P], table.stats[TO_POS], table.stats[TO_NEG]

        # A new η for all, and what has been put off.
        if t == 0.0 or news.stale or (since >= _STRETCH and touched >= g.shape[0]):
            new = step_at(schedule, eta0, table, t + 1.0)
            for j in range(g.shape[0]):
                if feat[D, j] > 0.0:
                    w = leader(feat, g, j, l2, l1, eta, paid)
                    feat[W, j] = w
                    if t > 0.0:
                        g[j] += (1.0 / new - 1.0 / eta) * (w / feat[D, j])
            a, b = class_scores(table)
            eta, since, touched = new, 0.0, 0.0

        # The weights of the row's features, as of now; its score and its length.
        s = x_x = 0.0
        length = centred_row(X, i, ref, how.listed, x, at)
        for k in range(length):
            j = at[k]
            w = leader(feat, g, j, l2, l1, eta, paid)
            a += (w - feat[W, j]) * (feat[SUM, j] * to_pos - ref[j])
            b += (w - feat[W, j]) * (feat[SUM + 1, j] * to_neg - ref[j])
            feat[W, j] = w
            s += w * x[k]
            x_x += (feat[D, j] * x[k]) * x[k]

        # The step: the gradient is along the row.
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
            w = leader(feat, g, j, l2, l1, eta, paid)
            a += (w - feat[W, j]) * (feat[SUM, j] * to_pos - ref[j])
            b += (w - feat[W, j]) * (feat[SUM + 1, j] * to_neg - ref[j])
            feat[W, j] = w
        since += 1.0
        touched += length
    z[T], z[A], z[B], z[ETA], z[PAID] = t, a, b, eta, paid
    z[SINCE], z[TOUCHED] = since, touched


@kernel
def _all(feat: Float, g: Float, z: Float, l2: L2, l1: float) -> Float:
    w = np.zeros(g.shape[0])
    for j in range(g.shape[0]):
        w[j] = leader(feat, g, j, l2, l1, z[ETA], z[PAID])
    return w


def weights(state: State, l2: L2, l1: float) -> tuple[Float, float]:
    """Return the weights, as of now, and the intercept."""
    table, g, z = state
    if z[T] == 0.0:
        return np.zeros(len(g)), 0.0
    w = _all(table.feat, g, z, l2, l1)
    return w, engine.threshold(w, table)
