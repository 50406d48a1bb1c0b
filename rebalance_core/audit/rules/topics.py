"""Topics that are gone, queues that are read or written alone, and queues of retry topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps
from rebalance_core.audit.dumps import number
from rebalance_core.audit.group_snapshot import (
    BROKER,
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.subscriptions import is_broadcasting, shared_topics
from rebalance_core.audit.topic_settings import (
    READ,
    WRITE,
    configs,
    configurations,
    is_deleted,
    last_topics,
    perm_of,
    subscribed_topics,
)
from rebalance_core.model.queue import MessageQueue, retry_topic
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.protocol.settling_windows import ROUTE_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import GroupTopicsRow

# TOPIC_GONE: a topic that the group reads was deleted.


def find_topic_gone(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each deleted topic of the last members (no. 27)."""
    for topic in last_topics(group):
        deleted = deletions_of(group, topic)
        if deleted:
            yield _finding(group, topic, deleted)


def deletions_of(group: GroupSnapshot, topic: str) -> dict[str, int]:
    """Return broker -> when the topic was last deleted there, whatever came later.

    Where the broker has it again, the deletion counts if the group had the topic by then.
    """
    had_ms = min(
        (r["from_ms"] for r in group.tables["ownership"] if r["topic"] == topic), default=None
    )
    deleted = {}
    for row in group.tables["topics"]:
        at_ms = row["deleted_ms"] if row["topic"] == topic else None
        if at_ms is None:
            continue
        if is_deleted(row) or (had_ms is not None and had_ms <= at_ms):
            deleted[row["broker_name"]] = at_ms
    return deleted


def _finding(group: GroupSnapshot, topic: str, deleted: dict[str, int]) -> Finding:
    present = {
        row["broker_name"]: row["event_ms"]
        for row in group.tables["topics"]
        if row["topic"] == topic and not is_deleted(row)
    }
    first = min(deleted.values())
    kept = sorted(present.keys() - deleted.keys())
    again = sorted(present.keys() & deleted.keys())
    who = (
        f"subscribed by {listed(sorted({row['client_id'] for row in group.members}), 3)}"
        if group.members
        else "to which the group's last members subscribed"
    )
    rest = f"; {listed(kept, 3)} still has it" if kept else ""
    rest += f"; {listed(again, 3)} has it again, or the route does" if again else ""
    back = group.members and len(again) == len(deleted)
    return Finding(
        f"{topic}, {who}, was deleted from {listed(sorted(deleted), 5)} at {utc(first)}{rest}.",
        {"deleted_from": listed(sorted(deleted)), "still_on": listed(kept), "again": listed(again)},
        topic=topic,
        broker_name=next(iter(deleted)) if len(deleted) == 1 else None,
        first_ms=first,
        last_ms=max(present[broker] for broker in again) if back else None,
        ended_by=f"it is on {listed(again, 3)} again" if back else "",
    )


TOPIC_GONE = Rule(
    "TOPIC_GONE",
    WARNING,
    "A topic that the group subscribes to was deleted. Members keep its queues and pull them in "
    "vain.",
    "topics and epochs (TOPIC_DELETED), memberships",
    "If it was a mistake, create the topic again with as many queues. If some brokers or a name "
    "server still have it, delete it there too (deleteTopic). Otherwise remove the subscription "
    "from the consumers and the group's offsets.",
    find_topic_gone,
    reads=(TOPICS, MEMBERS),
    state=True,
)


# READ_FEWER_THAN_WRITTEN, READ_MORE_THAN_WRITTEN, READ_ONLY_BROKER_COUNTED: topics as set up.


def find_fewer(group: GroupSnapshot) -> Iterator[Finding]:
    """Find queues that producers fill and consumers may not read (rocketmq.md §6.3)."""
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
    """Find queues that consumers read and producers never fill, which still count as shares."""
    shared = shared_topics(group)
    for topic in subscribed_topics(group):
        if topic in shared:
            continue
        rows = [r for r in _readable(group, topic) if _read(r) > _write(r) and perm_of(r) & WRITE]
        empty = [(r["broker_name"], n) for r in rows for n in range(_write(r), _read(r))]
        if empty:
            yield Finding(
                f"{topic}: consumers read {plural(len(empty), 'queue')} that no producer writes "
                f"to ({queue_names(empty)}; {_numbers(rows)}): they count as shares and receive "
                "no messages.",
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


# RETRY_IMBALANCE and RETRY_QUEUES_UNREAD: the group's retry topic.


def find_imbalance(group: GroupSnapshot) -> Iterator[Finding]:
    """Find more members than retry queues, unless offsets show that no retry waits (no. 23).

    Silent also where every topic is shared: what is popped is retried by the pop retry topic.
    """
    topic = retry_topic(group.consumer_group)
    queues = {dumps.queue_of(row) for row in group.owned if row["topic"] == topic}
    members = {row["client_id"] for row in group.members}
    if is_broadcasting(group) or not queues or len(members) <= len(queues):
        return
    behind = Offsets(group).behind(queues)
    if behind == 0 or shared_topics(group).keys() >= set(subscribed_topics(group)):
        return
    readers = {r["client_id"] for r in group.owned if r["topic"] == topic and r["client_id"]}
    if not readers:
        return
    yield Finding(
        f"{plural(len(members), 'member')} share {plural(len(queues), 'retry queue')}: only "
        f"{plural(len(readers), 'member')} handle retries ({messages(behind)} waiting).",
        {"readers": listed(sorted(readers)), "members": str(len(members))},
        topic=topic,
    )


def find_unread(group: GroupSnapshot) -> Iterator[Finding]:
    """Find retry queues that the broker fills and consumers may not read (rocketmq.md §3.4)."""
    topic = retry_topic(group.consumer_group)
    read = {row["broker_name"]: row["read_queue_nums"] or 0 for row in configs(group, topic)}
    for broker, fact in sorted(configurations(group).items()):
        filled = number(fact["details"].get("retry_queue_nums"))
        if broker in read and filled > read[broker]:
            unread = (MessageQueue(topic, broker, n) for n in range(read[broker], filled))
            stored = Offsets(group).stored(unread)
            yield Finding(
                f"{broker} spreads retries over {plural(filled, 'queue')} (retryQueueNums), and "
                f"{topic} has {read[broker]} to read there: {messages(stored)} in the rest.",
                {"retry_queue_nums": str(filled), "read_queue_nums": str(read[broker])},
                topic=topic,
                broker_name=broker,
                first_ms=fact["first_ms"],
            )


IMBALANCE = Rule(
    "RETRY_IMBALANCE",
    INFO,
    "The retry topic has one queue per broker, so only as many members as there are brokers "
    "consume failed messages.",
    "memberships, ownership, queue_offsets",
    "Usually nothing. If retries pile up, raise the group's retryQueueNums and the read queues of "
    "its %RETRY% topic together.",
    find_imbalance,
    by_owners=True,
    reads=(MEMBERS,),
)
UNREAD = Rule(
    "RETRY_QUEUES_UNREAD",
    WARNING,
    "The group's retryQueueNums exceeds the read queues of its %RETRY% topic: brokers put failed "
    "messages into queues that no consumer may read.",
    "GROUP_CONFIG, topics",
    "Raise the read queues of %RETRY%<group> on the named broker (updateTopic -r), or lower "
    "retryQueueNums (updateSubGroup -q).",
    find_unread,
    by_absence=True,
    about=BROKER,
    reads=(TOPICS,),
)
