"""A map and a learner in one estimator: mapped rows come and go, block by block.

``fit`` maps all rows once if their features fit in memory, or if the learner wants them
at once. Otherwise it goes over the data in passes of ``partial_fit``, and maps a block
whenever it is its turn.

A stream has to fit the map before anything can be learnt. So its first rows are held
until there are enough of them, whatever chunks they come in; then they are learnt, and
the map stays as it is. A model that is asked for scores before that answers with what
it would be if the stream ended here.
"""

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from aucmax.base.expression import ScoreExpression
from aucmax.base.penalty import kernel_ridge
from aucmax.base.ranker import LinearRanker, Ranker, generator, same_classes
from aucmax.base.stream_learner import PartialFit
from aucmax.core.rows import Float
from aucmax.core.validation import check_values, row_weights
from aucmax.kernel.feature_map import FeatureMap
from aucmax.online.base import OnlineAUC, visits
from aucmax.storage.estimator import below, restore
from aucmax.storage.storable import Spec, State, check_arrays, whole_numbers

_STREAM_RIDGE = 1e-5  # for features of one unit, while nobody knows how many rows
_MOST_BYTES = 1 << 33  # for a learner that wants them all
_PASSES = 5  # over rows that are mapped anew: more take longer than they are worth
_PART = 4096  # rows whose features are there at a time
_FEW = 1000  # rows a map is fitted to, at least
_ROWS_A_FEATURE = 4  # … and for each of its features


class Held(NamedTuple):
    """The first rows of a stream, with labels and weights in one."""

    X: Any
    signed: Float


