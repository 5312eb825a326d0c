r"""The feature table: the weights, scales and class moments of every feature.

Learners work in coordinates of their own, without a copy of X: feature j is centred on
``ref_j`` and its steps are multiplied by

.. math:: D_j = 1 / (\tfrac12 E_+ (x_j - ref_j)^2 + \tfrac12 E_- (x_j - ref_j)^2
                     + \lambda_j / 4),

up to a factor the inverse diagonal of the Hessian of the pairwise square loss with the
ridge :math:`\lambda_j`. A shift does not change differences of rows, and a
preconditioner does not move the minimum, so the objective is unchanged: only raw
features no longer need scaling by the user. ``fit`` trusts the moments of rare features
less, see ``PRIOR`` in :mod:`aucmax.online.engine.known_moments`.

Squares are summed about the reference point: a feature may be a million standard
deviations from zero (a date in seconds), and about zero its variance would be lost in
rounding.
"""

from typing import NamedTuple

import numpy as np

from aucmax.base.class_moments import NEG, POS, ROUNDING, TINY
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float

# Slots of Table.feat: weight w; scale D; class sums (2); the part u of the average (the
# mean of the iterates is w - u/Σγ); weight of the rows where the feature is not zero;
# class sums of squares about the reference point (2). Of two, the positives' is first.
# Eight numbers: in sparse rows those of one feature share a cache line.
W, D, SUM, U, NZ, SQ = 0, 1, 2, 4, 5, 6
SLOTS = 8

# Slots of Table.stats, with accessors in aucmax.online.engine.statistics:
# rows counted; mean squared norm of a row; effective number of features (how many of
# the largest share would make up that norm); smallest and largest λ_j D_j; rows at
# which to recompute all of these; class prior p; factors from class sums to class means
# (2); factor from row weights to weights of mean one; Σγ, the weight of the average;
# penalty that is due, and steps since it was last applied.
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

RENEW = 4.0  # scales are recomputed when the number of rows has grown by this factor

# A feature is centred if its mean is more than this many standard deviations from 0. By
# Cauchy-Schwarz it is then non-zero in more than 0.81 / 1.81 of the rows: visiting it
# in every sparse row stays O(nnz). (Not 1: two rows, one of them zero, have exactly
# that ratio, and rounding would decide.)
MEAN_TO_DEVIATION = 0.9
# A sum of squares below this fraction of the squared shift has no digits left.
_CANCELLED = 1e-10
# Relative error up to which a scale is kept. Steps do not notice, a scale from k rows
# is only known to 1/√k, and correcting it at each visit took a quarter of a stream's
# time.
TOLERANCE = 0.25
# A scale that falls by more than this factor belongs to a feature that was constant or
# tiny while the average was learnt.
ASLEEP = 256.0
# Least factor of one fading, and least weight of a class after it: sums stay above the
# smallest numbers.
_MIN_SHARE, _MIN_WEIGHT = 2.0**-64, 1e-30


class Table(NamedTuple):
    """Numbers of all features and of the rows so far; updated in place."""

    feat: Float  # (8, d) slots above
    ref: Float  # (d,) reference points
    mark: Float  # (d,) scales that the average was learnt with
    n: Float  # (2,) weight of the positives and of the negatives
    stats: Float  # (13,) slots above


class L2(NamedTuple):
    r"""An l2 penalty :math:`\tfrac12 \sum_j \lambda_j w_j^2`.

    :math:`\lambda_j` is ``plain``, as in the papers, plus ``relative`` times the mean
    square of the feature where it is not zero, which does not depend on units.
    """

    plain: float
    relative: float


NO_PENALTY = L2(0.0, 0.0)


def empty(n_features: int, precondition: bool) -> Table:
    """Return an empty table."""
    feat = np.zeros((SLOTS, n_features))
    if not precondition:
        feat[D] = 1.0
    ref, mark = np.zeros(n_features), np.zeros(n_features)
    return Table(feat, ref, mark, np.zeros(2), np.zeros(13))


@inlined
def assign(out: Float, values: Float) -> None:
    """Copy ``values`` to ``out``; ``out[:] = values`` takes seconds to compile."""
    for j in range(out.shape[0]):
        out[j] = values[j]


@inlined
def update_rates(table: Table) -> None:
    """Update the class prior and the factors from sums to means."""
    stats, pos, neg = table.stats, table.n[POS], table.n[NEG]
    stats[P] = pos / (pos + neg)
    stats[TO_POS] = 1.0 / max(pos, TINY)
    stats[TO_NEG] = 1.0 / max(neg, TINY)
    stats[TO_MEAN] = stats[ROWS] / (pos + neg)


