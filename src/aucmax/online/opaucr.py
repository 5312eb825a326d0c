r"""OPAUCr: OPAUC with sketches of the covariances, for many features.

Gao, Jin, Zhu and Zhou (ICML 2013), section 3: each row draws r ~ N(0, I)/√τ, and with
Z = Σ x̃rᵀ, ρ = Σ r over the T rows of a class, its covariance is estimated by

.. math:: \hat S = \tfrac1T (Z - c \rho^T)(Z - c \rho^T)^T .

The gradient is that of :mod:`aucmax.online.opauc` with Ŝ for S. A step with it would
cost O(dτ). But every step is along x̃ or in the span of the columns of
B = [Z₊ Σ₊ Z₋ Σ₋], with Σ = Σ x̃; so w = W + D B q, and a step needs only

* u = BᵀDx̃, from the features of the row;
* M = BᵀDB and f = Bᵀw, of size m = 2τ + 2, which are updated: a step w - ηDg with
  g = r x̃ - B t gives W - ηrDx̃, q + ηt, f + η(Mt - ru); a new row, B + x̃eᵀ, gives
  M + ueᵀ + euᵀ + (x̃·Dx̃)eeᵀ and f + (w·x̃)e, while W - (e·q)Dx̃ keeps w.

That is O(nnz τ + τ²) a row. From time to time w is multiplied out, for the penalty.

Deviations from the paper, in addition to those of OPAUC:

* its R has 1/τ for 1/√τ, which does not estimate S, and its ĉ is a matrix that is
  subtracted like a vector; the form here is unbiased and never negative;
* the random numbers are the same for every model, so that streams have no random seed;
* a scale is kept while it is right to a fifth.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucmax.base.class_moments import NEG, POS, ClassMoments
from aucmax.core.jit import kernel
from aucmax.core.products import dot
from aucmax.core.rows import Float, Rows, as_table
from aucmax.online import engine, sketch
from aucmax.online.engine import L2, Table, Visit
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.feature_table import SQ, penalise, update_rates
from aucmax.online.engine.known_moments import fit_table
from aucmax.online.engine.random_numbers import SEED as FIRST_SEED
from aucmax.online.engine.random_numbers import check_seed
from aucmax.online.engine.row_visit import class_of, count
from aucmax.online.engine.step_sizes import INVSQRT, ROOT, step_size
from aucmax.online.sketch import RHO, UQ, F, Q

STRETCH = 256.0  # steps at most between two proximal maps

# Slots of State.z: rows whose scales were known before; steps; random generator (2).
KNOWN, T, SEED = range(3)


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table  # its weights are W
    B: Float  # (d, m) [Z₊ Σ₊ Z₋ Σ₋]
    M: Float  # (m, m) BᵀDB
    k: Float  # (4, m) q; its part of the average; f; [ρ₊ n₊ ρ₋ n₋]
    z: Float  # (4,) slots above

    @property
    def n(self) -> Float:
        """Weight of the positives and of the negatives."""
        return self.table.n

    def in_layout(self, rows: Rows) -> Self:
        """Return the state with its table stored in the layout of these rows."""
        table = self.table
        return self._replace(table=table._replace(feat=as_table(table.feat, rows)))

    def validate(self) -> None:
        """Raise an error if the random generator of a file is not valid."""
        check_seed(self.z[SEED:])

    def last(self) -> tuple[Float, Float, int]:
        """Return the last iterate, a table, and its slot of class sums of squares."""
        w, scale = engine.weights(self.table), engine.scales(self.table)
        w = w + scale * (self.B @ self.k[Q])
        return w, self.table.feat, SQ

    def fit_scales(self, moments: ClassMoments, l2: L2, precondition: bool) -> None:
        """Set reference points and scales from the moments of rows yet to be seen."""
        fit_table(self.table, moments, l2, precondition)
        self.z[KNOWN] = stats.restart_count(self.table)

    def weights(self, l2: L2) -> tuple[Float, float]:
        """Return the averaged weights and the intercept."""
        table = self.table
        if not table.n.all():
            return np.zeros(len(self.B)), 0.0
        table = table._replace(feat=table.feat.copy(order="K"))
        sketch.whole(table, self.B, self.k.copy())
        penalise(table, l2, stats.penalty_due(table))
        return engine.averaged(table)


def init(n_features: int, rank: int, precondition: bool) -> State:
    """Return the state before the first row."""
    m, z = 2 * (rank + 1), np.zeros(4)
    z[SEED:] = FIRST_SEED
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
    n = table.n
    half = k.shape[1] // 2
    u, e, s_t = np.empty(2 * half), np.empty(half), np.empty(2 * half)
    for visit in range(order.shape[0]):
        i = order[visit]
        weight, side = abs(y[i]), class_of(y[i])
        own, other = side * half, half - side * half  # first columns

        # Running class statistics; in ``fit`` they are known, but not yet in B.
        if learns and stats.rows_seen(table) >= z[KNOWN]:
            count(X, y, i, table, how)
            if how.precondition and z[T] > 0.0:
                sketch.resize_row(X, i, table, how, B, M, k)
        elif learns:
            stats.count_row(table, side, weight)
            update_rates(table)
        ready = n[POS] > 0.0 and n[NEG] > 0.0
        if ready and stats.is_stale(table):
            sketch.multiply_out(table, B, k)
            sketch.rescale(table, how, B, M, k[RHO])
            sketch.project(table, B, k[F])

        # The row in terms of the columns of B, to which it is then added.
        s, x_x, _, _ = engine.look_row(X, i, table, how)
        sketch.gather_row(X, i, table, how, B, u)
        s += dot(u, k[Q])
        c = 0.0
        past = 0.0
        if learns:
            sketch.draw(z[SEED:], np.sqrt(weight), e)
            e[half - 1] = weight
            c = -dot(e, k[Q, own : own + half])
            past = -dot(e, k[UQ, own : own + half])
            sketch.grow(M, k, u, x_x, e, own, s)

        # The gradient at the row: residual x̃ - B s_t.
        eta = 0.0
        if ready:
            to_mean = 1.0 / n[1 - side]
            c_w = k[F, other + half - 1] * to_mean
            residual = s - c_w - (1.0 if side == POS else -1.0)
            x_c, trace = sketch.direction(M, k, u, x_x, residual, other, to_mean, s_t)
            z[T] += 1.0
            norm, width = stats.mean_norm(table), stats.effective_width(table)
            norm = max(norm, 0.5 * trace)
            balance = stats.class_balance(table)
            eta = step_size(INVSQRT, eta0, ROOT, norm, width, z[T], balance, 0.0)
            eta = (eta0 if printed else eta) * stats.weight_of(y, i, table)
            if implicit:
                eta /= 1.0 + eta * x_c
            sketch.step(M, k, u, residual, s_t, eta, stats.average_weight(table))
            c -= eta * residual
            past -= stats.average_weight(table) * (eta * residual)
            if average:
                stats.add_to_average(table, z[T])
        sketch.add_outer_row(X, i, table, how, B, e if learns else e[:0], own, c, past)

        # The proximal map of the penalty.
        if ready and engine.falls_due(table, how, 0.5 * eta):
            sketch.multiply_out(table, B, k)
            engine.settle(table, how)
            sketch.project(table, B, k[F])
