"""How members divide topics: what each process subscribes, what is shared, by which strategy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.audit.group_snapshot import GroupSnapshot, grouped, known_topics
from rebalance_core.model.clients import is_java, profile_of_row, rules_version
from rebalance_core.model.events import CONSUMER_JOIN, UNSUBSCRIBE
from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE, PUSH, GroupSettings
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.request_mode import PULL_MODE, can_be_popped, parse_request_mode
from rebalance_core.protocol.query_assignment import asks_broker

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        MembershipsRow,
        PopMetricsRow,
        PopReachRow,
        RequestModesRow,
    )

# Topics whose queues members share, and how each member gets its messages.


@dataclass(frozen=True, slots=True)
class TopicReaders:
    """The members that subscribe a topic, as client ids in order, by how they get its messages.

    Attributes:
        poppers: they ask a broker, and the topic's request mode is POP.
        proxied: gRPC clients; their proxy pops for them, whatever the mode.
        pullers: all others: each pulls a share of its own.
    """

    poppers: tuple[str, ...]
    proxied: tuple[str, ...]
    pullers: tuple[str, ...]

    @property
    def sharers(self) -> tuple[str, ...]:
        """Return the members that may take messages of a queue from which others take
        messages, too.
        """
        return self.poppers + self.proxied


def readers(group: GroupSnapshot, topic: str, at_ms: int | None = None) -> TopicReaders:
    """Return who reads the topic, and how; ``at_ms`` None: at the end."""
    poppers, proxied, pullers = set[str](), set[str](), set[str]()
    popped = is_popped(group, topic, group.run.end_ms if at_ms is None else at_ms)
    for row in group.tables["memberships"]:
        if topic not in known_topics(row) or not _there(row, at_ms):
            continue
        if is_proxied(row):
            proxied.add(row["client_id"])
        elif popped and asks(group, row):
            poppers.add(row["client_id"])
        else:
            pullers.add(row["client_id"])
    return TopicReaders(*(tuple(sorted(clients)) for clients in (poppers, proxied, pullers)))


def gave_up_asking(group: GroupSnapshot, topic: str) -> set[str]:
    """Return members that are set to ask a broker, but divide the topic themselves at the end."""
    members = {row["client_id"] for row in group.members}
    facts = (fact for fact in group.facts["GAVE_UP_ASKING"] if fact["topic"] == topic)
    return {fact["client_id"] for fact in facts if "over_ms" not in fact["details"]} & members


def _there(row: MembershipsRow, at_ms: int | None) -> bool:
    if at_ms is None:
        return row["to_ms"] is None
    return bool(row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"]))


def is_proxied(member: MembershipsRow) -> bool:
    """Return True for a gRPC client's membership, for which no member list divides queues.

    See rocketmq.md §14.
    """
    return bool(member["rebalance_mode"] == PROXY_REBALANCE)


def all_proxied(members: Iterable[MembershipsRow]) -> bool:
    """Return True if there are members and each is behind a proxy."""
    rows = list(members)
    return bool(rows) and all(map(is_proxied, rows))


def asks(group: GroupSnapshot, member: MembershipsRow) -> bool:
    """Return True if the membership's client asks a broker for its queues."""
    defaults = GroupSettings()
    kind = group.settings["consumer_type"] or defaults.consumer_type
    ordered = group.settings["ordered"] or defaults.ordered
    return asks_broker(
        member["rebalance_mode"], kind, member["message_model"], ordered, version_of(member)
    )


def version_of(member: MembershipsRow) -> str:
    """Return the RocketMQ version whose rules the membership's client follows."""
    return rules_version(member.get("language"), str(member["version"]))


def request_mode(group: GroupSnapshot, topic: str, at_ms: int) -> RequestModesRow | None:
    """Return the topic's REQUEST_MODE at this time, or None if it was never set, which means
    PULL.
    """
    set_before = [
        row for row in group.request_modes if row["topic"] == topic and row["event_ms"] <= at_ms
    ]
    return set_before[-1] if set_before else None


