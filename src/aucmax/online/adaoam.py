r"""AdaOAM: adaptive online AUC maximisation.

Ding, Zhao, Hoi and Ong (AAAI 2015) take the gradient g of OPAUC
(:mod:`aucmax.online.covariance`) to minimise the pairwise square loss

.. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2 + \tfrac{l_2}{2} \|w\|^2 ,

with the step of AdaGrad: :math:`w_j \leftarrow w_j - \eta g_j / H_j`,
:math:`H_j = \delta + \sqrt{h_j}`, h the sum of g² so far; and project on a ball that
holds the minimum, to the point that is nearest in the metric of H.

Deviations from the paper, none of which moves the minimum:

* steps are taken for the weights of unit-scale features, w_j/√D_j
  (:mod:`aucmax.online.engine`), so that neither η nor δ has units of the data. AdaGrad
  alone does not see to that: its steps have the units of w whatever those of g are;
* η is relative to κ̄, the root of the mean squared norm of a row: in its first steps
  AdaGrad moves all weights by η, and so the score by κ̄ η or more;
* with λ_j the penalty of J, the ball is Σ λ_j w_j² ≤ 2, as J(0) = 1 bounds the penalty
  at the minimum. For one λ it is the paper's ‖w‖ ≤ 1/√(λ/2); no penalty, no ball;
* a weighted average of the iterates is returned.

The Notes of the class have the settings that switch back.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.base.class_moments import ClassMoments as Tally
from aucmax.core.jit import inlined, kernel, vectorised
from aucmax.core.rows import Float, Rows, copy_row
from aucmax.online import covariance
from aucmax.online.base import OnlineAUC
from aucmax.online.covariance import (
    KNOWN,
    MEAN,
    NORM,
    REF,
    ROWS,
    SLOTS,
    WIDTH,
    D,
    W,
    gradient,
    learn,
    rescale,
    ridge,
)
from aucmax.online.engine import L2, NEG, POS, assign

# The numbers in State.z: four of aucmax.online.covariance, then steps and Σ γ (the
# weights of the average).
T, SUM_GAMMA = 4, 5
H = SLOTS  # of V: Σ g² for unit-scale features
# As J(0) = 1, half of Σ λ_j w_j² is at most one at the minimum.
_RADIUS = np.sqrt(2.0)


class State(NamedTuple):
    """The learner; its arrays change in place."""

    V: Float  # (11, d) see aucmax.online.covariance; then Σ g²
    S: Float  # (2, d(d + 1)/2) Σ x̃x̃ᵀ of the classes
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (6,) numbers, see above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    V, S = covariance.empty(n_features, precondition, "AdaOAM", SLOTS + 1)
    return State(V, S, np.zeros(2), np.zeros(6))


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
    rows, known, norm, width = z[ROWS], z[KNOWN], z[NORM], z[WIDTH]
    t, sum_gamma = z[T], z[SUM_GAMMA]
    x, g = np.empty(V.shape[1]), np.empty(V.shape[1])
    for i in order:
        weight, side = abs(y[i]), POS if y[i] > 0.0 else NEG
        if rows == 0.0 and known == 0.0:
            copy_row(X, i, 1.0, V[REF], x)
            assign(V[REF], x)

        # Class means and covariances.
        copy_row(X, i, 1.0, V[REF], x)
        if learns:
            rows += 1.0
            learn(V, S, n, x, side, weight)
            if n[POS] == 0.0 or n[NEG] == 0.0:
                continue
            if rows > known:
                own = 0.5 * weight / n[side]
                norm, width = rescale(V, n, x, own, l2, precondition)

        # The gradient, and a step as large as its coordinate has been small.
        gradient(V, S, n, x, side, g)
        t += 1.0
        share = weight * rows / (n[POS] + n[NEG])
        eta = eta0 if printed else eta0 / np.sqrt(norm)
        if move(V, g, eta, share, delta, l2) > _RADIUS:
            pull(V, delta, l2)
        if average:
            sum_gamma += t
        follow(V, t / sum_gamma if average else 1.0)
    z[ROWS], z[KNOWN], z[NORM], z[WIDTH] = rows, known, norm, width
    z[T], z[SUM_GAMMA] = t, sum_gamma


@vectorised
def move(V: Float, g: Float, eta: float, share: float, delta: float, l2: L2) -> float:
    """Step for the weights of unit-scale features; return the root of Σ λ_j w_j²."""
    penalty = 0.0
    for j in range(g.shape[0]):
        l2_j = ridge(V, j, l2)
        unit = np.sqrt(V[D, j])
        slope = share * unit * (g[j] + 0.5 * l2_j * V[W, j])
        V[H, j] += slope * slope
        V[W, j] -= eta * unit * slope / (delta + np.sqrt(V[H, j]))
        penalty += l2_j * V[W, j] * V[W, j]
    return np.sqrt(penalty)


@inlined
def pull(V: Float, delta: float, l2: L2) -> None:
    """Bring w back to the ball: to H w/(H + μDλ), for the μ that makes it so long.

    By Newton's method for one over its length, which is concave in μ: no step goes too
    far.
    """
    mu = 0.0
    for _ in range(100):
        squares = slope = 0.0
        for j in range(V.shape[1]):
            l2_j, metric = ridge(V, j, l2), delta + np.sqrt(V[H, j])
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
        V[W, j] *= metric / (metric + mu * V[D, j] * ridge(V, j, l2))


@vectorised
def follow(V: Float, share: float) -> None:
    """Let the mean of the iterates go its share of the way to the last one."""
    for j in range(V.shape[1]):
        V[MEAN, j] += share * (V[W, j] - V[MEAN, j])


class AdaOAM(OnlineAUC):
    r"""Adaptive online AUC maximisation with the square loss.

    Minimises, one row at a time, with the covariances of both classes,

    .. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2 + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given; the paper's
        :math:`\lambda` is :math:`l_2/2`. With "auto" each feature has its own, which
        depends on no unit: 1e-3 times its mean square where it is not zero.
    eta0 : float, default=1.0
        Step size of the weights of unit-scale features, in units of one over the root
        of the mean squared norm of a row.
    schedule : {"constant", "printed"}, default="constant"
        Whether ``eta0`` has those units, or is the number that it is in the paper.
    delta : float, default=0.5
        Added to the root of the summed squares of the gradient: above zero, so that the
        first steps are not larger than their gradients call for.
    average : bool, default=True
        Whether the weights are an average of the iterates, later ones weighing more
        (in proportion to t), or the last iterate.
    precondition : bool, default=True
        Whether steps are taken for the weights of unit-scale features. The objective is
        the same without.
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
    OPAUC : The same gradient, one step size for all features.
    SPAM : The same loss in O(nnz) a row, without covariances.

    Notes
    -----
    A row costs O(d²), whether dense or sparse, and so does memory: one triangle of d²/2
    numbers a class. ``fit`` reads the data once more, for the scales of the features.

    As printed: ``AdaOAM(l2, eta0=eta, delta=delta, schedule="printed",
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
        "l2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"constant", "printed"})],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "average": ["boolean"],
        "precondition": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }
    _learns_in_fit = True

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
        return init(n_features, bool(self.precondition))

    def _begin(self, rows: Rows, tally: Tally) -> State:
        state = self._start(self.n_features_in_)
        covariance.fit_scales(state, tally, self._penalty(), bool(self.precondition))
        return state

    def _fitted_to(self, state: State, rows: Rows) -> State:
        return state

    def _visit(self, rows: Rows, state: State, learn: bool) -> bool:
        return learn

    def _class_weights(self, state: State) -> Float:
        return state.n

    def _last(self, state: State) -> tuple[Float, Float, int]:
        return state.V[W], state.V, covariance.SQ

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: bool
    ) -> None:
        printed, average = self.schedule == "printed", bool(self.average)
        rule = float(self.eta0), printed, average, bool(self.precondition)
        update(X, y, order, state, how, *rule, float(self.delta), self._penalty())

    def _weights(self, state: State) -> tuple[Float, float]:
        return covariance.weights(state.V, state.n)
