"""Assigns evidence from brokers' files to the broker's own name, regardless of the folder's
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.ingest.broker_folders import (
    BrokerFolder,
)
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.store_copies import without_repeats

BROKERS, DUMPS = "brokers/", "mqadmin/"


EXPORTED = {
    "exported_topic": "topic_config",
    "exported_subscription_group": "subscription_group",
    "exported_group_configs": "group_configs",
}
"""Evidence from exportMetadata, in the form of the stores."""


def of_group(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """Yield the evidence on a group, with members at the place whose consumer table lists them."""
    for piece in _dated(pieces, context):
        folder = _folder(piece, context)
        if folder is None:
            listed = piece.kind == "member" and piece.source.startswith(DUMPS)
            at_ms = context.time_of(piece)
            yield _at(context.acting_master_place(piece.place, at_ms), piece) if listed else piece
        elif _of_process(piece.kind):
            yield _at(folder.place, piece)
        elif (
            folder.is_authoritative(piece.at_ms) or piece.kind == "dump" or _of_replica(piece.kind)
        ):
            yield _at(folder.broker_name, piece)


def of_masters(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """Yield the evidence on a group under brokers' names, without slaves' member lists."""
    by_place = {folder.place: folder for folder in context.folders.values()}
    for piece in pieces:
        folder = by_place.get(piece.place)
        if folder is not None and folder.by_turns and _of_process(piece.kind):
            if folder.is_authoritative(context.time_of(piece)):
                yield _at(folder.broker_name, piece)
        elif piece.place not in context.slave_places:
            yield piece


def _at(place: str, piece: Evidence) -> Evidence:
    return piece if piece.place == place else replace(piece, place=place)


def _of_process(kind: str) -> bool:
    """Return True for evidence about the consumer table of the process that wrote the log."""
    return kind == "member" or (kind in LOG_FACTS and LOG_FACTS[kind].of_slaves)


def _of_replica(kind: str) -> bool:
    """Return True for evidence about the queues of the broker whose replica wrote the log."""
    return kind in LOG_FACTS and LOG_FACTS[kind].of_replicas


def own_evidence(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """Yield the evidence under brokers' names, from their authoritative folders only."""
    for piece in _dated(pieces, context):
        own = _own(piece, context)
        if own is not None:
            yield own


def own_statement(piece: Evidence, context: ClusterContext) -> Evidence | None:
    """Return what `own_evidence` yields for a single statement, or None if it yields nothing."""
    dated = _with_date(piece, context)
    return None if dated is None else _own(dated, context)


def _own(piece: Evidence, context: ClusterContext) -> Evidence | None:
    folder = _folder(piece, context)
    if folder is None:
        return piece
    return _at(folder.broker_name, piece) if folder.is_authoritative(piece.at_ms) else None


def _dated(pieces: Iterable[Evidence], context: ClusterContext) -> Iterator[Evidence]:
    """Yield each statement once; statements from exported stores only if the time of export is
    known.

    exportMetadata's statements about a broker count if its store cannot be copied.
    """
    for piece in without_repeats(pieces):
        dated = _with_date(piece, context)
        if dated is not None:
            yield dated


def _with_date(piece: Evidence, context: ClusterContext) -> Evidence | None:
    if piece.kind in EXPORTED:
        in_rocksdb = piece.place in context.in_rocksdb
        return replace(piece, kind=EXPORTED[piece.kind]) if in_rocksdb else None
    if piece.source in context.exported and context.exported[piece.source] is None:
        return None
    return piece


def _folder(piece: Evidence, context: ClusterContext) -> BrokerFolder | None:
    """Return the folder to which the evidence belongs, or None if a dump names a known broker."""
    if piece.source.startswith(BROKERS):
        return context.folders.get(piece.place)
    if piece.source.startswith(DUMPS) and piece.place not in context.brokers:
        return context.folders.get(piece.place)
    return None
