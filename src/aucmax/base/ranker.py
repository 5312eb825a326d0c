"""Base classes of all estimators: validation, scores, states.

Internally, labels and row weights are one array of signed weights: positive for
``classes_[1]``, negative for ``classes_[0]``. Rows of weight zero are ignored.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from aucmax.base.class_moments import NEG, POS, ClassMoments, measure
from aucmax.base.constraints import SHARED
from aucmax.base.docstrings import complete_docstring
from aucmax.base.interfaces import Encoder, ScoreExpression
from aucmax.core.rows import Float, Rows, as_rows
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import (
    MATRIX,
    check_structure,
    check_values,
    refuse_mask,
    row_weights,
)
from aucmax.metrics._ranking import area, classes
from aucmax.storage.state import (
    State,
    StoredEstimator,
    arrays,
    check_like,
    decode_labels,
    encode_labels,
    save_model,
    with_arrays,
)

GRADIENT = "the gradient, relative to that at zero,"  # in messages
_BLOCK_VALUES = 1 << 20  # converted to float64 at a time
_ONE_CLASS = "No row of class {} has a weight above zero; both classes are needed."


def _no_probabilities(estimator: Any) -> bool:
    name = type(estimator).__name__
    raise AttributeError(
        f"{name} produces ranking scores, not probabilities: wrap it in "
        f"sklearn.calibration.CalibratedClassifierCV({name}()), or use AUCClassifier "
        "or AUCStream."
    )


class Ranker(StoredEstimator, ClassifierMixin, BaseEstimator):
    """Base class of all estimators. A higher score ranks nearer ``classes_[1]``."""

    classes_: NDArray[Any]
    n_features_in_: int
    encoder_: Encoder | None = None  # of a model that was fitted on a table
    recipe_: dict[str, Any] | None = None  # how a model file says to read such tables

    _parameter_constraints: ClassVar[dict[str, Any]] = SHARED
    _sections: ClassVar[str] = ""  # of the docstring, shared by several classes

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_docstring(cls, cls._sections)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the ranker to ``X`` and binary ``y``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; float32 and CSR are used without a copy.
        y : array-like of shape (n_samples,)
            Labels of two classes; the larger one, ``classes_[1]``, is ranked on top.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights; a pair has the product of its two weights. Rows of weight zero
            are ignored.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._fit_rows(X, y, sample_weight)
        return self

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Validate the arguments of ``fit`` and fit the ranker."""
        raise NotImplementedError

    def decision_function(self, X: ArrayLike) -> Float:
        """Return the score of each row; higher scores rank nearer ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to score.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores. A positive score is nearer to the mean score of ``classes_[1]``.
        """
        check_is_fitted(self)
        if self.encoder_ is not None and hasattr(X, "columns"):
            X = self.encoder_.transform(X)
        check_structure(X)
        rows = validate_data(self, X, reset=False, **MATRIX)
        return self.score_rows(self._accepted(rows))

    @property
    def row_width(self) -> int:
        """Number of features of a row that a reader of files makes."""
        return self.n_features_in_

    def _accepted(self, X: Any) -> Any:
        """Return rows ready for scoring; raise an error if one is not finite."""
        check_values(X, getattr(self, "feature_names_in_", None))
        return X

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        raise NotImplementedError

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class whose mean training score is nearer.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of ``classes_``. To choose a threshold by cost or by a rate, see
            scikit-learn's ``TunedThresholdClassifierCV``.
        """
        above = (self.decision_function(X) > 0).astype(np.intp)
        labels: NDArray[Any] = self.classes_[above]
        return labels

    @available_if(_no_probabilities)
    def predict_proba(self, X: ArrayLike) -> Float:
        """Not available: rankers do not estimate probabilities."""
        raise NotImplementedError

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the area under the ROC curve (AUC).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to score.
        y : array-like of shape (n_samples,)
            Their labels; both classes must occur.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            The AUC; ties count half.
        """
        refuse_mask(y, "y")
        positive = self._positive(np.asarray(y))
        return area(classes(positive, self.decision_function(X), sample_weight))

    def save(self, path: str | Path) -> None:
        """Write the model to ``path``; see :func:`aucmax.load`.

        The file has the whole state, so that a loaded model continues training as if it
        had never been saved. The file is written completely or not at all.
        """
        recipe = {} if self.recipe_ is None else {"recipe": self.recipe_}
        save_model(self, path, **recipe)

    def state(self) -> State:
        """Return the state of the fitted estimator; see :mod:`aucmax.storage`."""
        state = super().state()
        state.header["classes"] = encode_labels(self.classes_)
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        estimator.classes_ = decode_labels(state.header["classes"])
        return estimator

    @property
    def resumable(self) -> bool:
        """Whether ``partial_fit`` would continue from what has been learnt."""
        return "state_" in vars(self)

    def finish(self) -> Self:
        """End a stream; most learners have nothing to do."""
        return self

    def expression(self) -> ScoreExpression | None:
        """Return the score as one expression, or None if it has none."""
        return None

    def _check(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any = None
    ) -> tuple[Any, Rows, Float]:
        """Return X, its rows, and signed weights; X is not checked to be finite."""
        X, signed = self._labelled(X, y, sample_weight, reset=reset, classes=classes)
        return X, as_rows(X), signed

    def _labelled(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any = None
    ) -> tuple[Any, Float]:
        """Return X and signed weights; X is not checked to be finite."""
        check_structure(X)
        refuse_mask(y, "y")
        X, y = validate_data(self, X, y, reset=reset, **MATRIX)
        return X, self._signed(y, sample_weight, reset, classes)

    def _signed(
        self, y: NDArray[Any], sample_weight: Any, reset: bool, classes: Any
    ) -> Float:
        """Return the signed weights of validated labels."""
        weight = None if sample_weight is None else row_weights(sample_weight, len(y))
        if reset:
            self.classes_ = two_classes(y, classes)
        known = reset and classes is None  # all labels are known to be one of the two
        positive = y == self.classes_[1] if known else self._positive(y)
        signed = positive.astype(np.float64)
        signed *= 2.0
        signed -= 1.0
        if weight is not None:
            signed *= weight
        return signed

    def _positive(self, y: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which labels are positive; raise an error for an unknown label."""
        positive, negative = y == self.classes_[1], y == self.classes_[0]
        if np.count_nonzero(positive) + np.count_nonzero(negative) < len(y):
            row = int(np.argmin(positive | negative))
            raise ValueError(
                f"y contains previously unseen labels: {y[row]!r} at row {row}; "
                f"the classes are {self.classes_.tolist()}."
            )
        return positive

    def _refuse(self, X: Any, signed: Float) -> None:
        """Raise an error if a row with weight has a value that is not finite."""
        check_values(X, getattr(self, "feature_names_in_", None), signed != 0.0)

    def _warn_above(
        self, tol: float, left: float, what: str, remedy: str = "Raise max_iter or tol."
    ) -> None:
        """Warn if a solver stopped with ``left`` above ``tol``."""
        if left > tol:
            rounds = getattr(self, "max_iter", None)
            when = "" if rounds is None else f" within max_iter={rounds}"
            warn_user(
                f"{type(self).__name__} has not converged{when}: {what} is {left:.2g}, "
                f"above tol={tol:.2g}. {remedy}",
                ConvergenceWarning,
            )

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any = None
    ) -> tuple[Any, Float]:
        """Return the rows with weight, and their signed weights."""
        X, signed = self._labelled(X, y, sample_weight, reset=reset, classes=classes)
        self._refuse(X, signed)
        present = signed != 0.0
        return (X, signed) if present.all() else (X[present], signed[present])

    def _require_both(self, signed: Float) -> None:
        """Raise an error if a class has no row with weight."""
        for here, label in ((signed < 0.0, 0), (signed > 0.0, 1)):
            if not here.any():
                raise ValueError(_ONE_CLASS.format(self.classes_[label]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


class LinearRanker(Ranker):
    """Base class of linear rankers: the score is w·x + intercept."""

    coef_: Float
    intercept_: Float
    state_: Any
    is_hinge: ClassVar[bool] = False  # a loss without curvature

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        return product(X, self.coef_[0]) + self.intercept_[0]

    def _set_linear(self, w: Float, mean: Float) -> None:
        """Set the weights; score zero is midway between the mean class scores."""
        self.coef_ = w[np.newaxis]
        self.intercept_ = np.array([-0.5 * float((mean @ w).sum())])

    def _validate_state(self, state: Any) -> None:
        """Raise a ValueError if a kernel would read out of bounds by a stored state."""

    def _stream(
        self, X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> tuple[Rows, Float]:
        """Return the validated rows of a ``partial_fit``, and their signed weights."""
        first = not self.resumable
        if first and "coef_" in vars(self):
            raise ValueError(
                "There are weights, but no state to continue from. Start again with "
                "clone(estimator)."
            )
        X, rows, signed = self._check(X, y, sample_weight, reset=first, classes=classes)
        self._refuse(X, signed)
        if not first and classes is not None:
            same_classes(self.classes_, classes)
        return rows, signed

    def _rows_and_moments(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Rows, Float, ClassMoments]:
        """Return the validated rows of a ``fit``, signed weights, class moments."""
        X, rows, signed = self._check(X, y, sample_weight, reset=True)
        return rows, signed, self._class_moments(X, rows, signed)

    def _class_moments(self, X: Any, rows: Rows, signed: Float) -> ClassMoments:
        moments = measure(rows, signed, self.n_features_in_)
        self._validate_sums(X, signed, moments.rows, moments.mean, moments.variance)
        return moments

    def _validate_sums(self, X: Any, signed: Float, rows: Float, *sums: Float) -> None:
        """Raise an error if a class has no rows or sums over X are not finite."""
        for side, label in ((NEG, self.classes_[0]), (POS, self.classes_[1])):
            if rows[side] == 0.0:
                self._refuse(X, signed)
                raise ValueError(_ONE_CLASS.format(label))
        # Row by row: isfinite of the transposed sums is slow.
        if not all(np.isfinite(slot).all() for some in sums for slot in some):
            self._refuse(X, signed)
            raise ValueError("Sums over X exceed the range of float64: rescale X.")

    def state(self) -> State:
        """Return the state of the fitted estimator; see :mod:`aucmax.storage`."""
        state = super().state()
        state.arrays.update(coef=self.coef_, intercept=self.intercept_)
        if self.resumable:
            for name, part in arrays(self.state_).items():
                state.arrays[f"state.{name}"] = np.asarray(part, np.float64)
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        width, found = estimator.n_features_in_, state.arrays
        estimator.coef_ = check_like(found, "coef", (1, width))
        estimator.intercept_ = check_like(found, "intercept", (1,))
        if any(key.startswith("state.") for key in found):
            if "n_iter_" not in state.header["attributes"]:
                raise ValueError("it has a learner's state, but no 'n_iter_'.")
            fresh = estimator._start(width)
            parts = {
                name: check_like(found, f"state.{name}", part.shape)
                for name, part in arrays(fresh).items()
            }
            estimator.state_ = with_arrays(fresh, parts)
            estimator._validate_state(estimator.state_)
        return estimator

    def expression(self) -> ScoreExpression | None:
        """Return the score as a linear expression."""
        return ScoreExpression(float(self.intercept_[0]), self.coef_[0])

    # The interface of stream learners, see aucmax.base.interfaces. A batch learner
    # has no ``partial_fit``, and these are not called.

    @property
    def progressive_auc(self) -> tuple[float, float] | None:
        """None: the learner does not compute a progressive AUC."""
        return None

    @property
    def grows_quadratically(self) -> bool:
        """Whether the state takes memory proportional to the features squared."""
        one, two, three = (
            sum(part.size for part in arrays(self._start(width)).values())
            for width in (8, 16, 24)
        )
        return three - two > two - one

    def scorer(self) -> Callable[[Any], Float] | None:
        """Return a function that ranks rows by the current weights."""
        w = self.coef_[0]
        parts = arrays(self.state_).values()
        if any(np.may_share_memory(w, part) for part in parts):
            w = w.copy()
        return lambda X: product(X, w)

    def fade(self, share: float) -> None:
        """Multiply the weight of all past rows by ``share``."""
        raise NotImplementedError(f"{type(self).__name__} cannot forget rows.")

    def resize(self, n_features: int) -> None:
        """Change the number of features; see :class:`StreamLearner`."""
        fresh = arrays(self._start(n_features))
        parts = {}
        for name, old in arrays(self.state_).items():
            new = np.asarray(fresh[name])
            # A length of zero grows with the data.
            both = zip(new.shape, old.shape, strict=True)
            shape = tuple(wanted or known for wanted, known in both)
            if shape == old.shape:
                continue
            common = tuple(map(slice, map(min, shape, old.shape)))
            if old[common].shape == shape:  # it shrinks
                # A contiguous copy: a slice would be another type to Numba.
                parts[name] = old[common].copy(order="K")
                continue
            parts[name] = new if new.shape == shape else np.zeros(shape)
            parts[name][common] = old[common]
        self.state_ = with_arrays(self.state_, parts)
        self.n_features_in_ = n_features
        coef = np.zeros((1, n_features))
        kept = min(n_features, self.coef_.shape[1])
        coef[:, :kept] = self.coef_[:, :kept]
        self.coef_ = coef

    def _start(self, n_features: int) -> Any:
        """Return the state before the first row."""
        raise NotImplementedError


def product(X: Any, w: Float) -> Float:
    """Return X w for a vector or matrix w; float32 is converted block by block."""
    if X.dtype == np.float64:
        return np.asarray(X @ w)
    size = max(_BLOCK_VALUES // max(X.shape[1], 1), 1)
    parts = [X[start : start + size] @ w for start in range(0, X.shape[0], size)]
    return np.concatenate(parts) if parts else X @ w


def generator(random_state: Any) -> np.random.RandomState:
    """Return the random generator of a ``fit``, never the global one."""
    if random_state is None:
        return np.random.RandomState()
    return check_random_state(random_state)


def two_classes(y: NDArray[Any], classes: Any) -> NDArray[Any]:
    """Return the two labels of y, or ``classes``; raise an error if not two."""
    labels = y if classes is None else np.asarray(classes)
    found = distinct(labels)
    if len(found) == 2 and (labels.dtype.kind in "biuUS" or _are_labels(found)):
        return found
    check_classification_targets(y)
    if len(found) < 2:
        raise ValueError(
            f"Two classes are needed, but there is only one class: {found.tolist()}. "
            "If the first chunk of a stream has one class, pass classes=[negative, "
            "positive]."
        )
    kind = type_of_target(y, input_name="y")
    raise ValueError(
        "Only binary classification is supported. The type of the target is "
        f"{kind} with {len(found)} classes. For more than two classes, wrap the "
        "estimator in OneVsRestClassifier."
    )


def distinct(labels: NDArray[Any]) -> NDArray[Any]:
    """Return ``np.unique(labels)``, without sorting if there are two labels."""
    is_one = labels == labels[0]
    other = labels[np.argmin(is_one)]
    if np.count_nonzero(is_one) + np.count_nonzero(labels == other) >= len(labels):
        labels = np.array([labels[0], other], dtype=labels.dtype)
    return np.unique(labels)


def _are_labels(found: NDArray[Any]) -> bool:
    return type_of_target(found, input_name="y") in ("binary", "multiclass")


def same_classes(known: NDArray[Any], classes: Any) -> None:
    """Raise an error if ``classes`` differ from those of the first call."""
    given = np.unique(np.asarray(classes))
    if not np.array_equal(given, known):
        raise ValueError(
            f"classes={given.tolist()} differ from those of the first call, "
            f"{known.tolist()}."
        )
