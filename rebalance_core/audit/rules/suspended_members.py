"""Suspended members, which keep their share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, stretches
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.subjects import MEMBERS, SUSPENSIONS
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow


def find_suspended(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each stretch in which a process is suspended (rocketmq.md §3.2)."""
    for first, last in _stretches(group):
        until = group.run.end_ms if last["to_ms"] is None else last["to_ms"]
        if until < group.run.start_ms:
            continue
        yield _finding(group, first, last, until - first["from_ms"])


def _stretches(group: GroupSnapshot) -> Iterator[tuple[MembershipsRow, MembershipsRow]]:
    """Yield the first and last rows of each uninterrupted suspension."""
    rows = [row for row in group.tables["memberships"] if row["suspended"]]
    rows.sort(key=lambda row: (row["client_id"], row["channel_id"] or "", row["from_epoch"]))
    first = last = None
    for row in rows:
        same = last is not None and (
            (last["client_id"], last["channel_id"]) == (row["client_id"], row["channel_id"])
            and last["to_epoch"] == row["from_epoch"]
        )
        if not same and first is not None and last is not None:
            yield first, last
        first, last = (first if same else row), row
    if first is not None and last is not None:
        yield first, last


def _finding(
    group: GroupSnapshot, first: MembershipsRow, last: MembershipsRow, span_ms: int
) -> Finding:
    epoch = last["to_epoch"] - 1 if last["to_epoch"] is not None else None
    shares = stretches.rows_in_epoch(
        [*group.tables["ownership"], *group.tables["pop_reach"]], epoch
    )
    kept = {dumps.queue_of(row) for row in shares if row["client_id"] == last["client_id"]}
    others = {
        row["client_id"]
        for row in shares
        if dumps.queue_of(row) in kept and row["client_id"] not in (None, last["client_id"])
    }
    topics = sorted({topic for topic, _, _ in kept})
    names = [
        f"{topic} {queue_names((broker, number) for t, broker, number in kept if t == topic)}"
        for topic in topics
    ]
    keeps = f"{plural(len(kept), 'queue')} without reading them ({'; '.join(names)})"
    also = f"; also held by {listed(sorted(others), 3)}" if others else ""
    return Finding(
        f"{last['client_id']} has been suspended since {utc(first['from_ms'])} "
        f"({lasting(span_ms)}): it keeps {keeps if kept else 'its queues without reading them'}"
        f"{also}.",
        {"queues": "; ".join(names), "also_held_by": listed(sorted(others))},
        client_id=last["client_id"],
        first_ms=first["from_ms"],
        last_ms=last["to_ms"],
    )


SUSPENDED = Rule(
    "MEMBER_SUSPENDED",
    WARNING,
    "A member called suspend(). It keeps its share without reading it, and the messages wait "
    "until resume().",
    "memberships, ownership",
    "Call resume() in the named client, or stop it so that other members take its queues. Accept "
    "the finding if the suspension is intended.",
    find_suspended,
    reads=(MEMBERS, SUSPENSIONS),
    state=True,
)
