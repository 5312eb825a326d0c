r"""AdaOAM: adaptive online AUC maximisation.

Ding, Zhao, Hoi and Ong (AAAI 2015) minimise the pairwise square loss, J of
:class:`AdaOAM`, by the gradient g of OPAUC (:mod:`aucmax.online.opauc`) and the
step of AdaGrad: :math:`w_j \leftarrow w_j - \eta g_j / H_j`, :math:`H_j = \delta +
\sqrt{h_j}`, h the sum of g² so far; and project on a ball that holds the minimum, to
the nearest point in the metric of H.

Deviations from the paper, none of which moves the minimum:

* steps are taken for the weights at unit scale, w_j/√D_j
  (:mod:`aucmax.online.engine`), so that neither η nor δ has units of the data. AdaGrad
  alone does not ensure that: its steps have the units of w whatever those of g;
* η is relative to κ̄, the root mean squared norm of a row: in its first steps AdaGrad
  moves all weights by η, and so the score by κ̄ η or more;
* with λ_j the penalty of J, the ball is Σ λ_j w_j² ≤ 2, as J(0) = 1 bounds the penalty
  at the minimum. For one λ it is the paper's ‖w‖ ≤ 1/√(λ/2); without penalty there is
  no ball;
* a weighted average of the iterates is returned.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import NEG, POS
from aucmax.base.constraints import POSITIVE
from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.rows import Float, Rows
from aucmax.online import opauc
from aucmax.online.engine import L2
from aucmax.online.opauc import (
    MEAN,
    NORM,
    ROWS,
    SLOTS,
    SUM_GAMMA,
    CovarianceAUC,
    D,
    State,
    T,
    W,
)

H = SLOTS  # slot of V: Σ g² at unit scale
# As J(0) = 1, half of Σ λ_j w_j² is at most one at the minimum.
_RADIUS = np.sqrt(2.0)


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    learns: bool,
    eta0: float,
    printed: bool,
    average: bool,
    precondition: bool,
    delta: float,
    l2: L2,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    V, S, n, z = state
    x, g = np.empty(V.shape[1]), np.empty(V.shape[1])
    for i in order:
        if not opauc.visit_row(X, y, i, state, x, learns, l2, precondition):
            continue

        # The gradient, and a step as large as its coordinate has been small.
        opauc.gradient(V, S, n, x, POS if y[i] > 0.0 else NEG, g)
        z[T] += 1.0
        share = abs(y[i]) * z[ROWS] / (n[POS] + n[NEG])
        eta = eta0 if printed else eta0 / np.sqrt(z[NORM])
        if move(V, g, eta, share, delta, l2) > _RADIUS:
            pull(V, delta, l2)
        if average:
            z[SUM_GAMMA] += z[T]
        follow(V, z[T] / z[SUM_GAMMA] if average else 1.0)


@vectorised
def move(V: Float, g: Float, eta: float, share: float, delta: float, l2: L2) -> float:
    """Step for the weights at unit scale; return the root of Σ λ_j w_j²."""
    penalty = 0.0
    for j in range(g.shape[0]):
        l2_j = opauc.ridge(V, j, l2)
        unit = np.sqrt(V[D, j])
        slope = share * unit * (g[j] + 0.5 * l2_j * V[W, j])
        V[H, j] += slope * slope
        V[W, j] -= eta * unit * slope / (delta + np.sqrt(V[H, j]))
        penalty += l2_j * V[W, j] * V[W, j]
    return np.sqrt(penalty)


@inlined
def pull(V: Float, delta: float, l2: L2) -> None:
    """Project w on the ball: to H w/(H + μDλ), with the μ that gives its radius.

    Newton's method for one over the length, which is concave in μ: no step overshoots.
    """
    mu = 0.0
    for _ in range(100):
        squares = slope = 0.0
        for j in range(V.shape[1]):
            l2_j, metric = opauc.ridge(V, j, l2), delta + np.sqrt(V[H, j])
            pulled = metric + mu * V[D, j] * l2_j
            w = V[W, j] * (metric / pulled)
            squares += l2_j * w * w
            slope += l2_j * w * (w * V[D, j] * l2_j / pulled)
        excess = np.sqrt(squares) / _RADIUS - 1.0
        if not excess > 1e-15:
            break
        mu += excess * squares / slope
    for j in range(V.shape[1]):
        metric = delta + np.sqrt(V[H, j])
        V[W, j] *= metric / (metric + mu * V[D, j] * opauc.ridge(V, j, l2))


@vectorised
def follow(V: Float, share: float) -> None:
    """Move the mean of the iterates by ``share`` towards the last one."""
    for j in range(V.shape[1]):
        V[MEAN, j] += share * (V[W, j] - V[MEAN, j])


class AdaOAM(CovarianceAUC):
    r"""Adaptive online AUC maximisation with the square loss.

    Minimises, one row at a time, with the covariances of both classes,

    .. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2 + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty; the paper's :math:`\lambda` is :math:`l_2/2`. "auto" sets it for
        each feature to 1e-3 times its mean square where it is not zero, which does not
        depend on units.
    eta0 : float, default=1.0
        Step size of the weights at unit scale, in units of one over the root mean
        squared norm of a row.
    schedule : {"constant", "printed"}, default="constant"
        "printed" takes ``eta0`` as a plain number, as in the paper.
    delta : float, default=0.5
        Added to the root of the summed squared gradients; it limits the first steps.
    .. shared: average
    precondition : bool, default=True
        Take steps for the weights at unit scale; this does not move the minimum.
    .. shared: passes

    See Also
    --------
    OPAUC : The same gradient, one step size for all features.
    SPAM : The same loss in O(nnz) a row, without covariances.

    Notes
    -----
    A row costs O(d²), whether dense or sparse, and so does memory: a triangle of d²/2
    numbers per class. ``fit`` makes one more pass for the scales of the features.

    As published: ``AdaOAM(l2, eta0=eta, delta=delta, schedule="printed",
    precondition=False, average=False)`` and ``partial_fit``, with λ = l2/2.

    References
    ----------
    .. [1] Y. Ding, P. Zhao, S. C. H. Hoi, Y.-S. Ong, "An Adaptive Gradient Method for
       Online AUC Maximization", AAAI 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import AdaOAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(AdaOAM(random_state=0).fit(X, y).score(X, y), 2)
    0.92
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CovarianceAUC._parameter_constraints,
        "schedule": [StrOptions({"constant", "printed"})],
        "delta": [POSITIVE],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        eta0: float = 1.0,
        schedule: str = "constant",
        delta: float = 0.5,
        average: bool = True,
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.delta = delta
        self.average = average
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _start(self, n_features: int) -> State:
        precondition = bool(self.precondition)
        return opauc.init(n_features, precondition, "AdaOAM", SLOTS + 1)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: bool
    ) -> None:
        printed, average = self.schedule == "printed", bool(self.average)
        rule = float(self.eta0), printed, average, bool(self.precondition)
        update(X, y, order, state, how, *rule, float(self.delta), self._penalty())
