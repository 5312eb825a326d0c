"""Snapshots with the full gradient of the pairwise square loss, for SVRG and SPDAM.

A snapshot is one array: the weights w, the gradient of the loss there, and the centred
scores of the rows. All three are affine in w, so an affine combination of snapshots is
a snapshot, at no cost. The loss is quadratic: its minimum over the span of some
snapshots follows from their gradients.
"""

from collections.abc import Callable

import numpy as np

from aucmax.base.class_moments import ClassMoments
from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Rows, as_table
from aucmax.online import engine
from aucmax.online.engine import Known, Table, class_scores, scales, weights
from aucmax.online.engine.centred_rows import add_row, score_row
from aucmax.online.engine.known_moments import fit_table_to_ridge

MOVES = 2  # previous moves that a snapshot is combined with


def empty_table(X: Rows, n_features: int) -> Table:
    """Return an empty table in the layout of X."""
    table = engine.empty(n_features, precondition=True)
    return table._replace(feat=as_table(table.feat, X))


def prepare(
    X: Rows,
    y: Float,
    table: Table,
    moments: ClassMoments,
    l2: Float,
    precondition: bool,
) -> tuple[Float, Known]:
    """Fit the table; return the half shares of the rows and how to visit them."""
    fit_table_to_ridge(table, moments, l2, precondition)
    return half_shares(y, moments.weight), engine.visit(X, table, False, True)


def descend(
    X: Rows,
    share: Float,
    table: Table,
    how: Known,
    penalty: tuple[Float, float],
    max_iter: int,
    tol: float,
    run: Callable[[Float, int, int], int],
    plain: bool = False,
) -> tuple[Float, int, float]:
    """Alternate rounds of steps and full gradients until the gradient is small.

    ``run(snapshot, halvings, passes_left)`` takes the steps of a round from a snapshot
    and returns its number of passes. A round after which J is higher is undone and
    steps are halved. Without an l1 penalty, the next snapshot is the minimum over the
    span of the last moves. ``plain`` omits both, as the pseudo-code does. Returns the
    weights, the number of passes, and the residual relative to that at zero.
    """
    l2, l1 = penalty
    d = len(table.ref)
    zero = point = take(X, share, table, how)
    scale = residual(zero, scales(table), l2, l1)
    if scale == 0.0:  # zero is the minimum
        return zero[:d].copy(), 1, 0.0
    passes, halvings, left, moves = 0, 0, 1.0, list[Float]()
    while passes < max_iter and left > tol:
        passes += run(point, halvings, max_iter - passes)
        if passes == max_iter:
            return weights(table).copy(), passes, left
        end = take(X, share, table, how)
        passes += 1
        if not plain and not rise(point, end, d, l2, l1) <= 0.0:
            halvings += 1
            continue
        if not plain and l1 == 0.0:
            end = lowest(end, [end - point, *moves], d, l2)
        moves = [end - point, *moves][:MOVES]
        point = end
        left = residual(point, scales(table), l2, l1) / scale
    return point[:d].copy(), passes, left


def half_shares(y: Float, n: Float) -> Float:
    """Return row weights, signed by class, that sum to ½ in each class."""
    return 0.5 * (y / np.where(y > 0.0, n[0], n[1]))


@kernel
def measure(
    X: Rows, share: Float, table: Table, how: Known, a: float, b: float, found: Float
) -> None:
    """Write the mean gradient of the loss, then the scores of all rows."""
    ref, listed = table.ref, how.listed
    d = ref.shape[0]
    mu, score = found[:d].reshape((1, d)), found[d:]
    for i in range(share.shape[0]):
        if share[i] != 0.0:
            score[i] = score_row(X, i, table, how)
            if share[i] > 0.0:
                g = 4.0 * (score[i] - b - 1.0)
            else:
                g = 4.0 * (score[i] - a + 1.0)
            add_row(X, i, abs(share[i]) * g, mu, 0, ref, listed)


def take(X: Rows, share: Float, table: Table, how: Known) -> Float:
    """Return the snapshot at the weights of the table; a pass over the data."""
    d = len(table.ref)
    point = np.zeros(2 * d + len(share))
    point[:d] = weights(table)
    measure(X, share, table, how, *class_scores(table), point[d:])
    return point


def rise(start: Float, end: Float, d: int, l2: Float, l1: float) -> float:
    """Return J(end) - J(start), by the mean of the slopes at both ends."""
    u, v = start[:d], end[:d]
    with np.errstate(over="ignore", invalid="ignore"):  # after divergence
        slope = 0.5 * (start[d : 2 * d] + end[d : 2 * d] + l2 * (u + v))
        return _dot(v - u, slope) + l1 * float(np.sum(np.abs(v) - np.abs(u)))


def lowest(end: Float, moves: list[Float], d: int, l2: Float) -> Float:
    """Return the snapshot of smallest J in ``end`` plus the span of ``moves``."""
    w = [move[:d] for move in moves]
    gradients = [move[d : 2 * d] + l2 * move[:d] for move in moves]
    H = np.array([[_dot(u, g) for g in gradients] for u in w])
    slopes = np.array([_dot(u, end[d : 2 * d] + l2 * end[:d]) for u in w])
    unit = np.sqrt(np.maximum(np.diag(H), 0.0))
    scale = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0.0)
    # Nearly parallel moves count as one.
    inverse = np.linalg.pinv(H * np.outer(scale, scale), rcond=1e-10)
    for length, move in zip(-scale * (inverse @ (scale * slopes)), moves, strict=True):
        end = end + length * move
    return end


def residual(point: Float, scale: Float, l2: Float, l1: float) -> float:
    """Return the norm of a proximal step along every feature, at unit scale."""
    d = len(scale)
    w, step = point[:d], 0.25 * scale  # one over the curvature along a feature
    ahead = w - step * (point[d : 2 * d] + l2 * w)
    move = w - np.sign(ahead) * np.maximum(np.abs(ahead) - l1 * step, 0.0)
    unit = np.divide(move, np.sqrt(step), out=np.zeros(d), where=step > 0.0)
    return float(np.sqrt(_dot(unit, unit)))


def _dot(u: Float, v: Float) -> float:
    """Return u·v, the same bits for any number of threads."""
    return float(np.sum(u * v))
