"""Cross-validation: folds, a path of penalties, AUCs; folds that keep copies together.

A copy of a test row among the training rows favours models that memorise rows, so
copies belong in one fold. But equal rows need not be copies. Where columns have few
values, equal rows are separate observations, and ordinary folds are right. The labels
distinguish the two: copies share a label, separate observations need not.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, check_cv

from aucmax.base.ranker import product
from aucmax.core.row_hashes import row_hashes
from aucmax.core.rows import Float, Index
from aucmax.metrics._ranking import split, weighted_win_fraction, win_fraction

# Labels of copies differ less often than this, relative to chance.
_MOST_DIFFERENT = 0.1


class Repeats(NamedTuple):
    """Groups of equal rows."""

    of: Index  # (n,) group of each row, numbered by first occurrence
    repeated: int  # rows that equal an earlier one
    copies: bool  # whether equal rows look like copies, not separate observations

    @classmethod
    def among(cls, X: Any, positive: NDArray[np.bool_]) -> "Repeats":
        """Find equal rows, dense or CSR."""
        _, first, of = np.unique(row_hashes(X), return_index=True, return_inverse=True)
        number = np.empty(len(first), np.int64)
        number[np.argsort(first)] = np.arange(len(first))
        of, repeated = number[of], len(positive) - len(first)
        copies = repeated > 0 and _label_difference(of, positive) < _MOST_DIFFERENT
        return cls(of, repeated, copies)


def _label_difference(of: Index, positive: NDArray[np.bool_]) -> float:
    """Return how often labels of equal rows differ, relative to chance."""
    sizes, n_pos = np.bincount(of), np.bincount(of, positive)
    several = sizes > 1
    sizes, n_pos = sizes[several], n_pos[several]
    # The share of equal rows that have the other label; mean over rows.
    differ = float(np.sum(2.0 * n_pos * (sizes - n_pos) / (sizes - 1))) / sizes.sum()
    rate = n_pos.sum() / sizes.sum()
    by_chance = 2.0 * rate * (1.0 - rate)
    return differ / by_chance if by_chance else 0.0


def dealt(
    count: int,
    positive: NDArray[np.bool_],
    of: Index,
    seed: int | None = None,
    times: int = 1,
) -> list[tuple[Index, Index]] | None:
    """Return (train, test) of at most ``count`` folds that keep equal rows together.

    Folds are drawn from the distinct rows, shuffled if there is a seed, and repeated
    ``times`` times. None if a class has a single distinct row.
    """
    label = np.bincount(of, positive) > 0.0
    count = min(count, int(label.sum()), int((~label).sum()))
    if count < 2:
        return None
    splitter = StratifiedKFold(count, shuffle=seed is not None, random_state=seed)
    if times > 1:
        splitter = RepeatedStratifiedKFold(
            n_splits=count, n_repeats=times, random_state=seed
        )
    folds = []
    for _, test in splitter.split(np.zeros(len(label)), label):
        in_test = np.isin(np.arange(len(label)), test)[of]
        folds.append((np.flatnonzero(~in_test), np.flatnonzero(in_test)))
    return folds


_SCORES = 1 << 23  # scores of a fold at a time: 64 MB


def folds(cv: Any, X: Any, signed: Float, single: str) -> list[tuple[Index, Index]]:
    """Return (train, test) of each fold.

    If ``cv`` is a number, rows of weight zero are in no fold, and copies of a row are
    in one fold (see :mod:`aucmax.base.folds`). ``single`` is the estimator to
    recommend if there are too few rows.
    """
    present = np.flatnonzero(signed)
    positive = signed[present] > 0.0
    if isinstance(cv, Integral):
        fewest = int(min(positive.sum(), (~positive).sum()))
        if fewest < 2:
            raise ValueError(
                f"Cross-validation needs two rows of each class, but one class has "
                f"n_samples=1 of {len(present)}; use {single}."
            )
        equal = Repeats.among(X if signed.all() else X[present], positive)
        splits = dealt(int(cv), positive, equal.of) if equal.copies else None
        if splits is None:
            stratified = StratifiedKFold(min(int(cv), fewest))
            splits = list(stratified.split(np.zeros(len(present)), positive))
        return [(present[train], present[test]) for train, test in splits]
    splitter = check_cv(cv, signed > 0.0, classifier=True)
    return list(splitter.split(X, signed > 0.0))


def left_out(signed: Float, test: Index) -> Index:
    """Return the test rows of nonzero weight; raise an error if a class is missing."""
    test = test[signed[test] != 0.0]
    for sign, kind in ((1.0, "positive"), (-1.0, "negative")):
        if not (sign * signed[test] > 0.0).any():
            raise ValueError(f"A fold has no {kind} row: its AUC is not defined.")
    return test


def part(X: Any, signed: Float, test: Index) -> tuple[Any, Float]:
    """Return the test rows of nonzero weight, and their signed weights."""
    test = left_out(signed, test)
    return X[test], signed[test]


def penalties(l2s: Any, path: Callable[[int], Float]) -> Float:
    """Return the requested penalties, decreasing; of a number, ``path`` of it."""
    if isinstance(l2s, Integral):
        return path(int(l2s))
    values = np.sort(np.asarray(l2s, dtype=np.float64).ravel())[::-1]
    if not len(values) or not ((values >= 0.0) & (values < np.inf)).all():
        raise ValueError(
            f"l2s={l2s!r}: expected at least one penalty, finite and not negative."
        )
    return values


def area(score: Float, signed: Float, weighted: bool) -> float:
    """Return the AUC of scores, for labels and weights in ``signed``."""
    positive = signed > 0.0
    pos, neg = split(score, positive)
    if not weighted:
        return win_fraction(pos, neg)
    weight = np.abs(signed)
    return weighted_win_fraction(pos, neg, weight[positive], weight[~positive])


def areas(X: Any, signed: Float, W: Float, weighted: bool) -> Float:
    """Return the AUC of each column of ``W`` on the rows of ``X``."""
    group = max(_SCORES // max(len(signed), 1), 1)
    aucs = np.empty(W.shape[1])
    for start in range(0, W.shape[1], group):
        scores = np.ascontiguousarray(product(X, W[:, start : start + group]).T)
        for k, score in enumerate(scores, start):
            aucs[k] = area(score, signed, weighted)
    return aucs


def path_table(l2s: Float, scores: Float, W: Float) -> dict[str, Float]:
    """Return the columns of ``LeastSquaresAUCCV.path_``."""
    n_folds = scores.shape[1]
    deviation = scores.std(axis=1, ddof=1) if n_folds > 1 else np.nan
    return {
        "l2": l2s,
        "auc": scores.mean(axis=1),
        "error": deviation / np.sqrt(n_folds) + np.zeros(len(l2s)),
        "norm": np.linalg.norm(W, axis=1),
    }


def drawn(signed: Float, size: int, rng: np.random.RandomState) -> Index:
    """Draw ``size`` rows; of a rare class all rows, up to half of ``size``.

    The AUC does not depend on the class sizes, but its accuracy does.
    """
    positive, negative = np.flatnonzero(signed > 0.0), np.flatnonzero(signed < 0.0)
    n_pos = min(len(positive), max(size // 2, size - len(negative)))
    n_neg = min(size - n_pos, len(negative))
    pos = rng.choice(positive, n_pos, replace=False)
    neg = rng.choice(negative, n_neg, replace=False)
    return np.sort(np.concatenate([pos, neg]))
