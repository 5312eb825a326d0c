r"""OPAUC: one-pass AUC optimisation.

Gao, Jin, Zhu and Zhou (ICML 2013) minimise the pairwise square loss, J of
:class:`OPAUC`, with one row a step: the loss of a row, paired with all rows of the
other class so far, depends on these only through their mean and covariance, and so does
its gradient. The paper's objective is half of J, its λ is l2/2.

Corrected: the paper's recursion of the covariance,
Γ_t = Γ_{t-1} + (x xᵀ - Γ_{t-1})/T + c_{t-1} c_{t-1}ᵀ - c_t c_tᵀ, lacks the term
-c_{t-1} c_{t-1}ᵀ/T.

The first pass of ``fit`` learns means and covariances row by row, as a stream does;
with ``shuffle=False, max_iter=1`` it is the one pass of the paper. Further passes use
the statistics of all rows.

Deviations from the paper, none of which moves the minimum:

* rows are centred and steps scaled feature by feature (:mod:`aucmax.online.engine`), so
  raw features do as well as standardised ones;
* the step size is relative to the curvature, counts effective rows
  (:mod:`aucmax.online.engine.step_sizes`), and is η/(1 + η‖x - c‖²) at the row x, as an
  implicit step along x - c would have. It applies to the whole gradient, not only to
  the part along x - c, which keeps the two halves of the covariance in balance. As the
  covariance so far may be far above that of all rows (an early outlier), η never
  exceeds 2/trace;
* the penalty is applied by its proximal map;
* a weighted average of the iterates is returned.

**The gradient**, which AdaOAM shares: at a positive row x, with the mean c and the
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
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import NEG, POS, ROUNDING, TINY, ClassMoments
from aucmax.base.constraints import COUNT
from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.rows import Float, Rows, copy_row
from aucmax.core.validation import check_width
from aucmax.online import opaucr
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import L2, visit
from aucmax.online.engine.feature_table import ASLEEP, TOLERANCE, assign, fitting_scale
from aucmax.online.engine.known_moments import centres
from aucmax.online.engine.step_sizes import INVSQRT, ROOT, explicit, step_size

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


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    learns: bool,
    eta0: float,
    printed: bool,
    implicit: bool,
    average: bool,
    precondition: bool,
    l2: L2,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    V, S, n, z = state
    x, g = np.empty(V.shape[1]), np.empty(V.shape[1])
    for i in order:
        if not visit_row(X, y, i, state, x, learns, l2, precondition):
            continue

        # The gradient, and a step that does not overshoot along x - c.
        x_x, trace = gradient(V, S, n, x, POS if y[i] > 0.0 else NEG, g)
        z[T] += 1.0
        total = n[POS] + n[NEG]
        balance = 4.0 * (n[POS] / total) * (n[NEG] / total)
        norm = max(z[NORM], 0.5 * trace)
        eta = step_size(INVSQRT, eta0, ROOT, norm, z[WIDTH], z[T], balance, 0.0)
        eta = (eta0 if printed else eta) * (abs(y[i]) * z[ROWS] / total)
        if implicit:
            eta /= 1.0 + eta * x_x
        if average:
            z[SUM_GAMMA] += z[T]
        move(V, g, eta, l2, z[T] / z[SUM_GAMMA] if average else 1.0)


@vectorised
def move(V: Float, g: Float, eta: float, l2: L2, share: float) -> None:
    """Step, apply the proximal map of the penalty, and average."""
    for j in range(g.shape[0]):
        step, l2_j = eta * V[D, j], ridge(V, j, l2)
        V[W, j] = (V[W, j] - step * g[j]) / (1.0 + 0.5 * l2_j * step)
        V[MEAN, j] += share * (V[W, j] - V[MEAN, j])


class OPAUC(CovarianceAUC):
    r"""One-pass AUC optimisation with the square loss.

    Minimises, one row at a time, with the covariances of both classes,

    .. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2 + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty; the paper's :math:`\lambda` is :math:`l_2/2`. "auto" sets it for
        each feature to 1e-3 times its mean square where it is not zero, which does not
        depend on units.
    eta0 : float, default=1.0
        First step size, in units of one over the mean squared norm of a row.
    schedule : {"invsqrt", "printed"}, default="invsqrt"
        Step sizes fall with the square root of the number of rows; or are constant,
        ``eta0``, a plain number, as in the paper, and the penalty is part of the
        gradient.
    rank : int or None, default=None
        Number of columns of the sketches that replace the covariances, or None for
        covariances. With sketches this is OPAUCr, for thousands of features and more;
        the paper uses 50. With fewer features, covariances rank better and are faster.
    .. shared: average
    step : {"implicit", "explicit"}, default="implicit"
        Shorten the step at a row so as not to overshoot along the row, or not. Explicit
        steps, those of the paper, diverge if ``eta0`` is too large, which raises an
        error; with sketches, implicit ones can as well.
    precondition : bool, default=True
        Scale features internally. This changes the number of passes to the
        minimum, not the minimum.
    .. shared: passes

    See Also
    --------
    AdaOAM : The same gradient, steps adapted to each feature.
    SPAM : The same loss in O(nnz) a row, without covariances.

    Notes
    -----
    A row costs O(d²), whether dense or sparse, and so does memory: a triangle of d²/2
    numbers per class. With sketches of rank τ a row costs O(nnz τ + τ²) and memory is
    2τ + 12 numbers per feature; but the minimum is then that of the sketches, which are
    off by about 1/√τ. ``fit`` makes one more pass for the scales of the features.

    As published: ``OPAUC(l2, eta0=eta, schedule="printed", step="explicit",
    precondition=False, average=False)`` and ``partial_fit``, with λ = l2/2 and the
    constant step size of the paper's Theorem 2; ``rank=tau`` for OPAUCr.

    References
    ----------
    .. [1] W. Gao, R. Jin, S. Zhu, Z.-H. Zhou, "One-Pass AUC Optimization", ICML 2013,
       Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import OPAUC
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(OPAUC(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CovarianceAUC._parameter_constraints,
        "schedule": [StrOptions({"invsqrt", "printed"})],
        "rank": [COUNT, None],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        eta0: float = 1.0,
        schedule: str = "invsqrt",
        rank: int | None = None,
        average: bool = True,
        step: str = "implicit",
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.rank = rank
        self.average = average
        self.step = step
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _start(self, n_features: int) -> Any:
        precondition = bool(self.precondition)
        if self.rank is None:
            return init(n_features, precondition, "OPAUC")
        return opaucr.init(n_features, int(self.rank), precondition)

    def _visit(self, rows: Rows, state: Any, learn: bool) -> Any:
        if self.rank is None:
            return learn
        # One compiled form, whether it learns (first pass of ``fit``) or not.
        how = visit(rows, state.table, True, self.precondition, self._penalty())
        stretch = 1.0 if self.schedule == "printed" else opaucr.STRETCH
        return how._replace(stretch=stretch), learn

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Any
    ) -> None:
        eta0, printed = float(self.eta0), self.schedule == "printed"
        if printed:  # the kernels apply the penalty by its proximal map
            eta0 = explicit(eta0, 0.5 * self._penalty().plain)
        rule = eta0, printed, self.step == "implicit", bool(self.average)
        if self.rank is None:
            features = bool(self.precondition), self._penalty()
            update(X, y, order, state, how, *rule, *features)
        else:
            opaucr.update(X, y, order, state, how[0], how[1], *rule)
