r"""Random Fourier features of a Gaussian or Laplacian kernel.

By Bochner's theorem :math:`\exp(-\|x - y\|^2 / 2) = E \cos(\theta \cdot (x - y))` with
:math:`\theta \sim N(0, I)`. So with D draws, and b uniform on [0, 2π],

.. math:: \sqrt{2/D} \cos(\theta \cdot x + b)
          \qquad\text{or}\qquad \sqrt{1/D}\,[\sin \theta \cdot x, \cos \theta \cdot x]

have products whose mean is the kernel. The second has two features per draw, and less
variance per feature for near points. (The dissertation has √(2/D) for it, which gives
twice the kernel.) With standard Cauchy draws instead of normal ones, the kernel is
:math:`\exp(-\|x - y\|_1)`.
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from aucmax.base.interfaces import COSINE, Units
from aucmax.base.ranker import generator
from aucmax.core.rows import Float
from aucmax.kernel.maps import Array, Job, KernelMap
from aucmax.storage.state import Spec


class RandomFourier(KernelMap):
    r"""Random Fourier features of a Gaussian or Laplacian kernel.

    .. math:: \kappa(x, y) = \exp(-\|x - y\|^2 / (2 \sigma^2))
              \quad\text{or}\quad \exp(-\|x - y\|_1 / \sigma)

    Parameters
    ----------
    n_components : int, default=400
        Number of draws: of features for "cos", of pairs of features for "sincos".
    kind : {"cos", "sincos"}, default="cos"
        One feature per draw, a cosine with a random phase; or two, sine and cosine.
    kernel : {"gaussian", "laplacian"}, default="gaussian"
        Kernel; the Laplacian one is less smooth. Its ``sigma="auto"`` is that of the
        Gaussian kernel times the root of the number of features that vary, as distances
        are sums over features.
    .. shared: kernel, linear
    random_state : int, RandomState instance or None, default=None
        Random seed of the directions and the phases.

    Attributes
    ----------
    directions_ : ndarray of shape (n_columns, n_components)
        Directions θ.
    phases_ : ndarray of shape (n_components,)
        Phases b; zero for "sincos".
    .. shared: scaling, features

    See Also
    --------
    KMeansNystroem : Features from landmarks in the data; nearly always better.
    Chain : A map and a learner in one estimator.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines",
       NIPS 2007.
    .. [2] M. Khalid, "Large-scale nonlinear AUC maximization", dissertation, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import RandomFourier
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> RandomFourier(50, kind="sincos", random_state=0).fit_transform(X).shape
    (500, 100)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMap._parameter_constraints,
        "kind": [StrOptions({"cos", "sincos"})],
        "kernel": [StrOptions({"gaussian", "laplacian"})],
    }
    stored: ClassVar[dict[str, Spec]] = {
        **KernelMap.stored,
        "directions_": Spec("km"),
        "phases_": Spec("m"),
    }

    def __init__(
        self,
        n_components: int = 400,
        *,
        sigma: float | str = "auto",
        width: float = 1.0,
        kind: str = "cos",
        kernel: str = "gaussian",
        scale: str = "auto",
        linear: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.sigma = sigma
        self.width = width
        self.kind = kind
        self.kernel = kernel
        self.scale = scale
        self.linear = linear
        self.random_state = random_state

    def _fit_scaling(self, X: Any, weight: Float | None = None) -> Any:
        rows = super()._fit_scaling(X, weight)
        if self.kernel == "laplacian" and isinstance(self.sigma, str):
            root = float(np.sqrt(max(len(self.columns_), 1)))
            self.sigma_ *= root
            _, _, self.unit_, self.low_, self.high_ = self.scaling.times(1.0 / root)
        return rows

    def _draw(self, X: Any) -> None:
        rng = generator(self.random_state)
        self.phases_ = np.zeros(self.n_components)
        if self.kind == "cos":
            self.phases_ = rng.uniform(0.0, 2.0 * np.pi, self.n_components)
        draw = rng.standard_normal if self.kernel == "gaussian" else rng.standard_cauchy
        self.directions_ = draw((X.shape[1], self.n_components))

    def _width(self) -> int:
        draws = self.directions_.shape[1]
        return draws if self.kind == "cos" else 2 * draws

    def _mapper(self, dtype: Any) -> Job:
        phases = self.phases_.astype(dtype, copy=False)
        size = phases.dtype.type(1.0 / np.sqrt(len(phases)))
        if self.kind == "sincos":

            def job(Z: Array) -> Array:
                angles = (Z @ self.directions_).astype(dtype, copy=False)
                return np.hstack([np.sin(angles), np.cos(angles)]) * size
        else:

            def job(Z: Array) -> Array:
                angles = (Z @ self.directions_).astype(dtype, copy=False)
                angles += phases
                np.cos(angles, out=angles)
                angles *= np.sqrt(2.0, dtype=dtype) * size
                return angles

        return job

    def _units(self, w: Float) -> Units:
        draws = len(self.phases_)
        directions, phases, size = self.directions_, self.phases_, np.sqrt(2.0 / draws)
        if self.kind == "sincos":  # a sine is a shifted cosine
            directions = np.hstack([directions, directions])
            phases = np.repeat([-0.5 * np.pi, 0.0], draws)
            size = np.sqrt(1.0 / draws)
        return Units(COSINE, directions, phases, size * w)
