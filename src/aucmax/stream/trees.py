"""Boosted trees of AUCStream: reservoir, columns, refits.

**Reservoir.** A class-balanced sample of a stream, bounded in rows and in bytes.

Row i of weight w gets the priority w/u, where u is uniform in (0, 1) and depends only
on the random seed and on the row number. Of each class, the rows of highest priority
are kept. max(w, τ), where τ is the highest priority of a discarded row of the class, is
an unbiased estimate of the weight that a kept row represents: priority sampling [1]_.
The sample is thus uniform within a class, up to row weights, and these estimates undo
the balance of the classes. With a half-life, w doubles every ``half_life`` rows, and
recent rows are preferred. The sample does not depend on chunks: discarding rows early
keeps all rows that a later, smaller selection would keep.

.. [1] N. Duffield, C. Lund, M. Thorup, "Priority sampling for estimation of arbitrary
   subset sums", Journal of the ACM 54(6), 2007.

**Columns.** Linear members take a categorical column as one-hot features, and so do
trees, up to ``MAX_FEATURES`` features. In wider rows, a column with more than
``_MAX_ONE_HOT`` categories becomes one column of codes for the trees. A refit encodes
the codes by the log-odds of the positive class, cross-fitted on the kept rows
(:mod:`aucmax.blend.target_encoding`).

**Refits.** Trees are refitted from scratch to the reservoir. A refit starts at the end
of a block and is taken over at the end of the next one. In between it runs in a thread,
so its duration does not change the result.

Trees and linear members are compared by mixtures (1 - a) s + a t of the blended linear
score s and the score t of the trees, both in units of their scale, for a = 0, ¼, ½, ¾
and 1. A race (:class:`aucmax.stream.race.Race`) evaluates these mixtures on each block
before its rows are learnt. The weight of the trees is the mean of a, weighted by the
likelihood that a mixture is the best. After a refit, the results of earlier trees count
``_OLD_TREES`` times as much as before, since the new trees are better.

The number of trees of a refit is the best number of the trees before, on the kept rows
that have come since they were fitted. No rows are set aside for this.
"""

from collections.abc import Iterator
from dataclasses import replace
from threading import Thread
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.blend.boosting import Boosting, with_terms
from aucmax.blend.forest import CATEGORICAL, LEAF, Forest
from aucmax.blend.layout import category_sizes
from aucmax.blend.target_encoding import TargetEncoding
from aucmax.core.row_hashes import split_mix
from aucmax.core.rows import Float
from aucmax.storage.state import below, whole_numbers
from aucmax.stream.blocks import block_aucs
from aucmax.stream.race import Race

Arrays = dict[str, NDArray[Any]]

MAX_BYTES = 64 << 20  # of the kept rows
_SLACK = 4  # rows are discarded when there are 1/4 too many, to save time
_MAX = np.finfo(np.float32).max


class Sample(NamedTuple):
    """Kept rows, in the order of the stream."""

    rows: NDArray[np.float32]  # (n, d), relative to ``centre``
    positive: NDArray[np.bool_]
    weight: Float  # represented weight, with mean 1 in each class
    number: Float  # row number in the stream
    centre: Float  # (d,)


