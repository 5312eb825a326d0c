"""Explanations of a blend: importance of columns, reasons for a score, ``explain``.

The importance of a column is the decrease of AUC when its values are shuffled, measured
on held-out rows. A column of a table can have several features (one for each category,
or an indicator of missing values); they are shuffled together. Reasons are the
contributions of the columns to the score of a row.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.base.folds import drawn
from aucmax.blend.combine import BlendLeaderboardEntry
from aucmax.blend.crossfit import Fold
from aucmax.blend.duplicates import DuplicateCounts
from aucmax.core.rows import Float, Index
from aucmax.metrics._ranking import decimals, with_interval
from aucmax.metrics.auc import AUCInterval
from aucmax.metrics.comparison import auc_test
from aucmax.tables.structure import Hint

_MAX_ROWS = 500  # per fold
_BLOCK = 1 << 22  # values of shuffled rows that are scored at a time
_Z = NormalDist().inv_cdf(0.975)


class Importance(NamedTuple):
    """Permutation importance of a column."""

    column: str
    drop: float  # decrease of AUC when the column is shuffled
    low: float  # confidence interval (95 %)
    high: float


class HeldOutSample(NamedTuple):
    """Rows that the models of a fold were not trained on."""

    fold: int
    X: Any
    positive: NDArray[np.bool_]
    seed: int


def held_out_samples(
    folds: Sequence[Fold], X: Any, positive: NDArray[np.bool_], seed: int
) -> list[HeldOutSample]:
    """Return some test rows of each fold that has any."""
    samples = []
    for k, fold in enumerate(folds):
        test = fold.test
        if not len(test):
            continue
        if len(test) > _MAX_ROWS:
            signs = np.where(positive[test], 1.0, -1.0)
            test = test[drawn(signs, _MAX_ROWS, np.random.RandomState(seed + k))]
        samples.append(HeldOutSample(k, X[test], positive[test], seed + k))
    return samples


def importances(
    samples: Sequence[HeldOutSample],
    score: Callable[[Any, int], Float],
    columns: dict[str, Index],
) -> list[Importance]:
    """Return the permutation importance of each column.

    ``score`` returns the scores of rows by the models of a fold; ``columns`` maps the
    name of a column to its features.
    """
    drops, variances = np.zeros(len(columns)), np.zeros(len(columns))
    groups = list(columns.values())
    for fold, sample, labels, seed in samples:
        rng = np.random.RandomState(seed)
        stack = sparse.vstack if sparse.issparse(sample) else np.concatenate
        base = score(sample, fold)
        at_once = max(_BLOCK // max(sample.size, 1), 1)
        for start in range(0, len(groups), at_once):
            shuffled = [
                _shuffle(sample, features, rng)
                for features in groups[start : start + at_once]
            ]
            scores = score(stack(shuffled), fold).reshape(len(shuffled), len(labels))
            for j, changed in enumerate(scores, start):
                comparison = auc_test(labels, base, changed)
                drops[j] += comparison.difference
                variances[j] += comparison.se**2
    return [
        Importance(name, float(drop), float(drop - half), float(drop + half))
        for name, drop, half in zip(
            columns,
            drops / len(samples),
            _Z * np.sqrt(variances) / len(samples),
            strict=True,
        )
    ]


def features_by_name(names: Sequence[str]) -> dict[str, Index]:
    """Return the features of each column; ``names`` has the column of each feature."""
    found: dict[str, list[int]] = {}
    for feature, name in enumerate(names):
        found.setdefault(name, []).append(feature)
    return {name: np.array(features) for name, features in found.items()}


def _shuffle(X: Any, features: Index, rng: np.random.RandomState) -> Any:
    """Return a copy of the rows with the values of ``features`` permuted."""
    order = rng.permutation(X.shape[0])
    if sparse.issparse(X):
        chosen = np.zeros(X.shape[1], X.dtype)
        chosen[features] = 1.0
        mask = sparse.diags_array(chosen)
        return sparse.csr_array(X - X @ mask + X[order] @ mask)
    shuffled = X.copy()
    shuffled[:, features] = X[order][:, features]
    return shuffled


_SCORED_VALUES = 1 << 22  # values that are scored at once
BACKGROUND = 30  # rows whose values replace those of a column
WIDEST = 1 << 18  # features of rows with a background


class Reason(NamedTuple):
    """The contribution of a column to the score of a row."""

    column: str
    contribution: float  # in log-odds; above zero for the positive class


def typical_rows(
    X: Any, columns: Mapping[str, NDArray[np.int64]], seed: int = 0
) -> Float | None:
    """Return evenly spaced rows of X, each column shuffled independently.

    None if there are very many features.
    """
    n, width = X.shape
    if width > WIDEST:
        return None
    some = X[np.linspace(0, n - 1, min(n, BACKGROUND)).astype(np.intp)]
    rows = np.array(some.toarray() if sparse.issparse(some) else some, np.float64)
    rng = np.random.RandomState(seed)
    for features in columns.values():
        rows[:, features] = rows[np.ix_(rng.permutation(len(rows)), features)]
    return rows


def contributions(
    X: Any,
    background: Float,
    columns: Mapping[str, NDArray[np.int64]],
    score: Callable[[Any], Float],
) -> Float:
    """Return the contribution of each column to each score, (rows, columns).

    It is the mean decrease of the score if the values of the column are replaced by
    those of a background row. ``columns`` maps a column to its features.
    """
    base = score(X)
    rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
    rebuilt = type(X) if sparse.issparse(X) else np.asarray
    found = np.zeros((rows.shape[0], len(columns)))
    at_once = max(_SCORED_VALUES // max(rows.size, 1), 1)
    for place, features in enumerate(columns.values()):
        if not (rows[:, features].any() or background[:, features].any()):
            continue  # words that these rows do not have
        total = np.zeros(rows.shape[0])
        for start in range(0, len(background), at_once):
            some = background[start : start + at_once]
            stack = np.tile(rows, (len(some), 1))
            stack[:, features] = np.repeat(some[:, features], len(rows), axis=0)
            total += score(rebuilt(stack)).reshape(len(some), -1).sum(axis=0)
        found[:, place] = base - total / len(background)
    return found


def largest(
    found: Float, columns: Mapping[str, NDArray[np.int64]], top: int
) -> list[list[Reason]]:
    """Return the columns with the largest contributions of each row."""
    names = list(columns)
    order = np.argsort(-np.abs(found), axis=1, kind="stable")[:, :top]
    return [
        [Reason(names[j], float(row[j])) for j in places if row[j] != 0.0]
        for row, places in zip(found, order.tolist(), strict=True)
    ]


_MAX_COLUMNS = 8  # that are named


def estimate(auc: AUCInterval, design: str) -> str:
    """Return the AUC, and what its interval promises.

    ``design`` is "time", "group" or "" for a plain table.
    """
    value, low, high = with_interval(*auc[:3])
    if not design:
        return (
            f"AUC {value}, 95 % confidence interval {low} to {high}, estimated on "
            "held-out rows"
        )
    what, where, blocks = {
        "time": ("a later period", "the last two blocks in time", "the blocks"),
        "group": ("other groups", "groups not trained on", "groups"),
    }[design]
    return (
        f"AUC {value} on {where}; 95 % prediction interval for {what} {low} to {high}, "
        f"if AUC goes on to vary as between {blocks}"
    )


def describe(
    classes: Sequence[Any],
    auc: AUCInterval,
    leaderboard: list[BlendLeaderboardEntry],
    importances: list[Importance],
    duplicates: DuplicateCounts,
    hints: Sequence[Hint],
    design: str,
) -> str:
    """Describe a fitted blend, one sentence or two per line.

    ``leaderboard`` and ``importances`` have the best entry first; ``design`` is as for
    :func:`estimate`.
    """
    negative, positive = classes
    best = leaderboard[0]
    by_weight = sorted(leaderboard, key=lambda entry: -entry.weight)
    members = ", ".join(
        f"{entry.member} {entry.weight:.0%} ({entry.rows:,} rows per model)"
        for entry in by_weight
        if entry.weight
    )
    value, low, high, _ = auc
    pairs = f"{value:.{decimals(low, high) - 2}%}"
    best_auc = "{} ({} to {})".format(*with_interval(*best[1:4]))
    lines = [
        f"It ranks rows of class {positive!r} above rows of class {negative!r}.",
        f"It ranks {pairs} of all pairs of a positive and a negative row correctly "
        f"({estimate(auc, design)}).",
        f"Members and their weights: {members}. The best single member is "
        f"{best.member}, with an AUC of {best_auc}.",
    ]
    significant = [column for column in importances if column.low > 0.0]
    if significant:
        named = ", ".join(
            f"{column.column} {column.drop:.4f}"
            for column in significant[:_MAX_COLUMNS]
        )
        lines.append(f"AUC decreases most when these columns are shuffled: {named}.")
    elif importances:
        lines.append("Shuffling any single column does not clearly decrease the AUC.")
    if duplicates.repeated:
        how = "equal rows share a fold"
        if duplicates.split:
            how = (
                f"{duplicates.split} rows were scored by models trained on an equal row"
            )
        lines.append(f"{duplicates.repeated} rows equal an earlier row; {how}.")
    return "\n".join([*lines, *map(str, hints)])


def results_html(
    auc: AUCInterval, leaderboard: list[BlendLeaderboardEntry], design: str
) -> str:
    """Return the AUC and the members of a blend as HTML, for notebooks."""
    lines = "".join(
        f"<tr><td style='text-align:left'>{escape(entry.member)}</td>"
        f"<td>{entry.auc:.4f}</td><td>{entry.low:.4f} to {entry.high:.4f}</td>"
        f"<td>{entry.weight:.0%}</td><td>{entry.seconds:.1f}</td></tr>"
        for entry in leaderboard
    )
    return (
        f"<p>AUC on held-out rows: {estimate(auc, design).removeprefix('AUC ')}.</p>"
        "<table><thead><tr><th style='text-align:left'>member</th><th>AUC</th>"
        "<th>95 % interval</th><th>weight</th><th>seconds</th></tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )
