"""Topics whose read and write queues differ, and brokers that clients only read from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.topic_readers import shared_topics
from rebalance_core.audit.topic_settings import (
    READ,
    WRITE,
    configs,
    perm_of,
    subscribed_topics,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import ERROR, INFO
from rebalance_core.protocol.settling_windows import ROUTE_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import GroupTopicsRow


def find_fewer(group: GroupSnapshot) -> Iterator[Finding]:
    """Find queues that producers fill but consumers may not read (rocketmq.md §6.3)."""
    offsets = Offsets(group)
    for topic in subscribed_topics(group):
        rows = [row for row in _readable(group, topic) if _write(row) > _read(row)]
        rows = [row for row in rows if perm_of(row) & WRITE or _unread(offsets, row)]
        if not rows:
            continue
        unread = [(r["broker_name"], n) for r in rows for n in range(_read(r), _write(r))]
        stored = offsets.stored(MessageQueue(topic, broker, number) for broker, number in unread)
        settled = [row for row in rows if group.run.end_ms > row["event_ms"] + ROUTE_MS]
        yield Finding(
            f"{topic}: producers write to {plural(len(unread), 'queue')} that no consumer may "
            f"read ({queue_names(unread)}; {_numbers(rows)}): {messages(stored)} there.",
            {"queues": queue_names(unread), "numbers": _numbers(rows)},
            severity=None if settled else INFO,
            topic=topic,
            broker_name=rows[0]["broker_name"] if len(rows) == 1 else None,
            first_ms=min(row["event_ms"] for row in rows),
        )


def _unread(offsets: Offsets, row: GroupTopicsRow) -> bool:
    """Return True if messages are stored in queues beyond those that are read."""
    numbers = range(_read(row), _write(row))
    unread = (MessageQueue(row["topic"], row["broker_name"], number) for number in numbers)
    return bool(offsets.stored(unread))


def find_more(group: GroupSnapshot) -> Iterator[Finding]:
    """Find queues that consumers read but producers never fill, which still count as shares."""
    shared = shared_topics(group)
    for topic in subscribed_topics(group):
        if topic in shared:
            continue
        rows = [r for r in _readable(group, topic) if _read(r) > _write(r) and perm_of(r) & WRITE]
        empty = [(r["broker_name"], n) for r in rows for n in range(_write(r), _read(r))]
        if empty:
            yield Finding(
                f"{topic}: consumers read {plural(len(empty), 'queue')} that no producer writes "
                f"to ({queue_names(empty)}; {_numbers(rows)}): they count in the shares but "
                "receive no messages.",
                {"queues": queue_names(empty), "numbers": _numbers(rows)},
                topic=topic,
                broker_name=rows[0]["broker_name"] if len(rows) == 1 else None,
                first_ms=min(row["event_ms"] for row in rows),
            )


def find_read_only(group: GroupSnapshot) -> Iterator[Finding]:
    """Find brokers that accept no messages but whose queues count as whole shares (no. 25)."""
    for topic in subscribed_topics(group):
        rows = [row for row in _readable(group, topic) if not perm_of(row) & WRITE]
        brokers = {row["broker_name"] for row in rows}
        held = [r for r in group.owned if r["topic"] == topic and r["broker_name"] in brokers]
        if not held:
            continue
        loads: dict[str, int] = {}
        for row in held:
            name = row["client_id"] or "no owner"
            loads[name] = loads.get(name, 0) + 1
        count = len({(row["broker_name"], row["queue_id"]) for row in held})
        shares = listed(f"{name} {load}" for name, load in sorted(loads.items()))
        yield Finding(
            f"{topic}: {listed(sorted(brokers), 3)} accepts no writes, yet "
            f"{plural(count, 'queue')} there count as whole shares: {shares}.",
            {"brokers": listed(sorted(brokers)), "holders": shares},
            topic=topic,
            broker_name=rows[0]["broker_name"] if len(rows) == 1 else None,
            first_ms=min(row["event_ms"] for row in rows),
        )


def _readable(group: GroupSnapshot, topic: str) -> list[GroupTopicsRow]:
    return [row for row in configs(group, topic) if perm_of(row) & READ and _read(row)]


def _read(row: GroupTopicsRow) -> int:
    return int(row["read_queue_nums"] or 0)


def _write(row: GroupTopicsRow) -> int:
    """Return the writable queues, or the readable queues if the number is unknown."""
    written = row["write_queue_nums"]
    return _read(row) if written is None else int(written)


def _numbers(rows: list[GroupTopicsRow]) -> str:
    return listed(f"{r['broker_name']} read {_read(r)} / write {_write(r)}" for r in rows)


FEWER = Rule(
    "READ_FEWER_THAN_WRITTEN",
    ERROR,
    "A broker has more write queues than read queues for a topic: producers fill queues that no "
    "consumer may read.",
    "topics, queue_offsets",
    "Raise readQueueNums to writeQueueNums (updateTopic -r). To scale in, lower the write queues "
    "first, then the read queues once the rest is drained.",
    find_fewer,
    reads=(TOPICS,),
)


MORE = Rule(
    "READ_MORE_THAN_WRITTEN",
    INFO,
    "A broker has more read queues than write queues for a topic. Queues without inflow count as "
    "full shares, so members with equally many queues have different load.",
    "topics",
    "Once the queues are drained, lower readQueueNums to writeQueueNums.",
    find_more,
    reads=(MEMBERS,),
)


READ_ONLY = Rule(
    "READ_ONLY_BROKER_COUNTED",
    INFO,
    "Queues on a broker that accepts no writes still count in the division. Their owners have "
    "less to do.",
    "topics, ownership",
    "Normal while you drain a broker. When it is empty, remove its read permission too "
    "(updateTopicPerm).",
    find_read_only,
    by_owners=True,
    reads=(MEMBERS,),
)
