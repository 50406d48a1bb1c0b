"""Evidence out of brokers' files under the broker's own name, whatever its folder is called.

What a slave's files say counts for members alone: its stores and topics are its master's, up to
10 s late (rocketmq.md §15).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.timed_evidence import LOGGED_BY_BROKERS
from rebalance_core.ingest.evidence.broker_folders import BrokerFolder
from rebalance_core.ingest.evidence.evidence import Evidence

BROKERS, DUMPS = "brokers/", "mqadmin/"
_MEMBERS = (*LOGGED_BY_BROKERS, "member", "subscription_changed")


def of_group(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """The evidence on a group; members at the place whose table of consumers has them."""
    for piece in pieces:
        folder = _folder(piece, context)
        if folder is None:
            yield piece
        elif piece.kind in _MEMBERS:
            yield replace(piece, place=folder.place)
        elif folder.speaks or piece.kind == "dump":
            yield replace(piece, place=folder.broker_name)


def own_evidence(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """The evidence under brokers' names, of the folders that speak for them alone."""
    for piece in pieces:
        folder = _folder(piece, context)
        if folder is None:
            yield piece
        elif folder.speaks:
            yield replace(piece, place=folder.broker_name)


def _folder(piece: Evidence, context: ClusterContext) -> BrokerFolder | None:
    """The folder the evidence is of; a dump names a broker, or a folder where none is so called."""
    if piece.source.startswith(BROKERS):
        return context.folders.get(piece.place)
    if piece.source.startswith(DUMPS) and piece.place not in context.brokers:
        return context.folders.get(piece.place)
    return None
