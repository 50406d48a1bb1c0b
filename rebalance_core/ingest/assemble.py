"""From evidence to rows: what is put together for each group and topic, and for the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.contracts.fact_declaration import CLUSTER, COMMIT, GROUP, TOPIC
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.broker_timeline import broker_tables
from rebalance_core.ingest.events.commit_rows import commit_row
from rebalance_core.ingest.events.complete_tables import rejected_row
from rebalance_core.ingest.events.topic_timeline import topic_tables
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.evidence.evidence_table import REFUSED, unread_of
from rebalance_core.ingest.group_tables import group_tables
from rebalance_core.ingest.rows import Tables, merged


def assemble(evidence: Iterable[Evidence], context: ClusterContext) -> Tables:
    """The tables from all evidence, without cluster and sequence."""
    parts: dict[tuple[str, str], list[Evidence]] = {}
    for piece in evidence:
        parts.setdefault((piece.part, piece.key), []).append(piece)
    tables = [broker_tables(parts.pop((CLUSTER, ""), []), context)]
    tables += (tables_of(part, key, parts[part, key], context) for part, key in sorted(parts))
    return merged(*tables)


def tables_of(part: str, key: str, pieces: Iterable[Evidence], context: ClusterContext) -> Tables:
    """The rows that all evidence on one group or topic makes.

    Args:
        part: GROUP; TOPIC; COMMIT, the offsets that a group committed; REFUSED, what of the files
            could not be read.
        key: The name of the group or topic.
        pieces: The evidence, in any order.
        context: Of the cluster.
    """
    if part == GROUP:
        return group_tables(key, pieces, context)
    if part == TOPIC:
        return topic_tables(key, pieces, context)
    if part == REFUSED:
        return {"rejected": [rejected_row(unread_of(piece)) for piece in pieces]}
    if part != COMMIT:
        raise ValueError(f"evidence of the part {part} makes no rows by its key")
    rows = (commit_row(piece, context) for piece in pieces)
    return {"committed_offsets": [row for row in rows if row is not None]}
