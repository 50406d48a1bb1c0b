"""POP_ORDER_BLOCKED: a FIFO queue of a gRPC group that stands still for one message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.audit.case import (
    Finding,
    GroupCase,
    Row,
    Rule,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.dumps import number, queue_of
from rebalance_core.audit.orphans import Offsets, messages
from rebalance_core.model.events import CONSUMER_LOST
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, CHANNEL_SCAN_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING


@dataclass(frozen=True, slots=True)
class Block:
    """A queue held for longer than the invisible time of its messages.

    Attributes:
        since_ms: when they were popped; seen_ms: in the last snapshot that shows it.
        until_ms: until when nothing behind them is given out, unless it is renewed again.
        over_ms: by then it was over; None: no later snapshot shows it.
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


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic and severity (rocketmq.md §14)."""
    grouped: dict[tuple[str, str], list[Block]] = {}
    for block in _blocks(case):
        severity = WARNING if block.gone or block.standing else INFO
        grouped.setdefault((block.queue.topic, severity), []).append(block)
    for (topic, severity), blocks in sorted(grouped.items()):
        yield _finding(case, topic, severity, blocks)


def _blocks(case: GroupCase) -> Iterator[Block]:
    by_queue: dict[MessageQueue, list[Row]] = {}
    for fact in case.facts("ORDER_BLOCK"):
        by_queue.setdefault(queue_of(fact), []).append(fact)
    for queue, facts in sorted(by_queue.items()):
        for since_ms in sorted({number(fact, "pop_ms") for fact in facts}):
            held = [fact for fact in facts if number(fact, "pop_ms") == since_ms]
            blocked = [fact for fact in held if _is_held_long(fact)]
            if blocked and since_ms > 0:
                later = [f["first_ms"] for f in facts if f["first_ms"] > blocked[-1]["first_ms"]]
                yield _block(case, queue, blocked, min(later, default=None))


def _is_held_long(fact: Row) -> bool:
    """True if the queue is held at the snapshot, for longer than a message may be unless it is
    renewed: nothing that is just being consumed.
    """
    held_ms = fact["first_ms"] - number(fact, "pop_ms")
    return fact["first_ms"] < number(fact, "blocked_until_ms") and held_ms > number(
        fact, "invisible_ms", 0
    )


def _block(case: GroupCase, queue: MessageQueue, blocked: list[Row], over_ms: int | None) -> Block:
    last = blocked[-1]
    since_ms = number(last, "pop_ms")
    lost = [row for row in _lost(case, last["first_ms"]) if _was_there(case, row, since_ms)]
    return Block(
        queue,
        since_ms,
        last["first_ms"],
        number(last, "blocked_until_ms"),
        over_ms,
        last["first_ms"] - blocked[0]["first_ms"] > number(last, "invisible_ms", 0),
        tuple(sorted({row["client_id"] for row in lost})),
        min((row["event_ms"] for row in lost), default=None),
    )


def _lost(case: GroupCase, seen_ms: int) -> list[Row]:
    """Losses of clients that may have been dead at this time and were members still."""
    return [
        row
        for row in case.rows("cluster_events")
        if row["event_type"] == CONSUMER_LOST
        and seen_ms <= row["event_ms"] <= seen_ms + CHANNEL_EXPIRY_MS + CHANNEL_SCAN_MS
    ]


def _was_there(case: GroupCase, lost: Row, at_ms: int) -> bool:
    return any(
        row["client_id"] == lost["client_id"] and row["from_ms"] <= at_ms
        for row in case.rows("memberships")
    )


def _finding(case: GroupCase, topic: str, severity: str, blocks: list[Block]) -> Finding:
    names = queue_names((block.queue.broker_name, block.queue.queue_id) for block in blocks)
    since, seen = min(b.since_ms for b in blocks), max(b.seen_ms for b in blocks)
    gone = sorted({client_id for block in blocks for client_id in block.gone})
    lost = [block.lost_ms for block in blocks if block.lost_ms is not None]
    over = [block.over_ms for block in blocks]
    end = max(lost) if lost else None if None in over else max(ms for ms in over if ms is not None)
    if lost:
        how_long = f"for {lasting(max(lost) - since)}, until {utc(max(lost))}"
        who = f"{listed(gone, 3)} was lost, and its proxy renewed what it had popped until then"
    else:
        until = max(block.until_ms for block in blocks)
        how_long = f"for {lasting(seen - since)} at least, held until {utc(until)}"
        how_long += "" if end is None else f"; over by {utc(end)}"
        who = "its consumer is slow, or gone and not found lost yet"
    behind = Offsets(case).behind(block.queue for block in blocks)
    one = blocks[0].queue if len(blocks) == 1 else None
    return Finding(
        f"{plural(len(blocks), 'FIFO queue')} of {topic} ({names}) stood still from {utc(since)} "
        f"{how_long}: {who}.",
        {"queues": names, "lost": listed(gone) or "none", "snapshot": utc(seen),
         "behind_now": messages(behind)},
        severity=severity,
        topic=topic,
        broker_name=one.broker_name if one else None,
        queue_id=one.queue_id if one else None,
        client_id=gone[0] if len(gone) == 1 else None,
        first_ms=since,
        last_ms=end,
    )  # fmt: skip


RULE = Rule(
    "POP_ORDER_BLOCKED",
    WARNING,
    "A FIFO queue gives out nothing behind messages that are popped and not acknowledged. A gRPC "
    "client that dies stays a member of its proxy for 120 to 130 s, and the proxy renews the "
    "invisible time of what it had popped until then: the queue stands still. INFO where nobody "
    "was lost and one snapshot alone shows it: a slow listener does the same.",
    "facts ORDER_BLOCK (consumerOrderInfo.json), cluster_events (CONSUMER_LOST), memberships",
    "Shut clients down gracefully (close the consumer), which leaves no gap; look for what killed "
    "the client named. If nobody died, take a thread dump of the group's clients: a listener "
    "hangs.",
    find,
    files=("consumer_order_info_json",),
)