def is_popped(group: GroupSnapshot, topic: str, at_ms: int) -> bool:
    """Return True if the topic's request mode is POP, whether or not members follow it."""
    row = request_mode(group, topic, at_ms)
    mode = PULL_MODE if row is None else parse_request_mode(row["detail"])
    return can_be_popped(topic) and mode.is_pop


def shared_topics(group: GroupSnapshot) -> dict[str, PopMetricsRow]:
    """Return the topics whose queues members share at the end, each with its row of pop_metrics."""
    last = group.last_epoch
    if last is None:
        return {}
    return {
        row["topic"]: row for row in group.tables["pop_metrics"] if row["epoch"] == last["epoch"]
    }


def is_shared(group: GroupSnapshot, topic: str, at_ms: int) -> bool:
    """Return True if members shared the topic's queues at this time."""
    epoch = group.epoch_at(at_ms)
    return epoch is not None and any(
        row["topic"] == topic and row["epoch"] == epoch["epoch"]
        for row in group.tables["pop_metrics"]
    )


def reach(group: GroupSnapshot) -> list[PopReachRow]:
    """Return who may take messages of which shared queue at the end: open rows of pop_reach."""
    return [row for row in group.tables["pop_reach"] if row["to_ms"] is None]


# Whether it is known how the members of a group divide its queues, and by what.


def stated_strategies(group: GroupSnapshot) -> Callable[[MembershipsRow], str]:
    """Return the strategy that a membership's client is set to, by its Java name.

    That of the row is what its client makes of it: GO_CONSISTENT_HASH of CONSISTENT_HASH, AVG of
    whatever strategy a group's C++ members are set to.
    """
    joins = [row for row in group.consumer_events if row["event_type"] == CONSUMER_JOIN]
    by_client = {row["client_id"]: row["strategy"] for row in joins}
    of_group = group.settings.get("strategy") or GroupSettings().strategy

    def stated(member: MembershipsRow) -> str:
        if is_java(member.get("language")):
            return str(member["strategy"])
        return str(by_client.get(member["client_id"]) or of_group).removeprefix("GO_")

    return stated


def strategy_is_known(group: GroupSnapshot) -> bool:
    """Return False if some member depends on a strategy or parameters that no file shows.

    The ledger's owners are then an assumption, and no evidence.
    """
    unknown = any(row["rule_id"] == "INGEST_STRATEGY_UNKNOWN" for row in group.tables["findings"])
    return not reads_static_topic(group) and (not unknown or all_proxied(group.members))


def reads_static_topic(group: GroupSnapshot) -> bool:
    """Return True if clients divide a topic's logical queues, which the ledger does not cover."""
    return any(row["rule_id"] == "INGEST_STATIC_TOPIC" for row in group.tables["findings"])


def reads_lite_topic(group: GroupSnapshot) -> bool:
    """Return True if clients read lite topics inside a topic, which the ledger does not cover."""
    return any(row["rule_id"] == "INGEST_LITE_TOPIC" for row in group.tables["findings"])


def shares_known(members: Iterable[MembershipsRow]) -> bool:
    """Return False if one of these rows is of a client whose queues are unknown."""
    return all(
        is_proxied(row)
        or row["message_model"] == BROADCASTING
        or profile_of_row(row).share_known(row["strategy"])
        for row in members
    )


# What each process stated to subscribe, and what it unsubscribed at runtime.


class Unsubscribed(NamedTuple):
    """A topic that a member at the end unsubscribed at runtime."""

    client_id: str
    topic: str
    epoch: int
    since_ms: int


StatedSubscriptions = tuple[frozenset[str], frozenset[str]]
"""Topics that are subscribed, topics that were unsubscribed at runtime."""


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
    """Return True if the members at the end, or else the group's settings, use BROADCASTING."""
    models = {row["message_model"] for row in group.members}
    if models:
        return models == {BROADCASTING}
    return bool(group.settings.get("message_model") == BROADCASTING)
