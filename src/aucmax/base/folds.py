"""Cross-validation of a penalty: folds, a path of penalties, AUCs."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from aucmax.base.duplicate_rows import Repeats, dealt
from aucmax.base.ranker import product
from aucmax.core.rows import Float, Index
from aucmax.metrics.pair_counts import split, weighted_win_fraction, win_fraction

_SCORES = 1 << 23  # scores of a fold at a time: 64 MB


def folds(cv: Any, X: Any, signed: Float, single: str) -> list[tuple[Index, Index]]:
    """Return (train, test) of each fold.

    If ``cv`` is a number, rows of weight zero are in no fold, and copies of a row are
    in one fold (see :mod:`aucmax.base.duplicate_rows`). ``single`` is the estimator to
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
