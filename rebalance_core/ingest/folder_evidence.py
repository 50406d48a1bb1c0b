"""Evidence out of brokers' files under the broker's own name, whatever its folder is called.

What a slave's files say counts for members alone: its stores and topics are its master's, up to
10 s late (SEM §15).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rebalance_core.ingest.broker_folders import BrokerFolder
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.timed_evidence import LOGGED_BY_BROKERS

BROKERS, DUMPS = "brokers/", "mqadmin/"


def of_group(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """The evidence on a group; of a copy its members, at a place of its own."""
    for piece in pieces:
        folder = _folder(piece, context)
        if folder is None:
            yield piece
        elif piece.kind == "dump":
            yield replace(piece, place=folder.broker_name)
        elif not folder.copy or piece.kind in (*LOGGED_BY_BROKERS, "member"):
            yield replace(piece, place=folder.place)


def own_evidence(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """The evidence that stands for its broker: without that of copies."""
    for piece in pieces:
        folder = _folder(piece, context)
        if folder is None:
            yield piece
        elif not folder.copy:
            yield replace(piece, place=folder.place)


def _folder(piece: Evidence, context: ClusterContext) -> BrokerFolder | None:
    """The folder the evidence is of; a dump names a broker, or a folder where none is so called."""
    if piece.source.startswith(BROKERS):
        return context.folders.get(piece.place)
    if piece.source.startswith(DUMPS) and piece.place not in context.brokers:
        return context.folders.get(piece.place)
    return None
