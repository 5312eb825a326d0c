r"""OPAUC: one-pass AUC optimisation.

Gao, Jin, Zhu and Zhou (ICML 2013) minimise the pairwise square loss

.. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2 + \tfrac{l_2}{2} \|w\|^2

with one row a step: the loss of a row, paired with all rows of the other class so far,
depends on these through their mean and covariance only, and so does its gradient
(:mod:`aucmax.online.covariance`). The paper's objective is half of J, its λ is l2/2.

The first pass of ``fit`` learns means and covariances row by row, as a stream does;
with ``shuffle=False, max_iter=1`` it is the one pass of the paper. Further passes step
with the statistics of all rows.

Deviations from the paper, none of which moves the minimum:

* rows are centred and steps scaled feature by feature (:mod:`aucmax.online.engine`), so
  that raw features do as well as standardised ones;
* the step size is relative to the curvature, counts effective rows
  (:mod:`aucmax.online.engine.step_sizes`), and is η/(1 + η‖x - c‖²) at the row x. That
  is what an implicit step along x - c would be; to take it for the whole gradient, not
  only for the part along x - c, keeps the two halves of the covariance in balance. And
  because the covariance so far may be far above that of all rows (an outlier that came
  early), η never exceeds 2/trace;
* the penalty is applied by its proximal map;
* a weighted average of the iterates is returned.

The Notes of the class have the settings that switch back.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.base.class_moments import ClassMoments as Tally
from aucmax.core.jit import kernel, vectorised
from aucmax.core.rows import Float, Rows, copy_row
from aucmax.online import covariance, opaucr
from aucmax.online.base import OnlineAUC
from aucmax.online.covariance import (
    KNOWN,
    MEAN,
    NORM,
    REF,
    ROWS,
    WIDTH,
    D,
    W,
    gradient,
    learn,
    rescale,
    ridge,
)
from aucmax.online.engine import L2, NEG, POS, SQ, assign
from aucmax.online.engine.random_numbers import check_seed
from aucmax.online.engine.step_sizes import INVSQRT, explicit, step_size

# The numbers in State.z: four of aucmax.online.covariance, then steps and Σ γ (the
# weights of the average).
T, SUM_GAMMA = 4, 5


class State(NamedTuple):
    """The learner; its arrays change in place."""

    V: Float  # (10, d) see aucmax.online.covariance
    S: Float  # (2, d(d + 1)/2) Σ x̃x̃ᵀ of the classes
    n: Float  # (2,) weight of the positives and of the negatives seen
    z: Float  # (6,) numbers, see above


def init(n_features: int, precondition: bool) -> State:
    """Return the state before the first row."""
    V, S = covariance.empty(n_features, precondition, "OPAUC")
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
    implicit: bool,
    average: bool,
    precondition: bool,
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

        # The gradient, and a step that does not overshoot along x - c.
        x_x, trace = gradient(V, S, n, x, side, g)
        t += 1.0
        total = n[POS] + n[NEG]
        balance = 4.0 * (n[POS] / total) * (n[NEG] / total)
        eta = step_size(INVSQRT, eta0, max(norm, 0.5 * trace), width, t, balance, 0.0)
        eta = (eta0 if printed else eta) * (weight * rows / total)
        if implicit:
            eta /= 1.0 + eta * x_x
        if average:
            sum_gamma += t
        move(V, g, eta, l2, t / sum_gamma if average else 1.0)
    z[ROWS], z[KNOWN], z[NORM], z[WIDTH] = rows, known, norm, width
    z[T], z[SUM_GAMMA] = t, sum_gamma


@vectorised
def move(V: Float, g: Float, eta: float, l2: L2, share: float) -> None:
    """Step, with the proximal map of the penalty, and average."""
    for j in range(g.shape[0]):
        step = eta * V[D, j]
        V[W, j] = (V[W, j] - step * g[j]) / (1.0 + 0.5 * ridge(V, j, l2) * step)
        V[MEAN, j] += share * (V[W, j] - V[MEAN, j])


class OPAUC(OnlineAUC):
    r"""One-pass AUC optimisation with the square loss.

    Minimises, one row at a time, with the covariances of both classes,

    .. math:: J(w) = E\,(1 - w \cdot (x^+ - x^-))^2 + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given; the paper's
        :math:`\lambda` is :math:`l_2/2`. With "auto" each feature has its own, which
        depends on no unit: 1e-3 times its mean square where it is not zero.
    eta0 : float, default=1.0
        First step size, in units of one over the mean squared norm of a row.
    schedule : {"invsqrt", "printed"}, default="invsqrt"
        Whether steps fall with the square root of the number of rows; or all have the
        size ``eta0``, a plain number, as in the paper, and the penalty is a part of the
        gradient.
    rank : int or None, default=None
        Columns of the sketches that stand for the covariances, or None for the
        covariances themselves. With sketches this is OPAUCr, for thousands of features
        and more; the paper has 50. With fewer features, covariances rank better and
        take less time.
    average : bool, default=True
        Whether the weights are an average of the iterates, later ones weighing more
        (in proportion to t), or the last iterate.
    step : {"implicit", "explicit"}, default="implicit"
        Whether the step at a row is shortened so as not to overshoot along the row, or
        not. Explicit steps are those of the paper and diverge if ``eta0`` is too large;
        with sketches, others may as well. That is an error.
    precondition : bool, default=True
        Whether steps are scaled feature by feature, by class moments. The objective is
        the same without, the number of passes to its minimum is not.
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
    AdaOAM : The same gradient, steps adapted to each feature.
    SPAM : The same loss in O(nnz) a row, without covariances.

    Notes
    -----
    A row costs O(d²), whether dense or sparse, and so does memory: one triangle of d²/2
    numbers a class. With sketches of rank τ a row costs O(nnz τ + τ²) and memory is
    2τ + 12 numbers a feature; but the minimum is then that of the sketches, which are
    off by about 1/√τ. ``fit`` reads the data once more, for the scales of the features.

    As printed: ``OPAUC(l2, eta0=eta, schedule="printed", step="explicit",
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
        "l2": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"invsqrt", "printed"})],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "average": ["boolean"],
        "step": [StrOptions({"implicit", "explicit"})],
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
        if self.rank is not None:
            return opaucr.init(n_features, int(self.rank), bool(self.precondition))
        return init(n_features, bool(self.precondition))

    def _begin(self, rows: Rows, tally: Tally) -> Any:
        state = self._fitted_to(self._start(self.n_features_in_), rows)
        hyper = self._penalty(), bool(self.precondition)
        if self.rank is not None:
            opaucr.fit_scales(state, tally, *hyper)
        else:
            covariance.fit_scales(state, tally, *hyper)
        return state

    def _validate_state(self, state: Any) -> None:
        if self.rank is not None:
            check_seed(state.z[opaucr.SEED :])

    def _fitted_to(self, state: Any, rows: Rows) -> Any:
        return state if self.rank is None else super()._fitted_to(state, rows)

    def _visit(self, rows: Rows, state: Any, learn: bool) -> Any:
        if self.rank is None:
            return learn
        # Of a kernel that learns in one pass of ``fit`` and not in the next, there is
        # one form.
        how = super()._visit(rows, state, learn=True)
        stretch = 1.0 if self.schedule == "printed" else opaucr.STRETCH
        return how._replace(stretch=stretch), learn

    def _class_weights(self, state: Any) -> Float:
        return state.n if self.rank is None else state.table.n

    def _last(self, state: Any) -> tuple[Float, Float, int]:
        if self.rank is not None:
            return opaucr.last(state), state.table.feat, SQ
        return state.V[W], state.V, covariance.SQ

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Any
    ) -> None:
        eta0, printed = float(self.eta0), self.schedule == "printed"
        if printed:  # the kernels apply the penalty by its proximal map
            eta0 = explicit(eta0, 0.5 * self._penalty().plain)
        rule = eta0, printed, self.step == "implicit", bool(self.average)
        if self.rank is not None:
            opaucr.update(X, y, order, state, how[0], how[1], *rule)
        else:
            features = bool(self.precondition), self._penalty()
            update(X, y, order, state, how, *rule, *features)

    def _weights(self, state: Any) -> tuple[Float, float]:
        if self.rank is not None:
            return opaucr.weights(state, self._penalty())
        return covariance.weights(state.V, state.n)
