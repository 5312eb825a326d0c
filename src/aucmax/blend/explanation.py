"""Text of ``AUCClassifier.explain``: AUC, members, columns, duplicate rows."""

from collections.abc import Sequence
from html import escape
from typing import Any

from aucmax.blend.combine import BlendLeaderboardEntry
from aucmax.blend.duplicates import DuplicateCounts
from aucmax.blend.importance import Importance
from aucmax.metrics._ranking import decimals, with_interval
from aucmax.metrics.auc import AUCInterval
from aucmax.tables.structure import Hint

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
