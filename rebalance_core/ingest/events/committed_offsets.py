"""Committed offsets from stores' snapshots, clients' own commit lines and ``consumerProgress``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from rebalance_core.contracts.document_facts import SUBJECTS
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.own_evidence import own_statement
from rebalance_core.model.times import SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import CommittedOffsetsBegun
    from rebalance_core.ingest.evidence_types import (
        CommitsEvidence,
        TopicCreatedPiece,
        TopicDeletedPiece,
        TopicLoadedPiece,
        TopicUpdatedPiece,
    )

    _Logged: TypeAlias = (
        TopicCreatedPiece | TopicUpdatedPiece | TopicLoadedPiece | TopicDeletedPiece
    )


STORE = "committed_offset"
"""An entry of consumerOffset.json."""


_COMMITS = frozenset(SUBJECTS["commits"])


def _of_commits(piece: Evidence) -> TypeGuard[CommitsEvidence]:
    return piece.kind in _COMMITS


def commit_row(stated: Evidence, context: ClusterContext) -> CommittedOffsetsBegun | None:
    """Return a row of committed_offsets, or None if the evidence shows nothing certain.

    ``consumerProgress`` also prints 0 for a queue without a commit (rocketmq.md §10.7), so a 0 from
    it is ignored; a negative offset is not a commit. A slave's store is a copy of its master's and
    counts while the master is gone, because the dead master's store then answers no client;
    replicas that take turns as master each count during their turn. A fact in a broker's log was
    surely true by the end of its second.
    """
    piece = _answering(stated, context)
    if piece is None:
        return None
    observed_ms = context.time_of(piece)
    client_id = None
    if piece.kind == "committed":
        broker, offset = piece.values["broker"], piece.values["offset"]
        client_id = piece.values["client_id"]
    elif piece.kind == "offset_reset":
        broker, offset = piece.values["broker"], piece.values["offset"]
    elif piece.kind == "commit_refused":
        queue = piece.key, piece.values["topic"], piece.place, piece.values["queue_id"]
        before = [
            (at_ms, to) for at_ms, to in context.resets.get(queue, ()) if at_ms <= observed_ms
        ]
        if not before:
            return None
        broker, offset = piece.place, before[-1][1]
    elif piece.kind == "offset_went_back":
        broker, offset = piece.place, piece.values["asked"]
    elif piece.kind == "queue_progress":
        values = piece.values
        if (
            values["consumer_offset"] == 0
            or values["broker_name_truncated"]
            or values["topic_truncated"]
        ):
            return None
        broker, offset = values["broker_name"], values["consumer_offset"]
    elif piece.kind == "local_offset":
        broker = piece.values["broker_name"] or piece.place
        offset = piece.values["committed_offset"]
        client_id = piece.values["client_id"]
    else:
        broker, offset = piece.place, piece.values["committed_offset"]
    if offset < 0:
        return None
    if piece.kind in ("offset_reset", "commit_refused", "offset_went_back"):
        observed_ms += SECOND_MS - 1
    return {
        "consumer_group": piece.key,
        "topic": piece.values["topic"],
        "broker_name": broker,
        "queue_id": piece.values["queue_id"],
        "client_id": client_id,
        "observed_ms": observed_ms,
        "committed_offset": offset,
    }


def _answering(piece: Evidence, context: ClusterContext) -> CommitsEvidence | None:
    """Return the evidence under its broker's name if its replica answers at that time."""
    folder = context.folders.get(piece.place)
    if not _of_commits(piece):
        return None
    if piece.kind != STORE or folder is None:
        own = own_statement(piece, context)
        return own if own is not None and _of_commits(own) else None
    name = folder.broker_name
    if folder.by_turns:
        return (
            replace(piece, place=name) if folder.is_authoritative(context.time_of(piece)) else None
        )
    if not context.is_masterless(name, context.time_of(piece)):
        return replace(piece, place=name) if folder.authoritative else None
    slaves = [
        replica
        for replica in context.folders.values()
        if replica.slave and replica.broker_name == name
    ]
    return replace(piece, place=name) if folder.slave or not slaves else None
