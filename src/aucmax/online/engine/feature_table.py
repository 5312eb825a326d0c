r"""The feature table: what a linear learner keeps of every feature.

The learners work in coordinates of their own, without a copy of X: feature j is
centred on ``ref_j`` and its steps are scaled by

.. math:: D_j = 1 / (\tfrac12 E_+ (x_j - ref_j)^2 + \tfrac12 E_- (x_j - ref_j)^2
                     + \lambda_j / 4),

which is, up to a factor, the inverse diagonal of the Hessian of the pairwise square
loss with the ridge :math:`\lambda_j`. Differences of rows do not feel a shift and a
preconditioner does not move the minimum, so the objective stays what it is; what
changes is that raw features need no scaling by the user. (``fit`` trusts the moments of
rare features less, see ``PRIOR`` in :mod:`aucmax.base.class_moments`.)

Squares are summed about the reference point, because a feature may be a million spreads
from zero, as a date in seconds is: about zero, its spread would be lost in rounding.
"""

from typing import NamedTuple

import numpy as np

from aucmax.base.class_moments import NEG, POS, ROUNDING, TINY
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float

# The slots of Table.feat: the weight w, the scale D, the class sums, the average's part
# u (the mean of the iterates is w - u/Σγ), how often the feature is not zero (as a sum
# of weights), the class sums of squares about the reference point. Of a pair, the
# positives' is first. Eight numbers: for sparse rows, those of a feature share a cache
# line (see aucmax.core.rows.as_table).
W, D, SUM, U, NZ, SQ = 0, 1, 2, 4, 5, 6
SLOTS = 8

# The numbers of Table.stats: rows whose statistics are known; mean squared norm κ̄² of a
# row; about how many features make it up; the smallest and the largest λ_j D_j; rows at
# which to take all of these anew; the share p of the positives; what turns sums over
# the positives, and over the negatives, into means; what turns the weight of a row into
# one whose mean is one; Σ γ, the weights of the average; the penalty that is due, and
# the steps since it was last applied.
(
    ROWS,
    NORM,
    WIDTH,
    MILDEST,
    HARDEST,
    RENEW_AT,
    P,
    TO_POS,
    TO_NEG,
    TO_MEAN,
    PAST,
    DUE,
    SINCE,
) = range(13)

RENEW = 4.0  # scales are taken anew when there are so many times more rows

# A feature is centred when its mean is more than this many spreads from zero. By
# Cauchy-Schwarz it is then non-zero in more than 0.81 / 1.81 of the rows, so that
# visiting it in every sparse row stays O(nnz). (Not 1: that is what two rows, one of
# them zero, have, and rounding would decide.)
MEAN_TO_SPREAD = 0.9
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


class Table(NamedTuple):
    """The features, and what is known of the rows; its arrays change in place."""

    feat: Float  # (8, d) see the slots above
    ref: Float  # (d,) reference points
    mark: Float  # (d,) the scales that the average was learnt with
    n: Float  # (2,) weight of the positives and of the negatives
    stats: Float  # (13,) numbers, see above


class L2(NamedTuple):
    r"""An l2 penalty :math:`\tfrac12 \sum_j \lambda_j w_j^2`.

    Either the same for all weights, whatever the units of their features, as papers
    have it, or relative to the mean square of a feature where it is not zero: that one
    depends on no unit, and what is rare is not held back less for that.
    """

    plain: float
    relative: float


NO_PENALTY = L2(0.0, 0.0)


def empty(n_features: int, precondition: bool) -> Table:
    """Return the table before the first row."""
    feat = np.zeros((SLOTS, n_features))
    if not precondition:
        feat[D] = 1.0
    ref, mark = np.zeros(n_features), np.zeros(n_features)
    return Table(feat, ref, mark, np.zeros(2), np.zeros(13))


@inlined
def assign(out: Float, values: Float) -> None:
    """Write ``values`` to ``out``, of the same length.

    (What ``out[:] = values`` says when lengths differ takes seconds to compile.)
    """
    for j in range(out.shape[0]):
        out[j] = values[j]


@inlined
def take_rates(table: Table) -> None:
    """Take p and what turns sums into means from the weights of the classes."""
    stats, pos, neg = table.stats, table.n[POS], table.n[NEG]
    stats[P] = pos / (pos + neg)
    stats[TO_POS] = 1.0 / max(pos, TINY)
    stats[TO_NEG] = 1.0 / max(neg, TINY)
    stats[TO_MEAN] = stats[ROWS] / (pos + neg)


@inlined
def second_moment(feat: Float, j: int, to_pos: float, to_neg: float) -> float:
    """Return the mean of (x_j - ref_j)², classes balanced; zero if it is rounding."""
    mean = 0.5 * (feat[SUM, j] * to_pos + feat[SUM + 1, j] * to_neg)
    second = 0.5 * (feat[SQ, j] * to_pos + feat[SQ + 1, j] * to_neg)
    return second if second > max(ROUNDING * (mean * mean), TINY) else 0.0


