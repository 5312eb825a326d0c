r"""The feature table: what a linear learner keeps of every feature.

Two arrays of four slots each; columns are features. What every visit of a row needs is
in ``hot``: the weight, the scale, and the class sums. For CSR data it is stored feature
by feature, so that the four numbers of a feature share half a cache line; for dense
data slot by slot, so that loops run in SIMD. The rest is in ``cold``: the average's
part, how often the feature is not zero, and the class sums of squares about the
reference point. It is stored slot by slot. In streams of CSR rows, where statistics are
learnt as well, all eight numbers of a feature stand side by side and share a cache
line. The reference points are an array of their own, ``ref``: sparse rows mostly have
none.

The learners work in coordinates of their own, without a copy of X: feature j is
centred on ``ref_j`` and its steps are scaled by

.. math:: D_j = 1 / (\tfrac12 E_+ (x_j - ref_j)^2 + \tfrac12 E_- (x_j - ref_j)^2
                     + \lambda_j / 4),

which is, up to a factor, the inverse diagonal of the Hessian of the pairwise square
loss with the ridge :math:`\lambda_j`. Differences of rows do not feel a shift and a
preconditioner does not move the minimum, so the objective stays what it is; what
changes is that raw features need no scaling by the user.

Squares are summed about the reference point, because a feature may be a million spreads
from zero, as a date in seconds is: about zero, its spread would be lost in rounding.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aucmax.core.jit import inlined, kernel

Float: TypeAlias = NDArray[np.float64]

# The slots of hot and of cold; of a pair, the positives' is first, the negatives' next.
W, D, SUM = 0, 1, 2
U, NZ, SQ = 0, 1, 2

# A feature is centred when its mean is more than this many spreads from zero. By
# Cauchy-Schwarz it is then non-zero in more than 0.81 / 1.81 of the rows, so that
# visiting it in every sparse row stays O(nnz). (Not 1: that is what two rows, one of
# them zero, have, and rounding would decide.)
MEAN_TO_SPREAD = 0.9
# A mean square about the reference point below this share of the squared mean is
# rounding error, and one below this size has no inverse.
ROUNDING, TINY = 1e-15, 1e-300
# A sum of squares that falls to less than this share of what its reference point moved
# by has no digits left.
_CANCELLED = 1e-10
# A scale is left as it is while it is right to this share. Steps do not feel more, the
# scale of a feature seen k times is not known better than to 1/√k, and to mend it at
# each visit of a rare feature took a quarter of a stream's time.
TOLERANCE = 0.25
# When a scale falls by more than this, the feature was asleep when the average's past
# was learnt.
ASLEEP = 256.0


class L2(NamedTuple):
    r"""An l2 penalty :math:`\tfrac12 \sum_j \lambda_j w_j^2`.

    Either the same for all weights, whatever the units of their features, as papers
    have it, or relative to the mean square of a feature where it is not zero: that one
    depends on no unit, and what is rare is not held back less for that.
    """

    plain: float
    relative: float


NO_PENALTY = L2(0.0, 0.0)


def empty(n_features: int, precondition: bool) -> tuple[Float, Float, Float]:
    """Return ``hot``, ``cold`` and ``ref`` before the first row."""
    hot, cold = np.zeros((4, n_features)), np.zeros((4, n_features))
    if not precondition:
        hot[D] = 1.0
    return hot, cold, np.zeros(n_features)


@inlined
def assign(out: Float, values: Float) -> None:
    """Write ``values`` to ``out``, of the same length.

    (What ``out[:] = values`` says when lengths differ takes seconds to compile.)
    """
    for j in range(out.shape[0]):
        out[j] = values[j]


@inlined
def second_moment(
    hot: Float, cold: Float, j: int, to_pos: float, to_neg: float
) -> float:
    """Return the mean of (x_j - ref_j)², classes balanced; zero if it is rounding."""
    mean = 0.5 * (hot[SUM, j] * to_pos + hot[SUM + 1, j] * to_neg)
    second = 0.5 * (cold[SQ, j] * to_pos + cold[SQ + 1, j] * to_neg)
    return second if second > max(ROUNDING * (mean * mean), TINY) else 0.0


@inlined
def off_scale(
    hot: Float,
    cold: Float,
    j: int,
    to_pos: float,
    to_neg: float,
    l2: L2,
    tolerance: float,
) -> bool:
    """Return whether the scale of feature ``j`` does not fit the class moments."""
    second = second_moment(hot, cold, j, to_pos, to_neg)
    often, squares = cold[NZ, j], cold[SQ, j] + cold[SQ + 1, j]
    # D (second + λ/4) - 1, times the frequency: a division less.
    fit = (second + 0.25 * l2.plain) * often + 0.25 * l2.relative * squares
    off = abs(hot[D, j] * fit - often) > tolerance * often
    return off if second > 0.0 else hot[D, j] > 0.0


@inlined
def ridge(cold: Float, j: int, l2: L2) -> float:
    """Return λ_j."""
    if l2.relative == 0.0 or cold[NZ, j] == 0.0:
        return l2.plain
    return l2.plain + l2.relative * ((cold[SQ, j] + cold[SQ + 1, j]) / cold[NZ, j])


@inlined
def fitting_scale(second: float, l2_j: float) -> float:
    """Return D; zero for a feature that has been constant: it teaches nothing."""
    return 1.0 / (second + 0.25 * l2_j) if second > 0.0 else 0.0


@inlined
def rescale(
    hot: Float,
    cold: Float,
    mark: Float | None,
    j: int,
    to_pos: float,
    to_neg: float,
    l2: L2,
    past: float | None,
    own: float,
) -> float:
    """Take the scale of feature ``j`` from the class moments; return the change of w_j.

    A weight is a sum of steps times a scale, so it follows the scale. Otherwise the
    first large value of a feature that had been small would upset the score by any
    factor (cf. Ross, Mineiro and Langford, "Normalized online learning", UAI 2013).

    The average's ``past`` stays what it was: most changes of scale are noise, or one
    wild row. Only if a feature wakes up does it follow, so as to be the same in units
    of the feature's spread: if the scale falls far below the one that the past was
    learnt with, which is ``mark``, and that is not the doing of this row, whose share
    in the second moment is ``own``. With ``past=None`` it follows as the weight does.
    """
    if not off_scale(hot, cold, j, to_pos, to_neg, l2, TOLERANCE):
        return 0.0
    old = hot[D, j]
    second = second_moment(hot, cold, j, to_pos, to_neg)
    new = fitting_scale(second, ridge(cold, j, l2))
    growth = new / old - 1.0 if old > 0.0 else 0.0
    change = hot[W, j] * growth
    hot[D, j] = new
    hot[W, j] += change
    if past is None or mark is None:
        cold[U, j] += cold[U, j] * growth
        return change
    cold[U, j] += past * change
    if ASLEEP * new < mark[j] and new < old and own < 0.5 * second:
        total = past * hot[W, j]  # less U, that is the sum of the past
        cold[U, j] = total - np.sqrt(new / mark[j]) * (total - cold[U, j])
        mark[j] = new
    mark[j] = max(mark[j], new)
    return change


@inlined
def _recentre(
    hot: Float, cold: Float, ref: Float, j: int, to_pos: float, to_neg: float
) -> None:
    """Put the reference point of feature ``j`` at its mean, or at zero if it is near.

    The sums of squares move along. What is lost to rounding there is forgotten: a
    feature far from zero counts as constant until rows have been seen from close by.
    """
    mean = 0.5 * (hot[SUM, j] * to_pos + hot[SUM + 1, j] * to_neg)
    second = 0.5 * (cold[SQ, j] * to_pos + cold[SQ + 1, j] * to_neg)
    old = ref[j]
    variance = second - (mean - old) * (mean - old)
    ref[j] = mean if mean * mean > MEAN_TO_SPREAD**2 * variance else 0.0
    shift = ref[j] - old
    for side, to_mean in ((0, to_pos), (1, to_neg)):
        off = hot[SUM + side, j] * to_mean - old
        squares = cold[SQ + side, j] * to_mean - shift * (2.0 * off - shift)
        some = squares > _CANCELLED * (shift * shift)
        cold[SQ + side, j] = squares / to_mean if some else 0.0


@kernel
def refresh(
    hot: Float,
    cold: Float,
    ref: Float,
    to_pos: float,
    to_neg: float,
    l2: L2,
    precondition: bool,
) -> tuple[float, float, float, float]:
    """Take reference points and scales from the class moments; O(d).

    ``to_pos`` and ``to_neg`` turn class sums into means. Returns, classes balanced, the
    mean squared norm of a row in the new coordinates, how many features of the largest
    share in it would make it up, and the smallest and the largest λ_j D_j: how convex
    the penalty is in the metric of the steps.
    """
    norm = share = 0.0
    mildest, hardest = np.inf, 0.0
    for j in range(hot.shape[1]):
        if cold[NZ, j] == 0.0:  # not seen yet
            continue
        if precondition:
            _recentre(hot, cold, ref, j, to_pos, to_neg)
        second = second_moment(hot, cold, j, to_pos, to_neg)
        l2_j = ridge(cold, j, l2)
        if precondition:
            hot[D, j] = fitting_scale(second, l2_j)
        if second > 0.0:  # else constant
            norm += second * hot[D, j]
            share = max(share, second * hot[D, j])
            mildest = min(mildest, l2_j * hot[D, j])
            hardest = max(hardest, l2_j * hot[D, j])
    if norm == 0.0:
        return 1.0, 1.0, l2.plain, l2.plain
    return norm, norm / share, mildest, hardest


@kernel
def penalise(hot: Float, cold: Float, l2: L2, due: float, past: float) -> None:
    """Apply the penalty that has fallen due since the last time; O(d).

    The proximal map, in the metric of the steps, of ``due`` times the penalty. Applying
    it to a whole stretch of steps at once costs O(1) a step.
    """
    for j in range(hot.shape[1]):
        w = hot[W, j]
        if w == 0.0:  # most features of a wide table: not to write them saves time
            continue
        l2_j = ridge(cold, j, l2)
        shrunk = w / (1.0 + due * l2_j * hot[D, j])
        hot[W, j] = shrunk
        cold[U, j] += past * (shrunk - w)


@kernel
def class_scores(
    hot: Float, ref: Float, to_pos: float, to_neg: float
) -> tuple[float, float]:
    """Return the mean centred scores of both classes, w·(m₊ - ref), w·(m₋ - ref)."""
    a = 0.0
    b = 0.0
    for j in range(hot.shape[1]):
        a += hot[W, j] * (hot[SUM, j] * to_pos - ref[j])
        b += hot[W, j] * (hot[SUM + 1, j] * to_neg - ref[j])
    return a, b


@kernel
def norms(hot: Float) -> tuple[float, float]:
    """Return Σ w²/D and Σ |w|/√D: the norms of the weights of unit-scale features."""
    squares = 0.0
    absolute = 0.0
    for j in range(hot.shape[1]):
        if hot[D, j] > 0.0:
            squares += hot[W, j] * (hot[W, j] / hot[D, j])  # w² could overflow
            absolute += abs(hot[W, j]) / np.sqrt(hot[D, j])
    return squares, absolute


@kernel
def unit_magnitudes(hot: Float) -> Float:
    """Return |w|/√D of every feature that has a scale."""
    magnitudes = np.zeros(hot.shape[1])
    for j in range(hot.shape[1]):
        if hot[D, j] > 0.0:
            magnitudes[j] = abs(hot[W, j]) / np.sqrt(hot[D, j])
    return magnitudes


@kernel
def soften(hot: Float, cold: Float, threshold: float, sum_gamma: float) -> None:
    """Soft-threshold the weights of unit-scale features, w/√D; O(d)."""
    for j in range(hot.shape[1]):
        w = hot[W, j]
        soft = np.sign(w) * max(abs(w) - threshold * np.sqrt(hot[D, j]), 0.0)
        hot[W, j] = soft
        cold[U, j] += sum_gamma * (soft - w)


@kernel
def rebase(hot: Float, cold: Float, scale: float, sum_gamma: float) -> None:
    """Multiply the weights by ``scale``, and start the average's sum anew; O(d).

    Without this, the average of weights whose factor has fallen far would be a small
    difference of large numbers.
    """
    for j in range(hot.shape[1]):
        cold[U, j] -= sum_gamma * hot[W, j]
        hot[W, j] *= scale


@kernel
def _average(hot: Float, cold: Float, sum_gamma: float, scores: Float) -> Float:
    """Return the weighted mean of the iterates; write the sums of its scores."""
    w = np.empty(hot.shape[1])
    share = 1.0 / sum_gamma if sum_gamma > 0.0 else 0.0
    pos = neg = 0.0
    for j in range(w.shape[0]):
        w[j] = hot[W, j] - share * cold[U, j]
        pos += w[j] * hot[SUM, j]
        neg += w[j] * hot[SUM + 1, j]
    scores[0], scores[1] = pos, neg
    return w


def averaged(
    hot: Float, cold: Float, n: Float, sum_gamma: float
) -> tuple[Float, float]:
    """Return the weighted mean of the iterates and its intercept, see ``threshold``."""
    scores = np.empty(2)
    w = _average(hot, cold, sum_gamma, scores)
    return w, -0.5 * float((scores / n).sum()) if n.all() else 0.0


def threshold(w: Float, sums: Float, n: Float) -> float:
    """Return the intercept that puts zero midway between the classes' mean scores."""
    return -0.5 * float((sums @ w / n).sum())
