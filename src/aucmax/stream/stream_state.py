"""State of AUCStream: members, race, unfinished block; storage in model files."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aucmax.base.ranker import Ranker
from aucmax.core.rows import Float
from aucmax.storage.state import Spec, State, below, check_arrays, restore
from aucmax.stream.blocks import MAX_LENGTH
from aucmax.stream.drift import DriftMonitor
from aucmax.stream.members import Member, candidates, resized
from aucmax.stream.race import Race
from aucmax.stream.serving import Blend, BlendedScore, ServedScores
from aucmax.stream.table_chunks import FirstRows
from aucmax.stream.trees import Ints, TreeColumns, TreeMember

Arrays = dict[str, NDArray[Any]]


def checked_arrays(arrays: Arrays, count: int, n_features: int) -> Arrays:
    """Return the arrays of ``count`` scores; raise a ValueError if they are invalid.

    ``scored`` and ``signed`` are scores and signed weights of the unfinished block.
    """
    length = len(arrays["signed"])
    new = ServedScores.start(count).arrays()
    shapes = {name: array.shape for name, array in new.items()}
    shapes |= {name: (count, *arrays[name].shape[1:2]) for name in ("pos", "neg")}
    shapes |= {"recency": (6,), "most": (n_features,), "signed": (length,)}
    shapes |= {"fill": (n_features,)} if "fill" in arrays else {}
    shapes |= {"scored": (count + 1, length)}
    shapes |= {"last": (n_features if arrays["last"].size else 0,)}
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(
                f"{name!r} has shape {array.shape}, expected {shape} and finite values."
            )
    if length >= MAX_LENGTH or not arrays["signed"].all():
        raise ValueError("the unfinished block is too long or has rows of weight zero.")
    if (arrays["most"] < 0.0).any():
        raise ValueError("'most', the largest absolute values, has negative values.")
    return arrays


_ANY = Spec(finite=False)  # checked by checked_arrays


class Cached:
    """What scoring computes and uses again; nothing is learnt from it.

    Copies of a model begin without it.
    """

    def __init__(self) -> None:
        self.score: tuple[int, BlendedScore] | None = None  # and the changes before
        # The kept rows of tables, a model of these, and one of all but a few of them.
        self.preview: tuple[FirstRows, Any, Any] | None = None

    def __reduce__(self) -> Any:
        return Cached, ()


class StreamState(Ranker):
    """Base class of AUCStream: everything that a model file stores."""

    half_life: float | None
    nonlinear: bool
    reservoir: int

    n_iter_: int

    _category: Ints | None = None  # see set_categories
    _all_members: list[Member]
    _race: Race
    _trees: TreeMember | None
    _blend: Race  # of one: the AUC of the served scores
    _served: ServedScores
    _drift: DriftMonitor  # of the first member
    _largest: Float  # (d,) largest absolute value of each feature, see limit_values
    # The unfinished block: scores (K + 1, m) of the members (trees last) and of the
    # drift monitor, and signed weights (m,), in pieces; number of rows.
    _pending: list[tuple[Float, Float]]
    _n_pending: int
    _present: Blend  # set at the end of each block
    _changes: int  # odd while rows are learnt
    _cached: "Cached"
    # Of tables: rows before the encoder is fitted; medians for missing numbers in data
    # frames of numbers, which need no encoder.
    _first: FirstRows | None = None
    _fill: Float | None = None

    def _now(self) -> Self:
        """Return the model to score by."""
        raise NotImplementedError

    def _start(self, seed: int) -> None:
        """Start all members and the race."""
        category = self._category
        if self.encoder_ is not None:
            category = self.encoder_.category_of_feature
        elif category is not None and category.shape != (self.n_features_in_,):
            raise ValueError(
                f"set_categories was given shape {category.shape}, but rows have "
                f"{self.n_features_in_} features."
            )
        members = candidates(self.half_life is not None)
        for member in members:
            member.prepare(self.n_features_in_)
        count = len(members)
        self._all_members, self._race, self.n_iter_ = members, Race.of(count), 1
        self._trees, self._blend = None, Race.of(1)
        if self.nonlinear:
            columns = TreeColumns.numbers(self.n_features_in_)
            if category is not None:
                columns = TreeColumns(category)
            self._trees = TreeMember(columns, int(self.reservoir), self.half_life, seed)
        self._served = ServedScores.start(count, late=self._trees is not None)
        self._drift = DriftMonitor(members[0].learner)
        self._largest = np.zeros(self.n_features_in_)
        self._pending, self._n_pending = [], 0
        self._changes, self._cached = 0, Cached()
        self._publish()

    def _publish(self) -> None:
        """Set the blend that other threads score by from now on."""
        line, served = self._served.calibration(), self._served
        self._present = Blend(
            line,
            line[0] * served.weights / served.scale,
            self._all_members,
            [m.at_block_start(self.n_features_in_) for m in self._all_members],
            self.n_features_in_,
            None if self._trees is None else self._trees.scorer(),
        )

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Count as a change; until its end, other threads use the published blend."""
        self._changes += 1
        try:
            yield
        finally:
            self._changes += 1

    @property
    def _n_scores(self) -> int:
        """Number of members, with the trees."""
        return len(self._all_members) + (self._trees is not None)

    @property
    def _uses_matrix(self) -> bool:
        """Whether a member other than linear ones learns from the rows."""
        return self._trees is not None and self._trees.active

    def _running(self) -> list[Member]:
        return [self._all_members[k] for k in np.flatnonzero(self._race.running)]

    def _unfinished_block(self) -> tuple[Float, Float]:
        """Return scores and signed weights of the unfinished block."""
        empty = np.zeros((self._n_scores + 1, 0)), np.zeros(0)
        scores, signed = zip(empty, *self._pending, strict=True)
        return np.hstack(scores), np.concatenate(signed)

    def resize(self, n_features: int) -> None:
        """Change the number of features; new features have weight zero."""
        with self._changing():
            for member in self._running():
                member.resize(n_features)
            self._drift.resize(n_features)
            if self._trees is not None:
                self._trees.resize(n_features)
                if not self._trees.active:
                    self._served.set_share_of_last(self._race.weights(), 0.0)
            self._largest = resized(self._largest, n_features)
            self.n_features_in_ = n_features
            self._publish()

    def state(self) -> State:
        """Return the state of the running members and of the race."""
        if self._first is not None:
            kept, header = self._first, self._now().state().header
            numeric = None if kept.numeric is None else np.dtype(kept.numeric).name
            names = "feature_names_in_" in vars(self)
            header["first"] = {"seed": kept.seed, "numeric": numeric, "names": names}
            first = {f"first.{name}": a for name, a in kept.arrays().items()}
            return State(header, first, {})
        state = super().state()
        scores, signed = self._unfinished_block()
        own = {
            **self._race.arrays(),
            **{f"before.{m.name}": m.block_start for m in self._running()},
            **self._served.arrays(),
            "scored": scores,
            "signed": signed,
            "most": self._largest,
            "recency": self._drift.sums,
            "last": self._drift.w,
        }
        if self._fill is not None:
            own["fill"] = self._fill
        own |= {f"blend.{name}": a for name, a in self._blend.arrays().items()}
        state.arrays.update({f"own.{name}": array for name, array in own.items()})
        if self._trees is not None:
            trees = self._trees.arrays()
            state.arrays.update({f"trees.{name}": a for name, a in trees.items()})
        for member in self._running():
            member.weights()
            state.children[member.name] = member.learner.state()
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        if "first" in state.header:
            about, arrays = state.header["first"], below("first", state.arrays)
            estimator._first = kept = FirstRows.restored(about, arrays)
            estimator._cached = Cached()
            if about["names"]:
                names = kept.tables[0].column_names
                estimator.feature_names_in_ = np.array(names, dtype=object)
                estimator.n_features_in_ = len(names)
            return estimator
        learners = {name: restore(child) for name, child in state.children.items()}
        own = below("own", state.arrays)
        own = check_arrays(own, dict.fromkeys(own, _ANY), 1)
        estimator._restore(learners, own, below("trees", state.arrays))
        return estimator

    def _restore(self, learners: dict[str, Any], arrays: Arrays, trees: Arrays) -> None:
        """Restore members and race; raise a ValueError if they are invalid."""
        self._start(0)
        if self._trees is not None:
            self._trees = TreeMember.restored(
                trees, self.n_features_in_, self.half_life
            )
        self._race = Race.restored(len(self._all_members), arrays)
        self._blend = Race.restored(1, below("blend", arrays))
        names = [member.name for member in self._running()]
        if set(names) != set(learners):
            raise ValueError(
                f"members are {', '.join(learners)}, expected {', '.join(names)}."
            )
        for member in self._running():
            kind, member.learner = type(member.learner), learners[member.name]
            member.block_start = arrays[f"before.{member.name}"]
            if type(member.learner) is not kind:
                found = type(member.learner).__name__
                raise ValueError(f"{member.name} is {found}, expected {kind.__name__}.")
            member.check(self.n_features_in_)
        arrays = checked_arrays(arrays, self._n_scores, self.n_features_in_)
        self._served = ServedScores.restored(arrays)
        self._largest, self._fill = arrays["most"], arrays.get("fill")
        self._pending = [(arrays["scored"], arrays["signed"])]
        self._n_pending = len(arrays["signed"])
        first = self._all_members[0].learner
        self._drift = DriftMonitor(first, arrays["last"], arrays["recency"])
        self._publish()