@inlined
def second_moment(feat: Float, j: int, to_pos: float, to_neg: float) -> float:
    """Return the class-balanced mean of (x_j - ref_j)²; zero if it is rounding."""
    mean = 0.5 * (feat[SUM, j] * to_pos + feat[SUM + 1, j] * to_neg)
    second = 0.5 * (feat[SQ, j] * to_pos + feat[SQ + 1, j] * to_neg)
    return second if second > max(ROUNDING * (mean * mean), TINY) else 0.0


@inlined
def mean_square(table: Table, j: int) -> float:
    """Return ``second_moment`` with the class weights of the table."""
    return second_moment(table.feat, j, table.stats[TO_POS], table.stats[TO_NEG])


@inlined
def off_scale(
    feat: Float, j: int, to_pos: float, to_neg: float, l2: L2, tolerance: float
) -> bool:
    """Return whether the scale of feature ``j`` is out of tolerance."""
    second = second_moment(feat, j, to_pos, to_neg)
    often, squares = feat[NZ, j], feat[SQ, j] + feat[SQ + 1, j]
    # D (second + λ/4) - 1, times the frequency: a division less.
    fit = (second + 0.25 * l2.plain) * often + 0.25 * l2.relative * squares
    scale = feat[D, j]
    off = abs(scale * fit - often) > tolerance * often
    return off if second > 0.0 else scale > 0.0


@inlined
def is_off_scale(table: Table, j: int, l2: L2, tolerance: float) -> bool:
    """Return ``off_scale`` with the class weights of the table."""
    to_pos, to_neg = table.stats[TO_POS], table.stats[TO_NEG]
    return off_scale(table.feat, j, to_pos, to_neg, l2, tolerance)


@inlined
def ridge(feat: Float, j: int, l2: L2) -> float:
    """Return λ_j."""
    often, squares = feat[NZ, j], feat[SQ, j] + feat[SQ + 1, j]
    return l2.plain + (l2.relative * (squares / often) if often > 0.0 else 0.0)


@inlined
def fitting_scale(second: float, l2_j: float) -> float:
    """Return D; zero for a feature that has been constant so far."""
    return 1.0 / (second + 0.25 * l2_j) if second > 0.0 else 0.0


