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

In the kernels, B is (d, m), a row for each feature; ``k`` has vectors of m numbers: q;
its part of the average; f; and [ρ₊ n₊ ρ₋ n₋], the sum of all e so far.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucmax.base.class_moments import NEG, POS, ClassMoments
from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.products import dot
from aucmax.core.rows import Float, Rows, as_table, entry, rowwise, stored
from aucmax.online import engine
from aucmax.online.engine import L2, Table, Visit, renew, scales, weights
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.centred_rows import others, seen
from aucmax.online.engine.feature_table import (
    SQ,
    average_part,
    fitting_scale,
    is_off_scale,
    mean_square,
    penalise,
    ridge,
    update_rates,
)
from aucmax.online.engine.known_moments import fit_table
from aucmax.online.engine.random_numbers import MODULI, advance, check_seed
from aucmax.online.engine.random_numbers import SEED as FIRST_SEED
from aucmax.online.engine.row_visit import class_of, count
from aucmax.online.engine.step_sizes import INVSQRT, ROOT, step_size

# Slots of k.
Q, UQ, F, RHO = range(4)
# Relative error up to which a scale is kept: a change costs O(τ²).
_TOLERANCE = 0.2


@inlined
def draw(seed: Float, size: float, e: Float) -> None:
    """Fill all but the last place of ``e`` with N(0, size²/τ), by Box and Muller."""
    one, two = np.int64(seed[0]), np.int64(seed[1])
    rank = e.shape[0] - 1
    size /= np.sqrt(rank)
    radius = 0.0
    angle = 0.0
    for j in range(rank):
        if j % 2 == 0:
            one, two = advance(one, two)
            radius = size * np.sqrt(-2.0 * np.log(one / np.float64(MODULI[0])))
            angle = 2.0 * np.pi * (two / np.float64(MODULI[1]))
            e[j] = radius * np.cos(angle)
        else:
            e[j] = radius * np.sin(angle)
    seed[0], seed[1] = np.float64(one), np.float64(two)


@vectorised
def grow(
    M: Float, k: Float, u: Float, x_x: float, e: Float, own: int, s: float
) -> None:
    """Update M, f, ρ and u for B + x̃eᵀ, with e in the columns from ``own`` on."""
    half = e.shape[0]
    for a in range(half):
        for b in range(u.shape[0]):
            M[own + a, b] += e[a] * u[b]
    for b in range(u.shape[0]):
        for a in range(half):
            M[b, own + a] += u[b] * e[a]
    for a in range(half):
        for b in range(half):
            M[own + a, own + b] += x_x * (e[a] * e[b])
        u[own + a] += x_x * e[a]
        k[F, own + a] += s * e[a]
        k[RHO, own + a] += e[a]


@vectorised
def direction(
    M: Float,
    k: Float,
    u: Float,
    x_x: float,
    residual: float,
    other: int,
    to_mean: float,
    s_t: Float,
) -> tuple[float, float]:
    """Write s_t, with which the gradient is residual x̃ - B s_t.

    Returns, in the metric of the steps, the squared norm of x - c, c the mean of the
    ``other`` class, and the trace of its Ŝ.
    """
    half = s_t.shape[0] // 2
    mean = other + half - 1  # column
    c_w = k[F, mean] * to_mean
    c_c = M[mean, mean] * to_mean * to_mean
    s_t[:] = 0.0
    rho_v = 0.0
    trace = 0.0
    for j in range(other, mean):
        rho = k[RHO, j]
        v = k[F, j] - rho * c_w
        rho_v += rho * v
        s_t[j] = -v * to_mean
        trace += M[j, j] - 2.0 * rho * (M[j, mean] * to_mean) + rho * rho * c_c
    s_t[mean] = to_mean * (residual + rho_v * to_mean)
    return x_x - 2.0 * u[mean] * to_mean + c_c, trace * to_mean


@vectorised
def step(
    M: Float, k: Float, u: Float, residual: float, s_t: Float, eta: float, past: float
) -> None:
    """Step along the columns of B; the caller updates W."""
    for j in range(u.shape[0]):
        s = 0.0
        for a in range(u.shape[0]):
            s += M[j, a] * s_t[a]
        k[F, j] += eta * (s - residual * u[j])
        k[Q, j] += eta * s_t[j]
        k[UQ, j] += past * (eta * s_t[j])


@vectorised
def multiply_out(table: Table, B: Float, k: Float) -> None:
    """Add D B q to W, and its part of the average to u; O(dτ)."""
    w, u, scale = weights(table), average_part(table), scales(table)
    for j in range(B.shape[0]):
        q = past = 0.0
        for a in range(B.shape[1]):
            q += B[j, a] * k[Q, a]
            past += B[j, a] * k[UQ, a]
        w[j] += scale[j] * q
        u[j] += scale[j] * past
    k[Q] = 0.0
    k[UQ] = 0.0


@kernel
def whole(table: Table, B: Float, k: Float) -> None:
    """Call ``multiply_out`` from Python."""
    multiply_out(table, B, k)


@vectorised
def project(table: Table, B: Float, f: Float) -> None:
    """Write f = Bᵀw after ``multiply_out``; O(dτ)."""
    f[:] = 0.0
    for j in range(B.shape[0]):
        w = weights(table)[j]
        if w != 0.0:
            for a in range(B.shape[1]):
                f[a] += w * B[j, a]


