"""Committed offsets: stores' snapshots, clients' own commit lines, ``consumerProgress``, and what
brokers log of commits below the one before and of resets.
"""

from __future__ import annotations

from dataclasses import replace

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.evidence.folder_evidence import own_evidence
from rebalance_core.ingest.rows import Row
from rebalance_core.model.times import SECOND_MS

STORE = "committed_offset"
"""An entry of consumerOffset.json."""


def commit_row(piece: Evidence, context: ClusterContext) -> Row | None:
    """One row of committed_offsets, None where the evidence says nothing certain.

    ``consumerProgress`` prints 0 for a queue without a commit too (rocketmq.md §10.7), so its 0
    counts for nothing; a negative offset is none. A slave's store is a copy of its master's, and
    counts while the master is gone: that of the dead master then answers nobody; of replicas that
    are master by turns each counts in its turn. What a broker's log says was surely so at the end
    of the second that it names.
    """
    own = _answering(piece, context)
    if own is None:
        return None
    piece, values = own, own.values
    observed_ms = context.time_of(piece)
    if piece.kind == "committed":
        broker, offset = values["broker"], values["offset"]
    elif piece.kind == "offset_reset":
        broker, offset = values["broker"], values["offset"]
        observed_ms += SECOND_MS - 1
    elif piece.kind == "commit_refused":
        queue = piece.key, values["topic"], piece.place, values["queue_id"]
        before = [
            (at_ms, to) for at_ms, to in context.resets.get(queue, ()) if at_ms <= observed_ms
        ]
        if not before:
            return None
        broker, offset = piece.place, before[-1][1]
        observed_ms += SECOND_MS - 1
    elif piece.kind == "offset_went_back":
        broker, offset = piece.place, values["asked"]
        observed_ms += SECOND_MS - 1
    elif piece.kind == "queue_progress":
        if (
            values["consumer_offset"] == 0
            or values["broker_name_truncated"]
            or values["topic_truncated"]
        ):
            return None
        broker, offset = values["broker_name"], values["consumer_offset"]
    else:
        broker, offset = values.get("broker_name") or piece.place, values["committed_offset"]
    if offset < 0:
        return None
    return {
        "consumer_group": piece.key,
        "topic": values["topic"],
        "broker_name": broker,
        "queue_id": values["queue_id"],
        "client_id": values.get("client_id"),
        "observed_ms": observed_ms,
        "committed_offset": offset,
    }


def _answering(piece: Evidence, context: ClusterContext) -> Evidence | None:
    """The evidence under its broker's name, if the replica it is of answers then."""
    folder = context.folders.get(piece.place)
    if piece.kind != STORE or folder is None:
        return next(own_evidence((piece,), context), None)
    name = folder.broker_name
    if folder.by_turns:
        return replace(piece, place=name) if folder.speaks(context.time_of(piece)) else None
    if not context.is_masterless(name, context.time_of(piece)):
        return replace(piece, place=name) if folder.authoritative else None
    slaves = [one for one in context.folders.values() if one.slave and one.broker_name == name]
    return replace(piece, place=name) if folder.slave or not slaves else None
