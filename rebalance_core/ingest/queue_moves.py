"""Queues that passes took and gave up, from clients' logs, as rows of ``queue_moves``.

``RebalanceImpl.updateProcessQueueTableInRebalance`` (4.9.7 to 5.5.0) logs both at the default
level, after the fact. A process that ends logs neither; its queues are free from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.evidence import Evidence, is_on_group

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import QueueMovesBegun


def move_rows(
    group: str, pieces: Iterable[Evidence], names: ProcessNames, context: ClusterContext
) -> list[QueueMovesBegun]:
    """Return the queue moves shown by the evidence on a group, in the order of the evidence.

    Args:
        group: its name.
        pieces: the evidence on it.
        names: client ids by client log and process.
        context: the cluster's context, with corrected times.
    """
    return [
        {
            "consumer_group": group,
            "topic": piece.values["topic"],
            "broker_name": piece.values["broker_name"],
            "queue_id": piece.values["queue_id"],
            "client_id": names.client_of(piece) if names.is_alone(piece) else None,
            "at_ms": context.time_of(piece),
            "action": "ADD" if piece.kind == "queue_taken" else "DROP",
            "source": piece.source,
        }
        for piece in filter(is_on_group, pieces)
        if piece.kind in ("queue_taken", "queue_given_up")
    ]
