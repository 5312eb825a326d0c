"""The rows of SVRG-AUC: which are drawn, and a proximal step along one.

See :mod:`aucmax.online.svrg`.
"""

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined
from aucmax.core.rows import Float, Rows, entry, rowwise, stored
from aucmax.online import engine
from aucmax.online.engine import SUM, TO_NEG, TO_POS, D, Known, Table, W

# The slots of pull: the mean gradient over P, and 1/P. Before P is known, the sums that
# make it up.
MU, RARITY = range(2)


@inlined
def prox(
    feat: Float, pull: Float, j: int, g: float, eta: float, l2: Float, l1: float
) -> float:
    """Return the change of weight ``j`` in a proximal step down the gradient ``g``."""
    step, old = eta * feat[D, j], feat[W, j]
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
    """Take a proximal step on the features that row ``i`` has, and only on those.

    Down the gradient c x̃ + pull[MU], in the metric of D, then the proximal map of
    pull[RARITY] times the penalty ½ Σ l2_j w_j² + l1 ‖w‖₁. Every row has the features
    with a reference point. Returns by how much the mean scores of the classes change.
    """
    feat, ref = table.feat, table.ref
    to_pos, to_neg = table.stats[TO_POS], table.stats[TO_NEG]
    a = b = 0.0
    for k in stored(X, i):
        j, value = entry(X, i, k)
        _, x, r = engine.seen(X, i, k, ref)
        along = -eta * feat[D, j] * (c * x)
        change = prox(feat, pull, j, c * x, eta, l2, l1)
        change = change if r == ref[j] else along  # the rest of its step is below
        change = change if (value != 0.0) | (r != 0.0) else 0.0
        feat[W, j] += change
        a += change * (feat[SUM, j] * to_pos - ref[j])
        b += change * (feat[SUM + 1, j] * to_neg - ref[j])
    for m in engine.others(X, how.listed):
        j = how.listed[m]
        change = prox(feat, pull, j, -c * ref[j], eta, l2, l1)
        feat[W, j] += change
        a += change * (feat[SUM, j] * to_pos - ref[j])
        b += change * (feat[SUM + 1, j] * to_neg - ref[j])
    return a, b


def draw(chance: Float, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Return as many rows as there are, each as often as expected, give or take one.

    In random order, row by row: a heavy row is drawn several times, and steps at equal
    rows one after another would be one step too long.
    """
    present = np.flatnonzero(chance)  # a row of weight zero is not there
    n = len(present)
    upto = np.cumsum(chance[present])
    points = (np.arange(n) + rng.uniform(size=n)) * (upto[-1] / n)
    drawn: NDArray[np.int64] = present[np.minimum(np.searchsorted(upto, points), n - 1)]
    rng.shuffle(drawn)
    return drawn


def draw_evenly(chance: Float, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Return as many rows as there are, each drawn from all of them."""
    present = np.flatnonzero(chance)
    return present[rng.randint(len(present), size=len(present))]
