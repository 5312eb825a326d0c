r"""FSAUC: fast stochastic AUC maximisation, in stages.

Liu, Zhang, Chen, Wang and Yang (ICML 2018) solve the saddle point of
:mod:`aucmax.online.solam`,

.. math:: \min_{\|w\|_1 \le R,\, a,\, b}\ \max_\alpha\ E\, F(w, a, b, \alpha; x, y)
          + \tfrac{p (1 - p)\, l_2}{2} \|w\|^2 ,

in stages of constant step size. A stage keeps v = (w, a, b) within r of its start and α
within D. The next stage starts from the mean of its iterates, with α from the class
means, half the r and half the step size. The mean of a stage of constant steps forgets
its start exponentially fast, which a mean over all of a stream never does: hence O(1/n)
instead of SOLAM's O(1/√n).

Deviations from the paper, none of which moves the minimum:

* rows are centred and steps scaled feature by feature, the l1 ball holds the weights at
  unit scale, and p enters through effective rows 4p(1 - p)n, as in
  :mod:`aucmax.online.solam`. In these coordinates, divided by the root mean squared
  norm of a row, κ is one, and w, a, b and α take steps of one size, as in the paper;
* *capped* steps are explicit ones, cut where the residual of the row vanishes. Like the
  implicit steps of :mod:`aucmax.online.solam` they do not overshoot; but those, at a
  constant size, do not have their mean at the minimum, as they weigh rows by their
  norms. Steps of a, b and α are at most ¼, or w could not follow;
* a and b start a stage from the class means, as α does;
* Lemma 1 bounds the error of the class means by
  1 / (min(p, 1-p) T - √(2T log(12/δ))), which is negative until T is about
  10 / min(p, 1-p)², and with constants that make the steps of the second stage many
  times those of the first. Here it is their variance, at most ‖w‖² / (p(1-p) T) over
  *all* T rows so far, and at most that of a single row: β = 1 + 8κ² + 2 var / r²,
  D = 2√2 κr + 3 √var. It is finite from the first pair on, small after a few rows of
  both classes, and zero in ``fit``, where the class means are exact. Steps never grow
  from stage to stage;
* the steps of the first stage are η₀/√(1 + ñ₀/(4d)), with ñ₀ its effective rows and d
  the effective number of features: the paper's 1/√n₀, but full steps for wide data
  (:mod:`aucmax.online.engine.step_sizes`). For wide data r, too, is halved no sooner
  than 1/√(1 + t̃/d) has halved, t̃ the effective rows so far;
* in a stream of unknown length each stage is twice as long as the one before, and r
  falls like 1/√(1 + t̃/(4d)): the paper's r ∝ 1/√n. (Halved with each doubling, steps
  would fall like 1/n: too fast, unless the convexity is known.) Within a stage, the
  weights are a mean of its start and its mean so far;
* after the l1 ball and the box, the ball around the start is a pull towards the start:
  a point of the intersection, as by the paper's alternating projections, without
  iterations. The l1 ball may be exceeded by 1 % between projections, which cost O(d);
  the weights returned are inside.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import ClassMoments
from aucmax.base.constraints import COUNT, NON_NEGATIVE, POSITIVE
from aucmax.core.rows import Float, Rows
from aucmax.online import fsauc_stages as stages
from aucmax.online import fsauc_steps as steps
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import Stream, Visit
from aucmax.online.engine.statistics import class_balance, effective_width, rows_seen
from aucmax.online.fsauc_stages import ETA, LENGTH, PLANNED
from aucmax.online.fsauc_steps import CAPPED, EXPLICIT, IMPLICIT, State

STEPS = {"capped": CAPPED, "implicit": IMPLICIT, "explicit": EXPLICIT}

_STRETCH = 16  # steps between two proximal maps; d if that is more
_NO_BALL = 1e150  # its square is finite


class FSAUC(OnlineAUC):
    r"""Fast stochastic AUC maximisation with the square loss.

    Solves, one row at a time and in stages of ever smaller steps, the saddle point form
    of

    .. math:: \min_{\|w\|_1 \le R}\ E\,(1 - w \cdot (x^+ - x^-))^2
              + \tfrac{l_2}{2} \|w\|^2 .

    Parameters
    ----------
    radius : float or None, default=100.0
        Radius R of the l1 ball, for weights at unit scale: at weight 1, one standard
        deviation of a feature is one unit of score. The first stage stays within about
        3.5 R of zero, each later one within half of that of its start. None removes all
        balls. Without ``precondition``, the ball holds the raw weights.
    l2 : float, default=0.0
        Ridge penalty. The papers' :math:`\beta` is :math:`p(1-p)\,l_2`.
    eta0 : float, default=0.5
        Step size of a short first stage, in units of one over the mean squared norm of
        a row; that of a long one falls with the square root of its length.
    schedule : {"stages", "printed"}, default="stages"
        Fit lengths of stages, balls and steps to the data; or take the number and the
        length of stages from the paper, halve ball and step size with each stage, and
        take ``eta0`` as the first step size of all variables, a plain number.
    n_expected : int or None, default=None
        Number of rows that ``partial_fit`` will see in all, to plan the stages as in
        the paper; more may follow. By default, each stage is twice as long as the one
        before. ``fit`` ignores it.
    step : {"capped", "implicit", "explicit"}, default="capped"
        Explicit steps, those of the paper, diverge if ``eta0`` is too large. Capped
        steps end where the residual of the row is zero; implicit ones take it after the
        step. Both can diverge if it is far too large and there are no balls. Divergence
        raises an error.
    .. shared: precondition, passes

    See Also
    --------
    SOLAM : The same saddle point without stages.
    SPAM : The same loss without the dual variables.

    Notes
    -----
    A row costs O(nnz), or O(d) when the l1 ball is left; memory is nine numbers per
    feature. ``fit`` makes one more pass for exact class moments, ``partial_fit`` uses
    running ones. The number of stages for n rows is
    :math:`\lfloor \tfrac12 \log_2 (2 \tilde n / \log_2 \tilde n) \rfloor - 1`, at least
    one, with :math:`\tilde n = 4 p (1 - p) n`. By the paper's Theorem 1, the
    error falls like O(1/n) up to logarithms [1]_.

    The constants of the paper's Lemma 1 are negative or unbounded for few rows or rare
    positives. They bound the error of the class means that a stage starts from; here
    the variance of those means is used, and steps never grow from stage to stage.

    As published: ``FSAUC(R, eta0=eta1, n_expected=n, schedule="printed",
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
        **OnlineAUC._parameter_constraints,
        "radius": [POSITIVE, None],
        "l2": [NON_NEGATIVE],
        "schedule": [StrOptions({"stages", "printed"})],
        "n_expected": [COUNT, None],
        "step": [StrOptions(set(STEPS))],
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
        state = steps.init(n_features, bool(self.precondition), self._radius())
        if self.schedule == "printed" and self.n_expected is not None:
            state.z[PLANNED], state.z[LENGTH] = stages.printed_plan(
                int(self.n_expected)
            )
        return state

    def _begin(self, rows: Rows, moments: ClassMoments) -> State:
        state: State = super()._begin(rows, moments)
        z, table = state.z, state.table
        n = rows_seen(table) * self.max_iter
        if self.schedule == "printed":
            z[PLANNED], z[LENGTH] = stages.printed_plan(int(n))
            return state
        first = stages.plan(n, class_balance(table), effective_width(table))
        z[PLANNED], z[LENGTH], z[ETA] = first
        return state

    def _visit(self, rows: Rows, state: State, learn: bool) -> Visit:
        how = super()._visit(rows, state, learn)
        stretch = float(max(_STRETCH, self.n_features_in_))
        return how._replace(follows=True, stretch=stretch)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: Visit
    ) -> None:
        n = float(self.n_expected or 0.0) if isinstance(how, Stream) else -1.0
        printed, rule = self.schedule == "printed", STEPS[self.step]
        hyper = n, float(self.eta0), printed, rule, self._radius()
        steps.update(X, y, order, state, how, *hyper)

    def _weights(self, state: State) -> tuple[Float, float]:
        return steps.weights(state, self._radius())
