r"""SPDAM: a stochastic primal-dual algorithm for AUC maximisation.

Natole (thesis, Algorithm 21) writes half of the pairwise square loss with its penalty,

.. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2 + \tfrac{l_2}{2} \|w\|^2 ,

as a saddle point with one dual variable a row (after Zhang and Xiao's SPDC),

.. math:: \min_w \max_\beta\ \sum_i \omega_i \left(\beta_i\, w \cdot \bar x_i
          - \tfrac12 \beta_i^2\right) + g(w), \quad
          g(w) = \tfrac12 (\Delta \cdot w)^2 - \Delta \cdot w + \tfrac{l_2}{4} \|w\|^2,

with x̄ = x - m, m the mean of the row's class, Δ = m₊ - m₋, and ω the weight of the row
over that of its class. A step takes a batch: its β go up, then w goes down by

.. math:: \beta_i \leftarrow \frac{\beta_i + \sigma\, \bar w \cdot \bar x_i}{1+\sigma},
          \quad w \leftarrow \arg\min_w\ \bar u \cdot w + g(w)
          + \tfrac{1}{2\tau} \|w - w_{old}\|^2,
          \quad \bar w = w + \theta\, (w - w_{old}),

u = Σ ω β x̄, and ū is u with the change by the batch times the number of batches.

Corrected: balancing the rates of the primal and the dual part in the thesis' Lemma 5.1
gives, with λ = l2/2, m of n rows in a batch and κ² as below,

.. math:: \sigma = \lambda\, \frac{(n - m) + \sqrt{(n-m)^2 + 4 n m \kappa^2 / \lambda}}
                            {4 m \kappa^2};

Theorem 5.1 prints it without the factor λ and with 8 for 4. Its √(2p) in x̄ and x for x̄
in the updates are misprints, too.

Deviations, none of which moves the minimum:

* rows are centred and ‖w - w_old‖² is measured in scaled features
  (:mod:`aucmax.online.engine`); x̄, which is dense, is never formed;
* the batches are a random partition of the rows, in a new order each pass, and κ² is
  the largest eigenvalue of a batch's mean of x̄ x̄ᵀ instead of the largest ‖x̄‖². The
  proof needs no more, and a heavy row or a rare class does no harm;
* λ alone would give a useful rate only if l2 were large. Every few passes (a round) the
  gradient of J is computed, which costs a pass. The next round starts at the minimum of
  J over the span of the last moves (:mod:`aucmax.online.svrg`), with the
  β that belong to it. σ and θ are those of the λ that a round can resolve, if that is
  larger than the true one; directions of less curvature are left to the combination of
  rounds;
* a round after which J is higher is undone, and steps are halved.
"""

from math import ceil
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from aucmax.base.class_moments import ClassMoments
from aucmax.base.constraints import COUNT
from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float, Rows, zeros_for
from aucmax.online.base import BatchAUC
from aucmax.online.engine import Known, Table, class_scores, scales, weights
from aucmax.online.engine.centred_rows import add_row, dot_row
from aucmax.online.engine.feature_table import all_class_means, class_means
from aucmax.online.engine.statistics import convexity
from aucmax.online.svrg import descend, empty_table, prepare_table, residual, take

ROUND = 3  # passes of steps between two gradients
_POWER = 2, 8  # power iterations per batch, and in all at least
_SAFETY = 1.1  # power iterations find a little less than the eigenvalue

# Slots of dual: the extrapolated weights w̄; u; the change of u by the batch.
BAR, U, ADD = range(3)


@inlined
def bar_scores(table: Table, dual: Float) -> tuple[float, float]:
    """Return the mean scores of the classes by w̄; O(d)."""
    a = b = 0.0
    for j in range(dual.shape[1]):
        m_pos, m_neg = class_means(table, j)
        a += dual[BAR, j] * m_pos
        b += dual[BAR, j] * m_neg
    return a, b


