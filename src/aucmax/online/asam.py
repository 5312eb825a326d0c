r"""SAM and ASAM: accelerated stochastic AUC maximisation.

Khalid, Ray and Chitsaz (dissertation of Khalid 2019, Algorithm 10) minimise the
pairwise hinge loss

.. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2

by one random pair a step, z = x⁺ - x⁻: w += η z if w·z < 1. Every ``rskip`` steps the
penalty of all of them falls due at once, and every ``askip`` steps w enters a running
mean, which ASAM returns; SAM returns w itself. PSAM (:mod:`aucmax.online.psam`) has
its steps from the proximal map of the loss, which is the one line in which it differs:
the kernels of :mod:`aucmax.online.pair_sampler` serve all three.

Deviations from the dissertation, none of which moves the minimum:

* steps are scaled feature by feature (:mod:`aucmax.online.engine`), so that raw
  features do as well as standardised ones; the penalty acts on the raw weights all the
  same, so it shrinks them feature by feature;
* it does so by its proximal map, 1/(1 + l2 Σ η D), where the dissertation multiplies by
  1 - rskip/(t + t₀): the same to first order, but never below zero. On wide data the
  stretch is longer than ``rskip``, so that it costs O(1) a step;
* each class is shuffled again and again (:mod:`aucmax.online.pair_order`);
* η_t = 1/(l2 (t + t₀)) is written 1/(1/η₀ + l2 D_min t), with η₀ in units of one over
  the mean of ‖z‖²: the same, if D = 1 and t₀ = 1/(l2 η₀);
* ``partial_fit`` pairs each row of a stream with two random ones of the other class out
  of a reservoir (:mod:`aucmax.online.engine.reservoir`).

The Notes of the classes have the settings that switch back.
"""

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from aucmax.online.pair_sampler import PairSampler


class SAM(PairSampler):
    r"""Stochastic AUC maximisation with the pairwise hinge loss.

    Minimises, one random pair of rows a step,

    .. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2 .

    A pair that is not ranked right by a margin of one moves the weights along its
    difference. The last weights are returned.

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given; the papers' :math:`\lambda`.
        With "auto" each feature has its own, which depends on no unit: 1e-3 times its
        mean square where it is not zero.
    eta0 : float, default=0.1
        First step size, in units of one over the mean of :math:`\|x^+ - x^-\|^2`;
        steps fall with the number of pairs, the faster the larger ``l2`` is, and with
        ``l2=0`` not at all.
    schedule : {"inv", "printed"}, default="inv"
        Steps fall with their number, and the penalty is applied by its proximal map; or
        with ``eta0`` a plain number and the penalty subtracted, as in the dissertation.
    rskip : int, default=16
        Steps between two applications of the penalty; more on wide data.
    precondition : bool, default=True
        Whether features are scaled inside, by class moments. The objective is the same
        without, the number of pairs to its minimum is not.
    max_iter : int, default=5
        Passes in ``fit``: so many times as many pairs as there are rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the pairs.

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
    ASAM : The mean of the weights in place of the last ones: more accurate.
    PSAM : ASAM with proximal steps: use this.
    SPAM : The pairwise square loss, one row a step.

    Notes
    -----
    A pair costs the non-zeros of its two rows; memory is eleven numbers a feature, and
    for ``partial_fit`` up to 256 rows of each class, as long as they have no more than
    2¹⁷ values, or one row. ``fit`` reads the data once more, for exact class moments.
    Without the mean, a first step as large as that of ASAM would cost accuracy.

    As printed: ``SAM(l2, eta0=1 / (l2 * t0), schedule="printed", precondition=False)``
    and ``fit``. The order of pairs: see :mod:`aucmax.online.pair_order`.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 10.
    .. [2] A. Bordes, L. Bottou, P. Gallinari, "SGD-QN: Careful Quasi-Newton Stochastic
       Gradient Descent", JMLR 10, 2009: the penalty every so many steps.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import SAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(SAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        eta0: float = 0.1,
        schedule: str = "inv",
        rskip: int = 16,
        precondition: bool = True,
        max_iter: int = 5,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.rskip = rskip
        self.precondition = precondition
        self.max_iter = max_iter
        self.random_state = random_state


class ASAM(PairSampler):
    r"""Accelerated stochastic AUC maximisation with the pairwise hinge loss.

    Minimises, one random pair of rows a step,

    .. math:: J(w) = E \max(0, 1 - w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \|w\|^2 .

    A pair that is not ranked right by a margin of one moves the weights along its
    difference. The mean of the weights is returned.

    Parameters
    ----------
    l2 : float or "auto", default="auto"
        Ridge penalty, of the weights of features as given; the papers' :math:`\lambda`.
        With "auto" each feature has its own, which depends on no unit: 1e-3 times its
        mean square where it is not zero.
    eta0 : float, default=1.0
        First step size, in units of one over the mean of :math:`\|x^+ - x^-\|^2`;
        steps fall with the number of pairs, the faster the larger ``l2`` is, and with
        ``l2=0`` not at all.
    schedule : {"inv", "printed"}, default="inv"
        Steps fall with their number, and the penalty is applied by its proximal map; or
        with ``eta0`` a plain number and the penalty subtracted, as in the dissertation.
    rskip : int, default=16
        Steps between two applications of the penalty; more on wide data.
    askip : int, default=16
        Steps between two weights that enter the mean.
    precondition : bool, default=True
        Whether features are scaled inside, by class moments. The objective is the same
        without, the number of pairs to its minimum is not.
    max_iter : int, default=5
        Passes in ``fit``: so many times as many pairs as there are rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the pairs.

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
    PSAM : The same with proximal steps, at the same price.
    SAM : The same without the mean.
    SPAM : The pairwise square loss, one row a step.

    Notes
    -----
    A pair costs the non-zeros of its two rows; memory is eleven numbers a feature, and
    for ``partial_fit`` up to 256 rows of each class, as long as they have no more than
    2¹⁷ values, or one row. ``fit`` reads the data once more, for exact class moments.

    As printed: ``ASAM(l2, eta0=1 / (l2 * t0), schedule="printed", precondition=False)``
    and ``fit``. The order of pairs: see :mod:`aucmax.online.pair_order`.

    References
    ----------
    .. [1] M. Khalid Alnnfai, "Scalable Large Margin Pairwise Learning Algorithms",
       dissertation, Colorado State University, 2019, Algorithm 10.
    .. [2] A. Bordes, L. Bottou, P. Gallinari, "SGD-QN: Careful Quasi-Newton Stochastic
       Gradient Descent", JMLR 10, 2009: the penalty every so many steps.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import ASAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(ASAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairSampler._parameter_constraints,
        "askip": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        l2: float | str = "auto",
        *,
        eta0: float = 1.0,
        schedule: str = "inv",
        rskip: int = 16,
        askip: int = 16,
        precondition: bool = True,
        max_iter: int = 5,
        random_state: Any = None,
    ) -> None:
        self.l2 = l2
        self.eta0 = eta0
        self.schedule = schedule
        self.rskip = rskip
        self.askip = askip
        self.precondition = precondition
        self.max_iter = max_iter
        self.random_state = random_state
