"""``observed_facts`` of one group: what dumps, stores and logs state of it."""

from __future__ import annotations

from collections.abc import Collection

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.process_names import ProcessNames
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.observed.document_facts import DOCUMENT_READERS
from rebalance_core.ingest.observed.fact_rows import FactRows
from rebalance_core.ingest.observed.log_rows import Clients, add_log_rows
from rebalance_core.ingest.rows import Row
from rebalance_core.ingest.settings.given_up import given_up


def group_facts(
    group: str, pieces: Collection[Evidence], names: ProcessNames, context: ClusterContext
) -> list[Row]:
    """The rows of one group, also of one that never had a member.

    Args:
        group: its name.
        pieces: all evidence on it, in order of time.
        names: who the lines of a client's log are about.
        context: of the cluster.
    """
    clients = Clients(pieces, names, context.addresses)
    rows = FactRows(group)
    for piece in pieces:
        at_ms = context.time_of(piece)
        if piece.kind in DOCUMENT_READERS:
            DOCUMENT_READERS[piece.kind](rows, piece, at_ms)
        else:
            add_log_rows(rows, piece, at_ms, clients)
    for piece in given_up(pieces):
        v = piece.values
        where = {"topic": v["topic"], "client_id": v["client_id"]}
        rows.add("GAVE_UP_ASKING", context.time_of(piece), piece.source,
                 {"strategy": v["strategy"]}, **where)  # fmt: skip
    return rows.rows