@kernel
def largest_eigenvalues(
    X: Rows,
    share: Float,
    order: NDArray[np.int64],
    ends: NDArray[np.int64],
    table: Table,
    dual: Float,
    how: Known,
    times: int,
    found: Float,
) -> None:
    """Write the largest eigenvalue of each batch's mean of x̄ x̄ᵀ, in scaled features.

    By ``times`` power iterations per batch, from the vector in BAR.
    """
    scale, ref, listed = scales(table), table.ref, how.listed
    start = 0
    for batch in range(ends.shape[0]):
        for _ in range(times):
            a, b = bar_scores(table, dual)
            sum_pos = sum_neg = 0.0
            for j in range(dual.shape[1]):
                dual[ADD, j] = 0.0
            for k in range(start, ends[batch]):
                i = order[k]
                s = dot_row(X, i, dual, BAR, ref, listed)
                s -= a if share[i] > 0.0 else b
                s *= 2.0 * abs(share[i])
                add_row(X, i, s, dual, ADD, ref, listed)
                if share[i] > 0.0:
                    sum_pos += s
                else:
                    sum_neg += s
            size = 0.0
            for j in range(dual.shape[1]):
                m_pos, m_neg = class_means(table, j)
                dual[ADD, j] -= sum_pos * m_pos + sum_neg * m_neg
                size += scale[j] * dual[ADD, j] * dual[ADD, j]
            size = np.sqrt(size)
            if size == 0.0:
                break  # all rows of the batch are at the mean of their class
            found[batch] = size * ends.shape[0]
            for j in range(dual.shape[1]):
                dual[BAR, j] = scale[j] * dual[ADD, j] / size
        start = ends[batch]


def pace(batches: int, kappa2: float, convexity: float) -> tuple[float, float, float]:
    """Return σ, τ and θ; ``convexity`` is λ, in scaled features."""
    sigma = 0.5 / (ROUND - 1.0)  # so that 1/(1 - θ) is a round
    if convexity > 0.0:
        rest, ratio = batches - 1.0, convexity / kappa2  # in units of m
        root = np.sqrt(rest * rest + 4.0 * batches / ratio)
        sigma = max(sigma, float(0.25 * ratio * (rest + root)))
    theta = 1.0 - 2.0 * sigma / (batches * (1.0 + 2.0 * sigma))
    # The proof has 4 for 2; a round that it guards against would be undone.
    return sigma, 1.0 / (2.0 * sigma * kappa2), theta


def printed_pace(
    n: int, m: int, kappa2: float, lam: float
) -> tuple[float, float, float]:
    """Return σ (corrected), τ and θ of Theorem 5.1; ``lam`` is λ."""
    root = np.sqrt((n - m) ** 2 + 4.0 * n * kappa2 * m / lam)
    sigma = lam * (n - m + root) / (4.0 * m * kappa2)
    return sigma, 1.0 / (4.0 * sigma * kappa2), 1.0 - lam / (lam + 2.0 * sigma * kappa2)


def rows_a_batch(batch_size: float, n: int) -> int:
    """Return m, the number of rows in a batch."""
    size = batch_size if isinstance(batch_size, Integral) else ceil(batch_size * n)
    return min(int(size), n)


def partition(
    y: Float, batch_size: float, rng: np.random.RandomState
) -> list[NDArray[np.int64]]:
    """Return a random partition of the rows; rows of a batch are sorted."""
    present = np.flatnonzero(y)  # rows of weight zero are ignored
    n = len(present)
    batches = ceil(n / rows_a_batch(batch_size, n))
    parts = np.array_split(present[rng.permutation(n)], batches)
    return [np.sort(part) for part in parts]