@inlined
def off_scale(
    feat: Float, j: int, to_pos: float, to_neg: float, l2: L2, tolerance: float
) -> bool:
    """Return whether the scale of feature ``j`` does not fit the class moments."""
    second = second_moment(feat, j, to_pos, to_neg)
    often, squares = feat[NZ, j], feat[SQ, j] + feat[SQ + 1, j]
    # D (second + λ/4) - 1, times the frequency: a division less.
    fit = (second + 0.25 * l2.plain) * often + 0.25 * l2.relative * squares
    scale = feat[D, j]
    off = abs(scale * fit - often) > tolerance * often
    return off if second > 0.0 else scale > 0.0


@inlined
def ridge(feat: Float, j: int, l2: L2) -> float:
    """Return λ_j."""
    often, squares = feat[NZ, j], feat[SQ, j] + feat[SQ + 1, j]
    return l2.plain + (l2.relative * (squares / often) if often > 0.0 else 0.0)


@inlined
def fitting_scale(second: float, l2_j: float) -> float:
    """Return D; zero for a feature that has been constant: it teaches nothing."""
    return 1.0 / (second + 0.25 * l2_j) if second > 0.0 else 0.0


@inlined
def rescale(table: Table, j: int, l2: L2, follows: bool, own: float) -> float:
    """Take the scale of feature ``j`` from the class moments; return the change of w_j.

    A weight is a sum of steps times a scale, so it follows the scale. Otherwise the
    first large value of a feature that had been small would upset the score by any
    factor (cf. Ross, Mineiro and Langford, "Normalized online learning", UAI 2013).

    The average's past stays what it was, unless it ``follows`` as the weight does: most
    changes of scale are noise, or one wild row. Only if a feature wakes up does it
    follow, so as to be the same in units of the feature's spread: if the scale falls
    far below the one that the past was learnt with, which is ``mark``, and that is not
    the doing of this row, whose share in the second moment is ``own``.
    """
    feat, stats = table.feat, table.stats
    old, past, mark, u = feat[D, j], stats[PAST], table.mark[j], feat[U, j]
    second = second_moment(feat, j, stats[TO_POS], stats[TO_NEG])
    new = fitting_scale(second, ridge(feat, j, l2))
    growth = new / old - 1.0 if old > 0.0 else 0.0
    change = feat[W, j] * growth
    feat[D, j] = new
    feat[W, j] += change
    # Arrays are not touched in a branch: see CONTRIBUTING, traps.
    u += u * growth if follows else past * change
    woken = ASLEEP * new < mark and new < old and own < 0.5 * second and not follows
    total = past * feat[W, j]  # less U, that is the sum of the past
    feat[U, j] = total - np.sqrt(new / mark) * (total - u) if woken else u
    table.mark[j] = new if woken else max(mark, new)
    return change


@inlined
def _recentre(feat: Float, ref: Float, j: int, to_pos: float, to_neg: float) -> None:
    """Put the reference point of feature ``j`` at its mean, or at zero if it is near.

    The sums of squares move along. What is lost to rounding there is forgotten: a
    feature far from zero counts as constant until rows have been seen from close by.
    """
    mean = 0.5 * (feat[SUM, j] * to_pos + feat[SUM + 1, j] * to_neg)
    second = 0.5 * (feat[SQ, j] * to_pos + feat[SQ + 1, j] * to_neg)
    old = ref[j]
    variance = second - (mean - old) * (mean - old)
    ref[j] = mean if mean * mean > MEAN_TO_SPREAD**2 * variance else 0.0
    shift = ref[j] - old
    for side, to_mean in ((0, to_pos), (1, to_neg)):
        off = feat[SUM + side, j] * to_mean - old
        squares = feat[SQ + side, j] * to_mean - shift * (2.0 * off - shift)
        some = squares > _CANCELLED * (shift * shift)
        feat[SQ + side, j] = squares / to_mean if some else 0.0


@kernel
def refresh(table: Table, l2: L2, precondition: bool) -> float:
    """Take reference points and scales from the class moments; O(d).

    And of a row in the new coordinates, classes balanced: the mean squared norm, how
    many features of the largest share in it would make it up, and the smallest and the
    largest λ_j D_j, which say how convex the penalty is in the metric of the steps.
    Returns by how much the new reference points shift all scores.
    """
    feat, ref, _, _, stats = table
    take_rates(table)
    to_pos, to_neg = stats[TO_POS], stats[TO_NEG]
    norm = share = shift = 0.0
    mildest, hardest = np.inf, 0.0
    for j in range(feat.shape[1]):
        if feat[NZ, j] == 0.0:  # not seen yet
            continue
        if precondition:
            before = ref[j]
            _recentre(feat, ref, j, to_pos, to_neg)
            shift += feat[W, j] * (before - ref[j])
        second = second_moment(feat, j, to_pos, to_neg)
        l2_j = ridge(feat, j, l2)
        if precondition:
            feat[D, j] = fitting_scale(second, l2_j)
        if second > 0.0:  # else constant
            norm += second * feat[D, j]
            share = max(share, second * feat[D, j])
            mildest = min(mildest, l2_j * feat[D, j])
            hardest = max(hardest, l2_j * feat[D, j])
    if norm == 0.0:
        norm, share, mildest, hardest = 1.0, 1.0, l2.plain, l2.plain
    stats[NORM], stats[WIDTH] = norm, norm / share
    stats[MILDEST], stats[HARDEST] = mildest, hardest
    stats[RENEW_AT] = RENEW * stats[ROWS]
    return shift


