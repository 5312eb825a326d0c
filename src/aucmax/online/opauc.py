r"""OPAUC: one-pass AUC optimisation.

Gao, Jin, Zhu and Zhou (ICML 2013) minimise the pairwise square loss, J of
:class:`OPAUC`, with one row a step: the loss of a row, paired with all rows of the
other class so far, depends on these only through their mean and covariance, and so does
its gradient (:mod:`aucmax.online.covariance`). The paper's objective is half of J, its
λ is l2/2.

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
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import NEG, POS
from aucmax.base.constraints import COUNT
from aucmax.core.jit import kernel, vectorised
from aucmax.core.rows import Float, Rows
from aucmax.online import covariance, opaucr
from aucmax.online.covariance import (
    MEAN,
    NORM,
    ROWS,
    SUM_GAMMA,
    WIDTH,
    CovarianceAUC,
    D,
    State,
    T,
    W,
)
from aucmax.online.engine import L2, visit
from aucmax.online.engine.step_sizes import INVSQRT, ROOT, explicit, step_size


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
        if not covariance.visit_row(X, y, i, state, x, learns, l2, precondition):
            continue

        # The gradient, and a step that does not overshoot along x - c.
        x_x, trace = covariance.gradient(V, S, n, x, POS if y[i] > 0.0 else NEG, g)
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
        step, l2_j = eta * V[D, j], covariance.ridge(V, j, l2)
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
            return covariance.init(n_features, precondition, "OPAUC")
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
