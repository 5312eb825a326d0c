"""Leaderboard of a race."""

from collections.abc import Sequence
from typing import NamedTuple

from aucmax.stream.race import Race
from aucmax.stream.trees import NAME, TreeMember

BLEND = "blend"


class StreamLeaderboardEntry(NamedTuple):
    """A line of ``AUCStream.leaderboard_``."""

    member: str
    rows: int  # evaluated
    auc: float  # progressive: on rows before they are learnt
    se: float  # standard error of the AUC
    behind: float  # AUC of the leader minus this AUC, on the same rows
    weight: float  # in the blend
    running: bool  # False if eliminated


def leaderboard(
    names: Sequence[str],
    race: Race,
    blend: Race,
    trees: TreeMember | None,
    share: float,
) -> list[StreamLeaderboardEntry]:
    """Return the results of the blend and of its members, the leader first.

    ``share`` is the weight of the trees. The blend is compared with the best linear
    member. Trees are compared with the blend of the linear members, on the blocks since
    the first refit; if they are better, all other lines are behind by as much more.
    """
    columns = (
        race.rows_seen().astype(int),
        race.means(),
        race.errors(),
        race.gaps(),
        (1.0 - share) * race.weights(),
        race.running,
    )
    lines = zip(names, *(column.tolist() for column in columns), strict=True)
    entries = list(map(StreamLeaderboardEntry._make, lines))
    if trees is not None and trees.refits:
        entries = _with_trees(entries, trees, share)
    entries.sort(key=lambda entry: (not entry.running, entry.behind))
    if not blend.totals[0]:  # before the end of the first block
        return entries
    auc, se = float(blend.means()[0]), float(blend.errors()[0])
    best = min(e.behind for e in entries if e.running and e.member != NAME)
    behind = best + float(race.means()[race.running].max()) - auc
    own = int(blend.at[0]), auc, se, behind, 1.0, True
    return [StreamLeaderboardEntry(BLEND, *own), *entries]


def _with_trees(
    entries: list[StreamLeaderboardEntry], trees: TreeMember, share: float
) -> list[StreamLeaderboardEntry]:
    """Return the lines of linear members with their gap to the trees, and the trees."""
    mixtures = trees.mixtures
    mean, error = mixtures.means(), mixtures.errors()
    gap = float(mean[-1] - mean[0])
    if gap > 0.0 and trees.active:
        entries = [entry._replace(behind=entry.behind + gap) for entry in entries]
    own = float(mean[-1]), float(error[-1]), max(-gap, 0.0), share, trees.active
    rows = int(mixtures.at[0])
    return [*entries, StreamLeaderboardEntry(NAME, rows, *own)]