def visit(
    batches: list[NDArray[np.int64]], rng: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of all batches in random order, and the end of each batch."""
    parts = [batches[k] for k in rng.permutation(len(batches))]
    return np.concatenate(parts), np.cumsum([len(part) for part in parts])


@kernel
def _shuffle_starts(
    rows: NDArray[np.int64], swaps: NDArray[np.int64], drawn: NDArray[np.int64]
) -> None:
    """Draw batches by the first swaps of a shuffle each (Fisher and Yates); O(m)."""
    for batch in range(swaps.shape[0]):
        for k in range(swaps.shape[1]):
            other = swaps[batch, k]
            rows[k], rows[other] = rows[other], rows[k]
            drawn[batch, k] = rows[k]


def draw(
    y: Float, m: int, rng: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and batch ends of a pass as published: batches are drawn anew.

    A batch has m different rows, sorted.
    """
    rows = np.flatnonzero(y)
    first, batches = np.arange(m), ceil(len(rows) / m)
    swaps = first + (rng.random_sample((batches, m)) * (len(rows) - first)).astype(int)
    drawn = np.empty_like(swaps)
    _shuffle_starts(rows, swaps, drawn)
    return np.sort(drawn, axis=1).ravel(), m * np.arange(1, batches + 1)


def longest(X: Rows, share: Float, table: Table, dual: Float, how: Known) -> float:
    """Return the largest ‖x̄‖²: the eigenvalue of a batch of one row."""
    present = np.flatnonzero(share)
    found = np.zeros(len(present))
    dual[BAR] = 1.0
    ends = np.arange(1, len(present) + 1)
    largest_eigenvalues(X, share, present, ends, table, dual, how, 2, found)
    return float(found.max())


def widest(
    X: Rows,
    share: Float,
    batches: list[NDArray[np.int64]],
    table: Table,
    dual: Float,
    how: Known,
    rng: np.random.RandomState,
) -> float:
    """Return κ², the largest eigenvalue over all batches."""
    scale = scales(table)
    dual[BAR] = np.sqrt(scale) * rng.standard_normal(len(scale))
    found = np.zeros(len(batches))
    each, in_all = _POWER
    times = max(each, ceil(in_all / len(batches)))
    largest_eigenvalues(X, share, *visit(batches, rng), table, dual, how, times, found)
    return _SAFETY * float(found.max())


class State(NamedTuple):
    """State of the solver; updated in place."""

    table: Table
    dual: Float  # (4, d) slots BAR, U, ADD, and one unused
    beta: Float  # (rows,) dual variables


def init(X: Rows, n_samples: int, n_features: int) -> State:
    """Return the state before the moments are known."""
    table = empty_table(X, n_features)
    return State(table, zeros_for(X, 4, n_features), np.zeros(n_samples))


@kernel
def update(
    X: Rows,
    share: Float,
    order: NDArray[np.int64],
    ends: NDArray[np.int64],
    state: State,
    how: Known,
    sigma: float,
    tau: float,
    theta: float,
    ratio: float,
    l2: Float,
) -> None:
    """Run Algorithm 21 over batches of rows: ``order`` up to each of ``ends``.

    ``ratio`` is all rows over those of a batch. A batch costs O(d) and its rows.
    """
    table, dual, beta = state
    w, scale = weights(table), scales(table)
    ref, listed = table.ref, how.listed
    k = 0
    for batch in range(ends.shape[0]):
        # The dual variables of the batch, and u with them.
        a, b = bar_scores(table, dual)
        sum_pos = sum_neg = 0.0
        for j in range(dual.shape[1]):
            dual[ADD, j] = 0.0
        while k < ends[batch]:
            i = order[k]
            s = dot_row(X, i, dual, BAR, ref, listed)
            s -= a if share[i] > 0.0 else b
            new = (beta[i] + sigma * s) / (1.0 + sigma)
            change = 2.0 * abs(share[i]) * (new - beta[i])
            beta[i] = new
            add_row(X, i, change, dual, ADD, ref, listed)
            if share[i] > 0.0:
                sum_pos += change
            else:
                sum_neg += change
            k += 1

        # The weights: a diagonal system plus ΔΔᵀ, by Sherman and Morrison.
        along = gain = 0.0
        for j in range(dual.shape[1]):
            m_pos, m_neg = class_means(table, j)
            delta = m_pos - m_neg
            add = dual[ADD, j] - sum_pos * m_pos - sum_neg * m_neg
            u_bar = dual[U, j] + ratio * add
            dual[U, j] += add
            step = tau * scale[j]
            shrink = 1.0 / (1.0 + 0.5 * l2[j] * step)
            dual[BAR, j] = (w[j] + step * (delta - u_bar)) * shrink
            along += delta * dual[BAR, j]
            gain += delta * delta * step * shrink
        along /= 1.0 + gain
        for j in range(dual.shape[1]):
            m_pos, m_neg = class_means(table, j)
            step = tau * scale[j]
            shrink = 1.0 / (1.0 + 0.5 * l2[j] * step)
            new = dual[BAR, j] - step * shrink * (m_pos - m_neg) * along
            dual[BAR, j] = new + theta * (new - w[j])
            w[j] = new


def start_at(point: Float, share: Float, state: State) -> None:
    """Start a round at a snapshot, with the dual variables that belong to it."""
    table, dual, beta = state
    d = len(table.ref)
    weights(table)[:] = dual[BAR] = point[:d]
    a, b = class_scores(table)
    beta[:] = point[2 * d :] - np.where(share > 0.0, a, b)
    m_pos, m_neg = all_class_means(table)
    # Half the gradient of the loss is u + Δ(Δ·w) - Δ.
    dual[U] = 0.5 * point[d : 2 * d] - (m_pos - m_neg) * (a - b - 1.0)


class SPDAM(BatchAUC):
    r"""Stochastic primal-dual AUC maximisation with the square loss.

    Minimises, by steps that take a batch of rows each and without a step size to tune,

    .. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2 + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty; the thesis' :math:`\lambda` before it halves the objective.
        "auto" sets it for each feature, independent of units and falling with the
        number of rows, as in :class:`BAM` but for the square loss.
    batch_size : float or int, default=0.1
        Rows per step: a fraction of all if a float (up to 1.0), a number if an int.
    schedule : {"rounds", "printed"}, default="rounds"
        Take steps in rounds, each from the best point so far; or as in the thesis, on
        raw features and batches drawn anew, ``max_iter`` times as many as make up all
        rows. "printed" needs ``l2`` above zero.
    max_iter : int, default=100
        Maximum number of passes over the data; a round takes four: three of steps, one
        for the full gradient. A ``ConvergenceWarning`` is raised if ``tol`` is not
        reached. ``tol=0`` makes all passes.
    tol : float or None, default=None
        Stop when the gradient, at unit scale, is at most this times that at zero. None
        is 1e-4, or an eighth of the sampling error of that at zero if there are more
        features than rows, where the minimum fits the noise.
    random_state : int, RandomState instance or None, default=None
        Random seed of the order of the rows.

    See Also
    --------
    SVRGAUC : Steps at single rows; usually fewer passes.

    Notes
    -----
    A row costs O(nnz) and a batch O(d) more; memory is about two dozen
    numbers per feature and ten per row. ``fit`` makes four more passes, for class
    moments, the gradient at zero and κ² (more if there are few batches). The error
    falls by a constant factor per round.

    As published: ``SPDAM(l2, batch_size=m, schedule="printed")``, with λ = l2/2, and
    σ, τ and θ of Theorem 5.1 (σ is misprinted there: see the module).

    References
    ----------
    .. [1] M. Natole, "Stochastic optimization for AUC maximization", PhD thesis,
       University at Albany, 2020, Algorithm 21.
    .. [2] Y. Zhang, L. Xiao, "Stochastic primal-dual coordinate method for regularized
       empirical risk minimization", JMLR 18(84), 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SPDAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(SPDAM(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BatchAUC._parameter_constraints,
        "batch_size": [Interval(RealNotInt, 0, 1, closed="right"), COUNT],
        "schedule": [StrOptions({"rounds", "printed"})],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        batch_size: float = 0.1,
        schedule: str = "rounds",
        max_iter: int = 100,
        tol: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.batch_size = batch_size
        self.schedule = schedule
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
        l2 = self._ridge(moments)
        state = init(X, len(y), self.n_features_in_)
        if self.schedule == "printed":
            return self._run_printed(X, y, moments, state, rng, l2)
        table = state.table
        share, how = prepare_table(X, y, table, moments, l2, True)
        batches = partition(y, self.batch_size, rng)
        kappa2 = widest(X, share, batches, table, state.dual, how, rng)
        # If rows do not differ within a class, any κ² will do.
        kappa2 = kappa2 if kappa2 > 0.0 else 1.0

        def run(point: Float, halvings: int, left: int) -> int:
            start_at(point, share, state)
            n, mu = len(batches), 0.5 * convexity(table)
            steps = pace(n, kappa2 * 2.0**halvings, mu)
            passes = min(ROUND, max(left - 1, 1))
            for _ in range(passes):
                order, ends = visit(batches, rng)
                update(X, share, order, ends, state, how, *steps, float(n), l2)
            return passes

        penalty, max_iter = (l2, 0.0), self.max_iter
        return descend(X, share, table, how, penalty, max_iter, tol, run)

    def _run_printed(
        self,
        X: Rows,
        y: Float,
        moments: ClassMoments,
        state: State,
        rng: np.random.RandomState,
        l2: Float,
    ) -> tuple[Float, int, float]:
        """Run Algorithm 21 from zero, with the step sizes of Theorem 5.1."""
        if isinstance(self.l2, str) or self.l2 == 0.0:
            raise ValueError(
                f'SPDAM(schedule="printed") needs l2 above zero, such as 1e-4, not '
                f"l2={self.l2!r}."
            )
        n = int(np.count_nonzero(y))
        table, scale = state.table, scales(state.table)
        share, how = prepare_table(X, y, table, moments, l2, False)
        scale[:] = 1.0
        m = rows_a_batch(self.batch_size, n)
        kappa2 = longest(X, share, table, state.dual, how) or 1.0
        steps = printed_pace(n, m, kappa2, 0.5 * self.l2)
        zero = take(X, share, table, how)
        start_at(zero, share, state)
        for _ in range(self.max_iter):
            update(X, share, *draw(y, m, rng), state, how, *steps, n / m, l2)
        end = take(X, share, table, how)
        first = residual(zero, scale, l2, 0.0)
        left = residual(end, scale, l2, 0.0) / first if first > 0.0 else 0.0
        return end[: len(table.ref)].copy(), self.max_iter, left
