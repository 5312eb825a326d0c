"""Leaderboard of a race."""

from collections.abc import Sequence
from typing import NamedTuple

from aucmax.stream.race import Race


class StreamLeaderboardEntry(NamedTuple):
    """A line of ``AUCStream.leaderboard_``."""

    member: str
    rows: int  # evaluated
    auc: float  # progressive: on rows before they are learnt
    se: float  # standard error of the AUC
    behind: float  # AUC of the leader minus this AUC, on the same rows
    weight: float  # in the blend
    running: bool  # False if eliminated


def leaderboard(names: Sequence[str], race: Race) -> list[StreamLeaderboardEntry]:
    """Return the results of the members, running members and the leader first."""
    columns = (
        race.rows_seen().astype(int),
        race.means(),
        race.errors(),
        race.gaps(),
        race.weights(),
        race.running,
    )
    lines = zip(names, *(column.tolist() for column in columns), strict=True)
    entries = map(StreamLeaderboardEntry._make, lines)
    return sorted(entries, key=lambda entry: (not entry.running, entry.behind))
