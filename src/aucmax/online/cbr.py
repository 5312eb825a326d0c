r"""CBR: confidence-weighted bipartite ranking.

Khalid, Ray and Chitsaz (2016; Khalid's dissertation 2019, chapter 4) pair each row with
a buffer of the other class, as OAM does, and take the steps of soft confidence-weighted
learning (:mod:`aucmax.online.confidence`) along the differences z, positive minus
negative: weights are N(μ, Σ), and the loss of a pair is

.. math:: \max(0, \phi \sqrt{z^T \Sigma z} - \mu \cdot z), \quad \phi = \Phi^{-1}(\eta)

for η the confidence with which the pair is to be ranked rightly.

How a step is taken is in :mod:`aucmax.online.cbr_full`, and for a diagonal Σ in
:mod:`aucmax.online.cbr_diag`.

Deviations from the dissertation:

* β is printed with one root over the whole sum; it is over u alone;
* rows are centred and scaled (:mod:`aucmax.online.engine`) before they are compared, so
  that Σ may start at the identity whatever the units; scales are taken anew when there
  are twice as many rows;
* C is relative to one over the root of the mean squared length of a pair: that is how
  α, which C bounds, changes with the units of z when Σ is the identity;
* each pass of ``fit`` samples its reservoir anew: one that went on would hardly change
  any more, and all rows would be paired with the same few, over and over.

The Notes of the class have the settings that switch back. Chapter 5 prints
μ += (α/2) y Σz for the same problem, where chapter 4 has α: that is ``step=0.5``, and
its table agrees with it.
"""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core.rows import Float, Rows
from aucmax.online import cbr_diag, cbr_full
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import Visit
from aucmax.online.engine.buffer import check, sample_anew, widened


class CBR(OnlineAUC):
    r"""Confidence-weighted bipartite ranking with a buffer.

    The weights are a normal distribution N(μ, Σ). Each row is paired with a sample of
    the other class, and for each pair, z = x⁺ - x⁻, the distribution changes as little
    as lets the pair be ranked rightly with the ``confidence`` η that is asked for: the
    loss of a pair is

    .. math:: \max(0, \Phi^{-1}(\eta) \sqrt{z^T \Sigma z} - \mu \cdot z) .

    Parameters
    ----------
    C : float, default=0.01
        The longest step along a pair, in units of one over the root of the mean squared
        length of a pair.
    confidence : float, default=0.7
        Chance with which a pair is to be ranked rightly; above one half.
    step : float, default=0.5
        The part of a step that μ takes; Σ takes all of it. One is the least change that
        was meant, and the dissertation's chapter 4; 0.5 is that of its chapter 5, and
        often ranks better, with a larger ``C``.
    covariance : {"full", "diag"}, default="full"
        Whether Σ is a matrix, for up to some thousand features, or a diagonal.
    buffer_size : int, default=50
        Rows of either class in the buffer.
    policy : {"fifo", "reservoir"}, default="fifo"
        Whether the buffer is the last rows, or a random sample of all so far (in
        ``fit``, of all rows of the pass so far): for streams whose order says
        something, such as one class first.
    schedule : {"constant", "printed"}, default="constant"
        Whether C has the units above, or is the number that it is in the dissertation.
    precondition : bool, default=True
        Whether features are centred and scaled inside, by class moments. Of words,
        more of them than rows, rare ones are scaled up too far: switch it off.
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
        The variables of the algorithm, the buffer among them; ``partial_fit`` goes on
        from them.

    See Also
    --------
    OAM : The same pairs, with the hinge loss and no covariance.
    OPAUC : The square loss, with the covariances of the classes.

    Notes
    -----
    With B the buffer size, a row costs O(d² + Bd), whether dense or sparse, a pair that
    is ranked with less confidence than asked for O((B + d)²) more, and other pairs
    O(1); memory is d²/2 + 2B (2B + d) numbers. With ``covariance="diag"`` a pair costs
    O(nnz) of its two rows and memory is eleven numbers a feature, and the buffer.

    As printed: ``CBR(C, step=1, schedule="printed", precondition=False)`` and
    ``partial_fit``, with ``policy`` and ``covariance`` for the variants and
    ``step=0.5`` for chapter 5.

    References
    ----------
    .. [1] M. Khalid, I. Ray, H. Chitsaz, "Confidence-Weighted Bipartite Ranking", ADMA
       2016.
    .. [2] J. Wang, P. Zhao, S. Hoi, "Exact Soft Confidence-Weighted Learning", ICML
       2012.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import CBR
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(CBR(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "confidence": [Interval(Real, 0.5, 1, closed="right")],
        "step": [Interval(Real, 0, 1, closed="right")],
        "covariance": [StrOptions({"full", "diag"})],
        "buffer_size": [Interval(Integral, 1, None, closed="left")],
        "policy": [StrOptions({"fifo", "reservoir"})],
        "schedule": [StrOptions({"constant", "printed"})],
        "precondition": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }
    l2 = 0.0  # there is no penalty: scales are those of the features alone
    # The loss knows no margin: without ``precondition`` scores have units of the data.
    _widest = np.inf

    def __init__(
        self,
        C: float = 0.01,
        *,
        confidence: float = 0.7,
        step: float = 0.5,
        covariance: str = "full",
        buffer_size: int = 50,
        policy: str = "fifo",
        schedule: str = "constant",
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.confidence = confidence
        self.step = step
        self.covariance = covariance
        self.buffer_size = buffer_size
        self.policy = policy
        self.schedule = schedule
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    @property
    def _algorithm(self) -> Any:
        """The module of the algorithm: its functions have the same names."""
        return cbr_diag if self.covariance == "diag" else cbr_full

    def _start(self, n_features: int) -> Any:
        size, precondition = int(self.buffer_size), bool(self.precondition)
        return self._algorithm.init(n_features, size, precondition)

    def _with_room(self, state: Any, rows: Rows, signed: Float) -> Any:
        return widened(state, rows, signed)

    def _validate_state(self, state: Any) -> None:
        place = self._algorithm
        seen, seed = state.z[place.SEEN :][:2], state.z[place.SEED :][:2]
        check(state, seen, seed, self.n_features_in_)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Visit
    ) -> None:
        # One is as sure as a float can tell.
        confidence = min(float(self.confidence), np.nextafter(1.0, 0.0))
        rule = float(self.C), float(ndtri(confidence)), float(self.step)
        reservoir, printed = self.policy == "reservoir", self.schedule == "printed"
        self._algorithm.update(X, y, order, state, how, *rule, reservoir, printed)

    def _again(self, state: Any) -> None:
        if self.policy == "reservoir":
            sample_anew(state.z[self._algorithm.SEEN :][:2], self.buffer_size)

    def _weights(self, state: Any) -> tuple[Float, float]:
        coef, intercept = self._algorithm.weights(state)
        return coef, intercept
