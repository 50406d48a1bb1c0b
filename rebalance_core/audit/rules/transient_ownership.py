"""Queues without or with two owners while a logged cause was being settled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, logged_causes, stretches, subscriptions
from rebalance_core.audit.duplicate_ids import DuplicateId, logged_duplicates
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.subjects import EVENTS
from rebalance_core.model.verdicts import INFO

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import OwnershipRow


def find_transient_ownership(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding, with the number of queues, the worst one and the causes
    (rocketmq.md §8).
    """
    if subscriptions.is_broadcasting(group):
        return
    duplicate = logged_duplicates(group)
    spans = [
        (row, span_ms)
        for row in group.tables["ownership"]
        if (span_ms := _short(group, row))
        and not any(_covers(overlap, row) for overlap in duplicate)
    ]
    if not spans:
        return
    unowned = {dumps.queue_of(row) for row, _ in spans if row["client_id"] is None}
    twice = {dumps.queue_of(row) for row, _ in spans if row["client_id"] is not None}
    worst, worst_ms = min(
        spans, key=lambda pair: (-pair[1], dumps.queue_of(pair[0]), pair[0]["from_ms"])
    )
    epochs = {row["epoch"]: row for row in group.epochs}
    causes = [
        logged_causes.cause_text(group, epochs[number])
        for number in sorted({row["from_epoch"] for row, _ in spans})
        if number in epochs
    ]
    parts = [
        f"{plural(len(unowned), 'queue')} without an owner" if unowned else "",
        f"{plural(len(twice), 'queue')} held twice" if twice else "",
    ]
    yield Finding(
        f"{' and '.join(part for part in parts if part)} for a while, the longest "
        f"{worst['topic']} {worst['broker_name']}:{worst['queue_id']} for "
        f"{lasting(worst_ms)}; explained by {listed(causes, 3)}.",
        {"no_owner": str(len(unowned)), "twice": str(len(twice)), "causes": listed(causes)},
        first_ms=min(row["from_ms"] for row, _ in spans),
        last_ms=max(row["to_ms"] or group.run.end_ms for row, _ in spans),
    )


def _covers(duplicate: DuplicateId, row: OwnershipRow) -> bool:
    """Return True if the row lies in a time of a duplicate id, which has its own finding."""
    return duplicate.first_ms <= row["from_ms"] and (
        duplicate.last_ms is None or row["from_ms"] < duplicate.last_ms
    )


def _short(group: GroupSnapshot, row: OwnershipRow) -> int:
    """Return how long a queue did not have exactly one holder while the group was online, or 0."""
    if row["client_id"] is not None and row["holders"] < 2:
        return 0
    if stretches.is_persistent(group, stretches.span_of(row)):
        return 0
    until = group.run.end_ms if row["to_ms"] is None else row["to_ms"]
    span_ms = int(until - row["from_ms"])
    return span_ms - stretches.offline_ms(group, row["from_ms"], until)


TRANSIENT_OWNERSHIP = Rule(
    "TRANSIENT_OWNERSHIP",
    INFO,
    "Queues had no owner or two owners while a join, a loss or a topic change settled. This is "
    "normal during a rebalance; no message is lost.",
    "ownership, epochs, diffs",
    "Nothing. If it happens often, find out why members come and go.",
    find_transient_ownership,
    by_owners=True,
    reads=(EVENTS,),
)
