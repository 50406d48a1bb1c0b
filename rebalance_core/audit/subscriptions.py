"""The topics that each process of a group subscribes to, and those that it unsubscribed at run
time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.audit.group_snapshot import GroupSnapshot, grouped, known_topics
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.model.events import UNSUBSCRIBE
from rebalance_core.model.group_settings import BROADCASTING, PUSH
from rebalance_core.model.queue import is_retry_topic

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        MembershipsRow,
    )


class Unsubscribed(NamedTuple):
    """A topic that a member at the end unsubscribed at runtime."""

    client_id: str
    topic: str
    epoch: int
    since_ms: int


StatedSubscriptions = tuple[frozenset[str], frozenset[str]]
"""Topics that are subscribed to, and topics that were unsubscribed at run time."""


def stated_subscriptions(group: GroupSnapshot) -> list[tuple[MembershipsRow, StatedSubscriptions]]:
    """Return every stretch of memberships with its subscriptions and earlier unsubscriptions.

    Stretches with unknown subscriptions are left out.
    """
    return [(row, (frozenset(topics), frozenset(gone))) for row, topics, gone in _walked(group)]


def differ(statements: Iterable[StatedSubscriptions]) -> bool:
    """Return True if members subscribe to different topics, not just by unsubscribing at runtime.

    >>> both, second, none = frozenset("AB"), frozenset("B"), frozenset()
    >>> differ([(both, none), (both - second, second)]), differ([(both, none), (second, none)])
    (False, True)
    """
    pairs = list(statements)
    asked = frozenset[str]().union(*(topics for topics, _ in pairs))
    return len({(topics | gone) & asked for topics, gone in pairs}) > 1


def unsubscribed(group: GroupSnapshot) -> list[Unsubscribed]:
    """Return the topics that members at the end no longer subscribe to after an UNSUBSCRIBE."""
    topics_left: list[Unsubscribed] = []
    for row, _, gone in _walked(group):
        if row["to_ms"] is None:
            topics_left.extend(
                Unsubscribed(row["client_id"], topic, *gone[topic]) for topic in sorted(gone)
            )
    return topics_left


def assigned_members(group: GroupSnapshot) -> set[str]:
    """Return members that never subscribed to a topic: the application names their queues.

    So do ``assign()`` of lite pull, and DefaultMQPullConsumer without ``setRegisterTopics``; a push
    consumer always subscribes.
    """
    if (group.settings.get("consumer_type") or PUSH) == PUSH:
        return set()
    ever: dict[str, bool] = {}
    for row in group.tables["memberships"]:
        subscribes = row["subscriptions"] != [] or is_proxied(row)
        ever[row["client_id"]] = ever.get(row["client_id"], False) or subscribes
    return {client_id for client_id, subscribed in ever.items() if not subscribed}


def all_known(members: Iterable[MembershipsRow]) -> bool:
    """Return True if the subscriptions of all these memberships are known."""
    return all(row["subscriptions"] is not None for row in members)


def _walked(
    group: GroupSnapshot,
) -> Iterator[tuple[MembershipsRow, set[str], dict[str, tuple[int, int]]]]:
    """Yield each stretch with its topics and its unsubscribed topics, topic -> (epoch, since)."""
    causes = {row["epoch"]: row["causes"] for row in group.epochs}
    processes = grouped(
        group.tables["memberships"], lambda row: (row["client_id"], row["channel_id"])
    )
    for rows in processes.values():
        before: tuple[MembershipsRow, Collection[str]] | None = None
        gone: dict[str, tuple[int, int]] = {}
        for row in sorted(rows, key=lambda row: row["from_epoch"]):
            if row["subscriptions"] is None:
                continue
            subscribed = row["subscriptions"]
            topics = {topic for topic in subscribed if not is_retry_topic(topic)}
            if before is not None and before[0]["to_epoch"] == row["from_epoch"]:
                gone = {topic: since for topic, since in gone.items() if topic not in topics}
                if UNSUBSCRIBE in causes.get(row["from_epoch"], ()):
                    lost = set(before[1]) - topics - gone.keys()
                    gone |= dict.fromkeys(lost, (row["from_epoch"], row["from_ms"]))
            else:
                gone = {}
            yield row, topics, dict(gone)
            before = row, subscribed


def subscribers(group: GroupSnapshot, topic: str) -> list[MembershipsRow]:
    """Return the members at the end that subscribe to the topic; the own retry topic counts."""
    if is_retry_topic(topic):
        return group.members
    return [row for row in group.members if topic in known_topics(row)]


def suspended_clients(group: GroupSnapshot) -> set[str]:
    """Return the client ids that were ever suspended, which hold queues and read nothing."""
    return {row["client_id"] for row in group.tables["memberships"] if row["suspended"]}


def is_broadcasting(group: GroupSnapshot) -> bool:
    """Return True if the members at the end, or otherwise the group's settings, use
    BROADCASTING.
    """
    models = {row["message_model"] for row in group.members}
    if models:
        return models == {BROADCASTING}
    return bool(group.settings.get("message_model") == BROADCASTING)
