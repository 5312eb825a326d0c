r"""FSAUC: fast stochastic AUC maximisation, in stages.

Liu, Zhang, Chen, Wang and Yang (ICML 2018) solve the saddle point of
:mod:`aucmax.online.solam`,

.. math:: \min_{\|w\|_1 \le R,\, a,\, b}\ \max_\alpha\ E\, F(w, a, b, \alpha; x, y)
          + \tfrac{p (1 - p)\, l_2}{2} \|w\|^2 ,

in stages of constant step size. A stage keeps v = (w, a, b) within r of where it
started and α within D; the mean of its iterates is where the next one starts, α anew
from the class means, with half the r and half the step size. The mean of a stage of
constant steps forgets where the stage started exponentially fast, which a mean over all
of a stream never does: hence O(1/n) in place of SOLAM's O(1/√n).

Deviations from the paper, none of which moves the minimum:

* rows are centred and steps scaled feature by feature, weights of the l1 ball are those
  of unit-scale features, and p counts through effective rows 4p(1 - p)n, as in
  :mod:`aucmax.online.solam`. In these coordinates, divided by the root mean squared
  norm of a row, κ is one, and w, a, b and α take steps of one size, as in the paper;
* *capped* steps: explicit ones, cut where the row's own residual vanishes. They do not
  overshoot there, like the implicit steps of :mod:`aucmax.online.solam`; but those, at
  a constant size, do not have their mean at the minimum, as they weigh rows by their
  norms (``benchmarks/bench_fsauc.py`` has both). And a, b and α never take larger steps
  than ¼, or w could not follow;
* a and b start a stage from the class means, as α does: the sums are there anyway;
* Lemma 1 bounds how wrong the class means may be with
  1 / (min(p, 1-p) T - √(2T log(12/δ))), which is negative until T is about
  10 / min(p, 1-p)², and with constants that would make the second stage's steps
  many times those of the first. Here it is their variance, at most
  ‖w‖² / (p(1-p) T) over *all* T rows so far, and at most what a single row has:
  β = 1 + 8κ² + 2 var / r², D = 2√2 κr + 3 √var. That is finite from the first pair on,
  is next to nothing after a few rows of both classes, and is zero in ``fit``, where
  the class means are exact. Steps never grow from stage to stage;
* the first stage's steps are η₀/√(1 + ñ₀/(4d)), ñ₀ its effective rows and d the
  features that make up the norm of a row: the paper's 1/√n₀, but full steps for wide
  data (:mod:`aucmax.core.steps`). For those r, too, is halved no sooner than
  1/√(1 + t̃/d) has halved, t̃ the effective rows so far;
* a stream of unknown length has stages twice as long as the one before, and r falls
  like 1/√(1 + t̃/(4d)): the paper's r ∝ 1/√n. (Halved with each doubling, steps would
  fall like 1/n: too fast, unless the convexity is known.) Within a stage, the weights
  are a mean of its start and its mean so far;
* after the l1 ball and the box, the ball around the start is a pull towards the start,
  which stays inside: a point of the intersection, like that of the paper's alternating
  projections, without iterations. The l1 ball may be overstepped by 1 % between
  projections, which are O(d); the weights returned are inside.

The Notes of the class have the settings that switch back, all but Lemma 1.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core import table as tables
from aucmax.core.base import OnlineAUC
from aucmax.core.jit import inlined, kernel
from aucmax.core.project import clip, l1_threshold
from aucmax.core.rows import (
    Rows,
    fetch_ahead,
    fetch_features_row,
    fetch_row,
    learn_row,
    listed,
    look_row,
    meet_row,
    move_row,
    reach_row,
    start_row,
)
from aucmax.core.steps import rates
from aucmax.core.table import (
    L2,
    SUM,
    D,
    Float,
    U,
    W,
    class_scores,
    norms,
    rebase,
    refresh,
    soften,
    unit_magnitudes,
)
from aucmax.core.tally import NEG, POS, RENEW, ROWS, WIDTH, Tally

CAPPED, IMPLICIT, EXPLICIT = range(3)
STEPS = {"capped": CAPPED, "implicit": IMPLICIT, "explicit": EXPLICIT}

_STRETCH = 16  # steps at least, d at most, between two proximal maps
_SLACK = 1.01  # how far out of the l1 ball the weights may be
_SMALL = 0.1  # a factor below this is multiplied out
_FIRST = 16.0  # effective rows in the first stage of a stream
_PATIENCE = 4.0  # effective rows a feature that full steps are good for
_PACE = 0.25  # the largest step of a, b and α that w can follow
_BETA = 9.0  # 1 + 8 κ²
_NO_BALL = 1e150  # its square is finite


# The numbers in State.z, after those of aucmax.core.tally: steps, all and in this
# stage; the stage, from 1; how many are planned, and the length of one, or of an
# unplanned one in effective rows; the radii r and D, β, and over the first the radius
# and the step size η; the variables a, b and α, and where they started; the factor s of
# the weights, w = w₁ + s W; ‖w - w₁‖²; whether ‖w‖₁ is followed, and its bound if it
# is, ‖w₁‖₁ if not; the largest norm of a row; Σ γ since the last proximal map and steps
# since then; Σ s; and as printed Σ a and Σ b.
T, DONE, STAGE, PLANNED, LENGTH, BALL, DUAL, BETA, FALL, ETA = range(6, 16)
A, B, ALPHA, A1, B1, ALPHA1, SCALE, REACH, NEAR, SIZE, KAPPA = range(16, 27)
DUE, SINCE, SUM_SCALED, SUM_A, SUM_B = range(27, 32)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    hot: Float  # (4, d) weights from the start, scales, class sums: aucmax.core.table
    cold: Float  # (4, d) the average's part, frequencies, sums of squares
    ref: Float  # (d,) reference points
    start: Float  # (d,) w₁ / D, so that it follows the scales
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (32,) numbers, see above


def init(n_features: int, precondition: bool, radius: float) -> State:
    """Return the state before the first row."""
    hot, cold, ref = tables.empty(n_features, precondition)
    z = np.zeros(32)
    z[LENGTH] = _FIRST
    z[STAGE] = z[FALL] = z[ETA] = z[SCALE] = 1.0
    z[BALL] = 2.0 * np.sqrt(3.0) * radius  # 2R √(1 + 2κ²)
    z[DUAL] = 2.0 * np.sqrt(2.0) * z[BALL]
    z[BETA] = _BETA
    return State(hot, cold, ref, np.zeros(n_features), np.zeros(2), z)


@kernel
def plan(n: float, balance: float, width: float) -> tuple[float, float, float]:
    """Return for ``n`` rows the number of stages, the length of one, and the first η.

    ``balance`` is 4p(1 - p): of rare positives a stage must have enough.
    """
    effective = max(balance * n, 2.0)
    m = np.floor(0.5 * np.log2(2.0 * effective / np.log2(effective))) - 1.0
    m = max(m, 1.0)
    length = np.ceil(n / m)
    return m, length, 1.0 / np.sqrt(1.0 + balance * length / (_PATIENCE * width))


def printed_plan(n: int) -> tuple[float, float]:
    """Return m and n₀ of the paper's Algorithm 1; at least one stage."""
    m = max(int(0.5 * np.log2(2.0 * n / np.log2(max(n, 2)))) - 1, 1)
    return float(m), float(n // m)


@inlined
def guarded(rule: int, step: float, curvature: float) -> float:
    """Return a step that does not overshoot the minimum along it, by ``rule``."""
    if rule == CAPPED:
        return step / max(step * curvature, 1.0)
    if rule == IMPLICIT:
        return step / (1.0 + step * curvature)
    return step


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    hot: Float,
    cold: Float,
    ref: Float,
    start: Float,
    n: Float,
    z: Float,
    ahead: int,
    learn: bool | None,
    n_expected: float,
    eta0: float,
    printed: bool,
    rule: int,
    precondition: bool,
    radius: float,
    l2: L2,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``.

    With ``learn=None`` statistics are known, and what learns them is not compiled.
    """
    rows, norm, width, mildest, hardest, renew_at = z[0], z[1], z[2], z[3], z[4], z[5]
    t, done, a, b, alpha = z[T], z[DONE], z[A], z[B], z[ALPHA]
    scale, reach, near, size = z[SCALE], z[REACH], z[NEAR] != 0.0, z[SIZE]
    kappa, due, since, sum_scaled = z[KAPPA], z[DUE], z[SINCE], z[SUM_SCALED]
    stretch = max(_STRETCH, hot.shape[1])
    features = listed(X, ref)
    slack = 1.0 if printed else _SLACK
    p, to_pos, to_neg, to_mean = rates(n, rows)
    pq = p * (1.0 - p)
    last = order.shape[0] - 1
    for k in range(order.shape[0]):
        fetch_row(X, order[min(k + ahead, last)])
        fetch_features_row(X, order[min(k + 1, last)], hot)
        i = order[k]
        weight = abs(y[i])
        if weight == 0.0:
            continue
        side = POS if y[i] > 0.0 else NEG

        # A new stage, from the mean of the last, with the class means of its rows.
        if t > 0.0 and done > 0.0 and finished(z, done, 4.0 * pq):
            arrive(hot, cold, start, sum_scaled / done, 1.0 / done)
            if learn is not None and rows >= renew_at:
                norm, width, mildest, hardest = refresh(
                    hot, cold, ref, to_pos, to_neg, l2, precondition
                )
                features = listed(X, ref)
                renew_at = RENEW * rows
            tau = l1_threshold(unit_magnitudes(hot), radius)
            soften(hot, cold, tau, 0.0)
            squared, size = norms(hot)
            a, b = class_scores(hot, ref, to_pos, to_neg)
            a, b = clip(a, radius * kappa), clip(b, radius * kappa)
            alpha = clip(b - a, 2.0 * radius * kappa)
            if printed:
                a, b = z[SUM_A] / done, z[SUM_B] / done
            z[A1], z[B1], z[ALPHA1] = a, b, alpha
            depart(hot, cold, start)
            variance = 0.0 if learn is None else squared / max(pq * rows, 0.5)
            next_stage(z, t, done, 4.0 * pq, width, variance, printed)
            scale, near = 1.0, False
            reach = done = due = since = sum_scaled = z[SUM_A] = z[SUM_B] = 0.0

        # Running class statistics, where the exact ones are not known.
        renew = False
        if learn is not None:
            rows += 1.0
            n[side] += weight
            learn_row(X, i, weight, side, hot, cold, ref, features)
            if n[POS] == 0.0 or n[NEG] == 0.0:
                done += 1.0 if printed else 0.0  # a step at which nothing moves
                continue
            p, to_pos, to_neg, to_mean = rates(n, rows)
            if precondition:
                if near:
                    size -= reach_row(X, i, hot, ref, features, start, scale)
                change = meet_row(
                    X, i, hot, cold, ref, None, to_pos, to_neg, l2, None, 0.0
                )[3]
                reach = max(reach + scale * scale * change, 0.0)
                if near:
                    size += reach_row(X, i, hot, ref, features, start, scale)
            # In the first stage, which starts at zero, coordinates may change.
            renew = rows >= renew_at and z[STAGE] == 1.0
            pq = p * (1.0 - p)

        # The proximal map of the penalty, and what drifts, exactly.
        if renew or since >= stretch or pq * due * hardest > 0.5:
            if hardest > 0.0:
                ridge = pq * l2.plain * due
                shrink(hot, cold, start, scale, sum_scaled, ridge, 0.0)
            due = since = 0.0
            if renew:
                before = class_scores(hot, ref, to_pos, to_neg)[0]
                norm, width, mildest, hardest = refresh(
                    hot, cold, ref, to_pos, to_neg, l2, precondition
                )
                shift = class_scores(hot, ref, to_pos, to_neg)[0] - before
                a += scale * shift  # scores are centred on other points now
                b += scale * shift
                features = listed(X, ref)
                renew_at = RENEW * rows
            if learn is not None and z[STAGE] == 1.0 and not printed:
                z[PLANNED], z[LENGTH] = 0.0, _FIRST
                if n_expected > 0.0:
                    prefix = rows - 1.0 - t  # those of one class taught nothing
                    left = max(n_expected - prefix, 1.0)
                    z[PLANNED], z[LENGTH], z[ETA] = plan(left, 4.0 * pq, width)
            reach = scale * scale * norms(hot)[0]
            size = np.sum(magnitudes(hot, start, scale if near else 0.0))

        # Gradient of F at this row: the one of w is along x.
        v, x_x, _, _ = look_row(X, i, hot, ref, features, to_pos, to_neg)
        s = scale * v
        if z[STAGE] > 1.0:
            s += start_row(X, i, hot, ref, features, start)
        t += 1.0
        eta = z[ETA] * eta0 * weight * to_mean
        if side == POS:
            share = 2.0 * (1.0 - p)
            g = share * (s - a - 1.0 - alpha)
            g_alpha = -share * s - 2.0 * pq * alpha
        else:
            share = 2.0 * p
            g = share * (s - b + 1.0 + alpha)
            g_alpha = share * s - 2.0 * pq * alpha
        unit = 1.0 if printed else norm  # of squared norms
        gamma = eta / unit
        c = -guarded(rule, gamma, share * x_x) * g
        pace = eta if rule == EXPLICIT else min(eta, _PACE)
        follow = guarded(rule, pace, share) * share

        if printed:  # the mean has the variables from before their step
            sum_scaled += scale
            z[SUM_A] += a
            z[SUM_B] += b

        # Step down in (w, a, b), up in alpha.
        if side == POS:
            a += follow * (s - a)
        else:
            b += follow * (s - b)
        alpha += guarded(rule, pace, 2.0 * pq) * g_alpha
        if near:
            size -= reach_row(X, i, hot, ref, features, start, scale)
        move_row(X, i, hot, cold, ref, features, c / scale, sum_scaled)
        if near:
            size += reach_row(X, i, hot, ref, features, start, scale)
        reach = max(reach + c * (2.0 * scale * v + c * x_x), 0.0)

        # Back into the sets. Mostly a bound is enough to know that w is in the l1 ball.
        kappa = max(kappa, np.sqrt(max(x_x, 0.0)))
        if not near and size + np.sqrt(hot.shape[1] * reach) > 0.5 * radius:
            size = np.sum(magnitudes(hot, start, scale))
            near = True
        if near and size > slack * radius:
            found = magnitudes(hot, start, scale)
            size = np.sum(found)
            if size > slack * radius:
                tau = l1_threshold(found, radius)
                shrink(hot, cold, start, scale, sum_scaled, 0.0, tau)
                size = np.sum(magnitudes(hot, start, scale))
                reach = scale * scale * norms(hot)[0]
        a, b = clip(a, radius * kappa), clip(b, radius * kappa)
        alpha = clip(alpha, 2.0 * radius * kappa)
        alpha = z[ALPHA1] + clip(alpha - z[ALPHA1], z[DUAL] * np.sqrt(unit))
        d_a, d_b = a - z[A1], b - z[B1]
        distance = np.sqrt(reach + (d_a * d_a + d_b * d_b) / unit)
        if distance > z[BALL]:
            back = z[BALL] / distance
            scale *= back
            reach *= back * back
            a, b = z[A1] + back * d_a, z[B1] + back * d_b
            if near:
                size = back * size + (1.0 - back) * radius  # a bound: w₁ is inside
            if scale < _SMALL:
                rebase(hot, cold, scale, sum_scaled)
                scale, sum_scaled = 1.0, 0.0

        if not printed:
            sum_scaled += scale
        done += 1.0
        due += gamma
        since += 1.0
    z[0], z[1], z[2], z[3], z[4], z[5] = rows, norm, width, mildest, hardest, renew_at
    z[T], z[DONE], z[A], z[B], z[ALPHA] = t, done, a, b, alpha
    z[SCALE], z[REACH], z[NEAR], z[SIZE] = scale, reach, near * 1.0, size
    z[KAPPA], z[DUE], z[SINCE], z[SUM_SCALED] = kappa, due, since, sum_scaled


@inlined
def finished(z: Float, done: float, balance: float) -> bool:
    """Return whether ``done`` steps make up the stage."""
    if z[STAGE] <= z[PLANNED]:
        return done >= z[LENGTH]
    # A half keeps rounding from having a say when all these are round numbers.
    return balance * (done + 0.5) >= z[LENGTH]


@inlined
def next_stage(
    z: Float,
    t: float,
    done: float,
    balance: float,
    width: float,
    variance: float,
    printed: bool,
) -> None:
    """Set r, D, β, η and the length for the stage after this one.

    ``t`` and ``done`` are the steps so far and of this stage, ``balance`` is 4p(1 - p),
    ``variance`` that of the new α.
    """
    before = z[FALL]
    if z[STAGE] >= z[PLANNED]:
        z[LENGTH] = 2.0 * (balance * done if z[STAGE] == z[PLANNED] else z[LENGTH])
    if printed:
        z[FALL] = 0.5 * before
    elif z[STAGE] < z[PLANNED]:
        law = 1.0 / np.sqrt(1.0 + balance * t / width)
        z[FALL] = min(max(law, 0.5 * before), before)
    else:
        law = 1.0 / np.sqrt(1.0 + balance * t / (_PATIENCE * width))
        z[FALL] = min(law, before)
    z[BALL] *= z[FALL] / before
    beta = _BETA + 2.0 * variance / (z[BALL] * z[BALL])
    z[ETA] *= min(z[FALL] / before * np.sqrt(beta / z[BETA]), 1.0)
    z[BETA] = beta
    z[DUAL] = 2.0 * np.sqrt(2.0) * z[BALL] + 3.0 * np.sqrt(variance)
    z[STAGE] += 1.0


@kernel
def arrive(
    hot: Float, cold: Float, start: Float, of_weights: float, of_past: float
) -> None:
    """Put the mean of the stage in the place of the weights; O(d)."""
    for j in range(hot.shape[1]):
        mean = of_weights * hot[W, j] - of_past * cold[U, j]
        hot[W, j] = start[j] * hot[D, j] + mean


@kernel
def depart(hot: Float, cold: Float, start: Float) -> None:
    """Start a stage from the weights; O(d)."""
    for j in range(hot.shape[1]):
        start[j] = hot[W, j] / hot[D, j] if hot[D, j] > 0.0 else 0.0
        hot[W, j] = cold[U, j] = 0.0


@kernel
def magnitudes(hot: Float, start: Float, scale: float) -> Float:
    """Return |w₁ + scale W|/√D of every feature that has a scale; O(d)."""
    found = np.zeros(hot.shape[1])
    for j in range(hot.shape[1]):
        if hot[D, j] > 0.0:
            unit = np.sqrt(hot[D, j])
            found[j] = abs(start[j] * unit + scale * hot[W, j] / unit)
    return found


@kernel
def shrink(
    hot: Float,
    cold: Float,
    start: Float,
    scale: float,
    sum_scaled: float,
    ridge: float,
    threshold: float,
) -> None:
    """Soft-threshold the weights of unit-scale features, and shrink them; O(d)."""
    for j in range(hot.shape[1]):
        w = start[j] * hot[D, j] + scale * hot[W, j]
        soft = np.sign(w) * max(abs(w) - threshold * np.sqrt(hot[D, j]), 0.0)
        change = (soft / (1.0 + ridge * hot[D, j]) - w) / scale
        hot[W, j] += change
        cold[U, j] += sum_scaled * change


def weights(state: State, radius: float) -> tuple[Float, float]:
    """Return the weights and the intercept.

    They are the mean of the stage once it is complete. Until then, its start, which is
    the mean of a whole stage, has a share.
    """
    hot, cold, _, start, n, z = state
    if not n.all():  # no row of the second class yet
        return np.zeros(hot.shape[1]), 0.0
    share = 1.0
    if z[STAGE] > 1.0:
        length = z[LENGTH]
        if z[STAGE] > z[PLANNED]:
            length /= 4.0 * float(np.prod(n / n.sum()))
        share = min(2.0 * z[DONE] / (length + z[DONE]), 1.0)
    share /= z[DONE]
    mean = np.array([hot[W], hot[D]])  # a table's W and D
    arrive(mean, cold, start, share * z[SUM_SCALED], share)
    tau = l1_threshold(unit_magnitudes(mean), radius)
    soften(mean, np.zeros((1, hot.shape[1])), tau, 0.0)
    return mean[W], tables.threshold(mean[W], hot[SUM:], n)


class FSAUC(OnlineAUC):
    r"""Fast stochastic AUC maximisation with the square loss.

    Solves, one row at a time and in stages of ever smaller steps, the saddle point form
    of

    .. math:: \min_{\|w\|_1 \le R}\ E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    radius : float or None, default=100.0
        Radius R of the l1 ball, for weights of unit-scale features: 1 is the weight of
        a feature one standard deviation of which is one unit of score. The first stage
        stays within about 3.5 R of zero, each further one within half of that of where
        it starts. None stands for no balls at all. Without ``precondition``, weights
        are measured as they are.
    l2 : float, default=0.0
        Ridge penalty. The papers' :math:`\beta` is :math:`p(1-p)\,l_2`.
    eta0 : float, default=0.5
        Step size of a short first stage, in units of one over the mean squared norm of
        a row; that of a long one falls with the square root of its length.
    schedule : {"stages", "printed"}, default="stages"
        Whether lengths of stages, balls and steps fit the data; or stages are as many
        and as long as in the paper, each with half the ball and half the step size of
        the one before, and ``eta0`` is the first step size of all variables, a plain
        number.
    n_expected : int or None, default=None
        Rows that ``partial_fit`` will see in all, which are then divided into stages as
        in the paper; more may come. Without it, each stage is twice as long as the one
        before. ``fit`` knows.
    step : {"capped", "implicit", "explicit"}, default="capped"
        Explicit steps are those of the paper and diverge if ``eta0`` is too large.
        Capped ones end where the residual of the row is zero; implicit ones take it
        after the step. Both may diverge, if it is far too large and there are no balls.
        That is an error.
    precondition : bool, default=True
        Whether features are centred and scaled inside, by class moments. The objective
        is the same without, the number of passes to its minimum is not.
    max_iter : int, default=5
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Whether each pass of ``fit`` visits the rows in a new random order.
    random_state : int, RandomState instance or None, default=None
        Seed of that order.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The weights.
    intercept_ : ndarray of shape (1,)
        Puts the score zero midway between the mean scores of the classes.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.
    n_iter_ : int
        Passes done.
    state_ : State
        The variables of the algorithm; ``partial_fit`` goes on from them.

    See Also
    --------
    SOLAM : The same saddle point without stages.
    SPAM : The same loss without the dual variables.

    Notes
    -----
    A row costs O(nnz), or O(d) when the l1 ball is left; memory is nine numbers a
    feature. ``fit`` reads the data once more, for exact class moments, and
    ``partial_fit`` uses running ones. Of n rows, the stages are
    :math:`m = \lfloor \tfrac12 \log_2 (2 \tilde n / \log_2 \tilde n) \rfloor - 1`, at
    least one, where :math:`\tilde n = 4 p (1 - p) n`. By the paper's Theorem 1, the
    error falls like O(1/n) up to logarithms [1]_.

    The constants of the paper's Lemma 1 are negative or without bound for few rows or
    rare positives. What they bound is the error of the class means from which a stage
    starts; in its place stands the variance of those means, counting all rows so far
    and at least one of each class, and steps never grow from stage to stage.

    As printed: ``FSAUC(R, eta0=eta1, n_expected=n, schedule="printed",
    step="explicit", precondition=False)`` and ``partial_fit``, for rows of norm one
    (κ = 1), but for Lemma 1. The first step size stands for the paper's G.

    References
    ----------
    .. [1] M. Liu, X. Zhang, Z. Chen, X. Wang, T. Yang, "Fast Stochastic AUC
       Maximization with O(1/n)-Convergence Rate", ICML 2018, Algorithms 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import FSAUC
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(FSAUC(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "l2": [Interval(Real, 0, None, closed="left")],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"stages", "printed"})],
        "n_expected": [Interval(Integral, 1, None, closed="left"), None],
        "step": [StrOptions(set(STEPS))],
        "precondition": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        radius: float | None = 100.0,
        *,
        l2: float = 0.0,
        eta0: float = 0.5,
        schedule: str = "stages",
        n_expected: int | None = None,
        step: str = "capped",
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.n_expected = n_expected
        self.step = step
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _radius(self) -> float:
        return _NO_BALL if self.radius is None else min(float(self.radius), _NO_BALL)

    def _start(self, n_features: int) -> State:
        state = init(n_features, bool(self.precondition), self._radius())
        if self.schedule == "printed" and self.n_expected is not None:
            state.z[PLANNED], state.z[LENGTH] = printed_plan(int(self.n_expected))
        return state

    def _begin(self, rows: Rows, tally: Tally) -> State:
        state: State = super()._begin(rows, tally)
        balance = 4.0 * float(np.prod(tally.weight / tally.weight.sum()))
        n = float(state.z[ROWS]) * self.max_iter
        if self.schedule == "printed":
            state.z[PLANNED], state.z[LENGTH] = printed_plan(int(n))
            return state
        first = plan(n, balance, float(state.z[WIDTH]))
        state.z[PLANNED], state.z[LENGTH], state.z[ETA] = first
        return state

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, learn: bool
    ) -> None:
        update(
            X,
            y,
            order,
            *state,
            fetch_ahead(X),
            True if learn else None,
            float(self.n_expected or 0.0),
            float(self.eta0),
            self.schedule == "printed",
            STEPS[self.step],
            bool(self.precondition),
            self._radius(),
            self._penalty(),
        )

    def _weights(self, state: State) -> tuple[Float, float]:
        return weights(state, self._radius())
