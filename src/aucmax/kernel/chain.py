"""Feature map and learner in one estimator.

``fit`` maps all rows once if their features fit in memory, or if the learner needs them
at once. Otherwise it makes passes of ``partial_fit`` and maps the rows block by block.

In a stream the map is fitted before anything is learnt. So the first rows are held
until there are enough, then they are learnt, and the map does not change any more.
Scores before that are those of the model if the stream ended there.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import available_if

from aucmax.base.constraints import COUNT, NON_NEGATIVE
from aucmax.base.interfaces import PartialFit, ScoreExpression
from aucmax.base.penalty import kernel_ridge
from aucmax.base.ranker import LinearRanker, Ranker, generator, same_classes
from aucmax.core.rows import Float
from aucmax.core.validation import check_values, row_weights
from aucmax.kernel.maps import FeatureMap
from aucmax.online.base import OnlineAUC, visits
from aucmax.storage.state import (
    Spec,
    State,
    below,
    check_arrays,
    restore,
    whole_numbers,
)

_STREAM_RIDGE = 1e-5  # for features of one unit, in a stream of unknown length
_MOST_BYTES = 1 << 33  # of features, for a learner that needs all rows at once
_PASSES = 5  # at most over rows that are mapped again in each pass
_PART = 4096  # rows mapped at a time
_FEW = 1000  # rows that a map is fitted to, at least …
_ROWS_A_FEATURE = 4  # … and per component of the map


class Held(NamedTuple):
    """First rows of a stream, and their weights signed by class."""

    X: Any
    signed: Float


class Chain(PartialFit, Ranker):
    r"""Feature map and linear learner as one ranker.

    It accepts what a linear learner accepts: raw features, dense or sparse, and streams
    if its learner does. It is saved in one model file.

    Parameters
    ----------
    map : transformer
        Such as :class:`KMeansNystroem` or :class:`RandomFourier`. Any transformer with
        ``fit`` and ``transform`` works, but only maps of this library can be saved.
    learner : estimator
        A linear ranker of this library. If its ``l2`` is "auto", the features of a
        kernel share one penalty, :math:`0.3\,(1/n_+ + 1/n_-) \min(1, 1000/n)` (the last
        factor to the power of 1.25 for samplers of pairs), or 1e-5 in a stream.
    first_rows : int or "auto", default="auto"
        Number of rows of a stream that the map is fitted to. "auto" is 1000, or four
        per component of the map if that is more.
    memory : float, default=1e9
        Bytes of features that ``fit`` may store. If there are more, a learner with
        ``partial_fit`` gets them in parts, in at most five passes, and rows are mapped
        again in each.

    Attributes
    ----------
    map_ : transformer
        The fitted map.
    learner_ : estimator
        The fitted learner.
    .. shared: classes, features
    n_iter_ : int
        That of the learner.

    See Also
    --------
    KernelAUCCV : Chooses the kernel width and the penalty.
    aucmax.named : The chains of the papers, such as "NPSAM".

    Notes
    -----
    Kernel features are float32. A learner that needs all rows at once takes four bytes
    per feature and row, whatever ``memory`` is.

    In a stream, the scales of the features are those of the first rows: a feature that
    was constant there is ignored later.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import BAM, Chain, KMeansNystroem
    >>> X, y = make_moons(1000, noise=0.3, random_state=0)
    >>> round(BAM().fit(X, y).score(X, y), 2)
    0.93
    >>> model = Chain(KMeansNystroem(50, random_state=0), BAM()).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Ranker._parameter_constraints,
        "map": [HasMethods(["fit", "transform"])],
        "learner": [LinearRanker],
        "memory": [NON_NEGATIVE],
        "first_rows": [
            COUNT,
            StrOptions({"auto"}),
        ],
    }

    map_: Any
    learner_: Any
    held_: Held  # only until a stream has had enough rows
    _now: tuple[Any, Any] | None = None  # map and learner of the held rows

    def __init__(
        self,
        map: Any,
        learner: Any,
        *,
        first_rows: int | str = "auto",
        memory: float = 1e9,
    ) -> None:
        self.map = map
        self.learner = learner
        self.first_rows = first_rows
        self.memory = memory

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._require_both(signed)
        mapper = clone(self.map).fit(rows, signed > 0.0)
        n_pos = float(np.count_nonzero(signed > 0.0))
        hinge = self.learner.is_hinge
        ridge = kernel_ridge(n_pos, len(signed) - n_pos, hinge)
        learner = self._fresh_learner(ridge)
        size = 4 * len(signed) * features(mapper, rows[:1]).shape[1]
        if hasattr(learner, "partial_fit") and size > self.memory:
            for part in _passes(learner, signed):
                _learn(learner, features(mapper, rows[part]), signed[part])
            learner.n_iter_ = _n_passes(learner)
        else:
            if size > _MOST_BYTES:
                raise ValueError(
                    f"{type(learner).__name__} needs all features at once, {size:,} "
                    "bytes: use fewer components or rows, or a learner of streams such "
                    "as PSAM."
                )
            weight = None if np.all(np.abs(signed) == 1.0) else np.abs(signed)
            learner.fit(features(mapper, rows), signed > 0.0, sample_weight=weight)
        self._forget()
        self.map_, self.learner_ = mapper, learner

    partial_fit = available_if(lambda self: hasattr(self.learner, "partial_fit"))(
        PartialFit.partial_fit
    )

    def _learn_rows(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        first = not (self._holds or "map_" in vars(self))
        rows, signed = self._rows(X, y, sample_weight, reset=first, classes=classes)
        if not first and classes is not None:
            same_classes(self.classes_, classes)
        if first or self._holds:
            rows, signed = self._hold(rows, signed)
        for start in range(0, len(signed), _PART):
            part = slice(start, start + _PART)
            _learn(self.learner_, features(self.map_, rows[part]), signed[part])

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        return self._scorer()(X)

    @property
    def n_iter_(self) -> int:
        """Number of passes or rounds of the learner."""
        return int(self.current()[1].n_iter_)

    def _hold(self, X: Any, signed: Float) -> tuple[Any, Float]:
        """Hold the first rows, or learn them if there are enough; return the rest."""
        held = self.held_ if self._holds else Held(X[:0], signed[:0])
        room = self._wanted_rows() - len(held.signed)
        if sparse.issparse(held.X) != sparse.issparse(X):
            held, X = held._replace(X=sparse.csr_array(held.X)), sparse.csr_array(X)
        stack = sparse.vstack if sparse.issparse(X) else np.vstack
        first = X[:room].astype(np.float64)
        both = first if not len(held.signed) else stack([held.X, first])
        held = Held(both, np.concatenate([held.signed, signed[:room]]))
        self._forget()
        if len(held.signed) < self._wanted_rows():
            self.held_ = held
        else:
            self.map_, self.learner_ = self._learnt(held)
        return X[room:], signed[room:]

    def _forget(self) -> None:
        """Drop the held rows."""
        self._now = None
        if self._holds:
            del self.held_

    def _learnt(self, held: Held) -> tuple[Any, Any]:
        """Return a map and a learner fitted to the held rows."""
        mapper = clone(self.map).fit(held.X, held.signed > 0.0)
        learner = self._fresh_learner(_STREAM_RIDGE)
        _learn(learner, features(mapper, held.X), held.signed)
        return mapper, learner

    def _wanted_rows(self) -> int:
        if not isinstance(self.first_rows, str):
            return int(self.first_rows)
        components = getattr(self.map, "n_components", None) or 0
        return max(_FEW, _ROWS_A_FEATURE * components)

    def _fresh_learner(self, ridge: float) -> Any:
        learner = clone(self.learner)
        one_unit = getattr(self.map, "one_unit", False)
        if one_unit and learner.get_params().get("l2") == "auto":
            learner.set_params(l2=ridge)
        return learner

    @property
    def _holds(self) -> bool:
        """Whether a stream has had too few rows to fit the map."""
        return "held_" in vars(self)

    def current(self) -> tuple[Any, Any]:
        """Return map and learner, also while rows are held."""
        if self._holds:
            if self._now is None:
                self._now = self._learnt(self.held_)
            return self._now
        return self.map_, self.learner_

    def _scorer(self) -> Callable[[Any], Float]:
        """Return a function that scores validated rows by the current weights."""
        mapper, learner = self.current()
        w, intercept = learner.coef_[0].copy(), float(learner.intercept_[0])
        if isinstance(mapper, FeatureMap):
            return lambda X: mapper.scores(X, w) + intercept
        return lambda X: np.asarray(mapper.transform(X) @ w) + intercept

    def expression(self) -> ScoreExpression | None:
        """Return the score as one expression; None if the map has none."""
        mapper, learner = self.current()
        if not isinstance(mapper, FeatureMap):
            return None
        return mapper.expression(float(learner.intercept_[0]), learner.coef_[0])

    # The interface of stream learners, see aucmax.base.interfaces.

    @property
    def resumable(self) -> bool:
        """Whether ``partial_fit`` would continue from what has been learnt."""
        return self._holds or self.learner_.resumable

    @property
    def progressive_auc(self) -> tuple[float, float] | None:
        """None: the learner does not compute a progressive AUC."""
        return None

    @property
    def grows_quadratically(self) -> bool:
        """False: the number of mapped features is fixed."""
        return False

    def scorer(self) -> Callable[[Any], Float] | None:
        """Return a function that ranks rows as of now; None while rows are held."""
        return None if self._holds else self._scorer()

    def fade(self, share: float) -> None:
        """Multiply the weight of all past rows by ``share``."""
        if not self._holds:
            self.learner_.fade(share)

    def resize(self, n_features: int) -> None:
        """Change the number of features."""
        if self._holds:
            X = sparse.csr_array(self.held_.X)
            X.resize((X.shape[0], n_features))
            self.held_ = self.held_._replace(X=X)
            self._now = None
        else:
            self.map_.resize(n_features)
        self.n_features_in_ = n_features

    def state(self) -> State:
        """Return the state: map and learner, or the held rows."""
        state = super().state()
        if not self._holds:
            if not isinstance(self.map_, FeatureMap):
                raise TypeError(
                    f"{type(self.map_).__name__} is not an estimator of aucmax."
                )
            parts = {"map": self.map_, "learner": self.learner_}
            state.children.update({name: part.state() for name, part in parts.items()})
            return state
        X, signed = self.held_
        if not sparse.issparse(X):
            held = {"X": X, "signed": signed}
        else:
            names = ("data", "indices", "indptr")
            held = {name: getattr(X, name).astype(np.float64) for name in names}
            held["signed"] = signed
        state.arrays.update({f"own.{name}": array for name, array in held.items()})
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        held = below("own", state.arrays)
        if held:
            estimator.held_ = _held(held, estimator.n_features_in_)
            return estimator
        mapper, learner = restored_parts(state, estimator.n_features_in_)
        for part, given in ((mapper, estimator.map), (learner, estimator.learner)):
            if type(part) is not type(given):
                raise ValueError(f"it was fitted with a {type(part).__name__}.")
        estimator.map_, estimator.learner_ = mapper, learner
        return estimator


def _held(arrays: dict[str, NDArray[Any]], d: int) -> Held:
    """Return the held rows of a file; raise a ValueError if they are invalid."""
    signed = check_arrays(arrays, {"signed": Spec("n")}, d)["signed"]
    if "X" in arrays:
        X = check_arrays({**arrays, "signed": signed}, _DENSE, d)["X"]
    else:
        found = check_arrays(arrays, _SPARSE, d)
        indptr = whole_numbers("row ends", found["indptr"], 0, len(found["data"]))
        parts = (found["data"], found["indices"], indptr)
        X = sparse.csr_array(parts, shape=(len(signed), d))
        X.check_format()
    if not signed.all():
        raise ValueError("a held row has no weight.")
    check_values(X)
    row_weights(np.abs(signed), len(signed))
    return Held(X, signed)


_DENSE = {"signed": Spec("n"), "X": Spec("nd")}
_SPARSE = {"data": Spec("m"), "indices": Spec("m", is_index=True), "indptr": Spec("k")}


def restored_parts(state: State, n_features: int) -> tuple[Any, Any]:
    """Return map (None if there is none) and learner; raise a ValueError if invalid."""
    parts = {name: restore(child) for name, child in state.children.items()}
    mapper, learner = parts.get("map"), parts["learner"]
    if mapper is not None:
        if not isinstance(mapper, FeatureMap) or mapper.n_features_in_ != n_features:
            raise ValueError("its map does not have the features of the estimator.")
        n_features = mapper.n_features_out
    if not isinstance(learner, LinearRanker) or learner.n_features_in_ != n_features:
        raise ValueError("its learner does not have the features of the map.")
    return mapper, learner


def _n_passes(learner: Any) -> int:
    """Return the number of passes over all rows; one for sums of moments."""
    return min(learner.max_iter, _PASSES) if isinstance(learner, OnlineAUC) else 1


def _passes(learner: Any, signed: Float) -> Iterator[NDArray[Any]]:
    """Yield the rows to learn next, in the order of ``fit``."""
    shuffled = getattr(learner, "shuffle", False)
    rng = generator(learner.random_state) if shuffled else None
    for _ in range(_n_passes(learner)):
        for order in visits(signed, rng, True):
            for start in range(0, len(order), _PART):
                yield order[start : start + _PART]


def features(mapper: Any, X: Any) -> Any:
    """Return the features of validated rows, in float32 if it is accurate enough."""
    if isinstance(mapper, FeatureMap):
        return mapper.features(X, np.float32 if mapper.one_unit else X.dtype)
    return mapper.transform(X)


def _learn(learner: Any, X: Any, signed: Float) -> None:
    learner.partial_fit(
        X, signed > 0.0, classes=[False, True], sample_weight=np.abs(signed)
    )
