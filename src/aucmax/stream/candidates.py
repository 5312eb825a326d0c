"""Members of AUCStream at the start of the race."""

import re
from typing import Any

from aucmax.online.oam import OAM
from aucmax.online.spam import SPAM
from aucmax.stream.members import Member

_FORGETTING_RATES = (4, 16)  # of the additional members with a half-life


def candidates(forgetful: bool) -> list[Member]:
    """Return all members before the race, cheapest first.

    docs/streams.md describes how they were chosen.
    """
    small = OAM(C=2.0, buffer_size=25)
    plain = OAM(C=5.0, average=False, buffer_size=10, precondition=False)  # for texts
    linear = (SPAM(), small, plain, OAM(C=6.0), OAM(C=60.0))
    members = [Member(_one_line(learner), learner) for learner in linear]
    if forgetful:  # it is not known how fast the stream will change
        for rate in _FORGETTING_RATES:
            name = f"{_one_line(OAM(C=6.0))}, forgets {rate} times as fast"
            members.append(Member(name, OAM(C=6.0), rate))
    return members


def _one_line(learner: Any) -> str:
    """Return the expression of a learner, without line breaks."""
    return re.sub(r"\s+", " ", repr(learner))
