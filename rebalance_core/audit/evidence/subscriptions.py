"""What each process stated to subscribe, and what it unsubscribed at runtime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.sharing import is_proxied
from rebalance_core.model.events import UNSUBSCRIBE
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.queue import is_retry_topic


class Unsubscribed(NamedTuple):
    """A topic that a member at the end unsubscribed at runtime."""

    client_id: str
    topic: str
    epoch: int
    since_ms: int


StatedSubscriptions = tuple[frozenset[str], frozenset[str]]
"""Topics that are subscribed, topics that were unsubscribed at runtime."""


def stated_subscriptions(case: GroupCase) -> list[tuple[Row, StatedSubscriptions]]:
    """Every stretch of memberships with what it subscribes and what it unsubscribed before; those
    of which that is not known are left out.
    """
    return [(row, (frozenset(topics), frozenset(gone))) for row, topics, gone in _walked(case)]


def differ(there: Iterable[StatedSubscriptions]) -> bool:
    """True if members subscribe different topics, other than by unsubscribing one at runtime.

    >>> both, second, none = frozenset("AB"), frozenset("B"), frozenset()
    >>> differ([(both, none), (both - second, second)]), differ([(both, none), (second, none)])
    (False, True)
    """
    pairs = list(there)
    asked = frozenset[str]().union(*(topics for topics, _ in pairs))
    return len({(topics | gone) & asked for topics, gone in pairs}) > 1


def unsubscribed(case: GroupCase) -> list[Unsubscribed]:
    """Topics that members at the end no longer subscribe since an UNSUBSCRIBE of their own."""
    topics_left: list[Unsubscribed] = []
    for row, _, gone in _walked(case):
        if row["to_ms"] is None:
            topics_left.extend(
                Unsubscribed(row["client_id"], topic, *gone[topic]) for topic in sorted(gone)
            )
    return topics_left


def assigned_members(case: GroupCase) -> set[str]:
    """Members that never subscribed a topic: each reads the queues that the application names.

    So do ``assign()`` of lite pull, and DefaultMQPullConsumer without ``setRegisterTopics``; a push
    consumer always subscribes.
    """
    if (case.settings.get("consumer_type") or PUSH) == PUSH:
        return set()
    ever: dict[str, bool] = {}
    for row in case.rows("memberships"):
        subscribes = row["subscriptions"] != [] or is_proxied(row)
        ever[row["client_id"]] = ever.get(row["client_id"], False) or subscribes
    return {client_id for client_id, subscribed in ever.items() if not subscribed}


def all_known(members: Iterable[Row]) -> bool:
    """True if it is known what each of these rows of memberships subscribes."""
    return all(row["subscriptions"] is not None for row in members)


def _walked(case: GroupCase) -> Iterator[tuple[Row, set[str], dict[str, tuple[int, int]]]]:
    """Each stretch with its topics and those unsubscribed, topic -> (epoch, since)."""
    causes = {row["epoch"]: row["causes"] for row in case.epochs}
    processes: dict[tuple[str, str | None], list[Row]] = {}
    for row in case.rows("memberships"):
        processes.setdefault((row["client_id"], row["channel_id"]), []).append(row)
    for rows in processes.values():
        before: Row | None = None
        gone: dict[str, tuple[int, int]] = {}
        for row in sorted(rows, key=lambda one: one["from_epoch"]):
            if row["subscriptions"] is None:
                continue
            topics = {topic for topic in row["subscriptions"] if not is_retry_topic(topic)}
            follows = before is not None and before["to_epoch"] == row["from_epoch"]
            if follows and before is not None:
                gone = {topic: since for topic, since in gone.items() if topic not in topics}
                if UNSUBSCRIBE in causes.get(row["from_epoch"], ()):
                    lost = set(before["subscriptions"]) - topics - gone.keys()
                    gone |= dict.fromkeys(lost, (row["from_epoch"], row["from_ms"]))
            else:
                gone = {}
            yield row, topics, dict(gone)
            before = row
