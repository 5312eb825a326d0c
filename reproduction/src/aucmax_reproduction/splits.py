"""Training and test rows of a run, and feature scaling by the training rows.

The rows of a run depend on its number and the random seed, not on the algorithm, so
that algorithms can be compared run by run.
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
    """Row indices of a run."""

    train: Index
    test: Index
    valid: Index | None = None  # for choosing parameters; None: folds of ``train``


class Split(Protocol):
    """A repeated split of the rows."""

    @property
    def runs(self) -> int:
        """Number of runs."""

    def once(self, test_file: bool) -> bool:
        """Return whether the paper drew its test rows once; ours are then others."""

    def parts(
        self, y: NDArray[np.bool_], given: int | None, run: int, seed: int
    ) -> Parts:
        """Return the rows of a run; ``given`` rows are in a training file, if any."""


@dataclass(frozen=True)
class Folds:
    """Repeated cross-validation: ``folds`` parts, ``repeats`` partitions."""

    folds: int
    repeats: int

    @property
    def runs(self) -> int:
        """Number of folds of all partitions."""
        return self.folds * self.repeats

    def once(self, test_file: bool) -> bool:
        """Return False: every row is tested."""
        return False

    def parts(
        self, y: NDArray[np.bool_], given: int | None, run: int, seed: int
    ) -> Parts:
        """Return all folds but one for training, and that one for testing."""
        repeat, fold = divmod(run, self.folds)
        splitter = StratifiedKFold(
            self.folds, shuffle=True, random_state=_state(seed, repeat)
        )
        train, test = list(splitter.split(np.zeros(len(y)), y))[fold]
        return Parts(train, test)


@dataclass(frozen=True)
class Holdout:
    """Hold out a random ``share`` of the rows in each run."""

    share: float
    repeats: int

    @property
    def runs(self) -> int:
        """Number of draws."""
        return self.repeats

    def once(self, test_file: bool) -> bool:
        """Return False: each run draws its own test rows."""
        return False

    def parts(
        self, y: NDArray[np.bool_], given: int | None, run: int, seed: int
    ) -> Parts:
        """Return the training rows and the held-out rows."""
        return Parts(*_drawn(np.arange(len(y)), y, self.share, _state(seed, run)))


@dataclass(frozen=True)
class Given:
    """The training and test file of the set; a single file is split as by Holdout."""

    share: float
    repeats: int

    @property
    def runs(self) -> int:
        """Number of orders of the training rows."""
        return self.repeats

    def once(self, test_file: bool) -> bool:
        """Return whether there is no test file, which has the paper's own rows."""
        return not test_file

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

    The rows are the same in every run; only their order differs.
    """

    repeats: int

    @property
    def runs(self) -> int:
        """Number of orders of the training rows."""
        return self.repeats

    def once(self, test_file: bool) -> bool:
        """Return True: only the order changes."""
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
    """Return at most ``most`` rows, in random order."""
    rng = np.random.default_rng([seed, run])
    return rng.permutation(rows)[:most]


def _less_mean(X: Any) -> Any:
    """Subtract the mean of each row and divide by its original length."""
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


def dense_if_narrow(X: Any) -> Any:
    """Return X as a dense array, unless it has more than 5000 features."""
    if sparse.issparse(X) and X.shape[1] <= _WIDE:
        return X.toarray()
    return X


def scaled(X: Any, scaling: str, train: Index, *others: Index) -> list[Any]:
    """Return the rows of each part, scaled by statistics of the training rows."""
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
    """Return the random seed of a run for scikit-learn."""
    return int(np.random.SeedSequence([seed, run]).generate_state(1)[0])
