"""What the derived tables of recordings have wrong, and truth files have right."""

from __future__ import annotations

from tests.recordings.recorded_events import (
    REPLICATED,
    REPLICATED_GROUPS,
    SHARED,
    SHARED_GROUPS,
    tables_of,
)
from tests.recordings.tables import Row, Tables, derived_tables
from tests.recordings.truth import Truth, read_truth

WRONG_SUBSCRIPTIONS = {("timing", 14): ["Payments"]}
"""The derived table has what c5 subscribed at its second start; broker.log has its first."""
LONGEST_SHUTDOWN_MS = 5_000
"""A process shuts its consumers down one after the other; tables have the first one's time."""


def corrected_tables(name: str) -> Tables:
    """The derived tables of a recording, corrected; of one without any, of what the recorder did.

    `WRONG_SUBSCRIPTIONS` is put right, and each leave is at the ``shutdown()`` of its own consumer.
    """
    if name in REPLICATED:
        return tables_of(name, REPLICATED_GROUPS)
    if name == SHARED:
        return tables_of(name, SHARED_GROUPS)
    tables, truth = derived_tables(name), read_truth(name)
    for row in tables["cluster_events"]:
        right = WRONG_SUBSCRIPTIONS.get((name, row["sequence"]))
        if right:
            row["subscriptions"] = right
        if row["event_type"] == "CONSUMER_LEAVE":
            row["event_ms"] = _shutdown_ms(truth, row)
    return tables | {"cluster_events": sorted(tables["cluster_events"], key=_event_ms)}


def _shutdown_ms(truth: Truth, leave: Row) -> int:
    client = leave["channel_id"].split("/")[0]
    later = [
        line["t"]
        for line in truth.lines[client, leave["consumer_group"]]
        if line["kind"] == "shutdown_begin"
        and 0 <= line["t"] - leave["event_ms"] < LONGEST_SHUTDOWN_MS
    ]
    return min(later, default=leave["event_ms"])


def _event_ms(row: Row) -> int:
    return int(row["event_ms"])
