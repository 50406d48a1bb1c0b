"""Evidence out of brokers' files under the broker's own name, whatever its folder is called.

What a slave's files say counts for members alone: its stores and topics are its master's, up to
10 s late (rocketmq.md §15).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.broker_folders import BrokerFolder
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.evidence.stated_once import stated_once

BROKERS, DUMPS = "brokers/", "mqadmin/"
EXPORTED = {
    "exported_topic": "topic_config",
    "exported_subscription_group": "subscription_group",
    "exported_group_configs": "group_configs",
}
"""Evidence of exportMetadata, as the stores would say it."""


def of_group(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """The evidence on a group; members at the place whose table of consumers has them."""
    for piece in _dated(pieces, context):
        folder = _folder(piece, context)
        if folder is None:
            listed = piece.kind == "member" and piece.source.startswith(DUMPS)
            at_ms = context.time_of(piece)
            yield _at(context.answerer(piece.place, at_ms), piece) if listed else piece
        elif _of_process(piece.kind):
            yield _at(folder.place, piece)
        elif folder.speaks(piece.at_ms) or piece.kind == "dump":
            yield _at(folder.broker_name, piece)


def of_masters(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """The evidence on a group under brokers' names, without what slaves state of their members."""
    by_place = {folder.place: folder for folder in context.folders.values()}
    for piece in pieces:
        folder = by_place.get(piece.place)
        if folder is not None and folder.by_turns and _of_process(piece.kind):
            if folder.speaks(context.time_of(piece)):
                yield _at(folder.broker_name, piece)
        elif piece.place not in context.slave_places:
            yield piece


def _at(place: str, piece: Evidence) -> Evidence:
    return piece if piece.place == place else replace(piece, place=place)


def _of_process(kind: str) -> bool:
    """On the table of consumers of the very process that logged it, or that was asked."""
    return kind == "member" or (kind in LOG_FACTS and LOG_FACTS[kind].of_slaves)


def own_evidence(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """The evidence under brokers' names, of the folders that speak for them alone."""
    for piece in _dated(pieces, context):
        folder = _folder(piece, context)
        if folder is None:
            yield piece
        elif folder.speaks(piece.at_ms):
            yield _at(folder.broker_name, piece)


def _dated(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """Each statement once; of an exported store only if a file tells when it was exported.

    What exportMetadata says of one broker counts where its store cannot be copied.
    """
    for piece in stated_once(pieces):
        if piece.kind in EXPORTED:
            if piece.place in context.in_rocksdb:
                yield replace(piece, kind=EXPORTED[piece.kind])
        elif piece.source not in context.exported or context.exported[piece.source] is not None:
            yield piece


def _folder(piece: Evidence, context: ClusterContext) -> BrokerFolder | None:
    """The folder the evidence is of; a dump names a broker, or a folder where none is so called."""
    if piece.source.startswith(BROKERS):
        return context.folders.get(piece.place)
    if piece.source.startswith(DUMPS) and piece.place not in context.brokers:
        return context.folders.get(piece.place)
    return None
