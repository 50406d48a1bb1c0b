"""Leaves that a client's own log tells, of members that dumps no longer list."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.process_names import ProcessNames
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.rows import Row
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST


def dated_by_dumps(
    after_logs: Iterable[Row],
    events: Iterable[Row],
    pieces: Iterable[Evidence],
    names: ProcessNames,
    context: ClusterContext,
) -> list[Row]:
    """The events that a dump alone tells; losses that the client's log tells become leaves.

    A loss counts as told if the client unregistered between its join and the dump, and its id was
    that of one process. The row itself is changed.

    Args:
        after_logs: events that dumps show which were taken after a broker's log had ended.
        events: all of the group.
        pieces: evidence on the group.
        names: of its clients' processes.
        context: of the cluster.
    """
    joins: dict[str, list[int]] = {}
    for row in events:
        if row["event_type"] == CONSUMER_JOIN:
            joins.setdefault(row["client_id"], []).append(row["event_ms"])
    left: dict[str | None, list[tuple[int, str]]] = {}
    for piece in pieces:
        if piece.kind == "left_broker":
            told = (context.time_of(piece), piece.source)
            left.setdefault(names.client_of(piece), []).append(told)
    by_dumps = []
    for row in after_logs:
        own = joins.get(row["client_id"], [])
        lines = [
            line
            for line in left.get(row["client_id"], ())
            if len(own) == 1 and own[0] < line[0] <= row["event_ms"]
        ]
        if row["event_type"] == CONSUMER_LOST and lines:
            row["event_type"] = CONSUMER_LEAVE
            row["event_ms"], row["source"] = min(lines)
        else:
            by_dumps.append(row)
    return by_dumps
