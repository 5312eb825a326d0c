"""What choosing a penalty by cross-validation takes: folds, a path, areas."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from aucmax.base.duplicate_rows import Repeats, dealt
from aucmax.base.ranker import product
from aucmax.core.rows import Float
from aucmax.metrics.ranking import split, weighted_win_fraction, win_fraction

Index = NDArray[np.int64]

_SCORES = 1 << 23  # of a fold at a time: 64 MB


def folds(cv: Any, X: Any, signed: Float, single: str) -> list[tuple[Index, Index]]:
    """Return (train, test) of each fold; with a number, weight zero is in none.

    Copies of a row are in one fold, see :mod:`aucmax.base.duplicate_rows`. ``single``
    is the estimator to recommend where there are too few rows.
    """
    present = np.flatnonzero(signed)
    positive = signed[present] > 0.0
    if isinstance(cv, Integral):
        fewest = int(min(positive.sum(), (~positive).sum()))
        if fewest < 2:
            raise ValueError(
                f"Cross-validation needs two rows of each class, but a class has "
                f"n_samples=1 of {len(present)}; use {single}."
            )
        equal = Repeats.among(X if signed.all() else X[present], positive)
        found = dealt(int(cv), positive, equal.of) if equal.copies else None
        if found is None:
            plain = StratifiedKFold(min(int(cv), fewest))
            found = list(plain.split(np.zeros(len(present)), positive))
        return [(present[train], present[test]) for train, test in found]
    splitter = check_cv(cv, signed > 0.0, classifier=True)
    return list(splitter.split(X, signed > 0.0))


def left_out(signed: Float, test: Index) -> Index:
    """Return the rows of a fold that count."""
    test = test[signed[test] != 0.0]
    some = signed[test]
    for side, kind in ((some > 0.0, "positive"), (some < 0.0, "negative")):
        if not side.any():
            raise ValueError(f"A fold has no {kind} row: its AUC is not defined.")
    return test


def part(X: Any, signed: Float, test: Index) -> tuple[Any, Float]:
    """Return the rows of a fold that count, and their signed weights."""
    test = left_out(signed, test)
    return X[test], signed[test]


def penalties(l2s: Any, spread: Callable[[int], Float]) -> Float:
    """Return the penalties that are asked for, falling; a number is spread."""
    if isinstance(l2s, Integral):
        return spread(int(l2s))
    found = np.sort(np.asarray(l2s, dtype=np.float64).ravel())[::-1]
    bad = ~((found >= 0.0) & (found < np.inf))
    if bad.any() or not len(found):
        raise ValueError(
            f"l2s={l2s!r}: penalties must be finite and not negative, and "
            "there must be at least one."
        )
    return found


def area(score: Float, signed: Float, weighted: bool) -> float:
    """Return the AUC of some scores."""
    positive = signed > 0.0
    pos, neg = split(score, positive)
    if not weighted:
        return win_fraction(pos, neg)
    weight = np.abs(signed)
    return weighted_win_fraction(pos, neg, weight[positive], weight[~positive])


def areas(X: Any, signed: Float, W: Float, weighted: bool) -> Float:
    """Return the AUC of each column of ``W`` on the rows of ``X``."""
    group = max(_SCORES // max(len(signed), 1), 1)
    found = np.empty(W.shape[1])
    for start in range(0, W.shape[1], group):
        scores = np.ascontiguousarray(product(X, W[:, start : start + group]).T)
        for k, score in enumerate(scores, start):
            found[k] = area(score, signed, weighted)
    return found


def path_table(l2s: Float, scores: Float, W: Float) -> dict[str, Float]:
    """Return a path, ready to plot: see ``LeastSquaresAUCCV.path_``."""
    n_folds = scores.shape[1]
    deviation = scores.std(axis=1, ddof=1) if n_folds > 1 else np.nan
    return {
        "l2": l2s,
        "auc": scores.mean(axis=1),
        "error": deviation / np.sqrt(n_folds) + np.zeros(len(l2s)),
        "norm": np.linalg.norm(W, axis=1),
    }


def drawn(signed: Float, size: int, rng: np.random.RandomState) -> Index:
    """Return ``size`` rows; of a rare class as many as there are, up to half.

    An AUC does not depend on how many rows a class has; how well it is known does.
    """
    positive, negative = np.flatnonzero(signed > 0.0), np.flatnonzero(signed < 0.0)
    n_pos = min(len(positive), max(size // 2, size - len(negative)))
    some = (
        rng.choice(positive, n_pos, replace=False),
        rng.choice(negative, min(size - n_pos, len(negative)), replace=False),
    )
    return np.sort(np.concatenate(some))