class Reservoir:
    """At most ``capacity`` rows, half of them of each class if there are enough.

    Rows are stored as float32 differences from the first row, which keeps the
    resolution of features with a large offset, such as timestamps.
    """

    def __init__(self, n_features: int, capacity: int, seed: int) -> None:
        self.seed = seed
        self.limit = capacity  # before the bound in bytes
        self.centre = np.zeros(0)  # (d,) the first row; empty before it
        self.floor = np.full(2, -np.inf)  # log τ of negatives and positives
        self._n = 0
        self._rows = np.zeros((0, n_features), np.float32)
        # Log priority, log weight, 1 if positive, row number.
        self._table = np.zeros((4, 0))

    @property
    def capacity(self) -> int:
        """Maximum number of rows; fewer than ``limit`` if rows are wide."""
        return max(min(self.limit, MAX_BYTES // (4 * self._rows.shape[1])), 2)

    @property
    def full(self) -> bool:
        """Whether rows have been discarded."""
        return bool((self.floor > -np.inf).any())

    def counts(self) -> NDArray[np.intp]:
        """Return the number of kept negatives and positives."""
        positives = int(self._table[2, : self._n].sum())
        return np.array([self._n - positives, positives])

    def add(self, X: Any, signed: Float, first: int, decay: float) -> None:
        """Offer rows; the first one has the number ``first`` in the stream.

        ``decay`` is the increase of the log weight per row.
        """
        numbers = np.arange(first, first + len(signed))
        log_weight = np.log(np.abs(signed)) + decay * numbers
        priority = log_weight - np.log(_uniform(self.seed, numbers))
        positive = signed > 0.0
        if not len(self.centre):
            self.centre = _dense(X[:1])[0].astype(np.float64)
        chosen = priority > self.floor[positive.astype(np.intp)]
        table = np.array([priority, log_weight, positive, numbers])
        # In portions, so that one large chunk takes no more memory than small ones.
        step, chosen = max(self.capacity // _SLACK, 64), np.flatnonzero(chosen)
        for start in range(0, len(chosen), step):
            portion = chosen[start : start + step]
            self._append(_dense(X[portion]), table[:, portion])
            if self._n >= self.capacity + step:
                self.prune()

    def _append(self, rows: Any, table: Float) -> None:
        end = self._n + len(rows)
        if end > len(self._rows):
            size = max(end, min(2 * end, self.capacity + self.capacity // _SLACK + 64))
            kept, known = self._rows, self._table
            self._rows = np.empty((size, kept.shape[1]), np.float32)
            self._table = np.empty((4, size))
            self._rows[: self._n] = kept[: self._n]
            self._table[:, : self._n] = known[:, : self._n]
        with np.errstate(over="ignore"):
            centred = np.clip(rows - self.centre, -_MAX, _MAX)
        self._rows[self._n : end] = centred
        self._table[:, self._n : end] = table
        self._n = end

    def prune(self) -> None:
        """Discard the rows beyond the capacity."""
        half, counts = self.capacity // 2, self.counts()
        if self._n <= self.capacity:
            return
        priority, _, positive, _ = self._table[:, : self._n]
        kept = np.ones(self._n, bool)
        for side in (0, 1):
            most = self.capacity - min(int(counts[1 - side]), half)
            members = np.flatnonzero(positive == side)
            if (excess := len(members) - most) > 0:
                values = priority[members]
                self.floor[side] = np.partition(values, excess - 1)[excess - 1]
                kept[members[values <= self.floor[side]]] = False
        self._n = int(kept.sum())
        self._rows[: self._n] = self._rows[: len(kept)][kept]
        self._table[:, : self._n] = self._table[:, : len(kept)][:, kept]

    def sample(self) -> Sample:
        """Return a copy of the kept rows, with their weights."""
        self.prune()
        _, log_weight, positive, number = self._table[:, : self._n]
        log_weight = np.maximum(log_weight, self.floor[positive.astype(np.intp)])
        weight = np.ones(self._n)
        for side in (positive > 0.0, positive == 0.0):  # a class may be long ago
            found = np.exp(log_weight[side] - log_weight[side].max(initial=-np.inf))
            weight[side] = found / max(found.sum(), 1.0) * len(found)
        return Sample(
            self._rows[: self._n].copy(),
            positive > 0.0,
            weight,
            number.copy(),
            self.centre.copy(),
        )

    def resize(self, n_features: int) -> None:
        """Change the number of features; new features have been zero so far."""
        kept = min(n_features, self._rows.shape[1])
        rows = np.zeros((self._n, n_features), np.float32)
        rows[:, :kept] = self._rows[: self._n, :kept]
        self._rows, self._table = rows, self._table[:, : self._n].copy()
        if len(self.centre):
            centre = np.zeros(n_features)
            centre[:kept] = self.centre[:kept]
            self.centre = centre

    def arrays(self) -> Arrays:
        """Return the arrays that a model file stores."""
        self.prune()
        return {
            "rows": self._rows[: self._n].copy(),
            "table": self._table[:, : self._n].copy(),
            "floor": np.maximum(self.floor, -_MAX),  # JSON-like readers reject -inf
            "centre": self.centre.copy(),
            "settings": np.array([self.limit, self.seed], np.float64),
        }

    @classmethod
    def restored(cls, arrays: Arrays, n_features: int) -> Self:
        """Return the reservoir of stored arrays; raise a ValueError if invalid."""
        rows, table, floor = arrays["rows"], arrays["table"], arrays["floor"]
        centre, settings = arrays["centre"], arrays["settings"]
        n = len(rows)
        shapes = [a.shape for a in (rows, table, floor, settings)]
        if shapes != [(n, n_features), (4, n), (2,), (2,)]:
            raise ValueError("the arrays of the reservoir do not match each other.")
        if centre.shape not in ((0,), (n_features,)) or (n and not len(centre)):
            raise ValueError(f"'centre' of the reservoir has shape {centre.shape}.")
        if rows.dtype != np.float32 or not all(
            np.isfinite(a).all() for a in (rows, table, floor, centre, settings)
        ):
            raise ValueError("the reservoir has values that are not finite float32.")
        in_range = (settings >= 0.0) & (settings < 2.0**31)
        if not np.isin(table[2], (0.0, 1.0)).all() or not in_range.all():
            raise ValueError("the reservoir has an invalid class, size or seed.")
        limit, seed = (int(value) for value in settings)
        found = cls(n_features, limit, seed)
        found._n, found._rows, found._table = n, rows.copy(), table.copy()
        found.centre = np.array(centre)
        found.floor = np.where(floor <= -_MAX, -np.inf, floor)
        return found


def _uniform(seed: int, numbers: NDArray[np.int64]) -> Float:
    """Return a number in (0, 1) for each row number."""
    start = split_mix(np.array([seed], np.uint64))
    bits = split_mix(numbers.astype(np.uint64) ^ start) >> np.uint64(11)
    return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-53)


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


Ints = NDArray[np.int64]

NUMBER = -1  # in place of the category of a feature that is a number
MAX_FEATURES = 2000  # columns; trees are not grown on wider rows
_MAX_ONE_HOT = 50  # categories of a column without codes, in wide rows
_MAX_VALUES = 1 << 22  # of the rows that are converted at a time


class TreeColumns:
    """Conversion of features to columns: the other features, then codes.

    The code of a row without a feature of the column (a missing value or an unknown
    category) is the number of its features.

    Parameters
    ----------
    category : ndarray of shape (n_features,)
        For each feature, the number of the categorical column that it is a one-hot
        feature of; -1 for other features.
    """

    def __init__(self, category: Ints) -> None:
        self.category = category
        sizes = np.bincount(category + 1, minlength=1)
        large = (category != NUMBER) & (sizes[category + 1] > _MAX_ONE_HOT)
        self._coded = large & (len(category) > MAX_FEATURES)
        found = category[self._coded]
        columns, owner = np.unique(found, return_inverse=True)
        levels = sizes[columns + 1]
        order = np.argsort(owner, kind="stable")
        self._code = np.zeros(len(category), np.int64)
        first = np.repeat(np.cumsum(levels) - levels, levels)
        self._code[np.flatnonzero(self._coded)[order]] = np.arange(len(found)) - first
        n_kept = len(category) - len(found)
        self._place = np.cumsum(~self._coded) - 1
        self._place[self._coded] = n_kept + owner
        # Number of codes of each column; 0 for numbers.
        self.levels = np.append(np.zeros(n_kept, np.int64), levels + 1)

    @classmethod
    def numbers(cls, n_features: int) -> Self:
        """Return the columns of rows without categories: all features."""
        return cls(np.full(n_features, NUMBER))

    @classmethod
    def restored(cls, arrays: Arrays, n_features: int) -> Self:
        """Return the columns of stored arrays; raise a ValueError if invalid."""
        if "category" not in arrays:
            return cls.numbers(n_features)
        category = whole_numbers("category", arrays["category"], NUMBER, n_features)
        if category.shape != (n_features,):
            raise ValueError(
                f"'category' has shape {category.shape}, expected ({n_features},)."
            )
        return cls(category)

    def arrays(self) -> Arrays:
        """Return the arrays that a model file stores; none without codes."""
        return {"category": self.category} if self.has_codes else {}

    @property
    def has_codes(self) -> bool:
        """Whether any column has codes."""
        return bool(self._coded.any())

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.levels)

    def blocks(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows, and their columns; bounded in memory."""
        n = X.shape[0]
        step = max(_MAX_VALUES // self.width, 1) if self.has_codes else max(n, 1)
        for start in range(0, n, step):
            some = slice(start, min(start + step, n))
            yield some, self._transform(X[some]) if self.has_codes else X

    def _transform(self, X: Any) -> Float:
        rows = sparse.coo_array(X)
        i, j = rows.coords
        out = np.zeros((X.shape[0], self.width))
        out[:, self.levels > 0] = self.levels[self.levels > 0] - 1
        used = rows.data != 0.0
        i, j, values = i[used], j[used], rows.data[used]
        out[i, self._place[j]] = np.where(self._coded[j], self._code[j], values)
        return out


class ColumnForest(NamedTuple):
    """Trees on columns and on target-encoded codes."""

    trees: Forest
    levels: Ints  # codes of each column, 0 for numbers
    encoding: TargetEncoding | None = None

    def scores(self, columns: Any) -> Float:
        """Return the sum of the trees' values for each row of columns."""
        return self.trees.scores(with_terms(columns, self.levels, self.encoding))

    def arrays(self) -> Arrays:
        """Return the arrays to store."""
        terms = {} if self.encoding is None else self.encoding.arrays()
        named = {f"terms.{name}": array for name, array in terms.items()}
        return {**self.trees.arrays(), **named}

    @classmethod
    def restored(cls, arrays: Arrays, levels: Ints) -> Self:
        """Return the trees of stored arrays; raise a ValueError if invalid."""
        encoding, width = None, len(levels)
        if terms := below("terms", arrays):
            encoding = TargetEncoding.restored(terms, category_sizes(levels))
            width += 2 * len(encoding.ends)
        return cls(Forest.restored(arrays, width), levels, encoding)


class TreeScore(NamedTuple):
    """The score of trees as a function of features."""

    columns: TreeColumns
    forest: ColumnForest

    def scores(self, X: Any) -> Float:
        """Return the scores of rows."""
        found = (self.forest.scores(part) for _, part in self.columns.blocks(X))
        return np.concatenate([np.zeros(0), *found])


NAME = "LightGBM"
SHARES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])  # weight of the trees in each mixture
_SETTINGS = Boosting(learning_rate=0.1, min_leaf=20, native_up_to=0, encode_above=0)
_FIRST_TREES, _MAX_TREES = 50, 300
_STEPS = 10  # numbers of trees that are compared, as fractions of all trees
_MORE_TREES = 1.2, 2.0  # factor for the next refit; if all trees were the best number
_FIRST_REFIT = 1000  # rows
_MIN_PER_CLASS = 20  # rows of a refit
_GROWTH, _GROWTH_FULL = 1.5, 2.0  # of the rows between refits
_HALF_LIVES = 4  # capacity of the reservoir, in half-lives
_OLD_TREES = 0.25
_FINAL_GROWTH = 1.1  # of the rows, for a last refit at the end of the stream


class TreeMember:
    """Boosted trees that take part in a stream; inactive for wide rows."""

    def __init__(
        self, columns: TreeColumns, capacity: int, half_life: float | None, seed: int
    ) -> None:
        if half_life is not None:
            recent = max(int(_HALF_LIVES * half_life), _FIRST_REFIT)
            capacity = min(capacity, recent)
        self.columns = columns
        self.reservoir = Reservoir(columns.width, capacity, seed)
        self.half_life = half_life
        self.forest: ColumnForest | None = None
        self.mixtures = Race.of(len(SHARES))
        self.refits = 0  # taken over
        self.last_refit = 0.0  # rows when it started
        self.active = columns.width <= MAX_FEATURES
        self._refit: _Refit | None = None  # not taken over yet

    @property
    def share(self) -> float:
        """Weight of the trees in the blend."""
        # With one block there is no standard error.
        if (
            self.forest is None
            or not self.mixtures.totals[0] ** 2 > 1.5 * (self.mixtures.totals[1])
        ):
            return 0.0
        return float(self.mixtures.weights() @ SHARES)

    def score_and_learn(self, X: Any, signed: Float, first: int) -> Float:
        """Score rows by the present trees, then offer them to the reservoir."""
        scores = np.zeros(len(signed))
        if not self.active:
            return scores
        decay = np.log(2.0) / self.half_life if self.half_life else 0.0
        for some, columns in self.columns.blocks(X):
            if self.forest is not None:
                scores[some] = self.forest.scores(columns)
            self.reservoir.add(columns, signed[some], first + some.start, decay)
        return scores

    def scorer(self) -> TreeScore | None:
        """Return the present trees, which later training does not change."""
        return None if self.forest is None else TreeScore(self.columns, self.forest)

    def add_block(self, linear: Float, trees: Float, signed: Float) -> None:
        """Compare the mixtures on a block of scaled scores."""
        if self.forest is not None:
            mixtures = np.outer(1.0 - SHARES, linear) + np.outer(SHARES, trees)
            aucs, information = block_aucs(mixtures, signed)
            self.mixtures.add_block(aucs, information, len(signed))

    def end_block(self, rows: float, length: int, tolerance: float) -> None:
        """Take over a refit, stop useless trees, start the next refit."""
        if not self.active:
            return
        if self.half_life is not None:
            self.mixtures.fade(0.5 ** (length / self.half_life))
        elif self._useless(tolerance):
            return self.stop()
        if self._refit is not None:
            self._take_over()
        if rows >= self._next_refit() and self._enough():
            self._start_refit(rows)

    def finish(self, rows: float) -> None:
        """Refit the trees to the end of the stream, if it has grown since."""
        if self.active and self._refit is not None:
            self._take_over()
        if self.forest is not None and rows >= _FINAL_GROWTH * self.last_refit:
            self._start_refit(rows)
            self._take_over()

    def stop(self) -> None:
        """Stop for good, and free the memory."""
        width = self.reservoir.centre.size or 1
        self.active, self.forest, self._refit = False, None, None
        self.reservoir = Reservoir(width, self.reservoir.limit, self.reservoir.seed)

    def resize(self, n_features: int) -> None:
        """Change the number of features; with too many, stop."""
        if self.columns.has_codes:
            raise ValueError("the features of a table are fixed by its encoder.")
        self.columns = TreeColumns.numbers(n_features)
        if n_features > MAX_FEATURES:
            self.stop()
        if self.active:
            self.reservoir.resize(n_features)

    def _start_refit(self, rows: float) -> None:
        sample = self.reservoir.sample()
        n_trees = _FIRST_TREES
        if self.forest is not None:
            n_trees = next_n_trees(self.forest, sample, self.last_refit)
        self.last_refit = rows
        seed = (self.reservoir.seed + self.refits) % (2**31 - 1)
        self._refit = _Refit(sample, self.columns.levels, n_trees, seed)

    def _take_over(self) -> None:
        assert self._refit is not None
        self.forest, self._refit = self._refit.result(), None
        self.refits += 1
        self.mixtures.fade(_OLD_TREES)

    def _next_refit(self) -> float:
        """Return the number of rows at which the next refit is due."""
        last = self.last_refit
        if not last:
            return _FIRST_REFIT
        if self.half_life is not None:
            return min(_GROWTH * last, last + max(self.half_life, _FIRST_REFIT))
        return last * (_GROWTH_FULL if self.reservoir.full else _GROWTH)

    def _enough(self) -> bool:
        return bool(self.reservoir.counts().min() >= _MIN_PER_CLASS)

    def _useless(self, tolerance: float) -> bool:
        """Return whether no mixture is better than the linear members.

        Trees of more rows are better, so they are stopped with a full reservoir only.
        """
        losers = self.mixtures.losers(tolerance)
        return self.reservoir.full and len(losers) == len(SHARES) - 1

    def __getstate__(self) -> dict[str, Any]:
        if self._refit is not None:
            self._refit.result()
        return vars(self)

    def arrays(self) -> Arrays:
        """Return the arrays that a model file stores; wait for a refit."""
        forests = {"forest": self.forest}
        if self._refit is not None:
            forests["refit"] = self._refit.result()
        parts = {"reservoir": self.reservoir, "mixtures": self.mixtures, **forests}
        found = {
            f"{part}.{name}": array
            for part, owner in parts.items()
            if owner is not None
            for name, array in owner.arrays().items()
        }
        progress = [self.active, self.refits, self.last_refit]
        found |= self.columns.arrays()
        return {**found, "progress": np.array(progress, np.float64)}

    @classmethod
    def restored(cls, arrays: Arrays, n_features: int, half_life: float | None) -> Self:
        """Return the member of stored arrays; raise a ValueError if invalid."""
        progress = arrays["progress"]
        valid = (progress >= 0.0) & np.isfinite(progress)
        if progress.shape != (3,) or not valid.all():
            raise ValueError(f"'progress' of the trees is {progress.tolist()}.")
        columns = TreeColumns.restored(arrays, n_features)
        member = cls(columns, 2, half_life, 0)
        member.active, member.refits = bool(progress[0]), int(progress[1])
        member.last_refit = float(progress[2])
        member.mixtures = Race.restored(len(SHARES), below("mixtures", arrays))
        kept = below("reservoir", arrays)
        width = columns.width if member.active else kept["rows"].shape[-1]
        member.reservoir = Reservoir.restored(kept, width)
        if forest := below("forest", arrays):
            member.forest = ColumnForest.restored(forest, columns.levels)
        if refit := below("refit", arrays):
            found = ColumnForest.restored(refit, columns.levels)
            member._refit = _Refit.finished(found)
        return member


class _Refit:
    """Trees that are grown in a thread."""

    def __init__(self, sample: Sample, levels: Ints, n_trees: int, seed: int) -> None:
        self._forest: ColumnForest | None = None
        self._error: BaseException | None = None
        self._thread: Thread | None = Thread(
            target=self._grow, args=(sample, levels, n_trees, seed)
        )
        self._thread.start()

    @classmethod
    def finished(cls, forest: ColumnForest) -> Self:
        """Return a refit that has ended."""
        refit = cls.__new__(cls)
        refit._forest, refit._error, refit._thread = forest, None, None
        return refit

    def _grow(self, sample: Sample, levels: Ints, n_trees: int, seed: int) -> None:
        try:
            self._forest = fit_forest(sample, levels, n_trees, seed)
        except BaseException as error:  # raised in the thread that takes the result
            self._error = error

    def result(self) -> ColumnForest:
        """Wait for the trees and return them."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            raise self._error
        assert self._forest is not None
        return self._forest


def fit_forest(sample: Sample, levels: Ints, n_trees: int, seed: int) -> ColumnForest:
    """Fit boosted trees to a sample, with equal mean weights of the classes.

    They rank slightly better than trees with weights that undo the balance.
    """
    coded = levels > 0
    rows, centre = sample.rows.copy(), np.where(coded, 0.0, sample.centre)
    rows[:, coded] += sample.centre[coded].astype(np.float32)  # codes are not centred
    fold = np.arange(len(rows)), np.arange(0)
    settings = replace(_SETTINGS, most_rounds=n_trees)
    (model,), _ = settings.fit_folds(
        rows, levels, sample.positive, sample.weight, [fold], seed
    )
    n_terms = 2 * np.count_nonzero(coded)  # log-odds and counts follow the columns
    trees = _shifted(model.forest_, np.append(centre, np.zeros(n_terms)))
    return ColumnForest(trees, levels, model.encoding_)


def next_n_trees(forest: ColumnForest, sample: Sample, fitted: float) -> int:
    """Return the number of trees for the next refit.

    The present trees were fitted after ``fitted`` rows of the stream.
    """
    later = sample.number >= fitted
    signed = np.where(sample.positive, sample.weight, -sample.weight)[later]
    rows = sample.rows[later] + sample.centre
    trees = forest.trees
    rows = with_terms(rows, forest.levels, forest.encoding)
    parts = np.array_split(trees.roots, min(_STEPS, len(trees.roots)))
    staged = np.cumsum([trees._replace(roots=p).scores(rows) for p in parts], axis=0)
    aucs, information = block_aucs(staged, signed)
    best = int(np.argmax(aucs)) + 1 if information else len(parts)
    n_trees = sum(map(len, parts[:best])) * _MORE_TREES[int(best == len(parts))]
    return int(min(max(n_trees, _STEPS), _MAX_TREES))


def _shifted(forest: Forest, centre: Float) -> Forest:
    """Return the trees for rows that are not centred."""
    splits = (forest.feature != LEAF) & (forest.kind != CATEGORICAL)
    threshold, offset = forest.number[splits], centre[forest.feature[splits]]
    shifted = threshold + offset
    # Rounding up could move a row that is equal to the centre to the other side.
    up = shifted - offset > threshold
    shifted[up] = np.nextafter(shifted[up], -np.inf)
    number = forest.number.copy()
    number[splits] = shifted
    return forest._replace(number=number)
