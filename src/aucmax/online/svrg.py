r"""SVRG-AUC: proximal stochastic gradients with reduced variance.

Natole (thesis, Algorithm 17) minimises the pairwise square loss

.. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2
          + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1

by the steps of SPAM (:mod:`aucmax.online.spam`) without their noise. At a snapshot w̃
the whole gradient μ of the loss is taken; then each step goes along G(w; x) - G(w̃; x) +
μ, whose noise vanishes as w and w̃ approach the minimum. With rows drawn from balanced
classes, so positive with probability ½, G is 4 (w·x - b - 1) x for a positive and
4 (w·x - a + 1) x for a negative row, a = w·m₊ and b = w·m₋ the mean scores. Hence, with
v = w - w̃ and m' the mean of the *other* class,

.. math:: G(w; x) - G(\tilde w; x) = 4\, (v \cdot (x - m'))\, x .

Deviations from the thesis, none of which moves the minimum:

* rows are centred and steps scaled feature by feature (:mod:`aucmax.online.engine`);
* classes are balanced, and within them a row is drawn with a probability in
  proportion to its weight times the mean of its squared norm and that of all rows. Its
  step is divided by what that probability has in excess. So one heavy row does not
  dictate a small step for all (Xiao and Zhang 2014), and, since in coordinates of unit
  scale a rare feature makes a row heavy, no feature waits long for its turn;
* a step changes only the features that its row has, by μ_j and the penalty over the
  probability P_j that a drawn row has feature j. That is right on average, keeps the
  rate (Leblond, Pedregosa and Lacoste-Julien 2017) and costs O(nnz) instead of O(d);
* if l1 = 0, the next snapshot is not the last iterate but the minimum of J over what
  that and the last moves of the snapshot span. J is a quadratic and its gradients at
  these points are known, so this costs no pass; it makes of a chain of epochs what
  conjugate gradients are to gradient steps, and J cannot rise;
* an epoch after which J is higher (which takes a larger ``eta0`` than the default) is
  taken back, and steps are halved.

The Notes of the class have the setting that switches back.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.base.class_moments import ClassMoments as Tally
from aucmax.core.jit import kernel
from aucmax.core.rows import (
    Float,
    Rows,
    as_table,
    mark_row,
    zeros_for,
)
from aucmax.online import engine
from aucmax.online.base import BatchAUC
from aucmax.online.engine import (
    NORM,
    D,
    Known,
    Table,
    W,
    class_scores,
    dot_row,
    look_row,
)
from aucmax.online.engine.known_moments import fit_table_to_ridge
from aucmax.online.quadratic_snapshots import MOVES, half_shares, lowest, residual, rise
from aucmax.online.quadratic_snapshots import take as take_point
from aucmax.online.svrg_rows import MU, RARITY, draw, draw_evenly, prox_row

# The slots of pull before P is known: the sums that make it up.
EVEN, HEAVY = range(2)

# A reference point at which a row is as it was, and yet has the feature: see prox_row.
_NO_REF = 1e-300

# The numbers in State.z: the mean scores w·(m₊ - ref) and w·(m₋ - ref), now and at the
# snapshot.
A, B, A_SNAP, B_SNAP = range(4)


class State(NamedTuple):
    """The solver; its arrays change in place."""

    table: (
        Table  # weights, scales, class moments: see aucmax.online.engine.feature_table
    )
    pull: Float  # (2, d) what every step on a feature adds, see above
    score: Float  # (rows,) centred scores of the snapshot
    step: Float  # (rows,) what makes up for a row's probability, times 4
    z: Float  # (4,) numbers, see above


def init(X: Rows, n_samples: int, n_features: int) -> State:
    """Return the state before the moments are known; zero is the first snapshot."""
    table = engine.empty(n_features, precondition=True)
    table = table._replace(feat=as_table(table.feat, X))
    rows = np.zeros(n_samples), np.zeros(n_samples)
    return State(table, zeros_for(X, 2, n_features), *rows, np.zeros(4))


@kernel
def weigh(
    X: Rows, share: Float, table: Table, how: Known, pull: Float, size: Float
) -> None:
    """Take the squared norms of the rows, and how often features occur in them."""
    for i in range(share.shape[0]):
        weight = abs(share[i])
        if weight > 0.0:
            size[i] = look_row(X, i, table, how)[1]
            mark_row(X, i, weight, pull, EVEN)
            mark_row(X, i, weight * size[i], pull, HEAVY)


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Known,
    eta: float,
    l2: Float,
    l1: float,
) -> None:
    """Take the inner steps of Algorithm 17 at the rows ``order`` of ``X``."""
    table, pull, score, step, z = state
    a, b = z[A], z[B]
    for k in range(order.shape[0]):
        i = order[k]
        # G(w; x) - G(w̃; x) = c x.
        c = dot_row(X, i, table.feat, W, table.ref, how.listed) - score[i]
        c -= b - z[B_SNAP] if y[i] > 0.0 else a - z[A_SNAP]
        c *= step[i]
        d_a, d_b = prox_row(X, i, table, how, pull, c, eta, l2, l1)
        a += d_a
        b += d_b
    z[A], z[B] = a, b


def prepare(X: Rows, share: Float, state: State) -> tuple[Float, float]:
    """Return the chance of every row, and the largest curvature of a step."""
    table, size = state.table, np.zeros(len(share))
    weigh(X, share, table, engine.visit(X, table, False, True), state.pull, size)
    weight, mean = np.abs(share), table.stats[NORM]
    np.maximum(size, 0.0, out=size)  # a norm that is all rounding error
    excess = 0.5 + 0.5 * size / mean
    state.step[:] = 4.0 / excess
    present = 0.5 * state.pull[EVEN] + 0.5 * state.pull[HEAVY] / mean
    present[table.ref != 0.0] = 1.0
    state.pull[RARITY] = np.divide(
        1.0, present, out=np.zeros_like(present), where=present > 0.0
    )
    return weight * excess, float(np.max(state.step * size))


def prepare_printed(share: Float, state: State) -> tuple[Float, float]:
    """Return the same for steps as printed, at all features and as they are.

    The loss in F is p(1 - p) times that of J, and so are its steps: the curvature that
    divides them is one over that.
    """
    table = state.table
    table.feat[D], table.ref[:] = 1.0, _NO_REF
    state.pull[RARITY] = 1.0
    n = float(np.count_nonzero(share))
    state.step[:] = 4.0 * n * np.abs(share)
    curvature = float(table.n.sum() ** 2 / table.n.prod())
    return (share != 0.0).astype(np.float64), curvature


def start_at(point: Float, state: State) -> None:
    """Make ``point`` the snapshot, and the weights those of the snapshot."""
    d = len(state.table.ref)
    state.table.feat[W] = point[:d]
    state.pull[MU] = point[d : 2 * d] * state.pull[RARITY]
    state.score[:] = point[2 * d :]
    a, b = class_scores(state.table)
    state.z[A : B_SNAP + 1] = a, b, a, b


class SVRGAUC(BatchAUC):
    r"""Stochastic variance-reduced AUC maximisation with the square loss.

    Minimises, by cheap steps at random rows whose noise vanishes, without a step size
    to tune and as exactly as asked for,

    .. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1 .

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given; the papers' :math:`\beta` is
        :math:`p(1-p)\,l_2`. With "auto" each feature has its own, which depends on no
        unit and falls with the rows: as in :class:`BAM`, for the square loss.
    l1 : float, default=0.0
        Lasso penalty. The papers' :math:`\beta_1` is :math:`p(1-p)\,l_1`.
    eta0 : float, default=0.3
        Step size, in units of one over the largest curvature that a row has.
    schedule : {"constant", "printed"}, default="constant"
        Whether steps are as above; or as in the thesis, at rows drawn evenly, with
        ``eta0`` a plain number, and each epoch from where the last one ended.
    max_iter : int, default=100
        Passes over the data in ``fit``, at most; a ``ConvergenceWarning`` says if
        ``tol`` was not reached. With ``tol=0`` all of them are asked for.
    tol : float or None, default=None
        Stop when the gradient, in unit-scale features, is no larger than this times
        that at zero. None stands for 1e-4, or for an eighth of the sampling error of
        that at zero if there are more features than rows: then the minimum itself fits
        the noise. (With ``l1``: the step of proximal gradient descent.)
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the rows.

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
        Passes done. An epoch takes two: one of steps, one for the whole gradient.
    residual_ : float
        What ``tol`` is compared with, at the last whole gradient.

    See Also
    --------
    SPAM : The steps without the variance reduction; can learn from a stream.

    Notes
    -----
    A row costs O(nnz), twice an epoch; memory is some two dozen numbers a feature and
    ten a row. ``fit`` reads the data three times more, for class moments, the gradient
    at zero and the norms of rows. The error falls linearly: by a constant factor an
    epoch.

    As printed: ``SVRGAUC(l2, l1=l1, eta0=eta, schedule="printed", tol=0)``, with m, the
    number of inner steps, that of the rows. These steps cost O(d).

    References
    ----------
    .. [1] M. Natole, "Stochastic optimization for AUC maximization", PhD thesis,
       University at Albany, 2020, Algorithm 17.
    .. [2] L. Xiao, T. Zhang, "A proximal stochastic gradient method with progressive
       variance reduction", SIAM Journal on Optimization 24(4), 2014.
    .. [3] R. Leblond, F. Pedregosa, S. Lacoste-Julien, "ASAGA: Asynchronous parallel
       SAGA", AISTATS 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SVRGAUC
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(SVRGAUC(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "l1": [Interval(Real, 0, None, closed="left")],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"constant", "printed"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        l1: float = 0.0,
        eta0: float = 0.3,
        schedule: str = "constant",
        max_iter: int = 100,
        tol: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.eta0 = eta0
        self.schedule = schedule
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _solve(
        self,
        X: Rows,
        y: Float,
        tally: Tally,
        tol: float,
        rng: np.random.RandomState,
    ) -> tuple[Float, int, float]:
        d, l1 = self.n_features_in_, float(self.l1)
        state = init(X, len(y), d)
        printed = self.schedule == "printed"
        l2 = self._ridge(tally)
        table, feat = state.table, state.table.feat
        fit_table_to_ridge(table, tally, l2, precondition=not printed)
        share = half_shares(y, tally.weight)
        chance, curvature = (
            prepare_printed(share, state) if printed else prepare(X, share, state)
        )
        how = engine.visit(X, table, False, True)
        zero = point = take_point(X, share, table, how)
        scale = residual(zero, feat[D], l2, l1)
        if curvature == 0.0 or scale == 0.0:  # zero is the minimum
            return zero[:d].copy(), 1, 0.0
        eta, passes, left = float(self.eta0) / curvature, 0, 1.0
        moves = list[Float]()
        while passes < self.max_iter and left > tol:
            start_at(point, state)
            order = draw_evenly(chance, rng) if printed else draw(chance, rng)
            update(X, y, order, state, how, eta, l2, l1)
            passes += 1
            if printed and not np.isfinite(feat[W]).all():
                raise ValueError(
                    "SVRGAUC has diverged: its printed steps are too long."
                )
            if passes == self.max_iter:
                return feat[W].copy(), passes, left
            end = take_point(X, share, table, how)
            passes += 1
            if not printed and not rise(point, end, d, l2, l1) <= 0.0:
                eta *= 0.5
                continue
            if l1 == 0.0 and not printed:
                end = lowest(end, [end - point, *moves], d, l2)
            moves = [end - point, *moves][:MOVES]
            point = end
            left = residual(point, feat[D], l2, l1) / scale
        return point[:d].copy(), passes, left
