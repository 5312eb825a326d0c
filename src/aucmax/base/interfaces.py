r"""Interfaces: encoders of tables, score expressions, learners of streams.

**Score expressions** are the score of a model as one expression, for
``aucmax info``.

.. math:: s(x) = b + w \cdot z + \sum_k a_k\, g(\theta_k \cdot z + \varphi_k)

A linear model has z = x and no sum. A kernel model uses some columns of x,
:math:`z = (x - \text{centre}) \cdot \text{unit}`, clipped to low and high. With g the
cosine, the sum has Fourier features; with :math:`g(t) = \exp(t - \tfrac12 \|z\|^2)` and
:math:`\varphi_k = -\tfrac12 \|\theta_k\|^2`, Gaussian kernels about the landmarks θ.

**Learners of streams** see one chunk of rows after the other. Training from files,
checkpoints and :class:`aucmax.AUCStream` use nothing else of a learner, except
``state()`` and ``from_state()`` to save it (:class:`aucmax.storage.state.Storable`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context

from aucmax.core.rows import Float


class Encoder(Protocol):
    """Encoder of data frames; see ``aucmax.tables.encoder``."""

    schema: Any

    def transform(self, frame: Any, warn_unknown: bool = True) -> Any:
        """Return the feature rows of a data frame."""
        ...

    @property
    def column_of_feature(self) -> list[str]:
        """Name of the column of each feature."""
        ...

    @property
    def category_of_feature(self) -> Any:
        """Number of the category of each one-hot feature; -1 for other features."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the encoder as values that JSON can hold."""
        ...


GAUSSIAN, COSINE = "gaussian", "cosine"


class Units(NamedTuple):
    """The sum over k: Fourier features or kernels."""

    kind: str
    directions: Float  # (d, m) θ
    phases: Float  # (m,) φ
    amplitudes: Float  # (m,) a

    @classmethod
    def gaussian(cls, landmarks: Float, amplitudes: Float) -> "Units":
        """Return Gaussian kernels at the landmarks, which are columns."""
        phases = -0.5 * np.einsum("ij,ij->j", landmarks, landmarks)
        return cls(GAUSSIAN, landmarks, phases, amplitudes)


class ScoreExpression(NamedTuple):
    """Intercept b, weights w; for a kernel model, also its scaling and its sum."""

    intercept: float
    weights: Float
    scaling: Any = None  # arrays: columns, centre, unit, low, high
    units: Units | None = None

    def indices(self) -> Any:
        """Return the feature of x that each weight belongs to."""
        every = np.arange(len(self.weights))
        return every if self.scaling is None else self.scaling.columns

    def slopes(self) -> tuple[Any, Float]:
        """Return features of x and the slope of the linear part along each."""
        if self.scaling is None:
            return self.indices(), self.weights
        return self.indices(), self.weights * self.scaling.unit


class StreamLearner(Protocol):
    """A ranker with ``partial_fit``."""

    n_features_in_: int

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Any:
        """Learn rows, once each; the result does not depend on chunks."""
        ...

    def resize(self, n_features: int) -> None:
        """Change the number of features.

        New features count as always zero so far. Features that are removed must not
        have occurred.
        """
        ...

    def scorer(self) -> Callable[[Any], Float] | None:
        """Return a function that ranks rows by the current weights, or None."""
        ...

    def fade(self, share: float) -> None:
        """Let all rows so far count ``share`` of what they did.

        Raise a NotImplementedError if the learner cannot.
        """
        ...

    def finish(self) -> Any:
        """End a stream, for example by a last refit; training can continue."""
        ...

    @property
    def progressive_auc(self) -> tuple[float, float] | None:
        """Pairs ranked correctly before they were learnt, and all; None if unknown."""
        ...

    @property
    def resumable(self) -> bool:
        """Whether ``partial_fit`` would continue from what has been learnt."""
        ...

    @property
    def grows_quadratically(self) -> bool:
        """Whether the state takes memory proportional to the features squared."""
        ...


class PartialFit:
    """Mixin of rankers that learn from streams."""

    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the next rows of a stream, once each, in the order given.

        The division of a stream into chunks does not change the result.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Next rows of the stream.
        y : array-like of shape (n_samples,)
            Their labels; a chunk may have one class only.
        classes : array-like of shape (2,), default=None
            The two labels; required in the first call if ``y`` has only one of them.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights; rows of weight zero are ignored.

        Returns
        -------
        self
            The estimator.
        """
        self._learn_rows(X, y, classes, sample_weight)
        return self

    def _learn_rows(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Validate the arguments of ``partial_fit`` and learn the rows."""
        raise NotImplementedError