class Chain(PartialFit, Ranker):
    r"""A map and a learner of its features, as one ranker.

    What it takes, gives and promises is as for a linear learner: raw features, dense or
    sparse; streams, if its learner knows them; one model file.

    Parameters
    ----------
    map : transformer
        Such as :class:`KMeansNystroem` or :class:`RandomFourier`; anything with ``fit``
        and ``transform`` will do, but only maps of this library can be saved.
    learner : estimator
        A linear ranker of this library. If its ``l2`` is "auto", the features of a
        kernel, which have one unit, get one penalty:
        :math:`0.3\,(1/n_+ + 1/n_-) \min(1, 1000/n)`, the last factor to the
        power 1.25 for the samplers of pairs; 1e-5 in a stream.
    first_rows : int or "auto", default="auto"
        How many rows of a stream the map is fitted to. "auto" stands for 1000, or four
        for each component of the map if these are more.
    memory : float, default=1e9
        Bytes of features that ``fit`` may hold. If there are more, a learner that has a
        ``partial_fit`` gets them in parts, as a stream, in five passes at most, and
        rows are mapped anew in each.

    Attributes
    ----------
    map_ : transformer
        The fitted map.
    learner_ : estimator
        The fitted learner.
    .. shared: classes, features
    n_iter_ : int
        As the learner counts.

    See Also
    --------
    KernelAUCCV : Chooses the width of the kernel and the penalty.
    aucmax.named : The chains of the literature, such as "NPSAM".

    Notes
    -----
    Features of kernels are float32. A learner that takes all rows at once needs four
    bytes for each feature of each row, whatever ``memory``.

    In a stream, a feature that was constant in the first rows does not count later
    either, and one that was tiny counts as what it was then: its scale is settled.

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
        "map": [HasMethods(["fit", "transform"])],
        "learner": [LinearRanker],
        "memory": [Interval(Real, 0, None, closed="left")],
        "first_rows": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
    }

    map_: Any
    learner_: Any
    held_: Held  # only while a stream has not had enough rows
    _now: tuple[Any, Any] | None = None  # what held rows would give, if asked for

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
                    f"{type(learner).__name__} wants all features at once, {size:,} "
                    "bytes: take fewer components or rows, or a learner of streams "
                    "such as PSAM."
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
            some = slice(start, start + _PART)
            _learn(self.learner_, features(self.map_, rows[some]), signed[some])

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        return self._scorer()(X)

    @property
    def n_iter_(self) -> int:
        """Passes or rounds, as the learner counts them."""
        return int(self.current()[1].n_iter_)

    def _hold(self, X: Any, signed: Float) -> tuple[Any, Float]:
        """Hold the first rows, or learn them if they are enough; return the others."""
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
        """Let go of rows that are held, and of what they would give."""
        self._now = None
        if self._holds:
            del self.held_

    def _learnt(self, held: Held) -> tuple[Any, Any]:
        """Return a map and a learner that have seen the rows held."""
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
        if (
            getattr(self.map, "one_unit", False)
            and learner.get_params().get("l2") == "auto"
        ):
            learner.set_params(l2=ridge)
        return learner

    @property
    def _holds(self) -> bool:
        """Whether a stream has not yet had enough rows to fit the map to."""
        return "held_" in vars(self)

    def current(self) -> tuple[Any, Any]:
        """Return map and learner; of a stream that has just begun, as if it ended."""
        if self._holds:
            if self._now is None:
                self._now = self._learnt(self.held_)
            return self._now
        return self.map_, self.learner_

    def _scorer(self) -> Callable[[Any], Float]:
        """Return what scores validated rows, whatever is learnt in the meantime."""
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

    # The interface of stream learners, see aucmax.base.stream_learner.

    @property
    def resumable(self) -> bool:
        """Whether ``partial_fit`` would continue from what has been learnt."""
        return self._holds or self.learner_.resumable

    @property
    def progressive_auc(self) -> tuple[float, float] | None:
        """None: the learner does not evaluate itself while it learns."""
        return None

    @property
    def grows_quadratically(self) -> bool:
        """False: new features of the data are not features of the map."""
        return False

    def scorer(self) -> Callable[[Any], Float] | None:
        """Return a function that ranks rows as of now; None while rows are held."""
        return None if self._holds else self._scorer()

    def fade(self, share: float) -> None:
        """Let all rows so far count ``share`` of what they did, for the learner."""
        if not self._holds:
            self.learner_.fade(share)

    def resize(self, n_features: int) -> None:
        """Take rows with more features from now on, or fewer."""
        if self._holds:
            X = sparse.csr_array(self.held_.X)
            X.resize((X.shape[0], n_features))
            self.held_ = self.held_._replace(X=X)
            self._now = None
        else:
            self.map_.resize(n_features)
        self.n_features_in_ = n_features

    def state(self) -> State:
        """Return the state: of map and learner, or of the rows that are held."""
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
        parts = {name: restore(child) for name, child in state.children.items()}
        mapper, learner = parts["map"], parts["learner"]
        check_map(mapper, estimator.n_features_in_)
        check_learner(learner, mapper.n_features_out)
        for part, given in ((mapper, estimator.map), (learner, estimator.learner)):
            if type(part) is not type(given):
                raise ValueError(f"it was fitted with a {type(part).__name__}.")
        estimator.map_, estimator.learner_ = mapper, learner
        return estimator


def _held(arrays: dict[str, NDArray[Any]], d: int) -> Held:
    """Return the rows that a file holds; raise a ValueError if they are invalid."""
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
        raise ValueError("a row that it holds has no weight.")
    check_values(X)
    row_weights(np.abs(signed), len(signed))
    return Held(X, signed)


_DENSE = {"signed": Spec("n"), "X": Spec("nd")}
_SPARSE = {"data": Spec("m"), "indices": Spec("m", is_index=True), "indptr": Spec("k")}


def check_map(mapper: Any, n_features: int) -> None:
    """Raise a ValueError if a restored part is not a map of so many features."""
    if not isinstance(mapper, FeatureMap) or mapper.n_features_in_ != n_features:
        raise ValueError("its map does not have the features of the estimator.")


def check_learner(learner: Any, n_features: int) -> None:
    """Raise a ValueError if a restored part is not a learner of so many features."""
    if not isinstance(learner, LinearRanker) or learner.n_features_in_ != n_features:
        raise ValueError("its learner does not have the features of the map.")


def _n_passes(learner: Any) -> int:
    """Return how often to map all rows; sums of moments gain nothing by more."""
    return min(learner.max_iter, _PASSES) if isinstance(learner, OnlineAUC) else 1


def _passes(learner: Any, signed: Float) -> Iterator[NDArray[Any]]:
    """Yield the rows to be learnt next, in the order of a ``fit``."""
    shuffled = getattr(learner, "shuffle", False)
    rng = generator(learner.random_state) if shuffled else None
    for _ in range(_n_passes(learner)):
        for order in visits(signed, rng, True):
            for start in range(0, len(order), _PART):
                yield order[start : start + _PART]


def features(mapper: Any, X: Any) -> Any:
    """Return the features of validated rows, in float32 if that will do."""
    if isinstance(mapper, FeatureMap):
        return mapper.features(X, np.float32 if mapper.one_unit else X.dtype)
    return mapper.transform(X)


def _learn(learner: Any, X: Any, signed: Float) -> None:
    learner.partial_fit(
        X, signed > 0.0, classes=[False, True], sample_weight=np.abs(signed)
    )