@inlined
def rescale(table: Table, j: int, l2: L2, follows: bool, own: float) -> float:
    """Update the scale of feature ``j``; return the change of its weight.

    A weight is a sum of steps times a scale, so it is rescaled too. Otherwise the first
    large value of a feature that had been small would change the score by any factor
    (cf. Ross, Mineiro and Langford, "Normalized online learning", UAI 2013).

    The average is kept, unless ``follows`` is set: most changes of scale are noise, or
    one outlier. It is rescaled, by the feature's standard deviation, if the scale falls
    far below ``mark``, the one it was learnt with, and the row itself (``own`` is its
    part of the second moment) is not the cause.
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
    total = past * feat[W, j]  # total - u is the sum of past iterates
    feat[U, j] = total - np.sqrt(new / mark) * (total - u) if woken else u
    table.mark[j] = new if woken else max(mark, new)
    return change


@inlined
def _recentre(feat: Float, ref: Float, j: int, to_pos: float, to_neg: float) -> None:
    """Move the reference point of feature ``j`` to its mean, or to zero if near.

    The sums of squares move with it; one that is lost to rounding restarts at zero.
    """
    mean = 0.5 * (feat[SUM, j] * to_pos + feat[SUM + 1, j] * to_neg)
    second = 0.5 * (feat[SQ, j] * to_pos + feat[SQ + 1, j] * to_neg)
    old = ref[j]
    variance = second - (mean - old) * (mean - old)
    ref[j] = mean if mean * mean > MEAN_TO_DEVIATION**2 * variance else 0.0
    shift = ref[j] - old
    for side, to_mean in ((0, to_pos), (1, to_neg)):
        off = feat[SUM + side, j] * to_mean - old
        squares = feat[SQ + side, j] * to_mean - shift * (2.0 * off - shift)
        precise = squares > _CANCELLED * (shift * shift)
        feat[SQ + side, j] = squares / to_mean if precise else 0.0


@kernel
def refresh(table: Table, l2: L2, precondition: bool) -> float:
    """Recompute reference points, scales and statistics; return the shift of scores."""
    feat, ref, _, _, stats = table
    update_rates(table)
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
def penalise(table: Table, l2: L2, due: float, l1: float = 0.0) -> None:
    """Apply the proximal map of ``due`` times the penalty; O(d).

    With ``l1``, the penalty has l1 ‖w‖₁, too.
    """
    feat, past = table.feat, table.stats[PAST]
    for j in range(feat.shape[1]):
        w = feat[W, j]
        if w == 0.0:  # most features of a wide table
            continue
        soft = w
        if l1 > 0.0:
            soft -= min(max(w, -due * l1 * feat[D, j]), due * l1 * feat[D, j])
        shrunk = soft / (1.0 + due * ridge(feat, j, l2) * feat[D, j])
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
def weights(table: Table) -> Float:
    """Return the weights, as a view."""
    return table.feat[W]


@inlined
def scales(table: Table) -> Float:
    """Return the scales D, as a view."""
    return table.feat[D]


@inlined
def average_part(table: Table) -> Float:
    """Return the part u of the average, as a view."""
    return table.feat[U]


@inlined
def class_means(table: Table, j: int) -> tuple[float, float]:
    """Return the centred class means of feature ``j``."""
    feat, r, stats = table.feat, table.ref[j], table.stats
    return feat[SUM, j] * stats[TO_POS] - r, feat[SUM + 1, j] * stats[TO_NEG] - r


def all_class_means(table: Table) -> Float:
    """Return the centred class means of all features, (2, d)."""
    return table.feat[SUM : SUM + 2] / table.n[:, np.newaxis] - table.ref


@inlined
def unit_weight(feat: Float, j: int) -> float:
    """Return |w|/√D, the weight of feature ``j`` at unit scale."""
    w, scale = feat[W, j], feat[D, j]
    return abs(w) / np.sqrt(scale) if scale > 0.0 else 0.0


@kernel
def norms(table: Table) -> tuple[float, float]:
    """Return Σ w²/D and Σ |w|/√D, norms of the weights at unit scale; O(d)."""
    squares = absolute = 0.0
    for j in range(table.feat.shape[1]):
        unit = unit_weight(table.feat, j)
        squares += unit * unit
        absolute += unit
    return squares, absolute


@kernel
def unit_magnitudes(table: Table) -> Float:
    """Return |w|/√D of every feature; O(d)."""
    magnitudes = np.zeros(table.feat.shape[1])
    for j in range(magnitudes.shape[0]):
        magnitudes[j] = unit_weight(table.feat, j)
    return magnitudes


@kernel
def soft_threshold(table: Table, threshold: float) -> None:
    """Soft-threshold the weights at unit scale, w/√D; O(d)."""
    feat, past = table.feat, table.stats[PAST]
    for j in range(feat.shape[1]):
        w = feat[W, j]
        soft = np.sign(w) * max(abs(w) - threshold * np.sqrt(feat[D, j]), 0.0)
        feat[W, j] = soft
        feat[U, j] += past * (soft - w)


@kernel
def rebase(table: Table, scale: float) -> None:
    """Multiply the weights by ``scale`` and restart the sum Σγ of the average; O(d).

    With a small factor, the average would be a small difference of large numbers.
    """
    feat, past = table.feat, table.stats[PAST]
    for j in range(feat.shape[1]):
        feat[U, j] -= past * feat[W, j]
        feat[W, j] *= scale
    table.stats[PAST] = 0.0


def fade(table: Table, share: float) -> None:
    """Multiply the weight of all past rows, and of the average, by ``share``; O(d).

    Nothing falls to zero, so that means stay finite: ``share`` is at least
    ``_MIN_SHARE``, and a class that has no new rows for long keeps ``_MIN_WEIGHT``.
    """
    share = max(share, _MIN_SHARE)
    feat, n, stats = table.feat, table.n, table.stats
    feat[[U, NZ]] *= share
    stats[[ROWS, RENEW_AT, PAST]] *= share
    for side, to_mean in ((0, TO_POS), (1, TO_NEG)):
        if n[side] * share > _MIN_WEIGHT:
            feat[[SUM + side, SQ + side]] *= share
            n[side] *= share
            stats[to_mean] /= share


@kernel
def _average(feat: Float, past: float, scores: Float) -> Float:
    """Return the mean of the iterates; write its class sums of scores."""
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
    """Return the mean of the iterates, or the last one, and its intercept."""
    scores = np.empty(2)
    w = _average(table.feat, table.stats[PAST], scores)
    return w, -0.5 * float((scores / table.n).sum()) if table.n.all() else 0.0


def sum_of_iterates(table: Table) -> Float:
    """Return the weighted sum of the iterates of the average."""
    return table.stats[PAST] * table.feat[W] - table.feat[U]


def threshold(w: Float, table: Table) -> float:
    """Return the intercept that puts zero midway between the mean class scores."""
    return -0.5 * float((table.feat[SUM : SUM + 2] @ w / table.n).sum())
