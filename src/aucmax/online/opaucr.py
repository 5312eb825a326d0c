r"""OPAUCr: OPAUC with sketches of the covariances, for many features.

Gao, Jin, Zhu and Zhou (ICML 2013), section 3: each row draws r ~ N(0, I)/√τ, and with
Z = Σ x̃rᵀ, ρ = Σ r over the T rows of a class, its covariance is estimated by

.. math:: \hat S = \tfrac1T (Z - c \rho^T)(Z - c \rho^T)^T .

The gradient is that of :mod:`aucmax.online.opauc` with Ŝ for S. A step with it would
cost O(dτ). But every step is along x̃ or in the span of few vectors, the columns of
B = [Z₊ Σ₊ Z₋ Σ₋] with Σ = Σ x̃; so w = W + D B q, and what a step needs to know is

* u = BᵀDx̃, from the features of the row alone;
* M = BᵀDB and f = Bᵀw, both m x m or less, m = 2τ + 2, which change by what is known:
  a step w - ηDg with g = r x̃ - B t is W - ηrDx̃, q + ηt, f + η(Mt - ru); and a new row,
  B + x̃eᵀ, is M + ueᵀ + euᵀ + (x̃·Dx̃)eeᵀ and f + (w·x̃)e, while W - (e·q)Dx̃ keeps w.

That is O(nnz τ + τ²) a row. Now and then w is multiplied out, for the penalty.

Deviations from the paper, beside those of OPAUC:

* its R has 1/τ for 1/√τ, which does not estimate S, and its ĉ is a matrix that is
  subtracted as if it were a vector; what is here is unbiased and never negative;
* the numbers r are the same for every model, so that a stream needs no seed;
* a scale is left as it is while it is right to a fifth.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.base.class_moments import ClassMoments as Tally
from aucmax.core.jit import kernel
from aucmax.core.products import dot
from aucmax.core.rows import Float, Rows
from aucmax.online import engine
from aucmax.online.engine import (
    DUE,
    L2,
    NEG,
    NORM,
    PAST,
    POS,
    RENEW_AT,
    ROWS,
    WIDTH,
    D,
    P,
    Table,
    Visit,
    W,
    class_of,
    count,
    falls_due,
    look_row,
    penalise,
    settle,
    take_rates,
    weight_of,
)
from aucmax.online.engine.known_moments import fit_table
from aucmax.online.engine.step_sizes import INVSQRT, step_size
from aucmax.online.sketch import (
    RHO,
    UQ,
    F,
    Q,
    direction,
    draw,
    gather_row,
    grow,
    multiply_out,
    project,
    rescale,
    resize_row,
    spread_row,
    step,
    whole,
)

STRETCH = 256.0  # steps at most between two proximal maps

# The numbers in State.z: rows whose scales were known before; steps; the state of the
# random numbers.
KNOWN, T, SEED = range(3)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    table: Table  # W, scales, class moments: see aucmax.online.engine.feature_table
    B: Float  # (d, m) [Z₊ Σ₊ Z₋ Σ₋]
    M: Float  # (m, m) BᵀDB
    k: Float  # (4, m) q; the average's part of it; f; [ρ₊ n₊ ρ₋ n₋]
    z: Float  # (4,) numbers, see above


def init(n_features: int, rank: int, precondition: bool) -> State:
    """Return the state before the first row."""
    m, z = 2 * (rank + 1), np.zeros(4)
    z[SEED:] = 12345.0, 67890.0
    B, M, k = np.zeros((n_features, m)), np.zeros((m, m)), np.zeros((4, m))
    return State(engine.empty(n_features, precondition), B, M, k, z)


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    learns: bool,
    eta0: float,
    printed: bool,
    implicit: bool,
    average: bool,
) -> None:
    """Run Algorithm 1, with sketches, over the rows ``order`` of ``X``."""
    table, B, M, k, z = state
    feat, n, stats = table.feat, table.n, table.stats
    half = k.shape[1] // 2
    u, e, s_t = np.empty(2 * half), np.empty(half), np.empty(2 * half)
    for visit in range(order.shape[0]):
        i = order[visit]
        weight, side = abs(y[i]), class_of(y[i])
        own, other = side * half, half - side * half  # where their columns begin

        # Running class statistics; those of a fit are known, but not yet in B.
        if learns and stats[ROWS] >= z[KNOWN]:
            count(X, y, i, table, how)
            if how.precondition and z[T] > 0.0:
                resize_row(X, i, table, how, B, M, k)
        elif learns:
            stats[ROWS] += 1.0
            n[side] += weight
            take_rates(table)
        ready = n[POS] > 0.0 and n[NEG] > 0.0
        if ready and stats[ROWS] >= stats[RENEW_AT]:
            multiply_out(feat, B, k)
            rescale(table, how, B, M, k[RHO])
            project(feat, B, k[F])

        # The row, in terms of the columns of B; then it becomes part of them.
        s, x_x, _, _ = look_row(X, i, table, how)
        gather_row(X, i, table, how, B, u)
        s += dot(u, k[Q])
        c = 0.0
        past = 0.0
        if learns:
            draw(z[SEED:], np.sqrt(weight), e)
            e[half - 1] = weight
            c = -dot(e, k[Q, own : own + half])
            past = -dot(e, k[UQ, own : own + half])
            grow(M, k, u, x_x, e, own, s)

        # The gradient at the row: residual x̃ - B s_t.
        eta = 0.0
        if ready:
            to_mean = 1.0 / n[1 - side]
            c_w = k[F, other + half - 1] * to_mean
            residual = s - c_w - (1.0 if side == POS else -1.0)
            x_c, trace = direction(M, k, u, x_x, residual, other, to_mean, s_t)
            z[T] += 1.0
            balance = 4.0 * stats[P] * (1.0 - stats[P])
            scale = max(stats[NORM], 0.5 * trace)
            eta = step_size(INVSQRT, eta0, scale, stats[WIDTH], z[T], balance, 0.0)
            eta = (eta0 if printed else eta) * weight_of(y, i, table)
            if implicit:
                eta /= 1.0 + eta * x_c
            step(M, k, u, residual, s_t, eta, stats[PAST])
            c -= eta * residual
            past -= stats[PAST] * (eta * residual)
            if average:
                stats[PAST] += z[T]
        spread_row(X, i, table, how, B, e if learns else e[:0], own, c, past)

        # The proximal map of the penalty.
        if ready and falls_due(table, how, 0.5 * eta):
            multiply_out(feat, B, k)
            settle(table, how)
            project(feat, B, k[F])


def fit_scales(state: State, tally: Tally, l2: L2, precondition: bool) -> None:
    """Fit reference points and scales to the moments of rows that are to be seen."""
    table = state.table
    fit_table(table, tally, l2, precondition)
    state.z[KNOWN] = table.stats[ROWS]
    table.stats[ROWS] = 0.0
    table.n[:] = 0.0


def last(state: State) -> Float:
    """Return the last iterate, multiplied out."""
    feat = state.table.feat
    w: Float = feat[W] + feat[D] * (state.B @ state.k[Q])
    return w


def weights(state: State, l2: L2) -> tuple[Float, float]:
    """Return the averaged weights and the intercept."""
    table, B, _, k, _ = state
    if not table.n.all():
        return np.zeros(len(B)), 0.0
    table = table._replace(feat=table.feat.copy(order="K"))
    whole(table.feat, B, k.copy())
    penalise(table, l2, table.stats[DUE])
    return engine.averaged(table)
