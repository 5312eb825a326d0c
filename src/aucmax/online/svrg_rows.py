"""Rows of SVRG-AUC: random draws, and a proximal step along a row.

See :mod:`aucmax.online.svrg`.
"""

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined
from aucmax.core.rows import Float, Rows, entry, rowwise, stored
from aucmax.online.engine import Known, Table, scales, weights
from aucmax.online.engine.centred_rows import others, seen
from aucmax.online.engine.feature_table import class_means

# Slots of pull, what each step on a feature adds: the mean gradient over P, and 1/P.
MU, RARITY = range(2)


@inlined
def prox(
    table: Table, pull: Float, j: int, g: float, eta: float, l2: Float, l1: float
) -> float:
    """Return the change of weight ``j`` in a proximal step down the gradient ``g``."""
    step, old = eta * scales(table)[j], weights(table)[j]
    w = old - step * (g + pull[MU, j])
    share = step * pull[RARITY, j]
    w -= min(max(w, -l1 * share), l1 * share)
    return w / (1.0 + l2[j] * share) - old


@rowwise
def prox_row(
    X: Rows,
    i: int,
    table: Table,
    how: Known,
    pull: Float,
    c: float,
    eta: float,
    l2: Float,
    l1: float,
) -> tuple[float, float]:
    """Take a proximal step on the features of row ``i``; return the changes of a and b.

    Down the gradient c x̃ + pull[MU], in the metric of D, then the proximal map of
    pull[RARITY] times the penalty ½ Σ l2_j w_j² + l1 ‖w‖₁. Features with a reference
    point are part of every row.
    """
    w, scale, ref = weights(table), scales(table), table.ref
    a = b = 0.0
    for k in stored(X, i):
        j, value = entry(X, i, k)
        _, x, r = seen(X, i, k, ref)
        along = -eta * scale[j] * (c * x)
        change = prox(table, pull, j, c * x, eta, l2, l1)
        change = change if r == ref[j] else along  # the rest follows below
        change = change if (value != 0.0) | (r != 0.0) else 0.0
        m_pos, m_neg = class_means(table, j)
        w[j] += change
        a += change * m_pos
        b += change * m_neg
    for m in others(X, how.listed):
        j = how.listed[m]
        change = prox(table, pull, j, -c * ref[j], eta, l2, l1)
        m_pos, m_neg = class_means(table, j)
        w[j] += change
        a += change * m_pos
        b += change * m_neg
    return a, b


def draw(chance: Float, m: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Return m rows by systematic sampling, in random order.

    Each row is drawn as often as expected, up to rounding. Shuffling separates the
    draws of a heavy row: steps at equal rows in a row would make one too long a step.
    """
    present = np.flatnonzero(chance)  # rows of weight zero are ignored
    n = len(present)
    upto = np.cumsum(chance[present])
    points = (np.arange(m) + rng.uniform(size=m)) * (upto[-1] / m)
    drawn: NDArray[np.int64] = present[np.minimum(np.searchsorted(upto, points), n - 1)]
    rng.shuffle(drawn)
    return drawn


def draw_evenly(chance: Float, m: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Return m rows, drawn with replacement."""
    present = np.flatnonzero(chance)
    return present[rng.randint(len(present), size=m)]
