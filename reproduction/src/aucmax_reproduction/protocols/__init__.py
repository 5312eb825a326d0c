"""The five papers."""

from aucmax_reproduction.protocol import Protocol
from aucmax_reproduction.protocols import (
    gao2013,
    khalid2019,
    liu2018,
    natole2018,
    natole2020,
)

PROTOCOLS = {
    module.PROTOCOL.source: module.PROTOCOL
    for module in (gao2013, khalid2019, liu2018, natole2018, natole2020)
}


def protocol(source: str) -> Protocol:
    """Return how the tables of a source were made."""
    if source not in PROTOCOLS:
        raise ValueError(f"There is no source {source!r}: {', '.join(PROTOCOLS)}.")
    return PROTOCOLS[source]
