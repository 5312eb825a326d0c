"""Points at which the whole gradient of the pairwise square loss is known.

A point is one array: the weights w, the gradient of the loss there, and the centred
scores of the rows, one after another. All three are affine in w, so that a combination
of points with coefficients of sum one is a point, at no cost. The loss is a quadratic:
its minimum over what some points span can be told from their gradients alone.
"""

import numpy as np

from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Rows
from aucmax.online.engine import Table, Visit, W, add_row, class_scores, dot_row

MOVES = 2  # moves of a solver that its next one may go back on


def half_shares(y: Float, n: Float) -> Float:
    """Return the weights of the rows, signed by class, such that each class has ½."""
    return 0.5 * (y / np.where(y > 0.0, n[0], n[1]))


@kernel
def survey(
    X: Rows, share: Float, table: Table, how: Visit, a: float, b: float, found: Float
) -> None:
    """Take a snapshot: the mean gradient of the loss, then the scores of all rows."""
    feat, ref, listed = table.feat, table.ref, how.listed
    d = ref.shape[0]
    mu, score = found[:d].reshape((1, d)), found[d:]
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            score[i] = dot_row(X, i, feat, W, ref, listed)
            if share[i] > 0.0:
                g = 4.0 * (score[i] - b - 1.0)
            else:
                g = 4.0 * (score[i] - a + 1.0)
            add_row(X, i, abs(share[i]) * g, mu, 0, ref, listed)


def take(X: Rows, share: Float, table: Table, how: Visit) -> Float:
    """Return the point where the weights are; a pass over the data."""
    d = len(table.ref)
    point = np.zeros(2 * d + len(share))
    point[:d] = table.feat[W]
    survey(X, share, table, how, *class_scores(table), point[d:])
    return point


def rise(start: Float, end: Float, d: int, l2: Float, l1: float) -> float:
    """Return J(end) - J(start), exactly even where J itself is all but the same.

    The loss is a quadratic: it rises by the mean of the slopes.
    """
    u, v = start[:d], end[:d]
    with np.errstate(over="ignore", invalid="ignore"):  # steps may have been too long
        slope = 0.5 * (start[d : 2 * d] + end[d : 2 * d] + l2 * (u + v))
        return _dot(v - u, slope) + l1 * float(np.sum(np.abs(v) - np.abs(u)))


def lowest(end: Float, moves: list[Float], d: int, l2: Float) -> Float:
    """Return the point of least J that can be reached from ``end`` by ``moves``."""
    w = [move[:d] for move in moves]
    gradients = [move[d : 2 * d] + l2 * move[:d] for move in moves]
    H = np.array([[_dot(u, g) for g in gradients] for u in w])
    slopes = np.array([_dot(u, end[d : 2 * d] + l2 * end[:d]) for u in w])
    unit = np.sqrt(np.maximum(np.diag(H), 0.0))
    scale = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0.0)
    # Moves that are nearly parallel count as one.
    inverse = np.linalg.pinv(H * np.outer(scale, scale), rcond=1e-10)
    for length, move in zip(-scale * (inverse @ (scale * slopes)), moves, strict=True):
        end = end + length * move
    return end


def residual(point: Float, scale: Float, l2: Float, l1: float) -> float:
    """Return the size of a proximal step along every feature, in unit-scale terms."""
    d = len(scale)
    w, step = point[:d], 0.25 * scale  # one over the curvature along a feature
    ahead = w - step * (point[d : 2 * d] + l2 * w)
    move = w - np.sign(ahead) * np.maximum(np.abs(ahead) - l1 * step, 0.0)
    unit = np.divide(move, np.sqrt(step), out=np.zeros(d), where=step > 0.0)
    return float(np.sqrt(_dot(unit, unit)))


def _dot(u: Float, v: Float) -> float:
    """Return u·v, the same bits for any number of threads."""
    return float(np.sum(u * v))
