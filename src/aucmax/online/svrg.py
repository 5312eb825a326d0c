r"""SVRG-AUC: proximal stochastic gradients with reduced variance.

Natole (thesis, Algorithm 17) minimises the pairwise square loss, J of :class:`SVRGAUC`,
by the steps of SPAM (:mod:`aucmax.online.spam`) without their noise. At a snapshot w̃
the full gradient μ of the loss is computed; then each step goes along
G(w; x) - G(w̃; x) + μ, whose noise vanishes as w and w̃ approach the minimum. With rows
drawn from balanced classes, G is 4 (w·x - b - 1) x for a positive and
4 (w·x - a + 1) x for a negative row, with the mean scores a = w·m₊ and b = w·m₋. Hence,
with v = w - w̃ and m' the mean of the *other* class,

.. math:: G(w; x) - G(\tilde w; x) = 4\, (v \cdot (x - m'))\, x .

Deviations from the thesis, none of which moves the minimum:

* rows are centred and steps scaled feature by feature (:mod:`aucmax.online.engine`);
* classes are balanced, and within them a row is drawn with a probability proportional
  to its weight times the mean of its squared norm and that of all rows. Its step is
  divided by the excess probability. So one heavy row does not dictate a small step for
  all (Xiao and Zhang 2014); and since at unit scale a rare feature makes a row heavy,
  no feature waits long for its turn;
* a step changes only the features of its row, by μ_j and the penalty over the
  probability P_j that a drawn row has feature j. That is right on average, keeps the
  rate (Leblond, Pedregosa and Lacoste-Julien 2017) and costs O(nnz) instead of O(d);
* if l1 = 0, the next snapshot is the minimum of J over the span of the last iterate and
  the last moves of the snapshot. J is quadratic and its gradients at these points are
  known, so this costs no pass. It does to a chain of epochs what conjugate gradients do
  to gradient steps, and J cannot rise;
* an epoch after which J is higher (with a larger ``eta0`` than the default) is undone,
  and steps are halved.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import ClassMoments
from aucmax.base.constraints import COUNT
from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Rows, mark_row, zeros_for
from aucmax.online import engine
from aucmax.online import quadratic_snapshots as snapshots
from aucmax.online.base import BatchAUC
from aucmax.online.engine import Known, Table, class_scores, look_row, scales, weights
from aucmax.online.engine.centred_rows import score_row
from aucmax.online.engine.statistics import mean_norm
from aucmax.online.svrg_rows import MU, RARITY, draw, draw_evenly, prox_row

# Slots of pull before P is known: the sums that make it up.
EVEN, HEAVY = range(2)

# A reference point so small that it does not change a row, for prox_row.
_NO_REF = 1e-300

# Slots of State.z: mean scores w·(m₊ - ref) and w·(m₋ - ref), now and at the snapshot.
A, B, A_SNAP, B_SNAP = range(4)


class State(NamedTuple):
    """State of the solver; updated in place."""

    table: Table
    pull: Float  # (2, d) slots in aucmax.online.svrg_rows
    score: Float  # (rows,) centred scores of the snapshot
    step: Float  # (rows,) 4 over the excess probability of a row
    z: Float  # (4,) slots above


def init(X: Rows, n_samples: int, n_features: int) -> State:
    """Return the state before the moments are known; zero is the first snapshot."""
    table = snapshots.empty_table(X, n_features)
    rows = np.zeros(n_samples), np.zeros(n_samples)
    return State(table, zeros_for(X, 2, n_features), *rows, np.zeros(4))


@kernel
def weigh(
    X: Rows, share: Float, table: Table, how: Known, pull: Float, size: Float
) -> None:
    """Write the squared norms of the rows; count how often features occur."""
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
        c = score_row(X, i, table, how) - score[i]
        c -= b - z[B_SNAP] if y[i] > 0.0 else a - z[A_SNAP]
        c *= step[i]
        d_a, d_b = prox_row(X, i, table, how, pull, c, eta, l2, l1)
        a += d_a
        b += d_b
    z[A], z[B] = a, b


def prepare(X: Rows, share: Float, state: State) -> tuple[Float, float]:
    """Return the probability of every row, and the largest curvature of a step."""
    table, size = state.table, np.zeros(len(share))
    weigh(X, share, table, engine.visit(X, table, False, True), state.pull, size)
    weight, mean = np.abs(share), mean_norm(table)
    np.maximum(size, 0.0, out=size)  # rounding error
    excess = 0.5 + 0.5 * size / mean
    state.step[:] = 4.0 / excess
    present = 0.5 * state.pull[EVEN] + 0.5 * state.pull[HEAVY] / mean
    present[table.ref != 0.0] = 1.0
    state.pull[RARITY] = np.divide(
        1.0, present, out=np.zeros_like(present), where=present > 0.0
    )
    return weight * excess, float(np.max(state.step * size))


def prepare_printed(share: Float, state: State) -> tuple[Float, float]:
    """Return the same for steps as printed, p(1 - p) times those of J, raw features."""
    table = state.table
    scales(table)[:], table.ref[:] = 1.0, _NO_REF
    state.pull[RARITY] = 1.0
    n = float(np.count_nonzero(share))
    state.step[:] = 4.0 * n * np.abs(share)
    curvature = float(table.n.sum() ** 2 / table.n.prod())
    return (share != 0.0).astype(np.float64), curvature


def start_at(point: Float, state: State) -> None:
    """Make ``point`` the snapshot and start from its weights."""
    d = len(state.table.ref)
    weights(state.table)[:] = point[:d]
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
        Ridge penalty; the papers' :math:`\beta` is :math:`p(1-p)\,l_2`. "auto" sets it
        for each feature, independent of units and falling with the number of rows, as
        in :class:`BAM` but for the square loss.
    l1 : float, default=0.0
        Lasso penalty. The papers' :math:`\beta_1` is :math:`p(1-p)\,l_1`.
    eta0 : float, default=0.3
        Step size, in units of one over the largest curvature of a row.
    schedule : {"constant", "printed"}, default="constant"
        "printed" takes the steps of the thesis: rows drawn evenly, ``eta0`` a plain
        number, each epoch from the end of the last one.
    update_frequency : int or None, default=None
        Number m of steps between two full gradients (an epoch); None is the number of
        rows.
    max_iter : int, default=100
        Maximum number of passes over the data; an epoch takes two, one of steps and
        one for the full gradient (with ``update_frequency``, m/n and one, rounded up).
        A ``ConvergenceWarning`` is raised if ``tol`` is not reached. ``tol=0`` makes
        all passes.
    tol : float or None, default=None
        Stop when the gradient, at unit scale, is at most this times that at zero. None
        is 1e-4, or an eighth of the sampling error of that at zero if there are more
        features than rows, where the minimum fits the noise. (With ``l1``, the step of
        proximal gradient descent replaces the gradient.)
    random_state : int, RandomState instance or None, default=None
        Random seed of the order of the rows.

    See Also
    --------
    SPAM : The same steps without variance reduction; learns from streams.

    Notes
    -----
    A row costs O(nnz), twice an epoch; memory is some two dozen numbers per feature and
    ten per row. ``fit`` makes three more passes, for class moments, the gradient at
    zero and the norms of rows. The error falls by a constant factor per epoch.

    As published: ``SVRGAUC(l2, l1=l1, eta0=eta, schedule="printed",
    update_frequency=m, tol=0)``. These steps cost O(d).

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
        **BatchAUC._parameter_constraints,
        "schedule": [StrOptions({"constant", "printed"})],
        "update_frequency": [COUNT, None],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        l1: float = 0.0,
        eta0: float = 0.3,
        schedule: str = "constant",
        update_frequency: int | None = None,
        max_iter: int = 100,
        tol: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.eta0 = eta0
        self.schedule = schedule
        self.update_frequency = update_frequency
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _solve(
        self,
        X: Rows,
        y: Float,
        moments: ClassMoments,
        tol: float,
        rng: np.random.RandomState,
    ) -> tuple[Float, int, float]:
        state = init(X, len(y), self.n_features_in_)
        printed = self.schedule == "printed"
        l2, l1, table = self._ridge(moments), float(self.l1), state.table
        share, _ = snapshots.prepare(X, y, table, moments, l2, not printed)
        chance, curvature = (
            prepare_printed(share, state) if printed else prepare(X, share, state)
        )
        if curvature == 0.0:  # all rows are equal: zero is the minimum
            return np.zeros(self.n_features_in_), 1, 0.0
        how = engine.visit(X, table, False, True)
        eta, n = float(self.eta0) / curvature, int(np.count_nonzero(share))

        def run(point: Float, halvings: int, left: int) -> int:
            start_at(point, state)
            m = min(self.update_frequency or n, left * n)
            order = (draw_evenly if printed else draw)(chance, m, rng)
            update(X, y, order, state, how, eta * 0.5**halvings, l2, l1)
            if printed and not np.isfinite(weights(table)).all():
                raise ValueError(
                    f"SVRGAUC has diverged: the printed steps of eta0={self.eta0:g} "
                    "are too long. Use a smaller eta0."
                )
            return -(-m // n)

        return snapshots.descend(
            X, share, table, how, (l2, l1), self.max_iter, tol, run, plain=printed
        )
