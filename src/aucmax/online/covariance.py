r"""The gradient of OPAUC, and the class covariances that it is made of.

Gao, Jin, Zhu and Zhou (ICML 2013): at a positive row x, with the mean c and the
covariance S of the *negatives* so far, half the gradient of the pairwise square loss is

.. math:: g = S w + (x - c)\,((x - c) \cdot w - 1) ,

and with the positives' and +1 at a negative row. The expectation over rows of either
class is the same.

Rows are seen centred, x̃ = x - ref, and what is kept is Σ x̃ and Σ x̃x̃ᵀ of either class:
then S w is (Σ x̃x̃ᵀ w)/T - c̃ (c̃·w), which cancels badly only if the classes are far from
the reference point. A matrix is its lower triangle, row after row.
"""

from typing import Any

import numpy as np

from aucmax.base.class_moments import ROUNDING, TINY
from aucmax.base.class_moments import ClassMoments as Tally
from aucmax.core.jit import inlined, vectorised
from aucmax.core.rows import Float
from aucmax.core.validation import check_width
from aucmax.online.engine import NEG, POS
from aucmax.online.engine.feature_table import ASLEEP, L2, TOLERANCE, fitting_scale
from aucmax.online.engine.known_moments import centres

# The slots of V, by feature: weight, scale, mean of the iterates, reference point, and
# Σ x̃ and Σ x̃² of the positives and (next) of the negatives; how often it is not zero;
# more may follow.
W, D, MEAN, REF, SUM = range(5)
SQ = SUM + 2  # the diagonals once more, side by side
NZ = SQ + 2
MARK = NZ + 1  # the scale that the mean was learnt with
SLOTS = 10

# A variance below this share of the second moment is rounding error.
_ROUNDING = 1e-13

# The numbers in z: rows whose statistics are in; rows whose scales were known before;
# mean squared norm of a row; about how many features make it up; more may follow.
ROWS, KNOWN, NORM, WIDTH = range(4)


def empty(
    n_features: int, precondition: bool, name: str, slots: int = SLOTS
) -> tuple[Float, Float]:
    """Return V and both triangles before the first row."""
    check_width(
        n_features,
        1,
        f"{name} keeps two symmetric d x d matrices",
        "OPAUC(rank=50) keeps sketches of them, SPAM minimises the same loss without "
        "any.",
    )
    V = np.zeros((slots, n_features))
    if not precondition:
        V[D] = 1.0
    return V, np.zeros((2, n_features * (n_features + 1) // 2))


def triangle(S: Float, n_features: int) -> Float:
    """Return a symmetric matrix from its lower triangle."""
    full = np.zeros((n_features, n_features))
    full[np.tril_indices(n_features)] = S
    return full + np.tril(full, -1).T


# Unsigned indices into one dimension are what the compiler turns into SIMD: three to
# four times faster than the same loops over S[side, at + k].


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
    """Write the product of a triangle, as a symmetric matrix, and w."""
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

    Returns the two parts of its curvature in the metric of the steps: the squared norm
    of x - c, and the trace of S.
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
    """Give feature ``j`` its scale; its weight, a sum of steps times scale, follows.

    The mean of the iterates does if the feature wakes up: see
    aucmax.online.engine.feature_table.
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
    """Return the variance of feature ``j``, classes balanced; zero if rounding."""
    mean = V[SUM, j] * to_pos + V[SUM + 1, j] * to_neg
    second = V[SQ, j] * to_pos + V[SQ + 1, j] * to_neg
    variance = second - mean * mean
    return variance if variance > max(_ROUNDING * second, TINY) else 0.0


@inlined
def ridge(V: Float, j: int, l2: L2) -> float:
    """Return λ_j: see aucmax.online.engine.feature_table."""
    if l2.relative == 0.0 or V[NZ, j] == 0.0:
        return l2.plain
    return l2.plain + l2.relative * ((V[SQ, j] + V[SQ + 1, j]) / V[NZ, j])


@vectorised
def rescale(
    V: Float, n: Float, x: Float, own: float, l2: L2, precondition: bool
) -> tuple[float, float]:
    """Take scales from the statistics, where the row is off the reference; O(d).

    Not elsewhere: the scale of a rare feature would grow from row to row, and its
    weight with it. Scales are those of :mod:`aucmax.online.engine`, about the balanced
    mean of the classes; ``own`` is the share of the row in a second moment, over its
    square. Returns, classes balanced, the mean squared norm of a row about
    that mean, and how many features of the largest share in it would make it up.
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
    norm = 0.0
    for j in range(V.shape[1]):
        norm += variance_of(V, j, to_pos, to_neg) * V[D, j]
    if norm == 0.0:
        return 1.0, 1.0
    share = 0.0
    for j in range(V.shape[1]):
        share = max(share, variance_of(V, j, to_pos, to_neg) * V[D, j])
    return norm, norm / share


def fit_scales(state: Any, tally: Tally, l2: L2, precondition: bool) -> None:
    """Fit reference points and scales to the moments of rows that are to be seen.

    Features near zero have no reference point: zeros of sparse data stay zeros, and
    cost nothing in ``add_outer``.
    """
    V = state.V
    V[REF] = centres(tally)
    mean = 0.5 * (tally.mean[POS] + tally.mean[NEG])
    variance = 0.5 * (tally.variance + (tally.mean - mean) ** 2).sum(axis=0)
    variance[variance <= np.maximum(ROUNDING * mean**2, TINY)] = 0.0
    about = tally.variance + (tally.mean - V[REF]) ** 2
    often, square = tally.weight @ tally.nonzero_share, tally.weight @ about
    size = np.divide(square, often, out=np.zeros_like(often), where=often > 0.0)
    curvature = variance + 0.25 * (l2.plain + l2.relative * size)
    if precondition:
        V[D] = np.divide(
            1.0, curvature, out=np.zeros_like(curvature), where=variance > 0.0
        )
    V[MARK] = V[D]
    norm = float((variance * V[D]).sum())
    state.z[KNOWN] = tally.rows.sum()
    state.z[NORM] = state.z[WIDTH] = 1.0
    if norm > 0.0:
        state.z[NORM], state.z[WIDTH] = norm, norm / (variance * V[D]).max()


def weights(V: Float, n: Float) -> tuple[Float, float]:
    """Return the mean of the iterates, and the intercept midway between the classes."""
    w = V[MEAN].copy()
    if not n.all():
        return w, 0.0
    centre = 0.5 * float((V[SUM : SUM + 2] @ w / n).sum()) + float(V[REF] @ w)
    return w, -centre
