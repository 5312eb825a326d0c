r"""SAM, ASAM and PSAM: stochastic AUC maximisation by random pairs.

Khalid, Ray and Chitsaz (dissertation of Khalid 2019, Algorithms 10 and 11) minimise the
pairwise hinge loss, J of :class:`PSAM`, by one random pair a step, z = x⁺ - x⁻: w += η
z if w·z < 1. Every ``rskip`` steps the penalty of all of them is applied at once. Every
``askip`` steps w enters a running mean, which ASAM and PSAM return; SAM returns w
itself. PSAM replaces the subgradient by the proximal map of the loss,

.. math:: \arg\min_v \; \eta \max(0, 1 - v \cdot z) + \tfrac12 \|v - w\|^2
          = w + \min\bigl(\eta, \max(0, 1 - w \cdot z) / \|z\|^2\bigr)\, z ,

which goes along z no further than to the margin of one, so that no step size is too
large. Norms are those of the metric of the steps, z·Dz and w·D⁻¹w.

Deviations from the dissertation, none of which moves the minimum:

* steps are scaled feature by feature (:mod:`aucmax.online.engine`), so raw features do
  as well as standardised ones; the penalty is still that of the raw weights;
* the penalty is applied by its proximal map, 1/(1 + l2 Σ η D), where the dissertation
  multiplies by 1 - rskip/(t + t₀): the same to first order, but never negative. On wide
  data it is applied less often, so that it costs O(1) a step. With ``l1``, the proximal
  map is a soft threshold first (equation 7.1 allows any convex penalty, Algorithm 11
  has the l2 one);
* each class is shuffled again and again (:mod:`aucmax.online.pair_order`);
* η_t = 1/(l2 (t + t₀)) is written 1/(1/η₀ + l2 D_min t), with η₀ in units of one over
  the mean of ‖z‖²: the same, if D = 1 and t₀ = 1/(l2 η₀);
* ``partial_fit`` pairs each row of a stream with two random rows of the other class
  from a reservoir (:mod:`aucmax.online.engine.reservoir`).
"""

from typing import Any, ClassVar

from aucmax.online.pair_sampler import PairSampler

_PARAMETERS = r"""
Parameters
----------
l2 : float or "auto", default="auto"
    Ridge penalty, the papers' :math:`\lambda`. "auto" sets it for each feature to 1e-3
    times its mean square where it is not zero, which does not depend on units.
l1 : float, default=0.0
    Lasso penalty on the weights of the features as given; with ``l2`` an elastic net.
    A mean of iterates has hardly any exact zeros; the ``l1`` of :class:`BAM` and
    :class:`SPAM` gives them.
eta0 : float, default=ETA0
    First step size, in units of one over the mean of :math:`\|x^+ - x^-\|^2`; steps
    fall with the number of pairs, faster for larger ``l2``.
schedule : {"inv", "printed"}, default="inv"
    "printed" takes ``eta0`` as a plain number and subtracts the penalty, as in the
    dissertation.
rskip : int, default=16
    Steps between two applications of the penalty; more on wide data.
ASKIPprecondition : bool, default=True
    Scale features internally; this does not move the minimum.
max_iter : int, default=5
    Number of passes in ``fit``: pairs per row.
random_state : int, RandomState instance or None, default=None
    Random seed of the pairs.
"""
_ASKIP = """askip : int, default=16
    Steps between two iterates that enter the mean.
"""


class SAM(PairSampler):
    r"""Stochastic AUC maximisation with the pairwise hinge loss.

    :class:`PSAM` with plain steps and without the mean: a pair within the margin of one
    moves the weights along its difference by the whole step size, and the last iterate
    is returned. It needs a smaller first step than a mean.

    See Also
    --------
    PSAM : Proximal steps and the mean of the iterates; recommended.

    Notes
    -----
    As published: ``SAM(l2, eta0=1 / (l2 * t0), schedule="printed",
    precondition=False)`` and ``fit``: Algorithm 10 of [1]_ without averaging.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 10.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(SAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _sections = (
        _PARAMETERS.replace("ETA0", "0.1").replace("ASKIP", "") + PairSampler._sections
    )

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        l1: float = 0.0,
        eta0: float = 0.1,
        schedule: str = "inv",
        rskip: int = 16,
        precondition: bool = True,
        max_iter: int = 5,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.eta0 = eta0
        self.schedule = schedule
        self.rskip = rskip
        self.precondition = precondition
        self.max_iter = max_iter
        self.random_state = random_state


class ASAM(SAM):
    r"""Accelerated stochastic AUC maximisation with the pairwise hinge loss.

    :class:`PSAM` with plain steps: a pair within the margin of one moves the weights
    along its difference by the whole step size. Returns the mean of the iterates.

    See Also
    --------
    PSAM : The same with proximal steps, at the same cost.

    Notes
    -----
    As published: ``ASAM(l2, eta0=1 / (l2 * t0), schedule="printed",
    precondition=False)`` and ``fit``: Algorithm 10 of [1]_.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 10.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import ASAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(ASAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _sections = (
        _PARAMETERS.replace("ETA0", "1.0").replace("ASKIP", _ASKIP)
        + PairSampler._sections
    )

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        l1: float = 0.0,
        eta0: float = 1.0,
        schedule: str = "inv",
        rskip: int = 16,
        askip: int = 16,
        precondition: bool = True,
        max_iter: int = 5,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            l2,
            l1=l1,
            eta0=eta0,
            schedule=schedule,
            rskip=rskip,
            precondition=precondition,
            max_iter=max_iter,
            random_state=random_state,
        )
        self.askip = askip


class PSAM(ASAM):
    r"""Proximal stochastic AUC maximisation with the pairwise hinge loss.

    Minimises, one random pair of rows a step,

    .. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-))
              + \tfrac{l_2}{2} \|w\|^2 + l_1 \|w\|_1 .

    A pair within the margin of one moves the weights along its difference, but no
    further than to that margin. Returns the mean of the iterates.

    See Also
    --------
    ASAM : The same with plain steps.
    SAM : Plain steps, without the mean.
    SPAM : The pairwise square loss, one row a step.

    Notes
    -----
    A pair costs the non-zeros of its two rows. Memory is eleven numbers per feature,
    and for ``partial_fit`` up to 256 rows of each class (at most 2¹⁹ values, or one
    row). ``fit`` makes one more pass for exact class moments.

    As published: ``PSAM(l2, eta0=1 / (l2 * t0), schedule="printed",
    precondition=False)`` and ``fit``. For the order of pairs see
    :mod:`aucmax.online.pair_order`.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 11.
    .. [2] A. Bordes, L. Bottou, P. Gallinari, "SGD-QN: Careful Quasi-Newton Stochastic
       Gradient Descent", JMLR 10, 2009 (the penalty every so many steps).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import PSAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(PSAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _proximal: ClassVar[bool] = True
