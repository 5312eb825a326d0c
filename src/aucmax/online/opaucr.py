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

from aucmax.core import table as tables
from aucmax.core import tally as tallies
from aucmax.core.jit import kernel
from aucmax.core.rows import (
    Rows,
    fetch_features_row,
    fetch_row,
    gather_row,
    learn_row,
    listed,
    look_row,
    resize_row,
    spread_row,
)
from aucmax.core.sketch import (
    RHO,
    UQ,
    F,
    Q,
    direction,
    dot,
    draw,
    grow,
    multiply_out,
    project,
    rescale,
    step,
    whole,
)
from aucmax.core.steps import INVSQRT, step_size
from aucmax.core.table import L2, D, Float, W, penalise
from aucmax.core.tally import NEG, POS, RENEW, RENEW_AT, ROWS, Tally

_STRETCH = 256  # steps at most between two proximal maps

# The numbers in State.z, after those of aucmax.core.tally: rows whose scales were known
# before; steps; Σ η since the last proximal map, steps since then; Σ γ (the weights of
# the average); the state of the random numbers.
KNOWN, T, DUE, SINCE, SUM_GAMMA, SEED = range(6, 12)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    hot: Float  # (4, d) W, scales, class sums: see aucmax.core.table
    cold: Float  # (4, d) the average's part U, frequencies, sums of squares
    ref: Float  # (d,) reference points
    B: Float  # (d, m) [Z₊ Σ₊ Z₋ Σ₋]
    M: Float  # (m, m) BᵀDB
    k: Float  # (4, m) q; the average's part of it; f; [ρ₊ n₊ ρ₋ n₋]
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (13,) numbers, see above


def init(n_features: int, rank: int, precondition: bool) -> State:
    """Return the state before the first row."""
    hot, cold, ref = tables.empty(n_features, precondition)
    m = 2 * (rank + 1)
    z = np.zeros(13)
    z[SEED:] = 12345.0, 67890.0
    return State(
        hot,
        cold,
        ref,
        np.zeros((n_features, m)),
        np.zeros((m, m)),
        np.zeros((4, m)),
        np.zeros(2),
        z,
    )


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    hot: Float,
    cold: Float,
    ref: Float,
    B: Float,
    M: Float,
    k: Float,
    n: Float,
    z: Float,
    ahead: int,
    learns: bool,
    eta0: float,
    printed: bool,
    implicit: bool,
    average: bool,
    precondition: bool,
    l2: L2,
) -> None:
    """Run Algorithm 1, with sketches, over the rows ``order`` of ``X``."""
    rows, norm, width, mildest, hardest, renew_at = z[0], z[1], z[2], z[3], z[4], z[5]
    known, t, due, since, sum_gamma = z[6], z[7], z[8], z[9], z[10]
    stretch = 1 if printed else _STRETCH
    half = k.shape[1] // 2
    u, e, s_t = np.empty(2 * half), np.empty(half), np.empty(2 * half)
    features = listed(X, ref)
    last = order.shape[0] - 1
    for visit in range(order.shape[0]):
        fetch_row(X, order[min(visit + ahead, last)])
        fetch_features_row(X, order[min(visit + 1, last)], hot)
        i = order[visit]
        weight = abs(y[i])
        if weight == 0.0:
            continue
        side = POS if y[i] > 0.0 else NEG
        own, other = side * half, half - side * half  # where their columns begin

        if learns:
            rows += 1.0
            n[side] += weight
            if rows > known:
                learn_row(X, i, weight, side, hot, cold, ref, features)
                if precondition and t > 0.0:
                    to_pos, to_neg = 1.0 / n[POS], 1.0 / n[NEG]
                    resize_row(
                        X, i, hot, cold, ref, features, B, M, k, to_pos, to_neg, l2
                    )

        # The proximal map of the penalty, and new scales.
        renew = rows >= renew_at and n[POS] > 0.0 and n[NEG] > 0.0
        if renew or since >= stretch or 0.5 * due * hardest > 0.5:
            multiply_out(hot, cold, B, k)
            penalise(hot, cold, l2, 0.5 * due, sum_gamma)
            due = since = 0.0
            if renew:
                norm, width, mildest, hardest = rescale(
                    hot,
                    cold,
                    ref,
                    B,
                    M,
                    k[RHO],
                    1.0 / n[POS],
                    1.0 / n[NEG],
                    l2,
                    precondition,
                )
                features = listed(X, ref)
                renew_at = RENEW * rows
            project(hot, B, k[F])

        # The row, in terms of the columns of B; then it becomes part of them.
        s, x_x, _, _ = look_row(X, i, hot, ref, features, 0.0, 0.0)
        gather_row(X, i, hot, ref, features, B, u)
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
        if n[POS] > 0.0 and n[NEG] > 0.0:
            to_mean = 1.0 / n[1 - side]
            c_w = k[F, other + half - 1] * to_mean
            residual = s - c_w - (1.0 if side == POS else -1.0)
            x_c, trace = direction(M, k, u, x_x, residual, other, to_mean, s_t)
            t += 1.0
            total = n[POS] + n[NEG]
            balance = 4.0 * (n[POS] / total) * (n[NEG] / total)
            scale = max(norm, 0.5 * trace)
            eta = step_size(INVSQRT, eta0, scale, width, t, balance, 0.0)
            eta = (eta0 if printed else eta) * (weight * rows / total)
            if implicit:
                eta /= 1.0 + eta * x_c
            step(M, k, u, residual, s_t, eta, sum_gamma)
            c -= eta * residual
            past -= sum_gamma * (eta * residual)
            if average:
                sum_gamma += t
            due += eta
            since += 1.0
        taken = e if learns else e[:0]
        spread_row(X, i, hot, cold, ref, features, B, taken, own, c, past)
    z[0], z[1], z[2], z[3], z[4], z[5] = rows, norm, width, mildest, hardest, renew_at
    z[6], z[7], z[8], z[9], z[10] = known, t, due, since, sum_gamma


def know(state: State, tally: Tally, l2: L2, precondition: bool) -> None:
    """Give exact reference points and scales to a learner that is to see the rows."""
    tallies.know(state, tally, l2, precondition)
    state.z[KNOWN] = state.z[ROWS]
    state.z[RENEW_AT] = RENEW * state.z[ROWS]
    state.z[ROWS] = 0.0
    state.n[:] = 0.0


def last(state: State) -> Float:
    """Return the last iterate, multiplied out."""
    w: Float = state.hot[W] + state.hot[D] * (state.B @ state.k[Q])
    return w


def weights(state: State, l2: L2) -> tuple[Float, float]:
    """Return the averaged weights and the intercept."""
    hot, cold, _, B, _, k, n, z = state
    if not n.all():
        return np.zeros(hot.shape[1]), 0.0
    last, past = hot.copy(order="K"), cold.copy()
    whole(last, past, B, k.copy())
    penalise(last, past, l2, 0.5 * z[DUE], z[SUM_GAMMA])
    return tables.averaged(last, past, n, z[SUM_GAMMA])
