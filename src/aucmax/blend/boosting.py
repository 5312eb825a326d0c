"""Boosted trees of all folds, grown side by side by LightGBM.

All folds stop at the same number of trees: where the mean of their AUCs on held-out
rows is highest. One number that is chosen on all rows hardly flatters these AUCs, and
is less noisy than a number for each fold.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Integral, Real
from time import monotonic
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils._param_validation import Interval

from aucmax.base.ranker import generator
from aucmax.blend.forest import Forest
from aucmax.blend.layout import (
    TableModel,
    TableRows,
    category_codes,
    category_sizes,
    medians,
)
from aucmax.blend.target_encoding import TargetEncoding, fit_with_pairs
from aucmax.core.rows import Float, Index
from aucmax.storage.state import Spec, State, below, whole_numbers

Ints = NDArray[np.int64]

_STEP = 10  # rounds between comparisons of the folds
_ROWS_FOR_THREADS = 30_000  # with fewer, a fold has one thread


class BoostedTrees(TableModel):
    """Boosted trees on columns and target-encoded categories; scores are log-odds.

    The members of a blend are fitted by :class:`Boosting`, which stops in time.

    Parameters
    ----------
    n_trees : int, default=200
        Number of boosting rounds.
    learning_rate : float, default=0.05
        Factor applied to the values of each tree.
    max_leaves : int, default=31
        Maximum number of leaves per tree.
    min_leaf : int, default=20
        Minimum number of rows per leaf.
    max_features : float, default=1.0
        Fraction of the features that are drawn for each tree.
    random_state : int, RandomState instance or None, default=None
        Random seed of rows and features.

    Attributes
    ----------
    forest_ : Forest
        The trees, on columns and encoded terms.
    offset_ : float
        Added to the scores.
    levels_ : ndarray of shape (n_features_in_,)
        Codes of each column, 0 for numbers.
    encoding_ : TargetEncoding or None
        Log-odds of categories.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Number of columns.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_leaves": [Interval(Integral, 2, None, closed="left")],
        "min_leaf": [Interval(Integral, 1, None, closed="left")],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "random_state": ["random_state"],
    }
    stored: ClassVar[dict[str, Spec]] = {"offset_": Spec("")}

    forest_: Forest
    offset_: float
    levels_: Ints
    encoding_: TargetEncoding | None

    def __init__(
        self,
        n_trees: int = 200,
        *,
        learning_rate: float = 0.05,
        max_leaves: int = 31,
        min_leaf: int = 20,
        max_features: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.min_leaf = min_leaf
        self.max_features = max_features
        self.random_state = random_state

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows, signed = self._rows(X, y, sample_weight, reset=True)
        self._require_both(signed)
        dense = rows.toarray() if sparse.issparse(rows) else rows
        weight = np.abs(signed) / np.mean(np.abs(signed))
        levels = np.zeros(dense.shape[1], np.int64)
        self._grow(dense, levels, signed > 0.0, weight)

    def fit_table(
        self, rows: TableRows, positive: NDArray[np.bool_], weight: Float | None
    ) -> Self:
        """Grow ``n_trees`` trees on some rows of a table."""
        assert rows.view is not None
        self.classes_, levels = np.array([False, True]), rows.view.levels
        self.n_features_in_ = len(levels)
        return self._grow(rows.columns, levels, positive, weight)

    def _grow(
        self,
        X: Any,
        levels: Ints,
        positive: NDArray[np.bool_],
        weight: Float | None,
    ) -> Self:
        settings = Boosting(
            learning_rate=self.learning_rate,
            max_leaves=self.max_leaves,
            min_leaf=self.min_leaf,
            feature_share=self.max_features,
            most_rounds=self.n_trees,
        )
        folds = [(np.arange(len(X)), np.arange(0))]
        seed = generator(self.random_state).randint(np.iinfo(np.int32).max)
        (model,), _ = settings.fit_folds(X, levels, positive, weight, folds, seed)
        self.forest_, self.offset_ = model.forest_, model.offset_
        self.levels_, self.encoding_ = levels, model.encoding_
        return self

    def score_table(self, rows: TableRows) -> Float:
        """Return the scores of rows of a table."""
        return self.score_rows(rows.columns)

    def score_rows(self, X: Any) -> Float:
        """Return the scores of columns."""
        rows = with_terms(X, self.levels_, self.encoding_)
        return self.forest_.scores(rows) + self.offset_

    def state(self) -> State:
        """Return the state of the fitted estimator; see :mod:`aucmax.storage`."""
        state = super().state()
        own = {**self.forest_.arrays(), "levels": self.levels_}
        if self.encoding_ is not None:
            terms = self.encoding_.arrays()
            own |= {f"terms.{name}": array for name, array in terms.items()}
        state.arrays.update({f"own.{name}": array for name, array in own.items()})
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        own, width = below("own", state.arrays), estimator.n_features_in_
        estimator.levels_ = whole_numbers("levels", own["levels"], 0, 1 << 31)
        if estimator.levels_.shape != (width,):
            raise ValueError(f"'levels' has not the shape ({width},).")
        estimator.encoding_ = None
        if terms := below("terms", own):
            sizes = category_sizes(estimator.levels_)
            estimator.encoding_ = TargetEncoding.restored(terms, sizes)
            width += 2 * len(estimator.encoding_.ends)
        estimator.forest_ = Forest.restored(own, width)
        return estimator


def with_terms(X: Any, levels: Ints, encoding: TargetEncoding | None) -> Any:
    """Return columns with the encoded terms beside them."""
    if encoding is None:
        return X
    return np.hstack(
        [X, encoding.transform(category_codes(X, levels), category_sizes(levels))]
    )


class _Fold(NamedTuple):
    """The growing trees of one fold."""

    booster: Any
    encoding: TargetEncoding | None
    curve: list[float]  # AUC on its test rows after each round


@dataclass(frozen=True)
class Boosting:
    """Settings of boosted trees, and how they are fitted to all folds.

    ``encode_above`` is the number of codes from which on a category is encoded by its
    log-odds too, ``native_up_to`` the number up to which trees split its codes by sets;
    ``pairs`` is the number of pairs of categories that are encoded at most.
    """

    learning_rate: float = 0.03
    max_leaves: int = 31
    min_leaf: int = 10
    feature_share: float = 0.5
    split_share: float = 1.0
    row_share: float = 0.8
    extra_trees: bool = False
    native_up_to: int = 50
    encode_above: int = 10
    pairs: int = 0
    most_rounds: int = 2000
    patience: int = 80

    def fit_folds(
        self,
        X: Any,
        levels: Ints,
        positive: NDArray[np.bool_],
        weight: Float | None,
        folds: Sequence[tuple[Index, Index]],
        seed: int,
        n_jobs: int = 1,
        end: float = np.inf,
    ) -> tuple[list[BoostedTrees], list[Float]]:
        """Return a model for each fold, and the scores of its test rows.

        ``folds`` are pairs of training and test rows; without test rows, a fold is
        grown as far as the others. Growing stops at the time ``end``.
        """
        w = np.ones(len(X)) if weight is None else weight
        threads = n_jobs if len(X) >= _ROWS_FOR_THREADS else 1
        growing = [
            self._start(X, levels, positive, w, fold, seed + k, threads)
            for k, fold in enumerate(folds)
        ]
        judged = [g for g, (_, test) in zip(growing, folds, strict=True) if len(test)]
        # LightGBM's messages and its number of threads are set thread by thread.
        with ThreadPoolExecutor(
            max(n_jobs // threads, 1),
            initializer=_configure_thread,
            initargs=(threads,),
        ) as pool:
            best = done = 0
            while done < self.most_rounds and done - best < self.patience:
                list(pool.map(_grow, growing))
                done = best = done + _STEP
                if judged:
                    mean = np.mean([g.curve for g in judged], axis=0)
                    best = int(np.argmax(mean)) + 1
                if monotonic() > end:
                    break
            best = min(best, self.most_rounds)
            middle = medians(X)
            models = list(pool.map(lambda g: _model(g, levels, best, middle), growing))
        scores = [
            model.score_rows(X[test])
            for model, (_, test) in zip(models, folds, strict=True)
        ]
        return models, scores

    def _start(
        self,
        X: Any,
        levels: Ints,
        positive: NDArray[np.bool_],
        weight: Float,
        fold: tuple[Index, Index],
        seed: int,
        threads: int,
    ) -> _Fold:
        """Return the fold before the first tree: encoded, binned."""
        import lightgbm

        train, test = fold
        rows, encoding = X[train], None
        if terms := self._terms(levels):
            coded, sizes = category_codes(rows, levels), category_sizes(levels)
            y, w = positive[train], weight[train]
            encoding, own = fit_with_pairs(coded, sizes, y, w, terms, self.pairs, seed)
            rows = np.hstack([rows, own])
        parameters = {
            "objective": "binary",
            "metric": "auc",
            "learning_rate": self.learning_rate,
            "num_leaves": self.max_leaves,
            "min_data_in_leaf": self.min_leaf,
            "feature_fraction": self.feature_share,
            "feature_fraction_bynode": self.split_share,
            "bagging_fraction": self.row_share,
            "bagging_freq": 1,
            "extra_trees": self.extra_trees,
            "cat_smooth": 20.0,
            "max_cat_to_onehot": 8,
            "seed": seed,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": threads,
            "verbosity": -1,
        }
        native = np.flatnonzero((levels > 0) & (levels <= self.native_up_to)).tolist()
        data = lightgbm.Dataset(
            rows,
            positive[train].astype(np.float32),
            weight=weight[train],
            categorical_feature=native,
            params=parameters,
        )
        booster = lightgbm.Booster(parameters, data)
        if len(test):
            held = lightgbm.Dataset(
                with_terms(X[test], levels, encoding),
                positive[test].astype(np.float32),
                weight=weight[test],
                reference=data,
                categorical_feature=native,
                params=parameters,
            )
            booster.add_valid(held, "test")
        return _Fold(booster, encoding, [])

    def _terms(self, levels: Ints) -> list[list[int]]:
        """Return the categories to encode, counted among the categories."""
        sizes = levels[levels > 0]
        return [[k] for k in np.flatnonzero(sizes > self.encode_above).tolist()]


def _model(grown: _Fold, levels: Ints, n_trees: int, middle: Float) -> BoostedTrees:
    """Return the first trees of a fold as a model."""
    model = BoostedTrees()
    model.classes_, model.n_features_in_ = np.array([False, True]), len(levels)
    middle = np.append(middle, np.zeros(grown.booster.num_feature() - len(middle)))
    model.forest_ = Forest.of_lightgbm(grown.booster, n_trees, middle)
    model.offset_ = 0.0  # LightGBM adds the prior to the first tree
    model.levels_, model.encoding_ = levels, grown.encoding
    return model


def _configure_thread(threads: int) -> None:
    import lightgbm

    parameters = {"verbosity": -1, "num_threads": threads}
    lightgbm.Dataset(np.zeros((2, 1)), params=parameters).construct()


def _grow(fold: _Fold) -> None:
    for _ in range(_STEP):
        fold.booster.update()
        found = fold.booster.eval_valid()
        if found:
            fold.curve.append(float(found[0][2]))
