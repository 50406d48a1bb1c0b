"""Where the members of a group began to read queues, and where they were told to."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.queues import queue_of
from rebalance_core.model.queue import MessageQueue

FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
FROM_OLD = frozenset(
    {
        "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    }
)
"""Who sets one of these wants old messages; the client takes the last two for LAST_OFFSET."""


def first_starts(case: GroupCase) -> list[Row]:
    """The first start on each queue; later ones go on from there.

    Where nobody knows what the group had committed it is left out: of brokers that were not
    collected, and without a commit where none need have been logged (`_may_have_committed`).
    """
    starts: dict[MessageQueue, Row] = {}
    rows = sorted(case.rows("pull_starts"), key=lambda row: (row["epoch"], row["client_id"]))
    for row in rows:
        if row["broker_name"] not in case.run.missing:
            starts.setdefault(queue_of(row), row)
    return [row for row in starts.values() if not _may_have_committed(case, row)]


def _may_have_committed(case: GroupCase, row: Row) -> bool:
    """True if the group may have committed on the queue before the files begin.

    It has not if a consumerOffset.json of that time lacks it, if the group was created since, or
    if the queue was empty since.
    """
    broker, start_ms, stores = row["broker_name"], row["earliest_ms"], case.run.offsets_ms
    if row["stored_offset"] is not None or stores is None:
        return False
    if stores.get(broker, start_ms + 1) <= start_ms:
        return False
    created = any(
        fact["broker_name"] == broker and fact["first_ms"] <= start_ms
        for fact in case.facts("GROUP_CREATED")
    )
    return not created and not any(
        seen["max_offset"] == 0 and seen["observed_ms"] <= start_ms
        for seen in case.rows("queue_offsets")
        if queue_of(seen) == queue_of(row)
    )


def asked_from(case: GroupCase, client_id: str) -> str:
    """ConsumeFromWhere of the member's last join, else the group's."""
    joins = [
        row
        for row in case.rows("cluster_events")
        if row["client_id"] == client_id and row.get("consume_from_where")
    ]
    own = max(joins, key=lambda row: row["event_ms"], default=case.settings)
    return own.get("consume_from_where") or "CONSUME_FROM_LAST_OFFSET"


def begin(row: Row) -> int:
    """Where the first pull really begins."""
    corrected = row["corrected_offset"]
    return int((row["start_offset"] or 0) if corrected is None else corrected)


def begins(rows: Iterable[Row]) -> str:
    """The offsets at which queues began, as a range.

    >>> begins([{"start_offset": 3, "corrected_offset": None}])
    '3'
    """
    begins = sorted({begin(row) for row in rows})
    return str(begins[0]) if len(begins) == 1 else f"{begins[0]} to {begins[-1]}"


def first_change(rows: Iterable[Row]) -> int:
    """When the first of these starts was called for."""
    return min(int(row["change_ms"]) for row in rows)


def last_settled(rows: Iterable[Row]) -> int:
    """By when the last of them has happened."""
    return max(int(row["latest_ms"]) for row in rows)
