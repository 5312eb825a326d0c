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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core import table as tables
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import (
    Rows,
    centred_row,
    learn_row,
    listed,
    meet_row,
)
from aucmax.core.steps import SCHEDULES, rates, step_size
from aucmax.core.table import (
    L2,
    SUM,
    D,
    Float,
    W,
    class_scores,
    refresh,
    ridge,
)
from aucmax.core.tally import NEG, POS, RENEW

_STRETCH = 16.0  # steps at least between two visits of all weights

# The numbers in State.z, after those of aucmax.core.tally: steps; mean scores
# w·(m₊ - ref) and w·(m₋ - ref); η; Λ; steps and values since all weights were visited.
T, A, B, ETA, PAID, SINCE, TOUCHED = range(6, 13)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    hot: Float  # (4, d) weights, scales, class sums: see aucmax.core.table
    cold: Float  # (4, d) unused, frequencies, sums of squares
    ref: Float  # (d,) reference points
    g: Float  # (d,) the sum of the gradients, taken negative
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (13,) numbers, see above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    hot, cold, ref = tables.empty(n_features, precondition)
    return State(hot, cold, ref, np.zeros(n_features), np.zeros(2), np.zeros(13))


@inlined
def leader(
    hot: Float,
    cold: Float,
    g: Float,
    j: int,
    l2: L2,
    l1: float,
    eta: float,
    paid: float,
) -> float:
    """Return w_j."""
    step = eta * hot[D, j]
    excess = max(abs(g[j]) - paid * l1, 0.0)
    return np.copysign(excess, g[j]) * (step / (1.0 + step * paid * ridge(cold, j, l2)))


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    hot: Float,
    cold: Float,
    ref: Float,
    g: Float,
    n: Float,
    z: Float,
    learns: bool,
    eta0: float,
    schedule: int,
    implicit: bool,
    precondition: bool,
    l2: L2,
    l1: float,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    t, a, b, eta, paid, since, touched = z[6], z[7], z[8], z[9], z[10], z[11], z[12]
    d = hot.shape[1]
    x, at = np.empty(d), np.empty(d, np.uint32)
    features = listed(X, ref)
    for i in order:
        weight, side = abs(y[i]), POS if y[i] > 0.0 else NEG

        # Running class statistics, where the exact ones are not known.
        renew = False
        if learns:
            z[0] += 1.0
            n[side] += weight
            learn_row(X, i, weight, side, hot, cold, ref, features)
            if n[POS] == 0.0 or n[NEG] == 0.0:
                continue
            renew = z[0] >= z[5]
        p, to_pos, to_neg, to_mean = rates(n, z[0])
        pq = p * (1.0 - p)
        length = centred_row(X, i, ref, features, x, at)
        if learns:
            s = 0.0
            for k in range(length):
                s += hot[W, at[k]] * x[k]
            if side == POS:
                a += weight * to_pos * (s - a)
            else:
                b += weight * to_neg * (s - b)
            if precondition:
                _, d_a, d_b, _ = meet_row(
                    X, i, hot, cold, ref, None, to_pos, to_neg, l2, None, 0.0
                )
                a, b = a + d_a, b + d_b
        if renew:
            z[1], z[2], z[3], z[4] = refresh(
                hot, cold, ref, to_pos, to_neg, l2, precondition
            )
            z[5] = RENEW * z[0]
            features = listed(X, ref)
            length = centred_row(X, i, ref, features, x, at)

        # A new η for all, and what has been put off.
        if renew or t == 0.0 or (since >= _STRETCH and touched >= d):
            new = step_size(schedule, eta0, z[1], z[2], t + 1.0, 4.0 * pq, pq * z[3])
            for j in range(d):
                if hot[D, j] > 0.0:
                    w = leader(hot, cold, g, j, l2, l1, eta, paid)
                    hot[W, j] = w
                    if t > 0.0:
                        g[j] += (1.0 / new - 1.0 / eta) * (w / hot[D, j])
            a, b = class_scores(hot, ref, to_pos, to_neg)
            eta, since, touched = new, 0.0, 0.0

        # The weights of the row's features, as of now; its score and its length.
        s = x_x = 0.0
        for k in range(length):
            j = at[k]
            w = leader(hot, cold, g, j, l2, l1, eta, paid)
            a += (w - hot[W, j]) * (hot[SUM, j] * to_pos - ref[j])
            b += (w - hot[W, j]) * (hot[SUM + 1, j] * to_neg - ref[j])
            hot[W, j] = w
            s += w * x[k]
            x_x += (hot[D, j] * x[k]) * x[k]

        # The step: the gradient is along the row.
        pace = 2.0 * eta * weight * to_mean * (1.0 - p if side == POS else p)
        goal = b + 1.0 if side == POS else a - 1.0
        c = (goal - s) * (pace / (1.0 + pace * x_x) if implicit else pace)
        t += 1.0
        paid += pq * weight * to_mean
        for k in range(length):
            j = at[k]
            g[j] += c / eta * x[k]
            w = leader(hot, cold, g, j, l2, l1, eta, paid)
            a += (w - hot[W, j]) * (hot[SUM, j] * to_pos - ref[j])
            b += (w - hot[W, j]) * (hot[SUM + 1, j] * to_neg - ref[j])
            hot[W, j] = w
        since += 1.0
        touched += length
    z[6], z[7], z[8], z[9], z[10], z[11], z[12] = t, a, b, eta, paid, since, touched


@kernel
def _all(hot: Float, cold: Float, g: Float, z: Float, l2: L2, l1: float) -> Float:
    w = np.zeros(hot.shape[1])
    for j in range(hot.shape[1]):
        w[j] = leader(hot, cold, g, j, l2, l1, z[ETA], z[PAID])
    return w


def weights(state: State, l2: L2, l1: float) -> tuple[Float, float]:
    """Return the weights, as of now, and the intercept."""
    hot, cold, _, g, n, z = state
    if z[T] == 0.0:
        return np.zeros(hot.shape[1]), 0.0
    w = _all(hot, cold, g, z, l2, l1)
    return w, tables.threshold(w, hot[SUM:], n)


def run(
    model: Any,
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    learn: bool,
    l2: L2,
) -> None:
    """Take the state past the rows ``order``, with the parameters of ``model``."""
    update(
        X,
        y,
        order,
        *state,
        bool(learn),
        float(model.eta0),
        SCHEDULES[model.schedule],
        model.step == "implicit",
        bool(model.precondition),
        l2,
        float(model.l1),
    )
