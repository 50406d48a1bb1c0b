"""CONFIG_GAP, CONFIG_OVERLAP, CONFIG_FOREIGN_QUEUE, CONFIG_RETRY_UNREAD: lists by hand."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import (
    Finding,
    GroupCase,
    Rule,
    known_topics,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.dumps import READ, configs, queue_of, readable_queues, subscribed_topics
from rebalance_core.audit.orphans import Offsets, has_settled, messages, span_of
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.config import Config


def lists_of(case: GroupCase) -> dict[str, set[MessageQueue]]:
    """Client id -> the queues it is told to read; empty unless all members use CONFIG."""
    lists: dict[str, set[MessageQueue]] = {}
    for row in case.members:
        if row["strategy"].partition("(")[0] != "CONFIG":
            return {}
        strategy = parse_strategy(row["strategy"])
        queues = strategy.queues or () if isinstance(strategy, Config) else ()
        lists.setdefault(row["client_id"], set()).update(queues)
    return lists


def find_gap(case: GroupCase) -> Iterator[Finding]:
    """Readable queues of subscribed topics that nobody holds (rocketmq.md §11 no. 14)."""
    lists = lists_of(case)
    if not lists:
        return
    topics = set(subscribed_topics(case))
    rows = [
        row
        for row in case.owned
        if row["client_id"] is None
        and row["topic"] in topics
        and has_settled(case, row["from_epoch"])
    ]
    offsets = Offsets(case)
    for topic in sorted({row["topic"] for row in rows}):
        missing = [row for row in rows if row["topic"] == topic]
        queues = queue_names((row["broker_name"], row["queue_id"]) for row in missing)
        behind = offsets.behind(queue_of(row) for row in missing)
        yield Finding(
            f"No member's list names {plural(len(missing), 'queue')} of {topic} ({queues}): "
            f"{messages(behind)} behind.",
            {"queues": queues, "members": listed(sorted(lists))},
            topic=topic,
            first_ms=min(row["from_ms"] for row in missing),
        )


def find_overlap(case: GroupCase) -> Iterator[Finding]:
    """Queues in the lists of two members that both subscribe the topic."""
    lists = lists_of(case)
    topics = {row["client_id"]: known_topics(row) for row in case.members}
    readers: dict[MessageQueue, list[str]] = {}
    for client_id, queues in sorted(lists.items()):
        for queue in queues:
            if queue[0] in topics[client_id]:
                readers.setdefault(queue, []).append(client_id)
    twice = {queue: ids for queue, ids in readers.items() if len(ids) > 1}
    for topic in sorted({queue[0] for queue in twice}):
        own = {queue: ids for queue, ids in twice.items() if queue[0] == topic}
        names = queue_names((broker, number) for _, broker, number in own)
        ids = sorted(set[str]().union(*own.values()))
        youngest = max(
            (row for row in case.members if row["client_id"] in ids),
            key=lambda row: int(row["from_epoch"]),
        )
        if not has_settled(case, youngest["from_epoch"]):
            continue
        yield Finding(
            f"{plural(len(own), 'queue')} of {topic} ({names}) in the lists of several members: "
            f"{listed(ids, 4)} all read them.",
            {"queues": names, "clients": listed(ids)},
            topic=topic,
            first_ms=youngest["from_ms"],
        )


def find_foreign(case: GroupCase) -> Iterator[Finding]:
    """Listed queues that no broker has; silent where the topic is not known at all."""
    lists = lists_of(case)
    named = set[MessageQueue]().union(*lists.values()) if lists else set()
    for topic in sorted({queue[0] for queue in named}):
        known = configs(case, topic)
        if not known and not any(row["topic"] == topic for row in case.rows("topics")):
            continue
        there = readable_queues(case, topic)
        wrong = {(b, n) for t, b, n in named if t == topic and (b, n) not in there}
        moments = [row["event_ms"] for row in case.rows("topics") if row["topic"] == topic]
        if not wrong:
            continue
        ids = sorted(
            c for c, queues in lists.items() if any((topic, *one) in queues for one in wrong)
        )
        has = queue_names(there) or "none that can be read"
        yield Finding(
            f"{listed(ids, 3)} list {plural(len(wrong), 'queue')} of {topic} that cannot be read: "
            f"{queue_names(wrong)} (there are {has}, as of {utc(max(moments))}).",
            {"queues": queue_names(wrong), "clients": listed(ids), "there_are": has},
            topic=topic,
            client_id=ids[0] if len(ids) == 1 else None,
        )


def find_retry(case: GroupCase) -> Iterator[Finding]:
    """Retry queues that no list names: failed messages are not delivered again."""
    lists = lists_of(case)
    rows = [
        row
        for row in case.owned
        if lists
        and is_retry_topic(row["topic"])
        and row["client_id"] is None
        and has_settled(case, span_of(row).epoch, row["topic"])
    ]
    if rows:
        queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
        behind = Offsets(case).behind(queue_of(row) for row in rows)
        yield Finding(
            f"No member's list names the retry topic ({queues}): messages whose consumption fails "
            f"are never delivered again ({messages(behind)} there).",
            {"queues": queues},
            topic=rows[0]["topic"],
            first_ms=min(row["from_ms"] for row in rows),
        )


_SEEN_BY = "memberships (strategy), ownership, topics"
GAP = Rule(
    "CONFIG_GAP",
    ERROR,
    "Members read the queues of a list by hand (strategy CONFIG), and no list names some queues of "
    "the topic: nobody reads them.",
    _SEEN_BY,
    "Add the queues to the list of one member and restart it, or use AVG.",
    find_gap,
    by_owners=True,
)
OVERLAP = Rule(
    "CONFIG_OVERLAP",
    ERROR,
    "A queue stands in the CONFIG lists of several members. All of them read it, and their commits "
    "overwrite each other.",
    _SEEN_BY,
    "Leave each queue in one list only and restart the others.",
    find_overlap,
    by_owners=True,
)
FOREIGN = Rule(
    "CONFIG_FOREIGN_QUEUE",
    WARNING,
    f"A CONFIG list names a queue that no broker has or that has no read permission ({READ}). The "
    "member keeps trying to read it.",
    _SEEN_BY,
    "Correct the list, or create the queue (updateTopic).",
    find_foreign,
)
RETRY = Rule(
    "CONFIG_RETRY_UNREAD",
    INFO,
    "With CONFIG nobody reads %RETRY%<group> unless a list names it, so failed messages are never "
    "delivered again.",
    _SEEN_BY,
    "Add the retry queues to one list, or make sure that the listener never asks for a retry.",
    find_retry,
)
