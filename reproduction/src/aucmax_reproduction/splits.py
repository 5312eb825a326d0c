"""Rows for training and for testing, and features scaled by the training rows alone.

A run of a protocol is a number from 0; what rows it has depends on that number and the
seed, not on the algorithm, so that algorithms can be compared run by run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)

Index = NDArray[np.int64]

_WIDE = 5000  # features; above, rows stay sparse and are not centred


class Parts(NamedTuple):
    """The rows of a run."""

    train: Index
    test: Index
    valid: Index | None = None  # to choose parameters by; None: folds of ``train``


class Split(Protocol):
    """A way to split rows, several times."""

    @property
    def runs(self) -> int:
        """How many times."""

    def once(self, given: int | None) -> bool:
        """Return whether the paper drew test rows once, so that ours are other ones."""

    def parts(
        self, y: NDArray[np.bool_], given: int | None, run: int, seed: int
    ) -> Parts:
        """Return the rows of a run; ``given`` rows came in a training file, if any."""


@dataclass(frozen=True)
class Folds:
    """``folds`` parts, each of which is for testing once; ``repeats`` partitions."""

    folds: int
    repeats: int

    @property
    def runs(self) -> int:
        """Folds of all partitions."""
        return self.folds * self.repeats

    def once(self, given: int | None) -> bool:
        """Return False: all rows are tested."""
        return False

    def parts(
        self, y: NDArray[np.bool_], given: int | None, run: int, seed: int
    ) -> Parts:
        """Return all folds but one, and that one."""
        repeat, fold = divmod(run, self.folds)
        splitter = StratifiedKFold(
            self.folds, shuffle=True, random_state=_state(seed, repeat)
        )
        train, test = list(splitter.split(np.zeros(len(y)), y))[fold]
        return Parts(train, test)


@dataclass(frozen=True)
class Holdout:
    """A ``share`` of the rows for testing, drawn anew each time."""

    share: float
    repeats: int

    @property
    def runs(self) -> int:
        """Draws."""
        return self.repeats

    def once(self, given: int | None) -> bool:
        """Return False: each run has test rows of its own."""
        return False

    def parts(
        self, y: NDArray[np.bool_], given: int | None, run: int, seed: int
    ) -> Parts:
        """Return the rows that are not drawn, and those that are."""
        return Parts(*_drawn(np.arange(len(y)), y, self.share, _state(seed, run)))


@dataclass(frozen=True)
class Given:
    """The files that the set comes in; a set in one file is split as by Holdout."""

    share: float
    repeats: int

    @property
    def runs(self) -> int:
        """Times that the same rows are learnt, in other orders."""
        return self.repeats

    def once(self, given: int | None) -> bool:
        """Return whether there is one file; a test file is the paper's own rows."""
        return given is None

    def parts(
        self, y: NDArray[np.bool_], given: int | None, run: int, seed: int
    ) -> Parts:
        """Return the rows of the training file and those of the test file."""
        if given is None:
            return Holdout(self.share, self.repeats).parts(y, given, run, seed)
        return Parts(np.arange(given), np.arange(given, len(y)))


@dataclass(frozen=True)
class Validated:
    """Training, validation and test rows, 4:1:1; or the test file in two halves.

    The rows are the same in every run: what differs is their order.
    """

    repeats: int

    @property
    def runs(self) -> int:
        """Orders of the training rows."""
        return self.repeats

    def once(self, given: int | None) -> bool:
        """Return True: only the order is drawn anew."""
        return True

    def parts(
        self, y: NDArray[np.bool_], given: int | None, run: int, seed: int
    ) -> Parts:
        """Return training, test and validation rows."""
        if given is None:
            train, rest = _drawn(np.arange(len(y)), y, 1 / 3, _state(seed, 0))
        else:
            train, rest = np.arange(given), np.arange(given, len(y))
        valid, test = _drawn(rest, y, 0.5, _state(seed, 1))
        return Parts(train, test, valid)


def capped(rows: Index, most: int | None, run: int, seed: int) -> Index:
    """Return the rows in random order, at most so many."""
    rng = np.random.default_rng([seed, run])
    return rng.permutation(rows)[:most]


def _less_mean(X: Any) -> Any:
    """Return rows less their own mean, by their length before that."""
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return (X - X.mean(axis=1, keepdims=True)) / np.where(length > 0.0, length, 1.0)


SCALERS: Mapping[str, Callable[[bool], Any]] = {
    "none": lambda wide: None,
    "to [-1, 1]": lambda wide: None if wide else MinMaxScaler((-1.0, 1.0)),
    "standardised": lambda wide: StandardScaler(with_mean=not wide),
    "rows of unit length": lambda wide: Normalizer(),
    "to [-1, 1], rows of unit length": lambda wide: (
        Normalizer() if wide else make_pipeline(MinMaxScaler((-1.0, 1.0)), Normalizer())
    ),
    "rows less their mean, by their length": lambda wide: (
        Normalizer() if wide else FunctionTransformer(_less_mean)
    ),
}


def suited(X: Any) -> Any:
    """Return X dense, unless it has a great many features."""
    if sparse.issparse(X) and X.shape[1] <= _WIDE:
        return X.toarray()
    return X


def scaled(X: Any, scaling: str, train: Index, *others: Index) -> list[Any]:
    """Return the rows of each part, scaled by what the training rows say."""
    scaler = SCALERS[scaling](X.shape[1] > _WIDE)
    if scaler is None:
        return [X[rows] for rows in (train, *others)]
    scaler.fit(X[train])
    return [scaler.transform(X[rows]) for rows in (train, *others)]


def _drawn(
    rows: Index, y: NDArray[np.bool_], share: float, state: int
) -> tuple[Index, Index]:
    rest, drawn = train_test_split(
        rows, test_size=share, stratify=y[rows], random_state=state
    )
    return rest, drawn


def _state(seed: int, run: int) -> int:
    """Return the state of scikit-learn's generator for a run."""
    return int(np.random.SeedSequence([seed, run]).generate_state(1)[0])
