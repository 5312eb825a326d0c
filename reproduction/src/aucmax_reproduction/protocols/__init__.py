"""Protocols of the five papers."""

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
    """Return the protocol of a paper."""
    if source not in PROTOCOLS:
        raise ValueError(
            f"Unknown source {source!r}. Use one of {', '.join(PROTOCOLS)}."
        )
    return PROTOCOLS[source]
