r"""CBR: confidence-weighted bipartite ranking.

Khalid, Ray and Chitsaz (2016; Khalid's dissertation 2019, chapter 4) pair each row with
a buffer of the other class, as OAM does, and take the steps of soft confidence-weighted
learning (:mod:`aucmax.online.confidence`) along the differences z, positive minus
negative: weights are N(μ, Σ), and the loss of a pair is that of :class:`CBR`, with φ =
Φ⁻¹(η) and η the confidence. The steps are in :mod:`aucmax.online.cbr_full`, and for a
diagonal Σ in :mod:`aucmax.online.cbr_diag`.

Deviations from the dissertation:

* β is printed with one root over the whole sum; it is over u alone;
* rows are centred and scaled (:mod:`aucmax.online.engine`) before they are compared, so
  that Σ starts at the identity whatever the units; scales are recomputed when the
  number of rows has doubled;
* C is relative to one over the root of the mean squared length of a pair: α, which C
  bounds, scales that way with the units of z when Σ is the identity;
* each pass of ``fit`` restarts the reservoir; otherwise it would hardly change, and all
  rows would be paired with the same few.

Chapter 5 prints μ += (α/2) y Σz for the same problem, where chapter 4 has α: that is
``step=0.5``, and its table agrees with it.
"""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.core.rows import Float, Rows
from aucmax.online import cbr_diag, cbr_full
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import Visit
from aucmax.online.engine.buffer import check, restart, widened

# Slots of State.z of both algorithms: rows of each class offered to the buffer (2); its
# random generator (2).
SEEN, SEED = slice(0, 2), slice(2, 4)


class CBR(OnlineAUC):
    r"""Confidence-weighted bipartite ranking with a buffer.

    The weights are a normal distribution N(μ, Σ). Each row is paired with a sample of
    the other class. For each pair, z = x⁺ - x⁻, the distribution changes as little as
    possible to rank the pair correctly with ``confidence`` η; the loss of a pair is

    .. math:: \max(0, \Phi^{-1}(\eta) \sqrt{z^T \Sigma z} - \mu \cdot z) .

    Parameters
    ----------
    C : float, default=0.01
        Longest step along a pair, in units of one over the root of the mean squared
        length of a pair.
    confidence : float, default=0.7
        Probability with which a pair is to be ranked correctly; above one half.
    step : float, default=0.5
        Fraction of a step that μ takes; Σ takes the whole step. 1 is the smallest
        change, as in chapter 4 of the dissertation; 0.5, as in its chapter 5, often
        ranks better, with a larger ``C``.
    covariance : {"full", "diag"}, default="full"
        Whether Σ is a matrix, for up to some thousand features, or a diagonal.
    buffer_size : int, default=50
        Buffered rows of each class.
    policy : {"fifo", "reservoir"}, default="fifo"
        Buffer the last rows, or a random sample of all so far (in ``fit``, of the pass
        so far): for streams whose order matters, such as one class first.
    schedule : {"constant", "printed"}, default="constant"
        "printed" takes C as a plain number, as in the dissertation.
    precondition : bool, default=True
        Centre and scale features internally. Switch it off for text with more features
        than rows, where rare features are scaled up too far.
    .. shared: passes

    See Also
    --------
    OAM : The same pairs, with the hinge loss and no covariance.
    OPAUC : The square loss, with the covariances of the classes.

    Notes
    -----
    A pair costs O(d²), whether dense or sparse, and memory is d²/2 numbers and the
    buffer. With ``covariance="diag"`` a pair costs O(nnz) of its two rows, and memory
    is eleven numbers per feature and the buffer.

    As published: ``CBR(C, step=1, schedule="printed", precondition=False)`` and
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
        **OnlineAUC._parameter_constraints,
        "confidence": [Interval(Real, 0.5, 1, closed="right")],
        "step": [Interval(Real, 0, 1, closed="right")],
        "covariance": [StrOptions({"full", "diag"})],
        "schedule": [StrOptions({"constant", "printed"})],
    }
    # The loss has no margin: without ``precondition`` scores have units of the data.
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

    def _algorithm(self) -> Any:
        return cbr_diag if self.covariance == "diag" else cbr_full

    def _start(self, n_features: int) -> Any:
        size, precondition = int(self.buffer_size), bool(self.precondition)
        return self._algorithm().init(n_features, size, precondition)

    def _with_room(self, state: Any, rows: Rows, signed: Float) -> Any:
        return widened(state, rows, signed)

    def _validate_state(self, state: Any) -> None:
        check(state, state.z[SEEN], state.z[SEED], self.n_features_in_)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: Any, how: Visit
    ) -> None:
        # Confidence 1 is the largest float below.
        confidence = min(float(self.confidence), np.nextafter(1.0, 0.0))
        rule = float(self.C), float(ndtri(confidence)), float(self.step)
        reservoir, printed = self.policy == "reservoir", self.schedule == "printed"
        self._algorithm().update(X, y, order, state, how, *rule, reservoir, printed)

    def _again(self, rows: Rows, signed: Float, state: Any) -> None:
        if self.policy == "reservoir":
            restart(state.z[SEEN], self.buffer_size)

    def _weights(self, state: Any) -> tuple[Float, float]:
        return self._algorithm().weights(state)
