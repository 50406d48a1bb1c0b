"""FIFO queues of gRPC groups that wait for one message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import (
    number,
    queue_of,
)
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.model.events import CONSUMER_LOST
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, CHANNEL_SCAN_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING, Severity

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ConsumerEventsRow,
        OrderBlockFact,
    )


@dataclass(frozen=True, slots=True)
class Stall:
    """A queue held for longer than the invisible time of its messages.

    Attributes:
        since_ms: when they were popped; seen_ms: in the last snapshot that shows it.
        until_ms: the time until which nothing behind them is delivered, unless it is renewed again.
        over_ms: the latest time at which it ended; None if no later snapshot shows its end.
        standing: two snapshots further apart than the invisible time show it.
        gone: clients that were lost and may have had them; lost_ms: when the first was found lost.
    """

    queue: MessageQueue
    since_ms: int
    seen_ms: int
    until_ms: int
    over_ms: int | None
    standing: bool
    gone: tuple[str, ...]
    lost_ms: int | None


def find_blocked_order(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per topic and severity (rocketmq.md §14)."""
    by_severity: dict[tuple[str, Severity], list[Stall]] = {}
    for block in _blocks(group):
        severity: Severity = WARNING if block.gone or block.standing else INFO
        by_severity.setdefault((block.queue.topic, severity), []).append(block)
    for (topic, severity), blocks in sorted(by_severity.items()):
        yield _finding(group, topic, severity, blocks)


def _blocks(group: GroupSnapshot) -> Iterator[Stall]:
    by_queue = grouped(group.facts["ORDER_BLOCK"], queue_of)
    for queue, facts in sorted(by_queue.items()):
        for since_ms in sorted({number(fact["details"].get("pop_ms")) for fact in facts}):
            held = [fact for fact in facts if number(fact["details"].get("pop_ms")) == since_ms]
            blocked = [fact for fact in held if _is_held_long(fact)]
            if blocked and since_ms > 0:
                later = [f["first_ms"] for f in facts if f["first_ms"] > blocked[-1]["first_ms"]]
                yield _block(group, queue, blocked, min(later, default=None))


def _is_held_long(fact: OrderBlockFact) -> bool:
    """Return whether the queue is held for longer than a message may be without a renewal."""
    held_ms = fact["first_ms"] - number(fact["details"].get("pop_ms"))
    return fact["first_ms"] < number(fact["details"].get("blocked_until_ms")) and held_ms > number(
        fact["details"]["invisible_ms"], 0
    )


def _block(
    group: GroupSnapshot, queue: MessageQueue, blocked: list[OrderBlockFact], over_ms: int | None
) -> Stall:
    last = blocked[-1]
    since_ms = number(last["details"].get("pop_ms"))
    lost = [row for row in _lost(group, last["first_ms"]) if _was_there(group, row, since_ms)]
    return Stall(
        queue=queue,
        since_ms=since_ms,
        seen_ms=last["first_ms"],
        until_ms=number(last["details"].get("blocked_until_ms")),
        over_ms=over_ms,
        standing=last["first_ms"] - blocked[0]["first_ms"]
        > number(last["details"].get("invisible_ms"), 0),
        gone=tuple(sorted({row["client_id"] for row in lost})),
        lost_ms=min((row["event_ms"] for row in lost), default=None),
    )


def _lost(group: GroupSnapshot, seen_ms: int) -> list[ConsumerEventsRow]:
    """Return losses of clients that were still members at this time and may have been dead."""
    return [
        row
        for row in group.consumer_events
        if row["event_type"] == CONSUMER_LOST
        and seen_ms <= row["event_ms"] <= seen_ms + CHANNEL_EXPIRY_MS + CHANNEL_SCAN_MS
    ]


def _was_there(group: GroupSnapshot, lost: ConsumerEventsRow, at_ms: int) -> bool:
    return any(
        row["client_id"] == lost["client_id"] and row["from_ms"] <= at_ms
        for row in group.tables["memberships"]
    )


def _finding(group: GroupSnapshot, topic: str, severity: Severity, blocks: list[Stall]) -> Finding:
    queues = {block.queue: None for block in blocks}
    names = queue_names((queue.broker_name, queue.queue_id) for queue in queues)
    since, seen = min(b.since_ms for b in blocks), max(b.seen_ms for b in blocks)
    gone = sorted({client_id for block in blocks for client_id in block.gone})
    lost = [block.lost_ms for block in blocks if block.lost_ms is not None]
    over = [block.over_ms for block in blocks]
    end = max(lost) if lost else None if None in over else max(ms for ms in over if ms is not None)
    if lost:
        how_long = f"for {lasting(max(lost) - since)}, until {utc(max(lost))}"
        who = (
            f"{listed(gone, 3)} was lost, and until then its proxy kept renewing the messages it "
            "had popped"
        )
    else:
        until = max(block.until_ms for block in blocks)
        how_long = f"for at least {lasting(seen - since)}, held until {utc(until)}"
        if len(blocks) > len(queues):
            longest = max(block.seen_ms - block.since_ms for block in blocks)
            how_long = (
                f"on, {len(blocks)} times for up to {lasting(longest)} as far as snapshots show, "
                f"held until {utc(until)}"
            )
        who = "its consumer is slow, or is gone and the broker has not noticed yet"
    behind = Offsets(group).behind(queues)
    alone = blocks[0].queue if len(queues) == 1 else None
    return Finding(
        f"{plural(len(queues), 'FIFO queue')} of {topic} ({names}) made no progress from "
        f"{utc(since)} {how_long}: {who}.",
        {
            "queues": names,
            "lost": listed(gone) or "none",
            "snapshot": utc(seen),
            "behind_now": messages(behind),
        },
        severity=severity,
        topic=topic,
        broker_name=alone.broker_name if alone else None,
        queue_id=alone.queue_id if alone else None,
        client_id=gone[0] if len(gone) == 1 else None,
        first_ms=since,
        last_ms=end,
        ended_by="" if lost or end is None else "a later consumerOrderInfo.json no longer shows it",
    )


BLOCKED_ORDER = Rule(
    "POP_ORDER_BLOCKED",
    WARNING,
    "A FIFO queue delivers nothing behind messages that are popped and not acknowledged. A proxy "
    "keeps a dead gRPC client as a member for 120 to 130 s and renews the invisible time until "
    "then. INFO if no client was lost and only one snapshot shows the block, which suggests a "
    "slow listener.",
    "ORDER_BLOCK, cluster_events (CONSUMER_LOST), memberships",
    "Shut clients down gracefully; find out what killed the named client. If no client died, a "
    "listener hangs: take thread dumps of the group's clients.",
    find_blocked_order,
    files=("consumer_order_info_json",),
)