@kernel
def penalise(table: Table, l2: L2, due: float) -> None:
    """Apply the proximal map of ``due`` times the penalty; O(d)."""
    feat, past = table.feat, table.stats[PAST]
    for j in range(feat.shape[1]):
        w = feat[W, j]
        if w == 0.0:  # most features of a wide table: not to write them saves time
            continue
        shrunk = w / (1.0 + due * ridge(feat, j, l2) * feat[D, j])
        feat[W, j] = shrunk
        feat[U, j] += past * (shrunk - w)


@kernel
def class_scores(table: Table) -> tuple[float, float]:
    """Return the mean centred scores of both classes, w·(m₊ - ref), w·(m₋ - ref)."""
    feat, ref, _, _, stats = table
    a = 0.0
    b = 0.0
    for j in range(feat.shape[1]):
        a += feat[W, j] * (feat[SUM, j] * stats[TO_POS] - ref[j])
        b += feat[W, j] * (feat[SUM + 1, j] * stats[TO_NEG] - ref[j])
    return a, b


@inlined
def unit_weight(feat: Float, j: int) -> float:
    """Return |w|/√D: the weight that feature ``j`` would have at unit scale."""
    w, scale = feat[W, j], feat[D, j]
    return abs(w) / np.sqrt(scale) if scale > 0.0 else 0.0


@kernel
def norms(feat: Float) -> tuple[float, float]:
    """Return Σ w²/D and Σ |w|/√D: the norms of the weights of unit-scale features."""
    squares = 0.0
    absolute = 0.0
    for j in range(feat.shape[1]):
        unit = unit_weight(feat, j)
        squares += unit * unit
        absolute += unit
    return squares, absolute


@kernel
def unit_magnitudes(feat: Float) -> Float:
    """Return |w|/√D of every feature."""
    magnitudes = np.zeros(feat.shape[1])
    for j in range(feat.shape[1]):
        magnitudes[j] = unit_weight(feat, j)
    return magnitudes


@kernel
def soften(feat: Float, threshold: float, past: float) -> None:
    """Soft-threshold the weights of unit-scale features, w/√D; O(d)."""
    for j in range(feat.shape[1]):
        w = feat[W, j]
        soft = np.sign(w) * max(abs(w) - threshold * np.sqrt(feat[D, j]), 0.0)
        feat[W, j] = soft
        feat[U, j] += past * (soft - w)


@kernel
def rebase(feat: Float, scale: float, past: float) -> None:
    """Multiply the weights by ``scale``, and start the average's sum anew; O(d).

    Without this, the average of weights whose factor has fallen far would be a small
    difference of large numbers.
    """
    for j in range(feat.shape[1]):
        feat[U, j] -= past * feat[W, j]
        feat[W, j] *= scale


def fade(table: Table, share: float) -> None:
    """Let all rows so far count ``share`` of what they did; O(d).

    In the class moments and in the average. Means, scales and weights stay as they are.
    """
    for slot in (U, NZ, SUM, SUM + 1, SQ, SQ + 1):
        table.feat[slot] *= share
    n, stats = table.n, table.stats
    n *= share
    stats[[ROWS, RENEW_AT, PAST]] *= share
    stats[[TO_POS, TO_NEG]] /= share


@kernel
def _average(feat: Float, past: float, scores: Float) -> Float:
    """Return the weighted mean of the iterates; write the sums of its scores."""
    w = np.empty(feat.shape[1])
    share = 1.0 / past if past > 0.0 else 0.0
    pos = neg = 0.0
    for j in range(w.shape[0]):
        w[j] = feat[W, j] - share * feat[U, j]
        pos += w[j] * feat[SUM, j]
        neg += w[j] * feat[SUM + 1, j]
    scores[0], scores[1] = pos, neg
    return w


def averaged(table: Table) -> tuple[Float, float]:
    """Return the weighted mean of the iterates and its intercept, see ``threshold``.

    The last iterate, if there is no average.
    """
    scores = np.empty(2)
    w = _average(table.feat, table.stats[PAST], scores)
    return w, -0.5 * float((scores / table.n).sum()) if table.n.all() else 0.0


def threshold(w: Float, table: Table) -> float:
    """Return the intercept that puts zero midway between the classes' mean scores."""
    return -0.5 * float((table.feat[SUM : SUM + 2] @ w / table.n).sum())
