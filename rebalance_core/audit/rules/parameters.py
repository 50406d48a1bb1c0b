"""CONFIG lists that leave queues out, overlap, or name queues of others."""

from collections.abc import Iterator

from rebalance_core.audit import dumps
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.stretches import has_settled, span_of
from rebalance_core.audit.subjects import LISTED_MEMBERS, TOPICS
from rebalance_core.audit.topic_settings import READ, configs, readable_queues, subscribed_topics
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.config import Config


def lists_of(group: GroupSnapshot) -> dict[str, set[MessageQueue]]:
    """Return client id -> the queues in its list; empty unless all members use CONFIG."""
    lists: dict[str, set[MessageQueue]] = {}
    for row in group.members:
        if row["strategy"].partition("(")[0] != "CONFIG":
            return {}
        strategy = parse_strategy(row["strategy"])
        queues = strategy.queues or () if isinstance(strategy, Config) else ()
        lists.setdefault(row["client_id"], set()).update(queues)
    return lists


def find_gap(group: GroupSnapshot) -> Iterator[Finding]:
    """Find readable queues of subscribed topics without a holder (rocketmq.md §2.4)."""
    lists = lists_of(group)
    if not lists:
        return
    topics = set(subscribed_topics(group))
    rows = [
        row
        for row in group.owned
        if row["client_id"] is None
        and row["topic"] in topics
        and has_settled(group, row["from_epoch"])
    ]
    offsets = Offsets(group)
    for topic in sorted({row["topic"] for row in rows}):
        missing = [row for row in rows if row["topic"] == topic]
        queues = queue_names((row["broker_name"], row["queue_id"]) for row in missing)
        behind = offsets.behind(dumps.queue_of(row) for row in missing)
        yield Finding(
            f"No member's list names {plural(len(missing), 'queue')} of {topic} ({queues}): "
            f"{messages(behind)} behind.",
            {"queues": queues, "members": listed(sorted(lists))},
            topic=topic,
            first_ms=min(row["from_ms"] for row in missing),
        )


def find_overlap(group: GroupSnapshot) -> Iterator[Finding]:
    """Find queues in the lists of two members that both subscribe to the topic."""
    lists = lists_of(group)
    topics = {row["client_id"]: known_topics(row) for row in group.members}
    readers: dict[MessageQueue, list[str]] = {}
    for client_id, queues in sorted(lists.items()):
        for queue in queues:
            if queue[0] in topics[client_id]:
                readers.setdefault(queue, []).append(client_id)
    twice = {queue: ids for queue, ids in readers.items() if len(ids) > 1}
    for topic in sorted({queue[0] for queue in twice}):
        shared = {queue: ids for queue, ids in twice.items() if queue[0] == topic}
        names = queue_names((broker, number) for _, broker, number in shared)
        ids = sorted(set[str]().union(*shared.values()))
        youngest = max(
            (row for row in group.members if row["client_id"] in ids),
            key=lambda row: int(row["from_epoch"]),
        )
        if not has_settled(group, youngest["from_epoch"]):
            continue
        yield Finding(
            f"{plural(len(shared), 'queue')} of {topic} ({names}) are in the lists of several "
            f"members: {listed(ids, 4)} all read them.",
            {"queues": names, "clients": listed(ids)},
            topic=topic,
            first_ms=youngest["from_ms"],
        )


def find_foreign(group: GroupSnapshot) -> Iterator[Finding]:
    """Find listed queues that no broker has, of topics that are known."""
    lists = lists_of(group)
    named = set[MessageQueue]().union(*lists.values()) if lists else set()
    for topic in sorted({queue[0] for queue in named}):
        topic_configs = configs(group, topic)
        if not topic_configs and not any(row["topic"] == topic for row in group.tables["topics"]):
            continue
        readable = readable_queues(group, topic)
        wrong = {(b, n) for t, b, n in named if t == topic and (b, n) not in readable}
        moments = [row["event_ms"] for row in group.tables["topics"] if row["topic"] == topic]
        if not wrong:
            continue
        ids = sorted(
            c for c, queues in lists.items() if any((topic, *queue) in queues for queue in wrong)
        )
        has = queue_names(readable) or "none that can be read"
        yield Finding(
            f"{listed(ids, 3)} list {plural(len(wrong), 'queue')} of {topic} that cannot be read: "
            f"{queue_names(wrong)} (there are {has}, as of {utc(max(moments))}).",
            {"queues": queue_names(wrong), "clients": listed(ids), "there_are": has},
            topic=topic,
            client_id=ids[0] if len(ids) == 1 else None,
        )


def find_retry(group: GroupSnapshot) -> Iterator[Finding]:
    """Find retry queues that no list names, whose failed messages are never redelivered."""
    lists = lists_of(group)
    rows = [
        row
        for row in group.owned
        if lists
        and is_retry_topic(row["topic"])
        and row["client_id"] is None
        and has_settled(group, span_of(row).epoch, row["topic"])
    ]
    if rows:
        queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
        behind = Offsets(group).behind(dumps.queue_of(row) for row in rows)
        yield Finding(
            f"No member's list names the retry topic ({queues}): brokers never redeliver messages "
            f"whose consumption fails ({messages(behind)} there).",
            {"queues": queues},
            topic=rows[0]["topic"],
            first_ms=min(row["from_ms"] for row in rows),
        )


_SEEN_BY = "memberships, ownership, topics"
GAP = Rule(
    "CONFIG_GAP",
    ERROR,
    "With CONFIG, members read the queues in manually written lists, and no list names some "
    "queues of the topic: no client reads them.",
    _SEEN_BY,
    "Add the queues to one member's list and restart it, or use AVG.",
    find_gap,
    by_owners=True,
    reads=(TOPICS, LISTED_MEMBERS),
)
OVERLAP = Rule(
    "CONFIG_OVERLAP",
    ERROR,
    "A queue is in the CONFIG lists of several members. All of them read it, and their commits "
    "overwrite each other.",
    _SEEN_BY,
    "Keep each queue in only one list and restart the other members.",
    find_overlap,
    by_owners=True,
    reads=(LISTED_MEMBERS,),
)
FOREIGN = Rule(
    "CONFIG_FOREIGN_QUEUE",
    WARNING,
    "A CONFIG list names a queue that no broker has or that has no read permission "
    f"({READ}). The member keeps trying to read it.",
    _SEEN_BY,
    "Correct the list, or create the queue (updateTopic).",
    find_foreign,
    reads=(TOPICS, LISTED_MEMBERS),
)
RETRY = Rule(
    "CONFIG_RETRY_UNREAD",
    INFO,
    "With CONFIG, no client reads %RETRY%<group> unless a list names it, so failed messages are "
    "never redelivered.",
    _SEEN_BY,
    "Add the retry queues to one list, or make sure that the listener never requests a retry.",
    find_retry,
    reads=(LISTED_MEMBERS,),
)
