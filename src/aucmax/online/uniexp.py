r"""Uni-Exp: one-pass descent on the exponential loss of single rows.

Kotłowski, Dembczyński and Hüllermeier (ICML 2011) show that ranking needs no pairs.
With balanced classes, the univariate loss of :class:`UniExp` bounds the regret of the
AUC. For the best b it is the square root of :math:`E\, e^{-w \cdot (x^+ - x^-)}`, the
pairwise exponential loss, so both have the same w. Gao et al. (ICML 2013) run it
online: one row a step, its loss weighted by one over twice the fraction of its class so
far.

Deviations from the papers, none of which moves the minimum:

* the *implicit* step takes the gradient at the new w. With m = y f(x) before the step,
  q = x·Dx + 1 and rate ηg, the step c along y D x solves c = ηg exp(-m - c q), so
  u = c q solves u + log u = log(ηg q) - m. Nothing overflows, and no step size needs
  tuning;
* rows are centred and steps scaled feature by feature (:mod:`aucmax.online.engine`);
* the loss is multiplied by 4p(1 - p), so that row weights are 2(1 - p) and 2p, and step
  sizes count effective rows (:mod:`aucmax.online.engine.step_sizes`), as in SPAM;
* a weighted average of the iterates is returned;
* before each further pass of ``fit``, steps are scaled by the curvature of the loss at
  the weights so far: rows count by their loss, up to one. Otherwise a few rows with
  large values, which are right already, dictate small steps for a feature.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import measure
from aucmax.core.jit import inlined, kernel
from aucmax.core.products import times
from aucmax.core.rows import Float, Rows
from aucmax.online import engine
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import Table, Visit, learn, look_row, move_row, renew
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.feature_table import NORM, WIDTH
from aucmax.online.engine.known_moments import fit_scales_to_curvature
from aucmax.online.engine.step_sizes import INVSQRT, ROOT, step_size

# Slots of State.z: steps; the bias b of centred rows.
T, BIAS = range(2)


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table
    z: Float  # (2,) slots above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    return State(engine.empty(n_features, precondition), np.zeros(2))


@inlined
def solve(level: float) -> float:
    """Return u > 0 with u + log u = level: Lambert's W of exp(level).

    Newton's method in log u, from above: the function is concave, so nothing overflows.
    """
    v = min(level, np.log(max(level, 1.0)))  # u ≤ exp(level) and, if level ≥ 1, ≤ level
    for _ in range(6):
        u = np.exp(v)
        v -= (u + v - level) / (u + 1.0)
    return np.exp(v)


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    eta0: float,
    printed: bool,
    implicit: bool,
    average: bool,
) -> None:
    """Visit the rows ``order`` of ``X``, one step each."""
    table, z = state
    t, bias = z[T], z[BIAS]
    for k in range(order.shape[0]):
        i = order[k]
        news = learn(X, y, i, table, how)
        if not news.ready:
            continue
        if news.stale:  # new reference points move the bias, not the scores
            bias -= renew(table, how)

        t += 1.0
        p, sign = stats.class_prior(table), 1.0 if y[i] > 0.0 else -1.0
        balance = 4.0 * p * (1.0 - p)
        norm, width = stats.mean_norm(table) + 1.0, stats.effective_width(table)
        eta = step_size(INVSQRT, eta0, ROOT, norm, width, t, balance, 0.0)
        eta = eta0 / balance if printed else eta
        eta *= stats.weight_of(y, i, table) * 2.0 * (1.0 - p if y[i] > 0.0 else p)
        s, x_x, _, _ = look_row(X, i, table, how)
        q = x_x + 1.0
        margin = sign * (s + bias)
        if implicit:
            c = sign * solve(np.log(eta * q) - margin) / q
        else:
            c = sign * eta * np.exp(-margin)
        move_row(X, i, table, how, c)
        bias += c
        if average:
            stats.add_to_average(table, t)
    z[T], z[BIAS] = t, bias


class UniExp(OnlineAUC):
    r"""Univariate exponential loss with balanced classes, one row at a time.

    Minimises, without a step size to tune,

    .. math:: \tfrac12 E_+ e^{-f(x)} + \tfrac12 E_- e^{f(x)},
              \qquad f(x) = w \cdot x + b,

    whose w is that of the pairwise loss :math:`E\, e^{-w \cdot (x^+ - x^-)}`.

    Parameters
    ----------
    eta0 : float, default=0.5
        First step size, in units of one over the mean squared norm of a row.
    schedule : {"invsqrt", "printed"}, default="invsqrt"
        Step sizes fall with the square root of the number of rows, or are constant:
        ``eta0``, a plain number, for the loss above.
    .. shared: average
    step : {"implicit", "explicit"}, default="implicit"
        Take the gradient after or before the step. Explicit steps diverge if ``eta0``
        is too large.
    .. shared: precondition, passes

    See Also
    --------
    SPAM : The pairwise square loss; less sensitive to outliers.
    PSAM : The pairwise hinge loss, by pairs.

    Notes
    -----
    A row costs O(nnz); memory is ten numbers per feature. ``fit`` makes one more pass
    for exact class moments, and one before each further pass for the curvature of the
    loss; ``partial_fit`` uses running moments. There is no penalty: if
    a linear score separates the classes, the weights grow without bound, ever more
    slowly. One mislabelled outlier can outweigh all other rows.

    As published: ``UniExp(eta0=eta, schedule="printed", step="explicit",
    precondition=False, average=False)`` and ``partial_fit``. The papers have no
    pseudo-code: they name the loss, its weights and that it was run online.

    References
    ----------
    .. [1] W. Kotłowski, K. Dembczyński, E. Hüllermeier, "Bipartite Ranking through
       Minimization of Univariate Loss", ICML 2011.
    .. [2] W. Gao, R. Jin, S. Zhu, Z.-H. Zhou, "One-Pass AUC Optimization", ICML 2013:
       online Uni-Exp.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import UniExp
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(UniExp(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineAUC._parameter_constraints,
        "schedule": [StrOptions({"invsqrt", "printed"})],
    }

    def __init__(
        self,
        eta0: float = 0.5,
        *,
        schedule: str = "invsqrt",
        average: bool = True,
        step: str = "implicit",
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.eta0 = eta0
        self.schedule = schedule
        self.average = average
        self.step = step
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _start(self, n_features: int) -> State:
        return init(n_features, bool(self.precondition))

    def _again(self, rows: Rows, signed: Float, state: State) -> None:
        if not self.precondition or self.schedule == "printed":
            return
        table, present = state.table, signed != 0.0
        w = engine.weights(table)
        score = times(rows, w) - float(np.sum(table.ref * w)) + state.z[BIAS]
        margin = np.where(present, np.sign(signed) * score, 0.0)
        loss = np.exp(-np.maximum(margin, 0.0))  # its second derivative, too
        fit_scales_to_curvature(table, measure(rows, signed * loss, len(w)))

    def _run(
        self, rows: Rows, signed: Float, state: State, rng: np.random.RandomState
    ) -> None:
        table = state.table
        usual = engine.scales(table).copy(), table.stats[[NORM, WIDTH]]
        super()._run(rows, signed, state, rng)
        # For partial_fit, whose scales are those of the features alone.
        engine.scales(table)[:], table.stats[[NORM, WIDTH]] = usual

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: Visit
    ) -> None:
        printed, implicit = self.schedule == "printed", self.step == "implicit"
        hyper = float(self.eta0), printed, implicit, bool(self.average)
        update(X, y, order, state, how, *hyper)

    def _weights(self, state: State) -> tuple[Float, float]:
        return engine.averaged(state.table)
