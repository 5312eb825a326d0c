"""Boosted trees in a stream: refits on a reservoir, and their weight in the blend.

Trees are refitted from scratch to a bounded sample of the stream
(:mod:`aucmax.stream.reservoir`). A refit starts at the end of a block and is taken over
at the end of the next one. In between it runs in a thread, so its duration does not
change the result.

Trees and linear members are compared by mixtures (1 - a) s + a t of the blended linear
score s and the score t of the trees, both in units of their scale, for a = 0, ¼, ½, ¾
and 1. A race (:class:`aucmax.stream.race.Race`) evaluates these mixtures on each block
before its rows are learnt. The weight of the trees is the mean of a, weighted by the
likelihood that a mixture is the best. After a refit, the results of earlier trees count
``_OLD_TREES`` times as much as before, since the new trees are better.

The number of trees of a refit is the best number of the trees before, on the kept rows
that have come since they were fitted. No rows are set aside for this.
"""

from dataclasses import replace
from threading import Thread
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.boosting import Boosting, with_terms
from aucmax.blend.forest import CATEGORICAL, LEAF, Forest
from aucmax.core.rows import Float
from aucmax.storage.state import below
from aucmax.stream.blocks import block_aucs
from aucmax.stream.race import Race
from aucmax.stream.reservoir import Reservoir, Sample
from aucmax.stream.tree_columns import (
    MAX_FEATURES,
    ColumnForest,
    Ints,
    TreeColumns,
    TreeScore,
)

Arrays = dict[str, NDArray[Any]]

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
