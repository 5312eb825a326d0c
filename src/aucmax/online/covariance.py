r"""Class covariances, the gradient of OPAUC, and what OPAUC and AdaOAM share.

Gao, Jin, Zhu and Zhou (ICML 2013): at a positive row x, with the mean c and the
covariance S of the *negatives* so far, half the gradient of the pairwise square loss is

.. math:: g = S w + (x - c)\,((x - c) \cdot w - 1) ;

at a negative row it has the positives' mean and covariance, and +1. The expectation
over the rows of either class is the same.

Rows are centred, x̃ = x - ref, and the state has Σ x̃ and Σ x̃x̃ᵀ of each class: S w is
(Σ x̃x̃ᵀ w)/T - c̃ (c̃·w), which cancels badly only if the classes are far from the
reference point. A matrix is stored as its lower triangle, row after row.
"""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from aucmax.base.class_moments import NEG, POS, ROUNDING, TINY, ClassMoments
from aucmax.core.jit import inlined, vectorised
from aucmax.core.rows import Float, Rows, copy_row
from aucmax.core.validation import check_width
from aucmax.online.base import OnlineAUC
from aucmax.online.engine.feature_table import (
    ASLEEP,
    L2,
    TOLERANCE,
    assign,
    fitting_scale,
)
from aucmax.online.engine.known_moments import centres

# Slots of V, per feature: weight; scale; mean of the iterates; reference point; Σ x̃ of
# the positives and of the negatives; Σ x̃² of both, the diagonals of S; weight of the
# rows where it is not zero; scale that the mean was learnt with; more may follow.
W, D, MEAN, REF, SUM, SQ, NZ, MARK = 0, 1, 2, 3, 4, 6, 8, 9
SLOTS = 10

# Slots of z: rows counted; rows whose scales were known before; mean squared norm of a
# row; effective number of features; steps; Σ γ, the weights of the average.
ROWS, KNOWN, NORM, WIDTH, T, SUM_GAMMA = range(6)

# A variance below this fraction of the second moment is rounding error.
_ROUNDING = 1e-13


class State(NamedTuple):
    """State of a learner with covariances; updated in place."""

    V: Float  # (10 or more, d) slots above
    S: Float  # (2, d(d + 1)/2) Σ x̃x̃ᵀ of the classes
    n: Float  # (2,) weight of the positives and of the negatives
    z: Float  # (6,) slots above

    def in_layout(self, rows: Rows) -> Self:
        """Return the state itself: its layout does not depend on that of the rows."""
        return self

    def validate(self) -> None:
        """Accept any finite numbers."""

    def last(self) -> tuple[Float, Float, int]:
        """Return the last iterate, a table, and its slot of class sums of squares."""
        return self.V[W], self.V, SQ

    def fit_scales(self, moments: ClassMoments, l2: L2, precondition: bool) -> None:
        """Set reference points and scales from the moments of rows yet to be seen.

        Features near zero have no reference point: zeros of sparse data stay zero and
        cost nothing in ``add_outer``.
        """
        V, z = self.V, self.z
        V[REF] = centres(moments)
        mean = 0.5 * (moments.mean[POS] + moments.mean[NEG])
        variance = 0.5 * (moments.variance + (moments.mean - mean) ** 2).sum(axis=0)
        variance[variance <= np.maximum(ROUNDING * mean**2, TINY)] = 0.0
        about = moments.variance + (moments.mean - V[REF]) ** 2
        often, square = moments.weight @ moments.nonzero_share, moments.weight @ about
        size = np.divide(square, often, out=np.zeros_like(often), where=often > 0.0)
        curvature = variance + 0.25 * (l2.plain + l2.relative * size)
        if precondition:
            V[D] = np.divide(
                1.0, curvature, out=np.zeros_like(curvature), where=variance > 0.0
            )
        V[MARK] = V[D]
        norm = float((variance * V[D]).sum())
        z[KNOWN] = moments.rows.sum()
        z[NORM] = z[WIDTH] = 1.0
        if norm > 0.0:
            z[NORM], z[WIDTH] = norm, norm / (variance * V[D]).max()

    def weights(self, l2: L2) -> tuple[Float, float]:
        """Return the mean of the iterates and the intercept."""
        V, n = self.V, self.n
        w = V[MEAN].copy()
        if not n.all():
            return w, 0.0
        centre = 0.5 * float((V[SUM : SUM + 2] @ w / n).sum()) + float(V[REF] @ w)
        return w, -centre


