"""READ_FEWER_THAN_WRITTEN, READ_MORE_THAN_WRITTEN, READ_ONLY_BROKER_COUNTED: topics as set up."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, listed, plural, queue_names
from rebalance_core.audit.dumps import READ, WRITE, configs, perm_of, subscribed_topics
from rebalance_core.audit.orphans import Offsets, messages
from rebalance_core.audit.subscriptions import shared_topics
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import ERROR, INFO
from rebalance_core.protocol.members import ROUTE_MS


def find_fewer(case: GroupCase) -> Iterator[Finding]:
    """Queues that producers fill and nobody may read (rocketmq.md §6.3, §11 no. 24)."""
    offsets = Offsets(case)
    for topic in subscribed_topics(case):
        rows = [row for row in _readable(case, topic) if _write(row) > _read(row)]
        rows = [row for row in rows if perm_of(row) & WRITE or _unread(offsets, row)]
        if not rows:
            continue
        unread = [(r["broker_name"], n) for r in rows for n in range(_read(r), _write(r))]
        stored = offsets.stored(MessageQueue(topic, broker, number) for broker, number in unread)
        settled = [row for row in rows if case.run.end_ms > row["event_ms"] + ROUTE_MS]
        yield Finding(
            f"{topic}: producers write {plural(len(unread), 'queue')} that nobody may read "
            f"({queue_names(unread)}; {_numbers(rows)}): {messages(stored)} there.",
            {"queues": queue_names(unread), "numbers": _numbers(rows)},
            severity=None if settled else INFO,
            topic=topic,
            broker_name=rows[0]["broker_name"] if len(rows) == 1 else None,
            first_ms=min(row["event_ms"] for row in rows),
        )


def _unread(offsets: Offsets, row: Row) -> bool:
    """True if messages stand in queues beyond those that are read."""
    numbers = range(_read(row), _write(row))
    beyond = (MessageQueue(row["topic"], row["broker_name"], number) for number in numbers)
    return bool(offsets.stored(beyond))


def find_more(case: GroupCase) -> Iterator[Finding]:
    """Queues that are read and never filled: they hold shares and bring nothing."""
    shared = shared_topics(case)
    for topic in subscribed_topics(case):
        if topic in shared:
            continue
        rows = [r for r in _readable(case, topic) if _read(r) > _write(r) and perm_of(r) & WRITE]
        empty = [(r["broker_name"], n) for r in rows for n in range(_write(r), _read(r))]
        if empty:
            yield Finding(
                f"{topic}: consumers read {plural(len(empty), 'queue')} that nobody writes "
                f"({queue_names(empty)}; {_numbers(rows)}): they take shares and bring nothing.",
                {"queues": queue_names(empty), "numbers": _numbers(rows)},
                topic=topic,
                broker_name=rows[0]["broker_name"] if len(rows) == 1 else None,
                first_ms=min(row["event_ms"] for row in rows),
            )


def find_read_only(case: GroupCase) -> Iterator[Finding]:
    """Brokers that take no messages but whose queues hold whole shares (no. 25)."""
    for topic in subscribed_topics(case):
        rows = [row for row in _readable(case, topic) if not perm_of(row) & WRITE]
        brokers = {row["broker_name"] for row in rows}
        held = [r for r in case.owned if r["topic"] == topic and r["broker_name"] in brokers]
        if not held:
            continue
        loads: dict[str, int] = {}
        for row in held:
            name = row["client_id"] or "no owner"
            loads[name] = loads.get(name, 0) + 1
        count = len({(row["broker_name"], row["queue_id"]) for row in held})
        shares = listed(f"{name} {load}" for name, load in sorted(loads.items()))
        yield Finding(
            f"{topic}: {listed(sorted(brokers), 3)} cannot be written, yet "
            f"{plural(count, 'queue')} there hold whole shares: {shares}.",
            {"brokers": listed(sorted(brokers)), "holders": shares},
            topic=topic,
            broker_name=rows[0]["broker_name"] if len(rows) == 1 else None,
            first_ms=min(row["event_ms"] for row in rows),
        )


def _readable(case: GroupCase, topic: str) -> list[Row]:
    return [row for row in configs(case, topic) if perm_of(row) & READ and _read(row)]


def _read(row: Row) -> int:
    return int(row["read_queue_nums"] or 0)


def _write(row: Row) -> int:
    """Writable queues; as many as are read where the number is unknown."""
    written = row["write_queue_nums"]
    return _read(row) if written is None else int(written)


def _numbers(rows: list[Row]) -> str:
    return listed(f"{r['broker_name']} read {_read(r)} / write {_write(r)}" for r in rows)


FEWER = Rule(
    "READ_FEWER_THAN_WRITTEN",
    ERROR,
    "A broker has more write queues than read queues of a topic: producers fill queues that no "
    "consumer may read.",
    "topics (readQueueNums, writeQueueNums, perm), queue_offsets",
    "Raise readQueueNums to writeQueueNums (updateTopic -r). When scaling in, lower the write "
    "queues first and the read queues only when the rest is drained.",
    find_fewer,
)
MORE = Rule(
    "READ_MORE_THAN_WRITTEN",
    INFO,
    "A broker has more read queues than write queues of a topic. The queues without inflow take "
    "whole shares, so members with the same number of queues have different load.",
    "topics (readQueueNums, writeQueueNums)",
    "When the queues are drained, lower readQueueNums to writeQueueNums.",
    find_more,
)
READ_ONLY = Rule(
    "READ_ONLY_BROKER_COUNTED",
    INFO,
    "Queues on a broker that cannot be written still count in the division. Members that hold them "
    "have less to do than their number of queues says.",
    "topics (perm), ownership",
    "Normal while a broker is drained. When it is empty, take its read permission too "
    "(updateTopicPerm), so that the members share what is left.",
    find_read_only,
    by_owners=True,
)