@vectorised
def _resize(table: Table, how: Visit, B: Float, M: Float, k: Float, j: int) -> None:
    """Update the scale of feature ``j`` and rescale its weight."""
    if not is_off_scale(table, j, how.l2, _TOLERANCE):
        return
    w, u, scale = weights(table), average_part(table), scales(table)
    old = scale[j]
    new = fitting_scale(mean_square(table, j), ridge(table.feat, j, how.l2))
    q = p = 0.0
    for a in range(B.shape[1]):
        q += B[j, a] * k[Q, a]
        p += B[j, a] * k[UQ, a]
    growth = new / old - 1.0 if old > 0.0 else 0.0
    whole_w, past = w[j] + old * q, u[j] + old * p
    change = whole_w * growth
    scale[j] = new
    w[j] = whole_w + change - new * q
    u[j] = past + past * growth - new * p
    for a in range(B.shape[1]):
        c = (new - old) * B[j, a]
        k[F, a] += change * B[j, a]
        if c != 0.0:
            for b in range(B.shape[1]):
                M[a, b] += c * B[j, b]


@rowwise
def resize_row(
    X: Rows, i: int, table: Table, how: Visit, B: Float, M: Float, k: Float
) -> None:
    """Update the scales of the features that a step along row ``i`` moves."""
    for m in stored(X, i):
        j, x = entry(X, i, m)
        if x != 0.0 and table.ref[j] == 0.0:
            _resize(table, how, B, M, k, int(j))
    for m in range(how.listed[0]):
        _resize(table, how, B, M, k, int(how.listed[m + 1]))


@vectorised
def _add_multiple(c: float, row: Float, out: Float) -> None:
    """Add c times ``row`` to ``out``."""
    for a in range(out.shape[0]):
        out[a] += c * row[a]


@rowwise
def gather_row(X: Rows, i: int, table: Table, how: Visit, B: Float, u: Float) -> None:
    """Write BᵀD x̃ to ``u``."""
    u[:] = 0.0
    scale = scales(table)
    for k in stored(X, i):
        j, x, _ = seen(X, i, k, table.ref)
        _add_multiple(scale[j] * x, B[j], u)
    for k in others(X, how.listed):
        j = how.listed[k]
        _add_multiple(scale[j] * -table.ref[j], B[j], u)


@rowwise
def add_outer_row(
    X: Rows,
    i: int,
    table: Table,
    how: Visit,
    B: Float,
    e: Float,
    start: int,
    c: float,
    past: float,
) -> None:
    """Add x̃eᵀ to the columns of B from ``start``, c D x̃ to w, ``past`` D x̃ to u.

    A feature with a reference point but no scale has been constant: x̃ is rounding.
    """
    w, u, scale = weights(table), average_part(table), scales(table)
    ref, stop = table.ref, start + e.shape[0]
    for k in stored(X, i):
        j, x, _ = seen(X, i, k, ref)
        w[j] += c * (scale[j] * x)
        u[j] += past * (scale[j] * x)
        if scale[j] > 0.0 or ref[j] == 0.0:
            _add_multiple(x, e, B[j, start:stop])
    for k in others(X, how.listed):
        j = how.listed[k]
        x = -ref[j]
        w[j] += c * (scale[j] * x)
        u[j] += past * (scale[j] * x)
        if scale[j] > 0.0:
            _add_multiple(x, e, B[j, start:stop])


@kernel
def rescale(table: Table, how: Visit, B: Float, M: Float, rho: Float) -> None:
    """Recompute reference points and scales; O(dτ²)."""
    scale, ref, before = scales(table), table.ref, table.ref.copy()
    renew(table, how)
    M[:] = 0.0
    for j in range(B.shape[0]):
        shift = ref[j] - before[j]
        if shift != 0.0:
            _add_multiple(-shift, rho, B[j])
        if scale[j] == 0.0:  # constant so far: the rest is rounding
            B[j] = 0.0
            continue
        for a in range(B.shape[1]):
            c = scale[j] * B[j, a]
            if c != 0.0:
                _add_multiple(c, B[j], M[a])


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
        whole(table, self.B, self.k.copy())
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
                resize_row(X, i, table, how, B, M, k)
        elif learns:
            stats.count_row(table, side, weight)
            update_rates(table)
        ready = n[POS] > 0.0 and n[NEG] > 0.0
        if ready and stats.is_stale(table):
            multiply_out(table, B, k)
            rescale(table, how, B, M, k[RHO])
            project(table, B, k[F])

        # The row in terms of the columns of B, to which it is then added.
        s, x_x, _, _ = engine.look_row(X, i, table, how)
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
            norm, width = stats.mean_norm(table), stats.effective_width(table)
            norm = max(norm, 0.5 * trace)
            balance = stats.class_balance(table)
            eta = step_size(INVSQRT, eta0, ROOT, norm, width, z[T], balance, 0.0)
            eta = (eta0 if printed else eta) * stats.weight_of(y, i, table)
            if implicit:
                eta /= 1.0 + eta * x_c
            step(M, k, u, residual, s_t, eta, stats.average_weight(table))
            c -= eta * residual
            past -= stats.average_weight(table) * (eta * residual)
            if average:
                stats.add_to_average(table, z[T])
        add_outer_row(X, i, table, how, B, e if learns else e[:0], own, c, past)

        # The proximal map of the penalty.
        if ready and engine.falls_due(table, how, 0.5 * eta):
            multiply_out(table, B, k)
            engine.settle(table, how)
            project(table, B, k[F])