def init(n_features: int, precondition: bool, name: str, slots: int = SLOTS) -> State:
    """Return the state before the first row."""
    check_width(
        n_features,
        1,
        f"{name} keeps two symmetric d x d matrices",
        "Use OPAUC(rank=50), which keeps sketches of them, or SPAM, which minimises "
        "the same loss without covariances.",
    )
    V = np.zeros((slots, n_features))
    if not precondition:
        V[D] = 1.0
    S = np.zeros((2, n_features * (n_features + 1) // 2))
    return State(V, S, np.zeros(2), np.zeros(6))


# Unsigned indices into one dimension let the compiler use SIMD: three to four times
# faster than the same loops over S[side, at + k].


@vectorised
def add_outer(S: Float, weight: float, x: Float) -> None:
    """Add ``weight`` times xxᵀ to a triangle; rows of zeros cost nothing."""
    at = np.uint64(0)
    for j in range(x.shape[0]):
        c = weight * x[j]
        if c != 0.0:
            for k in range(np.uint64(j + 1)):
                S[at + np.uint64(k)] += c * x[k]
        at += np.uint64(j + 1)


@vectorised
def multiply(S: Float, w: Float, out: Float) -> None:
    """Write the product of a symmetric matrix, given as a triangle, and w."""
    at = np.uint64(0)
    for j in range(w.shape[0]):
        s = 0.0
        for k in range(np.uint64(j)):
            s += S[at + np.uint64(k)] * w[k]
            out[k] += S[at + np.uint64(k)] * w[j]
        out[j] = s + S[at + np.uint64(j)] * w[j]
        at += np.uint64(j + 1)


@vectorised
def learn(V: Float, S: Float, n: Float, x: Float, side: int, weight: float) -> None:
    """Add the centred row ``x`` to the statistics of its class; O(d²)."""
    n[side] += weight
    for j in range(x.shape[0]):
        V[SUM + side, j] += weight * x[j]
        V[SQ + side, j] += weight * (x[j] * x[j])
        V[NZ, j] += weight if x[j] != -V[REF, j] else 0.0
    add_outer(S[side], weight, x)


@vectorised
def gradient(
    V: Float, S: Float, n: Float, x: Float, side: int, g: Float
) -> tuple[float, float]:
    """Write the gradient at the centred row ``x`` to ``g``; O(d²).

    Returns two curvatures in the metric of the steps: the squared norm of x - c and the
    trace of S.
    """
    other = NEG if side == POS else POS
    to_mean = 1.0 / n[other]
    multiply(S[other], V[W], g)
    s = 0.0
    c_w = 0.0
    x_x = 0.0
    c_c = 0.0
    second = 0.0
    for j in range(x.shape[0]):
        c = V[SUM + other, j] * to_mean
        s += x[j] * V[W, j]
        c_w += c * V[W, j]
        x_x += V[D, j] * ((x[j] - c) * (x[j] - c))
        c_c += V[D, j] * (c * c)
        second += V[D, j] * V[SQ + other, j]
    residual = s - c_w - (1.0 if side == POS else -1.0)
    for j in range(x.shape[0]):
        c = V[SUM + other, j] * to_mean
        g[j] = g[j] * to_mean - c * c_w + (x[j] - c) * residual
    return x_x, second * to_mean - c_c


@inlined
def _fit_scale(V: Float, j: int, scale: float, variance: float, own: float) -> None:
    """Set the scale of feature ``j`` and rescale its weight.

    The mean of the iterates is rescaled only if the feature was constant or tiny so
    far, as in aucmax.online.engine.feature_table.
    """
    old = V[D, j]
    if old > 0.0:
        V[W, j] *= scale / old
    V[D, j] = scale
    if ASLEEP * scale < V[MARK, j] and scale < old and own < 0.5 * variance:
        V[MEAN, j] *= np.sqrt(scale / V[MARK, j])
        V[MARK, j] = scale
    V[MARK, j] = max(V[MARK, j], scale)


@inlined
def variance_of(V: Float, j: int, to_pos: float, to_neg: float) -> float:
    """Return the class-balanced variance of feature ``j``; zero if it is rounding."""
    mean = V[SUM, j] * to_pos + V[SUM + 1, j] * to_neg
    second = V[SQ, j] * to_pos + V[SQ + 1, j] * to_neg
    variance = second - mean * mean
    return variance if variance > max(_ROUNDING * second, TINY) else 0.0


@inlined
def ridge(V: Float, j: int, l2: L2) -> float:
    """Return λ_j, as in aucmax.online.engine.feature_table."""
    if l2.relative == 0.0 or V[NZ, j] == 0.0:
        return l2.plain
    return l2.plain + l2.relative * ((V[SQ, j] + V[SQ + 1, j]) / V[NZ, j])


@vectorised
def rescale(
    V: Float, n: Float, x: Float, own: float, l2: L2, precondition: bool
) -> tuple[float, float]:
    """Update the scales of features that are not at their reference point; O(d).

    Other scales stay: that of a rare feature would grow from row to row, and its weight
    with it. ``own`` times a squared value is the row's part of a second moment. Returns
    the mean squared norm of a row, class-balanced and about the mean, and the effective
    number of features.
    """
    to_pos, to_neg = 0.5 / n[POS], 0.5 / n[NEG]
    if precondition:
        for j in range(x.shape[0]):
            if x[j] != 0.0:
                variance = variance_of(V, j, to_pos, to_neg)
                scale = fitting_scale(variance, ridge(V, j, l2))
                if abs(V[D, j] - scale) > TOLERANCE * scale:
                    _fit_scale(V, j, scale, variance, own * x[j] * x[j])
    return _norm(V, to_pos, to_neg)


@inlined
def _norm(V: Float, to_pos: float, to_neg: float) -> tuple[float, float]:
    """Return the mean squared norm and the effective number of features."""
    norm = 0.0
    for j in range(V.shape[1]):
        norm += variance_of(V, j, to_pos, to_neg) * V[D, j]
    if norm == 0.0:
        return 1.0, 1.0
    share = 0.0
    for j in range(V.shape[1]):
        share = max(share, variance_of(V, j, to_pos, to_neg) * V[D, j])
    return norm, norm / share


@inlined
def visit_row(
    X: Rows,
    y: Float,
    i: int,
    state: State,
    x: Float,
    learns: bool,
    l2: L2,
    precondition: bool,
) -> bool:
    """Write row ``i`` centred to ``x``; return whether both classes have been seen."""
    V, S, n, z = state
    weight, side = abs(y[i]), POS if y[i] > 0.0 else NEG
    if z[ROWS] == 0.0 and z[KNOWN] == 0.0:
        copy_row(X, i, 1.0, V[REF], x)
        assign(V[REF], x)
    copy_row(X, i, 1.0, V[REF], x)
    if learns:
        z[ROWS] += 1.0
        learn(V, S, n, x, side, weight)
        if n[POS] == 0.0 or n[NEG] == 0.0:
            return False
        if z[ROWS] > z[KNOWN]:
            own = 0.5 * weight / n[side]
            z[NORM], z[WIDTH] = rescale(V, n, x, own, l2, precondition)
    return True


class CovarianceAUC(OnlineAUC):
    """Base of OPAUC and AdaOAM: hooks that ask the state."""

    _learns_in_fit: ClassVar[bool] = True

    def _begin(self, rows: Rows, moments: ClassMoments) -> Any:
        state = self._start(self.n_features_in_).in_layout(rows)
        state.fit_scales(moments, self._penalty(), bool(self.precondition))
        return state

    def _validate_state(self, state: Any) -> None:
        state.validate()

    def _in_layout(self, state: Any, rows: Rows) -> Any:
        return state.in_layout(rows)

    def _visit(self, rows: Rows, state: Any, learn: bool) -> Any:
        return learn

    def _class_weights(self, state: Any) -> Float:
        return state.n

    def _last(self, state: Any) -> tuple[Float, Float, int]:
        return state.last()

    def _weights(self, state: Any) -> tuple[Float, float]:
        return state.weights(self._penalty())
